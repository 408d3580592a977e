// The definition of the gradients, in f64. With g = grad_output[n, q, m, :], the level and pixel coordinates u, t and
// the sample of reference.cpp, and  c[i, j] = sum over d of g[d] * v[i, j, d]  (0 outside the level):
//
//   grad_value[n, s, m, :] = sum over all points one of whose four corners is pixel s of w * bilinear weight * g
//   grad_attention_weights[n, q, m, l, p] = sum over corners of bilinear weight * c[i, j], without those of weight 0
//   grad_x = w * width  * ((1 - b) (c[i, j + 1] - c[i, j]) + b (c[i + 1, j + 1] - c[i + 1, j]))
//   grad_y = w * height * ((1 - a) (c[i + 1, j] - c[i, j]) + a (c[i + 1, j + 1] - c[i, j + 1]))
//
// with j = floor(u), a = u - j, i = floor(t), b = t - i (at a kink, the derivative to the right); the corners are the
// pixels i..i+1, j..j+1 inside the level. A skipped point has zero gradients; with nearest sampling the location
// gradient is zero.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/parallel.hpp"
#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/shared/elements.hpp"

namespace tmaops::ops::ms_deform_attn_backward::reference_backward {
namespace {

using namespace ms_deform_attn;  // NOLINT(google-build-using-namespace): the operator's shared access to elements
using ms_deform_attn_backward::Arguments;
using ms_deform_attn_backward::Problem;

/// One head of one image: everything a gradient of it depends on, and nothing another head writes.
class Head {
 public:
  Head(const Problem& problem, const Arguments& arguments, std::int64_t n, std::int64_t m)
      : problem_(problem),
        forward_(problem.forward),
        arguments_(arguments),
        n_(n),
        m_(m),
        grad_value_(problem.grad_value ? static_cast<std::size_t>(forward_.length * forward_.channels) : 0) {}

  void run() {
    const TensorView& to_locations = arguments_.gradients.sampling_locations;
    const TensorView& to_weights = arguments_.gradients.attention_weights;
    const ConstTensorView& locations = arguments_.sampling_locations;
    const ConstTensorView& weights = arguments_.attention_weights;
    const auto at = [&](const Layout& layout, std::int64_t q, const Level& level, std::int64_t p) {
      return head_offset(layout, n_, q, m_) + point_offset(forward_, level, p, layout);
    };
    for (std::int64_t q = 0; q < forward_.queries; ++q)
      for (const Level& level : forward_.levels)
        for (std::int64_t p = 0; p < level.points; ++p) {
          const std::int64_t xy = at(locations, q, level, p);
          const Point gradient = point(level, q, read_coordinate(forward_, locations, xy),
                                       read_coordinate(forward_, locations, xy + xy_stride(locations)),
                                       read(weights, at(weights, q, level, p)));
          if (problem_.grad_sampling_locations) {
            const std::int64_t out = at(to_locations, q, level, p);
            write(to_locations, out, gradient.x);
            write(to_locations, out + xy_stride(to_locations), gradient.y);
          }
          if (problem_.grad_attention_weights) write(to_weights, at(to_weights, q, level, p), gradient.weight);
        }
    if (!problem_.grad_value) return;
    const TensorView& to_value = arguments_.gradients.value;
    for (std::int64_t s = 0; s < forward_.length; ++s)
      for (std::int64_t d = 0; d < forward_.channels; ++d)
        write(to_value, value_offset(to_value, n_, s, m_) + d * to_value.strides[3], grad_value_[index(s, d)]);
  }

 private:
  struct Point {
    double x = 0;
    double y = 0;
    double weight = 0;
  };

  std::size_t index(std::int64_t s, std::int64_t d) const {
    return static_cast<std::size_t>(s * forward_.channels + d);
  }

  /// c of the pixel s.
  double dot(std::int64_t s, std::int64_t q) const {
    const ConstTensorView& value = arguments_.value;
    const ConstTensorView& grad = arguments_.grad_output;
    const std::int64_t from = output_offset(forward_, grad, n_, q, m_);
    double sum = 0;
    for (std::int64_t d = 0; d < forward_.channels; ++d)
      sum +=
          read(grad, from + d * grad.strides[2]) * read(value, value_offset(value, n_, s, m_) + d * value.strides[3]);
    return sum;
  }

  /// Adds weight * g to the gradient of pixel s.
  void scatter(std::int64_t s, std::int64_t q, double weight) {
    if (!problem_.grad_value) return;
    const ConstTensorView& grad = arguments_.grad_output;
    const std::int64_t from = output_offset(forward_, grad, n_, q, m_);
    for (std::int64_t d = 0; d < forward_.channels; ++d)
      grad_value_[index(s, d)] += weight * read(grad, from + d * grad.strides[2]);
  }

  Point point(const Level& level, std::int64_t q, double x, double y, double weight) {
    Point gradient;
    if (!std::isfinite(x) || !std::isfinite(y)) return gradient;
    const auto width = static_cast<double>(level.width);
    const auto height = static_cast<double>(level.height);
    if (forward_.sampling == Sampling::nearest) {
      const double column = std::clamp(std::floor(x * width + 0.5), 0.0, width - 1);
      const double row = std::clamp(std::floor(y * height + 0.5), 0.0, height - 1);
      const std::int64_t s =
          level.start + static_cast<std::int64_t>(row) * level.width + static_cast<std::int64_t>(column);
      scatter(s, q, weight);
      gradient.weight = dot(s, q);
      return gradient;
    }
    const double u = x * width - 0.5;
    const double t = y * height - 0.5;
    if (!(u > -1 && u < width && t > -1 && t < height)) return gradient;
    const auto left = static_cast<std::int64_t>(std::floor(u));
    const auto top = static_cast<std::int64_t>(std::floor(t));
    const double a = u - std::floor(u);
    const double b = t - std::floor(t);
    std::array<std::array<double, 2>, 2> c{};
    for (const int di : {0, 1})
      for (const int dj : {0, 1}) {
        const std::int64_t i = top + di;
        const std::int64_t j = left + dj;
        if (i < 0 || i >= level.height || j < 0 || j >= level.width) continue;
        const std::int64_t s = level.start + i * level.width + j;
        const auto row = static_cast<std::size_t>(di);
        const auto column = static_cast<std::size_t>(dj);
        c[row][column] = dot(s, q);
        const double bilinear = (di ? b : 1 - b) * (dj ? a : 1 - a);
        scatter(s, q, weight * bilinear);
        if (bilinear != 0) gradient.weight += bilinear * c[row][column];
      }
    gradient.x = weight * width * ((1 - b) * (c[0][1] - c[0][0]) + b * (c[1][1] - c[1][0]));
    gradient.y = weight * height * ((1 - a) * (c[1][0] - c[0][0]) + a * (c[1][1] - c[0][1]));
    return gradient;
  }

  const Problem& problem_;
  const ms_deform_attn::Problem& forward_;
  const Arguments& arguments_;
  std::int64_t n_;
  std::int64_t m_;
  std::vector<double> grad_value_;  // (S, D) of this head
};

void run(const Problem& problem, const Arguments& arguments) {
  const std::int64_t heads = problem.forward.heads;
  parallel_for(problem.forward.batch * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) Head(problem, arguments, i / heads, i % heads).run();
  });
}

}  // namespace

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return cpu_work(run, problem, arguments);
}

}  // namespace tmaops::ops::ms_deform_attn_backward::reference_backward
