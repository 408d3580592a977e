// What the check catches, on a workload whose variant can be told to go wrong.
#include "bench/workloads/workload.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "bench/measure/implementation.hpp"
#include "bench/workloads/random.hpp"
#include "support/expect_error.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::bench {
namespace {

/// output = 2 * input.
class Doubling : public Workload {
 public:
  explicit Doubling(DType dtype)
      : Workload(
            {.op = "doubling", .name = "8x4", .dtype = "f32", .floor_bytes = 256},
            {{"input", DType::f32, Layout::contiguous({8, 4})}, {"output", dtype, Layout::contiguous({8, 4}), true}}) {}
  std::vector<VariantChoice> variants() const override { return {}; }
  std::string selected() const override { return "right"; }
  nlohmann::json peer_parameters() const override { return nlohmann::json::object(); }
  Call bind(const std::string& variant, int set, Launch = Launch::plain) const override {
    return [variant, in = tensor("input", set), out = tensor("output", set)](Stream) {
      const auto* from = static_cast<const float*>(in.data);
      auto* to = static_cast<float*>(out.data);
      for (int i = 0; i < 32; ++i)
        if (variant != "forgets" || i != 13) to[i] = 2 * from[i];
      if (variant == "overruns") to[32] = 0;
      if (variant == "underruns") to[-1] = 0;
      if (variant == "one wrong") to[13] += 1;
      if (variant == "NaN") to[13] = std::numeric_limits<float>::quiet_NaN();
      if (variant == "all a little")
        for (int i = 0; i < 32; ++i) to[i] *= 1.001F;
    };
  }

 protected:
  void fill(std::uint64_t seed) override { fill_normal(tensor("input", 0), seed); }
  std::vector<Expected> reference(std::uint64_t, double) const override {
    Expected expected{"output", {}, {}};
    for (int i = 0; i < 32; ++i) {
      expected.elements.push_back(i);
      expected.values.push_back(2.0 * static_cast<const float*>(tensor("input", 0).data)[i]);
    }
    return {expected};
  }
  double tolerance() const override { return 1e-5; }
};

/// A variant of it may round more.
class CoarseDoubling : public Doubling {
 public:
  using Doubling::Doubling;
  double variant_tolerance(const std::string& variant) const override { return variant == "all a little" ? 2e-3 : 0; }
};

Comparison outcome(const std::string& variant, double tolerance = 0, int sets = 1) {
  Doubling workload(DType::f32);
  workload.prepare(1, sets);
  workload.make_reference(1, 0);
  const auto timer = make_cpu_timer();
  std::vector<Call> calls;
  for (int set = 0; set < sets; ++set) calls.push_back(workload.bind(variant, set));
  return InProcess(variant, Kind::variant, variant, *timer, calls).verify(workload, sets - 1, tolerance);
}

TEST(Check, takes_a_right_result) {
  const Comparison result = outcome("right");
  EXPECT_TRUE(result.ok) << result.problem;
  EXPECT_EQ(result.relative, 0);
  EXPECT_EQ(result.max, 0);
}

TEST(Check, every_set_holds_the_same_data) { EXPECT_TRUE(outcome("right", 0, 3).ok); }

TEST(Check, catches_what_was_not_written) {
  const Comparison result = outcome("forgets");
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.problem, "output[3, 1] was not written");
}

TEST(Check, catches_writes_around_the_output) {
  EXPECT_EQ(outcome("overruns").problem, "wrote outside output");
  EXPECT_EQ(outcome("underruns").problem, "wrote outside output");
}

TEST(Check, catches_one_wrong_element) {
  const Comparison result = outcome("one wrong");
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.problem.find("[3, 1]"), std::string::npos) << result.problem;
  EXPECT_NEAR(result.max, 1, 1e-6);
}

TEST(Check, one_wrong_element_does_not_hide_behind_a_loose_tolerance) {
  EXPECT_FALSE(outcome("one wrong", 1e-3).ok);  // off by half the root mean square
}

TEST(Check, catches_na_n) {
  const Comparison result = outcome("NaN");
  EXPECT_FALSE(result.ok);
  EXPECT_TRUE(std::isfinite(result.relative)) << "the row must stay printable";
}

TEST(Check, the_tolerance_decides) {
  EXPECT_FALSE(outcome("all a little").ok);
  EXPECT_TRUE(outcome("all a little", 2e-3).ok);
  EXPECT_NEAR(outcome("all a little", 2e-3).relative, 1e-3, 1e-6);
}

TEST(Check, a_variant_that_rounds_more_has_a_tolerance_of_its_own) {
  const auto timer = make_cpu_timer();
  for (const std::string variant : {"all a little", "one wrong"}) {
    CoarseDoubling workload(DType::f32);
    workload.prepare(1, 1);
    workload.make_reference(1, 0);
    EXPECT_EQ(InProcess("row", Kind::variant, variant, *timer, {workload.bind(variant, 0)}).verify(workload, 0, 0).ok,
              variant == "all a little");
  }
}

TEST(Workload, sets_added_later_hold_the_same_data) {
  Doubling workload(DType::f32);
  workload.prepare(1, 2);
  workload.make_reference(1, 0);
  workload.add_sets(4);
  workload.add_sets(3);  // already there
  ASSERT_EQ(workload.sets(), 4);
  const auto timer = make_cpu_timer();
  std::vector<Call> calls;
  for (int set = 0; set < 4; ++set) calls.push_back(workload.bind("right", set));
  EXPECT_TRUE(InProcess("right", Kind::variant, "right", *timer, calls).verify(workload, 3, 0).ok);
}

/// Its reference takes an eighth of a second for one element.
class SlowReference : public Doubling {
 public:
  using Doubling::Doubling;
  mutable std::vector<double> asked{};

 protected:
  std::vector<Expected> reference(std::uint64_t, double work) const override {
    asked.push_back(work);
    std::this_thread::sleep_for(std::chrono::milliseconds(125));
    return {{"output", {0}, {0.0}}};
  }
};

TEST(Workload, an_output_that_takes_too_long_to_compare_whole_gets_a_part_of_the_time) {
  SlowReference workload(DType::f32);
  workload.prepare(1, 1);
  workload.make_reference(1, 3);  // all 32 elements take 4 seconds
  ASSERT_GE(workload.asked.size(), 1u);
  EXPECT_LT(workload.asked.back(), 8 * workload.asked.front()) << "all 3 seconds would ask for 23 times as much";
}

TEST(Workload, more_memory_than_there_is_is_an_error) {
  Doubling workload(DType::f32);
  test::expect_error(ErrorCode::out_of_memory, [&] { workload.prepare(1, std::numeric_limits<int>::max()); }, "GiB");
}

TEST(Random, data_does_not_depend_on_the_threads) {
  Buffer one(DType::f32, Layout::contiguous({100000}));
  Buffer many(DType::f32, Layout::contiguous({100000}));
  set_num_threads(1);
  fill_normal(one.view(), 5);
  set_num_threads(4);
  fill_normal(many.view(), 5);
  set_num_threads(0);
  const auto* a = static_cast<const float*>(one.view().data);
  const auto* b = static_cast<const float*>(many.view().data);
  EXPECT_TRUE(std::equal(a, a + 100000, b));
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 100000; ++i) {
    sum += a[i];
    squares += static_cast<double>(a[i]) * a[i];
  }
  EXPECT_NEAR(sum / 100000, 0, 0.02);
  EXPECT_NEAR(squares / 100000, 1, 0.02);
}

}  // namespace
}  // namespace tmaops::bench
