// What the variant takes.
#include "ops/resample/forward/gpu/curve_window_walk/strand.hpp"
#include "ops/resample/forward/shared/plain.hpp"

namespace tmaops::ops::resample::curve_window_walk {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.times != DType::f32) return Support::no("needs f32 times");
  if (problem.groups.empty()) return Support::no("needs at least one channel");
  const Interpolation one = problem.groups.front().interpolation;
  for (const ChannelGroup& group : problem.groups)
    if (group.interpolation != one || (one != Interpolation::cubic && one != Interpolation::slerp) ||
        (one == Interpolation::slerp && group.first % 4 != 0))
      return Support::no("needs cubic for all channels, or slerp with every quaternion at a multiple of 4 channels");
  if (problem.channels % (4 * gpu::kWarp) != 0) return Support::no("needs a multiple of 128 channels");
  if (problem.source < kStrandTargets)
    return Support::no("needs at least " + std::to_string(kStrandTargets) + " samples");
  if (Support support = gpu::supports_row_bytes(problem, 2048); !support) return support;
  if (Support support = gpu::supports_16_byte_rows(problem); !support) return support;
  if (Support support = gpu::supports_plain_layout(problem); !support) return support;
  if (!gpu::fits_units(problem, 16 / static_cast<std::int64_t>(size_of(problem.values))))
    return Support::no("needs tensors whose chunks fit in 32 bits");
  return Support::yes();
}

}  // namespace tmaops::ops::resample::curve_window_walk
