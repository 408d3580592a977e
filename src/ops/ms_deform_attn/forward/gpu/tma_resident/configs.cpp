// With and without a copy of the second level.
#include "ops/ms_deform_attn/forward/gpu/tma_resident/near_levels.hpp"

namespace tmaops::ops::ms_deform_attn::tma_resident {
namespace {

/// Queries per pixel of the level from which the copy pays (docs/findings/ms_deform_attn_resident.md, S13).
constexpr std::int64_t kQueriesThatPay = 2;

/// Only where pixels lie a multiple of 128 bytes apart, and with eight points: with four the copy takes as long as what
/// it saves.
bool copy_pays(const Problem& problem) {
  const Level& level = problem.levels[kCopiedLevel];
  return level.points == 8 && problem.pixel_bytes % 128 == 0 &&
         problem.queries >= kQueriesThatPay * level.height * level.width;
}

}  // namespace

std::vector<Config> configs(const Problem& problem, const DeviceInfo&) {
  if (problem.planned && copy_pays(problem)) return {{.copies_second_level = true}, {}};
  return {{}};
}

}  // namespace tmaops::ops::ms_deform_attn::tma_resident
