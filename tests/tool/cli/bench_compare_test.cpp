// `tmaops bench --compare` against result files whose times are made faster or slower.
#include <gtest/gtest.h>

#include "cli/bench_fixture.hpp"

namespace tmaops::test {
namespace {

class CompareCommand : public testing::Test {
 protected:
  /// A base file whose times are `factor` times the measured ones.
  std::string base(double factor) {
    EXPECT_EQ(run_tool(short_bench(folder / "now.json", {"--force"})).exit_code, 0);
    Json json = read_json(folder / "now.json");
    for (Json& row : json["rows"])
      for (const char* key : {"median", "p10", "p90"}) row["us"][key] = row["us"][key].get<double>() * factor;
    return folder.file("base.json", json.dump()).string();
  }
  Scratch folder;
};

TEST_F(CompareCommand, slower_than_allowed_ends_with_one) {
  const ToolResult result =
      run_tool(short_bench(folder / "new.json", {"--compare", base(1e-3), "--fail-if-slower", "5%"}));
  EXPECT_EQ(result.exit_code, 1);
  expect_text(result.err, "E091", "RC 32");
  expect_text(result.out, "slower");
  EXPECT_TRUE(std::filesystem::exists(folder / "new.json")) << "the new results are kept";
}

TEST_F(CompareCommand, slower_is_only_told_without_the_option) {
  EXPECT_EQ(run_tool(short_bench(folder / "new.json", {"--compare", base(1e-3)})).exit_code, 0);
}

TEST_F(CompareCommand, faster_is_told) {
  const ToolResult result =
      run_tool(short_bench(folder / "new.json", {"--compare", base(1e3), "--fail-if-slower", "5%"}));
  EXPECT_EQ(result.exit_code, 0);
  expect_text(result.out, "faster");
}

TEST_F(CompareCommand, a_run_that_is_done_in_part_is_compared_too) {
  const std::string problem = "gemm: {mode: RC, size: 32, dtype: f32, variant: [auto, wgmma_tma]}";
  const auto compare = [&](double factor) {
    return run_tool(short_bench(folder / "new.json",
                                {"--device", "cpu", "--force", "--compare", base(factor), "--fail-if-slower", "5%"},
                                problem));
  };
  const ToolResult faster = compare(1e3);
  EXPECT_EQ(faster.exit_code, 3) << faster.err;
  expect_text(faster.out, "faster");
  const ToolResult slower = compare(1e-3);
  EXPECT_EQ(slower.exit_code, 1) << slower.err;
  expect_text(slower.err, "E091", "RC 32");
}

TEST_F(CompareCommand, a_base_without_this_problem_passes_nothing) {
  const std::string other = base(1);
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--device", "cpu", "--force", "--compare", other});
    return run_tool(short_bench(folder / "new.json", more, "gemm: {mode: RC, size: 16, dtype: f32}"));
  };
  EXPECT_EQ(run({}).exit_code, 0);
  const ToolResult gate = run({"--fail-if-slower", "5%"});
  EXPECT_EQ(gate.exit_code, 2);
  expect_text(gate.err, "--fail-if-slower", "no variant that both");
  EXPECT_TRUE(std::filesystem::exists(folder / "new.json")) << "the new results are kept";
}

/// A result file of one row on a GPU, with two counters.
std::string counted(double us, double dram, double conflicts) {
  const auto number = [](double value) { return Json{value * 0.99, value * 1.01}; };
  const std::string dram_name = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
  const std::string conflicts_name = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";
  Json row{
      {"operator", "resample"}, {"case", "32,100->256,32"}, {"implementation", "warp_search"}, {"kind", "variant"}};
  row.update({{"selected", "warp_search"}, {"dtype", "f32"}, {"device", "cuda:0"}, {"temperature", "hot"}});
  row.update({{"us", {{"median", us}, {"p10", us * 0.99}, {"p90", us * 1.01}, {"n", 30}}}, {"gbps", 1}, {"tflops", 1}});
  row.update({{"sm_mhz", 1980}, {"error", {{"relative", 0}, {"max", 0}}}, {"verified", true}});
  row["counters"] = {
      {"kernels", 1}, {"gpu__time_duration.sum", us * 1e3}, {dram_name, dram}, {conflicts_name, conflicts}};
  row["counters"]["p10_p90"] = {{dram_name, number(dram)}, {conflicts_name, number(conflicts)}};
  return Json{{"schema", 1},     {"status", "complete"},     {"machine", Json::object()},
              {"revision", "1"}, {"config", Json::object()}, {"rows", Json::array({row})}}
      .dump();
}

TEST_F(CompareCommand, two_files_are_compared_with_their_counters_and_nothing_is_run) {
  const std::string base = folder.file("base.json", counted(8, 20, 100)).string();
  const std::string now = folder.file("now.json", counted(4, 40, 100.5)).string();
  const ToolResult result = run_tool({"bench", "--compare", base, "--results", now});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_text(result.out, "warp_search", "faster", "-50.0 %", "gpu__time_duration.sum", "8000", "4000");
  expect_text(result.out, "dram__throughput", "+100.0 %");
  EXPECT_EQ(result.out.find("bank_conflicts"), std::string::npos) << "the spreads overlap";
  EXPECT_EQ(run_tool({"bench", "--compare", now, "--results", base, "--fail-if-slower", "5%"}).exit_code, 1);
  expect_text(run_tool({"bench", "--results", now}).err, "--results", "--compare BASE.json");
}

TEST_F(CompareCommand, a_broken_base_is_found_before_the_run) {
  const auto broken = folder.file("broken.json", "{\"schema\": 1}");
  const ToolResult result = run_tool(short_bench(folder / "new.json", {"--compare", broken.string()}));
  EXPECT_EQ(result.exit_code, 2);
  expect_text(result.err, "E041", "machine");
  EXPECT_FALSE(std::filesystem::exists(folder / "new.json"));
  expect_text(run_tool(short_bench(folder / "new.json", {"--compare", "missing.json"})).err, "E040", "No such file");
}

}  // namespace
}  // namespace tmaops::test
