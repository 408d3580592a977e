// Options that grow: callers with an older or a newer header than the library.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "c_api/arguments.hpp"
#include "c_api/c_tensors.hpp"
#include "support/expect_error.hpp"
#include "tmaops/gemm.hpp"
#include "tmaops/ms_deform_attn.hpp"

namespace tmaops::c_api_test {
namespace {

using test::expect_error;

const c_api::Arguments kOptions("gemm");

// Programs are compiled against these numbers: a struct may grow at its end, and nothing else may change.
static_assert(sizeof(tmaops_uniform_grid) == 40 && sizeof(tmaops_channel_group) == 24);
static_assert(sizeof(tmaops_level_shape) == 16 && sizeof(tmaops_ms_deform_attn_gradients) == 24);
static_assert(offsetof(tmaops_error, number) == 8 && offsetof(tmaops_error, message) == 56);
static_assert(offsetof(tmaops_variant, missing) == 24 && offsetof(tmaops_variant, version) == 36);
static_assert(offsetof(tmaops_named_dtype, dtype) == 8);

tmaops_gemm_options read(const tmaops_gemm_options* given) {
  return kOptions.options<tmaops_gemm_options>(given, TMAOPS_GEMM_OPTIONS);
}

TEST(COptions, stand_where_programs_that_were_compiled_before_expect_them) {
  using Offsets = std::vector<std::pair<std::string, std::int64_t>>;
  const std::map<std::string, Offsets> known = {{"gemm",
                                                 {{"alpha", 8},
                                                  {"beta", 12},
                                                  {"c", 16},
                                                  {"bias", 24},
                                                  {"bias_axis", 32},
                                                  {"activation", 36},
                                                  {"dependent_launch", 40},
                                                  {"variant", 48},
                                                  {"tuning", 56},
                                                  {"allocator", 64}}},
                                                {"ms_deform_attn",
                                                 {{"level_start_index", 8},
                                                  {"points_per_level", 16},
                                                  {"sampling", 24},
                                                  {"softmax", 28},
                                                  {"reference_points", 32},
                                                  {"padding_mask", 40},
                                                  {"bordered_value", 48},
                                                  {"deterministic", 52},
                                                  {"dependent_launch", 56},
                                                  {"variant", 64},
                                                  {"offset_scale", 72},
                                                  {"spatial_shapes", 80},
                                                  {"level_starts", 88},
                                                  {"allocator", 96}}},
                                                {"resample",
                                                 {{"interpolation", 8},
                                                  {"outside", 12},
                                                  {"duplicates", 16},
                                                  {"dependent_launch", 20},
                                                  {"channel_groups", 24},
                                                  {"channel_group_count", 32},
                                                  {"max_gap", 40},
                                                  {"source_offsets", 56},
                                                  {"source_offset_count", 64},
                                                  {"target_offsets", 72},
                                                  {"target_offset_count", 80},
                                                  {"valid", 88},
                                                  {"variant", 96},
                                                  {"allocator", 104},
                                                  {"source_offset_tensor", 112},
                                                  {"target_offset_tensor", 120},
                                                  {"values", 128}}}};
  for (const auto& [op, wanted] : known) {
    Offsets found;
    for (std::int64_t i = 0; const tmaops_option* option = tmaops_option_at(op.c_str(), i); ++i)
      found.emplace_back(option->name, option->offset);
    ASSERT_GE(found.size(), wanted.size());
    found.resize(wanted.size());  // new ones stand behind them
    EXPECT_EQ(found, wanted) << op;
  }
  EXPECT_EQ(tmaops_option_at("resample_backward", 0), nullptr);
}

TEST(COptions, are_told_with_their_words_and_defaults) {
  const tmaops_option* alpha = tmaops_option_at("gemm", 0);
  EXPECT_STREQ(alpha->kind, "f32");
  EXPECT_STREQ(alpha->torch, "none");
  EXPECT_EQ(alpha->initial, 1);
  EXPECT_EQ(alpha->words, nullptr);
  const tmaops_option* interpolation = tmaops_option_at("resample", 0);
  EXPECT_STREQ(interpolation->kind, "word");
  EXPECT_STREQ(interpolation->torch, "both");
  EXPECT_STREQ(interpolation->words[tmaops_interpolation_lowpass], "lowpass");
  EXPECT_EQ(interpolation->words[tmaops_interpolation_lowpass + 1], nullptr);
}

TEST(COptions, null_means_the_defaults_and_the_initialisers_are_those) {
  EXPECT_EQ(read(nullptr).alpha, GemmOptions().alpha);
  EXPECT_EQ(read(nullptr).beta, GemmOptions().beta);
  const tmaops_ms_deform_attn_options attention = TMAOPS_MS_DEFORM_ATTN_OPTIONS;
  tmaops_ms_deform_attn_options zeros{};
  zeros.size = sizeof(zeros);
  constexpr std::size_t kGap = offsetof(tmaops_ms_deform_attn_options, dependent_launch) + sizeof(std::int32_t);
  EXPECT_EQ(std::memcmp(&attention, &zeros, kGap), 0);
  EXPECT_EQ(attention.variant, nullptr);
  EXPECT_EQ(attention.offset_scale, MsDeformAttnOptions().offset_scale);
  EXPECT_EQ(attention.spatial_shapes, nullptr);
  EXPECT_EQ(attention.level_starts, nullptr);
  const tmaops_resample_options resampling = TMAOPS_RESAMPLE_OPTIONS;
  tmaops_resample_options nothing{};
  nothing.size = sizeof(nothing);
  EXPECT_EQ(std::memcmp(&resampling, &nothing, sizeof(nothing)), 0);
}

TEST(COptions, fields_that_an_older_caller_does_not_have_are_defaults) {
  tmaops_gemm_options older = TMAOPS_GEMM_OPTIONS;
  older.size = offsetof(tmaops_gemm_options, variant);
  older.beta = 2;
  older.activation = tmaops_activation_silu;
  older.variant = "not read";
  const tmaops_gemm_options got = read(&older);
  EXPECT_EQ(got.beta, 2);
  EXPECT_EQ(got.activation, tmaops_activation_silu);
  EXPECT_EQ(got.variant, nullptr);
}

TEST(COptions, fields_of_a_newer_caller_must_be_zero) {
  struct {
    tmaops_gemm_options known = TMAOPS_GEMM_OPTIONS;
    long later = 0;
  } newer;
  newer.known.size = sizeof(newer);
  newer.known.beta = 2;
  EXPECT_EQ(read(&newer.known).beta, 2);
  newer.later = 1;
  expect_error(ErrorCode::bad_parameter, [&] { read(&newer.known); }, "gemm: options", "later version");
}

TEST(COptions, a_size_that_was_not_set_is_refused) {
  tmaops_gemm_options options = TMAOPS_GEMM_OPTIONS;
  for (const std::size_t size : {std::size_t{0}, std::size_t{4}, std::size_t{5000}, SIZE_MAX}) {
    options.size = size;
    expect_error(ErrorCode::bad_parameter, [&] { read(&options); }, "gemm: options.size", std::to_string(size));
  }
}

TEST(COptions, numbers_that_are_no_enumerators_are_refused_by_name) {
  const CTensor<float> a({1, 1}, {1});
  CTensor<float> d({1, 1});
  for (const std::int32_t number : {-1, 4, 255, 256, INT32_MAX, INT32_MIN}) {
    tmaops_gemm_options options = TMAOPS_GEMM_OPTIONS;
    options.activation = number;
    expect_failed(tmaops_gemm(a, a, d, &options, nullptr), tmaops_error_bad_parameter, "gemm: activation");
  }
}

TEST(COptions, a_time_is_in_one_unit) {
  EXPECT_EQ(std::get<double>(kOptions.time("max_gap", {0.5, 0})), 0.5);
  EXPECT_EQ(std::get<std::int64_t>(kOptions.time("max_gap", {0, 5})), 5);
  EXPECT_EQ(std::get<double>(kOptions.time("max_gap", {0, 0})), 0);
  expect_error(ErrorCode::bad_parameter, [] { kOptions.time("max_gap", {0.5, 5}); }, "gemm: max_gap");
}

TEST(COptions, lists_have_no_negative_length_and_memory_behind_them) {
  const int one = 1;
  EXPECT_EQ(kOptions.list("levels", &one, 1).size(), 1U);
  EXPECT_TRUE(kOptions.list<int>("levels", nullptr, 0).empty());
  expect_error(ErrorCode::bad_parameter, [&] { kOptions.list("levels", &one, -1); }, "gemm: levels", "-1 entries");
  expect_error(ErrorCode::null_pointer, [] { kOptions.list<int>("levels", nullptr, 2); }, "gemm: levels");
}

}  // namespace
}  // namespace tmaops::c_api_test
