// How an output is compared with the reference.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bench/workloads/element.hpp"
#include "bench/workloads/workload.hpp"
#include "core/parallel.hpp"
#include "core/spelling.hpp"

namespace tmaops::bench {
namespace {

constexpr std::int64_t kGrain = 1 << 15;  // elements

/// First element that still holds the poison (all bits one), or -1.
std::int64_t first_poisoned(const TensorView& tensor) {
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  const auto* bytes = static_cast<const unsigned char*>(tensor.data);
  std::int64_t found = -1;
  std::mutex mutex;
  parallel_for(tensor.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      bool poisoned = true;
      for (std::int64_t b = 0; b < size; ++b) poisoned = poisoned && bytes[i * size + b] == 0xFF;
      if (!poisoned) continue;
      const std::scoped_lock lock(mutex);
      if (found < 0 || i < found) found = i;
      return;
    }
  });
  return found;
}

/// Row-major index of a memory offset of a dense tensor, as "[1, 5, 3]".
std::string index_text(const Layout& layout, std::int64_t offset) {
  std::vector<std::pair<std::int64_t, int>> by_stride;
  for (int i = 0; i < layout.rank; ++i)
    if (layout.shape[static_cast<std::size_t>(i)] > 1)
      by_stride.emplace_back(layout.strides[static_cast<std::size_t>(i)], i);
  std::ranges::sort(by_stride, std::greater{});
  std::array<std::int64_t, kMaxRank> at{};
  for (const auto& [stride, dimension] : by_stride) {
    at[static_cast<std::size_t>(dimension)] = offset / stride;
    offset %= stride;
  }
  return "[" + joined(std::span(at).first(static_cast<std::size_t>(layout.rank))) + "]";
}

/// Sums of squares of the differences and of the values, and the elements that differ most, or by no finite number.
struct Deviation {
  double difference = 0;
  double norm = 0;
  double largest = 0;
  std::size_t worst = 0;
  std::optional<std::size_t> broken{};
};

/// The parts of all threads are added in the order of the elements, so that their number does not matter.
Deviation deviation(DType dtype, const void* data, const Expected& expected) {
  const auto count = static_cast<std::int64_t>(expected.elements.size());
  std::vector<Deviation> parts(static_cast<std::size_t>((count + kGrain - 1) / kGrain));
  parallel_for(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    Deviation part;
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const double want = expected.values[i];
      const double got = load(dtype, data, expected.elements[i]);
      if (got == want || (std::isnan(got) && std::isnan(want))) {
        if (std::isfinite(want)) part.norm += want * want;
        continue;
      }
      const double off = std::abs(got - want);
      if (!std::isfinite(off)) {
        if (!part.broken) part.broken = i;
        continue;
      }
      if (off > part.largest) part.worst = i;
      part.largest = std::max(part.largest, off);
      part.difference += off * off;
      part.norm += want * want;
    }
    parts[static_cast<std::size_t>(begin / kGrain)] = part;
  });
  Deviation all;
  for (const Deviation& part : parts) {
    if (part.largest > all.largest) all.worst = part.worst;
    all.largest = std::max(all.largest, part.largest);
    all.difference += part.difference;
    all.norm += part.norm;
    if (!all.broken) all.broken = part.broken;
  }
  return all;
}

}  // namespace

double Workload::compared_part(const std::vector<Expected>& expected) const {
  double all = 0;
  double compared = 0;
  for (const TensorSpec& spec : specs_)
    if (spec.output) all += static_cast<double>(spec.layout.size());
  for (const Expected& one : expected) compared += static_cast<double>(one.elements.size());
  return all > 0 ? compared / all : 1;
}

Comparison Workload::check(int set, double tolerance) {
  const double allowed = tolerance > 0 ? tolerance : this->tolerance();
  Comparison result{.ok = true};
  const auto fail = [&result](std::string problem) {
    if (result.ok) result.problem = std::move(problem);
    result.ok = false;
  };
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const auto& [name, dtype, layout, output] = specs_[i];
    if (!this->set(set)[i].canaries_intact()) fail("wrote outside " + name);
    if (!output) continue;
    fetch(name, set);
    if (const std::int64_t at = first_poisoned(host(name, set)); at >= 0)
      fail(name + index_text(layout, at) + " was not written");
  }
  if (!reference_) return result;
  result.compared = compared_part(*reference_);
  for (const Expected& expected : *reference_) {
    const TensorSpec& spec = specs_[index(expected.tensor)];
    const void* data = host(expected.tensor, set).data;
    const auto [difference, norm, largest, worst, broken] = deviation(spec.dtype, data, expected);
    const auto fail_at = [&](std::size_t i) {
      fail(fmt::format("{}{} is {} and should be {}", spec.name, index_text(spec.layout, expected.elements[i]),
                       load(spec.dtype, data, expected.elements[i]), expected.values[i]));
    };
    if (broken) fail_at(*broken);
    const double relative = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
    result.relative = std::max(result.relative, relative);
    result.max = std::max(result.max, largest);
    if (relative > allowed)
      fail(fmt::format("{}: relative error {:.3g}, allowed {:.3g}; worst at {}: {} should be {}", spec.name, relative,
                       allowed, index_text(spec.layout, expected.elements[worst]),
                       load(spec.dtype, data, expected.elements[worst]), expected.values[worst]));
    // One wrong element among millions hardly moves the norm, so each element has a limit too. Rounding of a large
    // element reaches a few times the allowed part of the root mean square, and the limit is a hundred times.
    const double rms = expected.elements.empty() ? 0 : std::sqrt(norm / static_cast<double>(expected.elements.size()));
    if (largest > 100 * allowed * rms && relative <= allowed) fail_at(worst);
  }
  return result;
}

double Workload::peer_tolerance() const {
  const DType input = specs_.front().dtype;
  return std::max(tolerance(), rounding_tolerance(input == DType::f64 ? DType::f32 : input));
}

double rounding_tolerance(DType output) {
  switch (output) {
    case DType::f64:
      return 1e-13;
    case DType::f16:
      return 4e-4;  // half a unit in the last place is 2^-12 to 2^-11 of the value
    case DType::bf16:
      return 3e-3;  // 2^-9 to 2^-8
    default:
      return 1e-5;  // sums in f32, with products in any order
  }
}

}  // namespace tmaops::bench
