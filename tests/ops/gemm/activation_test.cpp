#include <array>

#include "ops/gemm/gemm_case.hpp"
#include "ops/gemm/shared/host_activation.hpp"

namespace tmaops::ops::gemm {
namespace {

TEST(GemmActivation, is_close_to_f64_over_the_whole_range) {
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::silu}) {
    double worst = 0;
    for (double x = -88; x < 100; x += 0.00731) {
      std::array<float, 3> values{0, static_cast<float>(x), 1};
      activate(activation, values.data(), 3);
      const double want = test::exact_activation(activation, static_cast<double>(static_cast<float>(x)));
      const double error = std::abs(static_cast<double>(values[1]) - want);
      EXPECT_LE(error, 4e-7 * std::max(1.0, std::abs(want))) << to_string(activation) << " of " << x;
      if (std::abs(want) > 1e-37) worst = std::max(worst, error / std::abs(want));
    }
    EXPECT_LE(worst, activation == Activation::gelu ? 2e-5 : 1e-6) << to_string(activation) << ", relative";
  }
}

}  // namespace
}  // namespace tmaops::ops::gemm
