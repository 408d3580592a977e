#include "ops/resample/forward/shared/pieces.hpp"

#include <array>

namespace tmaops::ops::resample::gpu {

Pieces pieces_of(const Problem& problem) {
  const auto values = static_cast<std::int64_t>(16 / size_of(problem.values));
  Pieces pieces{};
  std::array<bool, kMostPieces> begun{};
  for (const ChannelGroup& group : problem.groups) {
    const bool slerp = group.interpolation == Interpolation::slerp;
    for (std::int64_t channel = group.first; channel < group.first + group.count; ++channel) {
      const auto at = static_cast<std::size_t>(channel / values);
      Piece& piece = pieces.at[at];
      const auto component = static_cast<std::uint32_t>(channel - group.first);
      const std::uint32_t mode = slerp ? 8 + component : static_cast<std::uint32_t>(group.interpolation);
      piece.modes |= mode << (4 * (channel % values));
      const bool straddles = slerp && channel % 4 != static_cast<std::int64_t>(component);
      const Kind kind = straddles ? Kind::mixed : static_cast<Kind>(group.interpolation);
      piece.kind = begun[at] && piece.kind != kind ? Kind::mixed : kind;
      begun[at] = true;
    }
  }
  return pieces;
}

}  // namespace tmaops::ops::resample::gpu
