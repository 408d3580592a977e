// Finds a specification near a broken one that keeps the rules.
#pragma once

#include <optional>

#include "tma/rules.hpp"

namespace tmaops::tma {

/// The smallest set of these changes that gives a valid specification: reversed order of the dimensions, a stride list
/// of the right length, a padded pitch, a swizzle wide enough for the row, a box split into several loads, an inner box
/// rounded up to 16 bytes, no swizzle, other element strides, fill or address. Nothing when no set does.
std::optional<Proposal> propose(const TensorMapSpec& spec, const Findings& found, int compute_capability);

}  // namespace tmaops::tma
