#include "bench/run/report.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "bench/measure/gpu_memory.hpp"
#include "bench/run/compare.hpp"
#include "bench/run/tuning.hpp"
#include "support/expect_error.hpp"

namespace tmaops::bench {
namespace {

using Json = nlohmann::ordered_json;
using test::expect_error;

Row row(const std::string& implementation, Kind kind, double median, double spread = 0.1) {
  Row made{.info = {.op = "gemm", .name = "RC 256", .dtype = "f32", .floor_bytes = 3e6, .flops = 6e6},
           .implementation = implementation,
           .kind = kind,
           .temperature = "hot"};
  made.us = Summary{median, median * (1 - spread), median * (1 + spread), 30};
  made.verified = true;
  return made;
}

Refusal refusal(bool requested, int code) { return {{}, "wgmma", "needs a GPU", requested, code}; }

TEST(Report, rates_are_of_the_floor) {
  const Row one = row("tmaops", Kind::variant, 100);
  EXPECT_DOUBLE_EQ(one.gbps(), 30);
  EXPECT_DOUBLE_EQ(one.tflops(), 0.06);
}

TEST(Tuning, the_fastest_of_each_case_over_both_temperatures) {
  const auto timed = [](const char* name, const char* dtype, const char* temperature, double us) {
    Row made = row(name, Kind::variant, us);
    made.tuning_key = "RC 256";
    made.info.dtype = dtype;
    made.temperature = temperature;
    return made;
  };
  std::vector<Row> rows = {timed("a/1", "f16", "hot", 2),  timed("b/1", "f16", "hot", 1),
                           timed("c/1", "bf16", "hot", 5), timed("a/1", "f16", "cold", 2),
                           timed("b/1", "f16", "cold", 9), timed("d/1", "f16", "hot", 0.5)};
  rows.push_back(row("tmaops", Kind::variant, 0.1));  // of an operator without a table
  rows.push_back(timed("cublaslt", "f16", "hot", 0.1));
  rows.back().kind = Kind::peer;
  rows.push_back(timed("cublaslt", "f16", "cold", 0.1));
  rows.back().kind = Kind::peer;
  const auto best = fastest(rows, "NVIDIA H200");
  ASSERT_EQ(best.size(), 2U);
  EXPECT_EQ(best[0].choice, "a/1") << "d was lost before it was cold";
  EXPECT_DOUBLE_EQ(best[0].microseconds, 2);
  EXPECT_EQ(best[0].product, "RC 256");
  EXPECT_EQ(best[0].gpu, "NVIDIA H200");
  EXPECT_EQ(best[1].choice, "c/1");
  EXPECT_EQ(best[1].types, "bf16");
}

TEST(Report, exit_codes_say_what_happened) {
  Report report;
  report.rows.push_back(row("tmaops", Kind::variant, 1));
  EXPECT_EQ(report.exit_code(), 0);
  report.refused.push_back(refusal(false, 2));
  EXPECT_EQ(report.exit_code(), 0) << "a variant nobody asked for";
  report.refused.push_back(refusal(true, 4));
  EXPECT_EQ(report.exit_code(), 3) << "done in part";
  report.rows.clear();
  EXPECT_EQ(report.exit_code(), 4) << "nothing done for want of a GPU";
  report.rows.push_back(row("copy", Kind::ceiling, 1));
  EXPECT_EQ(report.exit_code(), 4) << "a ceiling is not what was asked for";
  report.failed.push_back(row("simd", Kind::variant, 1));
  EXPECT_EQ(report.exit_code(), 1);
  report.status = Status::partial;
  EXPECT_EQ(report.exit_code(), 130);
}

TEST(Report, its_json_keeps_the_schema) {
  Report report;
  report.rows.push_back(row("tmaops", Kind::variant, 12.5));
  report.rows.back().selected = "simd";
  report.rows.push_back(row("copy", Kind::ceiling, 10));
  const Json document = bench::to_json(report, {{"file", nullptr}});
  EXPECT_NO_THROW(check_schema(document, "x.json"));
  const Json& first = document["rows"][0];
  EXPECT_EQ(first["implementation"], "tmaops");
  EXPECT_EQ(first["selected"], "simd");
  EXPECT_EQ(first["kind"], "variant");
  EXPECT_EQ(first["us"]["median"], 12.5);
  EXPECT_EQ(first["device"], "cpu");
  EXPECT_TRUE(document["rows"][1]["selected"].is_null());
  std::vector<std::string> keys;
  for (const auto& [key, value] : first.items()) keys.push_back(key);
  EXPECT_EQ(keys,
            (std::vector<std::string>{
                "operator",    "case",    "implementation", "kind",           "selected", "dtype",    "device",
                "temperature", "us",      "gbps",           "tflops",         "of_copy",  "of_peak",  "sm_mhz",
                "clock_held",  "host_us", "host_fresh_us",  "host_launch_us", "error",    "verified", "compared"}));
  EXPECT_DOUBLE_EQ(first["of_copy"].get<double>(), 0.8) << "10 us of copying against 12.5";
  EXPECT_TRUE(document["rows"][1]["of_copy"].is_null()) << "the copy itself";
  EXPECT_TRUE(first["of_peak"].is_null()) << "of a GPU whose memory is known";
  EXPECT_TRUE(first["sm_mhz"].is_null());
  EXPECT_TRUE(first["clock_held"].is_null());
  EXPECT_TRUE(first["host_us"].is_null());
  EXPECT_TRUE(first["host_fresh_us"].is_null());
  EXPECT_TRUE(first["host_launch_us"].is_null());
}

TEST(Report, a_row_says_its_part_of_the_memorys_peak) {
  const GpuMemory h200{.clock_mhz = 3201, .bus_bits = 6144};
  EXPECT_NEAR(h200.peak_gbps(), 4916.7, 0.1) << "two transfers per clock";
  EXPECT_EQ((GpuMemory{.clock_mhz = 0, .bus_bits = 6144}.peak_gbps()), 0) << "a driver that does not tell the clock";
  Row one = row("tmaops", Kind::variant, 1);  // 3 MB in 1 us
  one.memory_peak = 4000;
  EXPECT_DOUBLE_EQ(*one.of_peak(), 0.75);
  one.memory_peak = 0;
  EXPECT_FALSE(one.of_peak().has_value());
  Row empty = row("empty", Kind::ceiling, 1);
  empty.memory_peak = 4000;
  EXPECT_FALSE(empty.of_peak().has_value()) << "it moves nothing";
  empty.implementation = "copy";
  EXPECT_TRUE(empty.of_peak().has_value());
}

TEST(Report, clocks_and_counters_of_a_gpu_are_in_its_json) {
  Report report;
  report.rows.push_back(row("tmaops", Kind::variant, 12.5));
  report.rows.back().clocks = Clocks{.sm_mhz = 1755, .held = {{"sw_power_cap", 0.25}}};
  Counters counters{.kernels = 2, .runs = 11};
  counters.values.fill(42);
  counters.p10.fill(41);
  counters.p90.fill(44);
  counters.back_to_back = BackToBack{.calls = 300, .values = {}};
  counters.back_to_back->values.fill(43);
  report.rows.back().counters = counters;
  report.rows.back().host = HostCost{.call_us = 2.5, .launch_us = 2.25, .fresh_us = 5.5};
  const Json first = bench::to_json(report, Json::object())["rows"][0];
  EXPECT_EQ(first["sm_mhz"], 1755);
  EXPECT_EQ(first["clock_held"], Json({{"sw_power_cap", 0.25}}));
  EXPECT_EQ(first["counters"]["kernels"], 2);
  EXPECT_EQ(first["host_us"], 2.5);
  EXPECT_EQ(first["host_fresh_us"], 5.5);
  EXPECT_EQ(first["host_launch_us"], 2.25);
  EXPECT_EQ(first["counters"]["runs"], 11);
  for (const CounterInfo& counter : kCounters) {
    EXPECT_EQ(first["counters"][counter.name], 42) << counter.name;
    EXPECT_EQ(first["counters"]["p10_p90"][counter.name], Json({41, 44})) << counter.name;
  }
  EXPECT_EQ(first["counters"].size(), kCounters.size() + 4);
  const Json& together = first["counters"]["back_to_back"];
  EXPECT_EQ(together["calls"], 300);
  EXPECT_EQ(together["dram__throughput.avg.pct_of_peak_sustained_elapsed"], 43);
  EXPECT_EQ(together.size(), kBackToBackCounters + 1);
}

TEST(HostCost, is_the_lower_quartile_of_the_bursts) {
  EXPECT_FALSE(undisturbed({}).has_value());
  const std::vector<HostCost> bursts{{9, 7, 5}, {3, 2, 6}, {3.5, 2.5, 90}, {4, 9, 8}, {80, 3, 7}};
  const auto cost = undisturbed(bursts);
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(cost->call_us, 3.5);
  EXPECT_EQ(cost->launch_us, 2.5);
  EXPECT_EQ(cost->fresh_us, 6);
  EXPECT_FALSE(undisturbed(std::vector<HostCost>{{9, 7}})->fresh_us.has_value()) << "a call that has plans alone";
}

TEST(Report, loads_are_reported_as_the_publications_did) {
  Report report;
  const auto add = [&](const std::string& name, const std::string& variant, double median) {
    report.rows.push_back(row(name, Kind::variant, median));
    report.rows.back().selected = variant;
    report.rows.back().loads = {.count = 8000, .manual = {"plain", "plain_prefetch"}};
  };
  add("plain", "plain", 3);
  add("tmaops", "plain_prefetch", 2);
  add("plain_pdl", "plain", 0.5);  // dependent launch: not what the others are compared with
  add("tensor", "tensor", 1.6);
  report.rows.back().loads->cycles = summarize(std::vector<double>{900, 1000, 1400});
  const Json document = bench::to_json(report, Json::object());
  EXPECT_NO_THROW(check_schema(document, "x.json"));
  const Json& loads = document["rows"][3]["loads"];
  EXPECT_EQ(loads["count"], 8000);
  EXPECT_NEAR(loads["per_second"].get<double>(), 5e9, 1e4);
  EXPECT_DOUBLE_EQ(loads["ns_each"].get<double>(), 0.2);
  EXPECT_DOUBLE_EQ(loads["vs_manual"].get<double>(), 1.25) << "against the faster of both";
  EXPECT_EQ(loads["cycles_per_block"]["mean"], 1100);
  EXPECT_EQ(loads["cycles_per_block"]["min"], 900);
  EXPECT_EQ(loads["cycles_per_block"]["max"], 1400);
  EXPECT_EQ(loads["cycles_per_block"]["blocks"], 3);
  EXPECT_TRUE(document["rows"][0]["loads"]["cycles_per_block"].is_null());
}

TEST(Report, its_text_has_one_row_per_line) {
  const Json document{
      {"schema", 1}, {"machine", {{"cpu", "x"}}}, {"rows", {{{"us", {{"median", 1.5}}}}, {{"us", nullptr}}}}};
  EXPECT_EQ(to_text(document),
            "{\n  \"schema\": 1,\n  \"machine\": {\n    \"cpu\": \"x\"\n  },\n"
            "  \"rows\": [\n    {\"us\":{\"median\":1.5}},\n    {\"us\":null}\n  ]\n}\n");
  EXPECT_EQ(Json::parse(to_text(document)), document);
}

TEST(Report, na_n_never_becomes_a_silent_null) {
  Report report;
  report.rows.push_back(row("tmaops", Kind::variant, 1));
  report.rows.back().error.relative = std::numeric_limits<double>::quiet_NaN();
  expect_error(ErrorCode::internal, [&] { bench::to_json(report, Json::object()); }, "not finite");
}

TEST(Report, broken_documents_are_named_at_the_first_break) {
  Report report;
  report.rows.push_back(row("tmaops", Kind::variant, 1));
  const Json good = bench::to_json(report, Json::object());
  const auto broken = [&](const auto& change) {
    Json document = good;
    change(document);
    return document;
  };
  const auto expect_broken = [](const Json& document, const std::string& where) {
    expect_error(ErrorCode::bad_format, [&] { check_schema(document, "x.json"); }, "x.json: " + where);
  };
  expect_broken(Json::array(), "document");
  expect_broken(broken([](Json& d) { d["schema"] = 2; }), "schema");
  expect_broken(broken([](Json& d) { d.erase("machine"); }), "machine");
  expect_broken(broken([](Json& d) { d["rows"][0]["us"].erase("p90"); }), "rows[0].us.p90");
  expect_broken(broken([](Json& d) { d["rows"][0]["us"]["median"] = 0; }), "rows[0].us.median");
  expect_broken(broken([](Json& d) { d["rows"][0]["us"]["p90"] = -1.5; }), "rows[0].us.p90");
  expect_broken(broken([](Json& d) { d["rows"][0]["kind"] = "other"; }), "rows[0].kind");
  expect_broken(broken([](Json& d) { d["rows"][0]["verified"] = 1; }), "rows[0].verified");
}

class Compare : public testing::Test {
 protected:
  static Json base() {
    Report report;
    report.rows.push_back(row("tmaops", Kind::variant, 100));
    report.rows.push_back(row("onednn", Kind::peer, 100));
    return bench::to_json(report, Json::object());
  }
  static Change change(double median, double spread = 0.1) {
    Report report;
    report.rows.push_back(row("tmaops", Kind::variant, median, spread));
    return compare(bench::to_json(report, Json::object()), base()).front().change;
  }
};

TEST_F(Compare, overlapping_spreads_are_no_change) {
  EXPECT_EQ(change(100), Change::same);
  EXPECT_EQ(change(115), Change::same);  // 103.5 ... 126.5 overlaps 90 ... 110
  EXPECT_EQ(change(130), Change::slower);
  EXPECT_EQ(change(70), Change::faster);
  EXPECT_EQ(change(130, 0.5), Change::same) << "noise as large as the change";
}

TEST_F(Compare, only_variants_beyond_the_share_are_regressions) {
  Report report;
  report.rows.push_back(row("tmaops", Kind::variant, 130));
  report.rows.push_back(row("onednn", Kind::peer, 200));
  const auto differences = compare(bench::to_json(report, Json::object()), base());
  const auto slower = regressions(differences, 0.05);
  ASSERT_EQ(slower.size(), 1u);
  EXPECT_EQ(slower[0].row.implementation, "tmaops");
  EXPECT_NEAR(slower[0].ratio(), 1.3, 1e-12);
  EXPECT_TRUE(regressions(differences, 0.5).empty());
}

TEST_F(Compare, rows_of_one_file_only_are_named) {
  Report report;
  report.rows.push_back(row("blocked", Kind::variant, 1));
  const auto differences = compare(bench::to_json(report, Json::object()), base());
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].change, Change::added);
  EXPECT_EQ(differences[1].change, Change::missing);
  EXPECT_EQ(differences[2].change, Change::missing);
  EXPECT_TRUE(regressions(differences, 0).empty());
}

}  // namespace
}  // namespace tmaops::bench
