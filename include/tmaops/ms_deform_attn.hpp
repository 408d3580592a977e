// Multi-scale deformable attention (Zhu et al., "Deformable DETR", ICLR 2021), forward and backward.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tmaops/allocator.hpp"
#include "tmaops/export.hpp"
#include "tmaops/options.h"
#include "tmaops/plan.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops {

/// Size of one feature level in pixels.
struct LevelShape {
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// How a value is read at a fractional location. `bilinear`: between the four pixels around it, zero outside the level.
/// `nearest` is the 'discrete' method of RT-DETRv2: column floor(x * width + 1/2), row floor(y * height + 1/2), clamped
/// to the level (there is no outside). That is half a pixel off the nearest pixel of torch's grid_sample, as the model
/// was trained with.
enum class Sampling : std::uint8_t { TMAOPS_WORDS_sampling(TMAOPS_ENUMERATOR) };

struct MsDeformAttnOptions {
  /// Start of each level in S; empty: the levels lie one after the other.
  std::span<const std::int64_t> level_start_index{};
  /// Ragged points: number of points of each level. Then sampling_locations is (N, Lq, M, sum of points, 2) and
  /// attention_weights (N, Lq, M, sum of points). Empty: the same P for every level.
  std::span<const std::int32_t> points_per_level{};
  /// Instead of `levels`, which is then empty, and level_start_index: contiguous i64 tensors (L, 2) of (height, width)
  /// and, if wanted, (L) on the device of value. On a GPU nothing waits for them, and only variants that take
  /// everything do. A level that does not lie in S then makes NaN of every output, and its points' gradients are 0.
  ConstTensorView spatial_shapes{};
  ConstTensorView level_starts{};
  Sampling sampling = Sampling::bilinear;
  /// Forward: attention_weights are logits. Their softmax over all points of a query and head is what weighs.
  bool softmax = false;
  /// Forward: (N, Lq, L, 2) or (N, Lq, L, 4), f16, bf16, f32 or f64, any strides (0 along L for one point for all
  /// levels). When given, sampling_locations are offsets, as the linear layer of Deformable DETR makes them, and
  ///   location = reference + offset / (width, height)                            with (x, y)
  ///   location = reference xy + offset / points of the level * (w, h) * offset_scale   with a box (x, y, w, h)
  ConstTensorView reference_points{};
  /// Finite. RT-DETRv2 and D-FINE call it decoder_offset_scale.
  double offset_scale = 0.5;
  /// Forward: (N, S) u8. Pixels whose entry is not 0 count as 0, whatever they hold.
  ConstTensorView padding_mask{};
  /// Forward: every level of value has a border of one pixel, so that S is the sum of (height + 2) * (width + 2), and
  /// level_start_index and padding_mask count these pixels. The border means 0 and is never used, whatever it holds.
  bool bordered_value = false;
  std::string variant{};  // name of a variant; empty: the best one for the problem
  /// Backward on a GPU: the same bits from run to run, at some cost. On the CPU that is always so.
  bool deterministic = false;
  /// GPU: programmatic dependent launch. The kernel may start before the one in front of it on the stream has ended,
  /// and waits for it before it reads anything. The CPU variants ignore it.
  bool dependent_launch = false;
  Stream stream = nullptr;
  /// GPU: gives the memory that more than 16 levels and backward passes need. A plan asks it with `stream` when it is
  /// made and gives the memory back when it is destroyed; runs on another stream must then come after that one.
  Allocator allocator{};
};

/// output[n, q, m, :] = sum over levels l and points p of attention_weights[n, q, m, l, p] *
///                      sample(value[n, level l, m, :], sampling_locations[n, q, m, l, p, :])
///
/// value (N, S, M, D): f16, bf16, f32 or f64, any strides. levels: L shapes whose areas add up to S.
/// sampling_locations (N, Lq, M, L, P, 2): (x, y) with 0 and 1 at the outer edges of the level, f16, bf16, f32 or f64.
/// attention_weights (N, Lq, M, L, P): f16, bf16, f32 or f64. output (N, Lq, M * D): dtype of value, or f32 where that
/// is f16 or bf16. The pixel coordinate is x * width - 0.5, y * height - 0.5 (align_corners = false); outside the level
/// the value is 0. Coordinates, bilinear weights and sums are f32 (f64 when value is f64), rounded once at the end. A
/// sample whose location is not finite (as f32) is skipped, whatever its weight. Non-finite values go only to the
/// outputs that sample them with a bilinear weight above 0. A non-finite attention weight of a sample that is not
/// skipped makes the output non-finite. With options.softmax a NaN or +infinity among the logits of a query and head,
/// or nothing but -infinity, makes all of their weights NaN. Any N, Lq, M, D >= 0, any L, P >= 1, no alignment but that
/// of the elements; offsets are 64-bit. Throws Error: shape_mismatch, level_shapes_mismatch, bad_level_start,
/// empty_level, points_mismatch, bad_parameter, unsupported_dtype, dtype_mismatch, device_mismatch, bad_strides,
/// overlap, null_pointer, unknown_variant, variant_refuses, out_of_memory, and the device errors.
TMAOPS_API void ms_deform_attn(ConstTensorView value, std::span<const LevelShape> levels,
                               ConstTensorView sampling_locations, ConstTensorView attention_weights, TensorView output,
                               const MsDeformAttnOptions& options = {});

/// The same call with its checks and host work done once; run() of the plan only launches.
/// options.stream is for options.allocator alone.
TMAOPS_API Plan plan_ms_deform_attn(ConstTensorView value, std::span<const LevelShape> levels,
                                    ConstTensorView sampling_locations, ConstTensorView attention_weights,
                                    TensorView output, const MsDeformAttnOptions& options = {});

/// Bytes of device memory that ms_deform_attn() takes from its allocator for such a call, all pieces together; 0 on the
/// CPU. Errors as for ms_deform_attn().
TMAOPS_API std::size_t ms_deform_attn_workspace(ConstTensorView value, std::span<const LevelShape> levels,
                                                ConstTensorView sampling_locations, ConstTensorView attention_weights,
                                                TensorView output, const MsDeformAttnOptions& options = {});

/// The three gradients. A view that is not given is not computed. All are written (not accumulated into).
struct MsDeformAttnGradients {
  TensorView value{};               // (N, S, M, D), f32, or the dtype of value
  TensorView sampling_locations{};  // shape of sampling_locations, f32 (f64 when value is f64) or its dtype
  TensorView attention_weights{};   // shape of attention_weights, f32 (f64 when value is f64) or its dtype
};

/// Gradients of ms_deform_attn for grad_output (N, Lq, M * D). On the CPU the same bits for any number of threads; on a
/// GPU the order of the sums in the value's gradient varies unless options.deterministic is set.
/// The gradient of a skipped or outside sample is 0; with nearest sampling the location gradient is 0. Where a location
/// lies on a pixel, its gradient is the one to the right and down. grad_output: dtype of value, or f32. The output must
/// not share memory with an input. The CPU needs scratch of two maps of one head per thread; a GPU needs up to
/// 4 bytes per element of value for a value gradient that is not f32; when deterministic, 20 bytes per sample of 8
/// million samples or one image, or 8 per element of value. Takes no softmax, reference points, padding mask or border
/// (bad_parameter). Errors as for ms_deform_attn.
TMAOPS_API void ms_deform_attn_backward(ConstTensorView value, std::span<const LevelShape> levels,
                                        ConstTensorView sampling_locations, ConstTensorView attention_weights,
                                        ConstTensorView grad_output, const MsDeformAttnGradients& gradients,
                                        const MsDeformAttnOptions& options = {});

/// The same call with its checks and host work done once, scratch memory included; run() of the plan only launches.
/// Runs that share a plan must follow one another. options.stream is for options.allocator alone.
TMAOPS_API Plan plan_ms_deform_attn_backward(ConstTensorView value, std::span<const LevelShape> levels,
                                             ConstTensorView sampling_locations, ConstTensorView attention_weights,
                                             ConstTensorView grad_output, const MsDeformAttnGradients& gradients,
                                             const MsDeformAttnOptions& options = {});

/// Bytes of device memory that ms_deform_attn_backward() takes from its allocator, as for ms_deform_attn_workspace().
TMAOPS_API std::size_t ms_deform_attn_backward_workspace(ConstTensorView value, std::span<const LevelShape> levels,
                                                         ConstTensorView sampling_locations,
                                                         ConstTensorView attention_weights, ConstTensorView grad_output,
                                                         const MsDeformAttnGradients& gradients,
                                                         const MsDeformAttnOptions& options = {});

}  // namespace tmaops
