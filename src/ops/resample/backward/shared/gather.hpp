// The frame of the backward CPU variants: gradients are gathered per sample. The targets that touch a sample are
// neighbours once the targets are in order, so each sample's sum runs over them in that order, whatever the threads do.
#pragma once

#include "ops/resample/backward/problem.hpp"
#include "ops/resample/shared/tiles.hpp"

namespace tmaops::ops::resample_backward {

/// Arithmetic on rows of channels for one combination of types. Sums are f64 for f64 gradients, else f32.
struct GatherKernels {
  bool (*ordered)(const void* times, std::int64_t stride, std::int64_t begin, std::int64_t end, bool strict);
  bool (*locate)(const resample::LocateRequest&, resample::Tile&);
  /// sum[0, count) += weight * gradient row; a weight of 0 reads nothing.
  void (*add)(void* sum, double weight, const void* gradient, std::int64_t stride, std::int64_t count);
  /// Writes sum[0, count) to a row.
  void (*store)(const void* sum, void* row, std::int64_t stride, std::int64_t count);
};

/// Runs a whole backward pass with a variant's kernels; channels whose mode is over an interval get 0. Throws what
/// check_data throws.
void run_gather(const Problem& problem, const Arguments& arguments, const GatherKernels& kernels);

}  // namespace tmaops::ops::resample_backward
