// One thread per output element, each with a binary search of its own in global memory: what a first kernel does, and
// the only one here that takes every problem of the definition. The other variants are measured against it.
//
// Threads of one target repeat its search; they run in step on the same addresses, so it costs instructions and
// latency, not bandwidth. Strides are free, rows may be packed, every group of channels has its own interpolation.
#include "device/warp.cuh"
#include "ops/resample/forward/shared/curves.cuh"
#include "ops/resample/shared/device_offsets.cuh"
#include "ops/resample/shared/timeline.cuh"
#include "ops/resample/shared/values.cuh"

namespace tmaops::ops::resample::element_search {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 256;

/// a / b and a % b of non-negative numbers; in 32 bits, several times faster, where both fit.
__device__ __forceinline__ std::int64_t divide(std::int64_t a, std::int64_t b, std::int64_t& rest) {
  if (((a | b) >> 32) == 0) {
    const auto quotient = static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
    rest = static_cast<std::uint32_t>(a) - quotient * static_cast<std::uint32_t>(b);
    return quotient;
  }
  const std::int64_t quotient = a / b;
  rest = a - quotient * b;
  return quotient;
}

/// The group of a channel.
__device__ __forceinline__ ChannelGroup group_of(const Call& call, std::int64_t channel) {
  if (call.group_count == 1) return {0, call.channels, call.interpolation};
  int low = 0;
  int high = call.group_count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (call.groups[middle].first <= channel)
      low = middle;
    else
      high = middle - 1;
  }
  return call.groups[low];
}

template <class T>
struct Quaternion {
  T x, y, z, w;
};
template <class Value>
__device__ Quaternion<Arithmetic<Value>> load_quaternion(const Value* at, std::int64_t stride) {
  return {widen(at[0]), widen(at[stride]), widen(at[2 * stride]), widen(at[3 * stride])};
}

template <class Time, class Value>
__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Call call) {
  using T = Arithmetic<Value>;
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  const Timeline& line = call.line;
  const std::int64_t element = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  std::int64_t channel = 0;
  const std::int64_t row = divide(element, call.channels > 0 ? call.channels : 1, channel);
  std::int64_t b = 0;
  std::int64_t t = 0;
  if (line.target_offsets) {  // the last trajectory that begins at or before the row is the one that holds it
    const auto begin = [&](std::int64_t at) { return __ldg(line.target_offsets + at); };
    if (row >= begin(line.batch)) return;
    b = count_until<std::int64_t>(begin, 0, line.batch, row) - 1;
    t = row - begin(b);
  } else {
    if (row >= line.batch * line.target_rows) return;
    b = divide(row, line.target_rows, t);
  }

  // Search.
  const std::int64_t count = line.source_count(b);
  const Time* timestamps = line.source.at<const Time>(b);
  const auto at = [&](std::int64_t i) { return __ldg(timestamps + i * line.source.row_stride); };
  Place<std::int64_t, T> found{0, missing()};
  if (count > 0) {
    const Time q = target_time<Time>(line, b, t);
    const std::int64_t i = earlier_sample(count_until<std::int64_t>(at, 0, count, q), count);
    found = place<T>(line, count, i, at(i), at(count > 1 ? i + 1 : i), q);
  }
  const bool is_missing = found.weight != found.weight;
  if (call.valid.data && channel == 0) *call.valid.at<std::uint8_t>(b, t) = !is_missing;
  if (call.channels == 0) return;

  // Combine.
  auto* out = call.output.at<Value>(b, t) + channel * call.output.channel_stride;
  if (is_missing) {
    *out = narrow<Value>(missing());
    return;
  }
  const ChannelGroup group = group_of(call, channel);
  const std::int64_t row_stride = call.values.row_stride;
  const std::int64_t channel_stride = call.values.channel_stride;
  const Value* values = static_cast<const Value*>(call.values.data) + call.values.first(b);
  found = resolve(group.interpolation, found);
  const Value* y = values + found.row * row_stride + channel * channel_stride;
  if (group.interpolation == Interpolation::slerp) {
    const Value* first = values + found.row * row_stride + group.first * channel_stride;
    const Quaternion<T> from = load_quaternion(first, channel_stride);
    const Quaternion<T> q = found.weight == 0
                                ? normalized(from)
                                : slerp(from, load_quaternion(first + row_stride, channel_stride), found.weight);
    const auto component = static_cast<int>(channel - group.first);
    *out = narrow<Value>(component == 0 ? q.x : component == 1 ? q.y : component == 2 ? q.z : q.w);
  } else if (found.weight == 0) {
    *out = *y;
  } else if (group.interpolation == Interpolation::cubic) {
    const NeighboursOf<T> around = neighbours<std::int64_t, Time, T>(line, at, count, found.row);
    const T a = widen(y[0]);
    const T b_value = widen(y[row_stride]);
    const T before = around.before >= 0 ? (a - widen(y[-row_stride])) * around.before : T(0);
    const T after = around.after >= 0 ? (widen(y[2 * row_stride]) - b_value) * around.after : T(0);
    *out = narrow<Value>(pchip(around, found.weight, a, b_value, before, after));
  } else {
    *out = mix(y[0], y[row_stride], found.weight);
  }
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  const std::int64_t targets = problem.packed_target ? problem.target : problem.batch * problem.target;
  if (targets == 0) return work;
  const Call call = any_offsets_call(work, problem, arguments, {.dependent_launch = arguments.dependent_launch});
  const std::int64_t blocks = (targets * std::max<std::int64_t>(problem.channels, 1) + kThreads - 1) / kThreads;
  const LaunchShape shape{
      .grid = static_cast<unsigned>(blocks), .block = kThreads, .dependent = arguments.dependent_launch};
  with_any_types(problem, [&]<class Time, class Value>(Time*, Value*) { work.add(kernel<Time, Value>, shape, call); });
  return work;
}

}  // namespace tmaops::ops::resample::element_search
