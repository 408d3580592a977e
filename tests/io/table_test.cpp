#include "io/table.hpp"

#include <clocale>
#include <cmath>
#include <locale>

#include "io/decimal.hpp"
#include "support/expect_error.hpp"

namespace tmaops::io {
namespace {

using test::expect_error;

TEST(Table, finds_the_delimiter_and_the_header) {
  const Table comma = parse_table("t,x\n0,1.5\n1,2.5\n", "a.csv");
  EXPECT_EQ(comma.names, (std::vector<std::string>{"t", "x"}));
  EXPECT_EQ(comma.rows(), 2U);
  EXPECT_EQ(parse_table("t;x\r\n0;1\r\n", "a.csv").delimiter, ';');
  const Table blanks = parse_table("# a comment\n\n  0  1.5\t2\n1 2 3", "a.txt");
  EXPECT_EQ(blanks.columns, 3U);
  EXPECT_EQ(blanks.rows(), 2U);
  EXPECT_TRUE(blanks.names.empty());
  EXPECT_EQ(parse_table("\xef\xbb\xbft,x\n0,1\n", "a.csv").names[0], "t");
  EXPECT_EQ(parse_table("0,1,\n1,2,\n", "a.csv").columns, 3U);
}

TEST(Table, a_comment_line_names_the_columns_when_it_fits) {
  EXPECT_EQ(parse_table("#timestamp [ns],p x [m]\n0,1\n", "a.csv").names,
            (std::vector<std::string>{"timestamp [ns]", "p x [m]"}));
  EXPECT_EQ(parse_table("# t x\n0 1\n", "a.txt").names, (std::vector<std::string>{"t", "x"}));
  EXPECT_TRUE(parse_table("# recorded on Monday\n0 1\n", "a.txt").names.empty());
}

TEST(Table, quoted_fields_may_hold_delimiters_and_quotes) {
  const Table table = parse_table("t,label\n0,\"pick, then \"\"place\"\"\"\n1,\"\"\n", "a.csv");
  EXPECT_EQ(table.at(0, 1).text, "pick, then \"place\"");
  EXPECT_EQ(column_array(table, 1).type.kind, ElementKind::text);
  for (const std::string text : {"plain", "a,b", "a\"b", " a", "", "#a", "12", "nan"}) {
    const std::string line = "0," + quoted_field(text, ',') + "\n";
    EXPECT_EQ(parse_table(line, "a.csv").at(0, 1).text, text) << line;
  }
  EXPECT_EQ(quoted_field("plain", ','), "plain");
  expect_error(
      ErrorCode::bad_text, [] { parse_table("t,x\n0,\"a\n", "a.csv"); }, "a.csv:2:3", "quote");
  expect_error(
      ErrorCode::bad_text, [] { parse_table("t,x\n0,\"a\"b\n", "a.csv"); }, "a.csv:2:6");
}

TEST(Table, columns_are_integers_reals_or_text) {
  const Table table = parse_table("i,r,e,n,s\n1,1,,nan,a\n-2,2.5,3,1,b\n", "a.csv");
  EXPECT_EQ(column_array(table, 0).type.descr, "<i8");
  EXPECT_EQ(column_array(table, 1).type.descr, "<f8");
  EXPECT_TRUE(std::isnan(element_f64(column_array(table, 2), 0)));
  EXPECT_TRUE(std::isnan(element_f64(column_array(table, 3), 0)));
  EXPECT_EQ(element_text(column_array(table, 4), 1), "b");
}

TEST(Table, integers_beyond_int64_keep_every_digit_or_are_refused) {
  const Table table =
      parse_table("a,b,c,d\n18446744073709551615,1,-1,1\n0,18446744073709551616,9223372036854775808,1e19\n", "a.csv");
  const Array large = column_array(table, 0);
  EXPECT_EQ(large.type.descr, "<u8");
  EXPECT_EQ(element_i64(large, 0), std::nullopt);
  EXPECT_EQ(element_i64(large, 1), 0);
  expect_error(
      ErrorCode::bad_text, [&] { column_array(table, 1); }, ":3:3", "uint64");
  expect_error(
      ErrorCode::bad_text, [&] { column_array(table, 2); }, ":2:24", "uint64");
  EXPECT_EQ(column_array(table, 3).type.descr, "<f8");
}

TEST(Table, errors_have_file_line_and_column) {
  expect_error(
      ErrorCode::bad_text, [] { parse_table("t,x\n0,1\n\n2,3,4\n", "a.csv"); }, "a.csv:4:5", "3 fields");
  expect_error(
      ErrorCode::bad_text, [] { parse_table("t,x\n0,1\n2\n", "a.csv"); }, "a.csv:3:2", "1 fields");
  expect_error(
      ErrorCode::bad_text, [] { column_array(parse_table("t,x\n0,1\n1, 2x\n", "a.csv"), 1); }, "a.csv:3:4", "'2x'");
  expect_error(
      ErrorCode::bad_text, [] { column_array(parse_table("0 1\n1 1e999\n", "a.txt"), 1); }, "a.txt:2:3", "64-bit");
  expect_error(
      ErrorCode::bad_text, [] { column_array(parse_table("0 1\n1 \xff\xfe\n", "a.txt"), 1); }, "\\xff\\xfe");
  expect_error(
      ErrorCode::bad_format, [] { parse_table(std::string("t,x\0", 4), "a.csv"); }, "zero byte");
}

/// A locale that writes 0,5 and 1.000, installed on every machine.
struct CommaPoint : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

class EveryLocale : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == nullptr) {
      std::locale::global(std::locale(std::locale::classic(), new CommaPoint));
    } else if (std::setlocale(LC_ALL, GetParam()) == nullptr) {
      GTEST_SKIP() << "locale " << GetParam() << " is not installed";
    }
  }
  void TearDown() override { std::locale::global(std::locale::classic()); }
};

TEST_P(EveryLocale, a_decimal_comma_is_refused_with_a_hint_and_a_point_is_read) {
  const auto read = [](const char* text) {
    const Table table = parse_table(text, "a.csv");
    return column_array(table, table.columns - 1);
  };
  expect_error(
      ErrorCode::bad_text, [&] { read("t;x\n0;0,5\n"); }, "a.csv:2:3", "decimal comma", "0.5");
  expect_error(
      ErrorCode::bad_text, [&] { read("t;x\n0;1.5\n1;0,5\n"); }, "a.csv:3:3", "decimal comma");
  EXPECT_EQ(element_f64(read("t;x\n0;0.5\n"), 0), 0.5);
  EXPECT_EQ(real_text(12345.5), "12345.5");
  EXPECT_EQ(time_text(1234567500000000, TimeUnit::seconds, 1), "1234567.5");
}

INSTANTIATE_TEST_SUITE_P(Table, EveryLocale, testing::Values("C", static_cast<const char*>(nullptr), "de_DE.UTF-8"),
                         [](const auto& locale) { return std::to_string(locale.index); });

}  // namespace
}  // namespace tmaops::io
