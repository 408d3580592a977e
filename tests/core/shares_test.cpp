// Dealing out work in runs: everything once, neighbours to one taker, nobody idle while another has work left.
#include "core/shares.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "core/parallel.hpp"

namespace tmaops {
namespace {

TEST(Shares, alone_a_taker_gets_everything_in_order_of_the_shares_from_its_own_on) {
  Shares shares(10, 2);
  std::vector<std::int64_t> taken;
  while (const Shares::Range one = shares.next(1))
    for (std::int64_t i = one.begin; i < one.end; ++i) taken.push_back(i);
  EXPECT_EQ(taken, (std::vector<std::int64_t>{5, 6, 7, 8, 9, 2, 3, 4, 1, 0}));
  EXPECT_FALSE(shares.next(0));
}

TEST(Shares, takers_in_turn_keep_to_their_own_runs) {
  Shares shares(6, 2);
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(shares.next(0).begin, i);
    EXPECT_EQ(shares.next(1).begin, 3 + i);
  }
  EXPECT_FALSE(shares.next(0));
  EXPECT_FALSE(shares.next(1));
}

TEST(Shares, in_slices_a_taker_takes_ever_smaller_parts_of_its_own) {
  Shares shares(32, 2, 4);
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 16; at < 32;) {
    const Shares::Range some = shares.next(1);
    ASSERT_EQ(some.begin, at);
    sizes.push_back(some.end - some.begin);
    at = some.end;
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{4, 3, 2, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(shares.next(1).begin, 8);  // the later half of what the other has
  EXPECT_EQ(shares.next(0).begin, 0);
}

TEST(Shares, have_nothing_or_less_than_one_for_each) {
  Shares none(0, 3);
  EXPECT_FALSE(none.next(0));
  Shares one(1, 3);
  EXPECT_EQ(one.next(0).begin, 0);
  EXPECT_FALSE(one.next(1));
}

TEST(Shares, count_beyond_thirty_two_bits_in_blocks) {
  const std::int64_t count = (1LL << 33) + 5;
  Shares shares(count, 1);
  const Shares::Range first = shares.next(0);
  EXPECT_EQ(first.begin, 0);
  EXPECT_GT(first.end, 1);
  EXPECT_EQ(shares.next(0).begin, first.end);
}

TEST(Shares, deal_out_each_index_once_to_any_number_of_threads) {
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    for (int round = 0; round < 100; ++round) {
      constexpr std::int64_t kCount = 1000;
      std::vector<std::atomic<int>> times(kCount);
      Shares shares = round % 2 == 0 ? Shares(kCount, threads) : Shares(kCount, threads, 3);
      parallel_for(threads, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t part = begin; part < end; ++part)
          while (const Shares::Range one = shares.next(static_cast<int>(part)))
            for (std::int64_t i = one.begin; i < one.end; ++i) ++times[static_cast<std::size_t>(i)];
      });
      for (const auto& one : times) ASSERT_EQ(one.load(), 1);
    }
  }
  set_num_threads(0);  // the default again
}

}  // namespace
}  // namespace tmaops
