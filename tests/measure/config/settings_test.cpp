#include "config/settings.hpp"

#include <gtest/gtest.h>

#include "core/spelling.hpp"
#include "support/expect_error.hpp"

namespace tmaops {
namespace {

using test::expect_error;

Settings one(std::string name, std::string value, bool quoted = false) {
  Settings settings("gemm", {"a.yaml", 2, 1});
  settings.add({std::move(name), std::move(value), {"a.yaml", 3, 7}, quoted});
  return settings;
}

TEST(Settings, numbers_are_read_with_their_range) {
  EXPECT_EQ(one("m", "256").integer("m", 1, 0, 1024), 256);
  EXPECT_EQ(one("m", "256").integer("k", 7, 0, 1024), 7);
  EXPECT_EQ(one("x", "1e-3").number("x", 0, 0, 1), 1e-3);
  expect_error(
      ErrorCode::bad_value, [] { one("m", "2000").integer("m", 1, 0, 1024); }, "a.yaml:3:7", "2000", "0 to 1024");
  expect_error(ErrorCode::bad_value, [] { one("x", "nan").number("x", 0, 0, 1); }, "'nan'");
  expect_error(ErrorCode::bad_value, [] { one("m", "99999999999999999999").integer("m", 1, 0, 1024); });
}

TEST(Settings, words_are_no_numbers) {
  expect_error(ErrorCode::wrong_type, [] { one("m", "many").integer("m", 1, 0, 9); }, "'many'");
  expect_error(ErrorCode::wrong_type, [] { one("m", "1.5").integer("m", 1, 0, 9); });
  expect_error(ErrorCode::wrong_type, [] { one("m", "+-5").integer("m", 1, -9, 9); });
  expect_error(ErrorCode::wrong_type, [] { one("m", "5", true).integer("m", 1, 0, 9); });
  expect_error(ErrorCode::wrong_type, [] { one("x", "1,5").number("x", 0, 0, 9); });
  expect_error(ErrorCode::wrong_type, [] { one("b", "yes").boolean("b", false); }, "true or false");
}

TEST(Settings, what_is_wrong_with_a_number_is_said) {
  expect_error(ErrorCode::wrong_type, [] { one("m", "1e3").integer("m", 1, 0, 9999); }, "'1e3'", "without exponent");
  expect_error(ErrorCode::wrong_type, [] { one("m", "8.0").integer("m", 1, 0, 9999); }, "decimal point");
  for (const auto& read : {+[](const Settings& settings) { settings.integer("m", 1, 0, 99); },
                           +[](const Settings& settings) { settings.number("m", 1, 0, 99); },
                           +[](const Settings& settings) { settings.boolean("m", false); }})
    expect_error(ErrorCode::wrong_type, [&] { read(one("m", "20", true)); }, "Leave out the quotes");
}

TEST(Settings, values_of_others_are_shown_without_controls_and_shortened) {
  try {
    one("m", "\033]0;title\a" + std::string(100'000, 'x')).integer("m", 1, 0, 9);
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("\\x1b]0;title\\x07xxx"), std::string::npos) << text;
    EXPECT_EQ(text.find('\033'), std::string::npos);
    EXPECT_LT(text.size(), 1000U);
  }
}

TEST(Settings, choices_name_the_nearest_word) {
  EXPECT_EQ(one("bias", "row").choice("bias", "none", {"none", "column", "row"}), 2);
  expect_error(
      ErrorCode::bad_value, [] { one("bias", "colunm").choice("bias", "none", {"none", "column", "row"}); },
      "Did you mean 'column'?");
}

TEST(Settings, unknown_keys_name_the_nearest_one) {
  expect_error(
      ErrorCode::unknown_key, [] { one("actvation", "relu").only({"activation", "size"}); }, "a.yaml:3:7",
      "Did you mean 'activation'?");
}

TEST(Settings, text_is_the_configurations_syntax) {
  Settings settings("resample", {});
  settings.add({"case", "32,500->256,256", {}, true});
  settings.add({"variant", "simd"});
  settings.add({"dtype", "f32"});
  settings.add({"variant", "reference"});
  EXPECT_EQ(settings.to_text(), "resample: {case: \"32,500->256,256\", variant: [simd, reference], dtype: f32}");
}

TEST(Spelling, finds_the_nearest_name_or_none) {
  const std::string_view names[] = {"gemm", "resample", "ms_deform_attn"};
  EXPECT_EQ(did_you_mean("gem", names), "Did you mean 'gemm'?");
  EXPECT_EQ(did_you_mean("resmaple", names), "Did you mean 'resample'?");
  EXPECT_EQ(did_you_mean("convolution", names), "");
}

}  // namespace
}  // namespace tmaops
