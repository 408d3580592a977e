#include <gtest/gtest.h>

#include <set>

#include "probe/descriptors.hpp"

namespace tmaops::probe {
namespace {

using tma::ElementType;
using tma::find_violations;
using tma::Findings;
using tma::Interleave;
using tma::kHopper;
using tma::TensorMapSpec;

TEST(Quirks, names_are_unique_and_the_driver_is_named) {
  std::set<std::string_view> ids;
  for (const Quirk& quirk : quirks()) {
    EXPECT_TRUE(ids.insert(quirk.id).second) << quirk.id << " twice";
    EXPECT_FALSE(quirk.text.empty()) << quirk.id;
    EXPECT_NE(quirk.driver, tma::Driver::not_asked) << quirk.id;
  }
}

TEST(Quirks, interleave_with_another_swizzle_is_one_only_when_nothing_else_is_wrong) {
  TensorMapSpec spec = tiled_spec(ElementType::f16, {64, 32, 8}, {16, 2, 2});
  spec.interleave = Interleave::b32;
  const Quirk* found = quirk_of(spec, find_violations(spec, kHopper), true);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->id, "interleave_32_any_swizzle");
  EXPECT_EQ(quirk_of(spec, find_violations(spec, kHopper), false), nullptr);
  spec.box[1] = 0;
  EXPECT_EQ(quirk_of(spec, find_violations(spec, kHopper), true), nullptr);
}

TEST(Quirks, loads_too_large_for_the_hardware_pass_where_the_driver_rounds_down) {
  // 20 x 256 x 3 x 4 elements are loaded, 20 x 256 x 2 x 4 counted.
  TensorMapSpec spec = tiled_spec(ElementType::u32, {200, 5, 20, 5}, {20, 256, 16, 4});
  spec.element_strides = {1, 1, 7, 1};
  const Findings found = find_violations(spec, kHopper);
  ASSERT_TRUE(found.has_errors());
  ASSERT_NE(quirk_of(spec, found, true), nullptr);
  EXPECT_EQ(quirk_of(spec, found, true)->id, "element_strides_round_down");
  spec.box[2] = 21;  // 20 x 256 x 3 x 4 either way
  EXPECT_EQ(quirk_of(spec, find_violations(spec, kHopper), true), nullptr);
  spec.element_strides = {1, 1, 8, 1};
  spec.box = {60, 256, 7, 256};  // fewer than one stride: counted as nothing
  EXPECT_NE(quirk_of(spec, find_violations(spec, kHopper), true), nullptr);
  spec.element_strides = {1, 1, 1, 8};
  spec.box = {60, 256, 16, 7};  // the zero comes last
  EXPECT_NE(quirk_of(spec, find_violations(spec, kHopper), true), nullptr);
}

}  // namespace
}  // namespace tmaops::probe
