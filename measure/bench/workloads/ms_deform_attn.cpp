// Multi-scale deformable attention: random normal values, sampling locations as detectors produce them.
#include "tmaops/ms_deform_attn.hpp"

#include <algorithm>
#include <memory>

#include "bench/workloads/common.hpp"
#include "bench/workloads/element.hpp"
#include "bench/workloads/ms_deform_attn_cases.hpp"
#include "core/parallel.hpp"
#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/problem.hpp"
#include "ops/ms_deform_attn/shared/half_arithmetic.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::bench {
namespace {

using Case = MsDeformAttnCase;

/// Locations of some queries and heads: level by level, or in one row where levels have different numbers of points.
Layout location_layout(const Case& c, std::int64_t batch, std::int64_t queries, std::int64_t heads) {
  if (!c.level_points.empty()) return Layout::contiguous({batch, queries, heads, c.row_points(), 2});
  return Layout::contiguous({batch, queries, heads, static_cast<std::int64_t>(c.levels.size()), c.points, 2});
}
Layout weight_layout(const Case& c, std::int64_t batch, std::int64_t queries, std::int64_t heads) {
  if (!c.level_points.empty()) return Layout::contiguous({batch, queries, heads, c.row_points()});
  return Layout::contiguous({batch, queries, heads, static_cast<std::int64_t>(c.levels.size()), c.points});
}

std::vector<TensorSpec> tensors(const Case& c) {
  const auto levels = static_cast<std::int64_t>(c.levels.size());
  std::vector<TensorSpec> all{{"value", c.dtype, Layout::contiguous({c.batch, c.value_length(), c.heads, c.channels})},
                              {"sampling_locations", c.location_dtype, location_layout(c, c.batch, c.queries, c.heads)},
                              {"attention_weights", c.location_dtype, weight_layout(c, c.batch, c.queries, c.heads)}};
  const Layout output = Layout::contiguous({c.batch, c.queries, c.heads * c.channels});
  if (c.fused.reference_components != 0)
    all.push_back({"reference_points", c.location_dtype,
                   Layout::contiguous({c.batch, c.queries, levels, c.fused.reference_components})});
  if (c.fused.mask) all.push_back({"padding_mask", DType::u8, Layout::contiguous({c.batch, c.value_length()})});
  if (!c.backward) {
    all.push_back({"output", c.output_dtype, output, true});
    return all;
  }
  const DType gradient = c.dtype == DType::f64 ? DType::f64 : DType::f32;
  all.push_back({"grad_output", c.output_dtype, output});
  all.push_back({"grad_value", gradient, all[0].layout, true});
  all.push_back({"grad_sampling_locations", gradient, all[1].layout, true});
  all.push_back({"grad_attention_weights", gradient, all[2].layout, true});
  return all;
}

CaseInfo describe(const Settings& problem, const Case& c, Device device) {
  CaseInfo made{.op = c.backward ? "ms_deform_attn_backward" : "ms_deform_attn",
                .name = c.name,
                .dtype = std::string(to_string(c.dtype)),
                .problem = problem.to_text(),
                .device = device};
  if (c.output_dtype != c.dtype) made.dtype += "->" + std::string(to_string(c.output_dtype));
  // Per sample and channel 4 multiply-adds; backward the same for the value's gradient and twice for the weights'. With
  // nearest sampling 1, and backward the same for each of the two gradients.
  const double samples = static_cast<double>(c.batch) * static_cast<double>(c.queries) * static_cast<double>(c.heads) *
                         static_cast<double>(c.row_points());
  const bool nearest = c.sampling == Sampling::nearest;
  const double operations = c.backward ? (nearest ? 4.0 : 24.0) : (nearest ? 2.0 : 8.0);
  made.flops = samples * static_cast<double>(c.channels) * operations;
  return made;
}

class MsDeformAttnWorkload : public Workload {
 public:
  MsDeformAttnWorkload(const Settings& problem, const Case& c, Device device)
      : Workload(describe(problem, c, device), bench::tensors(c)), case_(c) {}

  std::vector<VariantChoice> variants() const override {
    const DeviceInfo& device = device_info(info_.device);
    if (case_.backward) return choices(ops::ms_deform_attn_backward::variants(), backward_problem(), device);
    return choices(ops::ms_deform_attn::variants(), forward_problem(), device);
  }
  std::string selected() const override {
    const DeviceInfo& device = device_info(info_.device);
    return std::string(case_.backward
                           ? ops::ms_deform_attn_backward::select(backward_problem(), device, "").variant->name
                           : ops::ms_deform_attn::select(forward_problem(), device, "").variant->name);
  }
  nlohmann::json peer_parameters() const override {
    auto levels = nlohmann::json::array();
    for (const LevelShape& level : case_.levels) levels.push_back({level.height, level.width});
    return {{"levels", levels},
            {"level_points", case_.level_points},
            {"sampling", case_.sampling == Sampling::nearest ? "nearest" : "bilinear"},
            {"direction", case_.backward ? "backward" : "forward"},
            {"fused", case_.fused.text()},
            {"offset_scale", case_.fused.offset_scale}};
  }
  Call bind(const std::string& variant, int set, Launch launch) const override;
  Call fresh(const std::string& variant, int set, Launch launch) const override;

 protected:
  void fill(std::uint64_t seed) override;
  std::vector<Expected> reference(std::uint64_t seed, double work) const override {
    return case_.backward ? reference_backward(seed, work) : reference_forward(seed, work);
  }
  /// Coordinates in f32 have an error of 2^-24 of the level's width in pixels, and so have the bilinear weights; the
  /// gradient to a location is a difference of such values times the width.
  double tolerance() const override {
    if (case_.dtype == DType::f64) return 1e-11;
    return case_.backward ? 5e-5 : std::max(2e-5, rounding_tolerance(case_.output_dtype));
  }

 public:
  /// The published kernels compute in f16.
  double variant_tolerance(const std::string& variant) const override {
    if (case_.backward || !ops::ms_deform_attn::computes_in_f16(variant)) return 0;
    return ops::ms_deform_attn::half_arithmetic_error(forward_problem());
  }

 private:
  MsDeformAttnOptions options(const std::string& variant, int set, Launch launch = Launch::plain) const {
    MsDeformAttnOptions made;
    made.dependent_launch = launch == Launch::dependent;
    made.sampling = case_.sampling;
    made.points_per_level = case_.level_points;
    made.deterministic = case_.deterministic;
    made.softmax = case_.fused.softmax;
    made.offset_scale = case_.fused.offset_scale;
    if (case_.fused.reference_components != 0) made.reference_points = tensor("reference_points", set);
    if (case_.fused.mask) made.padding_mask = tensor("padding_mask", set);
    made.bordered_value = case_.fused.border;
    made.variant = variant;
    return made;
  }
  MsDeformAttnGradients gradients(int set) const {
    return {tensor("grad_value", set), tensor("grad_sampling_locations", set), tensor("grad_attention_weights", set)};
  }
  ops::ms_deform_attn::Problem forward_problem() const {
    return ops::ms_deform_attn::make_problem(tensor("value", 0), case_.levels, tensor("sampling_locations", 0),
                                             tensor("attention_weights", 0), tensor("output", 0), options("", 0));
  }
  ops::ms_deform_attn_backward::Problem backward_problem() const {
    return ops::ms_deform_attn_backward::make_problem(tensor("value", 0), case_.levels, tensor("sampling_locations", 0),
                                                      tensor("attention_weights", 0), tensor("grad_output", 0),
                                                      gradients(0), options("", 0));
  }
  /// Of a random part of the queries of some images where the whole takes too much work.
  std::vector<Expected> reference_forward(std::uint64_t seed, double work) const;
  /// The same of (image, head) pairs.
  std::vector<Expected> reference_backward(std::uint64_t seed, double work) const;

  Case case_;
};

Call MsDeformAttnWorkload::bind(const std::string& variant, int set, Launch launch) const {
  MsDeformAttnOptions wanted = options(variant, set, launch);
  const TensorView value = tensor("value", set);
  const TensorView locations = tensor("sampling_locations", set);
  const TensorView weights = tensor("attention_weights", set);
  return call_of(case_.backward
                     ? plan_ms_deform_attn_backward(value, case_.levels, locations, weights, tensor("grad_output", set),
                                                    gradients(set), wanted)
                     : plan_ms_deform_attn(value, case_.levels, locations, weights, tensor("output", set), wanted));
}

Call MsDeformAttnWorkload::fresh(const std::string& variant, int set, Launch launch) const {
  MsDeformAttnOptions wanted = options(variant, set, launch);
  const TensorView value = tensor("value", set);
  const TensorView locations = tensor("sampling_locations", set);
  const TensorView weights = tensor("attention_weights", set);
  if (case_.backward)
    return [=, this, grad_output = tensor("grad_output", set), to = gradients(set)](Stream stream) mutable {
      wanted.stream = stream;
      ms_deform_attn_backward(value, case_.levels, locations, weights, grad_output, to, wanted);
    };
  return [=, this, output = tensor("output", set)](Stream stream) mutable {
    wanted.stream = stream;
    ms_deform_attn(value, case_.levels, locations, weights, output, wanted);
  };
}

void MsDeformAttnWorkload::fill(std::uint64_t seed) {
  fill_normal(tensor("value", 0), part_seed(seed, 1));
  if (case_.fused.mask) fill_padding_mask(case_, tensor("padding_mask", 0), part_seed(seed, 5));
  const TensorView reference_points =
      case_.fused.reference_components == 0 ? TensorView{} : tensor("reference_points", 0);
  fill_locations(case_, tensor("sampling_locations", 0), reference_points, part_seed(seed, 2));
  fill_attention_weights(case_, tensor("attention_weights", 0), part_seed(seed, 3));
  if (case_.backward) fill_normal(tensor("grad_output", 0), part_seed(seed, 4));
}

/// Rows of `run` neighbouring elements that start where the list says, one after the other as f64.
Buffer exact_rows(const TensorView& from, const std::vector<std::int64_t>& starts, std::int64_t run,
                  const Layout& layout) {
  Buffer to(DType::f64, layout);
  auto* out = static_cast<double*>(to.view().data);
  visit_dtype(from.dtype, [&](auto* type) {
    const auto* in = static_cast<const std::remove_pointer_t<decltype(type)>*>(from.data);
    parallel_for(static_cast<std::int64_t>(starts.size()), 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r)
        for (std::int64_t i = 0; i < run; ++i)
          out[r * run + i] = static_cast<double>(in[starts[static_cast<std::size_t>(r)] + i]);
    });
  });
  return to;
}

/// Adds the values of those rows to what is expected.
void expect_rows(Expected& expected, const Buffer& values, const std::vector<std::int64_t>& starts, std::int64_t run) {
  const auto* value = static_cast<const double*>(values.view().data);
  expected.values.insert(expected.values.end(), value, value + static_cast<std::int64_t>(starts.size()) * run);
  for (const std::int64_t start : starts)
    for (std::int64_t i = 0; i < run; ++i) expected.elements.push_back(start + i);
}

std::vector<Expected> MsDeformAttnWorkload::reference_forward(std::uint64_t seed, double work) const {
  Random random(seed, 77);
  const auto levels = static_cast<std::int64_t>(case_.levels.size());
  const std::int64_t width = case_.heads * case_.channels;        // of one pixel of value, and of one query's output
  const std::int64_t samples = case_.heads * case_.row_points();  // of one query
  const std::int64_t length = case_.value_length();
  const auto queries =
      static_cast<std::int64_t>(work / static_cast<double>(std::max<std::int64_t>(1, samples * case_.channels * 4)));
  const std::int64_t full_images = queries / std::max<std::int64_t>(1, case_.queries);
  const auto images = sample_indices(case_.batch, std::max<std::int64_t>(2, full_images), random);
  const std::int64_t wanted =
      std::max<std::int64_t>(64, queries / std::max<std::int64_t>(1, static_cast<std::int64_t>(images.size())));
  Expected expected{.tensor = "output", .elements = {}, .values = {}};
  for (const std::int64_t n : images) {
    const auto chosen = sample_indices(case_.queries, wanted, random);
    const auto count = static_cast<std::int64_t>(chosen.size());
    const auto starts = [&](std::int64_t run) {
      std::vector<std::int64_t> all;
      for (const std::int64_t q : chosen) all.push_back((n * case_.queries + q) * run);
      return all;
    };
    const auto rows = [&](const char* name, std::int64_t run, const Layout& layout) {
      return exact_rows(tensor(name, 0), starts(run), run, layout);
    };
    std::vector<std::int64_t> pixels;
    for (std::int64_t i = 0; i < length; ++i) pixels.push_back((n * length + i) * width);
    const Buffer value =
        exact_rows(tensor("value", 0), pixels, width, Layout::contiguous({1, length, case_.heads, case_.channels}));
    const Buffer locations = rows("sampling_locations", samples * 2, location_layout(case_, 1, count, case_.heads));
    const Buffer weights = rows("attention_weights", samples, weight_layout(case_, 1, count, case_.heads));
    const Buffer want(DType::f64, Layout::contiguous({1, count, width}));
    MsDeformAttnOptions some = options("reference", 0);
    const std::int64_t components = case_.fused.reference_components;
    Buffer reference_points;
    if (components != 0) {
      reference_points =
          rows("reference_points", levels * components, Layout::contiguous({1, count, levels, components}));
      some.reference_points = reference_points.view();
    }
    if (case_.fused.mask)
      some.padding_mask = ConstTensorView(static_cast<const std::uint8_t*>(tensor("padding_mask", 0).data) + n * length,
                                          DType::u8, Layout::contiguous({1, length}));
    ms_deform_attn(value.view(), case_.levels, locations.view(), weights.view(), want.view(), some);
    expect_rows(expected, want, starts(width), width);
  }
  return {expected};
}

std::vector<Expected> MsDeformAttnWorkload::reference_backward(std::uint64_t seed, double work) const {
  Random random(seed, 77);
  const std::int64_t group = case_.row_points();  // samples of one query and head
  const std::int64_t length = case_.length();
  const std::int64_t pair_work = std::max<std::int64_t>(1, case_.queries * group * case_.channels * 12);
  std::vector<Expected> all{
      {"grad_value", {}, {}}, {"grad_sampling_locations", {}, {}}, {"grad_attention_weights", {}, {}}};
  const auto wanted = static_cast<std::int64_t>(work / static_cast<double>(pair_work));
  const auto pairs = sample_indices(case_.batch * case_.heads, std::max<std::int64_t>(1, wanted), random);
  // The pairs of one call are images of one head, which the reference works on at the same time.
  const auto at_once = static_cast<std::size_t>(num_threads());
  for (std::size_t first = 0; first < pairs.size(); first += at_once) {
    const std::size_t end = std::min(pairs.size(), first + at_once);
    const auto count = static_cast<std::int64_t>(end - first);
    const auto starts = [&](std::int64_t rows, std::int64_t run) {
      std::vector<std::int64_t> found;
      for (std::size_t p = first; p < end; ++p)
        for (std::int64_t row = 0; row < rows; ++row)
          found.push_back(((pairs[p] / case_.heads * rows + row) * case_.heads + pairs[p] % case_.heads) * run);
      return found;
    };
    const auto copy = [&](const char* name, std::int64_t rows, std::int64_t run, const Layout& layout) {
      return exact_rows(tensor(name, 0), starts(rows, run), run, layout);
    };
    const Layout value_layout = Layout::contiguous({count, length, 1, case_.channels});
    const Layout of_locations = location_layout(case_, count, case_.queries, 1);
    const Layout of_weights = weight_layout(case_, count, case_.queries, 1);
    const Buffer value = copy("value", length, case_.channels, value_layout);
    const Buffer locations = copy("sampling_locations", case_.queries, group * 2, of_locations);
    const Buffer weights = copy("attention_weights", case_.queries, group, of_weights);
    const Buffer grad_output =
        copy("grad_output", case_.queries, case_.channels, Layout::contiguous({count, case_.queries, case_.channels}));
    const Buffer grad_value(DType::f64, value_layout);
    const Buffer grad_locations(DType::f64, of_locations);
    const Buffer grad_weights(DType::f64, of_weights);
    ms_deform_attn_backward(value.view(), case_.levels, locations.view(), weights.view(), grad_output.view(),
                            {grad_value.view(), grad_locations.view(), grad_weights.view()},
                            options("reference_backward", 0));
    expect_rows(all[0], grad_value, starts(length, case_.channels), case_.channels);
    expect_rows(all[1], grad_locations, starts(case_.queries, group * 2), group * 2);
    expect_rows(all[2], grad_weights, starts(case_.queries, group), group);
  }
  return all;
}

}  // namespace

std::unique_ptr<Workload> make_ms_deform_attn_workload(const Settings& problem, Device device) {
  return std::make_unique<MsDeformAttnWorkload>(problem, read_ms_deform_attn_case(problem), device);
}

}  // namespace tmaops::bench
