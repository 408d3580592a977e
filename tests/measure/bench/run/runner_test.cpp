// The workloads of the three operators: names, shapes, and that every CPU variant passes on small cases.
#include "bench/run/runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/workloads/wanted_variants.hpp"
#include "bench/workloads/workload.hpp"
#include "support/expect_error.hpp"

namespace tmaops::bench {
namespace {

using test::expect_error;

Settings problem(const std::string& op, const std::vector<std::pair<std::string, std::string>>& values) {
  Settings settings(op, {"c.yaml", 1, 1});
  int column = 1;
  for (const auto& [name, value] : values) settings.add({name, value, {"c.yaml", 1, ++column}, false});
  return settings;
}

std::string name_of(const Settings& settings) { return make_workload(settings, {})->info().name; }

TEST(Cases, names_are_those_of_the_anchors) {
  EXPECT_EQ(name_of(problem("gemm", {{"mode", "RC"}, {"size", "1024"}})), "RC 1024");
  EXPECT_EQ(name_of(problem("gemm", {{"mode", "CR"}, {"m", "64"}, {"n", "4096"}, {"k", "7168"}})), "CR 64x4096x7168");
  EXPECT_EQ(name_of(problem("gemm", {{"case", "RC 64x4096x7168"}})), "RC 64x4096x7168");
  EXPECT_EQ(name_of(problem("ms_deform_attn", {{"case", "enc1/detr"}})), "enc1/detr");
  EXPECT_EQ(name_of(problem("resample", {{"case", "32,500->256,256"}})), "32,500->256,256");
  EXPECT_EQ(name_of(problem("resample", {{"case", "32,500->256,256/random"}})), "32,500->256,256/random");
  EXPECT_EQ(name_of(problem("ms_deform_attn", {{"case", "enc1/detr"}, {"sampling", "nearest"}})), "enc1/detr nearest");
  EXPECT_EQ(
      name_of(problem("ms_deform_attn", {{"case", "enc1/detr"}, {"direction", "backward"}, {"deterministic", "true"}})),
      "enc1/detr deterministic");
  EXPECT_EQ(name_of(problem("ms_deform_attn", {{"case", "enc1/detr"}, {"fused", "mask+softmax"}})),
            "enc1/detr fused=softmax+mask");
  EXPECT_EQ(name_of(problem("ms_deform_attn", {{"case", "enc1/detr"}, {"fused", "none"}})), "enc1/detr");
  EXPECT_EQ(name_of(problem("ms_deform_attn",
                            {{"case", "enc1/detr"}, {"fused", "reference_boxes"}, {"offset_scale", "0.25"}})),
            "enc1/detr fused=reference_boxes offset_scale=0.25");
}

TEST(Cases, an_attention_may_have_an_output_that_is_wider_than_its_values) {
  for (const auto& [direction, name] : {std::pair{"forward", "output"}, std::pair{"backward", "grad_output"}}) {
    const auto workload = make_workload(
        problem("ms_deform_attn",
                {{"case", "dec1/detr"}, {"dtype", "bf16"}, {"output_dtype", "f32"}, {"direction", direction}}),
        {});
    EXPECT_EQ(workload->tensor("value", 0).dtype, DType::bf16);
    EXPECT_EQ(workload->tensor(name, 0).dtype, DType::f32);
    EXPECT_EQ(workload->info().dtype, "bf16->f32");
  }
}

TEST(Cases, a_larger_offset_scale_makes_smaller_offsets_to_the_same_locations) {
  const auto offsets = [](const char* scale) {
    const auto workload = make_workload(problem("ms_deform_attn", {{"levels", "9x7 4x3"},
                                                                   {"queries", "75"},
                                                                   {"locations", "detr"},
                                                                   {"dtype", "f64"},
                                                                   {"fused", "reference_boxes"},
                                                                   {"offset_scale", scale}}),
                                        {});
    workload->prepare(1, 1);
    const TensorView stored = workload->tensor("sampling_locations", 0);
    const auto* data = static_cast<const double*>(stored.data);
    return std::vector<double>(data, data + stored.size());
  };
  const std::vector<double> small = offsets("0.25");
  const std::vector<double> large = offsets("4");
  ASSERT_EQ(small.size(), large.size());
  for (std::size_t i = 0; i < small.size(); ++i) EXPECT_NEAR(small[i], 16 * large[i], 1e-12 * std::abs(small[i]));
}

TEST(Cases, shapes_are_those_of_the_anchors) {
  const auto seed = make_workload(problem("ms_deform_attn", {{"case", "seed/detr"}, {"dtype", "f16"}}), {});
  EXPECT_EQ(seed->tensor("value", 0).shape_text(), "(48, 19560, 1, 32)");
  EXPECT_EQ(seed->tensor("sampling_locations", 0).shape_text(), "(48, 15422, 1, 4, 8, 2)");
  const auto encoder = make_workload(problem("ms_deform_attn", {{"case", "enc/uniform"}}), {});
  EXPECT_EQ(encoder->tensor("output", 0).shape_text(), "(2, 22223, 256)");
  const auto backward =
      make_workload(problem("ms_deform_attn", {{"case", "dec1/detr"}, {"direction", "backward"}}), {});
  EXPECT_EQ(backward->info().op, "ms_deform_attn_backward");
  const auto column_major = make_workload(problem("gemm", {{"mode", "CR"}, {"m", "3"}, {"n", "5"}, {"k", "7"}}), {});
  EXPECT_EQ(column_major->tensor("a", 0).strides_text(), "(1, 3)");
  EXPECT_EQ(column_major->tensor("b", 0).strides_text(), "(5, 1)");
  const auto to_values = make_workload(problem("resample", {{"case", "2,9->4,3"}, {"direction", "backward"}}), {});
  EXPECT_EQ(to_values->info().op, "resample_backward");
  EXPECT_EQ(to_values->tensor("grad_values", 0).shape_text(), "(2, 9, 3)");
}

TEST(Cases, mistakes_are_named_with_their_place) {
  expect_error(
      ErrorCode::unknown_case, [] { name_of(problem("ms_deform_attn", {{"case", "encoder/detr"}})); }, "c.yaml:1:2",
      "enc1");
  expect_error(ErrorCode::unknown_case, [] { name_of(problem("resample", {{"case", "32,500"}})); }, "B,S->T,D");
  expect_error(ErrorCode::unknown_case, [] { name_of(problem("gemm", {{"case", "RX 5"}})); });
  expect_error(ErrorCode::unknown_key, [] { name_of(problem("gemm", {{"sise", "5"}})); }, "Did you mean 'size'?");
  expect_error(ErrorCode::bad_value, [] { name_of(problem("gemm", {{"size", "-1"}})); });
  expect_error(ErrorCode::bad_value, [] { name_of(problem("gemm", {{"m", "5"}})); }, "no size");
  expect_error(ErrorCode::bad_value, [] { name_of(problem("gemm", {{"case", "RC 5"}, {"m", "5"}})); }, "c.yaml:1:3");
  expect_error(ErrorCode::bad_value, [] { name_of(problem("gemm", {{"size", "5"}, {"dtype", "i32"}})); }, "f16");
  expect_error(ErrorCode::bad_value, [] { name_of(problem("ms_deform_attn", {{"levels", "3y4"}, {"queries", "2"}})); });
  expect_error(
      ErrorCode::bad_value,
      [] {
        name_of(problem("resample", {{"case", "1,5->5,4"}, {"interpolation", "cubic"}, {"direction", "backward"}}));
      },
      "backward");
  expect_error(
      ErrorCode::bad_value,
      [] { name_of(problem("ms_deform_attn", {{"case", "enc1/detr"}, {"deterministic", "true"}})); },
      "direction: backward");
  for (const char* fused : {"soft", "", "softmax+", "mask+mask", "reference_points+reference_boxes"})
    expect_error(
        ErrorCode::bad_value, [&] { name_of(problem("ms_deform_attn", {{"case", "enc1/detr"}, {"fused", fused}})); },
        "joined by +");
  expect_error(
      ErrorCode::bad_value,
      [] { name_of(problem("ms_deform_attn", {{"case", "enc1/detr"}, {"direction", "backward"}, {"fused", "mask"}})); },
      "direction: forward");
  expect_error(
      ErrorCode::bad_value,
      [] { name_of(problem("ms_deform_attn", {{"case", "enc1/detr"}, {"fused", "softmax"}, {"offset_scale", "2"}})); },
      "reference_boxes");
  expect_error(
      ErrorCode::bad_value,
      [] { name_of(problem("ms_deform_attn", {{"case", "enc1/detr"}, {"dtype", "f32"}, {"output_dtype", "f16"}})); },
      "output_dtype", "f32");
  expect_error(ErrorCode::unknown_key, [] { make_workload(problem("conv", {}), {}); }, "gemm");
}

TEST(Cases, every_cpu_variant_passes_on_small_cases) {
  std::vector<Settings> problems;
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    for (const char* mode : {"RC", "CR", "RR", "CC"})
      problems.push_back(problem("gemm", {{"mode", mode},
                                          {"m", "33"},
                                          {"n", "20"},
                                          {"k", "17"},
                                          {"dtype", dtype},
                                          {"bias", "column"},
                                          {"activation", "gelu"},
                                          {"beta", "0.5"}}));
    for (const char* direction : {"forward", "backward"})
      problems.push_back(problem("ms_deform_attn", {{"levels", "9x7 4x3"},
                                                    {"queries", "75"},
                                                    {"heads", "3"},
                                                    {"channels", "8"},
                                                    {"locations", "detr"},
                                                    {"dtype", dtype},
                                                    {"direction", direction}}));
    for (const char* interpolation : {"linear", "previous", "cubic"})
      problems.push_back(problem("resample", {{"case", "3,50->40,5/random"},
                                              {"dtype", dtype},
                                              {"interpolation", interpolation},
                                              {"times", "f64"},
                                              {"max_gap", "0.013"}}));
  }
  problems.push_back(problem("resample", {{"case", "3,50->40,8"}, {"interpolation", "slerp"}, {"times", "i64"}}));
  for (const char* dtype : {"f32", "f16"}) {
    for (const char* interpolation : {"linear", "nearest"})
      problems.push_back(problem("resample", {{"case", "3,50->40,5/random"},
                                              {"dtype", dtype},
                                              {"interpolation", interpolation},
                                              {"direction", "backward"}}));
    for (const char* direction : {"forward", "backward"})
      problems.push_back(problem("ms_deform_attn", {{"levels", "9x7 4x3"},
                                                    {"queries", "75"},
                                                    {"dtype", dtype},
                                                    {"sampling", "nearest"},
                                                    {"direction", direction}}));
  }
  for (const char* fused : {"softmax", "reference_points", "reference_boxes+mask", "border",
                            "softmax+reference_points+mask+border", "softmax+reference_boxes+mask+border"})
    for (const char* sampling : {"bilinear", "nearest"})
      problems.push_back(problem("ms_deform_attn", {{"levels", "9x7 4x3"},
                                                    {"batch", "2"},
                                                    {"queries", "75"},
                                                    {"locations", "detr"},
                                                    {"sampling", sampling},
                                                    {"fused", fused}}));
  for (const char* scale : {"0.25", "2"})
    problems.push_back(problem("ms_deform_attn", {{"levels", "9x7 4x3"},
                                                  {"queries", "75"},
                                                  {"locations", "detr"},
                                                  {"fused", "softmax+reference_boxes"},
                                                  {"offset_scale", scale}}));
  for (const char* dtype : {"f16", "bf16"})
    for (const char* direction : {"forward", "backward"})
      problems.push_back(problem("ms_deform_attn", {{"levels", "9x7 4x3"},
                                                    {"queries", "75"},
                                                    {"dtype", dtype},
                                                    {"output_dtype", "f32"},
                                                    {"direction", direction}}));
  problems.push_back(problem("gemm", {{"size", "24"}, {"batch", "3"}, {"dtype", "bf16"}, {"out", "f32"}}));
  RunOptions options;
  options.time = false;
  options.all_variants = true;
  const Report report = run(problems, {}, options, {});
  for (const Row& row : report.failed)
    ADD_FAILURE() << row.info.problem << ": " << row.implementation << ": " << row.error.problem;
  for (const Refusal& refusal : report.refused) EXPECT_FALSE(refusal.requested) << refusal.reason;
  EXPECT_GE(report.rows.size(), 2 * problems.size()) << "the chosen variant and at least one other each";
}

TEST(Cases, the_data_says_what_a_resampling_touches) {
  const auto sparse = make_workload(problem("resample", {{"case", "64,4096->1024,32"}}), {});
  sparse->prepare(1, 1);
  EXPECT_LT(sparse->touched_bytes(), sparse->bytes() * 3 / 4) << "1,024 targets need 2,048 of 4,096 rows at most";
  const auto dense = make_workload(problem("resample", {{"case", "32,100->256,32"}}), {});
  dense->prepare(1, 1);
  EXPECT_LE(dense->touched_bytes(), dense->bytes());
  EXPECT_GT(dense->touched_bytes(), dense->bytes() * 9 / 10);
}

TEST(Cases, cold_inputs_rotate_over_sets_of_the_same_data) {
  RunOptions options;
  options.temperature = "cold";
  options.samples = kFewestSamples;
  options.min_time = 0;
  options.cold_bytes = std::int64_t{4} << 30;
  const Report report = run({problem("resample", {{"case", "64,4096->1024,64"}})}, {}, options, {});
  ASSERT_EQ(report.rows.size() + report.refused.size(), 1u);
  if (report.refused.empty()) {
    EXPECT_EQ(report.rows[0].temperature, "cold");
    EXPECT_EQ(report.rows[0].us->n, kFewestSamples);
  } else {
    EXPECT_EQ(report.exit_code(), 5) << report.refused[0].reason;  // a machine with little memory
  }
}

TEST(Cases, a_cold_run_that_does_not_fit_the_cap_is_refused_in_words) {
  RunOptions options;
  options.temperature = "cold";
  options.cold_bytes = 1 << 20;
  const Report report = run({problem("gemm", {{"size", "64"}, {"dtype", "f32"}})}, {}, options, {});
  ASSERT_EQ(report.refused.size(), 1u);
  EXPECT_NE(report.refused[0].reason.find("copies of the tensors"), std::string::npos) << report.refused[0].reason;
  EXPECT_TRUE(report.rows.empty());
}

TEST(Cases, the_types_of_one_case_are_timed_together_on_a_cpu) {
  const auto gemm = [](const char* name, const char* dtype) {
    return problem("gemm", {{"case", name}, {"dtype", dtype}});
  };
  const std::vector<Settings> problems{gemm("RC 8", "f32"), gemm("RC 8", "bf16"), gemm("CR 8", "f32"),
                                       gemm("RC 8", "f16")};
  const auto sizes = [&](const RunOptions& options) {
    std::vector<std::size_t> found;
    for (const Group& group : timing_groups(problems, {}, options)) found.push_back(group.size());
    return found;
  };
  EXPECT_EQ(sizes({}), (std::vector<std::size_t>{2, 1, 1}));
  EXPECT_EQ(sizes({.peers = {"torch_compile"}}), std::vector<std::size_t>(4, 1));

  RunOptions options;
  options.samples = kFewestSamples;
  options.min_time = 0;
  const Report report = run(problems, {}, options, {});
  ASSERT_EQ(report.rows.size(), problems.size());
  for (std::size_t i = 0; i < problems.size(); ++i) {
    EXPECT_EQ(report.rows[i].info.dtype, problems[i].find("dtype")->value);
    EXPECT_EQ(report.rows[i].us->n, kFewestSamples);
  }
}

TEST(Cases, a_tuning_times_the_peers_of_the_configuration_beside_every_way) {
  const Settings product = problem("gemm", {{"case", "RC 16"}, {"dtype", "f32"}});
  const Report report =
      run({product}, {}, {.samples = kFewestSamples, .min_time = 0, .peers = {"copy"}, .tune = true}, {});
  std::vector<std::string> wanted = make_workload(product, {})->candidates();
  wanted.emplace_back("copy");
  std::vector<std::string> timed;
  for (const Row& row : report.rows) timed.push_back(row.implementation);
  std::ranges::sort(wanted);
  std::ranges::sort(timed);
  EXPECT_EQ(timed, wanted);
}

TEST(Cases, unknown_variants_and_peers_are_named) {
  const auto run_one = [](const Settings& settings, std::vector<std::string> peers) {
    RunOptions options;
    options.peers = std::move(peers);
    run({settings}, {}, options, {});
  };
  expect_error(
      ErrorCode::unknown_variant, [&] { run_one(problem("gemm", {{"size", "8"}, {"variant", "magic"}}), {}); },
      "c.yaml:1:3", "reference");
  expect_error(ErrorCode::unknown_variant, [&] { run_one(problem("gemm", {{"size", "8"}, {"version", "99"}}), {}); });
  expect_error(
      ErrorCode::bad_value, [&] { run_one(problem("gemm", {{"size", "8"}}), {"nunpy"}); }, "Did you mean 'numpy'?");
}

TEST(Cases, references_are_kept_for_further_runs) {
  const std::vector<Settings> problems = {problem("gemm", {{"size", "8"}, {"dtype", "f32"}, {"variant", "reference"}})};
  References references;
  const RunOptions options{.time = false, .references = &references};
  EXPECT_EQ(run(problems, {}, options, {}).rows.size(), 1U);
  ASSERT_EQ(references.size(), 1U);
  std::vector<Expected> wrong = *references.begin()->second;
  for (double& value : wrong.at(0).values) value += 1;
  references.begin()->second = std::make_shared<const std::vector<Expected>>(wrong);
  EXPECT_EQ(run(problems, {}, options, {}).failed.size(), 1U) << "the reference was made anew";
}

TEST(Cases, a_variant_may_be_named_with_its_configuration) {
  const Settings one = problem("resample", {{"case", "3,50->40,8"}, {"variant", "persistent_warp/2"}});
  const WantedVariants wanted = wanted_variants(one, make_workload(one, {})->variants(), false);
  ASSERT_EQ(wanted.named.size(), 1u);
  EXPECT_EQ(wanted.named.front().name, "persistent_warp/2");
  EXPECT_EQ(make_workload(one, {})->variants().at(wanted.named.front().index).info.name, "persistent_warp");
}

TEST(Cases, a_configuration_that_a_variant_has_not_is_refused) {
  const Settings one = problem("resample", {{"case", "3,50->40,8"}, {"variant", "portable/3"}});
  const Report report = run({one}, {}, {.time = false}, {});
  ASSERT_EQ(report.refused.size(), 1u);
  EXPECT_EQ(report.refused.front().implementation, "portable/3");
  EXPECT_TRUE(report.rows.empty());
}

TEST(Cases, cute_is_the_published_implementation_in_two_versions) {
  const auto settings = [](std::vector<std::pair<std::string, std::string>> more) {
    std::vector<std::pair<std::string, std::string>> all{{"size", "128"}, {"impl", "cute"}};
    all.insert(all.end(), more.begin(), more.end());
    return problem("gemm", all);
  };
  const auto wanted = [](const Settings& one) {
    return wanted_variants(one, make_workload(one, {})->variants(), true);
  };
  EXPECT_EQ(wanted(settings({})).peers, (std::vector<std::string>{"cute_v1", "cute_v2"}));
  EXPECT_EQ(wanted(settings({{"version", "2"}})).peers, std::vector<std::string>{"cute_v2"});
  EXPECT_TRUE(wanted(settings({})).named.empty());
  EXPECT_FALSE(wanted(settings({})).chosen) << "nothing of ours was asked for";
  const WantedVariants both = wanted(settings({{"impl", "wgmma"}, {"version", "2"}}));
  EXPECT_EQ(both.peers, std::vector<std::string>{"cute_v2"});
  EXPECT_EQ(both.named.size(), 1u);
  expect_error(ErrorCode::unknown_variant, [&] { wanted(settings({{"version", "3"}})); }, "1 or 2");
  expect_error(ErrorCode::unknown_variant, [&] { wanted(settings({{"impl", "cutlass"}})); }, "wgmma or cute");
  expect_error(ErrorCode::bad_value, [&] { wanted(settings({{"variant", "blocked"}})); }, "version");

  RunOptions options;
  options.time = false;
  const Report on_cpu = run({settings({{"version", "2"}})}, {}, options, {});
  EXPECT_TRUE(on_cpu.rows.empty());
  ASSERT_EQ(on_cpu.refused.size(), 1u);
  EXPECT_EQ(on_cpu.refused[0].implementation, "cute_v2");
  EXPECT_EQ(on_cpu.exit_code(), 4) << "it runs on a GPU";
}

TEST(Cases, an_interrupt_ends_the_run_with_what_it_has) {
  RunOptions options;
  options.samples = 1000;
  options.min_time = 0;
  int asked = 0;
  Observer observer;
  observer.interrupted = [&asked] { return ++asked > 40; };
  const Report report =
      run({problem("gemm", {{"size", "8"}, {"dtype", "f32"}}), problem("gemm", {{"size", "16"}, {"dtype", "f32"}})}, {},
          options, observer);
  EXPECT_EQ(report.exit_code(), 130);
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_LT(report.rows[0].us->n, 1000);
}

}  // namespace
}  // namespace tmaops::bench
