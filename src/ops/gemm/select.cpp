// Which variant runs, and with which tile. On the CPU the first of the list that takes the problem; on a GPU what was
// measured to be fastest (tuning.hpp), else what the model expects to be (estimate.hpp).
#include "ops/gemm/estimate.hpp"
#include "ops/gemm/problem.hpp"
#include "ops/gemm/tuning.hpp"

namespace tmaops::ops::gemm {

std::vector<Choice> every_choice(const Problem& problem, const DeviceInfo& device) {
  std::vector<Choice> all;
  for (const auto& variant : variants())
    if (try_variant(variant, problem, device))
      for (const Config& config : configs_of(variant, problem, device)) all.push_back({&variant, config});
  return all;
}

namespace {

/// What the table says, where that can run: an address may lack the alignment of the day of the measurement.
std::optional<Choice> measured(const TuningTable& table, const Problem& problem, const DeviceInfo& device) {
  const Problem row_major = row_major_form(problem);
  const TunedChoice* tuned = table.find(device.name, tuned_product(row_major), tuned_types(row_major));
  if (tuned == nullptr) return std::nullopt;
  for (const Choice& choice : every_choice(problem, device))
    if (choice.name() == tuned->choice) return choice;
  return std::nullopt;
}

}  // namespace

Choice select(const Problem& problem, const DeviceInfo& device, std::string_view name, const std::string& tuning) {
  const Problem row_major = row_major_form(problem);
  const auto cost = [&](const auto&, const Config& config) { return estimate(config, row_major, device); };
  if (!name.empty()) return named_choice(variants(), name, problem, device, cost);
  if (device.device.type == DeviceType::cuda)
    if (const auto table = tuning_table(tuning))
      if (const auto choice = measured(*table, problem, device)) return *choice;
  // On the CPU the list is best first at every size: oneDNN runs on our threads, so it has no start-up cost that would
  // make the blocked kernel win on small problems.
  return best_choice(variants(), problem, device, cost);
}

}  // namespace tmaops::ops::gemm
