// What a row says about its samples.
#pragma once

#include <cstdint>
#include <span>

namespace tmaops::bench {

/// Of n samples: the median, and the 10th and 90th percentile, in the samples' unit.
struct Summary {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
  std::int64_t n = 0;
};

/// Percentile p in [0, 1] by linear interpolation between the ordered samples (R's type 7, numpy's default). Throws
/// Error bad_parameter without samples or with one that is not finite.
double percentile(std::span<const double> samples, double p);

Summary summarize(std::span<const double> samples);

}  // namespace tmaops::bench
