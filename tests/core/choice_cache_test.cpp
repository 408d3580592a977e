// Choices are remembered by everything they depend on, in bounded memory, by any number of threads.
#include "core/choice_cache.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tmaops::choice_cache_test {
namespace {

struct Problem {
  int size = 0;
  friend bool operator==(const Problem&, const Problem&) = default;
};
std::size_t hash_of(const Problem& problem) { return hash_numbers(problem.size); }

using Cache = ChoiceCache<int, Problem>;

DeviceInfo gpu(int multiprocessors) { return {.device = {DeviceType::cuda, 0}, .multiprocessors = multiprocessors}; }

TEST(ChoiceCache, a_call_like_an_earlier_one_chooses_nothing) {
  Cache cache;
  int made = 0;
  const auto choose = [&] { return ++made; };
  const int table = 0;
  EXPECT_EQ(cache.get({1}, gpu(1), {}, choose), 1);
  EXPECT_EQ(cache.get({1}, gpu(1), {}, choose), 1);
  EXPECT_EQ(cache.get({2}, gpu(1), {}, choose), 2) << "another problem";
  EXPECT_EQ(cache.get({1}, gpu(2), {}, choose), 3) << "another device";
  EXPECT_EQ(cache.get({1}, gpu(1), {.name = "a"}, choose), 4) << "a named variant";
  EXPECT_EQ(cache.get({1}, gpu(1), {.table = &table}, choose), 5) << "another table of measured choices";
  EXPECT_EQ(cache.get({1}, gpu(1), {}, choose), 1) << "four of one hash are kept";
  EXPECT_EQ(cache.get({1}, gpu(1), {.name = "b"}, choose), 6);
  EXPECT_EQ(cache.get({1}, gpu(1), {.name = "a"}, choose), 4);
  EXPECT_EQ(cache.get({1}, gpu(1), {}, choose), 7) << "the oldest had to go";
}

TEST(ChoiceCache, a_choice_that_fails_is_made_again) {
  Cache cache;
  const auto fail = [&]() -> int { throw std::runtime_error("no"); };
  EXPECT_THROW(cache.get({1}, gpu(1), {}, fail), std::runtime_error);
  EXPECT_THROW(cache.get({1}, gpu(1), {}, fail), std::runtime_error);
  EXPECT_EQ(cache.size(), 0);
  EXPECT_EQ(cache.get({1}, gpu(1), {}, [] { return 8; }), 8);
}

TEST(ChoiceCache, is_bounded) {
  Cache cache;
  for (int size = 0; size < 100'000; ++size) EXPECT_EQ(cache.get({size}, gpu(1), {}, [&] { return size; }), size);
  EXPECT_EQ(cache.size(), Cache::kSets * Cache::kWays) << "and every place is used";
  int made = 0;
  EXPECT_EQ(cache.get({99'999}, gpu(1), {}, [&] { return ++made; }), 99'999) << "the newest is there";
  cache.get({0}, gpu(1), {}, [&] { return ++made; });
  EXPECT_EQ(made, 1) << "the oldest is not";
}

TEST(ChoiceCache, threads_get_what_belongs_to_their_problem) {
  Cache cache;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 5'000; ++i) {
        const int size = (i * 7 + thread) % 400;  // more than it holds, and often what another thread asks for
        if (cache.get({size}, gpu(1), {}, [&] { return 3 * size; }) != 3 * size) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache.size(), Cache::kSets * Cache::kWays);
}

}  // namespace
}  // namespace tmaops::choice_cache_test
