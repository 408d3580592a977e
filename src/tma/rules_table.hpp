// The rules as the table of docs/tma.md.
#pragma once

#include <string>

namespace tmaops::tma {

/// Markdown, one row per rule, in the order of rules.def.
std::string rules_table();

}  // namespace tmaops::tma
