// `tmaops tensormap`, run as a user does. No GPU is needed for any of it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "probe/random_spec.hpp"
#include "support/scratch.hpp"
#include "support/tool.hpp"

namespace tmaops::test {
namespace {

ToolResult tensormap(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tensormap");
  return run_tool(arguments);
}

void expect_pieces(const std::string& text, std::initializer_list<std::string> pieces) {
  for (const std::string& piece : pieces)
    EXPECT_NE(text.find(piece), std::string::npos) << "no '" << piece << "' in:\n" << text;
}

TEST(TensorMapCommand, draws_a_valid_load) {
  const ToolResult result = tensormap({"--dims", "32,160,92", "--box", "32,2,2", "--at", "0,-1,3"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  expect_pieces(result.out, {"--dtype f16 --dims 32,160,92 --box 32,2,2 --at 0,-1,3\nvalid\n",
                             "tile      32 x 2 x 2 elements, 4 rows of 64 B\n", "expects 256 bytes",
                             "load      at 0,-1,3: 64 elements of the tensor, 64 of fill (zero)",
                             "banks     0-3     4-7     8-11    12-15   16-19   20-23   24-27   28-31\n",
                             "0x0       0,0,0*  8,0,0*  16,0,0* 24,0,0* 0,1,0   8,1,0   16,1,0  24,1,0\n",
                             "0x80      0,0,1*  8,0,1*  16,0,1* 24,0,1* 0,1,1   8,1,1   16,1,1  24,1,1\n"});
}

TEST(TensorMapCommand, shows_the_swizzle_and_its_phase) {
  const ToolResult shifted = tensormap({"--dims", "64,64", "--box", "64,8", "--swizzle", "128B", "--base", "0x80"});
  EXPECT_EQ(shifted.exit_code, 0) << shifted.err;
  expect_pieces(shifted.out,
                {"note: destination 0x80 is 128 past a multiple of 1024",
                 "8 lanes that read 16 B of a row each: 1 wavefront\n", "0x80      8,0     0,0     24,0    16,0"});
  const ToolResult plain = tensormap({"--dims", "64,64", "--box", "64,8"});
  expect_pieces(plain.out, {"8 wavefronts, 1 would do"});
}

TEST(TensorMapCommand, explains_the_published_failure) {
  const ToolResult result =
      tensormap({"--dtype", "f16", "--dims", "92,160,32", "--strides", "10240,64", "--box", "2,2,32"});
  EXPECT_EQ(result.exit_code, 1);
  expect_pieces(result.out,
                {"not valid\n", "inner box 2 x 2 B = 4 B, not a multiple of 16 B [box_inner_16]",
                 "dimensions look outermost first", "tmaops tensormap --dtype f16 --dims 32,160,92 --box 32,2,2\n"});
  // What it proposes is a command that works.
  EXPECT_EQ(tensormap({"--dtype", "f16", "--dims", "32,160,92", "--box", "32,2,2"}).exit_code, 0);
}

TEST(TensorMapCommand, says_when_a_load_would_fault) {
  const ToolResult result = tensormap({"--dims", "64,64", "--box", "16,4", "--at", "3,0"});
  EXPECT_EQ(result.exit_code, 1);
  expect_pieces(result.out,
                {"valid\n", "this load would fault", "coordinate[0] = 3 x 2 B = 6 B, not a multiple of 16 B"});
}

TEST(TensorMapCommand, json_has_everything) {
  const ToolResult good =
      tensormap({"--json", "--dtype", "f32", "--dims", "64,8", "--box", "8,4", "--fill", "nan", "--at", "60,6"});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  auto json = nlohmann::json::parse(good.out);
  EXPECT_EQ(json["valid"], true);
  EXPECT_EQ(json["specification"]["strides"], (std::vector<int>{256}));
  EXPECT_EQ(json["load"]["tile"]["transaction_bytes"], 128);
  EXPECT_EQ(json["load"]["tile"]["elements_inside"], 8);
  EXPECT_EQ(json["load"]["tile"]["lines"][0]["chunks"][1]["inside"], 0);
  EXPECT_EQ(json["proposal"], nullptr);
  const ToolResult bad = tensormap({"--json", "--dims", "33,8", "--box", "8,4"});
  EXPECT_EQ(bad.exit_code, 1);
  json = nlohmann::json::parse(bad.out);
  EXPECT_EQ(json["valid"], false);
  EXPECT_EQ(json["findings"][0]["rule"], "stride_16");
  EXPECT_EQ(json["proposal"]["specification"]["strides"], (std::vector<int>{80}));
  EXPECT_EQ(json["load"], nullptr);
}

TEST(TensorMapCommand, writes_a_svg_once_and_never_half) {
  const Scratch folder;
  const std::string file = (folder / "tile.svg").string();
  const std::vector<std::string> arguments = {"--dims", "64,64", "--box", "64,8", "--swizzle", "128B", "--svg", file};
  EXPECT_EQ(tensormap(arguments).exit_code, 0);
  const std::string svg = read_all(file);
  expect_pieces(svg, {"<svg xmlns=", "--swizzle 128B", ">8,1<", "</svg>\n"});
  const ToolResult again = tensormap(arguments);
  EXPECT_EQ(again.exit_code, 2);
  expect_pieces(again.err, {"E050"});
  EXPECT_EQ(read_all(file), svg);
  const ToolResult bad = tensormap({"--dims", "64,64", "--box", "3,8", "--svg", (folder / "bad.svg").string()});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(folder / "bad.svg"));
}

TEST(TensorMapCommand, checks_im2col_and_newer_gpus) {
  const std::vector<std::string> im2col = {"--dims",
                                           "64,32,16,4",
                                           "--lower-corner",
                                           "-1,-1",
                                           "--upper-corner",
                                           "-1,-1",
                                           "--channels-per-pixel",
                                           "64",
                                           "--pixels-per-column",
                                           "32"};
  const ToolResult result = tensormap(im2col);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_pieces(result.out, {"valid\n", "window    W -1 to 30, H -1 to 14\n", "barrier   expects 4096 bytes",
                             "load      at 0,-1,-1,0, offsets 0,0: 32 pixels of 64 channels, 32 of them fill (zero)"});
  const std::vector<std::string> atom = {"--dims", "64,64", "--box", "64,8", "--swizzle", "128B_ATOM_32B"};
  EXPECT_EQ(tensormap(atom).exit_code, 1);
  std::vector<std::string> on_blackwell = atom;
  on_blackwell.insert(on_blackwell.end(), {"--arch", "10.0"});
  EXPECT_EQ(tensormap(on_blackwell).exit_code, 0);
}

/// The words of the command that the output proposes.
std::vector<std::string> proposed_options(const std::string& output) {
  const std::string start = "\n  tmaops tensormap ";
  std::vector<std::string> words;
  const std::size_t at = output.find(start);
  if (at == std::string::npos) return words;
  std::istringstream line(output.substr(at + start.size(), output.find('\n', at + 1) - at - start.size()));
  for (std::string word; line >> word;) words.push_back(word);
  return words;
}

TEST(TensorMapCommand, a_proposal_keeps_the_architecture) {
  const std::vector<std::string> arguments{"--dtype", "u4x16_align8", "--dims", "2", "--box", "4096", "--arch", "10.0"};
  const ToolResult result = tensormap(arguments);
  EXPECT_EQ(result.exit_code, 1);
  expect_pieces(result.out, {"--dtype u4x16_align8 --dims 2 --box 4096 --arch 10.0\n",
                             "tmaops tensormap --dtype u4x16_align8 --dims 2 --box 256 --arch 10.0\n"});
  const ToolResult again = tensormap(proposed_options(result.out));
  EXPECT_EQ(again.exit_code, 0) << again.out;
  EXPECT_EQ(tensormap({"--dims", "8,8", "--box", "8,8", "--arch", "9.0"}).out.find("--arch"), std::string::npos);
}

TEST(TensorMapCommand, a_proposal_keeps_the_load_in_its_own_order) {
  const ToolResult result = tensormap(
      {"--dims", "92,160,32", "--box", "2,2,32", "--at", "3,-1,0", "--base", "0x400", "--l2-promotion", "128B"});
  EXPECT_EQ(result.exit_code, 1);
  expect_pieces(result.out, {"--at 3,-1,0 --base 0x400\n", "--l2-promotion 128B --at 0,-1,3 --base 0x400\n"});
  EXPECT_EQ(tensormap(proposed_options(result.out)).exit_code, 0) << result.out;
  const ToolResult faults = tensormap({"--dims", "33,8", "--box", "8,4", "--at", "3,0"});
  EXPECT_EQ(tensormap(proposed_options(faults.out)).exit_code, 0) << "a load that faults there too is left out";
}

TEST(TensorMapCommand, every_proposal_is_valid_as_printed) {
  constexpr int kSpecs = starts(100);
  int proposals = 0;
  for (const bool blackwell : {false, true}) {
    probe::RandomSpecs random({.seed = 12, .blackwell = blackwell});
    for (int i = 0; i < kSpecs; ++i) {
      const tma::TensorMapSpec spec = random.near_edge();
      std::vector<std::string> arguments;
      std::istringstream words(spec.text());
      for (std::string word; words >> word;) arguments.push_back(word);
      arguments.insert(arguments.end(), {"--arch", blackwell ? "12.0" : "9.0"});
      const ToolResult result = tensormap(arguments);
      const std::vector<std::string> options = proposed_options(result.out);
      if (options.empty()) continue;
      ++proposals;
      const ToolResult again = tensormap(options);
      ASSERT_EQ(again.exit_code, 0) << result.out << again.out << again.err;
      EXPECT_EQ(again.out.substr(0, again.out.find('\n')),
                result.out.substr(result.out.find("  tmaops tensormap ") + 19, again.out.find('\n')))
          << "the echo is the proposal";
    }
  }
  EXPECT_GT(proposals, kSpecs / 3);
}

TEST(TensorMapCommand, a_swizzle_that_flips_halves_of16_bytes_is_drawn) {
  const ToolResult result =
      tensormap({"--dims", "64,64", "--box", "64,8", "--swizzle", "128B_ATOM_32B_FLIP_8B", "--arch", "10.0"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_pieces(result.out, {"8 lanes that read 8 B of a row each"});
}

TEST(TensorMapCommand, nothing_is_said_of_a_gpu_where_none_was_asked) {
  const ToolResult result = tensormap({"--dtype", "u4x16_align8", "--dims", "256", "--box", "256"});
  expect_pieces(result.out, {"needs compute capability 10.0, not 9.0"});
  EXPECT_EQ(result.out.find("the GPU"), std::string::npos) << result.out;
}

// The kernel of tests/gpu/tensor_test.cu, im2col_walks_over_the_rows_of_an_image, expects the same pixels of a GPU.
TEST(TensorMapCommand, im2col_corners_follow_from_the_convolution_and_a_load_brings_pixels) {
  const ToolResult result = tensormap({"--dims", "8,9,6,2", "--filter", "3,3", "--channels-per-pixel", "8",
                                       "--pixels-per-column", "12", "--at", "0,3,1,0", "--offsets", "1,2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_pieces(result.out, {"--lower-corner 0,0 --upper-corner -2,-2", "--offsets 1,2\nvalid", "W 0 to 6, H 0 to 3",
                             "expects 192 bytes", "\n4,3,0  5,3,0  6,3,0  7,3,0\n1,4,0  2,4,0"});
  const ToolResult padded = tensormap({"--json", "--dims", "64,32,16,4", "--filter", "3,5", "--padding", "1,2",
                                       "--convolution-strides", "2,1", "--dilation", "1,2", "--channels-per-pixel",
                                       "64", "--pixels-per-column", "40", "--offsets", "2,8"});
  EXPECT_EQ(padded.exit_code, 0) << padded.err;
  const auto json = nlohmann::json::parse(padded.out);
  EXPECT_EQ(json["specification"]["lower_corner"], (std::vector<int>{-1, -2}));
  EXPECT_EQ(json["specification"]["upper_corner"], (std::vector<int>{-1, -6}));
  EXPECT_EQ(json["specification"]["element_strides"], (std::vector<int>{1, 2, 1, 1}));
  EXPECT_EQ(json["load"]["pixels"][16], (std::vector<int>{1, 7, 0})) << "16 pixels in a row of the output";
  EXPECT_EQ(json["load"]["pixels_inside"], 40);
}

TEST(TensorMapCommand, bytes_of_gather4_and_of_packed_types_are_counted) {
  const ToolResult gather = tensormap({"--dims", "4096,64", "--box", "64,1", "--gather4", "--arch", "10.0"});
  EXPECT_EQ(gather.exit_code, 0) << gather.err;
  expect_pieces(gather.out, {"barrier   expects 512 bytes (expect_tx), inside or outside, of four rows\n"});
  for (const char* type : {"u4x16_align8", "u4x16_align16"})
    expect_pieces(tensormap({"--dtype", type, "--dims", "4096,64", "--box", "128,8", "--arch", "10.0"}).out,
                  {"barrier   expects 512 bytes"});
  expect_pieces(tensormap({"--dtype", "u6x16_align16", "--dims", "4096,64", "--box", "128,8", "--arch", "10.0"}).out,
                {"barrier   expects 768 bytes"});
}

TEST(TensorMapCommand, a_null_address_is_told) {
  const ToolResult result = tensormap({"--dims", "64,64", "--box", "64,8", "--address", "0"});
  EXPECT_EQ(result.exit_code, 1);
  expect_pieces(result.out, {"--address 0\nnot valid\n", "the address is null", "CUDA_ERROR_INVALID_VALUE", "[E016]"});
  EXPECT_EQ(tensormap({"--dims", "64,64", "--box", "64,8"}).exit_code, 0);
}

TEST(TensorMapCommand, wrong_options_are_named) {
  const auto refused = [](std::vector<std::string> arguments, std::initializer_list<std::string> pieces) {
    const ToolResult result = tensormap(std::move(arguments));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    expect_pieces(result.err, {"E100"});
    expect_pieces(result.err, pieces);
  };
  refused({}, {"--dims"});
  refused({"--dims", "64,x", "--box", "8,8"}, {"--dims", "'64,x'", "separated by commas"});
  refused({"--dims", "64,", "--box", "8,8"}, {"--dims"});
  refused({"--dims", "64,99999999999999999999", "--box", "8,8"}, {"--dims"});
  refused({"--dims", "64,64", "--box", "8,8", "--dtype", "f61"}, {"--dtype", "one of u8, u16", "Did you mean 'f16'?"});
  refused({"--dims", "64,64", "--box", "8,8", "--swizzle", "96B"}, {"--swizzle", "'96B'"});
  refused({"--dims", "64,64", "--box", "8,8", "--arch", "8.0"}, {"--arch"});
  refused({"--dims", "64,64", "--box", "8,8", "--base", "-1"}, {"--base"});
  refused({"--dims", "64,64,4", "--box", "8,8,1", "--pixels-per-column", "3"}, {"--box", "im2col"});
  const std::vector<std::string> image = {"--dims", "64,32,16,4",          "--channels-per-pixel",
                                          "64",     "--pixels-per-column", "32"};
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  refused(with(image, {"--padding", "1,1"}), {"--padding", "--filter"});
  refused(with(image, {"--filter", "3"}), {"--filter", "'3'", "2 numbers from 1 to 65535, W first"});
  refused(with(image, {"--filter", "3,0"}), {"--filter", "'3,0'"});
  refused(with(image, {"--filter", "3,3", "--dilation", "x,1"}), {"--dilation", "'x,1'"});
  refused(with(image, {"--filter", "3,3", "--lower-corner", "0,0"}), {"--lower-corner", "--filter"});
  refused(with(image, {"--filter", "3,3", "--offsets", "256,0"}), {"--offsets", "2 numbers from 0 to 255"});
  refused({"--dims", "64,64", "--box", "64,1", "--filter", "3"}, {"--filter", "3 to 5 dimensions"});
  refused({"--dims", "64,64", "--box", "64,1", "--offsets", "1"}, {"--offsets", "im2col"});
  refused({"--dims", "64,64", "--box", "64,8", "--gather4", "--arch", "10.0"}, {"--gather4", "box of one row"});
  refused({"--dims", "64,64", "--box", "64,1", "--gather4"}, {"--gather4", "--arch 10.0"});
}

TEST(TensorMapCommand, prints_the_rule_table_of_the_document) {
  const ToolResult result = tensormap({"--rules"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(read_all(TMAOPS_SOURCE_DIR "/docs/tma.md").find("\n" + result.out + "\n"), std::string::npos)
      << "the table in docs/tma.md differs from src/tma/rules.def; `tmaops tensormap --rules` prints it";
}

TEST(TensorMapCommand, colour_only_where_it_is_wanted) {
  const std::vector<std::string> arguments = {"--dims", "64,64", "--box", "64,8"};
  EXPECT_EQ(tensormap(arguments).out.find('\033'), std::string::npos);
  std::vector<std::string> always = arguments;
  always.insert(always.end(), {"--color", "always"});
  EXPECT_NE(tensormap(always).out.find("\033[30;48;5;"), std::string::npos);
}

}  // namespace
}  // namespace tmaops::test
