// Which variant runs when the caller names none: on the CPU the first of the list that takes the problem; on a GPU the
// one that was measured to be fastest (tuning.hpp), else the one that the model of tiling.hpp expects to be.
#include "ops/gemm/problem.hpp"
#include "ops/gemm/tiling.hpp"
#include "ops/gemm/tuning.hpp"

namespace tmaops::ops::gemm {
namespace {

Problem row_major_form(const Problem& problem) {
  return problem.d.order == Order::column ? transposed(problem) : problem;
}

const Variant<Problem, Arguments>* find_variant(std::string_view name) {
  for (const auto& variant : variants())
    if (variant.name == name) return &variant;
  return nullptr;
}

/// "wgmma_small" or "wgmma_small/64x32". Throws Error unknown_variant and variant_refuses.
Choice named(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  const std::size_t slash = name.find('/');
  const std::string_view variant = name.substr(0, slash);
  Choice choice{.variant = &named_variant(variants(), variant, problem, device)};
  if (slash == std::string_view::npos) return choice;
  choice.tiling = find_tiling(variant, name.substr(slash + 1));
  if (const std::string tiles = tile_names(variant); choice.tiling == nullptr)
    throw Error(ErrorCode::unknown_variant, {.where = "gemm: tile of " + std::string(variant),
                                             .got = "'" + std::string(name.substr(slash + 1)) + "'",
                                             .needed = tiles.empty() ? "no tile: it has none" : "one of " + tiles});
  if (Support support = made_for(*choice.tiling, row_major_form(problem), device.multiprocessors); !support)
    throw Error(ErrorCode::variant_refuses,
                {.where = "gemm: variant " + std::string(name), .got = problem.text(), .needed = support.reason});
  return choice;
}

/// What the table says, where that can run.
Choice measured(const TuningTable& table, const Problem& problem, const DeviceInfo& device) {
  const Problem row_major = row_major_form(problem);
  const TunedChoice* tuned = table.find(device.name, tuned_product(row_major), tuned_types(row_major));
  if (tuned == nullptr) return {};
  const std::size_t slash = tuned->choice.find('/');
  const std::string_view name(tuned->choice);
  const Choice choice{.variant = find_variant(name.substr(0, slash)),
                      .tiling = find_tiling(name.substr(0, slash), name.substr(slash + 1))};
  const bool runs = choice.variant != nullptr && choice.tiling != nullptr &&
                    made_for(*choice.tiling, row_major, device.multiprocessors) &&
                    try_variant(*choice.variant, problem, device);  // an address may lack the alignment of that day
  return runs ? choice : Choice{};
}

}  // namespace

Choice select(const Problem& problem, const DeviceInfo& device, std::string_view name, const std::string& tuning) {
  if (!name.empty()) return named(problem, device, name);
  // On the CPU the list is best first at every size: oneDNN runs on our threads, so it has no start-up cost that would
  // make the blocked kernel win on small problems.
  if (device.device.type != DeviceType::cuda) return {.variant = &first_variant(variants(), problem, device)};

  if (const auto table = tuning_table(tuning))
    if (const Choice choice = measured(*table, problem, device); choice.variant != nullptr) return choice;

  const Problem row_major = row_major_form(problem);
  Choice best;
  double least = 0;
  for (const auto& variant : variants()) {
    if (!try_variant(variant, problem, device)) continue;
    const Tiling& tiling = best_tiling(variant.name, row_major, device.multiprocessors);
    const double time = microseconds(tiling, row_major, device.multiprocessors);
    if (best.variant != nullptr && time >= least) continue;
    best = {.variant = &variant, .tiling = &tiling};
    least = time;
  }
  if (best.variant != nullptr) return best;
  return {.variant = &first_variant(variants(), problem, device)};  // throws with every reason
}

std::vector<std::string> candidates(const Problem& problem, const DeviceInfo& device) {
  std::vector<std::string> names;
  const Problem row_major = row_major_form(problem);
  for (const Tiling& tiling : tilings()) {
    const auto* variant = find_variant(tiling.variant);
    if (variant != nullptr && try_variant(*variant, problem, device) &&
        made_for(tiling, row_major, device.multiprocessors))
      names.push_back(std::string(tiling.variant) + "/" + std::string(tiling.tile));
  }
  return names;
}

}  // namespace tmaops::ops::gemm
