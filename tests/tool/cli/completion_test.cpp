// `tmaops completion` as shells use it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/scratch.hpp"
#include "support/tool.hpp"

namespace tmaops::test {
namespace {

/// What bash offers after these words, the last of which is unfinished; sorted, with blanks between.
std::string completed(const std::string& words) {
  const std::string script =
      "PATH=\"${0%/*}:$PATH\"; eval \"$(tmaops completion bash)\"; COMP_WORDS=(" + words +
      "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tmaops; printf '%s\\n' \"${COMPREPLY[@]}\" | sort | xargs";
  const ToolResult result = Tool({"-c", script, TMAOPS_TOOL}, {}, "bash").wait();
  EXPECT_EQ(result.err, "") << words;
  return result.out.substr(0, result.out.find('\n'));
}

TEST(Completion, bash_knows_the_options_of_option_groups) {
  EXPECT_EQ(completed("tmaops resample --h"), "--help --hz");
  EXPECT_EQ(completed("tmaops resample --lik"), "--like --like-unit");
  EXPECT_EQ(completed("tmaops resample in.csv --times"), "--times --times-array --times-unit");
  EXPECT_EQ(completed("tmaops bench --fail"), "--fail-if-slower");
}

TEST(Completion, bash_offers_the_values_there_are) {
  EXPECT_EQ(completed("tmaops resample --outside ''"), "drop error extrapolate hold nan");
  EXPECT_EQ(completed("tmaops resample --outside = ho"), "hold") << "bash makes three words of --outside=ho";
  EXPECT_EQ(completed("tmaops resample --outside ="), "drop error extrapolate hold nan");
  EXPECT_EQ(completed("tmaops bench quick --device c"), "cpu cuda");
  EXPECT_EQ(completed("tmaops bench --peers on"), "onednn");
  EXPECT_EQ(completed("tmaops tensormap --swizzle 3"), "32B");
  EXPECT_EQ(completed("tmaops explain E09"), "E090 E091 E092 E093 E094");
  EXPECT_EQ(completed("tmaops explain dtype_m"), "dtype_mismatch");
  EXPECT_EQ(completed("tmaops list g"), "gemm");
  EXPECT_EQ(completed("tmaops bench qu"), "quick");
  EXPECT_EQ(completed("tmaops completion f"), "fish");
  EXPECT_EQ(completed("tmaops --color a"), "always auto");
}

TEST(Completion, bash_leaves_files_to_itself) {
  EXPECT_EQ(completed("tmaops resample --like a"), "");
  EXPECT_EQ(completed("tmaops bench -o r"), "");
}

TEST(Completion, bash_finds_the_command_behind_options_with_values) {
  EXPECT_EQ(completed("tmaops --color never ben"), "bench");
  EXPECT_EQ(completed("tmaops --color never doctor --jso"), "--json");
}

TEST(Completion, no_option_is_offered_twice) {
  for (const std::string command : {"", "bench", "resample", "tensormap", "doctor"}) {
    const std::string words = " " + completed("tmaops " + command + " --") + " ";
    const std::size_t help = words.find(" --help ");
    ASSERT_NE(help, std::string::npos) << words;
    EXPECT_EQ(words.find(" --help ", help + 1), std::string::npos) << words;
  }
}

TEST(Completion, the_other_shells_take_their_scripts) {
  const Scratch folder;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const auto script = folder.file(shell, run_tool({"completion", shell}).out);
    const std::string check = "command -v " + shell + " >/dev/null || exit 0; " + shell + " -n " + script.string();
    EXPECT_EQ(std::system(check.c_str()), 0) << shell;
  }
  expect_text(run_tool({"completion", "zsh"}).out, "bashcompinit", "complete");
  expect_text(run_tool({"completion", "fish"}).out, "complete -c tmaops", "tmaops complete --");
  EXPECT_EQ(run_tool({"completion", "tcsh"}).exit_code, 2);
}

TEST(Completion, what_the_shells_ask_says_what_a_word_is) {
  expect_text(run_tool({"complete", "--", "ver"}).out, "verify\tCheck every variant against the reference\n");
  expect_text(run_tool({"complete", "--", "resample", "--hz"}).out, "--hz\tThis many samples per second");
  EXPECT_EQ(run_tool({"complete", "--", "resample", "--outside=ho"}).out, "--outside=hold\t\n");
  EXPECT_EQ(run_tool({"complete"}).out, "");
  EXPECT_EQ(run_tool({"--help"}).out.find("complete "), std::string::npos) << "no command for people";
}

}  // namespace
}  // namespace tmaops::test
