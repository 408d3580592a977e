// Reproduces the "distributed" kernel of the published attention report, whose source was not published: the original
// without shared memory and with simpler control flow, and the same numbers. Simpler control flow is here that no
// sample is skipped: one that touches no pixel has weights of zero and reads nothing. The samples of a level are worked
// out first, so that their loads are under way together. Blocks have 256 threads. It differs from what is known of the
// published kernel as `original` does: no border is read, weights come as two loads of 8 bytes, and sums that are not
// finite are made again by the definition.
#include "study/ms_deform_attn/shared/half_samples.cuh"

namespace tmaops::ops::ms_deform_attn::distributed {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Call call) {
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t number = index >> kHalfLaneBits;
  if (number >= call.items) return;
  const int part = static_cast<int>(index & ((1 << kHalfLaneBits) - 1));
  const Item item = item_at(call, number);
  const auto* map = reinterpret_cast<const uint4*>(first_pixel<__half>(call, item)) + part;
  const std::int64_t location_row = call.locations.row(item.n, item.q, item.m);
  const std::int64_t weight_row = call.weights.row(item.n, item.q, item.m);
  const int right = pixel_pieces(call);

  __half2 sum[4] = {};
  for (int l = 0; l < call.level_count; ++l) {
    const DeviceLevel& level = call.levels[l];
    HalfPoint points[kHalfPoints];
    load_half_points(call, location_row + level.location_at, weight_row + level.weight_at, points);
    HalfSample samples[kHalfPoints];
#pragma unroll
    for (int p = 0; p < kHalfPoints; ++p) samples[p] = half_sample(call, level, points[p]);
#pragma unroll
    for (const HalfSample& sample : samples) add_half_sample(sum, map, sample, right, level.pitch * right);
  }
  store_half_sums(call, item, part * device::kPerVector<__half>, sum);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_half_arithmetic(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return half_work(kSite, kernel, kThreads, problem, arguments);
}

}  // namespace tmaops::ops::ms_deform_attn::distributed
