// How items are dealt to blocks, so that a block finds what its queries look at in the L1.
#pragma once

#include "ops/ms_deform_attn/shared/points.cuh"

namespace tmaops::ops::ms_deform_attn::gpu {

/// Each block works on 2^head_bits heads of `each` queries of one image, or of all images where an image has few.
struct Deal {
  std::int64_t rows = 0;  // queries of an image, or of all images
  unsigned blocks = 0;    // for these queries and heads
  unsigned each = 0;
  int head_bits = 0;
  bool by_image = false;
};

/// At most `most` queries per block, and all images together where one has fewer than that.
inline Deal deal_items(const Problem& problem, std::int64_t most, int head_bits) {
  const bool by_image = problem.queries >= most;
  Deal deal{.rows = by_image ? problem.queries : problem.batch * problem.queries, .head_bits = head_bits};
  deal.blocks = static_cast<unsigned>((deal.rows + most - 1) / most);
  deal.each = static_cast<unsigned>((deal.rows + deal.blocks - 1) / deal.blocks);
  deal.by_image = by_image;
  return deal;
}
inline unsigned grid_of(const Problem& problem, const Deal& deal) {
  return static_cast<unsigned>(deal.blocks * (problem.heads >> deal.head_bits) * (deal.by_image ? problem.batch : 1));
}

/// log2 of the heads that neighbouring threads work on: their pixels fill 128 bytes, so that eight threads read
/// different banks of the L1 whatever the lines.
inline int bank_bits(const Problem& problem, int lane_bits) {
  int bits = 0;
  while (lane_bits + bits < 3 && problem.heads % (2 << bits) == 0) ++bits;
  return bits;
}

struct DealtItem {
  Item item{};
  bool valid = false;  // false: beyond the last one; `item` is another then
};

/// Item `number` of the block.
__device__ __forceinline__ DealtItem dealt_item(const Call& call, const Deal& deal, unsigned number) {
  const unsigned head_groups = static_cast<unsigned>(call.heads) >> deal.head_bits;
  const unsigned group = blockIdx.x / deal.blocks;
  const unsigned of_block = number >> deal.head_bits;
  const std::int64_t row = std::int64_t{blockIdx.x % deal.blocks} * deal.each + of_block;
  const std::int64_t inside = min(row, deal.rows - 1);
  const std::int64_t m = (group % head_groups << deal.head_bits) + (number & ((1u << deal.head_bits) - 1));
  return {.item = item_at(call, (group / head_groups * deal.rows + inside) * call.heads + m),
          .valid = of_block < deal.each && row < deal.rows};
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
