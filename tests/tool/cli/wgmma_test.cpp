// `tmaops wgmma`: layouts against their description in words, the one of tests/gpu/wgmma_test.cu, which a GPU was asked
// about.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/scratch.hpp"
#include "support/tool.hpp"

namespace tmaops::test {
namespace {

ToolResult wgmma(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "wgmma");
  return run_tool(arguments);
}

TEST(WgmmaCommand, prints_the_descriptor_and_the_layout) {
  const ToolResult result = wgmma({"--tile", "64x64", "--major", "k", "--swizzle", "128B"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_text(result.out, "operand     64 x 64 (mn x k) of 16 bits, k contiguous: 8192 B at a multiple of 1024\n",
              "loads       1 of --box 64,64 --swizzle 128B\n", "descriptor  0x4000004000010000 + (address >> 4)\n",
              "16 B, not used in this layout", "1024 B, to the next 8 elements of mn",
              "bytes to add to the address: 0, 32, 64, 96\n", "0x80      8,1     0,1     24,1    16,1");
  const ToolResult wide = wgmma({"--tile", "128x64", "--major", "mn"});
  expect_text(wide.out, "loads       2, each 8192 B behind the one before, of --box 64,64 --swizzle 128B",
              "8192 B, to the next 64 elements of mn", "1024 B, to the next 8 elements of k",
              "bytes to add to the address: 0, 2048, 4096, 6144\n");
}

TEST(WgmmaCommand, offsets_and_steps_are_those_that_a_gpu_was_asked_about) {
  constexpr int kDepth = 64, kExtent = 64;
  for (const std::string major : {"k", "mn"})
    for (const int bytes : {0, 32, 64, 128}) {
      const std::string swizzle = bytes == 0 ? "none" : std::to_string(bytes) + "B";
      const auto json =
          nlohmann::json::parse(wgmma({"--json", "--tile", "64x64", "--major", major, "--swizzle", swizzle}).out);
      const std::string what = major + " " + swizzle;
      if (bytes == 0 && major == "k") {
        EXPECT_EQ(json["leading_bytes"], kExtent / 8 * 128) << what;
        EXPECT_EQ(json["stride_bytes"], 128) << what;
      } else if (bytes == 0) {  // panels of 8 elements of mn, as loads write them
        EXPECT_EQ(json["leading_bytes"], 128) << what;
        EXPECT_EQ(json["stride_bytes"], kDepth * 16) << what;
      } else {
        EXPECT_EQ(json["leading_bytes"], major == "k" ? 16 : kDepth * bytes) << what;
        EXPECT_EQ(json["stride_bytes"], 8 * bytes) << what;
      }
      for (int k = 0; k < kDepth; k += 16) {
        const int step = bytes == 0     ? (major == "k" ? k / 8 * kExtent / 8 * 128 : k * 16)
                         : major == "k" ? k * 2 / bytes * kExtent * bytes + k * 2 % bytes
                                        : k * bytes;
        EXPECT_EQ(json["step_bytes"][static_cast<std::size_t>(k / 16)], step) << what << ", k " << k;
      }
      EXPECT_EQ(json["load_bytes"].get<int>() * json["loads"].get<int>(), kDepth * kExtent * 2) << what;
    }
}

TEST(WgmmaCommand, draws_the_pictures_of_the_document) {
  const Scratch folder;
  for (const auto& [file, tile, major] :
       {std::tuple("wgmma_k_major.svg", "16x64", "k"), {"wgmma_mn_major.svg", "64x16", "mn"}}) {
    const std::string to = (folder / file).string();
    EXPECT_EQ(wgmma({"--tile", tile, "--major", major, "--svg", to}).exit_code, 0);
    EXPECT_EQ(read_all(to), read_all(std::string(TMAOPS_SOURCE_DIR "/docs/images/") + file))
        << "tmaops wgmma --tile " << tile << " --major " << major << " --svg docs/images/" << file << " --force";
    EXPECT_EQ(wgmma({"--tile", tile, "--svg", to}).exit_code, 2) << "a file is not replaced";
  }
}

TEST(WgmmaCommand, wrong_options_are_named) {
  const auto refused = [](std::vector<std::string> arguments, const auto&... pieces) {
    const ToolResult result = wgmma(std::move(arguments));
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(result.out, "");
    expect_text(result.err, "E100", pieces...);
  };
  refused({}, "--tile");
  refused({"--tile", "64"}, "--tile", "'64'", "MNxK");
  refused({"--tile", "64xk"}, "'64xk'");
  refused({"--tile", "64x64x64"}, "MNxK");
  refused({"--tile", "60x64"}, "multiples of 8 (mn) and 64 (k) up to 256", "--major k --swizzle 128B");
  refused({"--tile", "64x32"}, "multiples of 8 (mn) and 64 (k)");
  refused({"--tile", "32x64", "--major", "mn"}, "multiples of 64 (mn) and 16 (k)");
  refused({"--tile", "264x64"}, "up to 256");
  refused({"--tile", "-64x64"}, "up to 256");
  refused({"--tile", "64x64", "--major", "m"}, "--major", "'m'", "k or mn");
  refused({"--tile", "64x64", "--swizzle", "128B_ATOM_32B"}, "--swizzle", "none, 32B, 64B or 128B");
}

}  // namespace
}  // namespace tmaops::test
