#include "commands/result_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/spelling.hpp"
#include "offers/table.hpp"
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

/// The cells that say which row it is; those of the case only in its first row, which stands apart from the case
/// before.
std::vector<Cell> head(const Row& row, std::initializer_list<std::string> of_case, const Row* previous, Table& table) {
  const bool first = previous == nullptr || !bench::same_case(*previous, row);
  if (first && previous != nullptr) table.add_gap();
  std::vector<Cell> cells;
  for (const std::string& text : of_case) cells.push_back({first ? text : ""});
  cells.push_back({name_text(row), row.implementation == "tmaops" ? Style::bold : Style::plain});
  return cells;
}

std::vector<Cell> head(const Row& row, const Row* previous, Table& table) {
  return head(row, {row.info.op, row.info.name, row.info.dtype, row.temperature}, previous, table);
}

std::string bytes_text(double bytes) { return in_units(bytes / 1e3, {"KB", "MB", "GB"}); }

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
      ">vs tmaops|>host us|>fresh us|>SM MHz|>error|>compared|inputs");
  const Row* previous = nullptr;
  for (const Row& row : report.rows) {
    if (!row.us) continue;
    const auto of_copy = bench::of_copy(report, row);
    const Row* ours = bench::row_beside(report, row, "tmaops");
    const bool ceiling = row.kind == bench::Kind::ceiling;
    std::vector<Cell> cells =
        head(row, {row.info.op, row.info.name, row.info.dtype, device_text(report, row)}, previous, table);
    cells.push_back({time_text(row.us->median)});
    cells.push_back({spread_text(row), Style::faint});
    cells.push_back({fmt::format("{:.1f}", row.gbps())});
    cells.push_back({of_copy ? fmt::format("{:.0f} %", 100 * *of_copy) : ""});
    cells.push_back({row.of_peak() ? fmt::format("{:.1f} %", 100 * *row.of_peak()) : ""});
    cells.push_back({ceiling ? "" : fmt::format("{:.3f}", row.tflops())});
    cells.push_back({ours != nullptr && ours != &row ? fmt::format("{:.2f}x", row.us->median / ours->us->median) : ""});
    cells.push_back({row.host ? fmt::format("{:.2f}", row.host->call_us) : "", Style::faint});
    cells.push_back({row.host && row.host->fresh_us ? fmt::format("{:.2f}", *row.host->fresh_us) : "", Style::faint});
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

std::string loads_table(const bench::Report& report, bool color, std::size_t width) {
  Table table(
      "operator|case|dtype|inputs|implementation|>us avg|>min|>max|>std|>GB/s|>G loads/s|"
      ">ns/load|>of copy|>of peak|>vs manual|>cycles/block avg|>min|>max");
  const Row* previous = nullptr;
  for (const Row& row : report.rows) {
    if (!row.us || !row.loads || row.kind == bench::Kind::ceiling) continue;
    std::vector<Cell> cells = head(row, previous, table);
    const auto of_copy = bench::of_copy(report, row);
    const auto vs_manual = bench::vs_manual(report, row);
    for (const double us : {row.us->mean, row.us->min, row.us->max, row.us->deviation})
      cells.push_back({fmt::format("{:.{}f}", us, us < 100 ? 3 : 1)});
    cells.push_back({fmt::format("{:.1f}", row.gbps())});
    cells.push_back({fmt::format("{:.3f}", row.loads->count / row.us->median * 1e-3)});
    cells.push_back({fmt::format("{:.4f}", row.us->median * 1e3 / row.loads->count)});
    cells.push_back({of_copy ? fmt::format("{:.0f} %", 100 * *of_copy) : ""});
    cells.push_back({row.of_peak() ? fmt::format("{:.1f} %", 100 * *row.of_peak()) : ""});
    cells.push_back({vs_manual ? fmt::format("{:.2f}x", *vs_manual) : ""});
    if (const auto& cycles = row.loads->cycles)
      for (const double count : {cycles->mean, cycles->min, cycles->max})
        cells.push_back({fmt::format("{:.0f}", count)});
    table.add(std::move(cells));
    previous = &row;
  }
  return previous == nullptr ? "" : table.text(color, width);
}

std::string counters_table(const bench::Report& report, bool color, std::size_t width) {
  Table table(
      "operator|case|dtype|inputs|implementation|>kernels|>GPU us|>SM MHz|>DRAM|>p10 - p90|"
      ">back to back|>L2|>L1|>issue|>tensor|>read|>written|>to SMs|>bank conflicts|warps wait for");
  const Row* previous = nullptr;
  for (const Row& row : report.rows) {
    if (!row.counters) continue;
    std::vector<Cell> cells = head(row, previous, table);
    const bench::Counters& counters = *row.counters;
    const auto value = [&](std::string_view name) { return counters.values[bench::counter_index(name)]; };
    const auto share = [&](std::string_view what) {
      return fmt::format("{:.0f} %", value(std::string(what) + ".avg.pct_of_peak_sustained_elapsed"));
    };
    const std::size_t dram = bench::counter_index("dram__throughput.avg.pct_of_peak_sustained_elapsed");
    cells.push_back({std::to_string(counters.kernels)});
    cells.push_back({fmt::format("{:.2f}", value("gpu__time_duration.sum") * 1e-3)});
    cells.push_back({fmt::format("{:.0f}", value("sm__cycles_elapsed.avg.per_second") * 1e-6)});
    cells.push_back({fmt::format("{:.1f} %", counters.values[dram])});
    cells.push_back({fmt::format("{:.1f} - {:.1f}", counters.p10[dram], counters.p90[dram])});
    cells.push_back({counters.back_to_back ? fmt::format("{:.1f} %", counters.back_to_back->values[dram]) : ""});
    for (const char* unit :
         {"lts__throughput", "l1tex__throughput", "smsp__issue_active", "sm__pipe_tensor_cycles_active"})
      cells.push_back({share(unit)});
    for (const char* bytes : {"dram__bytes_read.sum", "dram__bytes_write.sum", "l1tex__m_xbar2l1tex_read_bytes.sum"})
      cells.push_back({bytes_text(value(bytes))});
    cells.push_back({fmt::format("{:.0f}", value("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"))});
    const bench::LongestWait wait = bench::longest_wait(counters.values);
    cells.push_back({wait.reason.empty() ? "" : fmt::format("{} {:.1f}", wait.reason, wait.warps)});
    table.add(std::move(cells));
    previous = &row;
  }
  return previous == nullptr ? "" : table.text(color, width);
}

std::string held_clocks_note(const bench::Report& report) {
  std::map<std::string, int> rows;
  double lowest = 0;
  double highest = 0;
  int held = 0;
  for (const Row& row : report.rows) {
    if (!row.clocks) continue;
    highest = std::max(highest, row.clocks->sm_mhz);
    bool any = false;
    for (const auto& [reason, share] : row.clocks->held) {
      if (!bench::is_power_or_thermal(reason)) continue;
      ++rows[reason];
      any = true;
    }
    if (!any) continue;
    lowest = held == 0 ? row.clocks->sm_mhz : std::min(lowest, row.clocks->sm_mhz);
    ++held;
  }
  if (held == 0) return {};
  const std::string reasons =
      joined(rows, ", ", [](const auto& row) { return fmt::format("{} in {}", row.first, row.second); });
  return fmt::format(
      "note: power or temperature held the SM clock down in {} of {} rows ({}): {:.0f} MHz, the highest {:.0f}", held,
      report.rows.size(), reasons, lowest, highest);
}

std::string verify_table(const bench::Report& report, bool color, std::size_t width) {
  Table table("operator|case|dtype|device|implementation|>relative|>max|>compared|result");
  const auto add = [&](const Row& row, bool ok) {
    const auto text = [&](double error) { return row.error.compared > 0 ? fmt::format("{:.1e}", error) : ""; };
    table.add({{row.info.op},
               {row.info.name},
               {row.info.dtype},
               {device_text(report, row)},
               {name_text(row)},
               {text(row.error.relative)},
               {text(row.error.max)},
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
