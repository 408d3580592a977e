// General matrix multiplication: D = activation(alpha * A B + beta * C + bias).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tmaops/allocator.hpp"
#include "tmaops/export.hpp"
#include "tmaops/options.h"
#include "tmaops/plan.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops {

/// Storage orders of A (M x K) and B (K x N): R is row-major, C is column-major. RC is the mode of a linear layer, both
/// operands contiguous along K; CR has both contiguous along M and N.
enum class GemmMode : std::uint8_t { RC, CR, RR, CC };

/// Applied element by element to alpha * A B + beta * C + bias, in f32.
enum class Activation : std::uint8_t { TMAOPS_WORDS_activation(TMAOPS_ENUMERATOR) };

/// Which index of D the bias vector runs along.
enum class BiasAxis : std::uint8_t { TMAOPS_WORDS_bias_axis(TMAOPS_ENUMERATOR) };

/// "RC", "CR", "RR", "CC"; "none", "relu", "gelu", "silu"; "column", "row".
TMAOPS_API std::string_view to_string(GemmMode mode);
TMAOPS_API std::string_view to_string(Activation activation);
TMAOPS_API std::string_view to_string(BiasAxis axis);

/// The inverse of to_string; nothing when the name is none of these.
TMAOPS_API std::optional<GemmMode> parse_gemm_mode(std::string_view name);
TMAOPS_API std::optional<Activation> parse_activation(std::string_view name);
TMAOPS_API std::optional<BiasAxis> parse_bias_axis(std::string_view name);

struct GemmOptions {
  float alpha = 1.0F;
  float beta = 0.0F;       // 0: C is not read, so NaN in it does not matter
  ConstTensorView c{};     // shape of D, f16, bf16 or f32, any strides; may be D itself; required when beta != 0
  ConstTensorView bias{};  // (N) or (M), f16, bf16 or f32, any stride; optional
  BiasAxis bias_axis = BiasAxis::column;
  Activation activation = Activation::none;
  /// GPU: programmatic dependent launch. The kernel may start before the one in front of it on the stream has ended,
  /// and waits for it before it reads or writes; back-to-back calls overlap their start-up.
  bool dependent_launch = false;
  /// Name of a variant, or of a variant and a tile ("wgmma_tma/64x128"); empty: the best one for the problem.
  std::string variant{};
  /// GPU: file of measured choices (`tmaops bench --tune`), read once per process. Empty: $TMAOPS_GEMM_TUNING, else
  /// gemm_tuning.yaml in $XDG_CACHE_HOME/tmaops or ~/.cache/tmaops where there is one. "off": none.
  std::string tuning{};
  Stream stream = nullptr;
  /// GPU: gives the memory that sums over a long K need. A plan asks it with `stream` when it is made and gives the
  /// memory back when it is destroyed; runs on another stream must then come after that one.
  Allocator allocator{};
};

/// D = activation(alpha * A B + beta * C + bias).
///
/// a: (M, K) or (batch, M, K), f16 or bf16 (f32 too on the CPU). b: (K, N) or (batch, K, N), same dtype as a.
/// d: (M, N) or (batch, M, N), f16, bf16 or f32. An a or b of two dimensions serves every batch of a d of three.
/// Products are accumulated in f32; the result is rounded once. Any M, N, K, batch >= 0, any alignment to the element
/// size, any strides of the inputs (0 and negative too); the elements of d must not overlap, nor share memory with a, b
/// or bias, nor with c unless c is d itself. With K = 0 the product is 0. The mode (GemmMode) follows from the strides.
/// The same call gives the same bits on the same machine, whatever the number of threads. Throws Error: shape_mismatch,
/// unsupported_dtype, dtype_mismatch, device_mismatch, bad_strides, overlap, null_pointer, misaligned, size_overflow,
/// bad_parameter, unknown_variant, variant_refuses, out_of_memory, cannot_read and bad_tuning (of the file `tuning`),
/// and the device errors.
TMAOPS_API void gemm(ConstTensorView a, ConstTensorView b, TensorView d, const GemmOptions& options = {});

/// A gemm whose checks and host work are done once. Same arguments and errors as gemm(); options.stream is for
/// options.allocator alone. The buffers must outlive the plan. Runs that share a plan must follow one another.
TMAOPS_API Plan plan_gemm(ConstTensorView a, ConstTensorView b, TensorView d, const GemmOptions& options = {});

/// Bytes of device memory that gemm() takes from its allocator for such a call; 0 on the CPU. Errors as for gemm().
TMAOPS_API std::size_t gemm_workspace(ConstTensorView a, ConstTensorView b, TensorView d,
                                      const GemmOptions& options = {});

}  // namespace tmaops
