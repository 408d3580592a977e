// Making a descriptor: the rules answer before the driver is asked, so that most of this runs without a GPU.
#include <gtest/gtest.h>

#include "core/device_info.hpp"
#include "support/expect_error.hpp"
#include "tma/driver.hpp"

namespace tmaops::tma {
namespace {

using tmaops::test::expect_error;

TEST(Encode, an_invalid_map_is_explained_without_a_driver) {
  TensorMapSpec spec;
  spec.dtype = ElementType::f16;
  spec.dims = {92, 160, 32};
  spec.strides = {160 * 32 * 2, 32 * 2};
  spec.box = {2, 2, 32};
  spec.element_strides = {1, 1, 9};
  expect_error(
      ErrorCode::bad_tensor_map, [&] { encode(spec); }, "inner box 2 x 2 B = 4 B, not a multiple of 16 B",
      "element_strides[2] = 9, needs 1 to 8", "dimensions look outermost first", "is valid",
      "--dims 32,160,92 --box 32,2,2");
}

TEST(Encode, a_map_without_memory_is_refused) {
  expect_error(ErrorCode::null_pointer, [] { encode(tiled_spec(ElementType::f16, {64, 64}, {64, 8})); }, "address");
}

TEST(Encode, without_a_gpu_the_reason_is_named) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "this machine has a GPU";
  TensorMapSpec spec = tiled_spec(ElementType::f16, {64, 64}, {64, 8});
  spec.address = 0x7f0000000000;
  try {
    encode(spec);
    FAIL() << "a descriptor without a GPU";
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::no_cuda_build || error.code() == ErrorCode::no_driver ||
                error.code() == ErrorCode::driver_too_old || error.code() == ErrorCode::no_device ||
                error.code() == ErrorCode::device_hidden)
        << error.what();
  }
}

TEST(Encode, on_a_gpu_the_descriptor_is_made_and_is_not_empty) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here";
  TensorMapSpec spec = tiled_spec(ElementType::f16, {64, 64}, {64, 8});
  spec.address = 0x7f0000000000;  // the driver does not look at the memory
  const TensorMap map = encode(spec);
  std::uint64_t bits = 0;
  for (const std::uint64_t word : map.opaque) bits |= word;
  EXPECT_NE(bits, 0U);
}

TEST(Encode, bit_85_of_small_tensors_is_cleared_where_the_driver_sets_it_wrongly) {
  EXPECT_TRUE(sets_bit_85_wrongly(100, 13000));
  EXPECT_TRUE(sets_bit_85_wrongly(120, 13030));
  EXPECT_FALSE(sets_bit_85_wrongly(100, 13040));
  EXPECT_FALSE(sets_bit_85_wrongly(kHopper, 13000));
  const auto second_word = [](std::int64_t rows, std::int64_t pitch) {
    TensorMapSpec spec = tiled_spec(ElementType::f16, {64, rows}, {64, 8});
    spec.strides = {pitch};
    TensorMap map;
    map.opaque[1] = ~std::uint64_t{0};
    clear_bit_85(spec, map);
    return map.opaque[1];
  };
  constexpr std::uint64_t cleared = 0xFFFFFFFFFFDFFFFF;
  EXPECT_EQ(second_word(512, 256), cleared) << "511 * 256 + 128 bytes are less than 128 KB";
  EXPECT_EQ(second_word(513, 256), ~std::uint64_t{0}) << "512 * 256 + 128 bytes are more";
  EXPECT_EQ(second_word(std::int64_t{1} << 32, (std::int64_t{1} << 40) - 16), ~std::uint64_t{0});
}

TEST(Encode, the_opaque_type_is_what_a_kernel_parameter_needs) {
  static_assert(sizeof(TensorMap) == 128 && alignof(TensorMap) == 128);
  static_assert(std::is_trivially_copyable_v<TensorMap> && std::is_standard_layout_v<TensorMap>);
}

TEST(Encode, the_driver_is_only_asked_what_its_parameters_can_hold) {
  const TensorMapSpec good = tiled_spec(ElementType::f16, {64, 64}, {64, 8});
  EXPECT_TRUE(fits_driver(good));
  const auto fits = [&](auto change) {
    TensorMapSpec spec = good;
    change(spec);
    return fits_driver(spec);
  };
  EXPECT_FALSE(fits([](TensorMapSpec& s) { s.box = {64}; }));
  EXPECT_FALSE(fits([](TensorMapSpec& s) { s.box = {64, -1}; }));
  EXPECT_FALSE(fits([](TensorMapSpec& s) { s.box = {64, std::int64_t{1} << 32}; }));
  EXPECT_FALSE(fits([](TensorMapSpec& s) { s.strides = {}; }));
  EXPECT_FALSE(fits([](TensorMapSpec& s) { s.strides = {-16}; }));
  EXPECT_FALSE(fits([](TensorMapSpec& s) { s.element_strides = {1}; }));
  EXPECT_TRUE(fits([](TensorMapSpec& s) { s.strides = {7}; }));
}

}  // namespace
}  // namespace tmaops::tma
