// Reproduces the kernel "shared memory with padding" of the published attention report: tiles of 2 x 2 pixels of 32
// channels in shared memory, rows of CHANNELS + 2 values, a warp together for one tile, the same memory for one level
// after the other, eight channels per thread, f16 arithmetic. The source was not published. Rows of 34 values have 68
// bytes, so that nothing wider than 4 bytes is aligned in them: the stage is read by words. It differs in what the
// report leaves open: a warp stages the 64 tiles of a level and eight queries, in the order point, corner, query. As in
// `original`, no border is read, and sums that are not finite are made again by the definition.
#include "device/shared_memory.cuh"
#include "study/ms_deform_attn/shared/staged_halves.cuh"

namespace tmaops::ops::ms_deform_attn::staged_padded {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 64;
constexpr int kWarps = kThreads / device::kWarpThreads;

__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Call call) {
  auto& stages = device::block_shared<HalfStage<Padding::two_channels>[kWarps]>();
  sum_staged(call, stages);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_half_arithmetic(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return half_work(kSite, kernel, kThreads, problem, arguments);
}

}  // namespace tmaops::ops::ms_deform_attn::staged_padded
