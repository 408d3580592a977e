// Tables for people: what stands where.
#include "offers/table.hpp"

#include <gtest/gtest.h>

#include "commands/result_table.hpp"

namespace tmaops::cli {
namespace {

TEST(Table, columns_are_as_wide_as_their_widest_cell) {
  Table table("name|>time|note");
  table.add({{"a"}, {"1.5"}, {"long note"}});
  table.add({{"longer name"}, {"100000"}, {"x"}});
  EXPECT_EQ(table.text(false),
            "name           time  note\n"
            "a               1.5  long note\n"
            "longer name  100000  x\n");
}

TEST(Table, without_rows_there_is_none) { EXPECT_EQ(Table("name").text(false), ""); }

TEST(Table, columns_without_text_are_left_out) {
  Table table("a|empty|b");
  table.add({{"1"}, {""}, {"2"}});
  EXPECT_EQ(table.text(false), "a  b\n1  2\n");
}

TEST(Table, no_line_ends_with_spaces) {
  Table table("a|wide column|>c");
  table.add({{"1"}, {"text"}, {"7"}});
  table.add({{"2"}, {"text"}, {""}});
  table.add_gap();
  table.add({{"3"}});
  EXPECT_EQ(table.text(false),
            "a  wide column  c\n"
            "1  text         7\n"
            "2  text\n"
            "\n"
            "3\n");
}

TEST(Table, widths_count_characters_and_not_bytes) {
  Table table("a|b");
  table.add({{"\u00b5s \u2014"}, {"x"}});
  table.add({{"four"}, {"y"}});
  EXPECT_EQ(display_width("\u00b5s \u2014"), 4U);
  EXPECT_EQ(table.text(false),
            "a     b\n"
            "\u00b5s \u2014  x\n"
            "four  y\n");
}

TEST(Table, colour_changes_no_width) {
  Table table("a|b");
  table.add({{"bad", Style::bad}, {"x"}});
  EXPECT_EQ(table.text(true), "\033[1ma\033[0m    \033[1mb\033[0m\n\033[31mbad\033[0m  x\n");
}

TEST(Table, columns_that_do_not_fit_are_folded) {
  Table table("name|>one|>two|>three");
  table.add({{"a row"}, {"1"}, {"2"}, {"3"}});
  table.add_gap();
  table.add({{"b"}, {"10"}});
  EXPECT_EQ(table.text(false, 12),
            "name   one\n"
            "    two\n"
            "    three\n"
            "a row    1\n"
            "      2\n"
            "        3\n"
            "\n"
            "b       10\n");
}

TEST(Table, text_of_the_last_column_is_wrapped) {
  Table table("part|what was found");
  table.add({{"Highway"}, {"explicit vectors chosen at run time, several times the speed"}});
  table.add({{}, {"how: ask"}});
  EXPECT_EQ(table.text(false, 40),
            "part     what was found\n"
            "Highway  explicit vectors chosen at run\n"
            "         time, several times the speed\n"
            "         how: ask\n");
}

TEST(Table, cells_hold_nothing_that_a_terminal_obeys) {
  Table table("a");
  table.add({{"\033]0;title\a\nx"}});
  EXPECT_EQ(table.text(false), "a\n\\x1b]0;title\\x07 x\n");
}

TEST(Console, help_goes_on_below_its_text) {
  EXPECT_EQ(wrapped("  -o,--output FILE      Result file that is written when all is done\nshort\n", 44),
            "  -o,--output FILE      Result file that is\n"
            "                        written when all is\n"
            "                        done\n"
            "short\n");
  EXPECT_EQ(wrapped("a line of words\n", kAnyWidth), "a line of words\n");
}

TEST(Numbers, have_three_digits) {
  EXPECT_EQ(three_digits(0), "0.00");
  EXPECT_EQ(three_digits(9.994), "9.99");
  EXPECT_EQ(three_digits(9.996), "10.0");
  EXPECT_EQ(three_digits(99.94), "99.9");
  EXPECT_EQ(three_digits(99.96), "100");
  EXPECT_EQ(three_digits(1234), "1234");
}

TEST(Numbers, units_change_where_a_fourth_digit_would_appear) {
  const auto time = [](double us) { return in_units(us, {"us", "ms", "s"}); };
  EXPECT_EQ(time(999.4), "999 us");
  EXPECT_EQ(time(999.6), "1.00 ms") << "not 1000 us";
  EXPECT_EQ(time(999499), "999 ms");
  EXPECT_EQ(time(999600), "1.00 s");
  EXPECT_EQ(time(5e9), "5000 s") << "there is no larger one";
}

bench::Row row(const std::string& implementation, bench::Kind kind, double median, const std::string& name = "RC 256") {
  bench::Row made{.info = {.op = "gemm", .name = name, .dtype = "f32", .floor_bytes = 3e6, .flops = 6e6},
                  .implementation = implementation,
                  .kind = kind,
                  .selected = implementation == "tmaops" ? "blocked" : "",
                  .temperature = "hot"};
  made.us = bench::Summary{median, median * 0.9, median * 1.25, 30};
  made.error.relative = 1.25e-7;
  return made;
}

TEST(TimesTable, says_how_each_row_compares_with_copy_and_ours) {
  bench::Report report;
  report.rows = {row("tmaops", bench::Kind::variant, 100), row("copy", bench::Kind::ceiling, 50),
                 row("onednn", bench::Kind::peer, 2500), row("tmaops", bench::Kind::variant, 4e6, "RC 1024")};
  EXPECT_EQ("\n" + times_table(report, false), R"(
operator  case     dtype  implementation     median    p10/p90  GB/s  of copy  TFLOP/s  vs tmaops    error  inputs
gemm      RC 256   f32    tmaops (blocked)   100 us  -10/+25 %  30.0     50 %    0.060             1.2e-07  hot
                          copy              50.0 us  -10/+25 %  60.0                        0.50x           hot
                          onednn            2.50 ms  -10/+25 %   1.2      2 %    0.002     25.00x  1.2e-07  hot

gemm      RC 1024  f32    tmaops (blocked)   4.00 s  -10/+25 %   0.0             0.000             1.2e-07  hot
)");
}

TEST(VerifyTable, wrong_rows_come_last) {
  bench::Report report;
  report.failed = {row("wgmma", bench::Kind::variant, 1)};
  report.rows = {row("tmaops", bench::Kind::variant, 1)};
  EXPECT_EQ("\n" + verify_table(report, false), R"(
operator  case    dtype  implementation    relative      max  result
gemm      RC 256  f32    tmaops (blocked)   1.2e-07  0.0e+00  ok
gemm      RC 256  f32    wgmma              1.2e-07  0.0e+00  WRONG
)");
}

TEST(VerifyTable, has_no_error_of_what_was_not_compared) {
  bench::Report report;
  report.failed = {row("wgmma", bench::Kind::variant, 1)};
  report.failed.front().error.compared = 0;
  EXPECT_EQ("\n" + verify_table(report, false), R"(
operator  case    dtype  implementation  compared  result
gemm      RC 256  f32    wgmma                0 %  WRONG
)");
}

}  // namespace
}  // namespace tmaops::cli
