// Which variant runs when the caller names none: the first of variants.def that takes the problem, but simd_packed only
// where its copy of the value pays, tma_resident only where an image has many queries, level_per_thread or else
// shuffled_samples first where queries are few, shuffled_samples for values of f32 with 32 channels, and
// pixel_lists_backward first where many samples meet at a pixel.
#include <algorithm>

#include "ops/ms_deform_attn/problem.hpp"
#include "ops/ms_deform_attn/problem_backward.hpp"

namespace tmaops::ops {

namespace ms_deform_attn {
namespace {

/// Copying a pixel costs as much as what the copy saves on about ten reads of it (docs/findings/ms_deform_attn_cpu.md,
/// D3).
constexpr double kReadsThatPay = 10;

/// Whether the samples (four pixels each) read a pixel often enough on average: encoders do, decoders do not.
bool packing_pays(const Problem& problem) {
  return 4 * static_cast<double>(problem.queries) * static_cast<double>(problem.points) >=
         kReadsThatPay * static_cast<double>(problem.length);
}

/// Items, times the 16-byte pieces of their channels, that level_per_thread and shuffled_samples work on at a time per
/// multiprocessor.
constexpr double kPiecesAtATime = 640;
/// Up to so many times that they are the fastest on a GPU (docs/findings/ms_deform_attn.md, A9): decoders.
constexpr double kRoundsOfDecoders = 4;

bool few_queries(const Problem& problem, const DeviceInfo& device) {
  const double pieces = static_cast<double>(problem.batch * problem.queries * problem.heads) *
                        static_cast<double>(problem.channels) * static_cast<double>(size_of(problem.value_dtype)) / 16;
  return pieces <= kRoundsOfDecoders * kPiecesAtATime * device.multiprocessors;
}

/// Queries of an image from which tma_resident is chosen: it brings two levels to shared memory for each image and
/// head.
constexpr std::int64_t kQueriesThatStay = 2000;

/// f32 whose channels fill the 128 bytes of a line, as 32 do. With four points in a level level_per_thread is the
/// fastest or near it (202 us on enc/uniform and 227 on enc/detr, shuffled_samples 238 and 224), with eight
/// shuffled_samples (791 us on seed/uniform and 749 on seed/detr, level_per_thread 779 and 805; vector16 loses to both:
/// docs/findings/ms_deform_attn.md, A8).
bool whole_lines(const Problem& problem) { return problem.value_dtype == DType::f32 && problem.channels == 32; }
bool four_points(const Problem& problem) {
  return std::ranges::all_of(problem.levels, [](const Level& level) { return level.points == 4; });
}

}  // namespace

const Variant<Problem, Arguments>& select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  VariantTable<Problem, Arguments> table = variants();
  if (!name.empty()) return named_variant(table, name, problem, device);
  const auto place_of = [&](std::string_view wanted) {
    return static_cast<std::size_t>(std::ranges::find(table, wanted, &Variant<Problem, Arguments>::name) -
                                    table.begin());
  };
  const auto taken = [&](std::string_view wanted) {
    const std::size_t at = place_of(wanted);
    return at < table.size() && try_variant(table[at], problem, device) ? &table[at] : nullptr;
  };
  const auto behind = [&](std::string_view passed) {
    const std::size_t at = place_of(passed);
    return at < table.size() ? table.subspan(at + 1) : table;
  };
  if (problem.device.type == DeviceType::cpu)
    return first_variant(packing_pays(problem) ? table : behind("simd_packed"), problem, device);
  const bool few = few_queries(problem, device);
  if (few || (whole_lines(problem) && four_points(problem)))
    if (const auto* variant = taken("level_per_thread")) return *variant;
  if (few || whole_lines(problem))
    if (const auto* variant = taken("shuffled_samples")) return *variant;
  if (problem.queries < kQueriesThatStay) return first_variant(behind("tma_resident"), problem, device);
  return first_variant(table, problem, device);
}
}  // namespace ms_deform_attn

namespace ms_deform_attn_backward {
namespace {

/// Samples per pixel and head from which pixel_lists_backward is as fast as atomic additions or faster, for 16-bit
/// values (docs/findings/ms_deform_attn.md, A17): encoders have 16.
constexpr double kSamplesThatPay = 10;

bool lists_pay(const Problem& problem) {
  const ms_deform_attn::Problem& forward = problem.forward;
  return problem.grad_value && size_of(forward.value_dtype) == 2 &&
         static_cast<double>(forward.queries) * static_cast<double>(forward.points) >=
             kSamplesThatPay * static_cast<double>(forward.length);
}

}  // namespace

const Variant<Problem, Arguments>& select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  if (!name.empty()) return named_variant(variants(), name, problem, device);
  if (problem.forward.device.type == DeviceType::cuda && lists_pay(problem))
    for (const auto& variant : variants())
      if (variant.name == "pixel_lists_backward" && try_variant(variant, problem, device)) return variant;
  return first_variant(variants(), problem, device);
}
}  // namespace ms_deform_attn_backward

}  // namespace tmaops::ops
