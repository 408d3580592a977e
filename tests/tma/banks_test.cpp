#include "tma/banks.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace tmaops::tma {
namespace {

std::vector<std::uint32_t> strided(std::uint32_t step, std::uint32_t lanes = 32) {
  std::vector<std::uint32_t> addresses;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) addresses.push_back(lane * step);
  return addresses;
}

TEST(BankUse, known_patterns_of_four_bytes) {
  EXPECT_EQ(bank_use(strided(4), 4).conflicts(), 0);
  EXPECT_EQ(bank_use(strided(8), 4).wavefronts, 2);     // every other bank
  EXPECT_EQ(bank_use(strided(128), 4).wavefronts, 32);  // a column of a 32-wide f32 array
  EXPECT_EQ(bank_use(strided(132), 4).conflicts(), 0);  // the same, padded by one word
  EXPECT_EQ(bank_use(strided(0), 4).wavefronts, 1);     // broadcast
  EXPECT_EQ(bank_use(strided(2), 2).wavefronts, 1);     // two lanes share a word
  EXPECT_EQ(bank_use(strided(12), 4).conflicts(), 0);   // odd strides are free
}

TEST(BankUse, wide_accesses_go_in_half_and_quarter_warps) {
  EXPECT_EQ(bank_use(strided(8), 8).phases, 2);
  EXPECT_EQ(bank_use(strided(8), 8).conflicts(), 0);
  EXPECT_EQ(bank_use(strided(16), 16).phases, 4);
  EXPECT_EQ(bank_use(strided(16), 16).conflicts(), 0);
  EXPECT_EQ(bank_use(strided(128), 16).wavefronts, 32);  // a column of 16-byte pieces: 8 ways in each quarter
  EXPECT_EQ(bank_use(strided(144), 16).conflicts(), 0);  // rows padded by 16 bytes
  EXPECT_EQ(bank_use(strided(16, 8), 16).phases, 1);
}

TEST(BankUse, inactive_lanes_cost_nothing) {
  std::vector<std::uint32_t> addresses(32, kInactiveLane);
  EXPECT_EQ(bank_use(addresses, 16).wavefronts, 0);
  addresses[3] = 0;
  addresses[5] = 128;
  EXPECT_EQ(bank_use(addresses, 16).phases, 1);
  EXPECT_EQ(bank_use(addresses, 16).wavefronts, 2);
}

TEST(BankUse, swizzle_makes_columns_free) {
  TensorMapSpec spec = tiled_spec(ElementType::f16, {64, 64}, {64, 64});
  const TileLoad load{{0, 0}, 0};
  for (std::int64_t column = 0; column < 128; column += 16) {
    spec.swizzle = Swizzle::none;
    EXPECT_EQ(bank_use(column_access(spec, load, 0, column, 8), 16).wavefronts, 8);
    spec.swizzle = Swizzle::b128;
    EXPECT_EQ(bank_use(column_access(spec, load, 0, column, 8), 16).wavefronts, 1);
    EXPECT_EQ(bank_use(column_access(spec, load, 8, column, 32), 16).conflicts(), 0);
  }
  // Narrow rows: 64 bytes take 64B, which leaves a column of 8 rows in 4 lines.
  TensorMapSpec narrow = tiled_spec(ElementType::f16, {32, 64}, {32, 64});
  EXPECT_EQ(bank_use(column_access(narrow, load, 0, 0, 8), 16).wavefronts, 4);
  narrow.swizzle = Swizzle::b64;
  EXPECT_EQ(bank_use(column_access(narrow, load, 0, 0, 8), 16).wavefronts, 1);
}

TEST(BankUse, rows_past_the_tile_are_inactive) {
  const TensorMapSpec spec = tiled_spec(ElementType::f16, {64, 64}, {64, 3});
  const auto addresses = column_access(spec, {{0, 0}, 0}, 0, 0);
  EXPECT_EQ(addresses[2], 256U);
  EXPECT_EQ(addresses[3], kInactiveLane);
}

TEST(BankUse, refuses_impossible_accesses) {
  using tmaops::test::expect_error;
  expect_error(ErrorCode::bad_parameter, [] { bank_use(strided(4), 3); }, "3 bytes per lane");
  expect_error(ErrorCode::bad_parameter, [] { bank_use(strided(4), 16); }, "address 4", "multiple of 16");
  expect_error(ErrorCode::bad_parameter, [] { bank_use(strided(4, 33), 4); }, "33 lanes");
}

}  // namespace
}  // namespace tmaops::tma
