#include "tma/banks.hpp"

#include <algorithm>
#include <array>

#include "core/fail.hpp"

namespace tmaops::tma {
namespace {

/// The largest number of different words that these lanes want of one bank; 0 when no lane is active.
int wavefronts_of(std::span<const std::uint32_t> addresses, int bytes) {
  std::array<std::vector<std::uint32_t>, kBanks> words;
  std::size_t most = 0;
  for (const std::uint32_t address : addresses) {
    if (address == kInactiveLane) continue;
    const std::uint32_t last = (address + static_cast<std::uint32_t>(bytes) - 1) / 4;
    for (std::uint32_t word = address / 4; word <= last; ++word) {
      auto& wanted = words[word % kBanks];
      if (std::ranges::find(wanted, word) == wanted.end()) wanted.push_back(word);
      most = std::max(most, wanted.size());
    }
  }
  return static_cast<int>(most);
}

}  // namespace

BankUse bank_use(std::span<const std::uint32_t> addresses, int bytes) {
  const auto fail = [](std::string got, std::string needed) {
    tmaops::fail(ErrorCode::bad_parameter, "bank_use", got, needed);
  };
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16)
    fail(std::to_string(bytes) + " bytes per lane", "1, 2, 4, 8 or 16");
  if (addresses.size() > 32) fail(std::to_string(addresses.size()) + " lanes", "at most 32");
  for (const std::uint32_t address : addresses)
    if (address != kInactiveLane && address % static_cast<std::uint32_t>(bytes) != 0)
      fail("address " + std::to_string(address), "a multiple of " + std::to_string(bytes));

  const std::size_t lanes = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  BankUse use;
  for (std::size_t first = 0; first < addresses.size(); first += lanes) {
    const int wavefronts = wavefronts_of(addresses.subspan(first, std::min(lanes, addresses.size() - first)), bytes);
    use.phases += wavefronts > 0 ? 1 : 0;
    use.wavefronts += wavefronts;
  }
  return use;
}

std::vector<std::uint32_t> column_access(const TensorMapSpec& spec, const TileLoad& load, std::int64_t first_row,
                                         std::int64_t column, int lanes) {
  const TileLayout layout = tile_layout(spec);
  std::vector<std::uint32_t> addresses;
  for (int lane = 0; lane < lanes; ++lane) {
    const std::int64_t row = first_row + lane;
    const auto offset = static_cast<std::uint32_t>(row * layout.row_pitch + column);
    addresses.push_back(row < layout.rows ? swizzled(spec.swizzle, load.shared_address + offset) : kInactiveLane);
  }
  return addresses;
}

}  // namespace tmaops::tma
