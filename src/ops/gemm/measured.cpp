#include "ops/gemm/measured.hpp"

#include <algorithm>
#include <iterator>

namespace tmaops::ops::gemm {
namespace {

/// A line of measured.inc, which is in the order of the products.
struct MeasuredChoice {
  std::string_view product;
  std::string_view choice;
};
constexpr MeasuredChoice kMeasured[] = {
#include "ops/gemm/measured.inc"
};
static_assert(std::ranges::is_sorted(kMeasured, {}, &MeasuredChoice::product));

}  // namespace

std::string_view measured_choice(const DeviceInfo& device, std::string_view product) {
  constexpr int kMultiprocessors = 132;  // of the SXM module
  const bool hopper = device.name.starts_with("NVIDIA H100") || device.name.starts_with("NVIDIA H200");
  if (!hopper || device.multiprocessors != kMultiprocessors) return {};
  const auto* const found = std::ranges::lower_bound(kMeasured, product, {}, &MeasuredChoice::product);
  return found != std::end(kMeasured) && found->product == product ? found->choice : std::string_view{};
}

}  // namespace tmaops::ops::gemm
