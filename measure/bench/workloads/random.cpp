#include "bench/workloads/random.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "bench/workloads/element.hpp"
#include "core/parallel.hpp"

namespace tmaops::bench {
namespace {

constexpr std::int64_t kPart = 1 << 14;  // elements filled from one generator

}  // namespace

double Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  // f32 inside: these values are rounded to f32 or less anyway, and it is three times as fast.
  const auto radius = std::sqrt(-2.0F * std::log(static_cast<float>(1.0 - uniform())));
  const auto angle = 2.0F * std::numbers::pi_v<float> * static_cast<float>(uniform());
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

void fill_normal(const TensorView& tensor, std::uint64_t seed) {
  const std::int64_t count = tensor.size();
  visit_dtype(tensor.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    T* data = static_cast<T*>(tensor.data);
    parallel_for((count + kPart - 1) / kPart, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t part = first; part < last; ++part) {
        Random random(seed, static_cast<std::uint64_t>(part) + 1);
        const std::int64_t end = std::min(count, (part + 1) * kPart);
        for (std::int64_t i = part * kPart; i < end; ++i) data[i] = static_cast<T>(static_cast<float>(random.normal()));
      }
    });
  });
}

}  // namespace tmaops::bench
