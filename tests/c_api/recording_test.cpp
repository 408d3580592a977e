// Recordings through the C interface: rules that are decided once, and episodes that are resampled by them.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tmaops/tmaops.h"

namespace tmaops::test {
namespace {

struct Columns {
  explicit Columns(std::vector<double> stamps, std::vector<double> angles)
      : times(std::move(stamps)), yaw(std::move(angles)), shape{static_cast<std::int64_t>(times.size())} {
    for (const auto& [name, values] : {std::pair{"t", &times}, {"yaw", &yaw}}) {
      tmaops_recording_column column{};
      column.name = name;
      column.type = "<f8";
      column.data = values->data();
      column.shape = shape.data();
      column.dimensions = 1;
      all.push_back(column);
    }
    tmaops_recording_column label{};
    label.name = "label";
    label.type = "rows";
    label.shape = shape.data();
    label.dimensions = 1;
    all.push_back(label);
  }
  std::int64_t count() const { return static_cast<std::int64_t>(all.size()); }

  std::vector<double> times, yaw;
  std::vector<std::int64_t> shape;
  std::vector<tmaops_recording_column> all;
};

TEST(RecordingC, rules_are_decided_once_and_hold_for_packed_episodes) {
  const Columns first({0, 1, 2}, {3, -3, -2.9});
  tmaops_recording_options options = TMAOPS_RECORDING_OPTIONS;
  tmaops_recording_rules* rules = nullptr;
  ASSERT_EQ(tmaops_recording_decide(first.all.data(), first.count(), &options, &rules), 0)
      << tmaops_last_error()->message;
  const std::string report = tmaops_recording_rules_report(rules);
  EXPECT_NE(report.find(R"("name": "yaw", "mode": "angle")"), std::string::npos) << report;
  EXPECT_NE(report.find(R"("id": "unit_assumed")"), std::string::npos) << report;

  const Columns more({0, 1, 0, 1}, {3, -3, 1, 2});
  const std::int64_t offsets[] = {0, 2, 4};
  options.offsets = offsets;
  options.offset_count = 3;
  options.hz = 2;
  tmaops_recording_result* result = nullptr;
  ASSERT_EQ(tmaops_recording_resample(rules, more.all.data(), more.count(), &options, &result), 0)
      << tmaops_last_error()->message;
  std::int64_t count = 0;
  const tmaops_recording_column* columns = tmaops_recording_result_columns(result, &count);
  ASSERT_EQ(count, 4);
  EXPECT_STREQ(columns[1].name, "yaw");
  EXPECT_EQ(columns[1].source, 1);
  ASSERT_EQ(columns[1].shape[0], 6);
  const auto* yaw = static_cast<const double*>(columns[1].data);
  EXPECT_NEAR(std::abs(yaw[1]), 3.14159265, 1e-6) << "the shorter way round";
  EXPECT_DOUBLE_EQ(yaw[4], 1.5);
  EXPECT_STREQ(columns[2].type, "rows");
  EXPECT_EQ(static_cast<const std::int64_t*>(columns[2].data)[5], 3);
  EXPECT_STREQ(columns[3].name, "valid");
  const std::int64_t* bounds = tmaops_recording_result_offsets(result, &count);
  EXPECT_EQ(std::vector(bounds, bounds + count), (std::vector<std::int64_t>{0, 3, 6}));
  tmaops_recording_result_destroy(result);

  EXPECT_NE(tmaops_recording_resample(rules, more.all.data(), 2, &options, &result), 0);
  EXPECT_NE(std::string(tmaops_last_error()->needed).find("label"), std::string::npos);
  tmaops_recording_rules_destroy(rules);
}

TEST(RecordingC, wrong_arguments_are_named) {
  Columns columns({0, 1}, {1, 2});
  tmaops_recording_options options = TMAOPS_RECORDING_OPTIONS;
  options.hz = 2;
  tmaops_recording_result* result = nullptr;
  columns.all[1].type = "<c8";
  EXPECT_NE(tmaops_recording_resample(nullptr, columns.all.data(), columns.count(), &options, &result), 0);
  EXPECT_NE(std::string(tmaops_last_error()->where).find("columns[1].type"), std::string::npos);
  columns.all[1].type = "<f8";
  options.outside = "elsewhere";
  EXPECT_NE(tmaops_recording_resample(nullptr, columns.all.data(), columns.count(), &options, &result), 0);
  EXPECT_NE(std::string(tmaops_last_error()->where).find("outside"), std::string::npos);
  EXPECT_NE(tmaops_recording_resample(nullptr, nullptr, 1, &options, &result), 0);
  EXPECT_NE(tmaops_recording_resample(nullptr, columns.all.data(), columns.count(), &options, nullptr), 0);
}

}  // namespace
}  // namespace tmaops::test
