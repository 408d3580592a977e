// Where the driver's answer is known to differ from the documented rules.
#pragma once

#include <span>
#include <string_view>

#include "tma/rules.hpp"

namespace tmaops::probe {

struct Quirk {
  std::string_view id;
  tma::Driver driver;     // what it does there: refuses what the rules allow, or accepts what they forbid
  std::string_view text;  // when
};

/// Every quirk, in the order of quirks.def.
std::span<const Quirk> quirks();

/// The quirk that explains why the driver's answer to this specification differs from that of the rules; nullptr when
/// there is none. `found` has every rule that the specification breaks. Each of them must have a quirk, and the last
/// one is returned.
const Quirk* quirk_of(const tma::TensorMapSpec& spec, const tma::Findings& found, bool accepted);

}  // namespace tmaops::probe
