// The options of `tmaops resample` that are checked before any file is opened.
#pragma once

#include <string>

#include "cli/resample.hpp"
#include "cli/resample_table.hpp"
#include "io/recording.hpp"

namespace tmaops::cli {

struct Policies {
  ResamplePolicies operation{};
  std::string outside{};
  bool drop_outside = false;
  bool drop_gaps = false;

  /// Targets outside the recording get a value.
  bool fills_outside() const { return outside == "hold" || outside == "extrapolate"; }
};

/// Throws Error usage, bad_parameter.
Policies make_policies(const ResampleCommand& command, io::FileFormat to);
/// The formats that the options or extensions name. Throws Error usage.
io::FileFormat input_format(const ResampleCommand& command);
io::FileFormat output_format(const ResampleCommand& command);
/// Refuses options without effect, and unknown units. Throws Error usage.
void check_options(const ResampleCommand& command, io::FileFormat from, io::FileFormat to);

}  // namespace tmaops::cli
