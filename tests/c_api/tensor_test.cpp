// What becomes of a tensor of the C interface on its way to an operator.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>

#include "c_api/arguments.hpp"
#include "c_api/c_tensors.hpp"
#include "support/expect_error.hpp"

namespace tmaops::c_api_test {
namespace {

using test::expect_error;

/// DLTensor as DLPack 1.0 defines it.
struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

static_assert(sizeof(tmaops_tensor) == sizeof(DLTensor) && alignof(tmaops_tensor) == alignof(DLTensor));
static_assert(offsetof(tmaops_tensor, data) == offsetof(DLTensor, data));
static_assert(offsetof(tmaops_tensor, device) == offsetof(DLTensor, device));
static_assert(offsetof(tmaops_tensor, ndim) == offsetof(DLTensor, ndim));
static_assert(offsetof(tmaops_tensor, dtype) == offsetof(DLTensor, dtype));
static_assert(offsetof(tmaops_tensor, shape) == offsetof(DLTensor, shape));
static_assert(offsetof(tmaops_tensor, strides) == offsetof(DLTensor, strides));
static_assert(offsetof(tmaops_tensor, byte_offset) == offsetof(DLTensor, byte_offset));
static_assert(sizeof(tmaops_dtype) == sizeof(DLDataType) && offsetof(tmaops_dtype, code) == offsetof(DLDataType, code));
static_assert(offsetof(tmaops_dtype, bits) == offsetof(DLDataType, bits));
static_assert(offsetof(tmaops_dtype, lanes) == offsetof(DLDataType, lanes));
static_assert(sizeof(tmaops_device) == sizeof(DLDevice));
static_assert(offsetof(tmaops_device, type) == offsetof(DLDevice, device_type));
static_assert(offsetof(tmaops_device, index) == offsetof(DLDevice, device_id));

const c_api::Arguments kRead("gemm");

TEST(CTensor, a_dltensor_may_be_passed) {
  std::array<float, 7> memory{0, 1, 2, 3, 4, 5, 6};
  std::array<std::int64_t, 2> shape{2, 3};
  std::array<std::int64_t, 2> strides{1, 2};
  DLTensor given{.data = memory.data(),
                 .device = {1, 0},
                 .ndim = 2,
                 .dtype = {2, 32, 1},
                 .shape = shape.data(),
                 .strides = strides.data(),
                 .byte_offset = 4};
  const TensorView view = kRead.tensor("a", reinterpret_cast<const tmaops_tensor*>(&given));
  EXPECT_EQ(view.data, &memory[1]);
  EXPECT_EQ(view.dtype, DType::f32);
  EXPECT_EQ(view.shape_text(), "(2, 3)");
  EXPECT_EQ(view.strides_text(), "(1, 2)");
  EXPECT_EQ(view.device, Device{});
}

TEST(CTensor, null_strides_are_row_major) {
  const CTensor<float> a({2, 1, 3});
  EXPECT_EQ(kRead.tensor("a", a).strides_text(), Layout::contiguous({2, 1, 3}).strides_text());
  const CTensor<float> empty({2, 0, 3});
  EXPECT_EQ(kRead.tensor("a", empty).strides_text(), Layout::contiguous({2, 0, 3}).strides_text());
}

TEST(CTensor, a_scalar_has_no_shape) {
  CTensor<float> a({}, {1});
  a.tensor.shape = nullptr;
  EXPECT_EQ(kRead.tensor("a", a).rank, 0);
}

TEST(CTensor, pinned_memory_is_of_the_host_and_managed_memory_of_its_gpu) {
  CTensor<float> a({2});
  a.tensor.device = {tmaops_device_cuda_host, 1};
  EXPECT_EQ(kRead.tensor("a", a).device, Device{});
  for (const std::int32_t type : {tmaops_device_cuda, tmaops_device_cuda_managed}) {
    a.tensor.device = {type, 1};
    EXPECT_EQ(kRead.tensor("a", a).device, (Device{DeviceType::cuda, 1}));
  }
}

TEST(CTensor, every_listed_element_type_is_taken) {
  CTensor<std::int64_t> a({1});
  std::string names;
  for (std::int64_t i = 0; const tmaops_named_dtype* type = tmaops_dtype_at(i); ++i) {
    a.tensor.dtype = type->dtype;
    const DType taken = kRead.tensor("a", a).dtype;
    EXPECT_EQ(to_string(taken), type->name == std::string("bool") ? "u8" : type->name);
    names += std::string(type->name) + " ";
  }
  EXPECT_EQ(names, "f64 f32 f16 bf16 i64 i32 u8 bool ");
}

TEST(CTensor, a_null_tensor_is_refused_by_name_unless_it_is_optional) {
  expect_error(ErrorCode::null_pointer, [] { kRead.tensor("bias", nullptr); }, "gemm: bias");
  EXPECT_FALSE(ConstTensorView(kRead.optional_tensor("bias", nullptr)).given());
}

TEST(CTensor, every_refusal_names_the_argument_and_what_it_got) {
  struct Case {
    const char* what;
    ErrorCode code;
    void (*spoil)(tmaops_tensor&);
    const char* got;
  };
  static constexpr std::int64_t kNegative[] = {2, -1};
  static constexpr std::int64_t kHuge[] = {std::int64_t{1} << 62, std::int64_t{1} << 62};
  const Case cases[] = {
      {"lanes", ErrorCode::unsupported_dtype, [](tmaops_tensor& a) { a.dtype.lanes = 4; }, "lanes 4"},
      {"no lanes", ErrorCode::unsupported_dtype, [](tmaops_tensor& a) { a.dtype.lanes = 0; }, "lanes 0"},
      {"opaque", ErrorCode::unsupported_dtype, [](tmaops_tensor& a) { a.dtype.code = 3; }, "code 3"},
      {"complex", ErrorCode::unsupported_dtype, [](tmaops_tensor& a) { a.dtype = {5, 64, 1}; }, "code 5, bits 64"},
      {"f8", ErrorCode::unsupported_dtype, [](tmaops_tensor& a) { a.dtype = {10, 8, 1}; }, "code 10, bits 8"},
      {"no code", ErrorCode::unsupported_dtype, [](tmaops_tensor& a) { a.dtype.code = 255; }, "code 255"},
      {"i16", ErrorCode::unsupported_dtype, [](tmaops_tensor& a) { a.dtype = {0, 16, 1}; }, "code 0, bits 16"},
      {"i8", ErrorCode::unsupported_dtype, [](tmaops_tensor& a) { a.dtype = {0, 8, 1}; }, "code 0, bits 8"},
      {"no type", ErrorCode::unsupported_dtype, [](tmaops_tensor& a) { a.dtype = {}; }, "code 0, bits 0"},
      {"rank -1", ErrorCode::shape_mismatch, [](tmaops_tensor& a) { a.ndim = -1; }, "a rank of -1"},
      {"rank 9", ErrorCode::shape_mismatch, [](tmaops_tensor& a) { a.ndim = 9; }, "a rank of 9"},
      {"rank 2^31 - 1", ErrorCode::shape_mismatch, [](tmaops_tensor& a) { a.ndim = INT32_MAX; },
       "a rank of 2147483647"},
      {"negative extent", ErrorCode::shape_mismatch, [](tmaops_tensor& a) { a.shape = kNegative; }, "(2, -1)"},
      {"null shape", ErrorCode::null_pointer, [](tmaops_tensor& a) { a.shape = nullptr; }, "a null shape"},
      {"huge", ErrorCode::size_overflow, [](tmaops_tensor& a) { a.shape = kHuge; }, "(4611686018427387904, "},
      {"far away", ErrorCode::size_overflow, [](tmaops_tensor& a) { a.byte_offset = UINT64_MAX; }, "byte offset"},
      {"no device", ErrorCode::bad_parameter, [](tmaops_tensor& a) { a.device.type = 0; }, "device type 0"},
      {"OpenCL", ErrorCode::bad_parameter, [](tmaops_tensor& a) { a.device.type = 4; }, "device type 4"},
      {"ROCm", ErrorCode::bad_parameter, [](tmaops_tensor& a) { a.device.type = 10; }, "device type 10"},
      {"device -1", ErrorCode::bad_parameter, [](tmaops_tensor& a) { a.device.type = -1; }, "device type -1"}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    CTensor<float> a({2, 3});
    each.spoil(a.tensor);
    expect_error(each.code, [&] { kRead.tensor("a", a); }, "gemm: a", each.got);
  }
}

TEST(CTensor, null_data_with_elements_is_refused_whatever_the_offset) {
  for (const std::uint64_t offset : {0, 64}) {
    CTensor<float> a({2, 2});
    CTensor<float> d({2, 2});
    a.tensor.data = nullptr;
    a.tensor.byte_offset = offset;
    expect_failed(tmaops_gemm(a, d, d, nullptr, nullptr), tmaops_error_null_pointer, "gemm: a");
  }
}

}  // namespace
}  // namespace tmaops::c_api_test
