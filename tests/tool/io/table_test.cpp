#include "io/table.hpp"

#include <clocale>
#include <cmath>
#include <locale>

#include "recording/decimal.hpp"
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

TEST(Table, a_line_of_units_below_the_names_is_no_sample) {
  const Table table = parse_table("t,acc,yaw,name\nms,[m/s2],(deg),\n0,1.5,2,a\n10,2,3,b\n", "a.csv");
  EXPECT_EQ(table.names, (std::vector<std::string>{"t [ms]", "acc [m/s2]", "yaw [deg]", "name"}));
  EXPECT_EQ(table.rows(), 2U);
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_EQ(table.notes[0].id, "units_line");
  EXPECT_EQ(table.notes[0].text, "a.csv:2:1: the line 'ms,[m/s2],(deg),' was read as units");
  for (const char* text : {"t,x\nNA,b\n1,c\n", "t,x\n03/14/2026 10:00:00,a\n", "t,x\n,\n1,2\n", "t,x\n0,a\n"})
    EXPECT_TRUE(parse_table(text, "a.csv").notes.empty()) << text;
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
  EXPECT_EQ(table_column(table, 1).data.type.kind, ElementKind::text);
  for (const std::string text : {"plain", "a,b", "a\"b", " a", "", "#a", "12", "nan"}) {
    const std::string line = "0," + quoted_field(text, ',') + "\n";
    EXPECT_EQ(parse_table(line, "a.csv").at(0, 1).text, text) << line;
  }
  EXPECT_EQ(quoted_field("plain", ','), "plain");
  expect_error(ErrorCode::bad_text, [] { parse_table("t,x\n0,\"a\n", "a.csv"); }, "a.csv:2:3", "quote");
  expect_error(ErrorCode::bad_text, [] { parse_table("t,x\n0,\"a\"b\n", "a.csv"); }, "a.csv:2:6");
}

TEST(Table, columns_are_integers_reals_or_text) {
  const Table table = parse_table("i,r,e,n,s\n1,1,,nan,a\n-2,2.5,3,1,b\n", "a.csv");
  EXPECT_EQ(table_column(table, 0).data.type.descr, "<i8");
  EXPECT_EQ(table_column(table, 1).data.type.descr, "<f8");
  EXPECT_TRUE(std::isnan(element_f64(table_column(table, 2).data, 0)));
  EXPECT_TRUE(std::isnan(element_f64(table_column(table, 3).data, 0)));
  EXPECT_EQ(element_text(table_column(table, 4).data, 1), "b");
}

TEST(Table, integers_beyond_int64_keep_every_digit_or_are_refused) {
  const Table table =
      parse_table("a,b,c,d\n18446744073709551615,1,-1,1\n0,18446744073709551616,9223372036854775808,1e19\n", "a.csv");
  const Array large = table_column(table, 0).data;
  EXPECT_EQ(large.type.descr, "<u8");
  EXPECT_EQ(element_i64(large, 0), std::nullopt);
  EXPECT_EQ(element_i64(large, 1), 0);
  expect_error(ErrorCode::bad_text, [&] { table_column(table, 1).data; }, ":3:3", "uint64");
  expect_error(ErrorCode::bad_text, [&] { table_column(table, 2).data; }, ":2:24", "uint64");
  EXPECT_EQ(table_column(table, 3).data.type.descr, "<f8");
}

TEST(Table, a_column_is_text_when_some_field_is_no_number_and_says_how_many_are) {
  for (const char* rows :
       {"0,None\n1,1.0\n2,3.0\n", "0,1.0\n1,NA\n2,3.0\n", "0,1.0\n1,\n2,n/a\n", "0,\"1.5\"\n1,\"null\"\n"}) {
    const TableColumn column = table_column(parse_table("t,x\n" + std::string(rows), "a.csv"), 1);
    EXPECT_EQ(column.data.type.descr, "<f8") << rows << "wherever the missing value stands";
    EXPECT_GE(column.missing, 1) << rows;
  }
  const TableColumn quoted = table_column(parse_table("t,x\n\"0\",\"1.5\"\n\"1\",\" 2\"\n", "a.csv"), 1);
  EXPECT_EQ(element_f64(quoted.data, 1), 2);
  for (const char* other : {"0x10", "1_000", "2 # note", "2x", "\xff\xfe"}) {
    const TableColumn column =
        table_column(parse_table("t,x\n0,1\n1, " + std::string(other) + "\n2,3\n3,NA\n", "a.csv"), 1);
    EXPECT_EQ(column.data.type.kind, ElementKind::text) << other;
    EXPECT_EQ(column.numeric_fields, 2) << other;
    EXPECT_EQ(column.missing, 1) << other;
    EXPECT_NE(column.first_other.find("a.csv:3:4"), std::string::npos) << column.first_other;
  }
  const TableColumn words = table_column(parse_table("t,x\n0,pick\n1,place\n", "a.csv"), 1);
  EXPECT_EQ(words.numeric_fields, 0);
  EXPECT_EQ(words.first_other, "");
  const TableColumn commas = table_column(parse_table("t,x\n0,\"1,5\"\n1,\"2,5\"\n", "a.csv"), 1);
  EXPECT_EQ(commas.numeric_fields, 2);
  EXPECT_NE(commas.first_other.find("decimal comma"), std::string::npos) << commas.first_other;
}

TEST(Table, whole_numbers_with_missing_values_become_real_and_say_so) {
  const TableColumn column = table_column(parse_table("t,x\n0,1\n1,\n", "a.csv"), 1);
  EXPECT_EQ(column.data.type.descr, "<f8");
  EXPECT_TRUE(column.whole_with_missing);
  EXPECT_FALSE(table_column(parse_table("t,x\n0,1\n1,2\n", "a.csv"), 1).whole_with_missing);
}

TEST(Table, numbers_that_name_columns_are_a_header_where_text_stands_above_numbers) {
  const Table pandas = parse_table("timestamp,0,1\n0.5,2,3\n", "a.csv");
  EXPECT_EQ(pandas.names, (std::vector<std::string>{"timestamp", "0", "1"}));
  EXPECT_TRUE(pandas.warnings.empty());
  EXPECT_EQ(parse_table("time,0\n2024-05-01T12:00:00Z,3\n", "a.csv").names.at(0), "time");
  const Table labels = parse_table("0,1.5,pick\n1,2.5,place\n", "a.csv");
  EXPECT_TRUE(labels.names.empty()) << "text above text is data";
  EXPECT_EQ(labels.rows(), 2U);
  EXPECT_EQ(parse_table("0,1.5,None\n1,2.5,7\n", "a.csv").rows(), 2U) << "a missing value is no name";
  EXPECT_EQ(parse_table("0,1.5,pick\n1,2.5,7\n", "a.csv").warnings.size(), 1U) << "one that could be either is said";
}

TEST(Table, a_header_of_column_numbers_is_suspected) {
  EXPECT_EQ(parse_table("0,1,2\n0.5,1.5,2.5\n", "a.csv").warnings.size(), 1U);
  EXPECT_EQ(parse_table("0,1\n1700000000.5,2\n", "a.csv").warnings.size(), 1U);
  EXPECT_TRUE(parse_table("0,1\n1,2\n", "a.csv").warnings.empty());
  EXPECT_TRUE(parse_table("0 1 2 3 0 0 0 1\n1 1 2 3 0 0 0 1\n", "a.txt").warnings.empty());
}

TEST(Table, a_tsv_splits_at_tabs_alone) {
  const TableOptions tabs{.tabs = true};
  const Table table = parse_table("t\tthe label\tx\n0\ta b\t\n1\t\t2\n", "a.tsv", tabs);
  EXPECT_EQ(table.names, (std::vector<std::string>{"t", "the label", "x"}));
  EXPECT_EQ(table.at(0, 1).text, "a b");
  EXPECT_EQ(table.at(0, 2).text, "");
  EXPECT_EQ(table.at(1, 1).text, "");
  EXPECT_EQ(parse_table("t x\n0 1\n", "a.tsv", tabs).delimiter, ' ') << "without any tab as before";
}

TEST(Table, names_that_are_not_utf8_are_mended_and_stay_different) {
  const Table table = parse_table("t,a\xb0,a\xb1\n0,1,2\n", "a.csv");
  EXPECT_EQ(table.names, (std::vector<std::string>{"t", "a\xef\xbf\xbd", "a\xef\xbf\xbd_2"}));
  ASSERT_EQ(table.warnings.size(), 1U);
  EXPECT_NE(table.warnings[0].text.find("a\\xb0"), std::string::npos) << table.warnings[0].text;
}

TEST(Table, numbers_too_small_for_f64_are_zero) {
  for (const auto& [text, value] : {std::pair{"1e-400", 0.0},
                                    {"-1e-400", -0.0},
                                    {"0.0001e-330", 0.0},
                                    {"4.9e-324", 4.9e-324},
                                    {"1e-99999999999999999999", 0.0}}) {
    double read = 1;
    EXPECT_EQ(parse_real(text, read), ParseResult::good) << text;
    EXPECT_EQ(read, value) << text;
    EXPECT_EQ(std::signbit(read), std::signbit(value)) << text;
  }
  double read = 1;
  for (const char* text : {"1e400", "-1e999", "123456e305", "1e99999999999999999999"})
    EXPECT_EQ(parse_real(text, read), ParseResult::out_of_range) << text;
}

TEST(Table, errors_have_file_line_and_column) {
  expect_error(ErrorCode::bad_text, [] { parse_table("t,x\n0,1\n\n2,3,4\n", "a.csv"); }, "a.csv:4:5", "3 fields");
  expect_error(ErrorCode::bad_text, [] { parse_table("t,x\n0,1\n2\n", "a.csv"); }, "a.csv:3:2", "1 fields");
  expect_error(
      ErrorCode::bad_text, [] { table_column(parse_table("0 1\n1 1e999\n", "a.txt"), 1); }, "a.txt:2:3", "64-bit");
  expect_error(ErrorCode::bad_format, [] { parse_table(std::string("t,x\0", 4), "a.csv"); }, "zero byte");
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
    return table_column(table, table.columns - 1).data;
  };
  expect_error(ErrorCode::bad_text, [&] { read("t;x\n0;0,5\n"); }, "a.csv:2:3", "decimal comma", "0.5");
  expect_error(ErrorCode::bad_text, [&] { read("t;x\n0;1.5\n1;0,5\n"); }, "a.csv:3:3", "decimal comma");
  EXPECT_EQ(element_f64(read("t;x\n0;0.5\n"), 0), 0.5);
  EXPECT_EQ(real_text(12345.5), "12345.5");
  EXPECT_EQ(time_text(1234567500000000, TimeUnit::seconds, 1), "1234567.5");
}

INSTANTIATE_TEST_SUITE_P(Table, EveryLocale, testing::Values("C", static_cast<const char*>(nullptr), "de_DE.UTF-8"),
                         [](const auto& locale) { return std::to_string(locale.index); });

}  // namespace
}  // namespace tmaops::io
