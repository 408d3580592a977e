// Which variant runs when the caller names none: the cheapest by rank, and of equal ones the first of variants.def.
#include <algorithm>

#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/problem.hpp"

namespace tmaops::ops {
namespace {

/// What a variant costs in place of a time: nobody has a model of these.
constexpr double kBest = 0;
constexpr double kGood = 1;
constexpr double kUsual = 2;
constexpr double kLast = 3;  // only where no other takes the problem

template <class Problem>
struct Rank {
  std::string_view variant;
  double (*of)(const Problem& problem, const DeviceInfo& device);
};
template <class Problem>
double usual(const Problem&, const DeviceInfo&) {
  return kUsual;
}

/// The estimate of a table of ranks. Variants that it does not name have none (core/choose.hpp).
template <class Problem, std::size_t count>
auto estimate(const Rank<Problem> (&ranks)[count], const Problem& problem, const DeviceInfo& device) {
  return [&](const auto& variant, const auto&) -> std::optional<double> {
    const auto* found = std::ranges::find(ranks, variant.name, &Rank<Problem>::variant);
    if (found == std::end(ranks)) return std::nullopt;
    return found->of(problem, device);
  };
}

}  // namespace

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

/// Queries of an image from which tma_resident pays: it brings two levels to shared memory for each image and head.
constexpr std::int64_t kQueriesThatStay = 2000;

/// f32 whose channels fill the 128 bytes of a line, as 32 do. Where queries lie as close as pixels, as an encoder's,
/// neighbours sample the same pixels, and shuffled_samples is the fastest; else, and with fused steps, level_per_thread
/// (docs/findings/ms_deform_attn.md, A8).
bool whole_lines(const Problem& problem) { return problem.value_dtype == DType::f32 && problem.channels == 32; }
bool close_queries(const Problem& problem) { return 2 * problem.queries >= problem.length; }

constexpr Rank<Problem> kRanks[] = {
    {"tma_resident",
     [](const Problem& problem, const DeviceInfo&) { return problem.queries >= kQueriesThatStay ? kUsual : kLast; }},
    {"level_per_thread",
     [](const Problem& problem, const DeviceInfo& device) {
       const bool apart = whole_lines(problem) && (problem.fused() || !close_queries(problem));
       return few_queries(problem, device) || apart ? kBest : kUsual;
     }},
    {"shuffled_samples",
     [](const Problem& problem, const DeviceInfo& device) {
       return few_queries(problem, device) || whole_lines(problem) ? kGood : kUsual;
     }},
    {"channel_per_thread", usual},
    {"simd_packed", [](const Problem& problem, const DeviceInfo&) { return packing_pays(problem) ? kUsual : kLast; }},
    {"simd", usual},
    {"portable", usual},
    {"reference", usual}};

}  // namespace

Choice<Problem, Arguments, Config> select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  if (!name.empty()) return named_choice(variants(), name, problem, device);
  return best_choice(variants(), problem, device, estimate(kRanks, problem, device));
}

}  // namespace ms_deform_attn

namespace ms_deform_attn_backward {
namespace {

/// Samples per pixel and head from which merged_atomics_backward pays (docs/findings/ms_deform_attn.md, A17).
constexpr std::int64_t kSamplesThatPay = 4;
constexpr std::int64_t kThreadsOfFew = 256;  // per multiprocessor: it shares the levels out
double rank_of_merging(const Problem& problem, const DeviceInfo& device) {
  const ms_deform_attn::Problem& forward = problem.forward;
  const std::int64_t threads = forward.batch * forward.queries * forward.heads * forward.channels / 4;
  if (threads <= kThreadsOfFew * device.multiprocessors) return kBest;
  return forward.queries * forward.points >= kSamplesThatPay * forward.length ? kBest : kUsual;
}

constexpr Rank<Problem> kRanks[] = {{"vector_atomics_backward", usual}, {"merged_atomics_backward", rank_of_merging},
                                    {"pixel_lists_backward", usual},    {"warp_atomics_backward", usual},
                                    {"fixed_point_backward", usual},    {"simd_backward", usual},
                                    {"portable_backward", usual},       {"reference_backward", usual}};

}  // namespace

Choice<Problem, Arguments, Config> select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  if (!name.empty()) return named_choice(variants(), name, problem, device);
  return best_choice(variants(), problem, device, estimate(kRanks, problem, device));
}

}  // namespace ms_deform_attn_backward
}  // namespace tmaops::ops
