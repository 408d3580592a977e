// `tmaops bench --compare`: what got faster or slower than in an earlier result file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/console.hpp"

namespace tmaops::cli {

struct Globals;

/// 0.05 for "5%" and for "0.05". A bare 5 was hardly meant to be 500 %, nor a bare 1 to be 100 %: Error usage.
double parse_share(const std::string& text);

/// A result file. Throws Error cannot_read and bad_format.
nlohmann::ordered_json read_results(const std::string& path);

/// Prints what changed in times and counters to the stream. Throws Error slower_than_base where that is more than
/// `fail_if_slower` allows, and Error usage where nothing can be compared; without a share nothing fails.
void report_changes(const nlohmann::ordered_json& now, const nlohmann::ordered_json& base, const std::string& base_file,
                    const std::string& fail_if_slower, const Globals& globals, Stream stream);

}  // namespace tmaops::cli
