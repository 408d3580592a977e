// Multi-scale deformable attention: random normal values, sampling locations as detectors produce them.
#include "tmaops/ms_deform_attn.hpp"

#include <algorithm>
#include <memory>

#include "bench/workloads/common.hpp"
#include "bench/workloads/element.hpp"
#include "bench/workloads/ms_deform_attn_cases.hpp"
#include "bench/workloads/ms_deform_attn_inputs.hpp"
#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/forward/shared/half_arithmetic.hpp"
#include "ops/ms_deform_attn/problem.hpp"

namespace tmaops::bench {
namespace {

/// Multiply-adds the check may take in the plain reference; a larger case is checked on a random part of its queries
/// (forward) or of its (image, head) pairs (backward).
constexpr std::int64_t kCheckedWork = std::int64_t{1} << 26;

using Case = MsDeformAttnCase;

std::vector<TensorSpec> tensors(const Case& c) {
  const auto levels = static_cast<std::int64_t>(c.levels.size());
  std::vector<TensorSpec> all{
      {"value", c.dtype, Layout::contiguous({c.batch, c.value_length(), c.heads, c.channels})},
      {"sampling_locations", c.location_dtype, Layout::contiguous({c.batch, c.queries, c.heads, levels, c.points, 2})},
      {"attention_weights", c.location_dtype, Layout::contiguous({c.batch, c.queries, c.heads, levels, c.points})}};
  const Layout output = Layout::contiguous({c.batch, c.queries, c.heads * c.channels});
  if (c.fused.reference_components != 0)
    all.push_back({"reference_points", c.location_dtype,
                   Layout::contiguous({c.batch, c.queries, levels, c.fused.reference_components})});
  if (c.fused.mask) all.push_back({"padding_mask", DType::u8, Layout::contiguous({c.batch, c.value_length()})});
  if (!c.backward) {
    all.push_back({"output", c.dtype, output, true});
    return all;
  }
  const DType gradient = c.dtype == DType::f64 ? DType::f64 : DType::f32;
  all.push_back({"grad_output", c.dtype, output});
  all.push_back({"grad_value", gradient, all[0].layout, true});
  all.push_back({"grad_sampling_locations", gradient, all[1].layout, true});
  all.push_back({"grad_attention_weights", gradient, all[2].layout, true});
  return all;
}

CaseInfo describe(const Settings& problem, const Case& c, const std::vector<TensorSpec>& specs, Device device) {
  CaseInfo made{.op = c.backward ? "ms_deform_attn_backward" : "ms_deform_attn",
                .name = c.name,
                .dtype = std::string(to_string(c.dtype)),
                .problem = problem.to_text(),
                .device = device};
  for (const TensorSpec& spec : specs) made.floor_bytes += byte_count(spec);
  // Per sample and channel 4 multiply-adds; backward the same for the value's gradient and twice for the weights'. With
  // nearest sampling 1, and backward the same for each of the two gradients.
  const double samples = static_cast<double>(c.batch) * static_cast<double>(c.queries) * static_cast<double>(c.heads) *
                         static_cast<double>(c.levels.size()) * static_cast<double>(c.points);
  const bool nearest = c.sampling == Sampling::nearest;
  const double operations = c.backward ? (nearest ? 4.0 : 24.0) : (nearest ? 2.0 : 8.0);
  made.flops = samples * static_cast<double>(c.channels) * operations;
  return made;
}

class MsDeformAttnWorkload : public Workload {
 public:
  MsDeformAttnWorkload(const Settings& problem, const Case& c, Device device)
      : Workload(describe(problem, c, bench::tensors(c), device), bench::tensors(c)), case_(c) {}

  std::vector<VariantChoice> variants() const override;
  std::string selected() const override;
  nlohmann::json peer_parameters() const override {
    auto levels = nlohmann::json::array();
    for (const LevelShape& level : case_.levels) levels.push_back({level.height, level.width});
    return {{"levels", levels},
            {"sampling", case_.sampling == Sampling::nearest ? "nearest" : "bilinear"},
            {"direction", case_.backward ? "backward" : "forward"},
            {"fused", case_.fused.text()}};
  }
  Call bind(const std::string& variant, int set, Launch launch) const override;

 protected:
  void fill(std::uint64_t seed) override;
  std::vector<Expected> reference(std::uint64_t seed) const override {
    return case_.backward ? reference_backward(seed) : reference_forward(seed);
  }
  /// Coordinates in f32 have an error of 2^-24 of the level's width in pixels, and so have the bilinear weights; the
  /// gradient to a location is a difference of such values times the width.
  double tolerance() const override {
    if (case_.dtype == DType::f64) return 1e-11;
    return case_.backward ? 5e-5 : std::max(2e-5, rounding_tolerance(case_.dtype));
  }

 public:
  /// The published kernels compute in f16.
  double variant_tolerance(const std::string& variant) const override {
    if (case_.backward || !ops::ms_deform_attn::computes_in_f16(variant)) return 0;
    return ops::ms_deform_attn::half_arithmetic_error(forward_problem());
  }

 private:
  MsDeformAttnOptions options(const std::string& variant, int set) const {
    MsDeformAttnOptions made;
    made.sampling = case_.sampling;
    made.deterministic = case_.deterministic;
    made.softmax = case_.fused.softmax;
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
  std::vector<Expected> reference_forward(std::uint64_t seed) const;
  std::vector<Expected> reference_backward(std::uint64_t seed) const;

  Case case_;
};

std::vector<VariantChoice> MsDeformAttnWorkload::variants() const {
  const DeviceInfo& device = device_info(info_.device);
  if (case_.backward) return choices(ops::ms_deform_attn_backward::variants(), backward_problem(), device);
  return choices(ops::ms_deform_attn::variants(), forward_problem(), device);
}

std::string MsDeformAttnWorkload::selected() const {
  const DeviceInfo& device = device_info(info_.device);
  if (case_.backward)
    return std::string(ops::ms_deform_attn_backward::select(backward_problem(), device, "").variant->name);
  return std::string(ops::ms_deform_attn::select(forward_problem(), device, "").variant->name);
}

Call MsDeformAttnWorkload::bind(const std::string& variant, int set, Launch launch) const {
  MsDeformAttnOptions wanted = options(variant, set);
  wanted.dependent_launch = launch == Launch::dependent;
  const TensorView value = tensor("value", set);
  const TensorView locations = tensor("sampling_locations", set);
  const TensorView weights = tensor("attention_weights", set);
  return call_of(case_.backward
                     ? plan_ms_deform_attn_backward(value, case_.levels, locations, weights, tensor("grad_output", set),
                                                    gradients(set), wanted)
                     : plan_ms_deform_attn(value, case_.levels, locations, weights, tensor("output", set), wanted));
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

/// Elements [start, start + count) of a tensor, spaced by stride, in runs of `run` neighbours, as f64.
Buffer exact_copy(const TensorView& from, std::int64_t start, std::int64_t stride, std::int64_t run,
                  const Layout& layout) {
  Buffer to(DType::f64, layout);
  auto* out = static_cast<double*>(to.view().data);
  visit_dtype(from.dtype, [&](auto* type) {
    const auto* in = static_cast<const std::remove_pointer_t<decltype(type)>*>(from.data) + start;
    const std::int64_t runs = run == 0 ? 0 : layout.size() / run;
    for (std::int64_t r = 0; r < runs; ++r)
      for (std::int64_t i = 0; i < run; ++i) *out++ = static_cast<double>(in[r * stride + i]);
  });
  return to;
}

std::vector<Expected> MsDeformAttnWorkload::reference_forward(std::uint64_t seed) const {
  Random random(seed, 77);
  const auto levels = static_cast<std::int64_t>(case_.levels.size());
  const std::int64_t width = case_.heads * case_.channels;           // of one pixel of value, and of one query's output
  const std::int64_t samples = case_.heads * levels * case_.points;  // of one query
  const std::int64_t work = std::max<std::int64_t>(1, samples * case_.channels * 4);
  const auto images = sample_indices(case_.batch, 2, random);
  Expected expected{.tensor = "output", .elements = {}, .values = {}};
  for (const std::int64_t n : images) {
    const std::int64_t length = case_.value_length();
    const Buffer value = exact_copy(tensor("value", 0), n * length * width, width, width,
                                    Layout::contiguous({1, length, case_.heads, case_.channels}));
    const std::int64_t wanted =
        std::max<std::int64_t>(64, kCheckedWork / work / static_cast<std::int64_t>(images.size()));
    for (const std::int64_t q : sample_indices(case_.queries, wanted, random)) {
      const std::int64_t row = n * case_.queries + q;
      const Buffer locations = exact_copy(tensor("sampling_locations", 0), row * samples * 2, 0, samples * 2,
                                          Layout::contiguous({1, 1, case_.heads, levels, case_.points, 2}));
      const Buffer weights = exact_copy(tensor("attention_weights", 0), row * samples, 0, samples,
                                        Layout::contiguous({1, 1, case_.heads, levels, case_.points}));
      const Buffer want(DType::f64, Layout::contiguous({1, 1, width}));
      MsDeformAttnOptions one = options("reference", 0);
      const std::int64_t references = levels * case_.fused.reference_components;
      Buffer reference_points;
      if (references != 0) {
        reference_points = exact_copy(tensor("reference_points", 0), row * references, 0, references,
                                      Layout::contiguous({1, 1, levels, case_.fused.reference_components}));
        one.reference_points = reference_points.view();
      }
      if (case_.fused.mask)
        one.padding_mask =
            ConstTensorView(static_cast<const std::uint8_t*>(tensor("padding_mask", 0).data) + n * length, DType::u8,
                            Layout::contiguous({1, length}));
      ms_deform_attn(value.view(), case_.levels, locations.view(), weights.view(), want.view(), one);
      for (std::int64_t i = 0; i < width; ++i) {
        expected.elements.push_back(row * width + i);
        expected.values.push_back(load(DType::f64, want.view().data, i));
      }
    }
  }
  return {expected};
}

std::vector<Expected> MsDeformAttnWorkload::reference_backward(std::uint64_t seed) const {
  Random random(seed, 77);
  const auto levels = static_cast<std::int64_t>(case_.levels.size());
  const std::int64_t group = levels * case_.points;  // samples of one query and head
  const std::int64_t length = case_.length();
  const std::int64_t work = std::max<std::int64_t>(1, case_.queries * group * case_.channels * 12);
  const Layout value_layout = Layout::contiguous({1, length, 1, case_.channels});
  const Layout location_layout = Layout::contiguous({1, case_.queries, 1, levels, case_.points, 2});
  const Layout weight_layout = Layout::contiguous({1, case_.queries, 1, levels, case_.points});
  std::vector<Expected> all{
      {"grad_value", {}, {}}, {"grad_sampling_locations", {}, {}}, {"grad_attention_weights", {}, {}}};
  const auto pairs = sample_indices(case_.batch * case_.heads, std::max<std::int64_t>(1, kCheckedWork / work), random);
  for (const std::int64_t pair : pairs) {
    const std::int64_t n = pair / case_.heads;
    const std::int64_t m = pair % case_.heads;
    const auto start = [&](std::int64_t rows, std::int64_t run) { return (n * rows * case_.heads + m) * run; };
    const auto copy = [&](const char* name, std::int64_t rows, std::int64_t run, const Layout& layout) {
      return exact_copy(tensor(name, 0), start(rows, run), case_.heads * run, run, layout);
    };
    const Buffer value = copy("value", length, case_.channels, value_layout);
    const Buffer locations = copy("sampling_locations", case_.queries, group * 2, location_layout);
    const Buffer weights = copy("attention_weights", case_.queries, group, weight_layout);
    const Buffer grad_output =
        copy("grad_output", case_.queries, case_.channels, Layout::contiguous({1, case_.queries, case_.channels}));
    const Buffer grad_value(DType::f64, value_layout);
    const Buffer grad_locations(DType::f64, location_layout);
    const Buffer grad_weights(DType::f64, weight_layout);
    ms_deform_attn_backward(value.view(), case_.levels, locations.view(), weights.view(), grad_output.view(),
                            {grad_value.view(), grad_locations.view(), grad_weights.view()},
                            options("reference_backward", 0));
    const auto take = [&](Expected& expected, const Buffer& gradient, std::int64_t rows, std::int64_t run) {
      for (std::int64_t i = 0; i < rows * run; ++i) {
        expected.elements.push_back(start(rows, run) + i / run * case_.heads * run + i % run);
        expected.values.push_back(load(DType::f64, gradient.view().data, i));
      }
    };
    take(all[0], grad_value, length, case_.channels);
    take(all[1], grad_locations, case_.queries, group * 2);
    take(all[2], grad_weights, case_.queries, group);
  }
  return all;
}

}  // namespace

std::unique_ptr<Workload> make_ms_deform_attn_workload(const Settings& problem, Device device) {
  return std::make_unique<MsDeformAttnWorkload>(problem, read_ms_deform_attn_case(problem), device);
}

}  // namespace tmaops::bench
