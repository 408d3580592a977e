#include <gtest/gtest.h>

#include "probe/random_spec.hpp"

namespace tmaops::tma {
namespace {

Proposal proposal_for(const TensorMapSpec& spec) {
  const Report report = check(spec);
  EXPECT_FALSE(report.valid()) << spec.text();
  if (report.proposal) return *report.proposal;
  ADD_FAILURE() << "no proposal for " << spec.text() << "\n" << report.text();
  return {};
}

// The program whose every descriptor failed with CUDA_ERROR_INVALID_VALUE: a 92 x 160 map of 32 channels.
TEST(Repair, the_published_failure_is_explained_and_reversed) {
  TensorMapSpec spec;
  spec.dtype = ElementType::f16;
  spec.dims = {92, 160, 32};
  spec.strides = {160 * 32 * 2, 32 * 2};
  spec.box = {2, 2, 32};
  const Report report = check(spec);
  ASSERT_EQ(report.errors.size(), 1U) << report.text();
  EXPECT_EQ(report.errors[0].text, "inner box 2 x 2 B = 4 B, not a multiple of 16 B");
  ASSERT_TRUE(report.proposal);
  EXPECT_EQ(report.proposal->spec.box, (std::vector<std::int64_t>{32, 2, 2}));
  EXPECT_EQ(report.proposal->spec.dims, (std::vector<std::int64_t>{32, 160, 92}));
  EXPECT_EQ(report.proposal->spec.strides, (std::vector<std::int64_t>{64, 10240}));
  EXPECT_NE(report.proposal->change.find("dimensions look outermost first"), std::string::npos);
  EXPECT_NE(report.text().find("box {32, 2, 2}"), std::string::npos) << report.text();
  EXPECT_TRUE(check(report.proposal->spec).valid());
}

// The author's observations: 8 x 8 x 32 passes, 4 x 4 x 32 and 2 x 2 x 16 do not.
TEST(Repair, the_same_programs_other_boxes_follow_the_rule) {
  const auto valid = [](std::vector<std::int64_t> box) {
    return check(tiled_spec(ElementType::f16, {96, 160, 32}, std::move(box))).valid();
  };
  EXPECT_TRUE(valid({8, 8, 32}));
  EXPECT_FALSE(valid({4, 4, 32}));
  EXPECT_FALSE(valid({2, 2, 16}));
  EXPECT_TRUE(check(tiled_spec(ElementType::f16, {32, 160, 92}, {32, 2, 2})).valid());
}

TEST(Repair, odd_pitch_is_padded_through_all_dimensions) {
  const Proposal proposal = proposal_for(tiled_spec(ElementType::f16, {33, 10, 4}, {8, 2, 2}));
  EXPECT_EQ(proposal.spec.strides, (std::vector<std::int64_t>{80, 800}));
  EXPECT_NE(proposal.change.find("rows padded to a multiple of 16 B"), std::string::npos);
}

TEST(Repair, a_row_wider_than_the_swizzle_takes_the_next_span_or_is_split) {
  TensorMapSpec spec = tiled_spec(ElementType::f16, {64, 64}, {32, 8});
  spec.swizzle = Swizzle::b32;
  EXPECT_EQ(proposal_for(spec).spec.swizzle, Swizzle::b64);
  spec = tiled_spec(ElementType::f16, {256, 64}, {128, 8});
  spec.swizzle = Swizzle::b128;
  const Proposal split = proposal_for(spec);
  EXPECT_EQ(split.spec.box, (std::vector<std::int64_t>{64, 8}));
  EXPECT_NE(split.change.find("2 loads instead of one"), std::string::npos) << split.change;
}

TEST(Repair, a_box_of_more_than256_is_split) {
  EXPECT_EQ(proposal_for(tiled_spec(ElementType::u8, {1024, 1024}, {256, 512})).spec.box[1], 256);
  EXPECT_EQ(proposal_for(tiled_spec(ElementType::u8, {1024, 1024}, {16, 300})).spec.box[1], 150);
}

TEST(Repair, a_short_inner_box_is_rounded_up) {
  const Proposal proposal = proposal_for(tiled_spec(ElementType::f32, {64, 7}, {3, 7}));
  EXPECT_EQ(proposal.spec.box, (std::vector<std::int64_t>{4, 7}));
}

TEST(Repair, several_repairs_go_together) {
  TensorMapSpec spec = tiled_spec(ElementType::i32, {33, 10}, {3, 2});
  spec.fill = Fill::nan;
  const Proposal proposal = proposal_for(spec);
  EXPECT_EQ(proposal.spec.strides[0], 144);
  EXPECT_EQ(proposal.spec.box[0], 4);
  EXPECT_EQ(proposal.spec.fill, Fill::zero);
}

TEST(Repair, a_stride_list_with_the_innermost_stride_loses_it) {
  TensorMapSpec spec = tiled_spec(ElementType::f16, {64, 8}, {64, 8});
  spec.strides = {2, 144};
  EXPECT_EQ(proposal_for(spec).spec.strides, (std::vector<std::int64_t>{144}));
}

TEST(Repair, nothing_is_proposed_for_an_empty_tensor) {
  const Report report = check(tiled_spec(ElementType::f16, {64, 0}, {64, 1}));
  EXPECT_FALSE(report.valid());
  EXPECT_FALSE(report.proposal);
}

TEST(Repair, an_unaligned_view_is_to_be_moved) {
  TensorMapSpec spec = tiled_spec(ElementType::f16, {64, 8}, {64, 8});
  spec.address = 0x7f0000000002;
  EXPECT_NE(proposal_for(spec).change.find("multiple of 16"), std::string::npos);
}

TEST(Repair, every_proposal_keeps_the_rules_and_differs_from_what_was_asked) {
  probe::RandomSpecs random({.seed = 11, .blackwell = true});
  int proposals = 0;
  for (int i = 0; i < 20000; ++i) {
    const TensorMapSpec spec = random.near_edge();
    const Report report = check(spec, 100);
    if (report.valid()) {
      EXPECT_FALSE(report.proposal);
      continue;
    }
    if (!report.proposal) continue;
    ++proposals;
    ASSERT_TRUE(check(report.proposal->spec, 100).valid()) << spec.text() << "\n" << report.text();
    ASSERT_NE(report.proposal->spec, spec);
    ASSERT_FALSE(report.proposal->change.empty());
  }
  EXPECT_GT(proposals, 4000);
}

TEST(Repair, an_im2col_map_keeps_its_swizzle_and_takes_two_loads) {
  TensorMapSpec spec;
  spec.mode = Mode::im2col;
  spec.dims = {128, 32, 16, 4};
  spec.strides = dense_strides(spec.dtype, spec.dims);
  spec.lower_corner = spec.upper_corner = {-1, -1};
  spec.channels_per_pixel = 128;
  spec.pixels_per_column = 64;
  spec.swizzle = Swizzle::b128;
  const Report report = check(spec);
  ASSERT_TRUE(report.proposal);
  EXPECT_EQ(report.proposal->change, "channels_per_pixel 64, 2 loads instead of one");
  EXPECT_EQ(report.proposal->spec.swizzle, Swizzle::b128);
  EXPECT_EQ(report.proposal->spec.channels_per_pixel, 64);
}

TEST(Repair, the_stride_of_a_dimension_of_one_element_moves_no_other) {
  TensorMapSpec spec = tiled_spec(ElementType::bf16, {64, 16, 1, 1000}, {64, 16, 1, 1});  // one head of keys
  spec.strides = {128, 2, 4096};
  const Report report = check(spec);
  ASSERT_TRUE(report.proposal);
  EXPECT_EQ(report.proposal->spec.strides, (std::vector<std::int64_t>{128, 16, 4096}));
}

}  // namespace
}  // namespace tmaops::tma
