#include "tma/rules_table.hpp"

#include "tmaops/tensor_map.hpp"

namespace tmaops::tma {

std::string rules_table() {
  std::string table =
      "| rule | severity | applies to | the driver | what it says | source |\n"
      "|---|---|---|---|---|---|\n";
  for (const Rule& rule : rules())
    table += "| `" + std::string(rule.id) + "` | " + std::string(to_string(rule.severity)) + " | " +
             std::string(to_string(rule.scope)) + " | " + std::string(to_string(rule.driver)) + " | " +
             std::string(rule.text) + " | " + std::string(rule.source) + " |\n";
  return table;
}

}  // namespace tmaops::tma
