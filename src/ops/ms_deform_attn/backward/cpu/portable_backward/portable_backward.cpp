// Plain loops over channels, four corners at a time. shared/driver.hpp has the frame.
#include <algorithm>
#include <array>
#include <cmath>

#include "ops/ms_deform_attn/backward/shared/driver.hpp"

namespace tmaops::ops::ms_deform_attn_backward::portable_backward {
namespace {

/// A sample in the map: the offset of its upper left corner, and the place of it between the four.
template <class T>
struct Sample {
  bool inside = false;
  std::int64_t offset = 0;
  T a = 0;  // to the right, 0 to 1
  T b = 0;  // down
  std::array<bool, 4> in_level{};
};

template <class T>
Sample<T> locate(const MapTables<T>& tables, Sampling sampling, std::size_t point, T x, T y) {
  Sample<T> sample;
  if (!std::isfinite(x) || !std::isfinite(y)) return sample;
  const T width = tables.width[point];
  const T height = tables.height[point];
  T left = 0;
  T top = 0;
  if (sampling == Sampling::nearest) {
    left = std::clamp(std::floor(x * width + T(0.5)), T(0), width - 1);
    top = std::clamp(std::floor(y * height + T(0.5)), T(0), height - 1);
  } else {
    const T u = x * width - T(0.5);
    const T t = y * height - T(0.5);
    if (!(u > -1 && u < width && t > -1 && t < height)) return sample;
    left = std::floor(u);
    top = std::floor(t);
    sample.a = u - left;
    sample.b = t - top;
    const bool l = left >= 0;
    const bool r = left + 1 < width;
    const bool above = top >= 0;
    const bool below = top + 1 < height;
    sample.in_level = {above && l, above && r, below && l, below && r};
  }
  sample.inside = true;
  sample.offset = tables.base[point] + static_cast<std::int64_t>(top) * tables.pitch[point] +
                  static_cast<std::int64_t>(left) * tables.channels;
  return sample;
}

template <class T>
T dot(const T* g, const T* v, std::int64_t channels) {
  std::array<T, kChannelBlock> sum{};
  for (std::int64_t c = 0; c < channels; c += kChannelBlock)
    for (std::int64_t i = 0; i < kChannelBlock; ++i) sum[static_cast<std::size_t>(i)] += g[c + i] * v[c + i];
  T total = 0;
  for (const T part : sum) total += part;
  return total;
}

template <class T>
void scatter(const T* g, T weight, T* to, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) to[c] += weight * g[c];
}

template <class T>
void kernel(const KernelArguments<T>& call) {
  const MapTables<T>& tables = *call.tables;
  for (std::size_t k = 0; k < call.end - call.begin; ++k) {
    const std::size_t point = call.begin + k;
    call.grad_xy[2 * k] = 0;
    call.grad_xy[2 * k + 1] = 0;
    call.grad_attention[k] = 0;
    const Sample<T> sample = locate(tables, call.sampling, point, call.xy[2 * k], call.xy[2 * k + 1]);
    if (!sample.inside) continue;
    const T weight = call.attention[k];
    if (call.sampling == Sampling::nearest) {
      if (call.value) call.grad_attention[k] = dot(call.grad_output, call.value + sample.offset, tables.channels);
      if (call.grad_value) scatter(call.grad_output, weight, call.grad_value + sample.offset, tables.channels);
      continue;
    }
    const T a = sample.a;
    const T b = sample.b;
    const std::array<std::int64_t, 4> step{0, tables.channels, tables.pitch[point],
                                           tables.pitch[point] + tables.channels};
    const std::array<T, 4> bilinear{(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b};
    std::array<T, 4> c{};
    for (std::size_t corner = 0; corner < 4; ++corner) {
      const std::int64_t at = sample.offset + step[corner];
      if (!sample.in_level[corner]) continue;
      if (call.value) c[corner] = dot(call.grad_output, call.value + at, tables.channels);
      if (bilinear[corner] != 0) call.grad_attention[k] += bilinear[corner] * c[corner];
      if (call.grad_value) scatter(call.grad_output, weight * bilinear[corner], call.grad_value + at, tables.channels);
    }
    call.grad_xy[2 * k] = weight * tables.width[point] * ((1 - b) * (c[1] - c[0]) + b * (c[3] - c[2]));
    call.grad_xy[2 * k + 1] = weight * tables.height[point] * ((1 - a) * (c[2] - c[0]) + a * (c[3] - c[1]));
  }
}

void run(const Problem& problem, const Arguments& arguments) {
  if (problem.forward.value_dtype == DType::f64)
    Driver<double>(problem, arguments, &kernel<double>).run();
  else
    Driver<float>(problem, arguments, &kernel<float>).run();
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (!MapTables<float>::fits(problem.forward)) return Support::no("the map of one head has 2^31 elements or more");
  return Support::yes();
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return cpu_work(run, problem, arguments);
}

}  // namespace tmaops::ops::ms_deform_attn_backward::portable_backward
