// Reproduces the "original" kernel of the published attention report: 512 threads, four of them per query with eight
// channels each, no shared memory, f16 arithmetic throughout, locations and weights read past the L1 (__ldcg), one
// head, eight points. A sample that touches no pixel is skipped by a branch. It differs in three points. The published
// value has a border of zeros, whose pixels are read like others; here pixels outside are zeros without a read, so that
// the value may have a border that holds anything, or none. The eight weights of a level are two loads of 8 bytes,
// which asks for less alignment than one of 16. Sums that are not finite are made again by the definition.
#include "study/ms_deform_attn/shared/half_samples.cuh"

namespace tmaops::ops::ms_deform_attn::original {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 512;

__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Call call) {
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
#pragma unroll
    for (const HalfPoint& point : points) {
      const HalfSample sample = half_sample(call, level, point);
      if (sample.inside != 0) add_half_sample(sum, map, sample, right, level.pitch * right);
    }
  }
  store_half_sums(call, item, part * device::kPerVector<__half>, sum);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_half_arithmetic(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return half_work(kSite, kernel, kThreads, problem, arguments);
}

}  // namespace tmaops::ops::ms_deform_attn::original
