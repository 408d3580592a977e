// Resampling of trajectories with irregular time stamps onto other times.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "tmaops/allocator.hpp"
#include "tmaops/export.hpp"
#include "tmaops/options.h"
#include "tmaops/plan.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops {

/// How the value of a target is found: between the two samples around it, or, from mean on, over its interval of time.
/// options.h says what each does, docs/resample.md has the formulas.
enum class Interpolation : std::uint8_t { TMAOPS_WORDS_interpolation(TMAOPS_ENUMERATOR) };

/// What a target before the first or after the last sample gets.
enum class Outside : std::uint8_t { TMAOPS_WORDS_outside(TMAOPS_ENUMERATOR) };

/// What two samples with the same time mean.
enum class Duplicates : std::uint8_t { TMAOPS_WORDS_duplicates(TMAOPS_ENUMERATOR) };

/// A run of neighbouring channels and how they are interpolated.
struct ChannelGroup {
  std::int64_t first = 0;
  std::int64_t count = 0;
  Interpolation interpolation = Interpolation::linear;
  friend bool operator==(const ChannelGroup&, const ChannelGroup&) = default;
};

/// Targets start, start + period, ..., count of them, the same for every trajectory. In the unit of the times: a double
/// in seconds beside float times, an int64 in nanoseconds beside int64 times; the other one is refused (bad_parameter)
/// unless it is 0. Target i is computed as start + i * period, not by adding up: the product is rounded, then the sum,
/// as numpy does it. The period is above 0.
struct UniformGrid {
  std::variant<double, std::int64_t> start = 0.0;
  std::variant<double, std::int64_t> period = 1.0;
  std::int64_t count = 0;
};

/// Where a resampling is wanted: at the times of an array, or on a uniform grid, where T is grid.count. Both convert.
struct ResampleTargets {
  // NOLINTBEGIN(google-explicit-constructor)
  template <std::convertible_to<ConstTensorView> Array>
  ResampleTargets(const Array& array) : times(array) {}
  ResampleTargets(const UniformGrid& uniform) : grid(uniform) {}
  ResampleTargets(const void* data, DType dtype, const Layout& layout, Device device = {})
      : times(data, dtype, layout, device) {}
  // NOLINTEND(google-explicit-constructor)

  ConstTensorView times{};
  std::optional<UniformGrid> grid{};
};

struct ResampleOptions {
  Interpolation interpolation = Interpolation::linear;
  /// Overrides the above per channel group; the groups must cover every channel once, in order. Empty: one group.
  std::span<const ChannelGroup> channel_groups{};
  Outside outside = Outside::hold;
  Duplicates duplicates = Duplicates::error;
  /// No interpolation across two samples further apart than this (as UniformGrid in the unit of the times; 0 or
  /// infinity: no limit). A target strictly inside such a gap is written as NaN and marked invalid; one over an
  /// interval only where its interval holds no data.
  std::variant<double, std::int64_t> max_gap = 0.0;
  /// Packed ragged source: values (sum of rows, D), source_times (sum of rows), offsets (B + 1) i64 on the host.
  std::span<const std::int64_t> source_offsets{};
  /// Packed ragged targets: target_times (sum), output (sum, D), offsets (B + 1) i64 on the host.
  std::span<const std::int64_t> target_offsets{};
  /// Optional (B, T) u8, or (sum) when ragged: 1 where the output is interpolated or held from data, 0 where it is NaN
  /// by policy (outside with Outside::nan, inside a gap, no samples).
  TensorView valid{};
  /// Instead of source_offsets or target_offsets: contiguous i64 tensors (B + 1) on the device of values. On a GPU
  /// nothing waits for them, and only variants that take everything do. Where one of the two does not begin at 0,
  /// decreases somewhere or does not end at the number of rows, every output is NaN and invalid, and every gradient is
  /// NaN. Runs of one plan that reads them on a GPU must follow one another.
  ConstTensorView source_offset_tensor{};
  ConstTensorView target_offset_tensor{};
  /// resample_backward() of min and max alone: the values of the forward pass, shape of grad_values. The gradient goes
  /// to the sample that was the extreme, the first of equal ones.
  ConstTensorView values{};
  std::string variant{};  // name of a variant; empty: the best one for the problem
  /// GPU: programmatic dependent launch. The kernel may start before the one in front of it on the stream has ended,
  /// and waits for it before it reads anything. Saves up to a microsecond between kernels; the CPU variants ignore it.
  bool dependent_launch = false;
  Stream stream = nullptr;
  /// GPU: gives the memory that packed rows and several channel groups need. A plan asks it with `stream` when it is
  /// made and gives the memory back when it is destroyed; runs on another stream must then come after that one.
  Allocator allocator{};
};

/// output[b, t, :] = values[b, :, :] at targets[b, t].
///
/// values (B, S, D) or packed (rows, D): f16, bf16, f32 or f64, any strides. source_times (B, S), (S) shared
/// by all trajectories, or packed (rows): f32, f64 or i64 nanoseconds; must increase along S. Targets as an array (B,
/// T), (T) shared, or packed; same dtype as source_times; need not be sorted. output (B, T, D) or packed; dtype of
/// values. Differences of times are taken exactly in the time's own type, then the weight is f32 (f64 when values are
/// f64); the result is rounded once. NaN in values goes only to the targets between the samples around it. Throws
/// Error: shape_mismatch, unsupported_dtype, dtype_mismatch, device_mismatch, bad_strides, overlap, null_pointer,
/// bad_parameter, times_not_sorted, times_not_finite, duplicate_times, empty_trajectory, target_outside,
/// time_precision, time_overflow, bad_quaternion, bad_offsets, unknown_variant, variant_refuses, out_of_memory, and the
/// device errors. On an error nothing useful is in the output. Times of a trajectory without targets are not looked at.
/// Modes over an interval run on the CPU alone: on a GPU every variant refuses them (variant_refuses).
/// On a GPU times and values are not looked at before the kernel runs, which cannot throw: a target outside with
/// Outside::error becomes NaN, and times that are not sorted or finite give unspecified values.
/// Every edge, and the formulas: docs/resample.md.
TMAOPS_API void resample(ConstTensorView values, ConstTensorView source_times, const ResampleTargets& targets,
                         TensorView output, const ResampleOptions& options = {});

/// The plan of a resampling: its checks and host work are done once. (The checks of the times themselves are part of
/// run().) The tensors must outlive it, the offsets need not, unless they lie on a GPU: each run reads those, and
/// rebind() takes them behind `valid`.
TMAOPS_API Plan plan_resample(ConstTensorView values, ConstTensorView source_times, const ResampleTargets& targets,
                              TensorView output, const ResampleOptions& options = {});

/// Bytes of device memory that resample() takes from its allocator for such a call, all pieces together; 0 on the CPU.
/// Errors as for resample().
TMAOPS_API std::size_t resample_workspace(ConstTensorView values, ConstTensorView source_times,
                                          const ResampleTargets& targets, TensorView output,
                                          const ResampleOptions& options = {});

/// Gradient of a resampling to the values, for linear, previous, next, nearest, mean, sum, lowpass, min and max (not
/// cubic, slerp, any or count): grad_values[b, s, :] = sum over targets of weight * grad_output[b, t, :]. Written, not
/// accumulated; f32 sums (f64 for f64 and over intervals), deterministic. grad_output like output, grad_values like
/// values; dtypes may also be f32. Errors as for resample.
TMAOPS_API void resample_backward(ConstTensorView source_times, const ResampleTargets& targets,
                                  ConstTensorView grad_output, TensorView grad_values,
                                  const ResampleOptions& options = {});

/// The plan of a backward pass.
TMAOPS_API Plan plan_resample_backward(ConstTensorView source_times, const ResampleTargets& targets,
                                       ConstTensorView grad_output, TensorView grad_values,
                                       const ResampleOptions& options = {});

/// Bytes of device memory that resample_backward() takes from its allocator, as for resample_workspace().
TMAOPS_API std::size_t resample_backward_workspace(ConstTensorView source_times, const ResampleTargets& targets,
                                                   ConstTensorView grad_output, TensorView grad_values,
                                                   const ResampleOptions& options = {});

/// What resample_violations() counts: the index of each counter. The first error of such data is thrown by the CPU
/// variants of resample(); on a GPU nobody looks.
enum class ResampleViolation : std::uint8_t {
  source_not_finite,  // stamps that are NaN or infinite
  source_not_sorted,  // stamps before the one in front of them
  source_duplicate,   // stamps at the time of the one in front of them, where Duplicates::error forbids it
  target_not_finite,
  target_outside,    // targets outside the samples, where Outside::error forbids it
  empty_trajectory,  // trajectories with targets and no samples, unless Outside::nan
  bad_offsets,       // offsets on a GPU that break a rule of theirs; nothing else is then counted
};
inline constexpr std::int64_t kResampleViolations = 7;

/// counts[k] = how often the times break rule k of ResampleViolation; counts (7) i64, contiguous, on the device of the
/// times, or (6) without the last. Times and options as for resample(); the policies and offsets are what is used of
/// the options. Trajectories without targets are not looked at. On a GPU the counting is enqueued on options.stream,
/// and nothing waits for it: the counts are there once the stream has come that far. Throws Error: shape_mismatch,
/// unsupported_dtype, dtype_mismatch, device_mismatch, bad_strides, overlap, null_pointer, bad_parameter, bad_offsets,
/// unknown_variant, variant_refuses, and the device errors.
TMAOPS_API void resample_violations(ConstTensorView source_times, const ResampleTargets& targets, TensorView counts,
                                    const ResampleOptions& options = {});

}  // namespace tmaops
