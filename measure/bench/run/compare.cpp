#include "bench/run/compare.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "bench/measure/counters.hpp"
#include "core/enum_name.hpp"

namespace tmaops::bench {
namespace {

using Json = nlohmann::ordered_json;

RowName name_of(const Json& row) {
  return {row["operator"],
          row["case"],
          row["dtype"],
          row["device"],
          row["temperature"].is_null() ? "" : row["temperature"].get<std::string>(),
          row["implementation"]};
}

Kind kind_of(const Json& row) {
  return row["kind"] == "peer" ? Kind::peer : (row["kind"] == "ceiling" ? Kind::ceiling : Kind::variant);
}

std::map<RowName, const Json*> rows_by_name(const Json& results, const char* with) {
  std::map<RowName, const Json*> found;
  for (const Json& row : results["rows"])
    if (row.contains(with) && row[with].is_object()) found[name_of(row)] = &row;
  return found;
}

/// 10th and 90th percentile of a counter; its median where the file does not hold them.
std::pair<double, double> spread_of(const Json& counters, const char* counter) {
  if (counters.contains("p10_p90") && counters["p10_p90"].contains(counter)) {
    const Json& spread = counters["p10_p90"][counter];
    return {spread[0].get<double>(), spread[1].get<double>()};
  }
  return {counters[counter].get<double>(), counters[counter].get<double>()};
}

}  // namespace

std::string_view to_string(Change change) {
  constexpr std::string_view names[] = {"faster", "slower", "same", "missing", "new"};
  return enum_name(names, change);
}

std::vector<Difference> compare(const Json& now, const Json& base) {
  auto before = rows_by_name(base, "us");
  std::vector<Difference> differences;
  for (const Json& row : now["rows"]) {
    if (!row["us"].is_object()) continue;
    const Json& us = row["us"];
    Difference one{.row = name_of(row), .kind = kind_of(row), .us = us["median"]};
    if (const auto found = before.find(one.row); found == before.end()) {
      one.change = Change::added;
    } else {
      const Json& base_us = (*found->second)["us"];
      one.base_us = base_us["median"];
      if (us["p90"].get<double>() < base_us["p10"].get<double>()) one.change = Change::faster;
      if (us["p10"].get<double>() > base_us["p90"].get<double>()) one.change = Change::slower;
      before.erase(found);
    }
    differences.push_back(one);
  }
  for (const auto& [name, row] : before)
    differences.push_back(
        {.row = name, .kind = kind_of(*row), .change = Change::missing, .base_us = (*row)["us"]["median"]});
  return differences;
}

std::vector<CounterDifference> compare_counters(const Json& now, const Json& base) {
  const auto before = rows_by_name(base, "counters");
  std::vector<CounterDifference> differences;
  for (const Json& row : now["rows"]) {
    const auto found = before.find(name_of(row));
    if (found == before.end() || !row.contains("counters") || !row["counters"].is_object()) continue;
    const Json& after = row["counters"];
    const Json& first = (*found->second)["counters"];
    for (const CounterInfo& info : kCounters) {
      const char* counter = info.name;
      const auto counted = [&](const Json& all) { return all.contains(counter) && all[counter].is_number(); };
      if (!counted(after) || !counted(first)) continue;
      const auto [low, high] = spread_of(after, counter);
      const auto [base_low, base_high] = spread_of(first, counter);
      if (&info != &kCounters.front() && low <= base_high && base_low <= high) continue;
      differences.push_back({name_of(row), counter, first[counter], after[counter]});
    }
  }
  return differences;
}

std::vector<Difference> regressions(const std::vector<Difference>& differences, double allowed) {
  std::vector<Difference> found;
  std::ranges::copy_if(differences, std::back_inserter(found), [&](const Difference& one) {
    return one.counts() && one.change == Change::slower && one.ratio() > 1 + allowed;
  });
  return found;
}

}  // namespace tmaops::bench
