// Names of the enumerations in tmaops and in CUDA.
#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "core/entry.hpp"
#include "core/enum_name.hpp"
#include "tmaops/tensor_map.hpp"

namespace tmaops::tma {
namespace {

struct TypeName {
  std::string_view ours;
  std::string_view cuda;  // after CU_TENSOR_MAP_DATA_TYPE_
  int bits;
};
constexpr std::array<TypeName, 16> kTypes = {{{"u8", "UINT8", 8},
                                              {"u16", "UINT16", 16},
                                              {"u32", "UINT32", 32},
                                              {"i32", "INT32", 32},
                                              {"u64", "UINT64", 64},
                                              {"i64", "INT64", 64},
                                              {"f16", "FLOAT16", 16},
                                              {"f32", "FLOAT32", 32},
                                              {"f64", "FLOAT64", 64},
                                              {"bf16", "BFLOAT16", 16},
                                              {"f32_ftz", "FLOAT32_FTZ", 32},
                                              {"tf32", "TFLOAT32", 32},
                                              {"tf32_ftz", "TFLOAT32_FTZ", 32},
                                              {"u4x16_align8", "16U4_ALIGN8B", 4},
                                              {"u4x16_align16", "16U4_ALIGN16B", 4},
                                              {"u6x16_align16", "16U6_ALIGN16B", 6}}};

// The name in tmaops, then the name in CUDA. Both are parsed.
using Names = std::pair<std::string_view, std::string_view>;
constexpr std::array<Names, 3> kInterleaves = {{{"none", "CU_TENSOR_MAP_INTERLEAVE_NONE"},
                                                {"16B", "CU_TENSOR_MAP_INTERLEAVE_16B"},
                                                {"32B", "CU_TENSOR_MAP_INTERLEAVE_32B"}}};
constexpr std::array<Names, 7> kSwizzles = {{{"none", "CU_TENSOR_MAP_SWIZZLE_NONE"},
                                             {"32B", "CU_TENSOR_MAP_SWIZZLE_32B"},
                                             {"64B", "CU_TENSOR_MAP_SWIZZLE_64B"},
                                             {"128B", "CU_TENSOR_MAP_SWIZZLE_128B"},
                                             {"128B_ATOM_32B", "CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B"},
                                             {"128B_ATOM_32B_FLIP_8B", "CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B"},
                                             {"128B_ATOM_64B", "CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B"}}};
constexpr std::array<Names, 4> kPromotions = {{{"none", "CU_TENSOR_MAP_L2_PROMOTION_NONE"},
                                               {"64B", "CU_TENSOR_MAP_L2_PROMOTION_L2_64B"},
                                               {"128B", "CU_TENSOR_MAP_L2_PROMOTION_L2_128B"},
                                               {"256B", "CU_TENSOR_MAP_L2_PROMOTION_L2_256B"}}};
constexpr std::array<Names, 2> kFills = {
    {{"zero", "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE"}, {"nan", "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA"}}};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

template <class Enum, std::size_t n>
std::optional<Enum> parse(const std::array<Names, n>& names, std::string_view name) {
  return public_entry("tensor map", [&]() -> std::optional<Enum> {
    const std::string wanted = lower(name);
    for (std::size_t i = 0; i < n; ++i)
      if (wanted == lower(names[i].first) || wanted == lower(names[i].second)) return static_cast<Enum>(i);
    return std::nullopt;
  });
}

template <class Enum, std::size_t n>
std::string_view name_of(const std::array<Names, n>& names, Enum value) {
  const auto i = static_cast<std::size_t>(value);
  return i < n ? names[i].first : "?";
}

}  // namespace

std::string_view to_string(ElementType type) {
  const auto i = static_cast<std::size_t>(type);
  return i < kTypes.size() ? kTypes[i].ours : "?";
}
std::string_view to_string(Interleave interleave) { return name_of(kInterleaves, interleave); }
std::string_view to_string(Swizzle swizzle) { return name_of(kSwizzles, swizzle); }
std::string_view to_string(L2Promotion promotion) { return name_of(kPromotions, promotion); }
std::string_view to_string(Fill fill) { return name_of(kFills, fill); }
std::string_view to_string(Mode mode) {
  constexpr std::array<std::string_view, 2> names = {"tiled", "im2col"};
  return enum_name(names, mode);
}
std::string_view to_string(Severity severity) {
  constexpr std::array<std::string_view, 2> names = {"error", "warning"};
  return enum_name(names, severity);
}
std::string_view to_string(Scope scope) {
  constexpr std::array<std::string_view, 4> names = {"any map", "tiled", "im2col", "load"};
  return enum_name(names, scope);
}

std::string_view to_string(Driver driver) {
  constexpr std::array<std::string_view, 3> names = {"refuses", "accepts", "not asked"};
  return enum_name(names, driver);
}

std::optional<ElementType> parse_element_type(std::string_view name) {
  return public_entry("tensor map", [&]() -> std::optional<ElementType> {
    const std::string wanted = lower(name);
    for (std::size_t i = 0; i < kTypes.size(); ++i) {
      const std::string cuda = lower(kTypes[i].cuda);
      if (wanted == kTypes[i].ours || wanted == cuda || wanted == "cu_tensor_map_data_type_" + cuda)
        return static_cast<ElementType>(i);
    }
    return std::nullopt;
  });
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
  return i < kTypes.size() ? kTypes[i].bits : 8;
}

bool is_packed(ElementType type) { return type >= ElementType::u4x16_align8; }

bool is_floating(ElementType type) { return type >= ElementType::f16 && type <= ElementType::tf32_ftz; }

}  // namespace tmaops::tma
