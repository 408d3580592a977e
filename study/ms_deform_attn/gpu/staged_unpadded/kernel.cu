// `staged_padded` without the padding, to show what padding buys: rows of CHANNELS values, read by the same words of 4
// bytes. The published report has no such kernel, but names the bank conflicts that padding is to prevent.
#include "device/shared_memory.cuh"
#include "study/ms_deform_attn/shared/staged_halves.cuh"

namespace tmaops::ops::ms_deform_attn::staged_unpadded {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 64;
constexpr int kWarps = kThreads / device::kWarpThreads;

__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Call call) {
  auto& stages = device::block_shared<HalfStage<Padding::none>[kWarps]>();
  sum_staged(call, stages);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_half_arithmetic(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return half_work(kSite, kernel, kThreads, problem, arguments);
}

}  // namespace tmaops::ops::ms_deform_attn::staged_unpadded
