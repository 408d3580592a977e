// A resampling's options: their names, their values as numbers, and their checks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "core/checks.hpp"
#include "tmaops/resample.hpp"

namespace tmaops::ops::resample {

/// As in configurations and on the command line; empty for a value that is none of them.
std::string_view name_of(Interpolation interpolation);
std::string_view name_of(Outside outside);

double as_double(const std::variant<double, std::int64_t>& number);
/// Whole nanoseconds; a double only when it is 0, which a default-made grid has.
std::int64_t as_nanoseconds(const std::variant<double, std::int64_t>& number);

/// Offsets of packed rows: B + 1 numbers from 0 up to `rows`, never decreasing.
void check_offsets(const ArgumentChecks& checks, std::string_view argument, std::span<const std::int64_t> offsets,
                   std::int64_t rows);
/// The groups, which cover every channel once and in order; one of all channels where the options name none.
std::vector<ChannelGroup> checked_groups(const ArgumentChecks& checks, std::int64_t channels,
                                         const ResampleOptions& options);
void check_policies(const ArgumentChecks& checks, DType times, const ResampleOptions& options);
void check_grid(const ArgumentChecks& checks, DType times, const UniformGrid& grid);

}  // namespace tmaops::ops::resample
