#include "ops/gemm/measured.hpp"

#include <algorithm>
#include <iterator>

namespace tmaops::ops::gemm {
namespace {

/// A line of measured.inc, which is in the order of the products.
struct MeasuredChoice {
  std::string_view product;
  std::string_view on_h100, on_h200;  // empty: what the costs choose
};
constexpr MeasuredChoice kMeasured[] = {
#include "ops/gemm/measured.inc"
};
static_assert(std::ranges::is_sorted(kMeasured, {}, &MeasuredChoice::product));

}  // namespace

std::string_view measured_choice(const DeviceInfo& device, std::string_view product) {
  constexpr int kMultiprocessors = 132;  // of the SXM module
  const bool h200 = device.name.starts_with("NVIDIA H200");
  if (!(h200 || device.name.starts_with("NVIDIA H100")) || device.multiprocessors != kMultiprocessors) return {};
  const auto* const found = std::ranges::lower_bound(kMeasured, product, {}, &MeasuredChoice::product);
  if (found == std::end(kMeasured) || found->product != product) return {};
  return h200 ? found->on_h200 : found->on_h100;
}

}  // namespace tmaops::ops::gemm
