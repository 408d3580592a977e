// Random problems of ms_deform_attn with other steps fused in, and the same problems with these steps done before: by
// hand, in f64.
#pragma once

#include "ops/ms_deform_attn/case.hpp"

namespace tmaops::test {

struct Fusions {
  bool softmax = false;
  int reference_components = 0;
  bool masked = false;
  bool bordered = false;
  double offset_scale = 0.5;
};

class FusedCase {
 public:
  /// Masked pixels and borders hold NaN and infinity.
  FusedCase(const Shape& shape, const Fusions& fusions, std::uint64_t seed)
      : shape_(shape),
        fusions_(fusions),
        random_(seed),
        value_(shape.value_dtype, layout({shape.batch, length(), shape.heads, shape.channels})),
        offsets_(shape.location_dtype, layout(point_extents(true))),
        logits_(shape.weight_dtype, layout(point_extents(false))),
        reference_(shape.location_dtype,
                   layout({shape.batch, shape.queries, levels(), std::max(fusions.reference_components, 2)})),
        mask_(DType::u8, layout({shape.batch, length()})),
        output_layout_(layout({shape.batch, shape.queries, shape.heads * shape.channels})),
        plain_value_(shape.value_dtype, {shape.batch, shape.length(), shape.heads, shape.channels}),
        locations_(DType::f64, Layout::contiguous(point_extents(true))),
        weights_(DType::f64, Layout::contiguous(point_extents(false))) {
    make_value();
    make_weights();
    make_locations();
  }

  const Shape& shape() const { return shape_; }
  Buffer& value() { return value_; }
  Buffer& offsets() { return offsets_; }
  Buffer& logits() { return logits_; }
  Buffer& reference_points() { return reference_; }
  Buffer& mask() { return mask_; }
  Buffer output() const { return {shape_.output_dtype(), output_layout_}; }

  MsDeformAttnOptions options(std::string_view variant, const ConstTensorView& reference_points,
                              const ConstTensorView& mask) const {
    MsDeformAttnOptions made{.points_per_level = shape_.ragged, .sampling = shape_.sampling};
    made.softmax = fusions_.softmax;
    if (fusions_.reference_components != 0) made.reference_points = reference_points;
    if (fusions_.masked) made.padding_mask = mask;
    made.bordered_value = fusions_.bordered;
    made.offset_scale = fusions_.offset_scale;
    made.variant = variant;
    return made;
  }
  MsDeformAttnOptions options(std::string_view variant) const { return options(variant, reference_, mask_); }

  /// The definition, of what the separate steps made.
  Buffer want() const {
    Buffer out = output();
    ms_deform_attn(plain_value_, shape_.levels, locations_, weights_, out,
                   {.points_per_level = shape_.ragged, .sampling = shape_.sampling, .variant = "reference"});
    return out;
  }
  ops::ms_deform_attn::Problem problem() const {
    Buffer out = output();
    return ops::ms_deform_attn::make_problem(value_, shape_.levels, offsets_, logits_, out, options(""));
  }

 private:
  std::int64_t levels() const { return static_cast<std::int64_t>(shape_.levels.size()); }
  std::int64_t border() const { return fusions_.bordered ? 1 : 0; }
  std::int64_t length() const {
    std::int64_t sum = 0;
    for (const LevelShape& level : shape_.levels) sum += (level.height + 2 * border()) * (level.width + 2 * border());
    return sum;
  }
  std::int64_t points_of(std::size_t level) const {
    return shape_.ragged.empty() ? shape_.points : shape_.ragged[level];
  }
  Layout layout(const std::vector<std::int64_t>& extents) {
    return shape_.strided ? scattered(extents, random_, random_() % 4 != 0) : Layout::contiguous(extents);
  }
  std::vector<std::int64_t> point_extents(bool locations) const {
    std::vector<std::int64_t> extents{shape_.batch, shape_.queries, shape_.heads};
    if (shape_.ragged.empty()) {
      extents.push_back(levels());
      extents.push_back(shape_.points);
    } else {
      extents.push_back(std::accumulate(shape_.ragged.begin(), shape_.ragged.end(), std::int64_t{0}));
    }
    if (locations) extents.push_back(2);
    return extents;
  }

  void make_value() {
    const std::int64_t width = shape_.heads * shape_.channels;
    for (std::int64_t i = 0; i < value_.layout().size(); ++i)
      value_.set(i, i % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity());
    for (std::int64_t i = 0; i < mask_.layout().size(); ++i) mask_.set(i, 0);
    std::normal_distribution<double> normal;
    for (std::int64_t n = 0; n < shape_.batch; ++n) {
      std::int64_t to = n * shape_.length();
      std::int64_t from = n * length();
      for (const LevelShape& level : shape_.levels) {
        const std::int64_t pitch = level.width + 2 * border();
        for (std::int64_t row = 0; row < level.height; ++row)
          for (std::int64_t column = 0; column < level.width; ++column, ++to) {
            const std::int64_t pixel = from + (row + border()) * pitch + column + border();
            const bool masked = fusions_.masked && random_() % 3 == 0;
            if (masked) mask_.set(pixel, 1 + static_cast<double>(random_() % 255));
            for (std::int64_t c = 0; c < width; ++c) {
              if (!masked) value_.set(pixel * width + c, normal(random_));
              plain_value_.set(to * width + c, masked ? 0 : value_.get(pixel * width + c));
            }
          }
        from += (level.height + 2 * border()) * pitch;
      }
    }
  }

  void make_weights() {
    const std::int64_t rows = shape_.batch * shape_.queries * shape_.heads;
    const std::int64_t points = rows == 0 ? 0 : logits_.layout().size() / rows;
    logits_.fill_normal(random_, fusions_.softmax ? 3.0 : 0.5);
    for (std::int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (std::int64_t k = row * points; k < (row + 1) * points; ++k) sum += std::exp(logits_.get(k));
      for (std::int64_t k = row * points; k < (row + 1) * points; ++k)
        weights_.set(k, fusions_.softmax ? std::exp(logits_.get(k)) / sum : logits_.get(k));
    }
  }

  void make_locations() {
    const int components = fusions_.reference_components;
    std::uniform_real_distribution<double> centre(-0.1, 1.1);
    std::uniform_real_distribution<double> extent(0.05, 0.6);
    for (std::int64_t i = 0; i < reference_.layout().size(); ++i)
      reference_.set(i, components == 4 && i % 4 >= 2 ? extent(random_) : centre(random_));
    std::int64_t index = 0;
    for (std::int64_t query = 0; query < shape_.batch * shape_.queries; ++query)
      for (std::int64_t m = 0; m < shape_.heads; ++m)
        for (std::size_t l = 0; l < shape_.levels.size(); ++l)
          for (std::int64_t p = 0; p < points_of(l); ++p)
            for (int axis = 0; axis < 2; ++axis, ++index)
              make_coordinate(index, (query * levels() + static_cast<std::int64_t>(l)) * std::max(components, 2) + axis,
                              static_cast<double>(axis == 0 ? shape_.levels[l].width : shape_.levels[l].height),
                              static_cast<double>(points_of(l)));
  }
  /// `reference` is the index of the reference point's coordinate. Away from whole and half pixels, where rounding
  /// would decide.
  void make_coordinate(std::int64_t index, std::int64_t reference, double side, double points) {
    const int components = fusions_.reference_components;
    std::normal_distribution<double> normal;
    if (shape_.odd_locations && random_() % 32 == 0) {
      constexpr double kOdd[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity()};
      offsets_.set(index, kOdd[random_() % 3]);
      locations_.set(index, std::numeric_limits<double>::quiet_NaN());
      return;
    }
    double pixel = 0;
    do {
      offsets_.set(index, components == 0 ? 0.5 + 0.4 * normal(random_) : 2 * normal(random_));
      const double offset = offsets_.get(index);
      double location = offset;
      if (components == 2) location = reference_.get(reference) + offset / side;
      if (components == 4)
        location = reference_.get(reference) + offset / points * reference_.get(reference + 2) * fusions_.offset_scale;
      locations_.set(index, location);
      pixel = location * side - 0.5;
    } while (std::abs(pixel - std::round(pixel)) < 1e-3);
  }

  Shape shape_;
  Fusions fusions_;
  std::mt19937_64 random_;
  Buffer value_;
  Buffer offsets_;
  Buffer logits_;
  Buffer reference_;
  Buffer mask_;
  Layout output_layout_;
  Buffer plain_value_;
  Buffer locations_;
  Buffer weights_;
};

/// Any of the sixteen combinations of fusions; reference points of 2 or 4 components.
inline Fusions random_fusions(std::mt19937_64& random) {
  return {.softmax = random() % 2 == 0,
          .reference_components = static_cast<int>(random() % 3) * 2,
          .masked = random() % 2 == 0,
          .bordered = random() % 2 == 0,
          .offset_scale = random() % 2 == 0 ? 0.5 : 0.3};
}

}  // namespace tmaops::test
