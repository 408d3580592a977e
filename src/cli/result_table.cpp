#include "cli/result_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/table.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

using bench::Row;

std::string time_text(double us) { return in_units(us, {"us", "ms", "s"}); }

std::string spread_text(const Row& row) {
  const double low = row.us->p10 / row.us->median - 1;
  const double high = row.us->p90 / row.us->median - 1;
  return fmt::format("{:+.0f}/{:+.0f} %", low * 100, high * 100);
}

/// Empty when the whole outputs were compared.
std::string compared_text(const Row& row) {
  return row.error.compared < 1 ? fmt::format("{:.2g} %", 100 * row.error.compared) : "";
}

/// The device of a row, where the report has rows of both kinds.
std::string device_text(const bench::Report& report, const Row& row) {
  const auto other = [&](const Row& one) { return one.info.device.type != row.info.device.type; };
  return std::ranges::any_of(report.rows, other) ? to_string(row.info.device) : "";
}

}  // namespace

std::string three_digits(double value) {
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

std::string in_units(double value, std::initializer_list<std::string_view> units) {
  const std::string_view* unit = units.begin();
  constexpr double kRoundsTo1000 = 999.5;
  for (; value >= kRoundsTo1000 && unit + 1 != units.end(); ++unit) value /= 1000;
  return three_digits(value) + " " + std::string(*unit);
}

std::string name_text(const Row& row) {
  return row.implementation == "tmaops" ? "tmaops (" + row.selected + ")" : row.implementation;
}

std::string times_table(const bench::Report& report, bool color, std::size_t width) {
  Table table(
      "operator|case|dtype|device|implementation|>median|>p10/p90|>GB/s|>of copy|>of peak|>TFLOP/s|"
      ">vs tmaops|>host us|>SM MHz|>error|>compared|inputs");
  const Row* previous = nullptr;
  for (const Row& row : report.rows) {
    if (!row.us) continue;
    const bool first = previous == nullptr || !bench::same_case(*previous, row);
    if (first && previous != nullptr) table.add_gap();
    const auto of_copy = bench::of_copy(report, row);
    const Row* ours = bench::row_beside(report, row, "tmaops");
    const bool ceiling = row.kind == bench::Kind::ceiling;
    std::vector<Cell> cells;
    for (const std::string& text : {row.info.op, row.info.name, row.info.dtype, device_text(report, row)})
      cells.push_back({first ? text : ""});
    cells.push_back({name_text(row), row.implementation == "tmaops" ? Style::bold : Style::plain});
    cells.push_back({time_text(row.us->median)});
    cells.push_back({spread_text(row), Style::faint});
    cells.push_back({fmt::format("{:.1f}", row.gbps())});
    cells.push_back({of_copy ? fmt::format("{:.0f} %", 100 * *of_copy) : ""});
    cells.push_back({row.of_peak() ? fmt::format("{:.1f} %", 100 * *row.of_peak()) : ""});
    cells.push_back({ceiling ? "" : fmt::format("{:.3f}", row.tflops())});
    cells.push_back({ours != nullptr && ours != &row ? fmt::format("{:.2f}x", row.us->median / ours->us->median) : ""});
    cells.push_back({row.host ? fmt::format("{:.2f}", row.host->call_us) : "", Style::faint});
    cells.push_back({row.clocks ? fmt::format("{:.0f}", row.clocks->sm_mhz) : "", Style::faint});
    cells.push_back({ceiling ? "" : fmt::format("{:.1e}", row.error.relative), Style::faint});
    cells.push_back({compared_text(row), Style::faint});
    cells.push_back({row.temperature});
    table.add(std::move(cells));
    previous = &row;
  }
  for (const Row& row : report.failed)
    table.add({{row.info.op}, {row.info.name}, {row.info.dtype}, {name_text(row)}, {"WRONG", Style::bad}});
  return table.text(color, width);
}

std::string verify_table(const bench::Report& report, bool color, std::size_t width) {
  Table table("operator|case|dtype|device|implementation|>relative|>max|>compared|result");
  const auto add = [&](const Row& row, bool ok) {
    table.add({{row.info.op},
               {row.info.name},
               {row.info.dtype},
               {device_text(report, row)},
               {name_text(row)},
               {fmt::format("{:.1e}", row.error.relative)},
               {fmt::format("{:.1e}", row.error.max)},
               {compared_text(row)},
               {ok ? "ok" : "WRONG", ok ? Style::good : Style::bad}});
  };
  for (const Row& row : report.rows) add(row, true);
  for (const Row& row : report.failed) add(row, false);
  return table.text(color, width);
}

std::string compare_table(const std::vector<bench::Difference>& differences, bool color, std::size_t width) {
  Table table("operator|case|dtype|implementation|>base|>now|>change|verdict|inputs");
  for (const bench::Difference& one : differences) {
    const Style style = one.change == bench::Change::slower   ? Style::bad
                        : one.change == bench::Change::faster ? Style::good
                                                              : Style::plain;
    table.add({{one.row.op},
               {one.row.name},
               {one.row.dtype},
               {one.row.implementation},
               {one.base_us > 0 ? time_text(one.base_us) : ""},
               {one.us > 0 ? time_text(one.us) : ""},
               {one.base_us > 0 && one.us > 0 ? fmt::format("{:+.1f} %", (one.ratio() - 1) * 100) : ""},
               {std::string(to_string(one.change)), style},
               {one.row.temperature}});
  }
  return table.text(color, width);
}

std::string compare_counters_table(const std::vector<bench::CounterDifference>& differences, bool color,
                                   std::size_t width) {
  Table table("operator|case|dtype|inputs|implementation|counter|>base|>now|>change");
  const bench::CounterDifference* previous = nullptr;
  for (const bench::CounterDifference& one : differences) {
    const bool first = previous == nullptr || previous->row != one.row;
    if (first && previous != nullptr) table.add_gap();
    std::vector<Cell> cells;
    for (const std::string* text :
         {&one.row.op, &one.row.name, &one.row.dtype, &one.row.temperature, &one.row.implementation})
      cells.push_back({first ? *text : ""});
    for (const std::string& text : {one.counter, fmt::format("{:.6g}", one.base), fmt::format("{:.6g}", one.now),
                                    one.base > 0 ? fmt::format("{:+.1f} %", (one.now / one.base - 1) * 100) : ""})
      cells.push_back({text});
    table.add(std::move(cells));
    previous = &one;
  }
  return previous == nullptr ? "" : table.text(color, width);
}

std::string refusal_line(const bench::Refusal& refusal) {
  return refusal.info.op + " " + refusal.info.name + " " + refusal.info.dtype + ": " + refusal.implementation +
         " is left out: " + refusal.reason;
}

std::string failure_text(const bench::Row& row, std::uint64_t seed) {
  const Error error(ErrorCode::verification_failed,
                    {.where = row.info.op + " " + row.info.name + " " + row.info.dtype + ": " + name_text(row),
                     .got = row.error.problem,
                     .needed = "the reference's result; repeat with: tmaops verify -p '" + row.info.problem +
                               "' --seed " + std::to_string(seed)});
  return std::string("tmaops: ") + error.what();
}

}  // namespace tmaops::cli
