#include <algorithm>
#include <array>

#include "tma/rules.hpp"
#include "tma/sizes.hpp"

namespace tmaops::tma {
namespace {

bool breaks(const Findings& found, RuleId id) {
  return std::ranges::any_of(found.all(), [id](const Finding& finding) { return finding.rule == &rule(id); });
}

/// What a repair changed, in words; empty when it changed nothing.
using Change = std::string;

Change reverse_order(TensorMapSpec& spec, const Findings& found) {
  const std::int64_t bits = bits_of(spec.dtype);
  if (spec.mode != Mode::tiled || spec.rank() < 2 || spec.box.size() != spec.dims.size() ||
      spec.strides.size() + 1 != spec.dims.size() || !breaks(found, RuleId::box_inner_16) || spec.box.back() < 1 ||
      spec.box.back() > 256 || spec.box.back() * bits % 128 != 0)
    return {};
  const bool dense = spec.strides == dense_strides(spec.dtype, spec.dims);
  std::ranges::reverse(spec.dims);
  std::ranges::reverse(spec.box);
  std::ranges::reverse(spec.element_strides);
  std::ranges::reverse(spec.strides);
  // The last stride of an outermost-first list is the pitch of a row. Strides made for the wrong order are replaced.
  if (dense || spec.strides[0] < bytes_of(spec.dtype, spec.dims[0]))
    spec.strides = dense_strides(spec.dtype, spec.dims);
  return "dimensions look outermost first; innermost first dims " + braces(spec.dims) + ", strides " +
         braces(spec.strides) + " B, box " + braces(spec.box);
}

Change mend_stride_list(TensorMapSpec& spec, const Findings&) {
  if (spec.dims.empty() || spec.strides.size() + 1 == spec.dims.size()) return {};
  if (spec.strides.size() == spec.dims.size() && spec.strides[0] == bytes_of(spec.dtype, 1)) {
    spec.strides.erase(spec.strides.begin());
    return "strides without the innermost one, which is always the element size: " + braces(spec.strides) + " B";
  }
  spec.strides = dense_strides(spec.dtype, spec.dims);
  return "strides of a dense tensor, one fewer than dimensions: " + braces(spec.strides) + " B";
}

Change pad_pitch(TensorMapSpec& spec, const Findings&) {
  const std::int64_t multiple = spec.interleave == Interleave::b32 || packed_16(spec.dtype) ? 32 : 16;
  const std::vector<std::int64_t> before = spec.strides;
  for (std::size_t i = 0; i < spec.strides.size(); ++i) {
    if (spec.strides[i] < 0 || spec.strides[i] >= (std::int64_t{1} << 40)) return {};
    // Keeps the ratio to the stride below, so that dense dimensions stay dense. The stride of one element means
    // nothing.
    if (i > 0 && i < spec.dims.size() && spec.dims[i] > 1 && before[i - 1] > 0 && before[i] % before[i - 1] == 0 &&
        before[i] / before[i - 1] < (1 << 20))
      spec.strides[i] = before[i] / before[i - 1] * spec.strides[i - 1];
    spec.strides[i] = rounded_up(spec.strides[i], multiple);
  }
  if (spec.strides == before) return {};
  return "rows padded to a multiple of " + std::to_string(multiple) + " B: strides " + braces(spec.strides) + " B";
}

std::int64_t inner_bytes(const TensorMapSpec& spec) {
  const std::int64_t inner = spec.mode == Mode::im2col ? spec.channels_per_pixel : spec.box.empty() ? 0 : spec.box[0];
  return inner < 1 || inner > (1 << 20) ? 0 : shared_row_bytes(spec.dtype, inner);
}

Change fit_swizzle(TensorMapSpec& spec, const Findings&) {
  const Swizzle before = spec.swizzle;
  if (spec.interleave == Interleave::b32) {
    spec.swizzle = Swizzle::b32;
  } else if (before == Swizzle::none) {
    return {};
  } else {
    const std::int64_t bytes = inner_bytes(spec);
    if (bytes == 0 || bytes > 128) return {};
    spec.swizzle = bytes <= 32 ? Swizzle::b32 : bytes <= 64 ? Swizzle::b64 : Swizzle::b128;
    if (packed_16(spec.dtype)) spec.swizzle = Swizzle::b128;
  }
  if (spec.swizzle == before) return {};
  return "swizzle " + std::string(to_string(spec.swizzle)) + " instead of " + std::string(to_string(before));
}

/// The largest divisor of value that is at most `most`; at least 1.
std::int64_t part_of(std::int64_t value, std::int64_t most) {
  for (std::int64_t part = most; part > 1; --part)
    if (value % part == 0) return part;
  return 1;
}

Change split_channels(TensorMapSpec& spec) {
  const std::int64_t before = spec.channels_per_pixel;
  if (spec.interleave != Interleave::none || spec.swizzle == Swizzle::none || is_packed(spec.dtype)) return {};
  const std::int64_t most = span_of(spec.swizzle) * 8 / bits_of(spec.dtype);
  if (before <= most || before > (1 << 20)) return {};
  spec.channels_per_pixel = part_of(before, most);
  if (spec.channels_per_pixel * 8 < most) spec.channels_per_pixel = most;  // as for a box
  const std::int64_t loads = (before + spec.channels_per_pixel - 1) / spec.channels_per_pixel;
  return "channels_per_pixel " + std::to_string(spec.channels_per_pixel) + ", " + std::to_string(loads) +
         " loads instead of one";
}

Change split_box(TensorMapSpec& spec, const Findings&) {
  if (spec.mode == Mode::im2col) return split_channels(spec);
  if (spec.mode != Mode::tiled || spec.box.empty()) return {};
  std::int64_t loads = 1;
  for (std::size_t i = 0; i < spec.box.size(); ++i) {
    const std::int64_t before = spec.box[i];
    if (before < 1 || before > (1 << 20)) return {};
    std::int64_t most = 256;
    if (i == 0 && spec.interleave == Interleave::none && spec.swizzle != Swizzle::none && !is_packed(spec.dtype))
      most = std::min<std::int64_t>(most, span_of(spec.swizzle) * 8 / bits_of(spec.dtype));
    if (before <= most) continue;
    spec.box[i] = part_of(before, most);
    if (spec.box[i] * 8 < most) spec.box[i] = most;  // without a good divisor the last load reaches past the end
    loads *= (before + spec.box[i] - 1) / spec.box[i];
  }
  if (loads == 1) return {};
  return "box " + braces(spec.box) + ", " + std::to_string(loads) + " loads instead of one";
}

Change round_inner_box(TensorMapSpec& spec, const Findings&) {
  if (spec.mode != Mode::tiled || spec.box.empty() || spec.box[0] < 1 || spec.box[0] > 256) return {};
  const std::int64_t before = spec.box[0];
  const int bits = bits_of(spec.dtype);
  spec.box[0] = packed_16(spec.dtype) ? 128 : rounded_up(before, 128 / std::min(bits, 128));
  if (spec.box[0] == before) return {};
  return "inner box " + std::to_string(spec.box[0]) + " elements (" +
         std::to_string(shared_row_bytes(spec.dtype, spec.box[0])) + " B) instead of " + std::to_string(before) +
         ": the rest is loaded and ignored";
}

Change drop_swizzle(TensorMapSpec& spec, const Findings&) {
  if (spec.swizzle == Swizzle::none || spec.interleave == Interleave::b32) return {};
  spec.swizzle = Swizzle::none;
  return "no swizzle";
}

Change mend_element_strides(TensorMapSpec& spec, const Findings&) {
  const std::vector<std::int64_t> before = spec.element_strides;
  if (before.empty()) return {};
  if (spec.element_strides.size() != spec.dims.size()) {
    spec.element_strides.assign(spec.dims.size(), 1);
  } else {
    for (std::int64_t& step : spec.element_strides)
      if (step < 1 || step > 8) step = 1;
  }
  if (spec.element_strides == before) return {};
  return "element strides " + braces(spec.element_strides);
}

Change fill_with_zero(TensorMapSpec& spec, const Findings&) {
  if (spec.fill == Fill::zero) return {};
  spec.fill = Fill::zero;
  return "zero fill";
}

Change move_tensor(TensorMapSpec& spec, const Findings& found) {
  if (!breaks(found, RuleId::address_16) && !breaks(found, RuleId::address_32)) return {};
  spec.address = 0;
  return "the tensor moved to an address that is a multiple of " +
         std::string(breaks(found, RuleId::address_32) ? "32" : "16") +
         " (copy it, or start the view at such an element and shift the coordinates)";
}

using Repair = Change (*)(TensorMapSpec&, const Findings&);
constexpr std::array<Repair, 10> kRepairs = {reverse_order,  mend_stride_list, pad_pitch,    fit_swizzle,
                                             split_box,      round_inner_box,  drop_swizzle, mend_element_strides,
                                             fill_with_zero, move_tensor};

}  // namespace

std::optional<Proposal> propose(const TensorMapSpec& spec, const Findings& found, int compute_capability) {
  const bool overlapped = breaks(found, RuleId::stride_overlap);
  for (int size = 1; size <= static_cast<int>(kRepairs.size()); ++size) {
    // Subsets of this size, those with earlier repairs first.
    std::array<bool, kRepairs.size()> chosen{};
    std::fill_n(chosen.begin(), size, true);
    do {
      Proposal proposal{spec, {}};
      bool all_did_something = true;
      for (std::size_t i = 0; i < kRepairs.size() && all_did_something; ++i) {
        if (!chosen[i]) continue;
        const Change change = kRepairs[i](proposal.spec, found);
        all_did_something = !change.empty();
        proposal.change += (proposal.change.empty() ? "" : "; ") + change;
      }
      if (!all_did_something) continue;
      const Findings left = find_violations(proposal.spec, compute_capability);
      if (!left.has_errors() && (overlapped || !breaks(left, RuleId::stride_overlap))) return proposal;
    } while (std::ranges::prev_permutation(chosen).found);
  }
  return std::nullopt;
}

}  // namespace tmaops::tma
