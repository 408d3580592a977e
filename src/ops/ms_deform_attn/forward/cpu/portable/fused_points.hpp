// The sampling points of one query and head as the operator wants them: softmax taken, reference points added.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/ms_deform_attn/shared/point_rows.hpp"

namespace tmaops::ops::ms_deform_attn {

class FusedPoints {
 public:
  FusedPoints(const Problem& problem, const Arguments& arguments)
      : problem_(problem),
        reference_(arguments.reference_points),
        offset_scale_(arguments.offset_scale),
        locations_(problem, arguments.sampling_locations, 2),
        weights_(problem, arguments.attention_weights, 1) {}

  /// Rows [n, q, m]: x, y of every point, and its weight.
  template <class T>
  void load(std::int64_t n, std::int64_t q, std::int64_t m, T* locations, T* weights) const {
    locations_.load(n, q, m, locations);
    weights_.load(n, q, m, weights);
    if (problem_.reference_components != 0) add_reference(n, q, locations);
    if (problem_.softmax) take_softmax(weights);
  }

 private:
  template <class T>
  void add_reference(std::int64_t n, std::int64_t q, T* to) const {
    for (const Level& level : problem_.levels) {
      const std::int64_t at = n * reference_.strides[0] + q * reference_.strides[1] +
                              (&level - problem_.levels.data()) * reference_.strides[2];
      const auto part = [&](int component) {
        return static_cast<T>(read(reference_, at + component * reference_.strides[3]));
      };
      const bool box = problem_.reference_components == 4;
      const T scale = static_cast<T>(offset_scale_) / static_cast<T>(level.points);
      const T step_x = box ? part(2) * scale : 1 / static_cast<T>(level.width);
      const T step_y = box ? part(3) * scale : 1 / static_cast<T>(level.height);
      for (std::int64_t p = 0; p < level.points; ++p, to += 2) {
        to[0] = part(0) + to[0] * step_x;
        to[1] = part(1) + to[1] * step_y;
      }
    }
  }
  template <class T>
  void take_softmax(T* weights) const {
    T largest = -std::numeric_limits<T>::infinity();
    for (std::int64_t k = 0; k < problem_.points; ++k) largest = weights[k] > largest ? weights[k] : largest;
    T sum = 0;
    for (std::int64_t k = 0; k < problem_.points; ++k) sum += weights[k] = std::exp(weights[k] - largest);
    for (std::int64_t k = 0; k < problem_.points; ++k) weights[k] /= sum;
  }

  const Problem& problem_;
  ConstTensorView reference_;
  double offset_scale_;
  PointRows locations_;
  PointRows weights_;
};

}  // namespace tmaops::ops::ms_deform_attn
