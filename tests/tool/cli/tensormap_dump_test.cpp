// `tmaops tensormap --dump`: texts of the shapes that frameworks print.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/scratch.hpp"
#include "support/tool.hpp"

namespace tmaops::test {
namespace {

ToolResult dump(const std::string& text, std::vector<std::string> arguments = {}) {
  const Scratch folder;
  const std::string file = (folder / "log.txt").string();
  std::ofstream(file) << text;
  arguments.insert(arguments.begin(), {"tensormap", "--dump", file});
  return run_tool(arguments);
}

std::string cutlass(const std::string& before, const std::string& address, const std::string& dims,
                    const std::string& strides, const std::string& swizzle = "3") {
  std::string text;
  for (const std::string line : {"TMA Desc Addr:   0x7ffd7d2800c0", "format         6", "dim            3"})
    text += before + line + "\n";
  text += before + "gmem_address   " + address + "\n" + before + "globalDim      " + dims + "\n" + before +
          "globalStrides  " + strides + "\n" + before + "boxDim         (64,128,1,1,1)\n" + before +
          "elementStrides (1,1,1,1,1)\n" + before + "interleave     0\n" + before + "swizzle        " + swizzle + "\n" +
          before + "l2Promotion    2\n" + before + "oobFill        0\n";
  return text + "Error: Failed to initialize the TMA descriptor 1\n";
}

TEST(TensorMapDump, reads_what_cutlass_prints) {
  const ToolResult result = dump(cutlass("", "0x7f4520000000", "(1000,1024,8,1,1)", "(2,2000,2048000,0,0)"));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  expect_text(result.out,
              "line 2: --dtype f16 --dims 1000,1024,8 --box 64,128,1 --swizzle 128B --l2-promotion 128B --address "
              "0x7f4520000000\nvalid\n",
              "barrier   expects 16384 bytes", "the log names 1, CUDA_ERROR_INVALID_VALUE: The map breaks a rule");
  EXPECT_EQ(result.out.find("Shared memory, 128 bytes a line"), std::string::npos) << "a log needs no pictures";
  const ToolResult odd = dump(cutlass("", "0x7f4520000000", "(1022,1024,8,1,1)", "(2,2044,2093056,0,0)"));
  EXPECT_EQ(odd.exit_code, 1);
  expect_text(odd.out, "strides[0] = 2044 B, not a multiple of 16 B [stride_16]", "valid instead: rows padded");
}

TEST(TensorMapDump, lines_may_have_a_prefix_and_maps_repeat) {
  const std::string once = cutlass("(EngineCore pid=104) ", "0", "(1024,1024,1,1,1)", "(2,2048,2097152,0,0)");
  const ToolResult result = dump("INFO dim 3 is what it is\n" + once + once + once);
  EXPECT_EQ(result.exit_code, 1);
  expect_text(result.out, "line 3: --dtype f16", "the address is null", "[E016]");
  EXPECT_EQ(result.out.find("line 3:"), result.out.rfind("line ")) << "the same map is told once";
}

TEST(TensorMapDump, ranks_may_write_at_one_time) {
  std::istringstream first(cutlass("[rank0]: ", "0x7f4520000000", "(1024,64,8)", "(2,2048,131072)"));
  std::istringstream second(cutlass("[rank1]: ", "0x7f4520000000", "(1024,32,8)", "(2,2048,65536)"));
  std::string text;
  for (std::string line, other; std::getline(first, line) && std::getline(second, other);)
    text += line + "\n" + other + "\n";
  const ToolResult result = dump(text);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  expect_text(result.out, "line 3: --dtype f16 --dims 1024,64,8 --box", "line 4: --dtype f16 --dims 1024,32,8 --box");
}

TEST(TensorMapDump, reads_what_flash_infer_prints_garbage_behind_the_lists_included) {
  const ToolResult result = dump(
      "Error: Failed to initialize the TMA descriptor due to invalid argument\n"
      "tmaFormat: 9 dim: 4 gmem: 0x7b4cc0000000\n"
      "Shape: 192 131072 128 1 3806834432\n"
      "Stride: 49152 384 2305843007066210304 273\n"
      "tileShapes: 64 128 1 1 49152\n"
      "tileStrides: 1 1 1 1 1969767282\n"
      "swizzleType: 3\n");
  EXPECT_EQ(result.exit_code, 1);
  expect_text(result.out,
              "line 2: --dtype bf16 --dims 192,131072,128,1 --box 64,128,1,1 --strides 49152,384,2305843007066210304",
              "[stride_range]");
}

TEST(TensorMapDump, reads_what_deep_gemm_prints) {
  const ToolResult result = dump(
      "Making TMA desc: global memory: 7168 4096, shared memory: 64 128, outer stride: 7168, swizzle: 128 (base: 0), "
      "elem "
      "size: 2\n"
      "Making 3D TMA desc: global memory: 64 96 8, shared memory: 32 64 1, outer stride: 64 6144, swizzle: 64, elem "
      "size: "
      "2\n");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  expect_text(result.out,
              "line 1: --dtype bf16 --dims 7168,4096 --box 64,128 --swizzle 128B --l2-promotion 256B\nvalid",
              "line 2: --dtype bf16 --dims 64,96,8 --box 32,64,1 --swizzle 64B --l2-promotion 256B\nvalid");
}

TEST(TensorMapDump, reads_what_tile_lang_prints) {
  const ToolResult plain = dump(
      "Failed to initialize the TMA descriptor 1\nTMA Desc Addr:   0x7ffd7d2800c0\nformat         9\n"
      "dim            2\ngmem_address   0x7f4520000000\nglobalDim      [3072, 1]\nglobalStrides  [2, 6144]\n"
      "boxDim         [64, 16]\nelementStrides [1, 1]\ninterleave     0\nswizzle        3\nl2Promotion    2\n"
      "oobFill        0\n");
  EXPECT_EQ(plain.exit_code, 0) << plain.out << plain.err;
  expect_text(plain.out, "line 3: --dtype bf16 --dims 3072,1 --box 64,16 --swizzle 128B");
  const ToolResult in_words = dump(
      "  [1] effective cuda globalStrides[0] (raw globalStride[1] = 6932) must be a multiple of 16 bytes\n"
      "TMA Desc Addr:   0x7ffd7d2800c0 (mod64=0)\nformat         7 (CU_TENSOR_MAP_DATA_TYPE_FLOAT32)\n"
      "dim            2\ngmem_address   0x7f4520000000 (mod16=0, mod32=0)\nglobalDim      [1733, 64]\n"
      "globalStridesRaw [4, 6932]\ncudaGlobalStrides [6932]\nboxDim         [32, 64]\nelementStrides [1, 1]\n"
      "interleave     0 (CU_TENSOR_MAP_INTERLEAVE_NONE)\nswizzle        3 (CU_TENSOR_MAP_SWIZZLE_128B)\n"
      "l2Promotion    2 (CU_TENSOR_MAP_L2_PROMOTION_L2_128B)\noobFill        0 (CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)\n");
  EXPECT_EQ(in_words.exit_code, 1);
  expect_text(in_words.out, "line 3: --dtype f32 --dims 1733,64 --box 32,64 --swizzle 128B", "[stride_16]");
}

TEST(TensorMapDump, reads_im2col_maps) {
  const ToolResult result = dump(
      "Failed to initialize the TMA descriptor 1\nTMA Desc Addr:   0x7ffd7d2800c0\nformat         6\n"
      "dim            4\ngmem_address   0x7f4520000000\nglobalDim      [128, 9, 8, 2]\n"
      "globalStrides  [2, 256, 2304, 18432]\nsmem_box_pixel 16\nsmem_box_channel 128\n"
      "pixelBoxLowerCorner  [-1, -1]\npixelBoxUpperCorner  [-1, -1]\nelementStrides [1, 2, 2, 1]\n"
      "interleave     0\nswizzle        3\nl2Promotion    2\noobFill        0\n");
  EXPECT_EQ(result.exit_code, 1);
  expect_text(result.out,
              "line 3: --dtype f16 --dims 128,9,8,2 --lower-corner -1,-1 --upper-corner -1,-1 --channels-per-pixel 128 "
              "--pixels-per-column 16",
              "--element-strides 1,2,2,1", "[swizzle_span]");
}

TEST(TensorMapDump, says_that_cutlass_prints_no_im2col_map) {
  const std::string assertion =
      "prog: cute/atom/copy_traits_sm90_im2col.hpp:486: auto cute::detail::make_im2col_tma_copy_desc(" +
      std::string(2000, 'x') + "): Assertion `encode_result != CUDA_ERROR_INVALID_VALUE' failed.\nAborted\n";
  const ToolResult alone = dump("conv\n" + assertion);
  EXPECT_EQ(alone.exit_code, 2);
  expect_text(alone.err, "--dump, line 2", "CUTLASS prints an assertion and no field", "--lower-corner W,H");
  const ToolResult last = dump(cutlass("", "0x7f4520000000", "(1000,1024,8,1,1)", "(2,2000,2048000,0,0)") + assertion);
  expect_text(last.out, "line 2: --dtype f16 --dims 1000,1024,8", "not read: an im2col map of which CUTLASS");
}

TEST(TensorMapDump, a_torn_map_does_not_hide_the_others) {
  const std::string torn = "TMA Desc Addr:   0x7fff1c7c1700\nformat         9\ndim            )(,31024,\n";
  const std::string whole = cutlass("", "0x7f4520000000", "(1024,1024,8,1,1)", "(2,2048,2097152,0,0)");
  const ToolResult result = dump(torn + whole);
  EXPECT_EQ(result.exit_code, 1);
  expect_text(result.out, "line 5: --dtype f16 --dims 1024,1024,8", "\nline 2: not read: a tensor map without dim\n");
  EXPECT_EQ(nlohmann::json::parse(dump(torn + whole, {"--json"}).out)["not_read"].size(), 1U);
}

TEST(TensorMapDump, tells_an_answer_that_is_not_about_the_map) {
  std::string text = cutlass("", "0x7f4520000000", "(1024,1024,8,1,1)", "(2,2048,2097152,0,0)");
  text.replace(text.rfind(" 1\n"), 3, " 999\n");
  expect_text(dump(text).out, "the log names 999, not 1, the answer to a wrong map");
}

TEST(TensorMapDump, tells_that_an_earlier_kernel_failed) {
  std::string text = cutlass("", "0x7f4520000000", "(64,16,32,1,1)", "(2,4096,128,0,0)");
  text.replace(text.rfind(" 1\n"), 3, " 700\n");
  const auto json = nlohmann::json::parse(dump(text, {"--json"}).out);
  EXPECT_EQ(json["codes"], (std::vector<int>{700}));
  EXPECT_EQ(json["maps"].size(), 1U);
  EXPECT_EQ(json["maps"][0]["valid"], true);
  EXPECT_EQ(json["maps"][0]["line"], 2);
  for (const auto& finding : json["maps"][0]["findings"])
    EXPECT_NE(finding["rule"], "stride_overlap") << "32 heads inside the row of a token";
}

TEST(TensorMapDump, reads_stdin) {
  const ToolResult result = Tool({"-c",
                                  "printf 'Making TMA desc: global memory: 64 8, shared memory: 64 8, outer stride: "
                                  "64, swizzle: 0, elem size: 4'"
                                  " | \"$0\" tensormap --dump -",
                                  TMAOPS_TOOL},
                                 {}, "/bin/sh")
                                .wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_text(result.out, "--dtype f32 --dims 64,8 --box 64,8");
}

TEST(TensorMapDump, wrong_texts_are_refused_by_line) {
  const auto refused = [](const ToolResult& result, const auto&... pieces) {
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(result.out, "");
    expect_text(result.err, pieces...);
  };
  refused(dump(""), "E100", "--dump", "0 lines without a tensor map", "CUTLASS");
  refused(dump("the format 6 is fine\n"), "1 lines without a tensor map");
  refused(dump("format 6\ndim 2\n"), "--dump, line 1", "without gmem_address");
  refused(dump("\nformat 6\ndim 2\ngmem_address 0x10\nglobalDim (64)\nboxDim (64,8)\n"), "line 2",
          "globalDim with 1 entries", "2 or more");
  refused(dump("format 99\ndim 2\ngmem_address 0x10\n"), "format 99", "0 to 15");
  refused(dump(cutlass("", "0x10", "(64,64,8)", "(2,128,8192)", "9")), "swizzle 9", "0 to 6");
  refused(
      dump("Making TMA desc: global memory: 64 8, shared memory: 64 8, outer stride: 64, swizzle: 96, elem size: 4\n"),
      "swizzle 96B", "32, 64 or 128");
  refused(dump("x\n", {"--dims", "64,64"}), "--dump beside --dims", "--dump alone");
  refused(run_tool({"tensormap", "--dump", "/no/such/file"}), "E040");
}

}  // namespace
}  // namespace tmaops::test
