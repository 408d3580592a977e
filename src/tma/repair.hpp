// Looking for a specification near a broken one that keeps the rules.
#pragma once

#include <optional>

#include "tma/rules.hpp"

namespace tmaops::tma {

/// The repair that changes the fewest things: reversed order of the dimensions, a stride list of the right length, a
/// padded pitch, a swizzle wide enough for the row, a box split into several loads, an inner box rounded up to 16
/// bytes, no swizzle, and small ones (element strides, fill, address). Nothing when none of them, alone or together,
/// helps.
std::optional<Proposal> propose(const TensorMapSpec& spec, const Findings& found, int compute_capability);

}  // namespace tmaops::tma
