// Tensor maps: the 128-byte descriptors of the Tensor Memory Accelerator (TMA), checked and explained on the host.
//
// Source of every rule and name: cuda.h of CUDA 13.0, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col. Checking
// needs no GPU, no driver and no CUDA toolkit; only encode() does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tmaops/export.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops::tma {

/// Element types of a tensor map, with the values of CUtensorMapDataType. The last three are packed: 16 values of 4 or
/// 6 bits take 8, 16 (8 used) or 16 (12 used) bytes of shared memory; they need compute capability 10.0.
enum class ElementType : std::uint8_t {
  u8 = 0,
  u16,
  u32,
  i32,
  u64,
  i64,
  f16,
  f32,
  f64,
  bf16,
  f32_ftz,
  tf32,
  tf32_ftz,
  u4x16_align8,
  u4x16_align16,
  u6x16_align16
};
/// Layout of the tensor in global memory: plain, or channels in slices of 16 or 32 bytes (NC/8HWC8, NC/16HWC16).
enum class Interleave : std::uint8_t { none = 0, b16, b32 };
/// How the chunks of a row are permuted in shared memory so that a column of rows lies in different banks.
enum class Swizzle : std::uint8_t { none = 0, b32, b64, b128, b128_atom32, b128_atom32_flip8, b128_atom64 };
/// Granularity at which L2 fetches from DRAM for this map.
enum class L2Promotion : std::uint8_t { none = 0, b64, b128, b256 };
/// What an element outside of the tensor reads as: zero, or a special NaN (floating-point types only).
enum class Fill : std::uint8_t { zero = 0, nan };
/// What one load brings: a box of the tensor, or pixels of a convolution window.
enum class Mode : std::uint8_t { tiled, im2col };

/// "f16", "128B", "none", ...: the names the command line uses.
TMAOPS_API std::string_view to_string(ElementType type);
TMAOPS_API std::string_view to_string(Interleave interleave);
TMAOPS_API std::string_view to_string(Swizzle swizzle);
TMAOPS_API std::string_view to_string(L2Promotion promotion);
TMAOPS_API std::string_view to_string(Fill fill);
TMAOPS_API std::string_view to_string(Mode mode);
/// Inverse of to_string. Takes CUDA's own names too ("CU_TENSOR_MAP_DATA_TYPE_FLOAT16" or its last part). Nothing for
/// an unknown name.
TMAOPS_API std::optional<ElementType> parse_element_type(std::string_view name);
TMAOPS_API std::optional<Interleave> parse_interleave(std::string_view name);
TMAOPS_API std::optional<Swizzle> parse_swizzle(std::string_view name);
TMAOPS_API std::optional<L2Promotion> parse_l2_promotion(std::string_view name);
TMAOPS_API std::optional<Fill> parse_fill(std::string_view name);
/// The map type of a tensor's dtype. bf16, f16, f32, f64, i64, i32, u8 all have one.
TMAOPS_API ElementType element_type(DType dtype);

/// Bits of one element in global memory: 8 to 64, or 4 or 6 for the packed types.
TMAOPS_API int bits_of(ElementType type);
TMAOPS_API bool is_packed(ElementType type);
TMAOPS_API bool is_floating(ElementType type);

/// Everything cuTensorMapEncode* takes. Every list is innermost dimension first: {C, W, H} for a tensor of H rows of W
/// pixels of C channels, the reverse of the order in which shapes are usually written.
struct TensorMapSpec {
  Mode mode = Mode::tiled;
  ElementType dtype = ElementType::f16;
  /// Address of the first element. 0: not known yet; then the rules about it are not checked.
  std::uint64_t address = 0;
  std::vector<std::int64_t> dims{};             // elements
  std::vector<std::int64_t> strides{};          // bytes, of dimensions 1, 2, ...: one fewer than dims
  std::vector<std::int64_t> box{};              // tiled: elements one load spans along each dimension
  std::vector<std::int64_t> element_strides{};  // n loads every n-th element of the box; empty: 1 everywhere
  Interleave interleave = Interleave::none;
  Swizzle swizzle = Swizzle::none;
  L2Promotion l2_promotion = L2Promotion::none;
  Fill fill = Fill::zero;
  // im2col only. The corners move the window that filter positions may start in; innermost spatial dimension first
  // (W, H, D), as the driver reads them (rank - 2 entries).
  std::vector<std::int64_t> lower_corner{};
  std::vector<std::int64_t> upper_corner{};
  std::int64_t channels_per_pixel = 0;
  std::int64_t pixels_per_column = 0;

  int rank() const { return static_cast<int>(dims.size()); }
  /// One line, in the syntax of `tmaops tensormap`: "--dtype f16 --dims 32,160,92 --strides 64,10240 --box 32,2,2".
  TMAOPS_API std::string text() const;
  friend bool operator==(const TensorMapSpec&, const TensorMapSpec&) = default;
};

/// Strides in bytes of a dense tensor: strides[i] = product of dims[0..i] in bytes. Saturates instead of overflowing.
TMAOPS_API std::vector<std::int64_t> dense_strides(ElementType type, const std::vector<std::int64_t>& dims);

/// A tiled map of a dense tensor.
TMAOPS_API TensorMapSpec tiled_spec(ElementType type, std::vector<std::int64_t> dims, std::vector<std::int64_t> box);

/// error: the map is refused, or the load faults. warning: it works, but is probably not what was meant.
enum class Severity : std::uint8_t { error, warning };
/// What a rule is about: both kinds of map, one of them, or a single load through a map.
enum class Scope : std::uint8_t { any_map, tiled, im2col, load };

/// What the driver does with a specification that breaks a rule. It never sees loads.
enum class Driver : std::uint8_t { refuses, accepts, not_asked };

TMAOPS_API std::string_view to_string(Severity severity);
TMAOPS_API std::string_view to_string(Scope scope);
TMAOPS_API std::string_view to_string(Driver driver);

/// One documented rule.
struct Rule {
  std::string_view id;  // "inner_box_multiple_of_16_bytes"
  Severity severity;
  Scope scope;
  Driver driver;
  std::string_view text;    // the rule in one sentence
  std::string_view source;  // where it is written, or how it was found
};

/// Every rule, in the order they are checked.
TMAOPS_API std::span<const Rule> rules();

/// A rule that a specification breaks, with the numbers.
struct Finding {
  const Rule* rule = nullptr;
  std::string text;  // "inner box 2 x 2 B = 4 B, not a multiple of 16 B"
};

/// A changed specification that keeps every error-level rule.
struct Proposal {
  TensorMapSpec spec;
  std::string change;  // what was changed and why it helps, in words
};

struct Report {
  std::vector<Finding> errors;
  std::vector<Finding> warnings;
  std::optional<Proposal> proposal;  // only when there are errors and a repair was found
  bool valid() const { return errors.empty(); }
  /// Several lines: every finding, then the proposal.
  TMAOPS_API std::string text() const;
};

/// Compute capability of Hopper (9.0), the oldest with TMA.
inline constexpr int kHopper = 90;

/// Checks a specification against every rule for maps, and looks for a repair when it breaks one.
TMAOPS_API Report check(const TensorMapSpec& spec, int compute_capability = kHopper);

/// One cp.async.bulk.tensor from global to shared memory.
struct TileLoad {
  std::vector<std::int64_t> coordinates;  // of the first element of the box, innermost first; may be negative
  std::uint32_t shared_address = 0;       // of the destination in the shared window
};

/// Checks a load through a valid tiled map. The driver does not check loads: a kernel that breaks an error-level rule
/// faults or reads wrong data.
TMAOPS_API Report check(const TensorMapSpec& spec, const TileLoad& load);

/// Bytes that one load brings, which the barrier must expect (expect_tx). The part of the box outside of the tensor
/// counts too; of packed types the gaps in shared memory do not. Throws Error bad_tensor_map for a map that is not
/// valid.
TMAOPS_API std::int64_t transaction_bytes(const TensorMapSpec& spec);

/// An opaque descriptor. Pass it to kernels by value as `const __grid_constant__ tmaops::tma::TensorMap map`. The
/// hardware needs the alignment, so memory for it comes from new or std::aligned_alloc, not from malloc.
struct alignas(128) TensorMap {
  std::uint64_t opaque[16] = {};
};

/// Makes the descriptor with the driver's help. Loads the driver at the first call; nothing links against it.
/// Throws Error: bad_tensor_map with every violation and the proposal; no_cuda_build, no_driver, driver_too_old,
/// no_device, device_hidden, wrong_architecture (before 9.0), earlier_cuda_error (the context was already broken),
/// tensor_map_refused (the driver refuses what the rules allow).
TMAOPS_API TensorMap encode(const TensorMapSpec& spec, int device_index = 0);

}  // namespace tmaops::tma
