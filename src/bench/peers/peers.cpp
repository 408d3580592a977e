#include "bench/peers/peers.hpp"

#include <algorithm>
#include <array>

#include "bench/peers/ceilings.hpp"
#include "bench/peers/peer_refuses.hpp"
#include "tmaops/error.hpp"

namespace tmaops::bench {
namespace {

constexpr std::array<std::string_view, 11> kPeers{"copy",        "empty",         "gather",  "onednn",
                                                  "cublas",      "cublaslt",      "cutlass", "grid_sample",
                                                  "torch_eager", "torch_compile", "numpy"};

}  // namespace

std::span<const std::string_view> peer_names() { return kPeers; }

Peers::Peers(PythonSettings python, Timer& timer) : python_settings_(std::move(python)), timer_(timer) {}

bool Peers::applies(std::string_view peer, const CaseInfo& info) {
  const bool on_gpu = info.device.type == DeviceType::cuda;
  const std::string_view op = info.op;
  const bool public_operator = op == "gemm" || op == "resample" || op.starts_with("ms_deform_attn");
  if (peer == "copy") return true;
  if (peer == "empty") return on_gpu;  // a kernel that does nothing
  if (peer == "gather") return on_gpu && op == "ms_deform_attn";
  if (peer == "onednn") return !on_gpu && op == "gemm";
  if (peer == "cublas" || peer == "cublaslt" || peer == "cutlass") return on_gpu && op == "gemm";
  if (peer == "numpy") return !on_gpu && op == "resample";
  if (peer == "grid_sample") return op.starts_with("ms_deform_attn");
  if (peer == "torch_eager") return op == "gemm" || op == "resample";  // of an attention it is called grid_sample
  return public_operator;
}

bool Peers::in_process(std::string_view peer) {
  constexpr std::array<std::string_view, 7> here{"copy", "empty", "gather", "onednn", "cublas", "cublaslt", "cutlass"};
  return std::ranges::find(here, peer) != here.end();
}

std::unique_ptr<Implementation> Peers::make(const std::string& peer, const Workload& workload) {
  const bool on_gpu = workload.info().device.type == DeviceType::cuda;
  if (peer == "copy") return on_gpu ? make_cuda_copy(workload, timer_) : make_copy(workload, timer_);
  if (peer == "empty") return make_cuda_empty(workload, timer_);
  if (peer == "gather") return make_cuda_gather(workload, timer_);
  if (peer == "cublas") return make_cublas(workload, timer_);
  if (peer == "cublaslt") return make_cublaslt(workload, timer_);
  if (peer == "onednn") {
#ifdef TMAOPS_HAVE_ONEDNN
    return make_onednn(workload, timer_);
#else
    peer_refuses("onednn", "built without oneDNN: " TMAOPS_HOW_ONEDNN);
#endif
  }
  if (peer == "cutlass") {
#ifdef TMAOPS_HAVE_CUTLASS
    return make_cutlass(workload, timer_);
#else
    peer_refuses("cutlass", "built without CUTLASS: " TMAOPS_HOW_CUTLASS);
#endif
  }
  start_python();
  if (!loaded_) python_->load(workload);
  loaded_ = true;
  return make_python_peer(peer, python_);
}

void Peers::forget() {
  loaded_ = false;
  if (python_) python_->forget();
}

void Peers::start_python() {
  if (python_) return;
  if (no_python_.empty()) {
    try {
      python_ = std::make_shared<PythonPeers>(python_settings_);
      if (python_settings_.note) python_settings_.note("peers: " + python_->versions());
      return;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::interrupted) throw;
      const ErrorDetails& details = error.details();
      no_python_ = "no Python for it (" + details.where + ": " + details.got + details.needed +
                   "): install python3-numpy, and torch from PyPI, or name another interpreter with --python or "
                   "TMAOPS_PYTHON";
    }
  }
  peer_refuses("Python peers", no_python_);
}

}  // namespace tmaops::bench
