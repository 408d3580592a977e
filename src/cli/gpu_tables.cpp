#include "cli/gpu_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "cli/result_table.hpp"
#include "cli/table.hpp"

namespace tmaops::cli {
namespace {

using bench::Row;

/// The cells that say which row it is; those of the case only in its first row.
std::vector<Cell> head(const Row& row, const Row* previous, Table& table) {
  const bool first = previous == nullptr || !bench::same_case(*previous, row);
  if (first && previous != nullptr) table.add_gap();
  std::vector<Cell> cells;
  for (const std::string& text : {row.info.op, row.info.name, row.info.dtype, row.temperature})
    cells.push_back({first ? text : ""});
  cells.push_back({name_text(row), row.implementation == "tmaops" ? Style::bold : Style::plain});
  return cells;
}

std::string bytes_text(double bytes) { return in_units(bytes / 1e3, {"KB", "MB", "GB"}); }

}  // namespace

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
  std::string reasons;
  for (const auto& [reason, count] : rows)
    reasons += (reasons.empty() ? "" : ", ") + fmt::format("{} in {}", reason, count);
  return fmt::format(
      "note: power or temperature held the SM clock down in {} of {} rows ({}): {:.0f} MHz, the highest {:.0f}", held,
      report.rows.size(), reasons, lowest, highest);
}

}  // namespace tmaops::cli
