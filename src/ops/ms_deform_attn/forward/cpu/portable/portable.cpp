// Plain loops. Per query and head the pixels and weights are listed first, then their channels are summed in
// blocks that the compiler keeps in vector registers. No library, any layout.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/parallel.hpp"
#include "ops/ms_deform_attn/shared/call_threads.hpp"
#include "ops/ms_deform_attn/shared/point_rows.hpp"

namespace tmaops::ops::ms_deform_attn::portable {
namespace {

/// Channels summed at once: 32 f32 are 8 SSE registers of the 16 there are.
constexpr std::int64_t kBlock = 32;
/// Queries a thread takes at a time.
constexpr std::int64_t kGrain = 32;

/// Makes locations of the offsets from the reference points of a query.
template <class T>
void add_reference(const Problem& problem, const Arguments& arguments, std::int64_t n, std::int64_t q, T* to) {
  const ConstTensorView& reference = arguments.reference_points;
  std::int64_t at = head_offset(reference, n, q, 0);
  for (const Level& level : problem.levels) {
    const auto part = [&](int component) {
      return static_cast<T>(read(reference, at + component * reference.strides[3]));
    };
    const bool box = problem.reference_components == 4;
    const T scale = static_cast<T>(arguments.offset_scale) / static_cast<T>(level.points);
    const T step_x = box ? part(2) * scale : 1 / static_cast<T>(level.width);
    const T step_y = box ? part(3) * scale : 1 / static_cast<T>(level.height);
    for (std::int64_t p = 0; p < level.points; ++p, to += 2) {
      to[0] = part(0) + to[0] * step_x;
      to[1] = part(1) + to[1] * step_y;
    }
    at += reference.strides[2];
  }
}

/// Makes weights of logits.
template <class T>
void take_softmax(std::vector<T>& weights) {
  T largest = -std::numeric_limits<T>::infinity();
  for (const T logit : weights) largest = logit > largest ? logit : largest;
  T sum = 0;
  for (T& weight : weights) sum += weight = std::exp(weight - largest);
  for (T& weight : weights) weight /= sum;
}

/// A pixel that a query and head reads: offset of its first channel, attention weight times bilinear weight.
template <class T>
struct Pixel {
  std::int64_t offset;
  T weight;
};

/// Appends the pixels of one sample of image n, those of weight 0 and masked ones left out.
template <class T>
void append_pixels(const Problem& problem, const Arguments& arguments, const Level& level, std::int64_t n, T x, T y,
                   T weight, std::vector<Pixel<T>>& pixels) {
  if (!std::isfinite(x) || !std::isfinite(y)) return;
  const auto width = static_cast<T>(level.width);
  const auto height = static_cast<T>(level.height);
  const auto add = [&](std::int64_t row, std::int64_t column, T factor) {
    const std::int64_t pixel = level.start + row * level.pitch + column;
    if (!masked(problem, arguments, n, pixel)) pixels.push_back({pixel * arguments.value.strides[1], factor});
  };
  if (problem.sampling == Sampling::nearest) {
    const T column = std::clamp(std::floor(x * width + T(0.5)), T(0), width - 1);
    const T row = std::clamp(std::floor(y * height + T(0.5)), T(0), height - 1);
    // Where f32 cannot count the pixels of a side, width - 1 may have been rounded up.
    add(std::min(static_cast<std::int64_t>(row), level.height - 1),
        std::min(static_cast<std::int64_t>(column), level.width - 1), weight);
    return;
  }
  const T u = x * width - T(0.5);
  const T t = y * height - T(0.5);
  if (!(u > -1 && u < width && t > -1 && t < height)) return;
  const T left = std::floor(u);
  const T top = std::floor(t);
  const auto j = static_cast<std::int64_t>(left);
  const auto i = static_cast<std::int64_t>(top);
  const T to_right = u - left;
  const T to_bottom = t - top;
  for (const int di : {0, 1})
    for (const int dj : {0, 1}) {
      const T bilinear = (di ? to_bottom : 1 - to_bottom) * (dj ? to_right : 1 - to_right);
      if (i + di < 0 || i + di >= level.height || j + dj < 0 || j + dj >= level.width || bilinear == 0) continue;
      add(i + di, j + dj, weight * bilinear);
    }
}

enum class Channels { dense_block, any };

/// sum[c] = sum over pixels of weight * channel first + c, for kBlock channels next to each other or any `count`.
template <class T, class Stored, Channels channels>
void sum_channels(const std::vector<Pixel<T>>& pixels, const Stored* value, std::int64_t stride, std::int64_t count,
                  T* sum) {
  std::array<T, kBlock> block{};
  for (const Pixel<T>& pixel : pixels) {
    const Stored* from = value + pixel.offset;
    if constexpr (channels == Channels::dense_block) {
      for (std::size_t c = 0; c < kBlock; ++c) block[c] += pixel.weight * convert<T>(from[c]);
    } else {
      for (std::int64_t c = 0; c < count; ++c)
        block[static_cast<std::size_t>(c)] += pixel.weight * convert<T>(from[c * stride]);
    }
  }
  std::copy_n(block.data(), count, sum);
}

template <class Stored, class Out>
void run_of(const Problem& problem, const Arguments& arguments) {
  using T = Arithmetic<Stored>;
  const Layout& layout = arguments.value;
  const std::int64_t stride = layout.strides[3];
  const PointRows location_rows(problem, arguments.sampling_locations, 2);
  const PointRows weight_rows(problem, arguments.attention_weights, 1);
  const auto points = static_cast<std::size_t>(problem.points);

  const int threads = forward_threads(problem);
  parallel_for(problem.batch * problem.queries, kGrain, threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> locations(2 * points);
    std::vector<T> weights(points);
    std::vector<Pixel<T>> pixels;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = i / problem.queries;
      const std::int64_t q = i % problem.queries;
      for (std::int64_t m = 0; m < problem.heads; ++m) {
        location_rows.load(n, q, m, locations.data());
        weight_rows.load(n, q, m, weights.data());
        if (problem.reference_components != 0) add_reference(problem, arguments, n, q, locations.data());
        if (problem.softmax) take_softmax(weights);
        pixels.clear();
        std::size_t k = 0;
        for (const Level& level : problem.levels)
          for (std::int64_t p = 0; p < level.points; ++p, ++k)
            append_pixels(problem, arguments, level, n, locations[2 * k], locations[2 * k + 1], weights[k], pixels);

        const Stored* value = static_cast<const Stored*>(arguments.value.data) + value_offset(layout, n, 0, m);
        Out* output = static_cast<Out*>(arguments.output.data) + output_offset(problem, arguments.output, n, q, m);
        for (std::int64_t first = 0; first < problem.channels; first += kBlock) {
          std::array<T, kBlock> sum;
          const std::int64_t count = std::min(kBlock, problem.channels - first);
          if (count == kBlock && stride == 1)
            sum_channels<T, Stored, Channels::dense_block>(pixels, value + first, 1, count, sum.data());
          else
            sum_channels<T, Stored, Channels::any>(pixels, value + first * stride, stride, count, sum.data());
          for (std::int64_t c = 0; c < count; ++c)
            output[(first + c) * arguments.output.strides[2]] = static_cast<Out>(sum[static_cast<std::size_t>(c)]);
        }
      }
    }
  });
}

void run(const Problem& problem, const Arguments& arguments) {
  with_float_type(problem.value_dtype, [&]<class Stored>(Stored*) {
    if (problem.output_dtype == problem.value_dtype)
      run_of<Stored, Stored>(problem, arguments);
    else
      run_of<Stored, float>(problem, arguments);
  });
}

}  // namespace

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return cpu_work(run, problem, arguments);
}

}  // namespace tmaops::ops::ms_deform_attn::portable
