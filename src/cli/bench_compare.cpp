#include "cli/bench_compare.hpp"

#include <algorithm>

#include "bench/run/compare.hpp"
#include "cli/commands.hpp"
#include "cli/result_table.hpp"
#include "core/display.hpp"
#include "core/settings.hpp"
#include "io/file_error.hpp"
#include "io/input_file.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {

double parse_share(const std::string& text) {
  const bool percent = text.ends_with('%');
  const std::string digits = text.substr(0, text.size() - (percent ? 1 : 0));
  const auto value = parse_number(digits);
  if (!value || !(*value >= 0 && *value <= 1e6) || (!percent && *value >= 1))
    throw Error(ErrorCode::usage, {.where = "--fail-if-slower",
                                   .got = "'" + display_text(text) + "'",
                                   .needed = "a share: 5%, or as a part of one 0.05",
                                   .mend = value && *value >= 1 ? "Write " + digits + "% for that many percent." : ""});
  return percent ? *value / 100 : *value;
}

nlohmann::ordered_json read_results(const std::string& path) {
  const io::Bytes file = io::read_file(path);
  auto document = nlohmann::ordered_json::parse(file.text(), nullptr, false);
  if (document.is_discarded())
    throw Error(ErrorCode::bad_format,
                {.where = io::display(path), .got = "no JSON", .needed = "a result file of `tmaops bench`"});
  bench::check_schema(document, io::display(path));
  return document;
}

void report_changes(const nlohmann::ordered_json& now, const nlohmann::ordered_json& base, const std::string& base_file,
                    const std::string& fail_if_slower, const Globals& globals, Stream stream) {
  const auto differences = bench::compare(now, base);
  const bool color = use_color(globals, stream);
  std::string table = "\n" + compare_table(differences, color, line_width(stream));
  if (const auto counters = bench::compare_counters(now, base); !counters.empty())
    table += "\n" + compare_counters_table(counters, color, line_width(stream));
  if (stream == Stream::data)
    print_data(table);
  else if (!globals.quiet)
    print_styled(table);
  if (base["machine"] != now["machine"])
    print_note(globals,
               "note: " + io::display(base_file) + " was measured on another machine or with other settings of it");
  if (fail_if_slower.empty()) return;
  if (std::ranges::none_of(differences, &bench::Difference::counts))
    throw Error(ErrorCode::usage, {.where = "--fail-if-slower",
                                   .got = "no variant that both this run and " + io::display(base_file) + " have timed",
                                   .needed = "a base of the same problems, types, device and temperature"});
  const auto slower = bench::regressions(differences, parse_share(fail_if_slower));
  if (slower.empty()) return;
  std::string names;
  for (const bench::Difference& one : slower)
    names += (names.empty() ? "" : "; ") + one.row.op + " " + one.row.name + " " + one.row.dtype + " " +
             one.row.implementation;
  throw Error(
      ErrorCode::slower_than_base,
      {.where = io::display(base_file), .got = names, .needed = "no variant slower by more than " + fail_if_slower});
}

}  // namespace tmaops::cli
