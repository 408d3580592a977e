#include "probe/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tmaops::probe {
namespace {

Report good() {
  Report report{.seed = 7, .compute_capability = 90};
  report.specifications = {.count = 10, .tiled = 8, .accepted = 5, .agreed = 10};
  report.loads = {.count = 4, .exact = 4, .bytes = 400};
  report.faults.push_back({.fault = &faults().front(), .outcome = "right: all of 512 elements", .expected = true});
  return report;
}

TEST(ProbeReport, the_exit_code_says_whether_all_is_explained) {
  EXPECT_EQ(good().exit_code(), 0);
  Report report = good();
  report.specifications.disagreed = 1;
  EXPECT_EQ(report.exit_code(), 1);
  report = good();
  report.loads.exact = 3;
  EXPECT_EQ(report.exit_code(), 1);
  report = good();
  report.faults.front().expected = false;
  EXPECT_EQ(report.exit_code(), 1);
  report.complete = false;
  EXPECT_EQ(report.exit_code(), 130);
}

TEST(ProbeReport, the_document_has_every_part) {
  Report report = good();
  report.matrix = run_matrix(1024, 90, [](const auto&) { return tma::DriverAnswer{1, "CUDA_ERROR_INVALID_VALUE"}; });
  const auto json = to_json(report, {{"gpu", "a model"}});
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["status"], "complete");
  EXPECT_EQ(json["machine"]["gpu"], "a model");
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["matrix"]["examples"].size(), report.matrix.size());
  const auto& examples = json["matrix"]["examples"];
  EXPECT_TRUE(std::ranges::any_of(examples, [](const auto& example) { return example["driver"] == nullptr; }))
      << "lists of wrong lengths are never passed";
  EXPECT_EQ(json["specifications"]["im2col"], 2);
  EXPECT_EQ(json["specifications"]["quirks"].size(), quirks().size());
  EXPECT_EQ(json["loads"]["exact"], 4);
  EXPECT_EQ(json["faults"][0]["fault"], "none");
}

}  // namespace
}  // namespace tmaops::probe
