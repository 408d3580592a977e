// What a row says about its samples.
#pragma once

#include <cstdint>
#include <span>

namespace tmaops::bench {

/// Of n samples, in the samples' unit.
struct Summary {
  double median = 0;
  double p10 = 0;  // 10th percentile
  double p90 = 0;  // 90th
  std::int64_t n = 0;
  double mean = 0;
  double min = 0;
  double max = 0;
  double deviation = 0;  // standard, of the samples (n - 1); 0 of one sample
};

/// Percentile p in [0, 1] by linear interpolation between the ordered samples (R's type 7, numpy's default). Throws
/// Error bad_parameter without samples or with one that is not finite.
double percentile(std::span<const double> samples, double p);

Summary summarize(std::span<const double> samples);

}  // namespace tmaops::bench
