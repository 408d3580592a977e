// How every operator chooses: a variant and its configuration, once per call.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/registry.hpp"

namespace tmaops {

/// What runs.
template <class Problem, class Arguments, class Config>
struct Choice {
  const Variant<Problem, Arguments, Config>* variant = nullptr;
  Config config{};

  /// "wgmma_tma/128x128", or the variant alone where it has a single way. named_choice() takes it back.
  std::string name() const {
    const std::string how = config.text();
    return std::string(variant->name) + (how.empty() ? "" : "/" + how);
  }
  friend bool operator==(const Choice&, const Choice&) = default;
};

/// The ways a variant can run a problem that it supports, its best guess first.
template <class Problem, class Arguments, class Config>
std::vector<Config> configs_of(const Variant<Problem, Arguments, Config>& variant, const Problem& problem,
                               const DeviceInfo& device) {
  return variant.configs == nullptr ? std::vector<Config>{Config{}} : variant.configs(problem, device);
}

/// The estimate of an operator without a model of any variant.
struct NoModel {
  std::optional<double> operator()(const auto& /*variant*/, const auto& /*config*/) const { return {}; }
};

/// Chooses among the variants that take the problem; studies are left out.
///
/// estimate(variant, config) says what a run costs, in any unit, or nothing where the operator has no model of the
/// variant. A variant without a model that stands above all that have one is taken, since a table is best first. Else
/// the cheapest is, the one that stands higher of two equal ones; without any model the first.
/// Throws Error variant_refuses with the reason of every variant.
template <class Problem, class Arguments, class Config, class Estimate = NoModel>
Choice<Problem, Arguments, Config> best_choice(std::span<const Variant<Problem, Arguments, Config>> table,
                                               const Problem& problem, const DeviceInfo& device,
                                               const Estimate& estimate = {}) {
  using Result = Choice<Problem, Arguments, Config>;
  std::optional<Result> cheapest;
  double least = 0;
  std::optional<Result> unknown;  // the first without a model
  for (const auto& variant : table) {
    if (variant.attributes.study || !try_variant(variant, problem, device)) continue;
    for (const Config& config : configs_of(variant, problem, device)) {
      const std::optional<double> cost = estimate(variant, config);
      if (!cost) {
        if (!cheapest) return {&variant, config};
        if (!unknown) unknown = Result{&variant, config};
      } else if (!cheapest || *cost < least) {
        cheapest = Result{&variant, config};
        least = *cost;
      }
    }
  }
  if (cheapest) return *cheapest;
  if (unknown) return *unknown;
  return {&first_variant(table, problem, device), {}};  // throws with every reason
}

/// The choice that a caller names: "wgmma_tma" or "wgmma_tma/128x128"; without a configuration the cheapest one of the
/// variant. Throws Error unknown_variant, or variant_refuses with the reason.
template <class Problem, class Arguments, class Config, class Estimate = NoModel>
Choice<Problem, Arguments, Config> named_choice(std::span<const Variant<Problem, Arguments, Config>> table,
                                                std::string_view name, const Problem& problem, const DeviceInfo& device,
                                                const Estimate& estimate = {}) {
  const std::size_t slash = name.find('/');
  const auto& variant = named_variant(table, name.substr(0, slash), problem, device);
  Choice<Problem, Arguments, Config> choice{&variant, {}};
  double least = 0;
  bool found = false;
  std::string known;
  for (const Config& config : configs_of(variant, problem, device)) {
    const std::string text = config.text();
    known += (known.empty() ? "" : ", ") + text;
    if (slash != std::string_view::npos && name.substr(slash + 1) != text) continue;
    const double cost = estimate(variant, config).value_or(0);
    if (found && cost >= least) continue;
    choice.config = config;
    least = cost;
    found = true;
  }
  if (found) return choice;
  throw Error(ErrorCode::variant_refuses, {.where = std::string(variant.op) + ": variant " + std::string(name),
                                           .got = problem.text(),
                                           .needed = known.empty() ? "no configuration: it has none for this problem"
                                                                   : "one of the configurations " + known});
}

}  // namespace tmaops
