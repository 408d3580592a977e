#include "core/registry.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/as_if_built.hpp"
#include "support/expect_error.hpp"
#include "support/gpus.hpp"

namespace tmaops::ops::toy {

struct Problem {
  int size = 0;
  std::string text() const { return "toy: {size: " + std::to_string(size) + "}"; }
};
struct Arguments {
  int* out = nullptr;
};
using Config = OneWay;

#define TMAOPS_VARIANTS_INC "core/registry_test_variants.inc"
#include "core/operator_table.inc"

Support on_gpu::supports(const Problem&, const DeviceInfo&) { return Support::yes(); }
Support even::supports(const Problem& problem, const DeviceInfo&) {
  return problem.size % 2 == 0 ? Support::yes() : Support::no("size is odd");
}
Work even::plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return Work([out = arguments.out, size = problem.size] { *out = size * 10; });
}
Support reference::supports(const Problem& problem, const DeviceInfo&) {
  return problem.size >= 0 ? Support::yes() : Support::no("size is negative");
}
Work reference::plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return Work([out = arguments.out, size = problem.size] { *out = size; });
}

}  // namespace tmaops::ops::toy

namespace tmaops {
namespace {

using ops::toy::Problem;
using ops::toy::variants;
using test::expect_error;

const DeviceInfo& cpu() { return device_info({}); }

TEST(Registry, takes_the_first_variant_that_supports_the_problem) {
  EXPECT_EQ(first_variant(variants(), Problem{4}, cpu()).name, "even");
  EXPECT_EQ(first_variant(variants(), Problem{3}, cpu()).name, "reference");
}

TEST(Registry, a_variant_without_kernels_can_be_asked_and_not_run) {
  const DeviceInfo gpu = test::made_up_gpu(90);
  EXPECT_EQ(try_variant(variants()[0], Problem{4}, gpu).reason, "built without CUDA");
  const auto table = test::as_if_built(variants());
  EXPECT_TRUE(try_variant(table[0], Problem{4}, gpu));
  EXPECT_EQ(try_variant(table[1], Problem{4}, cpu()).reason, "somelib was not found");
}

TEST(Registry, lists_every_line_with_its_attributes) {
  const std::vector<VariantInfo> list = ops::toy::variant_list();
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list[0].name, "on_gpu");
  EXPECT_EQ(list[0].device, DeviceType::cuda);
  EXPECT_EQ(list[0].version, 2);
  EXPECT_FALSE(list[0].built);
  EXPECT_EQ(variants()[0].attributes.registers, 168);
  EXPECT_EQ(variants()[0].attributes.sass, "UTMALDG,HGMMA");
  EXPECT_EQ(variants()[1].attributes.needs, "somelib");
  EXPECT_EQ(list[1].missing, "somelib was not found");
  EXPECT_TRUE(list[2].built);
}

TEST(Registry, a_plan_runs_as_often_as_one_likes) {
  int out = 0;
  const Work work = first_variant(variants(), Problem{4}, cpu()).plan(Problem{4}, {.out = &out}, {});
  for (int i = 0; i < 2; ++i) {
    out = 0;
    work.run(nullptr);
    EXPECT_EQ(out, 40);
  }
}

TEST(Registry, refusals_come_in_words) {
  expect_error(
      ErrorCode::variant_refuses, [] { named_variant(variants(), "even", Problem{3}, cpu()); }, "even", "size is odd",
      "toy: {size: 3}");
  expect_error(
      ErrorCode::variant_refuses, [] { named_variant(variants(), "with_library", Problem{3}, cpu()); },
      "somelib was not found");
  expect_error(
      ErrorCode::unknown_variant, [] { named_variant(variants(), "odd", Problem{3}, cpu()); }, "'odd'",
      "on_gpu, with_library, even, reference");
  expect_error(
      ErrorCode::variant_refuses, [] { first_variant(variants(), Problem{-1}, cpu()); }, "size is odd",
      "size is negative", "without CUDA");
}

}  // namespace
}  // namespace tmaops
