#include "tma/tile.hpp"

#include <cstring>

#include "core/entry.hpp"
#include "core/fail.hpp"
#include "tma/sizes.hpp"

namespace tmaops::tma {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

void require(const Report& report, ErrorCode code, const std::string& where) {
  if (report.valid()) return;
  const Finding& first = report.errors.front();
  fail(code, where, first.text, std::string(first.rule->text));
}

std::int64_t stride_of(const TensorMapSpec& spec, int dimension) {
  return dimension == 0 ? bits_of(spec.dtype) / 8 : spec.strides[at(dimension - 1)];
}

std::int64_t step_of(const TensorMapSpec& spec, int dimension) {
  return dimension == 0 || spec.element_strides.empty() ? 1 : spec.element_strides[at(dimension)];
}

}  // namespace

void require_valid(const TensorMapSpec& spec, const TileLoad& load) {
  require(check(spec, load), ErrorCode::bad_tile_load, "load at " + braces(load.coordinates));
}

TileLayout tile_layout(const TensorMapSpec& spec) {
  require(check(spec, 100), ErrorCode::bad_tensor_map, spec.text());
  const auto refuse = [&](const std::string& what) {
    fail(ErrorCode::tile_not_modelled, spec.text(), what, "a tiled map of a plain type without interleave");
  };
  if (spec.mode != Mode::tiled) refuse("im2col");
  if (spec.interleave != Interleave::none) refuse("interleave " + std::string(to_string(spec.interleave)));
  if (is_packed(spec.dtype)) refuse("type " + std::string(to_string(spec.dtype)));

  TileLayout layout;
  layout.rank = spec.rank();
  layout.rows = 1;
  for (int d = 0; d < layout.rank; ++d) {
    const std::int64_t step = step_of(spec, d);
    layout.loaded[at(d)] = (spec.box[at(d)] + step - 1) / step;
    if (d > 0) layout.rows *= layout.loaded[at(d)];
  }
  layout.element_bytes = bits_of(spec.dtype) / 8;
  layout.row_bytes = layout.loaded[0] * layout.element_bytes;
  layout.row_pitch = spec.swizzle == Swizzle::none ? layout.row_bytes : span_of(spec.swizzle);
  layout.transaction_bytes = layout.rows * layout.row_bytes;
  layout.footprint = ((layout.rows - 1) * layout.row_pitch + layout.row_bytes + 127) / 128 * 128;
  return layout;
}

std::int64_t transaction_bytes(const TensorMapSpec& spec) {
  return public_entry("tensor map", [&] {
    require(check(spec, 100), ErrorCode::bad_tensor_map, spec.text());
    // Of packed types the barrier counts what is copied, not the gaps behind it.
    if (spec.mode == Mode::im2col) return bytes_of(spec.dtype, spec.channels_per_pixel) * spec.pixels_per_column;
    std::int64_t elements = 1;
    for (int d = 0; d < spec.rank(); ++d) {
      const bool whole = spec.element_strides.empty() || (d == 0 && spec.interleave == Interleave::none);
      const std::int64_t step = whole ? 1 : spec.element_strides[at(d)];
      elements *= (spec.box[at(d)] + step - 1) / step;
    }
    return bytes_of(spec.dtype, elements);
  });
}

TileElement tile_element(const TensorMapSpec& spec, const TileLayout& layout, const TileLoad& load, std::int64_t i) {
  TileElement result;
  result.inside = true;
  std::int64_t row = 0;
  std::int64_t rows_below = 1;
  for (int d = 0; d < layout.rank; ++d) {
    const std::int64_t index = i % layout.loaded[at(d)];
    i /= layout.loaded[at(d)];
    const std::int64_t element = load.coordinates[at(d)] + index * step_of(spec, d);
    result.index[at(d)] = index;
    result.element[at(d)] = element;
    result.inside = result.inside && element >= 0 && element < spec.dims[at(d)];
    if (d > 0) {
      row += index * rows_below;
      rows_below *= layout.loaded[at(d)];
    }
  }
  if (result.inside)
    for (int d = 0; d < layout.rank; ++d) result.global_offset += result.element[at(d)] * stride_of(spec, d);
  const std::int64_t offset = row * layout.row_pitch + result.index[0] * layout.element_bytes;
  result.shared_address = swizzled(spec.swizzle, load.shared_address + static_cast<std::uint32_t>(offset));
  return result;
}

std::array<std::byte, 8> fill_bytes(Fill fill) {
  std::array<std::byte, 8> bytes{};
  if (fill == Fill::nan)
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = std::byte{i % 2 == 0 ? std::uint8_t{0xF7} : std::uint8_t{0x7F}};
  return bytes;
}

std::uint32_t converted(ElementType type, std::uint32_t bits) {
  if (type != ElementType::tf32 && type != ElementType::tf32_ftz) return bits;
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return 0x7FFFE000U;
  return (bits + 0xFFFU + ((bits >> 13) & 1U)) & 0xFFFFE000U;
}

void load_tile(const TensorMapSpec& spec, const TileLoad& load, std::span<const std::byte> global,
               std::span<std::byte> shared) {
  const TileLayout layout = tile_layout(spec);
  require_valid(spec, load);
  const auto too_small = [](std::string_view what, std::size_t got, std::int64_t needed) {
    fail(ErrorCode::shape_mismatch, "load_tile: " + std::string(what), std::to_string(got) + " bytes",
         std::to_string(needed) + " bytes or more");
  };
  if (static_cast<std::int64_t>(shared.size()) < layout.footprint) too_small("shared", shared.size(), layout.footprint);
  const std::array<std::byte, 8> fill = fill_bytes(spec.fill);
  const auto bytes = static_cast<std::size_t>(layout.element_bytes);
  const std::int64_t count = tile_size(layout);
  for (std::int64_t i = 0; i < count; ++i) {
    const TileElement element = tile_element(spec, layout, load, i);
    std::array<std::byte, 8> value = fill;
    if (element.inside) {
      if (element.global_offset + layout.element_bytes > static_cast<std::int64_t>(global.size()))
        too_small("global", global.size(), element.global_offset + layout.element_bytes);
      std::memcpy(value.data(), global.data() + element.global_offset, bytes);
      if (bytes == 4) {
        std::uint32_t word = 0;
        std::memcpy(&word, value.data(), 4);
        word = converted(spec.dtype, word);
        std::memcpy(value.data(), &word, 4);
      }
    }
    std::memcpy(shared.data() + (element.shared_address - load.shared_address), value.data(), bytes);
  }
}

}  // namespace tmaops::tma
