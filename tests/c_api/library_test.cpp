#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "c_api/c_tensors.hpp"
#include "tmaops/registry.hpp"
#include "tmaops/threads.hpp"
#include "tmaops/version.hpp"

namespace tmaops::c_api_test {
namespace {

TEST(CLibrary, says_its_version) {
  EXPECT_EQ(tmaops_version(), version());
  EXPECT_EQ(tmaops_revision(), revision());
}

TEST(CLibrary, lists_every_operator_and_variant_as_the_registry_does_but_no_study) {
  std::int64_t index = 0;
  for (const std::string_view op : operators()) {
    const std::vector<VariantInfo> all = variants(op);
    if (std::ranges::all_of(all, &VariantInfo::study)) {
      EXPECT_EQ(tmaops_variant_at(std::string(op).c_str(), 0), nullptr);
      EXPECT_EQ(tmaops_last_error()->code, tmaops_error_unknown_variant);
      EXPECT_NE(std::string(tmaops_last_error()->needed).find("gemm, ms_deform_attn"), std::string::npos);
      continue;
    }
    const char* name = tmaops_operator_at(index++);
    ASSERT_NE(name, nullptr);
    EXPECT_EQ(name, op);
    std::int64_t variant_index = 0;
    for (const VariantInfo& variant : all) {
      if (variant.study) continue;
      const tmaops_variant* got = tmaops_variant_at(name, variant_index++);
      ASSERT_NE(got, nullptr) << op << " " << variant.name;
      EXPECT_EQ(got->name, variant.name);
      EXPECT_EQ(got->description, variant.description);
      EXPECT_EQ(got->arch, variant.arch);
      EXPECT_EQ(got->missing, variant.missing);
      EXPECT_EQ(got->missing[0] == '\0', variant.built);
      EXPECT_EQ(got->device_type == tmaops_device_cuda, variant.device == DeviceType::cuda);
      EXPECT_EQ(got->version, variant.version);
    }
    EXPECT_EQ(tmaops_variant_at(name, variant_index), nullptr);
    EXPECT_EQ(tmaops_variant_at(name, -1), nullptr);
  }
  EXPECT_EQ(tmaops_operator_at(index), nullptr);
  EXPECT_EQ(tmaops_operator_at(-1), nullptr);
}

TEST(CLibrary, an_unknown_operator_has_no_variants_and_an_error_that_names_those_there_are) {
  EXPECT_EQ(tmaops_variant_at("gem", 0), nullptr);
  EXPECT_EQ(tmaops_last_error()->code, tmaops_error_unknown_variant);
  EXPECT_NE(std::string(tmaops_last_error()->needed).find("gemm"), std::string::npos);
  EXPECT_EQ(tmaops_variant_at(nullptr, 0), nullptr);
}

TEST(CLibrary, sets_the_number_of_threads) {
  int count = 0;
  EXPECT_EQ(tmaops_set_num_threads(3), tmaops_done);
  EXPECT_EQ(tmaops_num_threads(&count), tmaops_done);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(tmaops_set_num_threads(0), tmaops_done);
  EXPECT_EQ(tmaops_set_num_threads(1025), tmaops_error_bad_parameter);
  expect_failed(tmaops_num_threads(nullptr), tmaops_error_null_pointer, "tmaops_num_threads: count");
}

TEST(CLibrary, calls_run_on_the_threads_of_a_framework) {
  int parts_run = 0;
  const auto one_after_the_other = [](void* context, int parts, tmaops_parallel_task task, const void* task_context) {
    for (int part = 0; part < parts; ++part) task(task_context, part);
    *static_cast<int*>(context) += parts;
  };
  const CTensor<float> a({256, 256}, std::vector<float>(256 * 256, 1.0F));
  CTensor<float> d({256, 256});
  tmaops_gemm_options options = TMAOPS_GEMM_OPTIONS;
  options.variant = "blocked";
  EXPECT_EQ(tmaops_set_num_threads(2), tmaops_done);
  EXPECT_EQ(tmaops_set_parallel_for(one_after_the_other, &parts_run), tmaops_done);
  EXPECT_EQ(tmaops_gemm(a, a, d, &options, nullptr), tmaops_done) << tmaops_last_error()->message;
  EXPECT_EQ(tmaops_set_parallel_for(nullptr, nullptr), tmaops_done);
  EXPECT_EQ(tmaops_set_num_threads(0), tmaops_done);
  EXPECT_EQ(parts_run, 2);
  EXPECT_EQ(d.values.back(), 256.0F);
}

}  // namespace
}  // namespace tmaops::c_api_test
