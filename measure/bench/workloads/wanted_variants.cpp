#include "bench/workloads/wanted_variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "core/spelling.hpp"
#include "tmaops/error.hpp"

namespace tmaops::bench {
namespace {

/// Not of an operator that is a study as a whole.
bool has_choice(const std::vector<VariantChoice>& variants) {
  return std::ranges::any_of(variants, [](const VariantChoice& variant) { return !variant.info.study; });
}

void add_named(const Settings& problem, const std::vector<VariantChoice>& variants, WantedVariants& wanted) {
  for (const Setting* setting : problem.find_all("variant")) {
    if (setting->value == "auto") wanted.chosen = true;
    if (setting->value == "all") {
      wanted.all = true;
      wanted.chosen = wanted.chosen || has_choice(variants);
    }
    if (setting->value == "auto" || setting->value == "all") continue;
    const std::string name = setting->value.substr(0, setting->value.find('/'));
    const auto found = std::ranges::find_if(variants, [&](const auto& v) { return v.info.name == name; });
    if (found == variants.end())
      problem.fail(ErrorCode::unknown_variant, *setting,
                   "one of auto, all, " + joined(variants, ", ", [](const auto& v) { return v.info.name; }));
    wanted.named.push_back({static_cast<std::size_t>(found - variants.begin()), setting->value});
  }
}

void add_versions(const Settings& problem, const std::vector<VariantChoice>& variants, WantedVariants& wanted) {
  for (const Setting* setting : problem.find_all("version")) {
    const auto number = setting->quoted ? std::nullopt : parse_integer(setting->value);
    if (!number) problem.fail(ErrorCode::wrong_type, *setting, "a number");
    bool found = false;
    for (std::size_t i = 0; i < variants.size(); ++i) {
      if (variants[i].info.version != *number || *number == 0) continue;
      wanted.named.push_back({i, std::string(variants[i].info.name)});
      found = true;
    }
    if (found) continue;
    std::string versions;
    for (const VariantChoice& variant : variants)
      if (variant.info.version > 0)
        versions += (versions.empty() ? "" : ", ") + fmt::format("{} ({})", variant.info.version, variant.info.name);
    problem.fail(
        ErrorCode::unknown_variant, *setting,
        versions.empty() ? "a variant's name: this operator's variants have no version numbers" : "one of " + versions);
  }
}

/// Versions of gemm that are written with CuTe, the peers cute_v1 and cute_v2.
constexpr std::array kCuteVersions{"1", "2"};

/// Whether the operator's own variants are wanted: not with `impl: cute` alone.
bool add_implementations(const Settings& problem, WantedVariants& wanted) {
  const auto given = problem.find_all("impl");
  bool ours = given.empty();
  for (const Setting* setting : given) {
    if (setting->value != "wgmma" && setting->value != "cute")
      problem.fail(ErrorCode::unknown_variant, *setting, "wgmma or cute");
    ours = ours || setting->value == "wgmma";
    if (setting->value == "wgmma") continue;
    for (const Setting* version : problem.find_all("version"))
      if (std::ranges::find(kCuteVersions, version->value) == kCuteVersions.end())
        problem.fail(ErrorCode::unknown_variant, *version, "1 or 2 with impl: cute");
    for (const std::string version : kCuteVersions)
      if (!problem.has("version") ||
          std::ranges::any_of(problem.find_all("version"), [&](const Setting* one) { return one->value == version; }))
        wanted.peers.push_back("cute_v" + version);
  }
  if (const Setting* variant = problem.find("variant"); variant != nullptr && !ours)
    problem.fail(ErrorCode::bad_value, *variant, "a version with impl: cute, whose kernels are no variants");
  return ours;
}

}  // namespace

WantedVariants wanted_variants(const Settings& problem, const std::vector<VariantChoice>& variants, bool all_variants) {
  WantedVariants wanted;
  if (!add_implementations(problem, wanted)) return wanted;
  add_named(problem, variants, wanted);
  add_versions(problem, variants, wanted);
  if (!problem.has("variant") && !problem.has("version")) {
    wanted.chosen = has_choice(variants);
    wanted.all = (all_variants && !problem.has("impl")) || !wanted.chosen;
  }
  return wanted;
}

bool runs_on(const Settings& problem, Device device) try {
  const auto workload = make_workload(problem, device);
  const auto variants = workload->variants();
  const WantedVariants wanted = wanted_variants(problem, variants, false);
  if (!wanted.peers.empty()) return device.type == DeviceType::cuda;
  if (std::ranges::any_of(wanted.named, [&](const auto& one) { return variants[one.index].support.ok; })) return true;
  return (wanted.chosen || wanted.all) && std::ranges::any_of(variants, [](const auto& v) { return v.support.ok; });
} catch (const Error& error) {  // which types an operator takes depends on the device
  if (error.code() == ErrorCode::unsupported_dtype || error.code() == ErrorCode::dtype_mismatch) return false;
  throw;
}

}  // namespace tmaops::bench
