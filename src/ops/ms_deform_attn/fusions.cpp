// What a call may fuse into the operator: the checks of its arguments, and the refusal of variants that cannot.
#include "core/checks.hpp"
#include "ops/ms_deform_attn/problem.hpp"

namespace tmaops::ops::ms_deform_attn {

void check_fusions(std::string_view op, const ConstTensorView& value, const MsDeformAttnOptions& options,
                   Problem& problem) {
  const ArgumentChecks checks(op);
  problem.softmax = options.softmax;
  if (const ConstTensorView& points = options.reference_points; points.given()) {
    const auto levels = static_cast<std::int64_t>(problem.levels.size());
    checks.rank("reference_points", points, {4}, "(N, Lq, L, 2) or (N, Lq, L, 4)");
    checks.shape("reference_points", points, {problem.batch, problem.queries, levels, points.shape[3] == 4 ? 4 : 2},
                 "(N, Lq, L, 2) or (N, Lq, L, 4)");
    checks.dtype("reference_points", points, {DType::f16, DType::bf16, DType::f32, DType::f64});
    checks.same_device("reference_points", points, "value", value);
    checks.memory("reference_points", points);
    problem.reference_components = static_cast<int>(points.shape[3]);
  }
  if (const ConstTensorView& mask = options.padding_mask; mask.given()) {
    checks.rank("padding_mask", mask, {2}, "(N, S)");
    checks.shape("padding_mask", mask, {problem.batch, problem.length}, "(N, S)");
    checks.dtype("padding_mask", mask, {DType::u8});
    checks.same_device("padding_mask", mask, "value", value);
    checks.memory("padding_mask", mask);
    problem.masked = true;
  }
}

Support supports_plain(const Problem& problem) {
  if (problem.softmax) return Support::no("takes weights, not logits (softmax)");
  if (problem.reference_components != 0) return Support::no("takes locations, not offsets from reference points");
  if (problem.masked) return Support::no("takes no padding mask");
  if (problem.bordered) return Support::no("takes no value with a border around its levels");
  return Support::yes();
}

}  // namespace tmaops::ops::ms_deform_attn
