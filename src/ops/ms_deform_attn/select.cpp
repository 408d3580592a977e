// Which variant runs when the caller names none: the first of variants.def that takes the problem, and simd_packed only
// where its copy of the value pays.
#include "ops/ms_deform_attn/problem.hpp"
#include "ops/ms_deform_attn/problem_backward.hpp"

namespace tmaops::ops {

namespace ms_deform_attn {
namespace {

/// Copying a pixel costs as much as what the copy saves on about ten reads of it (docs/findings/ms_deform_attn_cpu.md).
constexpr double kReadsThatPay = 10;

/// Whether the samples (four pixels each) read a pixel often enough on average: encoders do, decoders do not.
bool packing_pays(const Problem& problem) {
  return 4 * static_cast<double>(problem.queries) * static_cast<double>(problem.points) >=
         kReadsThatPay * static_cast<double>(problem.length);
}

}  // namespace

const Variant<Problem, Arguments>& select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  VariantTable<Problem, Arguments> table = variants();
  if (!name.empty()) return named_variant(table, name, problem, device);
  if (problem.device.type == DeviceType::cpu && !packing_pays(problem))
    for (std::size_t i = 0; i < table.size(); ++i)
      if (table[i].name == "simd_packed") return first_variant(table.subspan(i + 1), problem, device);
  return first_variant(table, problem, device);
}
}  // namespace ms_deform_attn

namespace ms_deform_attn_backward {
const Variant<Problem, Arguments>& select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  return name.empty() ? first_variant(variants(), problem, device) : named_variant(variants(), name, problem, device);
}
}  // namespace ms_deform_attn_backward

}  // namespace tmaops::ops
