// Which variant runs, and with which tile. On the CPU the first of the list that takes the problem; on a GPU what was
// measured to be fastest (tuning.hpp, measured.hpp), else what the model expects to be (estimate.hpp).
#include "core/fail.hpp"
#include "ops/gemm/estimate.hpp"
#include "ops/gemm/measured.hpp"
#include "ops/gemm/problem.hpp"
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

/// What was measured to be fastest: the user's table (null: none), then the library's. Nothing where that cannot run:
/// an address may lack the alignment of the day of the measurement, and an epilogue may need another tile.
std::optional<Choice> measured(const TuningTable* table, const Problem& row_major, const DeviceInfo& device) {
  const std::string product = tuned_product(row_major);
  const TunedChoice* tuned = table == nullptr ? nullptr : table->find(device.name, product, tuned_types(row_major));
  std::string_view wanted;
  if (tuned != nullptr)
    wanted = tuned->choice;
  else if (row_major.d.dtype == row_major.a.dtype)
    wanted = measured_choice(device, product);
  if (wanted.empty()) return std::nullopt;
  for (const Choice& choice : every_choice(row_major, device))
    if (choice.name() == wanted) return choice;
  return std::nullopt;
}

}  // namespace

Choice select(const Problem& problem, const DeviceInfo& device, std::string_view name, const std::string& tuning) {
  const Problem row_major = row_major_form(problem);
  const auto cost = [&](const auto& variant, const Config& config) {
    return estimate(variant.name, config, row_major, device);
  };
  if (!name.empty()) return named_choice(variants(), name, problem, device, cost);
  if (device.device.type == DeviceType::cuda)
    if (const auto choice = measured(tuning_table(tuning).get(), row_major, device)) return *choice;
  // On the CPU the list is best first at every size: oneDNN runs on our threads, so it has no start-up cost that would
  // make the blocked kernel win on small problems.
  return best_choice(variants(), problem, device, cost);
}

namespace {

constexpr std::string_view kWgmma = "wgmma";
constexpr const char* kImpl = "gemm: impl";

/// The variant that is named or has the number; empty for none.
std::string wanted_name(const GemmOptions& options) {
  if (options.version == 0) return options.variant;
  if (!options.variant.empty())
    fail(ErrorCode::bad_parameter, "gemm: version",
         std::to_string(options.version) + " beside variant " + options.variant, "a version or a variant");
  std::string known;
  for (const auto& variant : variants()) {
    const int version = variant.attributes.version;
    if (version == options.version) return std::string(variant.name);
    if (version > 0) known += (known.empty() ? "" : ", ") + std::to_string(version);
  }
  fail(ErrorCode::unknown_variant, "gemm: version", std::to_string(options.version), "one of " + known);
}

}  // namespace

Choice select(const Problem& problem, const DeviceInfo& device, const GemmOptions& options) {
  if (options.impl == "cute")
    fail(ErrorCode::variant_refuses, kImpl, problem.text(),
         "wgmma: kernels written with CuTe are peers of `tmaops bench`");
  if (!options.impl.empty() && options.impl != kWgmma)
    fail(ErrorCode::unknown_variant, kImpl, "'" + options.impl + "'", "wgmma or cute");
  const Choice choice = select(problem, device, wanted_name(options), options.tuning);
  if (options.impl == kWgmma && !choice.variant->name.starts_with(kWgmma))
    fail(ErrorCode::variant_refuses, kImpl, std::string(choice.variant->name) + " for " + problem.text(),
         "a problem that a variant with wgmma takes: f16 or bf16 on a GPU of compute capability 9.0");
  return choice;
}

}  // namespace tmaops::ops::gemm
