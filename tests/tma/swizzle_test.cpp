#include "tma/swizzle.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tmaops::tma {
namespace {

constexpr Swizzle kAll[] = {Swizzle::none,       Swizzle::b32,         Swizzle::b64,
                            Swizzle::b128,       Swizzle::b128_atom32, Swizzle::b128_atom32_flip8,
                            Swizzle::b128_atom64};

TEST(Swizzle, is_its_own_inverse_and_permutes_every_line) {
  for (const Swizzle swizzle : kAll) {
    for (std::uint32_t line = 0; line < 64; ++line) {
      std::set<std::uint32_t> places;
      for (std::uint32_t byte = 0; byte < 128; ++byte) {
        const std::uint32_t address = line * 128 + byte;
        const std::uint32_t place = swizzled(swizzle, address);
        EXPECT_EQ(place / 128, line) << to_string(swizzle);
        EXPECT_EQ(swizzled(swizzle, place), address) << to_string(swizzle);
        places.insert(place);
      }
      EXPECT_EQ(places.size(), 128U) << to_string(swizzle);
    }
  }
}

TEST(Swizzle, keeps_spans_and_atoms_together) {
  for (const Swizzle swizzle : {Swizzle::b32, Swizzle::b64, Swizzle::b128}) {
    const std::uint32_t span = swizzle == Swizzle::b32 ? 32 : swizzle == Swizzle::b64 ? 64 : 128;
    for (std::uint32_t address = 0; address < 4096; ++address) {
      EXPECT_EQ(swizzled(swizzle, address) / span, address / span);
      EXPECT_EQ(swizzled(swizzle, address) % 16, address % 16);
    }
  }
}

// The programming guide's formula: smem[y][((y + offset) % P) ^ x] for 16-byte pieces x of 128-byte lines y.
TEST(Swizzle, matches_the_guides_table) {
  for (const auto& [swizzle, pattern] :
       {std::pair{Swizzle::b128, 8U}, std::pair{Swizzle::b64, 4U}, std::pair{Swizzle::b32, 2U}}) {
    for (std::uint32_t base = 0; base < 8192; base += 128) {
      const std::uint32_t offset = base / 128 % pattern;
      for (std::uint32_t y = 0; y < 16; ++y)
        for (std::uint32_t x = 0; x < 8; ++x)
          EXPECT_EQ(swizzled(swizzle, base + y * 128 + x * 16), base + y * 128 + ((((y + offset) % pattern) ^ x) * 16));
    }
  }
}

TEST(Swizzle, repeats_after_its_period_and_not_before) {
  for (const Swizzle swizzle : kAll) {
    const auto same_after = [&](std::uint32_t bytes) {
      for (std::uint32_t address = 0; address < 4096; ++address)
        if (swizzled(swizzle, address + bytes) != swizzled(swizzle, address) + bytes) return false;
      return true;
    };
    const std::uint32_t period = swizzle_period(swizzle);
    EXPECT_TRUE(same_after(period)) << to_string(swizzle);
    for (std::uint32_t shorter = 128; shorter < period; shorter += 128)
      EXPECT_FALSE(same_after(shorter)) << to_string(swizzle);
  }
}

}  // namespace
}  // namespace tmaops::tma
