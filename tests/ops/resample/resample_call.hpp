// A small right call of resample() that tests of bad input change in one place.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tmaops/resample.hpp"

namespace tmaops::test {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Two trajectories of three samples with two channels, onto two targets; any part can be replaced before the call.
struct Call {
  std::vector<float> data{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15};
  std::vector<double> x{0, 1, 2, 0, 1, 2};
  std::vector<double> q{0.5, 1.5, 0.5, 2};
  std::vector<float> out = std::vector<float>(8, -1);
  ConstTensorView values = view(std::as_const(data).data(), {2, 3, 2});
  ConstTensorView source_times = view(std::as_const(x).data(), {2, 3});
  ConstTensorView target_times = view(std::as_const(q).data(), {2, 2});
  TensorView output = view(out.data(), {2, 2, 2});
  std::optional<UniformGrid> grid{};
  ResampleOptions options{};

  void run() {
    if (grid)
      resample(values, source_times, *grid, output, options);
    else
      resample(values, source_times, target_times, output, options);
  }
};

inline void expect_next_call_right(const std::string& variant) {
  Call call;
  call.options.variant = variant;
  call.run();
  EXPECT_EQ(call.out, (std::vector<float>{1, 2, 3, 4, 11, 12, 14, 15}));
}

}  // namespace tmaops::test
