// What a variant is compared with: ceilings, and other libraries that do the same work.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/implementation.hpp"
#include "bench/peers/python.hpp"
#include "tmaops/error.hpp"

namespace tmaops::bench {

/// Throws Error variant_refuses: what the peer needs and does not have.
[[noreturn]] inline void peer_refuses(const std::string& peer, const std::string& needed) {
  throw Error(ErrorCode::variant_refuses, {.where = peer, .got = "", .needed = needed});
}

/// The fastest way to copy half as many bytes as the case's floor, so that as many are read and written. On a CPU there
/// is one way, on all threads.
std::unique_ptr<Implementation> make_copy(const Workload& workload, Timer& timer);

/// Copies chunks of 16 bytes.
using CopyWay = void (*)(void* to, const void* from, std::int64_t chunks, Stream stream);
/// A kernel of one load and store per thread, and cudaMemcpyAsync, which has a fast and a slow mode.
std::span<const CopyWay> ways_to_copy_on_gpu();

/// A kernel that does nothing: what a launch costs by itself.
std::unique_ptr<Implementation> make_cuda_empty(const Workload& workload, Timer& timer);

/// The loads of a multi-scale deformable attention alone: every sample's location and the 16-byte pieces of the four
/// pixels around it. Throws Error variant_refuses for rows that are not whole pieces.
std::unique_ptr<Implementation> make_cuda_gather(const Workload& workload, Timer& timer);

/// Times each way (its calls, one per set of buffers) in turn with the others and returns the fastest. A way whose
/// first call throws Error variant_refuses is left out. Throws Error variant_refuses when none is left, which says that
/// `where` needs `needed`.
std::vector<Call> fastest(std::vector<std::vector<Call>> ways, Timer& timer, const std::string& where,
                          const std::string& needed);

/// oneDNN called by hand on the workload's tensors. Throws Error variant_refuses with the reason when oneDNN or this
/// peer does not take the case. Only in builds with oneDNN.
std::unique_ptr<Implementation> make_onednn(const Workload& workload, Timer& timer);

/// cublasGemmEx with its own choice of algorithm. Throws Error variant_refuses with the reason when the library is not
/// found or does not take the case.
std::unique_ptr<Implementation> make_cublas(const Workload& workload, Timer& timer);
/// The fastest of up to 16 algorithms that cublasLtMatmulAlgoGetHeuristic proposes, each timed here. Errors as above.
std::unique_ptr<Implementation> make_cublaslt(const Workload& workload, Timer& timer);

/// The fastest of a few kernels of CUTLASS. Throws Error variant_refuses with the reason when they do not take the
/// case. Only in builds with CUTLASS.
std::unique_ptr<Implementation> make_cutlass(const Workload& workload, Timer& timer);

/// Versions 1 (cp.async) and 2 (TMA) of the published gemm, written with CuTe. Errors as above.
std::unique_ptr<Implementation> make_cute_v1(const Workload& workload, Timer& timer);
std::unique_ptr<Implementation> make_cute_v2(const Workload& workload, Timer& timer);

/// Names of all peers and ceilings.
std::span<const std::string_view> peer_names();

/// Every peer and ceiling by name.
class Peers {
 public:
  Peers(PythonSettings python, Timer& timer);

  /// Whether a peer computes this operator on this device. Throws Error bad_value for an unknown one. Where it does
  /// not, it is left out without a message.
  static bool applies(std::string_view peer, const CaseInfo& info);
  /// Whether a peer launches in this process.
  static bool in_process(std::string_view peer);
  /// The following peers are of another workload. The earlier ones stay.
  void next_workload() { loaded_ = false; }
  /// Frees what belongs to earlier workloads.
  void forget();
  /// Throws Error variant_refuses with the reason when the peer does not take the case, or needs Python and there is
  /// none.
  std::unique_ptr<Implementation> make(const std::string& peer, const Workload& workload);

 private:
  void start_python();

  PythonSettings python_settings_;
  Timer& timer_;
  std::unique_ptr<PythonPeers> python_;
  std::string no_python_{};  // why, once it is known
  bool loaded_ = false;
};

}  // namespace tmaops::bench
