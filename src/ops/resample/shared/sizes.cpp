#include "ops/resample/shared/sizes.hpp"

#include <cmath>

namespace tmaops::ops::resample::gpu {

Support supports_brackets(const Problem& problem) {
  if (has_intervals(problem))
    return Support::no("needs modes between two samples; mean, sum, min, max, any, count and lowpass run on the CPU");
  return Support::yes();
}

Support supports_rows(const Problem& problem) {
  if (Support support = supports_brackets(problem); !support) return support;
  if (problem.offsets_on_device()) return Support::no("needs the offsets of packed rows on the host");
  if (problem.values == DType::f64) return Support::no("computes in f32, the values are f64");
  if (!problem.unit_channel_stride) return Support::no("needs channels next to one another");
  if (problem.channels == 0) return Support::no("needs at least one channel");
  constexpr std::int64_t most = 1 << 30;
  if (problem.source > most || problem.target > most) return Support::no("needs at most 2^30 samples and targets");
  return Support::yes();
}

Support supports_one_weight(const Problem& problem) {
  if (problem.groups.size() > 1) return Support::no("needs one interpolation for all channels");
  for (const ChannelGroup& group : problem.groups)
    if (group.interpolation == Interpolation::cubic || group.interpolation == Interpolation::slerp)
      return Support::no("needs linear, previous, next or nearest interpolation");
  return supports_rows(problem);
}

Support supports_dense_rows(const Problem& problem, std::int64_t most) {
  if (!problem.unit_time_stride) return Support::no("needs times next to one another");
  if (!problem.dense_rows) return Support::no("needs rows that follow one another without gaps");
  if (Support support = supports_rows(problem); !support) return support;
  return supports_row_bytes(problem, most);
}

Support supports_row_bytes(const Problem& problem, std::int64_t most) {
  if (problem.row_bytes() > most) return Support::no("needs rows of at most " + std::to_string(most) + " bytes");
  return Support::yes();
}

Support supports_16_byte_rows(const Problem& problem) {
  if (problem.row_alignment < 16 || problem.row_bytes() % 16 != 0)
    return Support::no("needs rows of a multiple of 16 bytes at multiples of 16 bytes");
  if (problem.row_bytes() > 1 << 20) return Support::no("needs rows of at most 1 MiB");
  return Support::yes();
}

Support supports_tiles(const Problem& problem) {
  if (Support support = supports_one_weight(problem); !support) return support;
  if (Support support = supports_dense_rows(problem); !support) return support;
  return supports_16_byte_rows(problem);
}

int window_capacity(const Problem& problem, std::int64_t longest_target, int tile, int margin, std::int64_t most) {
  const double spanned = std::ceil(static_cast<double>(tile) * static_cast<double>(problem.longest_source) /
                                   static_cast<double>(longest_target));
  const double wanted = spanned + 3 + 2.0 * margin;
  return static_cast<int>(std::min<double>(wanted, static_cast<double>(std::min(most, problem.longest_source))));
}

int time_margin(std::int64_t samples, std::int64_t targets) {
  const auto s = static_cast<double>(samples);
  const double spread =
      1.5 * s / std::sqrt(static_cast<double>(std::max<std::int64_t>(targets, 1))) + 0.45 * std::sqrt(s);
  return 4 + static_cast<int>(std::min(spread, 1e6));
}

int slice_bytes(int capacity, std::int64_t stride) { return (capacity * static_cast<int>(stride) + 15 + 15) / 16 * 16; }

}  // namespace tmaops::ops::resample::gpu
