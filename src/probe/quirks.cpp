#include "probe/quirks.hpp"

namespace tmaops::probe {
namespace {

enum class QuirkId : std::size_t {
#define TMAOPS_TMA_QUIRK(id, driver, text) id,
#include "probe/quirks.def"
#undef TMAOPS_TMA_QUIRK
};

constexpr Quirk kQuirks[] = {
#define TMAOPS_TMA_QUIRK(id, driver, text) {#id, tma::Driver::driver, text},
#include "probe/quirks.def"
#undef TMAOPS_TMA_QUIRK
};

const Quirk& quirk(QuirkId id) { return kQuirks[static_cast<std::size_t>(id)]; }

/// Bytes of a load as the driver counts them, for a box that is in range.
std::int64_t bytes_by_driver(const tma::TensorMapSpec& spec) {
  std::int64_t bytes = bits_of(spec.dtype) / 8;
  for (std::size_t i = 0; i < spec.box.size(); ++i)  // at most 256 elements each: no overflow
    bytes *= spec.box[i] / (spec.element_strides.empty() ? 1 : spec.element_strides[i]);
  return bytes;
}

/// The quirk that lets a specification pass although it breaks this rule.
const Quirk* quirk_about(const tma::Rule& broken, const tma::TensorMapSpec& spec) {
  if (&broken == &tma::rule(tma::RuleId::interleave_32_swizzle)) return &quirk(QuirkId::interleave_32_any_swizzle);
  if (&broken == &tma::rule(tma::RuleId::tile_bytes) && spec.mode == tma::Mode::tiled &&
      bytes_by_driver(spec) <= tma::kLargestTile)
    return &quirk(QuirkId::element_strides_round_down);
  return nullptr;
}

}  // namespace

std::span<const Quirk> quirks() { return kQuirks; }

const Quirk* quirk_of(const tma::TensorMapSpec& spec, const tma::Findings& found, bool accepted) {
  if (!accepted) return nullptr;  // no quirk is known where the driver refuses what the rules allow
  const Quirk* last = nullptr;
  for (const tma::Finding& finding : found.all()) {
    if (finding.rule->severity != tma::Severity::error) continue;
    last = quirk_about(*finding.rule, spec);
    if (last == nullptr) return nullptr;
  }
  return last;
}

}  // namespace tmaops::probe
