#include "bench/peers/peers.hpp"

#include <algorithm>
#include <vector>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "tmaops/error.hpp"

namespace tmaops::bench {
namespace {

using Make = std::unique_ptr<Implementation> (*)(const Workload&, Timer&);

struct Peer {
  std::string_view name;
  bool (*applies)(std::string_view op, bool on_gpu);
  Make make;  // null: in Python
};

bool is_attention_on_gpu(std::string_view op, bool on_gpu) { return on_gpu && op.starts_with("ms_deform_attn"); }
bool is_gemm_on_gpu(std::string_view op, bool on_gpu) { return on_gpu && op == "gemm"; }

constexpr Peer kPeers[] = {
    {"copy", [](std::string_view, bool) { return true; }, make_copy},
    {"empty", [](std::string_view, bool on_gpu) { return on_gpu; }, make_cuda_empty},
    {"gather", [](std::string_view op, bool on_gpu) { return on_gpu && op == "ms_deform_attn"; }, make_cuda_gather},
    {"onednn", [](std::string_view op, bool on_gpu) { return !on_gpu && op == "gemm"; }, make_onednn},
    {"cublas", is_gemm_on_gpu, make_cublas},
    {"cublaslt", is_gemm_on_gpu, make_cublaslt},
    {"cutlass", is_gemm_on_gpu, make_cutlass},
    {"cute_v1", is_gemm_on_gpu, make_cute_v1},
    {"cute_v2", is_gemm_on_gpu, make_cute_v2},
    {"grid_sample", [](std::string_view op, bool) { return op.starts_with("ms_deform_attn"); }, nullptr},
    {"deformops_triton", is_attention_on_gpu, nullptr},
    {"deformops_cuda", is_attention_on_gpu, nullptr},
    {"triton", [](std::string_view op, bool on_gpu) { return on_gpu && op == "ms_deform_attn"; }, nullptr},
    {"separate_steps", [](std::string_view op, bool) { return op == "ms_deform_attn"; }, nullptr},
    // An attention by PyTorch is called grid_sample.
    {"torch_eager", [](std::string_view op, bool) { return op == "gemm" || op == "resample"; }, nullptr},
    {"torch_compile",
     [](std::string_view op, bool) { return op == "gemm" || op == "resample" || op.starts_with("ms_deform_attn"); },
     nullptr},
    {"numpy", [](std::string_view op, bool on_gpu) { return !on_gpu && op == "resample"; }, nullptr}};

const Peer& peer_named(std::string_view name) {
  const auto found = std::ranges::find(kPeers, name, &Peer::name);
  if (found == std::end(kPeers))
    fail(ErrorCode::bad_value, "peers", "'" + display_text(std::string(name)) + "'", "one of " + joined(peer_names()),
         did_you_mean(name, peer_names()));
  return *found;
}

}  // namespace

#ifndef TMAOPS_HAVE_ONEDNN
std::unique_ptr<Implementation> make_onednn(const Workload&, Timer&) {
  peer_refuses("onednn", "built without oneDNN: " TMAOPS_HOW_ONEDNN);
}
#endif
#ifndef TMAOPS_HAVE_CUTLASS
namespace {
std::unique_ptr<Implementation> needs_cutlass(const char* peer) {
  peer_refuses(peer, "built without CUTLASS: " TMAOPS_HOW_CUTLASS);
}
}  // namespace
std::unique_ptr<Implementation> make_cutlass(const Workload&, Timer&) { return needs_cutlass("cutlass"); }
std::unique_ptr<Implementation> make_cute_v1(const Workload&, Timer&) { return needs_cutlass("cute_v1"); }
std::unique_ptr<Implementation> make_cute_v2(const Workload&, Timer&) { return needs_cutlass("cute_v2"); }
#endif

std::span<const std::string_view> peer_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Peer& peer : kPeers) all.push_back(peer.name);
    return all;
  }();
  return names;
}

Peers::Peers(PythonSettings python, Timer& timer) : python_settings_(std::move(python)), timer_(timer) {}

bool Peers::applies(std::string_view peer, const CaseInfo& info) {
  return peer_named(peer).applies(info.op, info.device.type == DeviceType::cuda);
}

bool Peers::in_process(std::string_view peer) { return peer_named(peer).make != nullptr; }

std::unique_ptr<Implementation> Peers::make(const std::string& peer, const Workload& workload) {
  if (const Make here = peer_named(peer).make) return here(workload, timer_);
  start_python();
  if (!loaded_) python_->load(workload);
  loaded_ = true;
  return python_->make(peer);
}

void Peers::forget() {
  loaded_ = false;
  if (python_) python_->forget();
}

void Peers::start_python() {
  if (python_) return;
  if (no_python_.empty()) {
    try {
      python_ = std::make_unique<PythonPeers>(python_settings_);
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
