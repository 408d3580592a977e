// What `tmaops probe` found, as tables.
#pragma once

#include <string>

#include "probe/report.hpp"

namespace tmaops::cli {

std::string probe_text(const probe::Report& report, bool color);

}  // namespace tmaops::cli
