// What f16 arithmetic leaves of the published workload, and what the published kernels keep in shared memory.
#include "ops/ms_deform_attn/shared/half_arithmetic.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "study/ms_deform_attn/half_model.hpp"
#include "study/ms_deform_attn/shared/staged_rows.hpp"
#include "tma/banks.hpp"

namespace tmaops::test {
namespace {

namespace op = ops::ms_deform_attn;

double relative_error(const Buffer& got, const Buffer& want) {
  double difference = 0;
  double norm = 0;
  for (std::int64_t i = 0; i < want.layout().size(); ++i) {
    difference += (got.get(i) - want.get(i)) * (got.get(i) - want.get(i));
    norm += want.get(i) * want.get(i);
  }
  return std::sqrt(difference / norm);
}

TEST(HalfArithmetic, stays_below_its_stated_error_and_within_a_few_times_of_it) {
  std::uint64_t seed = 3;
  for (const auto& levels : {std::vector<LevelShape>{{92, 160}, {46, 80}, {23, 40}, {12, 20}},
                             std::vector<LevelShape>{{46, 80}, {23, 40}, {12, 20}, {6, 10}},
                             std::vector<LevelShape>{{16, 16}, {8, 8}, {4, 4}, {2, 2}}}) {
    Case c(published_shape(1, 300, levels), ++seed);
    Buffer output = c.output();
    const double stated = op::half_arithmetic_error(c.problem(output));
    const double error = relative_error(half_model(c), c.reference());
    EXPECT_LT(error, stated) << c.text();
    EXPECT_GT(error, stated / 30) << c.text();
  }
}

TEST(HalfArithmetic, the_model_rounds_once) {
  EXPECT_EQ(half(1 + 0x1p-11), 1);                      // a tie, to even
  EXPECT_EQ(half(1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10);  // f32 would round the rest away and leave a tie
  EXPECT_EQ(half(-1 - 3 * 0x1p-11 + 0x1p-40), -1 - 0x1p-10);
  EXPECT_EQ(half(0x1p-24), 0x1p-24);
}

TEST(HalfArithmetic, is_far_above_the_rounding_of_the_output) {
  Case c(published_shape(1, 300, {{92, 160}, {46, 80}, {23, 40}, {12, 20}}), 9);
  EXPECT_GT(relative_error(half_model(c), c.reference()), 10 * 4e-4);
}

/// Bank conflicts of all reads of a level by words of two channels.
template <op::gpu::Padding padding>
int read_conflicts() {
  using Rows = op::gpu::StagedRows<padding>;
  int conflicts = 0;
  std::array<std::uint32_t, 32> addresses{};
  for (int point = 0; point < op::gpu::kHalfPoints; ++point)
    for (int corner = 0; corner < Rows::kCorners; ++corner)
      for (int word = 0; word < 4; ++word) {
        for (int lane = 0; lane < 32; ++lane)
          addresses[static_cast<std::size_t>(lane)] =
              4 * static_cast<std::uint32_t>(Rows::read(lane, point, corner, word));
        conflicts += tma::bank_use(addresses, 4).conflicts();
      }
  return conflicts;
}

TEST(StagedRows, padding_by_two_channels_removes_two_thirds_of_the_bank_conflicts_of_words) {
  constexpr int kReads = 8 * 4 * 4;
  EXPECT_EQ(read_conflicts<op::gpu::Padding::none>(), 3 * kReads);
  EXPECT_EQ(read_conflicts<op::gpu::Padding::two_channels>(), kReads);
}

TEST(StagedRows, reads_of_16_bytes_have_no_bank_conflicts_without_padding) {
  using Rows = op::gpu::StagedRows<op::gpu::Padding::none>;
  std::array<std::uint32_t, 32> addresses{};
  for (int lane = 0; lane < 32; ++lane)
    addresses[static_cast<std::size_t>(lane)] = 4 * static_cast<std::uint32_t>(Rows::read(lane, 3, 2, 0));
  EXPECT_EQ(tma::bank_use(addresses, 16).conflicts(), 0);
}

template <op::gpu::Padding padding>
void expect_every_word_once() {
  using Rows = op::gpu::StagedRows<padding>;
  std::multiset<int> written;
  std::multiset<int> read;
  for (int lane = 0; lane < 32; ++lane)
    for (int point = 0; point < op::gpu::kHalfPoints; ++point) {
      for (int query = 0; query < Rows::kQueries; ++query)
        for (int word = 0; word < 2; ++word)
          written.insert(Rows::at(point, Rows::written_corner(lane), query) + Rows::written_word(lane) + word);
      for (int corner = 0; corner < Rows::kCorners; ++corner)
        for (int word = 0; word < 4; ++word) read.insert(Rows::read(lane, point, corner, word));
    }
  EXPECT_EQ(written, read);
  EXPECT_EQ(std::set<int>(read.begin(), read.end()).size(), read.size());
  EXPECT_LT(*read.rbegin(), Rows::kWords);
}

TEST(StagedRows, every_word_is_written_once_and_read_once) {
  expect_every_word_once<op::gpu::Padding::none>();
  expect_every_word_once<op::gpu::Padding::two_channels>();
  expect_every_word_once<op::gpu::Padding::four_channels>();
}

}  // namespace
}  // namespace tmaops::test
