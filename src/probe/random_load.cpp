#include "probe/random_load.hpp"

#include <algorithm>

#include "tma/rules.hpp"
#include "tma/sizes.hpp"
#include "tma/tile.hpp"

namespace tmaops::probe {
namespace {

using tma::ElementType;
using tma::Fill;
using tma::kHopper;
using tma::L2Promotion;
using tma::Swizzle;
using tma::TensorMapSpec;

constexpr std::int64_t kPlainTypes = 13;
constexpr std::int64_t kChunk = 16;  // rows, strides and first coordinates are multiples of these bytes

}  // namespace

std::int64_t tensor_bytes(const TensorMapSpec& spec) {
  std::int64_t bytes = bytes_of(spec.dtype, spec.dims[0]);
  for (std::size_t i = 0; i < spec.strides.size(); ++i) bytes += (spec.dims[i + 1] - 1) * spec.strides[i];
  return bytes;
}

void RandomLoads::add_strides(TensorMapSpec& spec) {
  std::int64_t dense = bytes_of(spec.dtype, spec.dims[0]);
  for (std::size_t i = 1; i < spec.dims.size(); ++i) {
    dense = (dense + kChunk - 1) / kChunk * kChunk;
    std::int64_t stride = dense;
    if (below(4) == 0) stride += kChunk * below(5);           // padded rows
    if (below(16) == 0) stride = below(2) == 0 ? 0 : kChunk;  // repeated or overlapping rows
    spec.strides.push_back(stride);
    dense = std::max(stride, kChunk) * spec.dims[i];
  }
}

TensorMapSpec RandomLoads::any_spec() {
  TensorMapSpec spec;
  spec.dtype = static_cast<ElementType>(below(kPlainTypes));
  spec.swizzle = static_cast<Swizzle>(below(4));
  spec.l2_promotion = static_cast<L2Promotion>(below(4));
  spec.fill = is_floating(spec.dtype) && below(2) == 0 ? Fill::nan : Fill::zero;
  spec.address = static_cast<std::uint64_t>(kChunk * below(64));
  const std::int64_t per_chunk = 128 / bits_of(spec.dtype);  // elements
  const std::int64_t span = spec.swizzle == Swizzle::none ? 256 * bits_of(spec.dtype) / 8 : span_of(spec.swizzle);
  const std::int64_t rank = 1 + below(5);
  for (std::int64_t d = 0; d < rank; ++d) {
    if (d == 0) {
      spec.dims.push_back(1 + below(4) * per_chunk * 4 + below(per_chunk * 8));
      // Half of the swizzled tiles have rows as wide as the span, as in kernels.
      spec.box.push_back(spec.swizzle != Swizzle::none && below(2) == 0 ? span * 8 / bits_of(spec.dtype)
                                                                        : per_chunk * (1 + below(span / kChunk)));
    } else {
      spec.dims.push_back(1 + below(d == 1 ? 40 : 8));
      spec.box.push_back(1 + below(d == 1 ? 24 : d == 2 ? 8 : 4));
    }
    spec.element_strides.push_back(below(4) == 0 ? 1 + below(8) : 1);
  }
  add_strides(spec);
  return spec;
}

/// A coordinate for which the box lies in the tensor, across one of its ends, or wholly outside.
std::int64_t RandomLoads::coordinate(const TensorMapSpec& spec, std::size_t dimension) {
  const std::int64_t extent = spec.dims[dimension];
  const std::int64_t box = spec.box[dimension];
  const std::int64_t kind = below(8);
  std::int64_t at = kind < 3        ? below(extent)
                    : kind < 5      ? -below(box + 2)
                    : kind < 7      ? extent - below(box + 2)
                    : below(2) == 0 ? -box - below(1000)
                                    : extent + below(1000);
  if (dimension > 0) return at;
  const std::int64_t per_chunk = 128 / bits_of(spec.dtype);
  return at >= 0 ? at / per_chunk * per_chunk : -((-at + per_chunk - 1) / per_chunk * per_chunk);
}

RandomLoad RandomLoads::next() {
  for (;;) {
    RandomLoad made{.spec = any_spec(), .load = {}};
    if (static_cast<std::int64_t>(made.spec.address) + tensor_bytes(made.spec) > memory_bytes_) continue;
    if (!keeps_rules(made.spec, kHopper)) continue;  // too large a tile
    made.load.shared_address = static_cast<std::uint32_t>(128 * below(16));
    if (made.load.shared_address + tile_layout(made.spec).footprint > shared_bytes_) continue;
    for (std::size_t d = 0; d < made.spec.dims.size(); ++d) made.load.coordinates.push_back(coordinate(made.spec, d));
    return made;
  }
}

}  // namespace tmaops::probe
