// The operators for C, and for every language that can call C. docs/c.md shows a first program.
//
// A function that returns int returns 0 when it has done its work, else the number of an error of tmaops/errors.def:
// 12 for E012, which is tmaops_error_dtype_mismatch here. tmaops_last_error() then has the error's parts, and outputs
// hold nothing useful. Every function may be called from any thread, and from several at once.
//
// Tensors and options are read during the call and may be gone after it; only a plan goes on using the memory that
// its tensors point to. A pointer that is said to be optional may be null. Integers stand for false (0) and true.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tmaops/export.hpp"
#include "tmaops/options.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- tensors ---------------------------------------------------------------------------------------------------------

/// Codes of element types, as in DLPack (DLDataTypeCode).
enum {
  tmaops_dtype_int = 0,
  tmaops_dtype_uint = 1,
  tmaops_dtype_float = 2,
  tmaops_dtype_bfloat = 4,
  tmaops_dtype_bool = 6
};

/// An element type. tmaops has those of the macros below and bool, which it takes as u8.
typedef struct tmaops_dtype {
  uint8_t code;    // tmaops_dtype_float, ...
  uint8_t bits;    // of one element
  uint16_t lanes;  // 1
} tmaops_dtype;

/// Initialisers of tmaops_dtype: IEEE 754 binary64, binary32 and binary16, bfloat16, integers.
// clang-format off
#define TMAOPS_F64 {tmaops_dtype_float, 64, 1}
#define TMAOPS_F32 {tmaops_dtype_float, 32, 1}
#define TMAOPS_F16 {tmaops_dtype_float, 16, 1}
#define TMAOPS_BF16 {tmaops_dtype_bfloat, 16, 1}
#define TMAOPS_I64 {tmaops_dtype_int, 64, 1}
#define TMAOPS_I32 {tmaops_dtype_int, 32, 1}
#define TMAOPS_U8 {tmaops_dtype_uint, 8, 1}
// clang-format on

/// Types of devices, as in DLPack (DLDeviceType). Pinned memory (cuda_host) counts as memory of the host, managed
/// memory as memory of its GPU.
enum { tmaops_device_cpu = 1, tmaops_device_cuda = 2, tmaops_device_cuda_host = 3, tmaops_device_cuda_managed = 13 };

/// Where a tensor lives.
typedef struct tmaops_device {
  int32_t type;   // tmaops_device_cpu, ...
  int32_t index;  // ordinal of the GPU; not looked at for memory of the host
} tmaops_device;

/// A tensor somebody else owns. It has the layout of DLPack's DLTensor: a DLTensor* may be cast to a tmaops_tensor*.
/// Every function refuses, by the name of the argument: more than 8 or fewer than 0 dimensions, a negative extent
/// (shape_mismatch), another element type (unsupported_dtype), another type of device (bad_parameter), a shape that is
/// null with dimensions, or data that is null with elements (null_pointer), and sizes beyond 64 bits (size_overflow).
typedef struct tmaops_tensor {
  void* data;            // not written through where the tensor is an input
  tmaops_device device;  // all tensors of a call live on one device
  int32_t ndim;          // 0 to 8
  tmaops_dtype dtype;
  const int64_t* shape;    // ndim extents, outermost dimension first
  const int64_t* strides;  // ndim strides in elements; null: row-major without gaps
  uint64_t byte_offset;    // of the first element from data
} tmaops_tensor;

/// A CUDA stream (cudaStream_t) of the tensors' device; null is the default stream. A call on a GPU is enqueued there
/// and returns before it has run. Calls on the host return when the result is there, and do not look at the stream.
typedef void* tmaops_stream;

// --- errors ----------------------------------------------------------------------------------------------------------

/// The numbers of the errors: tmaops_error_dtype_mismatch = 12, and so for every name of tmaops/errors.def.
/// They never change. 0xE012 has the decimal digits of E012 in its last three hexadecimal ones.
enum {
#define TMAOPS_ERROR(number, name, exit_code, title, explanation, mend) \
  tmaops_error_##name = (0x##number >> 8 & 0xF) * 100 + (0x##number >> 4 & 0xF) * 10 + (0x##number & 0xF),
#include "tmaops/errors.def"
#undef TMAOPS_ERROR
  tmaops_done = 0
};

/// An error in its parts; a part with nothing to say is an empty text.
typedef struct tmaops_error {
  int code;             // 12; 0: no error
  const char* number;   // "E012", for `tmaops explain E012`
  const char* name;     // "dtype_mismatch"
  const char* where;    // "gemm: b", the operator and the argument
  const char* got;      // "bf16", what was found
  const char* needed;   // "f16, as a", what would have been right
  const char* mend;     // what to do about it
  const char* message;  // all of it in several lines
} tmaops_error;

/// The error of the last call in this thread that failed; it stays through calls that succeed. The pointer is never
/// null. What it points to is valid until the next call that fails in this thread.
TMAOPS_API const tmaops_error* tmaops_last_error(void);

// --- plans -----------------------------------------------------------------------------------------------------------

/// A call whose checks and host work are done once and which is run many times, with what lies in its tensors then.
/// Tensors' memory must outlive it; destroy it when the stream has come past its last run.
typedef struct tmaops_plan tmaops_plan;

/// Runs a plan. Nothing is allocated or waited for, so that it can be captured into a CUDA graph, which needs the plan
/// as long as it lives. A plan on the host is run by one thread at a time.
/// Fails with the errors of the device, and on the host with those about data (as target_outside).
TMAOPS_API int tmaops_plan_run(const tmaops_plan* plan, tmaops_stream stream);
/// Binds a plan to other memory with tensors of the same shapes, strides, types and device. `data`: the addresses of
/// the first elements (data + byte_offset) of the tensors of the function that made the plan, in its order, then of
/// those that its options named, in the order of the options; null ones and a c that is not read (beta 0) are left out.
/// On a GPU each is at a multiple of as many bytes, up to 128, as when the plan was made. Nothing may run the plan
/// meanwhile; runs that are enqueued keep their memory. Fails with the name of the tensor, and leaves the plan as it
/// was: bad_parameter (the number of addresses), null_pointer, misaligned, overlap.
TMAOPS_API int tmaops_plan_rebind(tmaops_plan* plan, const void* const* data, int64_t count);
/// Name of the variant that runs ("wgmma_latency"), and how it is set up ("64x32"; empty for a variant with a single
/// way). Valid as long as the plan; null for a plan that is null.
TMAOPS_API const char* tmaops_plan_variant(const tmaops_plan* plan);
TMAOPS_API const char* tmaops_plan_config(const tmaops_plan* plan);
/// Frees a plan; null is taken.
TMAOPS_API void tmaops_plan_destroy(tmaops_plan* plan);

// --- device memory ---------------------------------------------------------------------------------------------------
// Calls on a GPU need memory beside their tensors for packed rows, several channel groups, more than 16 levels, most
// backward passes of attention, and products of few tiles with a long K. No call waits for the device to get it, and
// every call can be captured into a CUDA graph.

/// An allocator, as a framework has one. Where options name none the library uses a memory pool of its own
/// (cudaMallocFromPoolAsync), which keeps at most 256 MiB of what was given back.
typedef struct tmaops_allocator {
  void* context;  // passed to both functions
  /// Returns `bytes` bytes (above 0) of memory of the tensors' device, at a multiple of 256 bytes, for work that is
  /// enqueued on `stream` from now on; null: there is none, and the call fails with device_out_of_memory.
  void* (*allocate)(void* context, size_t bytes, tmaops_stream stream);
  /// Takes memory back. Work that is enqueued on `stream` already may still use it.
  void (*release)(void* context, void* memory, size_t bytes, tmaops_stream stream);
} tmaops_allocator;

// --- options ---------------------------------------------------------------------------------------------------------
// Options begin with their size, so that later versions can add fields at the end. Make them with their initialiser:
//
//   tmaops_resample_options options = TMAOPS_RESAMPLE_OPTIONS;
//   options.interpolation = tmaops_interpolation_cubic;
//
// or fill them with zeros, which is every default but gemm's alpha and attention's offset_scale, and set size. Fields
// that this library does not know must be 0. Where options may be null, that means the defaults. All take:
//   variant           name of a variant ("portable"), or of one of its configurations ("wgmma_latency/64x32"); null or
//                     empty: the best for the problem. Fails with unknown_variant, or with variant_refuses, which says
//                     why.
//   dependent_launch  GPU: programmatic dependent launch. The kernel may start before the one in front of it on the
//                     stream has ended, and waits for it before it reads or writes.
// and those of calls that may need device memory:
//   allocator         GPU: where that comes from; null: the library's pool. A plan takes it on the default stream when
//                     it is made, and gives it back when it is destroyed: runs on a stream that does not wait for the
//                     default stream must come after what that stream was doing.
//
// Which options there are and what they mean stands in tmaops/options.h. An option of several words is one of the
// constants below: tmaops_activation_gelu, tmaops_outside_nan.

#define TMAOPS_CONSTANT(kind, word) tmaops_##kind##_##word,
enum { TMAOPS_WORDS_activation(TMAOPS_CONSTANT) };
enum { TMAOPS_WORDS_bias_axis(TMAOPS_CONSTANT) };
enum { TMAOPS_WORDS_sampling(TMAOPS_CONSTANT) };
enum { TMAOPS_WORDS_interpolation(TMAOPS_CONSTANT) };
enum { TMAOPS_WORDS_outside(TMAOPS_CONSTANT) };
enum { TMAOPS_WORDS_duplicates(TMAOPS_CONSTANT) };
#undef TMAOPS_CONSTANT

/// A time or a length of time, in the unit of the call's times: `seconds` beside f32 and f64 times, `nanoseconds`
/// beside i64 times. The other one is 0 (bad_parameter).
typedef struct tmaops_time {
  double seconds;
  int64_t nanoseconds;
} tmaops_time;

/// A run of neighbouring channels and how they are interpolated.
typedef struct tmaops_channel_group {
  int64_t first;
  int64_t count;
  int32_t interpolation;
} tmaops_channel_group;

// The fields that an option makes, and its default.
#define TMAOPS_FIELD(kind, name, torch, ...) TMAOPS_FIELD_##kind(name)
#define TMAOPS_INITIAL(kind, name, torch, ...) , __VA_ARGS__
#define TMAOPS_FIELD_f32(name) float name;
#define TMAOPS_FIELD_f64(name) double name;
#define TMAOPS_FIELD_i32(name) int32_t name;
#define TMAOPS_FIELD_flag(name) int32_t name;
#define TMAOPS_FIELD_word(name) int32_t name;
#define TMAOPS_FIELD_count(name) int64_t name;
#define TMAOPS_FIELD_text(name) const char* name;
#define TMAOPS_FIELD_tensor(name) const tmaops_tensor* name;
#define TMAOPS_FIELD_time(name) tmaops_time name;
#define TMAOPS_FIELD_allocator(name) const tmaops_allocator* name;
#define TMAOPS_FIELD_i64_list(name) const int64_t* name;
#define TMAOPS_FIELD_i32_list(name) const int32_t* name;
#define TMAOPS_FIELD_group_list(name) const tmaops_channel_group* name;
#define TMAOPS_FIELD_text_list(name) const char* const* name;
#define TMAOPS_FIELD_column_list(name) const tmaops_recording_column* name;

// --- gemm ------------------------------------------------------------------------------------------------------------

typedef struct tmaops_gemm_options {
  size_t size;
  TMAOPS_GEMM_OPTION_LIST(TMAOPS_FIELD)
} tmaops_gemm_options;
#define TMAOPS_GEMM_OPTIONS {sizeof(tmaops_gemm_options) TMAOPS_GEMM_OPTION_LIST(TMAOPS_INITIAL)}

/// D = activation(alpha * A B + beta * C + bias).
///
/// a: (M, K) or (batch, M, K), f16 or bf16, on the host f32 too. b: (K, N) or (batch, K, N), dtype of a.
/// d: (M, N) or (batch, M, N), f16, bf16 or f32. An a or b of two dimensions serves every batch of a d of three.
/// Products are accumulated in f32, the result is rounded once. Any sizes from 0 on and any strides of the inputs; the
/// elements of d must not overlap, nor share memory with a, b or bias.
/// Errors: shape_mismatch, unsupported_dtype, dtype_mismatch, device_mismatch, bad_strides, overlap, null_pointer,
/// misaligned, size_overflow, bad_parameter, unknown_variant, variant_refuses, out_of_memory, cannot_read and
/// bad_tuning (of the file `tuning`), and those of the device (E07x, E081).
TMAOPS_API int tmaops_gemm(const tmaops_tensor* a, const tmaops_tensor* b, const tmaops_tensor* d,
                           const tmaops_gemm_options* options, tmaops_stream stream);
/// Puts a plan of the same call into *plan, or null when it fails. Runs that share it must follow one another.
TMAOPS_API int tmaops_plan_gemm(const tmaops_tensor* a, const tmaops_tensor* b, const tmaops_tensor* d,
                                const tmaops_gemm_options* options, tmaops_plan** plan);
/// Puts into *bytes how much device memory the same call takes from its allocator; 0 on the host.
TMAOPS_API int tmaops_gemm_workspace(const tmaops_tensor* a, const tmaops_tensor* b, const tmaops_tensor* d,
                                     const tmaops_gemm_options* options, size_t* bytes);

// --- multi-scale deformable attention --------------------------------------------------------------------------------

/// Size of one feature level in pixels. An array of them is a row-major (L, 2) array of int64_t.
typedef struct tmaops_level_shape {
  int64_t height;
  int64_t width;
} tmaops_level_shape;

typedef struct tmaops_ms_deform_attn_options {
  size_t size;
  TMAOPS_MS_DEFORM_ATTN_OPTION_LIST(TMAOPS_FIELD)
} tmaops_ms_deform_attn_options;
#define TMAOPS_MS_DEFORM_ATTN_OPTIONS \
  {sizeof(tmaops_ms_deform_attn_options) TMAOPS_MS_DEFORM_ATTN_OPTION_LIST(TMAOPS_INITIAL)}

/// output[n, q, m, :] = sum over levels l and points p of attention_weights[n, q, m, l, p] *
///                      sample(value[n, level l, m, :], sampling_locations[n, q, m, l, p, :])
///
/// value: (N, S, M, D), f16, bf16, f32 or f64. levels: level_count (L) shapes, on the host, whose areas add up to S.
/// sampling_locations: (N, Lq, M, L, P, 2), (x, y) from 0 to 1 between the outer edges of the level, and
/// attention_weights: (N, Lq, M, L, P), each f16, bf16, f32 or f64. output: (N, Lq, M * D), dtype of value, or f32
/// beside f16 and bf16. Any strides of the inputs; any N, Lq, M, D from 0 on, L and P from 1 on. docs/ms_deform_attn.md
/// has every edge. Errors: shape_mismatch, level_shapes_mismatch, bad_level_start, empty_level, points_mismatch,
/// bad_parameter, unsupported_dtype, dtype_mismatch, device_mismatch, bad_strides, overlap, null_pointer, misaligned,
/// size_overflow, unknown_variant, variant_refuses, out_of_memory, and those of the device (E07x, E081).
TMAOPS_API int tmaops_ms_deform_attn(const tmaops_tensor* value, const tmaops_level_shape* levels, int64_t level_count,
                                     const tmaops_tensor* sampling_locations, const tmaops_tensor* attention_weights,
                                     const tmaops_tensor* output, const tmaops_ms_deform_attn_options* options,
                                     tmaops_stream stream);
/// Puts a plan of the same call into *plan, or null when it fails. Runs that share it must follow one another.
TMAOPS_API int tmaops_plan_ms_deform_attn(const tmaops_tensor* value, const tmaops_level_shape* levels,
                                          int64_t level_count, const tmaops_tensor* sampling_locations,
                                          const tmaops_tensor* attention_weights, const tmaops_tensor* output,
                                          const tmaops_ms_deform_attn_options* options, tmaops_plan** plan);

/// Puts into *bytes how much device memory the same call takes from its allocator, all pieces together; 0 on the host.
TMAOPS_API int tmaops_ms_deform_attn_workspace(const tmaops_tensor* value, const tmaops_level_shape* levels,
                                               int64_t level_count, const tmaops_tensor* sampling_locations,
                                               const tmaops_tensor* attention_weights, const tmaops_tensor* output,
                                               const tmaops_ms_deform_attn_options* options, size_t* bytes);

/// The three gradients; one that is null is not computed, the others are written, not added to.
typedef struct tmaops_ms_deform_attn_gradients {
  const tmaops_tensor* value;               // (N, S, M, D), f32 or dtype of value
  const tmaops_tensor* sampling_locations;  // its shape, f32 (f64 when value is f64) or its dtype
  const tmaops_tensor* attention_weights;   // the same
} tmaops_ms_deform_attn_gradients;

/// Gradients of ms_deform_attn for grad_output (N, Lq, M * D), dtype of value or f32. Errors as for ms_deform_attn;
/// bad_parameter for softmax, reference_points, padding_mask and bordered_value, which have no backward.
TMAOPS_API int tmaops_ms_deform_attn_backward(const tmaops_tensor* value, const tmaops_level_shape* levels,
                                              int64_t level_count, const tmaops_tensor* sampling_locations,
                                              const tmaops_tensor* attention_weights, const tmaops_tensor* grad_output,
                                              const tmaops_ms_deform_attn_gradients* gradients,
                                              const tmaops_ms_deform_attn_options* options, tmaops_stream stream);
/// Puts a plan of the same call into *plan, or null when it fails. Runs that share it must follow one another.
TMAOPS_API int tmaops_plan_ms_deform_attn_backward(const tmaops_tensor* value, const tmaops_level_shape* levels,
                                                   int64_t level_count, const tmaops_tensor* sampling_locations,
                                                   const tmaops_tensor* attention_weights,
                                                   const tmaops_tensor* grad_output,
                                                   const tmaops_ms_deform_attn_gradients* gradients,
                                                   const tmaops_ms_deform_attn_options* options, tmaops_plan** plan);

/// Puts into *bytes how much device memory the same call takes from its allocator, all pieces together; 0 on the host.
TMAOPS_API int tmaops_ms_deform_attn_backward_workspace(const tmaops_tensor* value, const tmaops_level_shape* levels,
                                                        int64_t level_count, const tmaops_tensor* sampling_locations,
                                                        const tmaops_tensor* attention_weights,
                                                        const tmaops_tensor* grad_output,
                                                        const tmaops_ms_deform_attn_gradients* gradients,
                                                        const tmaops_ms_deform_attn_options* options, size_t* bytes);

// --- resampling ------------------------------------------------------------------------------------------------------

/// Targets start, start + period, ..., count of them, the same for every trajectory. The period is above 0.
typedef struct tmaops_uniform_grid {
  tmaops_time start;
  tmaops_time period;
  int64_t count;
} tmaops_uniform_grid;

typedef struct tmaops_resample_options {
  size_t size;
  TMAOPS_RESAMPLE_OPTION_LIST(TMAOPS_FIELD)
} tmaops_resample_options;
#define TMAOPS_RESAMPLE_OPTIONS {sizeof(tmaops_resample_options) TMAOPS_RESAMPLE_OPTION_LIST(TMAOPS_INITIAL)}

/// output[b, t, :] = values[b, :, :] at target_times[b, t].
///
/// values: (B, S, D) or packed (rows, D), f16, bf16, f32 or f64. source_times: (B, S), (S) for all
/// trajectories, or packed (rows), f32 or f64 seconds or i64 nanoseconds, which must increase along S.
/// target_times: (B, T), (T) for all, or packed, dtype of source_times, in any order; or grid, T = grid->count: one of
/// the two is given and the other null. output: (B, T, D) or packed (rows, D), dtype of values. Any strides of the
/// inputs. On a GPU the call does not look at times and values: see tmaops_resample_violations. docs/resample.md has
/// every edge. Errors: shape_mismatch, unsupported_dtype, dtype_mismatch, device_mismatch, bad_strides, overlap,
/// null_pointer, misaligned, size_overflow, bad_parameter, times_not_sorted, times_not_finite, duplicate_times,
/// empty_trajectory, target_outside, time_precision, time_overflow, bad_quaternion, bad_offsets, unknown_variant,
/// variant_refuses, out_of_memory, and those of the device (E07x, E081).
TMAOPS_API int tmaops_resample(const tmaops_tensor* values, const tmaops_tensor* source_times,
                               const tmaops_tensor* target_times, const tmaops_uniform_grid* grid,
                               const tmaops_tensor* output, const tmaops_resample_options* options,
                               tmaops_stream stream);
/// Puts a plan of the same call into *plan, or null when it fails. What is said about times is said by its runs.
TMAOPS_API int tmaops_plan_resample(const tmaops_tensor* values, const tmaops_tensor* source_times,
                                    const tmaops_tensor* target_times, const tmaops_uniform_grid* grid,
                                    const tmaops_tensor* output, const tmaops_resample_options* options,
                                    tmaops_plan** plan);

/// Puts into *bytes how much device memory the same call takes from its allocator, all pieces together; 0 on the host.
TMAOPS_API int tmaops_resample_workspace(const tmaops_tensor* values, const tmaops_tensor* source_times,
                                         const tmaops_tensor* target_times, const tmaops_uniform_grid* grid,
                                         const tmaops_tensor* output, const tmaops_resample_options* options,
                                         size_t* bytes);

/// Gradient of resample to the values, for all but cubic, slerp, any and count: grad_values[b, s, :] is the sum over
/// targets of the weight of sample s times grad_output[b, t, :]. Written, not added to; the same bits from run to run.
///
/// grad_output: as output. grad_values: as values. Either may be f32 where the other is f16 or bf16. options.valid is
/// not used. Errors as for resample.
TMAOPS_API int tmaops_resample_backward(const tmaops_tensor* source_times, const tmaops_tensor* target_times,
                                        const tmaops_uniform_grid* grid, const tmaops_tensor* grad_output,
                                        const tmaops_tensor* grad_values, const tmaops_resample_options* options,
                                        tmaops_stream stream);
/// Puts a plan of the same call into *plan, or null when it fails.
TMAOPS_API int tmaops_plan_resample_backward(const tmaops_tensor* source_times, const tmaops_tensor* target_times,
                                             const tmaops_uniform_grid* grid, const tmaops_tensor* grad_output,
                                             const tmaops_tensor* grad_values, const tmaops_resample_options* options,
                                             tmaops_plan** plan);

/// Puts into *bytes how much device memory the same call takes from its allocator, all pieces together; 0 on the host.
TMAOPS_API int tmaops_resample_backward_workspace(const tmaops_tensor* source_times, const tmaops_tensor* target_times,
                                                  const tmaops_uniform_grid* grid, const tmaops_tensor* grad_output,
                                                  const tmaops_tensor* grad_values,
                                                  const tmaops_resample_options* options, size_t* bytes);

/// What tmaops_resample_violations counts: the index of each of its 7 counters.
enum {
  tmaops_violation_source_not_finite,  // stamps that are NaN or infinite
  tmaops_violation_source_not_sorted,  // stamps before the one in front of them
  tmaops_violation_source_duplicate,   // stamps at the time of the one in front of them, unless duplicates is last
  tmaops_violation_target_not_finite,
  tmaops_violation_target_outside,    // targets outside the samples, when outside is error
  tmaops_violation_empty_trajectory,  // trajectories with targets and without samples, unless outside is nan
  tmaops_violation_bad_offsets,       // offsets on a GPU that break a rule of theirs; nothing else is then counted
  tmaops_violation_count
};

/// counts[k] = how often the times break rule k, where they lie. counts: (7) i64, contiguous, on the device of the
/// times, or (6) without the last. Times, offsets and policies as for resample. Errors: shape_mismatch,
/// unsupported_dtype, dtype_mismatch, device_mismatch, bad_strides, overlap, null_pointer, bad_parameter, bad_offsets,
/// unknown_variant, variant_refuses, out_of_memory, and those of the device (E07x, E081).
TMAOPS_API int tmaops_resample_violations(const tmaops_tensor* source_times, const tmaops_tensor* target_times,
                                          const tmaops_uniform_grid* grid, const tmaops_tensor* counts,
                                          const tmaops_resample_options* options, tmaops_stream stream);

// --- recordings ------------------------------------------------------------------------------------------------------
// Columns by name, with one time per row. The rules for their times, types and names are those of the command `tmaops
// resample` (docs/resample_command.md).

/// A column of a recording, or an array that has no row per time.
typedef struct tmaops_recording_column {
  const char* name;
  /// Element type as numpy writes it: "<f2" "<f4" "<f8" "|i1" "<i2" "<i4" "<i8" "|u1" "<u2" "<u4" "<u8" "|b1" "<M8[s]"
  /// (ms, us, ns) "<U12" "|S12"; "bf16"; "utf8", text of one dimension; or "rows", elements of any other type, which
  /// the caller keeps: in a result stands the number of the row to take, or -1 for none, as int64. Their data is
  /// null, or int64: for each row the number of the first row with an equal element. Give these of rows of text, which
  /// may be names of signals.
  const char* type;
  const void* data;      // row-major, on the host
  const int64_t* shape;  // its first extent is the number of rows
  int64_t dimensions;
  const int64_t* text_offsets;       // of "utf8": where each text begins in data, and where the last one ends
  const char* const* channel_names;  // optional, of two dimensions: a name for each number of a row
  int64_t missing;                   // of "rows" and whole numbers: elements without a value
  int64_t source;                    // in a result: the given column that it comes from, or -1
} tmaops_recording_column;

typedef struct tmaops_recording_options {
  size_t size;
  TMAOPS_RECORDING_OPTION_LIST(TMAOPS_FIELD)
} tmaops_recording_options;
#define TMAOPS_RECORDING_OPTIONS {sizeof(tmaops_recording_options) TMAOPS_RECORDING_OPTION_LIST(TMAOPS_INITIAL)}

/// What the columns are: the times and their unit, the interpolation of every column, quaternions, angles.
typedef struct tmaops_recording_rules tmaops_recording_rules;
/// A recording at other times.
typedef struct tmaops_recording_result tmaops_recording_result;

/// Decides the rules of columns. `columns` holds the times too, and may hold the first episodes of a data set alone.
/// Of the targets hz alone is looked at: what that rate cannot hold is a warning. Errors: those of the command, as
/// array_missing, times_not_sorted, duplicate_times, bad_column_mode, warnings_refused.
TMAOPS_API int tmaops_recording_decide(const tmaops_recording_column* columns, int64_t count,
                                       const tmaops_recording_options* options, tmaops_recording_rules** rules);
/// The rules as JSON: "time" {"name", "index", "form", "unit", "chosen_by", "unit_by", ...}, "columns" [{"name",
/// "mode", "reason", "index", "first", "count"}], "quaternions", "slerp" [[[index, channel] of four]], "notes" and
/// "warnings" [{"id", "text"}]. Valid as long as they.
TMAOPS_API const char* tmaops_recording_rules_report(const tmaops_recording_rules* rules);
TMAOPS_API void tmaops_recording_rules_destroy(tmaops_recording_rules* rules);

/// Resamples columns, by rules that were decided for columns of the same names, types and widths, or where `rules` is
/// null by those of these columns. Options are the ones that the rules were decided with, but for targets and offsets.
/// Afterwards the result refers to the data of the given arrays without a row per time, and to no others.
TMAOPS_API int tmaops_recording_resample(const tmaops_recording_rules* rules, const tmaops_recording_column* columns,
                                         int64_t count, const tmaops_recording_options* options,
                                         tmaops_recording_result** result);
/// The columns: the times in their own form, those that were given or chosen, the offsets of episodes where a column
/// had them, arrays without a row per time, and "valid" (|b1) where targets can have no data.
TMAOPS_API const tmaops_recording_column* tmaops_recording_result_columns(const tmaops_recording_result* result,
                                                                          int64_t* count);
/// The first rows of the episodes, and the number of rows.
TMAOPS_API const int64_t* tmaops_recording_result_offsets(const tmaops_recording_result* result, int64_t* count);
/// As for rules, with "samples", "episodes", "targets", "rows", "outside", "gaps", "missing" and more.
TMAOPS_API const char* tmaops_recording_result_report(const tmaops_recording_result* result);
TMAOPS_API void tmaops_recording_result_destroy(tmaops_recording_result* result);

/// Not 0 where a column of this name may be the times or the mask of rows with data, so that its text is looked at.
/// Other columns of text may be given as "rows".
TMAOPS_API int tmaops_recording_reads_text(const char* name);

// --- what this library has -------------------------------------------------------------------------------------------
// Lists are read by index from 0 on; behind the last entry is null. What the pointers lead to is never freed.

/// For example "1.2.3".
TMAOPS_API const char* tmaops_version(void);
/// Git revision, 12 digits, with "-dirty" when the sources differed from it; "unknown" outside a checkout.
TMAOPS_API const char* tmaops_revision(void);

/// Operators in alphabetical order, backward passes apart: "gemm", "ms_deform_attn", "ms_deform_attn_backward", ...
TMAOPS_API const char* tmaops_operator_at(int64_t index);

/// A variant of an operator.
typedef struct tmaops_variant {
  const char* name;         // "onednn"
  const char* description;  // one line
  const char* arch;         // "any", "sm80", "sm90", "sm90a"
  const char* missing;      // why it was left out of this build, and how to get it; empty: it is there
  int32_t device_type;      // tmaops_device_cpu or tmaops_device_cuda
  int32_t version;          // number on the operator's ladder; 0: none
} tmaops_variant;

/// Variants of an operator, best first, reference last; null too for an unknown operator (unknown_variant is then the
/// last error).
TMAOPS_API const tmaops_variant* tmaops_variant_at(const char* op, int64_t index);

/// An option of an operator: a line of tmaops/options.h.
typedef struct tmaops_option {
  const char* name;
  const char* kind;          // "f32", "word", ...
  const char* torch;         // "none", "forward", "backward", "both"
  const char* const* words;  // of a word: what it may be, in the order of its numbers, then null
  int64_t offset;            // of its field
  double initial;            // of a number: its default
} tmaops_option;

/// Options of "gemm", "ms_deform_attn", "resample" or "recording", in the order of their struct; null too for another
/// name.
TMAOPS_API const tmaops_option* tmaops_option_at(const char* op, int64_t index);

/// An element type of tensors by its name: "f64", "f32", "f16", "bf16", "i64", "i32", "u8", "bool".
typedef struct tmaops_named_dtype {
  const char* name;
  tmaops_dtype dtype;
} tmaops_named_dtype;

/// Element types that tensors may have. Which an argument takes is said at its function.
TMAOPS_API const tmaops_named_dtype* tmaops_dtype_at(int64_t index);

// --- threads of calls on the host ------------------------------------------------------------------------------------

/// How many threads calls on the host use: what was set, else TMAOPS_NUM_THREADS, else the processors this process may
/// run on. Results do not depend on it. Error: bad_environment when TMAOPS_NUM_THREADS is no such number.
TMAOPS_API int tmaops_num_threads(int* count);
/// Overrides it for this process; 0 goes back. Error: bad_parameter when count is negative or above 1024.
TMAOPS_API int tmaops_set_num_threads(int count);

/// Runs part number `part` of a call.
typedef void (*tmaops_parallel_task)(const void* task_context, int part);
/// Runs task(task_context, part) once for every part from 0 to parts - 1, in any order, several at once or one after
/// the other, and returns when all have ended.
typedef void (*tmaops_parallel_for)(void* context, int parts, tmaops_parallel_task task, const void* task_context);
/// Lets calls on the host run on a framework's threads instead of their own: run(context, ...) is then called wherever
/// a call would use several threads. A null run goes back. In a forked child tmaops' own are used until it is set
/// there.
TMAOPS_API int tmaops_set_parallel_for(tmaops_parallel_for run, void* context);

#ifdef __cplusplus
}  // extern "C"
#endif
