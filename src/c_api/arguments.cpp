#include "c_api/arguments.hpp"

#include <cstddef>
#include <iterator>

namespace tmaops::c_api {
namespace {

constexpr tmaops_named_dtype kDTypes[] = {
    {"f64", TMAOPS_F64}, {"f32", TMAOPS_F32}, {"f16", TMAOPS_F16}, {"bf16", TMAOPS_BF16},
    {"i64", TMAOPS_I64}, {"i32", TMAOPS_I32}, {"u8", TMAOPS_U8},   {"bool", {tmaops_dtype_bool, 8, 1}}};
constexpr std::size_t kBool = std::size(kDTypes) - 1;

/// Options larger than this are no options of any version, but a size that was never set.
constexpr std::size_t kMostOptionBytes = 4096;

DType dtype_of_tensor(const ArgumentChecks& checks, std::string_view argument, const tmaops_dtype& given) {
  for (std::size_t i = 0; i < std::size(kDTypes); ++i) {
    const tmaops_dtype& dtype = kDTypes[i].dtype;
    if (dtype.code == given.code && dtype.bits == given.bits && dtype.lanes == given.lanes)
      return i == kBool ? DType::u8 : static_cast<DType>(i);
  }
  std::string known;
  for (const auto& [name, dtype] : kDTypes) known += std::string(name) + ", ";
  checks.fail(ErrorCode::unsupported_dtype, argument,
              "code " + std::to_string(given.code) + ", bits " + std::to_string(given.bits) + ", lanes " +
                  std::to_string(given.lanes),
              known + "with DLPack's codes and 1 lane");
}

Device device_of_tensor(const ArgumentChecks& checks, std::string_view argument, const tmaops_device& given) {
  switch (given.type) {
    case tmaops_device_cpu:
    case tmaops_device_cuda_host:
      return {DeviceType::cpu, 0};
    case tmaops_device_cuda:
    case tmaops_device_cuda_managed:
      return {DeviceType::cuda, given.index};
    default:  // DLPack's other devices, and numbers that are none
      checks.fail(ErrorCode::bad_parameter, argument, "memory of device type " + std::to_string(given.type),
                  "type 1 (host), 2 (CUDA), 3 (pinned host memory) or 13 (managed by CUDA)");
  }
}

/// Shape and strides; a rank that is none is left for ArgumentChecks::view to refuse.
Layout layout_of_tensor(const ArgumentChecks& checks, std::string_view argument, const tmaops_tensor& given) {
  Layout layout;
  layout.rank = given.ndim;
  if (layout.rank <= 0 || layout.rank > kMaxRank) return layout;
  const auto rank = static_cast<std::size_t>(layout.rank);
  if (given.shape == nullptr)
    checks.fail(ErrorCode::null_pointer, argument, "a null shape of " + std::to_string(rank) + " dimensions",
                "extents");
  std::copy_n(given.shape, rank, layout.shape.begin());
  if (given.strides != nullptr) {
    std::copy_n(given.strides, rank, layout.strides.begin());
    return layout;
  }
  std::int64_t stride = 1;
  for (std::size_t i = rank; i-- > 0;) {
    layout.strides[i] = stride;
    if (layout.shape[i] > 1 && __builtin_mul_overflow(stride, layout.shape[i], &stride))
      checks.fail(ErrorCode::size_overflow, argument, layout.shape_text(), "at most 2^63 - 1 elements");
  }
  return layout;
}

}  // namespace

// The layout of DLPack's DLTensor.
static_assert(sizeof(tmaops_dtype) == 4 && offsetof(tmaops_dtype, bits) == 1 && offsetof(tmaops_dtype, lanes) == 2);
static_assert(sizeof(tmaops_device) == 8 && offsetof(tmaops_device, index) == 4);
static_assert(sizeof(tmaops_tensor) == 48 && offsetof(tmaops_tensor, data) == 0);
static_assert(offsetof(tmaops_tensor, device) == 8 && offsetof(tmaops_tensor, ndim) == 16);
static_assert(offsetof(tmaops_tensor, dtype) == 20 && offsetof(tmaops_tensor, shape) == 24);
static_assert(offsetof(tmaops_tensor, strides) == 32 && offsetof(tmaops_tensor, byte_offset) == 40);

std::span<const tmaops_named_dtype> named_dtypes() { return kDTypes; }

TensorView Arguments::tensor(std::string_view argument, const tmaops_tensor* given) const {
  place(argument, given);
  if (given->byte_offset > static_cast<std::uint64_t>(PTRDIFF_MAX))
    checks_.fail(ErrorCode::size_overflow, argument, "a byte offset of " + std::to_string(given->byte_offset),
                 "less than 2^63");
  TensorView view(given->data, dtype_of_tensor(checks_, argument, given->dtype),
                  layout_of_tensor(checks_, argument, *given), device_of_tensor(checks_, argument, given->device));
  if (view.data != nullptr) view.data = static_cast<std::byte*>(view.data) + given->byte_offset;
  checks_.view(argument, view);
  return view;
}

TensorView Arguments::optional_tensor(std::string_view argument, const tmaops_tensor* given) const {
  return given == nullptr ? TensorView() : tensor(argument, given);
}

std::variant<double, std::int64_t> Arguments::time(std::string_view argument, const tmaops_time& given) const {
  if (given.nanoseconds == 0) return given.seconds;
  if (given.seconds != 0)
    checks_.fail(ErrorCode::bad_parameter, argument,
                 std::to_string(given.seconds) + " s and " + std::to_string(given.nanoseconds) + " ns",
                 "one of them, in the unit of the times");
  return given.nanoseconds;
}

void Arguments::place(std::string_view argument, const void* given) const {
  if (given == nullptr) checks_.fail(ErrorCode::null_pointer, argument, "null", "a pointer");
}

void Arguments::check_options(const void* given, std::size_t size, std::size_t known) const {
  if (size < sizeof(size) || size > kMostOptionBytes)
    checks_.fail(ErrorCode::bad_parameter, "options.size", std::to_string(size), std::to_string(known),
                 "Make options with their initialiser, or set size to their sizeof.");
  const auto* bytes = static_cast<const unsigned char*>(given);
  for (std::size_t i = known; i < size; ++i)
    if (bytes[i] != 0)
      checks_.fail(ErrorCode::bad_parameter, "options", "a field of a later version, at byte " + std::to_string(i),
                   "0 in what this library does not know",
                   "Use a library as new as the header, or leave the field out.");
}

}  // namespace tmaops::c_api
