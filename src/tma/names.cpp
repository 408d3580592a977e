// Names of the enumerations in tmaops and in CUDA.
#include <span>

#include "core/entry.hpp"
#include "core/enum_name.hpp"
#include "core/spelling.hpp"
#include "tmaops/tensor_map.hpp"

namespace tmaops::tma {
namespace {

using Words = std::span<const std::string_view>;

/// The names of an enumeration in tmaops, and what stands in CUDA's names behind their common beginning. Both are
/// parsed.
struct Names {
  std::string_view beginning;
  Words ours, cuda;
};
constexpr std::string_view kTypeWords[] = {
    "u8",  "u16",  "u32",     "i32",  "u64",      "i64",          "f16",           "f32",
    "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz", "u4x16_align8", "u4x16_align16", "u6x16_align16"};
constexpr std::string_view kCudaTypeWords[] = {
    "UINT8",   "UINT16",   "UINT32",      "INT32",    "UINT64",       "INT64",        "FLOAT16",       "FLOAT32",
    "FLOAT64", "BFLOAT16", "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ", "16U4_ALIGN8B", "16U4_ALIGN16B", "16U6_ALIGN16B"};
constexpr int kTypeBits[] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
constexpr std::string_view kInterleaveWords[] = {"none", "16B", "32B"};
constexpr std::string_view kSwizzleWords[] = {
    "none", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B"};
constexpr std::string_view kPromotionWords[] = {"none", "64B", "128B", "256B"};
constexpr std::string_view kCudaPromotionWords[] = {"none", "L2_64B", "L2_128B", "L2_256B"};
constexpr std::string_view kFillWords[] = {"zero", "nan"};
constexpr std::string_view kCudaFillWords[] = {"none", "NAN_REQUEST_ZERO_FMA"};
constexpr Names kTypes{"CU_TENSOR_MAP_DATA_TYPE_", kTypeWords, kCudaTypeWords};
constexpr Names kInterleaves{"CU_TENSOR_MAP_INTERLEAVE_", kInterleaveWords, kInterleaveWords};
constexpr Names kSwizzles{"CU_TENSOR_MAP_SWIZZLE_", kSwizzleWords, kSwizzleWords};
constexpr Names kPromotions{"CU_TENSOR_MAP_L2_PROMOTION_", kPromotionWords, kCudaPromotionWords};
constexpr Names kFills{"CU_TENSOR_MAP_FLOAT_OOB_FILL_", kFillWords, kCudaFillWords};

template <class Enum>
std::optional<Enum> parse(const Names& names, std::string_view name) {
  return public_entry("tensor map", [&]() -> std::optional<Enum> {
    const std::string wanted = lower_case(name);
    for (std::size_t i = 0; i < names.ours.size(); ++i)
      if (wanted == lower_case(names.ours[i]) ||
          wanted == lower_case(std::string(names.beginning) + std::string(names.cuda[i])))
        return static_cast<Enum>(i);
    return std::nullopt;
  });
}

}  // namespace

std::string_view to_string(ElementType type) { return enum_name(kTypes.ours, type); }
std::string_view to_string(Interleave interleave) { return enum_name(kInterleaves.ours, interleave); }
std::string_view to_string(Swizzle swizzle) { return enum_name(kSwizzles.ours, swizzle); }
std::string_view to_string(L2Promotion promotion) { return enum_name(kPromotions.ours, promotion); }
std::string_view to_string(Fill fill) { return enum_name(kFills.ours, fill); }
std::string_view to_string(Mode mode) {
  constexpr std::string_view names[] = {"tiled", "im2col"};
  return enum_name(names, mode);
}
std::string_view to_string(Severity severity) {
  constexpr std::string_view names[] = {"error", "warning"};
  return enum_name(names, severity);
}
std::string_view to_string(Scope scope) {
  constexpr std::string_view names[] = {"any map", "tiled", "im2col", "load"};
  return enum_name(names, scope);
}

std::string_view to_string(Driver driver) {
  constexpr std::string_view names[] = {"refuses", "accepts", "not asked"};
  return enum_name(names, driver);
}

std::optional<ElementType> parse_element_type(std::string_view name) {
  const auto found = parse<ElementType>(kTypes, name);
  return found ? found : parse<ElementType>({"", kTypes.cuda, kTypes.cuda}, name);  // "FLOAT16" as well
}
std::optional<Interleave> parse_interleave(std::string_view name) { return parse<Interleave>(kInterleaves, name); }
std::optional<Swizzle> parse_swizzle(std::string_view name) { return parse<Swizzle>(kSwizzles, name); }
std::optional<L2Promotion> parse_l2_promotion(std::string_view name) { return parse<L2Promotion>(kPromotions, name); }
std::optional<Fill> parse_fill(std::string_view name) { return parse<Fill>(kFills, name); }

ElementType element_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return ElementType::f64;
    case DType::f32:
      return ElementType::f32;
    case DType::f16:
      return ElementType::f16;
    case DType::bf16:
      return ElementType::bf16;
    case DType::i64:
      return ElementType::i64;
    case DType::i32:
      return ElementType::i32;
    case DType::u8:
      break;
  }
  return ElementType::u8;
}

int bits_of(ElementType type) {
  const auto i = static_cast<std::size_t>(type);
  return i < std::size(kTypeBits) ? kTypeBits[i] : 8;
}

bool is_packed(ElementType type) { return type >= ElementType::u4x16_align8; }

bool is_floating(ElementType type) { return type >= ElementType::f16 && type <= ElementType::tf32_ftz; }

}  // namespace tmaops::tma
