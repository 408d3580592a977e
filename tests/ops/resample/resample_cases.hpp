// Random resampling problems of any kind, run through a variant and compared with the reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/buffers.hpp"
#include "tmaops/registry.hpp"
#include "tmaops/resample.hpp"

namespace tmaops::test {

/// Names of the built CPU variants of an operator.
inline std::vector<std::string> cpu_variants(std::string_view op) {
  std::vector<std::string> names;
  for (const VariantInfo& variant : variants(op))
    if (variant.device == DeviceType::cpu && variant.built) names.emplace_back(variant.name);
  return names;
}

/// What a random case looks like.
struct CaseShape {
  std::int64_t batch = 2;
  std::int64_t source = 20;
  std::int64_t target = 30;
  std::int64_t channels = 5;
  DType values = DType::f32;
  DType times = DType::f64;
  std::vector<Interpolation> groups{Interpolation::linear};  // slerp takes 4 channels, the last other group the rest
  Outside outside = Outside::hold;
  Duplicates duplicates = Duplicates::error;
  bool gap = false;
  bool valid = false;
  bool ragged_source = false;
  bool ragged_target = false;
  bool shared_source = false;
  bool shared_target = false;
  bool grid = false;
  bool sorted = true;
  bool strided = false;  // rows and trajectories apart, times and channels dense
  bool strided_channels = false;
  bool strided_times = false;
  bool nan_values = false;
  std::uint64_t seed = 1;
};

/// A case with its data. Times step by 0.5 to 1.5 units of 0.01 s (10 ms for i64), so that f32 weights are meaningful.
class ResampleCase {
 public:
  explicit ResampleCase(const CaseShape& shape) : shape_(shape), random_(shape.seed) {
    make_groups();
    source_counts_ = counts(shape.ragged_source, shape.source, shape.outside == Outside::nan ? 0 : 1);
    target_counts_ = counts(shape.ragged_target, shape.target, 0);
    source_offsets_ = offsets(source_counts_);
    target_offsets_ = offsets(target_counts_);
    make_times();
    make_values();
    options_.channel_groups = groups_;
    options_.outside = shape.outside;
    options_.duplicates = shape.duplicates;
    if (shape.gap) options_.max_gap = std::variant<double, std::int64_t>(1.2 * 0.01);
    if (shape.gap && shape.times == DType::i64) options_.max_gap = std::int64_t{12'000'000};
    if (shape.ragged_source) options_.source_offsets = source_offsets_;
    if (shape.ragged_target) options_.target_offsets = target_offsets_;
  }

  const CaseShape& shape() const { return shape_; }
  ResampleOptions options() const { return options_; }
  const Buffer& values() const { return *values_; }
  Buffer& values() { return *values_; }
  const Buffer& source_times() const { return *source_times_; }
  const Buffer& target_times() const { return *target_times_; }
  const UniformGrid& grid() const { return grid_; }

  Buffer output(DType dtype) const {
    if (shape_.ragged_target)
      return Buffer(dtype, layout({target_offsets_.back(), channels_}, shape_.strided_channels));
    return Buffer(dtype, layout({shape_.batch, shape_.target, channels_}, shape_.strided_channels));
  }
  Buffer output() const { return output(shape_.values); }
  Buffer gradients(DType dtype) const { return Buffer(dtype, values_->layout()); }
  Buffer valid() const {
    if (shape_.ragged_target) return Buffer(DType::u8, {target_offsets_.back()});
    return Buffer(DType::u8, {shape_.batch, shape_.target});
  }

  void run(std::string_view variant, Buffer& output, Buffer* valid_mask) const {
    ResampleOptions options = options_;
    options.variant = variant;
    if (valid_mask) options.valid = *valid_mask;
    if (shape_.grid)
      resample(*values_, *source_times_, grid_, output, options);
    else
      resample(*values_, *source_times_, *target_times_, output, options);
  }
  void run_backward(std::string_view variant, const Buffer& grad_output, Buffer& grad_values) const {
    ResampleOptions options = options_;
    options.variant = variant;
    options.values = *values_;  // which the gradients of min and max need
    if (shape_.grid)
      resample_backward(*source_times_, grid_, grad_output, grad_values, options);
    else
      resample_backward(*source_times_, *target_times_, grad_output, grad_values, options);
  }

  std::int64_t channels() const { return channels_; }
  const std::vector<ChannelGroup>& groups() const { return groups_; }
  std::mt19937_64& random() { return random_; }

 private:
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }

  void make_groups() {
    channels_ = 0;
    for (std::size_t i = 0; i < shape_.groups.size(); ++i) {
      const Interpolation mode = shape_.groups[i];
      const std::int64_t count = mode == Interpolation::slerp ? 4 : i % 2 ? 1 : shape_.channels;
      groups_.push_back({channels_, count, mode});
      channels_ += count;
    }
  }

  std::vector<std::int64_t> counts(bool ragged, std::int64_t most, std::int64_t least) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(shape_.batch), most);
    if (ragged)
      for (std::int64_t& count : all)
        count = std::uniform_int_distribution<std::int64_t>(least, std::max(least, most))(random_);
    return all;
  }
  static std::vector<std::int64_t> offsets(const std::vector<std::int64_t>& counts) {
    std::vector<std::int64_t> all{0};
    for (const std::int64_t count : counts) all.push_back(all.back() + count);
    return all;
  }

  /// Row-major, or with room between: innermost stride 3, and rows that do not touch.
  Layout layout(std::vector<std::int64_t> extents, bool apart) const {
    std::vector<std::int64_t> strides(extents.size());
    std::int64_t stride = apart ? 3 : 1;
    for (std::size_t i = extents.size(); i-- > 0;) {
      strides[i] = stride;
      stride *= std::max<std::int64_t>(1, extents[i]);
      if (shape_.strided) stride += 5;
    }
    return Layout::strided(extents, strides);
  }

  double unit() const { return shape_.times == DType::i64 ? 1e7 : 0.01; }

  void set_times(Buffer& buffer, std::int64_t first, const std::vector<double>& times) {
    for (std::size_t i = 0; i < times.size(); ++i)
      buffer.set(first + static_cast<std::int64_t>(i),
                 shape_.times == DType::i64 ? std::floor(times[i] * unit()) : times[i] * unit());
  }

  void make_times() {
    const CaseShape& s = shape_;
    if (s.ragged_source)
      source_times_.emplace(s.times, layout({source_offsets_.back()}, s.strided_times));
    else if (s.shared_source)
      source_times_.emplace(s.times, layout({s.source}, s.strided_times));
    else
      source_times_.emplace(s.times, layout({s.batch, s.source}, s.strided_times));
    std::vector<std::vector<double>> all;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      std::vector<double> x;
      double t = uniform(-3, 3);
      for (std::int64_t i = 0; i < source_counts_[static_cast<std::size_t>(b)]; ++i) {
        x.push_back(t);
        if (s.duplicates == Duplicates::error || uniform(0, 1) > 0.2) t += uniform(0.5, 1.5);
      }
      if (!s.shared_source || b == 0)
        set_times(*source_times_, s.shared_source ? 0 : source_offsets_[static_cast<std::size_t>(b)], x);
      all.push_back(s.shared_source && b > 0 ? all[0] : x);
    }
    if (s.grid) {
      const double period = uniform(0.3, 3);
      if (s.times == DType::i64)
        grid_ = {std::int64_t{-20'000'000}, static_cast<std::int64_t>(period * 1e7), s.target};
      else
        grid_ = {-0.02, period * 0.01, s.target};
      return;
    }
    if (s.ragged_target)
      target_times_.emplace(s.times, layout({target_offsets_.back()}, s.strided_times));
    else if (s.shared_target)
      target_times_.emplace(s.times, layout({s.target}, s.strided_times));
    else
      target_times_.emplace(s.times, layout({s.batch, s.target}, s.strided_times));
    const bool inside = s.outside == Outside::error;
    for (std::int64_t b = 0; b < (s.shared_target ? 1 : s.batch); ++b) {
      const std::vector<double>& x = all[static_cast<std::size_t>(b)];
      const double low = x.empty() ? 0 : x.front() - (inside ? 0 : 1.5);
      const double high = x.empty() ? 1 : x.back() + (inside ? 0 : 1.5);
      std::vector<double> q;
      for (std::int64_t t = 0; t < target_counts_[static_cast<std::size_t>(b)]; ++t) {
        const auto pick = [&] { return std::uniform_int_distribution<std::size_t>(0, x.size() - 1)(random_); };
        const double chance = uniform(0, 1);
        if (chance < 0.2 && !x.empty())
          q.push_back(x[pick()]);  // on a sample
        else if (chance < 0.3 && x.size() > 1)
          q.push_back([&](std::size_t i) { return (x[i] + x[i + 1]) / 2; }(pick() * (x.size() - 1) / x.size()));
        else
          q.push_back(uniform(low, high));
      }
      if (s.sorted) std::sort(q.begin(), q.end());
      set_times(*target_times_, s.shared_target ? 0 : target_offsets_[static_cast<std::size_t>(b)], q);
    }
  }

  void make_values() {
    if (shape_.ragged_source)
      values_.emplace(shape_.values, layout({source_offsets_.back(), channels_}, shape_.strided_channels));
    else
      values_.emplace(shape_.values, layout({shape_.batch, shape_.source, channels_}, shape_.strided_channels));
    values_->fill_normal(random_);
    if (!shape_.nan_values) return;
    for (std::int64_t i = 0; i < values_->layout().size(); ++i) {
      const std::int64_t channel = i % channels_;
      for (const ChannelGroup& group : groups_)
        if (channel >= group.first && channel < group.first + group.count &&
            group.interpolation != Interpolation::slerp && uniform(0, 1) < 0.1)
          values_->set(i, std::nan(""));
    }
  }

  CaseShape shape_;
  std::mt19937_64 random_;
  std::int64_t channels_ = 0;
  std::vector<ChannelGroup> groups_;
  std::vector<std::int64_t> source_counts_, target_counts_, source_offsets_, target_offsets_;
  std::optional<Buffer> values_, source_times_, target_times_;
  UniformGrid grid_{};
  ResampleOptions options_{};
};

/// Whether targets may lie hundreds of intervals outside and still be extrapolated: those of a grid, and those made for
/// another trajectory. The error of a weight grows with it.
inline bool runs_far_outside(const CaseShape& shape) {
  return shape.outside == Outside::extrapolate && (shape.grid || shape.shared_target);
}

/// Relative and absolute tolerance of a variant against the f64 definition: one unit of a 16-bit type (f32 and f64 sums
/// may round to different sides), and for f32 weights a few units of 2^-24 times values of a few units. PCHIP has
/// slopes up to three secants and extrapolates them.
struct Tolerance {
  double relative;
  double absolute;
};
inline Tolerance tolerance_of(const CaseShape& shape) {
  const bool cubic = std::find(shape.groups.begin(), shape.groups.end(), Interpolation::cubic) != shape.groups.end();
  const double far = runs_far_outside(shape) ? 500 : 1;
  const double weight = (shape.values == DType::f64 ? 1e-13 : 2e-6) * (cubic ? 100 : 1) * far;
  switch (shape.values) {
    case DType::f64:
      return {1e-13, weight};
    case DType::f32:
      return {2e-6, weight};
    case DType::f16:
      return {1e-3, weight + 1e-7};
    default:
      return {8e-3, weight};
  }
}

/// Where two outputs differ beyond a tolerance, in words; empty when they agree. Properties need words rather than
/// EXPECT: a failure of a case that is then made smaller must not count for the smaller one.
inline std::string difference_of(const Buffer& got, const Buffer& want, Tolerance tolerance) {
  if (!got.canaries_intact()) return "wrote outside the output";
  for (std::int64_t i = 0; i < got.layout().size(); ++i) {
    const double a = got.get(i);
    const double b = want.get(i);
    if ((std::isnan(a) && std::isnan(b)) || a == b ||
        std::abs(a - b) <= tolerance.absolute + tolerance.relative * std::abs(b))
      continue;
    return "element " + std::to_string(i) + " of " + got.layout().shape_text() + ": got " + std::to_string(a) +
           ", want " + std::to_string(b);
  }
  return "";
}

inline std::string text_of(const CaseShape& s) {
  std::string text = std::to_string(s.batch) + "," + std::to_string(s.source) + "->" + std::to_string(s.target) + "," +
                     std::to_string(s.channels) + " " + std::string(to_string(s.values)) + " times " +
                     std::string(to_string(s.times)) + " outside " + std::to_string(static_cast<int>(s.outside)) +
                     " modes";
  for (const Interpolation mode : s.groups) text += " " + std::to_string(static_cast<int>(mode));
  for (const auto& [name, on] : {std::pair{"duplicates", s.duplicates == Duplicates::last},
                                 {"gap", s.gap},
                                 {"valid", s.valid},
                                 {"ragged_source", s.ragged_source},
                                 {"ragged_target", s.ragged_target},
                                 {"shared_source", s.shared_source},
                                 {"shared_target", s.shared_target},
                                 {"grid", s.grid},
                                 {"unsorted", !s.sorted},
                                 {"strided", s.strided},
                                 {"strided_channels", s.strided_channels},
                                 {"strided_times", s.strided_times},
                                 {"nan_values", s.nan_values}})
    if (on) text += std::string(" ") + name;
  return text + " seed " + std::to_string(s.seed);
}

}  // namespace tmaops::test
