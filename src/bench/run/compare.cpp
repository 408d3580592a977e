#include "bench/run/compare.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace tmaops::bench {
namespace {

using Json = nlohmann::ordered_json;
using Key = std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>;

Key key_of(const Row& row) {
  return {row.info.op, row.info.name, row.info.dtype, to_string(row.info.device), row.temperature, row.implementation};
}

Key key_of(const Json& row) {
  return {row["operator"],
          row["case"],
          row["dtype"],
          row["device"],
          row["temperature"].is_null() ? "" : row["temperature"].get<std::string>(),
          row["implementation"]};
}

}  // namespace

std::string_view to_string(Change change) {
  switch (change) {
    case Change::faster:
      return "faster";
    case Change::slower:
      return "slower";
    case Change::same:
      return "same";
    case Change::missing:
      return "missing";
    case Change::added:
      break;
  }
  return "new";
}

std::vector<Difference> compare(const Report& report, const Json& base) {
  std::map<Key, const Json*> before;
  for (const Json& row : base["rows"])
    if (row["us"].is_object()) before[key_of(row)] = &row;

  std::vector<Difference> differences;
  for (const Row& row : report.rows) {
    if (!row.us) continue;
    Difference one{.op = row.info.op,
                   .name = row.info.name,
                   .implementation = row.implementation,
                   .kind = row.kind,
                   .dtype = row.info.dtype,
                   .temperature = row.temperature,
                   .us = row.us->median};
    const auto found = before.find(key_of(row));
    if (found == before.end()) {
      one.change = Change::added;
    } else {
      const Json& us = (*found->second)["us"];
      one.base_us = us["median"];
      if (row.us->p90 < us["p10"].get<double>()) one.change = Change::faster;
      if (row.us->p10 > us["p90"].get<double>()) one.change = Change::slower;
      before.erase(found);
    }
    differences.push_back(one);
  }
  for (const auto& [key, row] : before) {
    const auto& [op, name, dtype, device, temperature, implementation] = key;
    const std::string kind = (*row)["kind"];
    differences.push_back({op, name, implementation,
                           kind == "peer" ? Kind::peer : (kind == "ceiling" ? Kind::ceiling : Kind::variant), dtype,
                           temperature, Change::missing, (*row)["us"]["median"], 0});
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
