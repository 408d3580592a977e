#include "tmaops/error.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace tmaops {
namespace {

TEST(ErrorCatalogue, is_ordered_complete_and_has_known_exit_codes) {
  std::string_view previous;
  std::set<std::string_view> names;
  for (const ErrorPage& page : error_catalogue()) {
    EXPECT_LT(previous, page.number);
    previous = page.number;
    EXPECT_TRUE(names.insert(page.name).second) << page.name;
    EXPECT_EQ(page.number.size(), 4U);
    EXPECT_FALSE(page.title.empty() || page.explanation.empty() || page.mend.empty()) << page.number;
    EXPECT_TRUE((std::set{1, 2, 3, 4, 5, 130}).contains(page.exit_code)) << page.number;
    EXPECT_EQ(&error_page(page.code), &page);
  }
}

TEST(ErrorCatalogue, numbers_never_change) {
  // Programs in other languages hold these numbers: a line may be added here, none may change or go.
  const std::map<std::string, int> pinned{{"internal", 1},
                                          {"shape_mismatch", 10},
                                          {"unsupported_dtype", 11},
                                          {"dtype_mismatch", 12},
                                          {"device_mismatch", 13},
                                          {"bad_strides", 14},
                                          {"overlap", 15},
                                          {"null_pointer", 16},
                                          {"size_overflow", 17},
                                          {"bad_parameter", 18},
                                          {"misaligned", 19},
                                          {"level_shapes_mismatch", 20},
                                          {"bad_level_start", 21},
                                          {"empty_level", 22},
                                          {"points_mismatch", 23},
                                          {"unknown_variant", 24},
                                          {"variant_refuses", 25},
                                          {"times_not_sorted", 30},
                                          {"times_not_finite", 31},
                                          {"duplicate_times", 32},
                                          {"empty_trajectory", 33},
                                          {"target_outside", 34},
                                          {"time_precision", 35},
                                          {"time_overflow", 36},
                                          {"bad_column_mode", 37},
                                          {"bad_quaternion", 38},
                                          {"bad_offsets", 39},
                                          {"cannot_read", 40},
                                          {"bad_format", 41},
                                          {"bad_npy_header", 42},
                                          {"pickle_refused", 43},
                                          {"unsupported_file_dtype", 44},
                                          {"file_too_large", 45},
                                          {"bad_archive", 46},
                                          {"zip_bomb", 47},
                                          {"bad_member_name", 48},
                                          {"array_missing", 49},
                                          {"output_exists", 50},
                                          {"output_is_input", 51},
                                          {"cannot_write", 52},
                                          {"write_failed", 53},
                                          {"output_locked", 54},
                                          {"bad_text", 55},
                                          {"yaml_syntax", 60},
                                          {"unknown_key", 61},
                                          {"duplicate_key", 62},
                                          {"wrong_type", 63},
                                          {"bad_value", 64},
                                          {"unknown_case", 65},
                                          {"bad_tuning", 66},
                                          {"no_driver", 70},
                                          {"driver_too_old", 71},
                                          {"no_device", 72},
                                          {"device_hidden", 73},
                                          {"wrong_architecture", 74},
                                          {"cuda_failed", 75},
                                          {"earlier_cuda_error", 76},
                                          {"no_cuda_build", 77},
                                          {"no_executor_build", 78},
                                          {"out_of_memory", 80},
                                          {"device_out_of_memory", 81},
                                          {"verification_failed", 90},
                                          {"slower_than_base", 91},
                                          {"interrupted", 92},
                                          {"finished_in_part", 93},
                                          {"kernel_breaks_rule", 94},
                                          {"usage", 100},
                                          {"bad_environment", 101},
                                          {"warnings_refused", 102},
                                          {"bad_tensor_map", 110},
                                          {"tensor_map_refused", 111},
                                          {"tile_not_modelled", 112},
                                          {"bad_tile_load", 113}};
  for (const ErrorPage& page : error_catalogue()) {
    const std::string name(page.name);
    ASSERT_TRUE(pinned.contains(name)) << name << " is new: pin its number";
    EXPECT_EQ(static_cast<int>(page.code), pinned.at(name)) << name;
    EXPECT_EQ(std::stoi(std::string(page.number.substr(1))), pinned.at(name)) << name;
    EXPECT_EQ(Error(page.code, {.where = "", .got = "", .needed = ""}).value(), pinned.at(name)) << name;
  }
  EXPECT_LE(pinned.size(), error_catalogue().size()) << "an error is gone";
}

TEST(ErrorCatalogue, a_value_that_is_no_code_has_the_page_of_an_internal_error) {
  for (const int value : {-1, 0, 2, 9, 999})
    EXPECT_EQ(error_page(static_cast<ErrorCode>(value)).code, ErrorCode::internal) << value;
}

TEST(Error, message_has_all_its_parts) {
  const Error error(ErrorCode::dtype_mismatch, {.where = "gemm: b", .got = "bf16", .needed = "f16, as a"});
  const std::string message = error.what();
  for (const char* piece : {"E012", "gemm: b", "bf16", "f16, as a"})
    EXPECT_NE(message.find(piece), std::string::npos) << piece;
  EXPECT_EQ(error.exit_code(), 2);
  EXPECT_EQ(error.value(), 12);
}

TEST(Error, copies_share_the_details) {
  const Error error(ErrorCode::overlap, {.where = "gemm: d", .got = "memory that a uses too", .needed = ""});
  static_assert(std::is_nothrow_copy_constructible_v<Error>);
  const Error copy = error;
  EXPECT_EQ(&copy.details(), &error.details());
  EXPECT_STREQ(copy.what(), error.what());
}

TEST(Catalogue, no_mend_only_points_to_the_message) {
  for (const ErrorPage& page : error_catalogue()) {
    const std::string_view mend = page.mend;
    const bool points =
        mend.starts_with("See the ") || mend.starts_with("The message has") || mend.starts_with("The message lists");
    EXPECT_FALSE(points && mend.find(';') == mend.npos) << page.number << ": " << mend;
  }
}

}  // namespace
}  // namespace tmaops
