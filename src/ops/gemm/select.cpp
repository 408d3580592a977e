// Which variant runs, and with which tile. On the CPU the first of the list that takes it, but for a few rows; on a GPU
// what was measured to be fastest (tuning.hpp, measured.inc), else what the model expects to be (estimate.hpp).
#include <algorithm>
#include <iterator>

#include "ops/gemm/estimate.hpp"
#include "ops/gemm/problem.hpp"
#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/tuning.hpp"

namespace tmaops::ops::gemm {

std::vector<Choice> every_choice(const Problem& problem, const DeviceInfo& device) {
  std::vector<Choice> all;
  for (const auto& variant : variants())
    if (!variant.attributes.study && try_variant(variant, problem, device))
      for (const Config& config : configs_of(variant, problem, device)) all.push_back({&variant, config});
  return all;
}

namespace {

struct MeasuredChoice {
  std::string_view choice;        // without wgmma_
  std::string_view products[24];  // "" behind the last
};
constexpr MeasuredChoice kMeasured[] = {
#include "ops/gemm/measured.inc"
};

/// What ships with the library for an H100 and an H200: the fastest on an H200, inputs in the L2. Empty for another
/// device, and where the product was not measured or the costs choose as well.
std::string measured_choice(const DeviceInfo& device, std::string_view product) {
  constexpr int kMultiprocessors = 132;  // of the SXM module
  const bool known = device.name.starts_with("NVIDIA H200") || device.name.starts_with("NVIDIA H100");
  if (!known || device.multiprocessors != kMultiprocessors) return {};
  for (const auto& [choice, products] : kMeasured)
    for (const auto* one = products; one != std::end(products) && !one->empty(); ++one)
      if (*one == product) return "wgmma_" + std::string(choice);
  return {};
}

/// What was measured to be fastest: the user's table (null: none), then the library's. Nothing where neither can run:
/// an address may lack the alignment of the day of the measurement, an epilogue may need another tile, and the user's
/// table may be of another version.
std::optional<Choice> measured(const TuningTable* table, const Problem& row_major, const DeviceInfo& device) {
  const std::string product = tuned_product(row_major);
  const TunedChoice* tuned = table == nullptr ? nullptr : table->find(device.name, product, tuned_types(row_major));
  const bool plain = row_major.d.dtype == row_major.a.dtype && is_plain_product(row_major);
  for (const std::string& name :
       {tuned == nullptr ? std::string() : tuned->choice, plain ? measured_choice(device, product) : std::string()}) {
    if (name.empty()) continue;
    for (const Choice& choice : every_choice(row_major, device))
      if (choice.name() == name) return choice;
  }
  return std::nullopt;
}

/// Whether few_rows beats oneDNN, which copies the large matrix: for a single row or column, and for more of them in
/// f16, which we convert to f32 for oneDNN. Its kernels of bf16 are faster (docs/findings/gemm_cpu.md, C15).
bool few_rows_first(const Problem& row_major) {
  const std::int64_t few = std::min(row_major.m, row_major.n);
  if (row_major.a.dtype == DType::f16) return few <= 4 || row_major.m <= 8;
  return row_major.a.dtype == DType::f32 && few <= 1;
}

}  // namespace

Choice select(const Problem& problem, const DeviceInfo& device, std::string_view name, const std::string& tuning) {
  const Problem row_major = row_major_form(problem);
  const auto cost = [&](const auto& variant, const Config& config) {
    return estimate(variant.name, config, row_major, device);
  };
  if (!name.empty()) return named_choice(variants(), name, problem, device, cost);
  if (device.device.type == DeviceType::cuda) {
    if (const auto choice = measured(tuning_table(tuning).get(), row_major, device)) return *choice;
  } else if (few_rows_first(row_major)) {
    const auto by_name = [](const auto& variant, const Config&) {
      return std::optional(variant.name == "few_rows" ? 0.0 : 1.0);
    };
    return best_choice(variants(), problem, device, by_name);
  }
  // On the CPU oneDNN runs on our threads, so it has no start-up cost that would make `blocked` win on small problems.
  return best_choice(variants(), problem, device, cost);
}

}  // namespace tmaops::ops::gemm
