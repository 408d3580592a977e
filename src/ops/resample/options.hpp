// A resampling's options: their names, their values as numbers, and their checks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "core/checks.hpp"
#include "tmaops/resample.hpp"

namespace tmaops::ops::resample {

/// As in configurations and on the command line; "?" for a value that is none of them.
std::string_view name_of(Interpolation interpolation);
std::string_view name_of(Outside outside);
std::optional<Interpolation> parse_interpolation(std::string_view name);

/// Whether a mode has a derivative to the values that resample_backward() computes.
constexpr bool has_gradient(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::cubic:
    case Interpolation::slerp:
    case Interpolation::any:
    case Interpolation::count:
      return false;
    case Interpolation::linear:
    case Interpolation::previous:
    case Interpolation::next:
    case Interpolation::nearest:
    case Interpolation::mean:
    case Interpolation::sum:
    case Interpolation::min:
    case Interpolation::max:
    case Interpolation::lowpass:
      return true;
  }
  return false;
}
/// Whether a mode looks at all samples in an interval of time, not at those around the target alone.
constexpr bool over_interval(Interpolation interpolation) { return interpolation > Interpolation::slerp; }

double as_double(const std::variant<double, std::int64_t>& number);
/// Whole nanoseconds; a double only when it is 0, which a default-made grid has.
std::int64_t as_nanoseconds(const std::variant<double, std::int64_t>& number);

/// The offsets of packed rows as a call gives them.
struct PackedOffsets {
  bool given = false;
  bool on_device = false;
  std::int64_t trajectories = 0;
  std::span<const std::int64_t> known{};  // B + 1, unless they are on the device
};
/// From an option's list and its tensor, which check_offset_tensor() has seen.
PackedOffsets packed_offsets(std::span<const std::int64_t> list, const ConstTensorView& tensor);
inline PackedOffsets source_offsets_of(const ResampleOptions& options) {
  return packed_offsets(options.source_offsets, options.source_offset_tensor);
}
inline PackedOffsets target_offsets_of(const ResampleOptions& options) {
  return packed_offsets(options.target_offsets, options.target_offset_tensor);
}
/// What can be said about the tensors of offsets without reading them. `rows` is a tensor of the call.
void check_offset_tensors(const ArgumentChecks& checks, const ResampleOptions& options, std::string_view rows_name,
                          const ConstTensorView& rows);
/// Offsets of packed rows: B + 1 numbers from 0 up to `rows`, never decreasing.
void check_offsets(const ArgumentChecks& checks, std::string_view argument, const PackedOffsets& offsets,
                   std::int64_t rows);
/// The groups, which cover every channel once and in order; one of all channels where the options name none.
std::vector<ChannelGroup> checked_groups(const ArgumentChecks& checks, std::int64_t channels,
                                         const ResampleOptions& options);
void check_policies(const ArgumentChecks& checks, DType times, const ResampleOptions& options);
void check_grid(const ArgumentChecks& checks, DType times, const UniformGrid& grid);

}  // namespace tmaops::ops::resample
