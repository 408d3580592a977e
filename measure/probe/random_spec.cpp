#include "probe/random_spec.hpp"

#include <algorithm>

#include "tma/sizes.hpp"

namespace tmaops::probe {
namespace {

using tma::ElementType;
using tma::Fill;
using tma::Interleave;
using tma::L2Promotion;
using tma::Mode;
using tma::packed_16;
using tma::rounded_up;
using tma::Swizzle;
using tma::TensorMapSpec;

constexpr std::int64_t k32 = std::int64_t{1} << 32;
constexpr std::int64_t k40 = std::int64_t{1} << 40;

}  // namespace

ElementType RandomSpecs::any_type() { return static_cast<ElementType>(below(options_.blackwell ? 16 : 13)); }

std::int64_t RandomSpecs::inner_row(const TensorMapSpec& spec, bool swizzled) {
  if (packed_16(spec.dtype)) return 128;
  const int bits = bits_of(spec.dtype);
  const int chunks = std::min(swizzled ? span_of(spec.swizzle) : 256, 256 * bits / 8) / 16;
  return (1 + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(chunks)))) * 128 / bits;
}

void RandomSpecs::fill_tiled(TensorMapSpec& spec) {
  spec.box.push_back(inner_row(spec, spec.swizzle != Swizzle::none && spec.interleave == Interleave::none));
  for (std::size_t i = 1; i < spec.dims.size(); ++i) spec.box.push_back(pick<std::int64_t>({1, 2, 3, 4, 7, 8, 16}));
}

void RandomSpecs::fill_im2col(TensorMapSpec& spec) {
  spec.channels_per_pixel = inner_row(spec, spec.swizzle != Swizzle::none);
  spec.pixels_per_column = pick<std::int64_t>({1, 8, 64, 128, 256, 1000});
  const std::size_t first = spec.interleave == Interleave::none ? 1 : 0;  // spatial dimension
  for (std::size_t i = 0; i + 2 < spec.dims.size(); ++i) {
    spec.dims[i + first] =
        std::max<std::int64_t>(spec.dims[i + first], is_packed(spec.dtype) && i + first == 0 ? 128 : 9);
    spec.lower_corner.push_back(-static_cast<std::int64_t>(below(4)));
    spec.upper_corner.push_back(-static_cast<std::int64_t>(below(4)));
  }
}

TensorMapSpec RandomSpecs::ordinary() {
  TensorMapSpec spec;
  spec.dtype = any_type();
  spec.mode = below(4) == 0 ? Mode::im2col : Mode::tiled;
  spec.address = options_.base_address + 1024 * below(4);
  spec.interleave = spec.dtype == ElementType::u6x16_align16
                        ? Interleave::none
                        : pick({Interleave::none, Interleave::none, Interleave::none, Interleave::none, Interleave::b16,
                                Interleave::b32});
  // u4x16_align16 cannot have the swizzle that interleave 32B asks for.
  if (packed_16(spec.dtype) && spec.interleave == Interleave::b32) spec.interleave = Interleave::none;
  const bool many = spec.mode == Mode::im2col || spec.interleave != Interleave::none;
  const std::size_t rank = many ? 3 + below(3) : 1 + below(5);
  if (spec.interleave == Interleave::b32)
    spec.swizzle = Swizzle::b32;
  else if (packed_16(spec.dtype))
    spec.swizzle = pick({Swizzle::none, Swizzle::b128, Swizzle::b128_atom32});
  else
    spec.swizzle = static_cast<Swizzle>(below(options_.blackwell ? 7 : 4));
  spec.l2_promotion = static_cast<L2Promotion>(below(4));
  spec.fill = is_floating(spec.dtype) && below(3) == 0 ? Fill::nan : Fill::zero;

  const std::int64_t unit = packed_16(spec.dtype) ? 128 : is_packed(spec.dtype) ? 2 : 1;
  spec.dims.push_back(unit * pick<std::int64_t>({1, 3, 8, 16, 32, 64, 100, 200, 256, 1000}));
  while (spec.dims.size() < rank) spec.dims.push_back(pick<std::int64_t>({1, 2, 5, 16, 20, 92, 160}));
  if (spec.mode == Mode::tiled)
    fill_tiled(spec);
  else
    fill_im2col(spec);

  const std::int64_t multiple = spec.interleave == Interleave::b32 || packed_16(spec.dtype) ? 32 : 16;
  std::int64_t stride = bytes_of(spec.dtype, spec.dims[0]);
  for (std::size_t i = 1; i < rank; ++i) {
    stride = rounded_up(stride, multiple) + (below(4) == 0 ? multiple * static_cast<std::int64_t>(below(4)) : 0);
    spec.strides.push_back(stride);
    stride *= spec.dims[i];
  }
  for (std::size_t i = 0; i < rank; ++i)
    spec.element_strides.push_back(below(4) == 0 ? 1 + static_cast<std::int64_t>(below(8)) : 1);
  return spec;
}

void RandomSpecs::move_tiled_to_edge(TensorMapSpec& spec) {
  switch (below(3)) {
    case 0:
      spec.box[index(spec.box)] = pick<std::int64_t>({0, 1, 2, 255, 256, 257});
      return;
    case 1: {  // around a multiple of 16 bytes
      const std::int64_t chunk = std::max(1, 128 / bits_of(spec.dtype));
      spec.box[0] = std::max<std::int64_t>(0, spec.box[0] + pick<std::int64_t>({-chunk, -1, 1, chunk}));
      return;
    }
    default:  // around the swizzle span
      if (spec.swizzle != Swizzle::none)
        spec.box[0] =
            span_of(spec.swizzle) * 8 / bits_of(spec.dtype) + pick<std::int64_t>({0, 1, 128 / bits_of(spec.dtype)});
  }
}

void RandomSpecs::move_im2col_to_edge(TensorMapSpec& spec) {
  const std::int64_t low = spec.rank() == 3 ? -32768 : spec.rank() == 4 ? -128 : -16;
  auto& corner = below(2) == 0 ? spec.lower_corner : spec.upper_corner;
  switch (below(5)) {
    case 0:
      spec.channels_per_pixel = pick<std::int64_t>({0, 1, 8, 127, 128, 255, 256, 257});
      return;
    case 1:
      spec.pixels_per_column = pick<std::int64_t>({0, 1, 1023, 1024, 1025});
      return;
    case 2:
      if (!corner.empty()) corner[index(corner)] = pick({low - 1, low, low + 1, -low - 2, -low - 1, -low});
      return;
    case 3: {  // an empty or nearly empty window
      if (corner.empty() || spec.lower_corner.size() != spec.upper_corner.size()) return;
      const std::size_t i = index(corner);
      const std::int64_t size = pick<std::int64_t>({-1, 0, 1});
      const std::int64_t pixels =
          std::min<std::int64_t>(spec.dims[i + (spec.interleave == Interleave::none ? 1 : 0)], 1 << 20);
      spec.upper_corner[i] = spec.lower_corner[i] + size - pixels;
      return;
    }
    default:
      spec.channels_per_pixel += pick<std::int64_t>({-1, 1, 128 / bits_of(spec.dtype)});
      spec.channels_per_pixel = std::max<std::int64_t>(0, spec.channels_per_pixel);
  }
}

void RandomSpecs::move_to_edge(TensorMapSpec& spec) {
  switch (below(11)) {
    case 0:
      spec.address += pick<std::uint64_t>({1, 8, 15, 16, 17, 31, 32, 64, 96});
      return;
    case 1:
      spec.dims[index(spec.dims)] = pick<std::int64_t>({0, 1, 2, 127, 128, k32 - 1, k32, k32 + 1});
      return;
    case 2:
      if (!spec.strides.empty())
        spec.strides[index(spec.strides)] =
            pick<std::int64_t>({0, 8, 16, 24, 32, 48, k40 - 32, k40 - 16, k40 - 1, k40, k40 + 32});
      return;
    case 3:
      if (!spec.strides.empty()) {
        std::int64_t& stride = spec.strides[index(spec.strides)];
        stride = std::max<std::int64_t>(0, stride + pick<std::int64_t>({-16, -8, -1, 1, 8, 16}));
      }
      return;
    case 4:
      spec.element_strides[index(spec.element_strides)] = pick<std::int64_t>({0, 1, 2, 7, 8, 9});
      return;
    case 5:
      spec.swizzle = static_cast<Swizzle>(below(options_.blackwell ? 7 : 4));
      return;
    case 6:
      spec.interleave = static_cast<Interleave>(below(3));
      return;
    case 7:
      spec.fill = static_cast<Fill>(below(2));
      return;
    case 8:
      spec.dtype = any_type();
      return;
    default:
      if (spec.mode == Mode::tiled)
        move_tiled_to_edge(spec);
      else
        move_im2col_to_edge(spec);
  }
}

TensorMapSpec RandomSpecs::near_edge() {
  TensorMapSpec spec = ordinary();
  const std::uint64_t moves = pick<std::uint64_t>({0, 1, 1, 1, 2, 3});
  for (std::uint64_t i = 0; i < moves; ++i) move_to_edge(spec);
  return spec;
}

}  // namespace tmaops::probe
