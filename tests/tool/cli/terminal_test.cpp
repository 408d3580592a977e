// Output to a terminal: no control sequences from data, lines no wider than it, colour where it is wanted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "cli/bench_fixture.hpp"

namespace tmaops::test {
namespace {

/// Whether a terminal would obey something in the text: C0 but line ends, DEL, and C1 in UTF-8.
bool has_controls(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f) return true;
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) return true;
  }
  return false;
}

void expect_harmless(const std::vector<std::string>& arguments) {
  const ToolResult result = run_tool(arguments);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_FALSE(has_controls(result.err)) << result.err;
  EXPECT_FALSE(has_controls(result.out)) << result.out;
  EXPECT_LT(result.err.size(), 2500U) << "a long value is to be shortened";
}

TEST(Terminal, keys_and_values_of_a_configuration_are_printed_without_controls) {
  const Scratch folder;
  const std::string title = R"("\e]0;title\a\x9b31m")";
  for (const std::string& text :
       {title + ": 3\n", "gemm: {size: " + title + "}\n", "gemm: {" + title + ": 3}\n", "device: " + title + "\n",
        "gemm: {size: 8, variant: " + title + "}\n", "gemm: {size: 8, version: " + title + "}\n",
        "gemm: {case: " + title + "}\n", "resample: {case: " + title + "}\n", "ms_deform_attn: {case: " + title + "}\n",
        "ms_deform_attn: {levels: " + title + ", queries: 1}\n", "ms_deform_attn: {case: enc1, fused: " + title + "}\n",
        "gemm: {size: 8, dtype: " + title + "}\n", "peers: [" + title + "]\ngemm: {size: 8}\n",
        "operators: [" + title + "]\ngemm: {size: 8}\n", title + ": {}\n" + title + ": {}\n",
        std::string("gemm: !<tag:\x1b[31m> {size: 8}\n")}) {
    const std::string file = folder.file("c.yaml", text);
    expect_harmless({"verify", file});
  }
  expect_harmless({"verify", folder.file("long.yaml", "gemm: {size: " + std::string(100'000, 'x') + "}\n")});
  expect_harmless({"verify", folder.file("key.yaml", std::string(100'000, 'k') + ": 1\n")});
}

TEST(Terminal, arguments_are_printed_without_controls) {
  const std::string title = "\033]0;title\a";
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {title},
           {"--" + title},
           {"bench", title},
           {"bench", "-p", title},
           {"bench", "-p", "gemm: {size: 8}", "--peers", title},
           {"bench", "-p", "gemm: {size: 8}", "--operator", title},
           {"bench", "-p", "gemm: {size: 8}", "--samples", title},
           {"bench", "-p", "gemm: {size: 8}", "--fail-if-slower", title, "--compare", title},
           {"bench", "-p", "gemm: {size: 8}", "--compare", title},
           {"list", title},
           {"explain", title},
           {"resample", title, "-o", title, "--hz", "3"},
           {"resample", "x.csv", "-o", "y.csv", "--hz", "3", "--outside", title},
           {"tensormap", "--dims", title},
           {"tensormap", "--dims", "8,8", "--swizzle", title},
           {"--color", title},
           {"completion", title}})
    expect_harmless(arguments);
}

TEST(Terminal, no_mutated_configuration_prints_controls) {
  const Scratch folder;
  const std::string seed =
      "device: cpu\nsamples: 5\npeers: [copy]\ngemm:\n  - {mode: [RC, CR], size: 8, dtype: f32}\n"
      "resample: {case: \"4,50->60,8\", interpolation: [linear, cubic]}\nms_deform_attn: {case: dec1/detr}\n";
  const std::string odd[] = {"\"\\e[31m\"", "\033", "\a", "\x7f", "\"\\x9b\"", "\xc2\x9b", "\b",
                             "\r",          "'",    "\"", "[",    ": ",        "\t",       "\xff"};
  std::mt19937 random(20);
  const auto below = [&](std::size_t count) { return random() % count; };
  for (int i = 0; i < starts(200); ++i) {
    std::string text = seed;
    for (std::size_t edits = 1 + below(4); edits > 0; --edits)
      text.insert(below(text.size()), odd[below(std::size(odd))]);
    const ToolResult result = run_tool({"list", "--config", folder.file("c.yaml", text)});
    ASSERT_TRUE(result.exit_code == 0 || result.exit_code == 2) << text << result.err;
    ASSERT_FALSE(has_controls(result.err)) << text << "\n" << result.err;
    ASSERT_FALSE(has_controls(result.out)) << text << "\n" << result.out;
  }
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    widest = std::max(widest, end - at);
    at = end + 1;
  }
  return widest;
}

TEST(Terminal, tables_and_help_are_as_wide_as_columns_says) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"list", "gemm"},
        {"list", "-p", "gemm: {size: 8}"},
        {"doctor"},
        {"bench", "--help"},
        {"resample", "--help"},
        {"bench", "-p", kSmallProblem, "--no-output", "--samples", "5", "--peers", "copy"}}) {
    const ToolResult narrow = run_tool(arguments, {{"COLUMNS", "72"}});
    EXPECT_EQ(narrow.exit_code, run_tool(arguments).exit_code);
    EXPECT_LE(widest_line(narrow.out), 72U) << narrow.out;
    EXPECT_GT(widest_line(run_tool(arguments).out), 72U) << "nothing to fold";
  }
}

TEST(Terminal, errors_are_coloured_where_it_is_wanted) {
  const auto error = [](const std::string& color, const Tool::Environment& environment) {
    return run_tool({"--color", color, "explain", "E999"}, environment).err;
  };
  expect_text(error("always", {}), "tmaops: \033[31mE100 wrong usage\033[0m");
  EXPECT_EQ(error("auto", {}).find('\033'), std::string::npos) << "a pipe";
  EXPECT_EQ(error("never", {}).find('\033'), std::string::npos);
}

/// What the tool writes to a terminal. `script` of util-linux makes one.
std::string on_terminal(const std::string& arguments, const Tool::Environment& environment) {
  const std::string command = std::string(TMAOPS_TOOL) + " " + arguments;
  return Tool({"-qec", command, "/dev/null"}, environment, "script").wait().out;
}

TEST(Terminal, no_color_and_a_dumb_terminal_are_respected) {
  if (std::system("command -v script >/dev/null") != 0) GTEST_SKIP() << "no `script`";
  const Tool::Environment terminal{{"TERM", "xterm"}, {"NO_COLOR", ""}};
  const std::string coloured = on_terminal("explain E999", terminal);
  if (coloured.find("E100") == std::string::npos) GTEST_SKIP() << "no terminal: " << coloured;
  expect_text(coloured, "\033[31mE100");
  EXPECT_EQ(on_terminal("explain E999", {{"TERM", "dumb"}}).find('\033'), std::string::npos);
  EXPECT_EQ(on_terminal("explain E999", {{"TERM", "xterm"}, {"NO_COLOR", "1"}}).find('\033'), std::string::npos);
}

}  // namespace
}  // namespace tmaops::test
