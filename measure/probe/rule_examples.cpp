#include "probe/rule_examples.hpp"

namespace tmaops::probe {
namespace {

using tma::dense_strides;
using tma::ElementType;
using tma::Fill;
using tma::Interleave;
using tma::Mode;
using tma::RuleId;
using tma::Swizzle;
using tma::TensorMapSpec;
using tma::tiled_spec;

TensorMapSpec plain() { return tiled_spec(ElementType::f16, {64, 32, 8}, {64, 2, 2}); }

TensorMapSpec im2col() {
  TensorMapSpec spec;
  spec.mode = Mode::im2col;
  spec.dtype = ElementType::f16;
  spec.dims = {64, 32, 16, 4};
  spec.strides = dense_strides(spec.dtype, spec.dims);
  spec.lower_corner = {-1, -1};
  spec.upper_corner = {-1, -1};
  spec.channels_per_pixel = 64;
  spec.pixels_per_column = 32;
  return spec;
}

/// Makes changes, each a field and its value or a function:
/// with(plain(), &TensorMapSpec::address, 0x1010, [](TensorMapSpec& spec) { spec.box[0] = 24; }).
TensorMapSpec with(TensorMapSpec spec) { return spec; }
template <class Field, class Value, class... Rest>
TensorMapSpec with(TensorMapSpec spec, Field TensorMapSpec::* field, Value value, const Rest&... rest) {
  spec.*field = static_cast<Field>(value);
  return with(std::move(spec), rest...);
}
template <class Change, class... Rest>
  requires std::is_class_v<Change>
TensorMapSpec with(TensorMapSpec spec, const Change& change, const Rest&... rest) {
  change(spec);
  return with(std::move(spec), rest...);
}

/// Every call adds an example, made by changes to the base specification.
class Examples {
 public:
  Examples(std::vector<RuleExample>& all, TensorMapSpec base) : all_(all), base_(std::move(base)) {}
  template <class... Change>
  void breaking(RuleId id, const Change&... change) {
    all_.push_back({id, true, with(base_, change...)});
  }
  template <class... Change>
  void keeping(RuleId id, const Change&... change) {
    all_.push_back({id, false, with(base_, change...)});
  }
  /// The compute capability for which the last example holds.
  void only_for(int compute_capability) { all_.back().compute_capability = compute_capability; }

 private:
  std::vector<RuleExample>& all_;
  TensorMapSpec base_;
};

void shape_examples(std::vector<RuleExample>& all) {
  using Spec = TensorMapSpec;
  Examples e(all, plain());
  Examples window(all, im2col());
  e.breaking(RuleId::list_lengths, [](Spec& s) { s.strides = {2, 128, 4096}; });
  e.breaking(RuleId::list_lengths, [](Spec& s) { s.box = {64, 2}; });
  e.breaking(RuleId::list_lengths, [](Spec& s) { s.element_strides = {1, 1}; });
  window.breaking(RuleId::list_lengths, [](Spec& s) { s.lower_corner = {-1}; });
  window.breaking(RuleId::list_lengths, [](Spec& s) { s.upper_corner = {-1, -1, -1}; });
  e.keeping(RuleId::list_lengths, [](Spec& s) { s.element_strides = {1, 1, 1}; });
  e.breaking(RuleId::rank, [](Spec& s) { s = tiled_spec(ElementType::f16, {}, {}); });
  e.breaking(RuleId::rank, [](Spec& s) { s = tiled_spec(ElementType::f16, {8, 1, 1, 1, 1, 1}, {8, 1, 1, 1, 1, 1}); });
  e.keeping(RuleId::rank, [](Spec& s) { s = tiled_spec(ElementType::f16, {8}, {8}); });
  e.keeping(RuleId::rank, [](Spec& s) { s = tiled_spec(ElementType::f16, {8, 1, 1, 1, 1}, {8, 1, 1, 1, 1}); });
  window.breaking(RuleId::rank_im2col, [](Spec& s) {
    s.dims = {64, 32};
    s.strides = {128};
    s.lower_corner = s.upper_corner = {};
  });
  window.keeping(RuleId::rank_im2col, [](Spec& s) {
    s.dims = {64, 32, 16};
    s.strides = {128, 4096};
    s.lower_corner = s.upper_corner = {0};
  });
  e.breaking(RuleId::rank_interleaved, [](Spec& s) {
    s = tiled_spec(ElementType::f16, {64, 32}, {8, 2});
    s.interleave = Interleave::b16;
  });
  e.keeping(RuleId::rank_interleaved, [](Spec& s) { s.interleave = Interleave::b16; });
  e.breaking(RuleId::architecture, [](Spec& s) { s.swizzle = Swizzle::b128_atom32; });
  e.only_for(90);
  e.breaking(RuleId::architecture, [](Spec& s) { s.dtype = ElementType::u4x16_align8; });
  e.only_for(90);
  e.keeping(RuleId::architecture, [](Spec& s) { s.swizzle = Swizzle::b128_atom32; });
  e.keeping(RuleId::architecture, [](Spec& s) { s.swizzle = Swizzle::b128; });
  e.only_for(90);
  e.breaking(RuleId::dim_range, [](Spec& s) { s.dims[1] = 0; });
  e.breaking(RuleId::dim_range, [](Spec& s) { s.dims[1] = (std::int64_t{1} << 32) + 1; });
  e.keeping(RuleId::dim_range, [](Spec& s) { s.dims[1] = std::int64_t{1} << 32; });
  e.keeping(RuleId::dim_range, [](Spec& s) { s.dims[1] = 1; });
  const auto packed = [](ElementType type, std::int64_t dim, std::int64_t box) {
    return [=](Spec& s) { s = tiled_spec(type, {dim, 32}, {box, 2}); };
  };
  e.breaking(RuleId::dim_packed_128, packed(ElementType::u4x16_align16, 192, 128));
  e.breaking(RuleId::dim_packed_128, packed(ElementType::u6x16_align16, 129, 128));
  e.keeping(RuleId::dim_packed_128, packed(ElementType::u6x16_align16, 128, 128));
  e.keeping(RuleId::dim_packed_128, packed(ElementType::u4x16_align8, 192, 64));
  e.breaking(RuleId::dim_packed_even, packed(ElementType::u4x16_align8, 65, 32));
  e.keeping(RuleId::dim_packed_even, [](Spec& s) { s = tiled_spec(ElementType::u4x16_align8, {66}, {32}); });
}

void memory_examples(std::vector<RuleExample>& all) {
  using Spec = TensorMapSpec;
  Examples e(all, plain());
  e.breaking(RuleId::address_16, [](Spec& s) { s.address = 0x1008; });
  e.keeping(RuleId::address_16, [](Spec& s) { s.address = 0x1010; });
  e.breaking(RuleId::address_32, &Spec::interleave, Interleave::b32, &Spec::swizzle, Swizzle::b32, &Spec::address,
             0x1010);
  e.breaking(RuleId::address_32, [](Spec& s) {
    s = tiled_spec(ElementType::u6x16_align16, {128, 2}, {128, 2});
    s.address = 0x1010;
  });
  e.keeping(RuleId::address_32, &Spec::interleave, Interleave::b32, &Spec::swizzle, Swizzle::b32, &Spec::address,
            0x1020);
  e.keeping(RuleId::address_32, &Spec::interleave, Interleave::b16, &Spec::address, 0x1010);
  e.breaking(RuleId::address_range, [](Spec& s) { s.address = std::uint64_t{1} << 57; });
  e.keeping(RuleId::address_range, [](Spec& s) { s.address = (std::uint64_t{1} << 57) - 16; });
  e.breaking(RuleId::address_128, &Spec::swizzle, Swizzle::b128, &Spec::address, 0x1040);
  e.keeping(RuleId::address_128, &Spec::swizzle, Swizzle::b128, &Spec::address, 0x1080);
  e.keeping(RuleId::address_128, [](Spec& s) { s.address = 0x1040; });
  e.breaking(RuleId::store_inner_16, [](Spec& s) { s.dims[0] = 60; });
  e.breaking(RuleId::store_inner_16, [](Spec& s) {
    s = tiled_spec(ElementType::u8, {466, 32}, {128, 2});
    s.strides = {512};
  });
  e.keeping(RuleId::store_inner_16, [](Spec& s) { s.dims[0] = 56; });
  e.breaking(RuleId::stride_16, [](Spec& s) { s.strides[0] = 136; });
  e.keeping(RuleId::stride_16, [](Spec& s) { s.strides[0] = 144; });
  e.breaking(RuleId::stride_32, &Spec::interleave, Interleave::b32, &Spec::swizzle, Swizzle::b32,
             [](Spec& s) { s.strides[1] = 4112; });
  e.keeping(RuleId::stride_32, &Spec::interleave, Interleave::b32, &Spec::swizzle, Swizzle::b32,
            [](Spec& s) { s.strides[1] = 4128; });
  e.keeping(RuleId::stride_32, &Spec::interleave, Interleave::b16, [](Spec& s) { s.strides[1] = 4112; });
  e.breaking(RuleId::stride_range, [](Spec& s) { s.strides[1] = std::int64_t{1} << 40; });
  e.breaking(RuleId::stride_range, [](Spec& s) { s.strides[0] = -128; });
  e.keeping(RuleId::stride_range, [](Spec& s) { s.strides[1] = (std::int64_t{1} << 40) - 16; });
  e.keeping(RuleId::stride_range, [](Spec& s) { s.strides[1] = 0; });
  e.breaking(RuleId::stride_overlap, [](Spec& s) { s.strides[0] = 112; });
  e.breaking(RuleId::stride_overlap, [](Spec& s) { s.strides[1] = 31 * 128 + 112; });
  e.keeping(RuleId::stride_overlap, [](Spec& s) { s.strides[1] = 31 * 128 + 128; });
  e.breaking(RuleId::stride_overlap, [](Spec& s) { s.strides = {128 * 8, 112}; });
  e.keeping(RuleId::stride_overlap, [](Spec& s) { s.strides = {128 * 8, 128}; });  // eight heads inside a row of tokens
  e.keeping(RuleId::stride_overlap, [](Spec& s) {                                  // never stepped
    s.dims[1] = 1;
    s.strides[0] = 0;
  });
}

void box_examples(std::vector<RuleExample>& all) {
  using Spec = TensorMapSpec;
  Examples e(all, plain());
  Examples window(all, im2col());
  e.breaking(RuleId::box_range, [](Spec& s) { s.box[1] = 257; });
  e.breaking(RuleId::box_range, [](Spec& s) { s.box[2] = 0; });
  e.keeping(RuleId::box_range, [](Spec& s) { s.box[1] = 256; });
  e.breaking(RuleId::box_inner_16, [](Spec& s) { s.box[0] = 7; });
  e.breaking(RuleId::box_inner_16, &Spec::interleave, Interleave::b16, [](Spec& s) { s.box[0] = 12; });
  e.keeping(RuleId::box_inner_16, [](Spec& s) { s.box[0] = 8; });
  e.breaking(RuleId::box_packed_128, [](Spec& s) { s = tiled_spec(ElementType::u4x16_align16, {128, 2}, {64, 2}); });
  e.keeping(RuleId::box_packed_128, [](Spec& s) { s = tiled_spec(ElementType::u4x16_align16, {128, 2}, {128, 2}); });
  e.keeping(RuleId::box_packed_128, [](Spec& s) { s = tiled_spec(ElementType::u4x16_align8, {128, 2}, {64, 2}); });
  e.breaking(RuleId::box_exceeds_tensor, [](Spec& s) { s.box[2] = 9; });
  e.keeping(RuleId::box_exceeds_tensor, [](Spec& s) { s.box[2] = 8; });
  e.breaking(RuleId::tile_bytes, [](Spec& s) { s = tiled_spec(ElementType::f32, {512, 512}, {256, 229}); });
  e.keeping(RuleId::tile_bytes, [](Spec& s) { s = tiled_spec(ElementType::f32, {512, 512}, {256, 228}); });
  e.keeping(RuleId::tile_bytes, [](Spec& s) {
    s = tiled_spec(ElementType::f32, {512, 512}, {256, 256});
    s.element_strides = {1, 2};
  });
  window.breaking(RuleId::tile_bytes, &Spec::channels_per_pixel, 256, &Spec::pixels_per_column, 457);
  window.keeping(RuleId::tile_bytes, &Spec::channels_per_pixel, 256, &Spec::pixels_per_column, 456);
  e.breaking(RuleId::element_stride_range, [](Spec& s) { s.element_strides = {1, 9, 1}; });
  e.breaking(RuleId::element_stride_range, [](Spec& s) { s.element_strides = {0, 1, 1}; });
  e.keeping(RuleId::element_stride_range, [](Spec& s) { s.element_strides = {8, 8, 1}; });
  e.breaking(RuleId::swizzle_span, &Spec::swizzle, Swizzle::b32, [](Spec& s) { s.box[0] = 24; });
  e.breaking(RuleId::swizzle_span, &Spec::swizzle, Swizzle::b64, [](Spec& s) { s.box[0] = 40; });
  window.breaking(RuleId::swizzle_span, &Spec::channels_per_pixel, 72, &Spec::swizzle, Swizzle::b128);
  e.keeping(RuleId::swizzle_span, [](Spec& s) { s.swizzle = Swizzle::b128; });
  window.keeping(RuleId::swizzle_span, [](Spec& s) { s.swizzle = Swizzle::b128; });
  e.breaking(RuleId::swizzle_narrow, &Spec::swizzle, Swizzle::b128, [](Spec& s) { s.box[0] = 56; });
  e.keeping(RuleId::swizzle_narrow, [](Spec& s) { s.swizzle = Swizzle::b128; });
}

void mode_examples(std::vector<RuleExample>& all) {
  using Spec = TensorMapSpec;
  Examples e(all, plain());
  e.breaking(RuleId::interleave_32_swizzle, [](Spec& s) { s.interleave = Interleave::b32; });
  e.keeping(RuleId::interleave_32_swizzle, &Spec::interleave, Interleave::b32, &Spec::swizzle, Swizzle::b32);
  e.keeping(RuleId::interleave_32_swizzle, [](Spec& s) { s.interleave = Interleave::b16; });
  const auto packed = [](ElementType type, Swizzle swizzle, Interleave interleave = Interleave::none) {
    return [=](Spec& s) {
      s = tiled_spec(type, {128, 4, 4}, {128, 2, 2});
      s.swizzle = swizzle;
      s.interleave = interleave;
    };
  };
  e.breaking(RuleId::packed6_interleave, packed(ElementType::u6x16_align16, Swizzle::none, Interleave::b16));
  e.keeping(RuleId::packed6_interleave, packed(ElementType::u6x16_align16, Swizzle::none));
  e.breaking(RuleId::packed6_swizzle, packed(ElementType::u6x16_align16, Swizzle::b64));
  e.keeping(RuleId::packed6_swizzle, packed(ElementType::u6x16_align16, Swizzle::b128_atom64));
  e.breaking(RuleId::packed4_swizzle, packed(ElementType::u4x16_align16, Swizzle::b128_atom64));
  e.keeping(RuleId::packed4_swizzle, packed(ElementType::u4x16_align16, Swizzle::b128_atom32));
  e.breaking(RuleId::fill_nan, &Spec::dtype, ElementType::u16, &Spec::fill, Fill::nan);
  e.keeping(RuleId::fill_nan, [](Spec& s) { s.fill = Fill::nan; });
}

void im2col_examples(std::vector<RuleExample>& all) {
  using Spec = TensorMapSpec;
  Examples window(all, im2col());
  window.breaking(RuleId::corner_range, [](Spec& s) { s.lower_corner[0] = -129; });
  window.breaking(RuleId::corner_range, [](Spec& s) { s.upper_corner[1] = 128; });
  window.keeping(RuleId::corner_range, [](Spec& s) { s.lower_corner = {-128, -1}; });
  window.keeping(RuleId::corner_range, [](Spec& s) { s.upper_corner = {-1, 127}; });
  window.breaking(RuleId::corner_range, [](Spec& s) {
    s.dims = {64, 32, 16, 8, 4};
    s.strides = dense_strides(s.dtype, s.dims);
    s.lower_corner = {0, 0, -17};
    s.upper_corner = {0, 0, 0};
  });
  window.breaking(RuleId::corner_box, [](Spec& s) { s.upper_corner[0] = -33; });
  window.keeping(RuleId::corner_box, [](Spec& s) { s.upper_corner[0] = -32; });
  window.breaking(RuleId::channels_range, [](Spec& s) { s.channels_per_pixel = 257; });
  window.breaking(RuleId::channels_range, [](Spec& s) { s.channels_per_pixel = 0; });
  window.keeping(RuleId::channels_range, [](Spec& s) { s.channels_per_pixel = 256; });
  const auto packed = [](std::int64_t channels) {
    return [=](Spec& s) {
      s.dtype = ElementType::u4x16_align16;
      s.dims[0] = 128;
      s.channels_per_pixel = channels;
    };
  };
  window.breaking(RuleId::channels_packed_128, packed(64));
  window.keeping(RuleId::channels_packed_128, packed(128));
  window.breaking(RuleId::channels_inner_16, [](Spec& s) { s.channels_per_pixel = 12; });
  window.keeping(RuleId::channels_inner_16, [](Spec& s) { s.channels_per_pixel = 8; });
  window.breaking(RuleId::pixels_range, [](Spec& s) { s.pixels_per_column = 1025; });
  window.breaking(RuleId::pixels_range, [](Spec& s) { s.pixels_per_column = 0; });
  window.keeping(RuleId::pixels_range, [](Spec& s) { s.pixels_per_column = 1024; });
}

void load_examples(std::vector<RuleExample>& all) {
  const TensorMapSpec swizzled_map = with(plain(), &TensorMapSpec::swizzle, Swizzle::b128);
  all.push_back({RuleId::load_coordinates, true, plain(), {{0, 0}, 0}});
  all.push_back({RuleId::load_coordinates, true, plain(), {{0, std::int64_t{1} << 31, 0}, 0}});
  all.push_back(
      {RuleId::load_coordinates, false, plain(), {{0, (std::int64_t{1} << 31) - 1, -(std::int64_t{1} << 31)}, 0}});
  all.push_back({RuleId::load_inner_16, true, plain(), {{4, 0, 0}, 0}});
  all.push_back({RuleId::load_inner_16, true, plain(), {{-1, 0, 0}, 0}});
  all.push_back({RuleId::load_inner_16, false, plain(), {{-8, 3, 1}, 0}});
  all.push_back({RuleId::load_destination_128, true, plain(), {{0, 0, 0}, 64}});
  all.push_back({RuleId::load_destination_128, false, plain(), {{0, 0, 0}, 128}});
  all.push_back({RuleId::load_swizzle_phase, true, swizzled_map, {{0, 0, 0}, 512}});
  all.push_back({RuleId::load_swizzle_phase, false, swizzled_map, {{0, 0, 0}, 2048}});
}

/// What can be wrong with a map of one dimension (docs/tma.md, "One dimension").
void one_dimension_examples(std::vector<RuleExample>& all) {
  const auto map = [](std::int64_t extent, std::int64_t box) { return tiled_spec(ElementType::f32, {extent}, {box}); };
  all.push_back({RuleId::box_range, true, map(1024, 1024)});
  all.push_back({RuleId::box_range, false, map(1024, 256)});
  all.push_back({RuleId::box_inner_16, true, map(1024, 2)});
  all.push_back({RuleId::address_16, true, with(map(1024, 64), &TensorMapSpec::address, 0x1004)});
  all.push_back({RuleId::dim_range, true, map(0, 64)});
  all.push_back({RuleId::swizzle_span, true, with(map(1024, 64), &TensorMapSpec::swizzle, Swizzle::b128)});
  all.push_back({RuleId::rank_interleaved, true, with(map(1024, 64), &TensorMapSpec::interleave, Interleave::b16)});
}

}  // namespace

std::vector<RuleExample> rule_examples() {
  std::vector<RuleExample> all;
  shape_examples(all);
  memory_examples(all);
  box_examples(all);
  mode_examples(all);
  im2col_examples(all);
  load_examples(all);
  one_dimension_examples(all);
  return all;
}

}  // namespace tmaops::probe
