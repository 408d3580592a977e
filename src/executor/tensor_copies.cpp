// Boxes of a tensor (PTX ISA "cp.async.bulk.tensor"). Layout, swizzle, fill and conversion are those of src/tma, which
// `tmaops probe` compares with the hardware. A load clips a row element by element, a store in steps of 16 bytes
// (docs/findings/gemm.md, G10).
#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

#include "executor/copies.hpp"
#include "executor/im2col.hpp"
#include "executor/tensor_map.hpp"
#include "tma/im2col.hpp"
#include "tma/tile.hpp"

namespace tmaops::executor {
namespace {

struct Tensor {
  tma::TensorMapSpec spec;
  tma::TileLayout layout;
};

/// Where the box starts, as many as the rank; from kTap on the offset of an im2col load.
using Coordinates = std::array<std::int64_t, 8>;
constexpr std::size_t kTap = 5;

std::string text_of(const Coordinates& at, int rank) {
  std::string text = "{";
  for (int i = 0; i < rank; ++i) text += (i > 0 ? ", " : "") + std::to_string(at[static_cast<std::size_t>(i)]);
  return text + "}";
}

/// Each pixel is a row.
tma::TileLayout layout_of(const tma::TensorMapSpec& spec) {
  if (spec.mode == tma::Mode::tiled) return tma::tile_layout(spec);
  tma::TileLayout layout{.rank = spec.rank(), .element_bytes = tma::bits_of(spec.dtype) / 8};
  layout.loaded[0] = spec.channels_per_pixel;
  layout.row_bytes = layout.row_pitch = layout.loaded[0] * layout.element_bytes;
  layout.rows = spec.pixels_per_column;
  layout.transaction_bytes = layout.rows * layout.row_bytes;
  return layout;
}

/// Reading a map takes longer than a small copy, so known ones are kept.
const Tensor& tensor_of(const EncodedMap& map) {
  static std::map<std::string, Tensor, std::less<>> known;
  const std::string_view bytes(reinterpret_cast<const char*>(&map), sizeof(map));
  if (const auto found = known.find(bytes); found != known.end()) return found->second;
  Tensor tensor{.spec = map.spec(), .layout = {}};
  tensor.layout = layout_of(tensor.spec);
  return known.emplace(bytes, std::move(tensor)).first->second;
}

const Tensor& checked_tensor(const void* pointer, int rank, const char* who, const void* place,
                             tma::Mode mode = tma::Mode::tiled) {
  const auto& map = *static_cast<const EncodedMap*>(pointer);
  // CUDA C++ Programming Guide, "Encoding a tensor map on device"; the device layer has no such fence.
  if (is_global(pointer))
    report(Rule::map_not_acquired,
           std::string(who) +
               " through a tensor map in global memory: without fence.proxy.tensormap it may be an older one. Pass it "
               "as a __grid_constant__ parameter",
           place);
  if (!map.is_of(mode))
    stop(Rule::bad_tensor_map,
         std::string(who) + " through " +
             (map.magic == EncodedMap::kMagic ? "a map of another mode" : "128 bytes that are no encoded map") +
             ", needs an encoded one of mode " + std::string(tma::to_string(mode)),
         place);
  if (map.rank != rank)
    stop(Rule::bad_tensor_map,
         std::string(who) + " with " + std::to_string(rank) + " coordinates through a map of rank " +
             std::to_string(map.rank),
         place);
  return tensor_of(map);
}

/// The rows of a box, from row to row: where they lie in shared memory and in the tensor.
template <class Visit>
void for_each_row(const Tensor& tensor, const Coordinates& at, const Visit& visit) {
  const auto& [spec, layout] = tensor;
  if (spec.mode == tma::Mode::im2col) {
    const auto pixels = tma::im2col_pixels(spec, {at.begin(), at.begin() + layout.rank}, {at.begin() + kTap, at.end()});
    for (std::size_t row = 0; row < pixels.size(); ++row) {
      std::int64_t offset = pixels[row].image * spec.strides.back();
      for (std::size_t axis = 0; axis + 1 < spec.strides.size(); ++axis)
        offset += pixels[row].at[axis] * spec.strides[axis];
      visit(static_cast<std::int64_t>(row), offset, pixels[row].inside);
    }
    return;
  }
  for (std::int64_t row = 0; row < layout.rows; ++row) {
    std::int64_t rest = row;
    std::int64_t offset = 0;
    bool inside = true;
    for (std::size_t d = 1; d < static_cast<std::size_t>(layout.rank); ++d) {
      const std::int64_t step = spec.element_strides.empty() ? 1 : spec.element_strides[d];
      const std::int64_t element = at[d] + rest % layout.loaded[d] * step;
      rest /= layout.loaded[d];
      inside = inside && element >= 0 && element < spec.dims[d];
      offset += element * spec.strides[d - 1];
    }
    visit(row, offset, inside);
  }
}

std::uint32_t shared_byte(const Tensor& tensor, std::uint32_t box, std::int64_t row, std::int64_t byte) {
  return tma::swizzled(tensor.spec.swizzle, box + static_cast<std::uint32_t>(row * tensor.layout.row_pitch + byte));
}

/// The bytes of shared memory that a box takes.
std::vector<std::pair<std::uint32_t, std::uint32_t>> box_bytes(const Tensor& tensor, std::uint32_t box) {
  const tma::TileLayout& layout = tensor.layout;
  if (layout.row_pitch == layout.row_bytes) return {{box, static_cast<std::uint32_t>(layout.rows * layout.row_bytes)}};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> chunks;
  for (std::int64_t row = 0; row < layout.rows; ++row)
    for (std::int64_t byte = 0; byte < layout.row_bytes; byte += 16)
      chunks.emplace_back(shared_byte(tensor, box, row, byte), 16);
  return chunks;
}

/// Of those the bytes that a store takes, `count` of each row that lies in the tensor.
std::vector<std::pair<std::uint32_t, std::uint32_t>> stored_box_bytes(const Tensor& tensor, const Coordinates& at,
                                                                      std::uint32_t box, std::int64_t count) {
  bool whole = count == tensor.layout.row_bytes;
  for_each_row(tensor, at, [&](std::int64_t, std::int64_t, bool inside) { whole = whole && inside; });
  if (whole) return box_bytes(tensor, box);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> chunks;
  for_each_row(tensor, at, [&](std::int64_t row, std::int64_t, bool inside) {
    for (std::int64_t byte = 0; inside && byte < count; byte += 16)
      chunks.emplace_back(shared_byte(tensor, box, row, byte), 16);
  });
  return chunks;
}

const unsigned char* address_of(const Tensor& tensor) {
  return reinterpret_cast<const unsigned char*>(static_cast<std::uintptr_t>(tensor.spec.address));
}

struct TensorLoad : Operation {
  const Tensor& tensor;
  Coordinates at;
  std::uint32_t to;
  TensorLoad(const Tensor& map, const Coordinates& coordinates, std::uint32_t destination)
      : tensor(map), at(coordinates), to(destination) {}
  std::string words() const override { return "the tensor load at " + text_of(at, tensor.layout.rank); }
  void write() override {
    const auto& [spec, layout] = tensor;
    const std::int64_t bytes = layout.element_bytes;
    const auto fill = tma::fill_bytes(spec.fill);
    const bool as_it_is =
        bytes != 4 || (spec.dtype != tma::ElementType::tf32 && spec.dtype != tma::ElementType::tf32_ftz);
    for_each_row(tensor, at, [&](std::int64_t row, std::int64_t offset, bool inside) {
      for (std::int64_t x = 0; x < layout.loaded[0]; ++x) {
        unsigned char* const destination = host_of(*target, shared_byte(tensor, to, row, x * bytes));
        const std::int64_t element = at[0] + x;
        if (!inside || element < 0 || element >= spec.dims[0]) {
          std::memcpy(destination, fill.data(), static_cast<std::size_t>(bytes));
          continue;
        }
        std::memcpy(destination, address_of(tensor) + offset + element * bytes, static_cast<std::size_t>(bytes));
        if (as_it_is) continue;
        std::uint32_t word = 0;
        std::memcpy(&word, destination, 4);
        word = tma::converted(spec.dtype, word);
        std::memcpy(destination, &word, 4);
      }
    });
  }
};

/// Bytes of a row that a store writes: those inside of the tensor, rounded up to 16.
std::int64_t stored_bytes(const Tensor& tensor, std::int64_t first) {
  const std::int64_t bytes = tensor.layout.element_bytes;
  const std::int64_t inside = std::min(tensor.layout.row_bytes, (tensor.spec.dims[0] - first) * bytes);
  return std::min(tensor.layout.row_bytes, std::max<std::int64_t>(0, (inside + 15) / 16 * 16));
}

struct TensorStore : Operation {
  const Tensor& tensor;
  Coordinates at;
  std::uint32_t from;
  std::vector<unsigned char> staged;
  TensorStore(const Tensor& map, const Coordinates& coordinates, std::uint32_t origin)
      : tensor(map),
        at(coordinates),
        from(origin),
        staged(static_cast<std::size_t>(map.layout.rows * map.layout.row_bytes)) {}
  std::string words() const override { return "the tensor store at " + text_of(at, tensor.layout.rank); }
  void read() override {
    const tma::TileLayout& layout = tensor.layout;
    for (std::int64_t row = 0; row < layout.rows; ++row)
      for (std::int64_t byte = 0; byte < layout.row_bytes; byte += 16)
        std::memcpy(staged.data() + row * layout.row_bytes + byte,
                    host_of(*source, shared_byte(tensor, from, row, byte)), 16);
  }
  void write() override {
    const std::int64_t count = stored_bytes(tensor, at[0]);
    for_each_row(tensor, at, [&](std::int64_t row, std::int64_t offset, bool inside) {
      if (!inside || count == 0) return;
      auto* const to = const_cast<unsigned char*>(address_of(tensor)) + offset + at[0] * tensor.layout.element_bytes;
      std::memcpy(to, staged.data() + row * tensor.layout.row_bytes, static_cast<std::size_t>(count));
    });
  }
};

/// What the part of a box that lies in the tensor takes of global memory.
struct GlobalRows {
  std::int64_t first, bytes;  // of each row: an element, and how much from there
};

void use_tensor_bytes(const Operation& operation, const Tensor& tensor, const Coordinates& at, const GlobalRows& rows,
                      bool writes, const char* who) {
  if (rows.bytes <= 0) return;
  for_each_row(tensor, at, [&](std::int64_t, std::int64_t offset, bool inside) {
    if (!inside) return;
    const unsigned char* const from = address_of(tensor) + offset + rows.first * tensor.layout.element_bytes;
    const auto bytes = static_cast<std::size_t>(rows.bytes);
    if (const std::string wrong = outside_global(from, bytes); !wrong.empty())
      stop(Rule::outside_global, std::string(who) + " takes a row of the tensor that lies " + wrong, operation.place);
    use_global(operation, from, bytes, writes, who);
  });
}

Coordinates checked_coordinates(const Tensor& tensor, const std::int32_t* at, const char* who, const void* place) {
  Coordinates result{};
  std::copy_n(at, tensor.layout.rank, result.begin());
  if (result[0] * tensor.layout.element_bytes % 16 != 0)
    stop(Rule::misaligned,
         std::string(who) + " at " + text_of(result, tensor.layout.rank) +
             ": the first coordinate is no multiple of 16 bytes, which is an illegal instruction",
         place);
  return result;
}

constexpr const char* kLoads = "a tensor load";

void load(void* to, const Tensor& tensor, const Coordinates& coordinates, void* barrier, unsigned blocks,
          const void* place) {
  const Place destination = shared_operand(to, 128, kLoads, place);
  const Place signal = shared_operand(barrier, 8, kLoads, place);
  const std::int64_t first = std::max<std::int64_t>(0, coordinates[0]);
  const std::int64_t last = std::min(tensor.spec.dims[0], coordinates[0] + tensor.layout.loaded[0]);
  const unsigned receivers = blocks & ~kMulticast;
  if (blocks != 0 && (receivers == 0 || receivers >> launch->cluster != 0))
    stop(Rule::collective,
         "a multicast to " + std::string(receivers == 0 ? "none" : "more") + " of the " +
             std::to_string(launch->cluster) + " blocks of the cluster",
         place);
  for (Block* block : launch->blocks) {
    if (blocks == 0 ? block != destination.block : (blocks >> block->rank & 1u) == 0) continue;
    if (block->live == 0)
      stop(Rule::ends_too_early, "a multicast to block " + std::to_string(block->rank) + ", which has ended", place);
    check_for_copy(*block, signal.address, kLoads, place);
    const auto operation = std::make_shared<TensorLoad>(tensor, coordinates, destination.address);
    start_operation(*operation, place);
    use_tensor_bytes(*operation, tensor, coordinates, {first, (last - first) * tensor.layout.element_bytes}, false,
                     kLoads);
    operation->target = block;
    operation->swizzle = static_cast<std::uint8_t>(1 + static_cast<int>(tensor.spec.swizzle));
    operation->writes = box_bytes(tensor, destination.address);
    operation->barrier = signal.address;
    operation->barrier_bytes = static_cast<std::uint32_t>(tensor.layout.transaction_bytes);
    begin_write(*operation, kLoads);
    fly(operation);
  }
}

}  // namespace

void tensor_load(void* to, const void* map, const std::int32_t* at, int rank, void* barrier, unsigned blocks) {
  const Entry entry;
  const void* const place = self->place = TMAOPS_PLACE;
  const Tensor& tensor = checked_tensor(map, rank, kLoads, place);
  load(to, tensor, checked_coordinates(tensor, at, kLoads, place), barrier, blocks, place);
}

void im2col_load(void* to, const void* map, const std::int32_t* at, const std::uint16_t* offset, int rank,
                 void* barrier) {
  const Entry entry;
  const void* const place = self->place = TMAOPS_PLACE;
  const Tensor& tensor = checked_tensor(map, rank, kLoads, place, tma::Mode::im2col);
  if (tensor.spec.interleave != tma::Interleave::none || tensor.spec.swizzle != tma::Swizzle::none)
    stop(Rule::bad_tensor_map, "an im2col load with interleave or swizzle, which the executor does not model", place);
  Coordinates coordinates = checked_coordinates(tensor, at, kLoads, place);
  std::copy_n(offset, rank - 2, coordinates.begin() + kTap);
  load(to, tensor, coordinates, barrier, 0, place);
}

void tensor_store(const void* map, const std::int32_t* at, int rank, const void* from) {
  const Entry entry;
  static constexpr const char* kWho = "a tensor store";
  const void* const place = self->place = TMAOPS_PLACE;
  const Tensor& tensor = checked_tensor(map, rank, kWho, place);
  const Coordinates coordinates = checked_coordinates(tensor, at, kWho, place);
  const Place origin = shared_operand(from, 128, kWho, place);
  if (std::ranges::any_of(coordinates, [](std::int64_t one) { return one < 0; }))
    stop(Rule::outside_global, "a tensor store at " + text_of(coordinates, rank) + ": no coordinate may be negative",
         place);
  const std::int64_t count = stored_bytes(tensor, coordinates[0]);
  const std::int64_t beyond = count - (tensor.spec.dims[0] - coordinates[0]) * tensor.layout.element_bytes;
  if (count > 0 && beyond > 0)
    report(Rule::store_beyond_tensor,
           "a tensor store at " + text_of(coordinates, rank) + " writes " + std::to_string(beyond) +
               " bytes beyond the " + std::to_string(tensor.spec.dims[0]) + " elements of each row",
           place);
  const auto operation = std::make_shared<TensorStore>(tensor, coordinates, origin.address);
  start_operation(*operation, place);
  use_tensor_bytes(*operation, tensor, coordinates, {coordinates[0], count}, true, kWho);
  operation->writes_when_read = false;
  operation->source = origin.block;
  operation->reads = stored_box_bytes(tensor, coordinates, origin.address, count);
  begin_read(*operation, kWho);
  issue_store(operation);
}

void tensor_prefetch(const void* map, int rank) {
  const Entry entry;
  checked_tensor(map, rank, "a tensor prefetch", TMAOPS_PLACE);
}

}  // namespace tmaops::executor
