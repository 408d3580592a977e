// The layout of shared_padded in the model of shared memory: neither its writes nor its reads have bank conflicts.
#include "study/ms_deform_attn/gpu/shared_padded/padded_rows.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "tma/banks.hpp"

namespace tmaops::test {
namespace {

using ops::ms_deform_attn::shared_padded::PaddedRows;

constexpr int kLanes = 32;

class PaddedRowsOf : public testing::TestWithParam<int> {};

TEST_P(PaddedRowsOf, writes_and_reads_have_no_bank_conflicts) {
  const PaddedRows rows{GetParam()};
  std::array<std::uint32_t, kLanes> addresses{};
  for (int sample = 0; sample < PaddedRows::kSamples; ++sample)
    for (int half = 0; half < 2; ++half) {
      for (int row = 0; row < 2; ++row) {
        for (int lane = 0; lane < kLanes; ++lane)
          addresses[static_cast<std::size_t>(lane)] = static_cast<std::uint32_t>(rows.written(lane, half, sample, row));
        EXPECT_EQ(tma::bank_use(addresses, 16).conflicts(), 0) << "writing sample " << sample << ", row " << row;
      }
      for (int corner = 0; corner < 4; ++corner)
        for (int word = 0; word < 4; ++word) {
          for (int lane = 0; lane < kLanes; ++lane)
            addresses[static_cast<std::size_t>(lane)] =
                static_cast<std::uint32_t>(rows.read(lane, sample, corner, word));
          EXPECT_EQ(tma::bank_use(addresses, 4).conflicts(), 0) << "reading sample " << sample << ", corner " << corner;
        }
    }
}

TEST_P(PaddedRowsOf, every_word_is_written_once_and_read_once) {
  const PaddedRows rows{GetParam()};
  std::multiset<int> written;
  std::multiset<int> read;
  for (int lane = 0; lane < kLanes; ++lane)
    for (int sample = 0; sample < PaddedRows::kSamples; ++sample) {
      for (int half = 0; half < 2; ++half)
        for (int row = 0; row < 2; ++row)
          for (int word = 0; word < 4; ++word) written.insert(rows.written(lane, half, sample, row) + 4 * word);
      for (int corner = 0; corner < 4; ++corner)
        for (int word = 0; word < 4; ++word) read.insert(rows.read(lane, sample, corner, word));
    }
  EXPECT_EQ(written, read);
  EXPECT_EQ(std::set<int>(read.begin(), read.end()).size(), read.size());
  EXPECT_LE(*read.rbegin() + 4, PaddedRows::kMostBytes);
}

INSTANTIATE_TEST_SUITE_P(ThreadsPerItem, PaddedRowsOf, testing::Values(2, 3, 4));

}  // namespace
}  // namespace tmaops::test
