// Where the driver's answer is known to differ from the documented rules.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tma/rules.hpp"

namespace tmaops::tma {

struct Quirk {
  std::string_view id;
  Driver driver;          // what it does there: refuses what the rules allow, or accepts what they forbid
  std::string_view text;  // when
};

/// Every quirk, in the order of quirks.def.
std::span<const Quirk> quirks();

/// The quirk that explains why the driver's answer to this specification differs from the rules' (`found`: all that it
/// breaks); nullptr when none does. Where several rules are broken each must have its quirk, and the last is returned.
const Quirk* quirk_of(const TensorMapSpec& spec, const Findings& found, bool accepted);

/// The quirks as the table of docs/tma.md: Markdown, one row each.
std::string quirks_table();

}  // namespace tmaops::tma
