// The options of the operators, and the words of those that are one of several: the only list of both.
//
// Made from it: the structs, initialisers and constants of tmaops.h, the enumerations of C++, how the C interface reads
// an option (src/c_api), how the torch operators do (python/torch), and, by tmaops_option_at(), the ctypes structs, the
// words and the torch schemas of the Python package. What a new option needs beside its line is a field of the same
// name in the operator's C++ options, the code that obeys it, and a parameter of the Python functions that take it.
//
//   word(kind, word)                     its number is its place
//   option(kind, name, torch, default)   zero by default, with few exceptions
// kind: f32, f64, i32, flag, word (one of the list of the same name), text, tensor, time, allocator; i64_list,
// i32_list, group_list, text_list and column_list, whose length is the next option, a count, or that of the levels.
// torch: which of the torch operators takes the option: none, forward, backward, both.
//
// Programs are compiled against the places of both: new ones stand at the end of their list.
#pragma once

// What lists take: a word as an enumerator, and as a text.
#define TMAOPS_ENUMERATOR(kind, word) word,
#define TMAOPS_TEXT(kind, word) #word,

// clang-format off

// --- gemm ------------------------------------------------------------------------------------------------------------

/// Applied element by element, in f32: gelu is the exact form x/2 (1 + erf(x / sqrt 2)), silu is x / (1 + exp(-x)).
#define TMAOPS_WORDS_activation(word) word(activation, none) word(activation, relu) word(activation, gelu) word(activation, silu)

/// Which index of D the bias runs along: N elements, one per column, as in a linear layer, or M, one per row.
#define TMAOPS_WORDS_bias_axis(word) word(bias_axis, column) word(bias_axis, row)

#define TMAOPS_GEMM_OPTION_LIST(option) \
  option(f32, alpha, none, 1.0F) \
  option(f32, beta, none, 0.0F) /* 0: c is not read */ \
  option(tensor, c, none, NULL) /* optional unless beta is not 0: shape of d, f16, bf16 or f32; may be d itself */ \
  option(tensor, bias, both, NULL) /* optional: (N) or (M), f16, bf16 or f32 */ \
  option(word, bias_axis, none, 0) \
  option(word, activation, both, 0) \
  option(flag, dependent_launch, none, 0) \
  option(text, variant, none, NULL) \
  option(text, tuning, none, NULL) /* GPU: file of measured choices; "off": none; null: the user's own, if any */ \
  option(allocator, allocator, none, NULL)

// --- multi-scale deformable attention --------------------------------------------------------------------------------

/// How a value is read at a fractional location: between the four pixels around it, zero outside; or the 'discrete' way
/// of RT-DETRv2, the pixel at column floor(x * width + 1/2) and row floor(y * height + 1/2), clamped to the level.
#define TMAOPS_WORDS_sampling(word) word(sampling, bilinear) word(sampling, nearest)

#define TMAOPS_MS_DEFORM_ATTN_OPTION_LIST(option) \
  option(i64_list, level_start_index, both, NULL) /* optional: L starts in S; null: the levels lie one after the other */ \
  /* Optional: L numbers of points. Then sampling_locations is (N, Lq, M, sum, 2), attention_weights (N, Lq, M, sum). */ \
  option(i32_list, points_per_level, both, NULL) \
  option(word, sampling, both, 0) \
  option(flag, softmax, forward, 0) /* forward: attention_weights are logits; their softmax over a query's and head's points weighs */ \
  /* Forward, optional: (N, Lq, L, 2) or (N, Lq, L, 4), f16, bf16, f32 or f64. Then sampling_locations are offsets: \
     location = reference + offset / (width, height)                                  with points (x, y) \
     location = reference xy + offset / points of the level * (w, h) * offset_scale   with boxes (x, y, w, h) */ \
  option(tensor, reference_points, forward, NULL) \
  option(tensor, padding_mask, none, NULL) /* forward, optional: (N, S) u8 or bool; pixels that are not 0 in it count as 0 */ \
  option(flag, bordered_value, none, 0) /* forward: every level of value lies in a border of one pixel that means 0 */ \
  option(flag, deterministic, backward, 0) /* backward on a GPU: the same bits from run to run; on the host always so */ \
  option(flag, dependent_launch, none, 0) \
  option(text, variant, none, NULL) \
  option(f64, offset_scale, forward, 0.5) /* of boxes */ \
  /* Optional, instead of levels (null, 0 of them) and level_start_index: contiguous i64 tensors (L, 2) of heights and \
     widths, and (L), on the device of value. Nothing waits for those on a GPU, which only variants that take everything \
     read; a level that does not lie in S then makes every output NaN, and its points' gradients 0. */ \
  option(tensor, spatial_shapes, both, NULL) \
  option(tensor, level_starts, both, NULL) /* optional beside spatial_shapes */ \
  option(allocator, allocator, none, NULL)

// --- resampling ------------------------------------------------------------------------------------------------------

/// How the value of a target is found. Between the samples around it: linear; previous, the last sample at or before it
/// (zero-order hold); next, the first at or after it; nearest, the earlier of two that are equally far; cubic, PCHIP
/// (Fritsch and Butland 1984, as scipy.interpolate.PchipInterpolator); slerp, unit quaternions (x, y, z, w), 4 channels
/// each, along the shortest arc. Over its interval of time, on the CPU alone: mean, by time, of the straight lines between
/// the samples; sum, min and max of the samples; any, 1 where one is neither 0 nor NaN; count of those that are not NaN;
/// lowpass, a windowed sinc with its cut-off at half the rate of the targets. Without a sample in their interval min, max
/// and any are as previous.
/// The interval of sum, min, max, any and count begins after the target before and ends with the target itself; the first
/// target has all that is before it too, and the last one all that is after it, so that nothing is lost. That of mean and
/// lowpass lies around the target, from halfway to the one before to halfway to the one after. The target before is the
/// one before in time, whatever the order of the array. docs/resample.md has the formulas.
#define TMAOPS_WORDS_interpolation(word) \
  word(interpolation, linear) word(interpolation, previous) word(interpolation, next) word(interpolation, nearest) \
  word(interpolation, cubic) word(interpolation, slerp) word(interpolation, mean) word(interpolation, sum) \
  word(interpolation, min) word(interpolation, max) word(interpolation, any) word(interpolation, count) \
  word(interpolation, lowpass)

/// What a target before the first or after the last sample gets. error: the call fails (on a GPU: NaN).
#define TMAOPS_WORDS_outside(word) word(outside, hold) word(outside, nan) word(outside, extrapolate) word(outside, error)

/// What two samples at one time mean: an error, or a step where the later sample wins.
#define TMAOPS_WORDS_duplicates(word) word(duplicates, error) word(duplicates, last)

#define TMAOPS_RESAMPLE_OPTION_LIST(option) \
  option(word, interpolation, both, 0) /* of all channels, unless there are groups */ \
  option(word, outside, both, 0) \
  option(word, duplicates, both, 0) \
  option(flag, dependent_launch, none, 0) \
  option(group_list, channel_groups, none, NULL) /* optional: groups that cover every channel once, in order */ \
  option(count, channel_group_count, none, 0) \
  option(time, max_gap, both, {0.0, 0}) /* samples further apart have nothing between them: NaN, invalid; 0: no limit */ \
  /* Packed trajectories, optional: B + 1 offsets, on the host, from 0 to the number of rows. values is then (rows, D) \
     and source_times (rows); with target_offsets target_times is (rows) and output (rows, D). */ \
  option(i64_list, source_offsets, both, NULL) \
  option(count, source_offset_count, none, 0) \
  option(i64_list, target_offsets, both, NULL) \
  option(count, target_offset_count, none, 0) \
  option(tensor, valid, none, NULL) /* optional output: (B, T) or (rows), u8 or bool; 0 where output is NaN by policy, else 1 */ \
  option(text, variant, none, NULL) \
  option(allocator, allocator, none, NULL) \
  /* Instead of source_offsets or target_offsets: contiguous i64 tensors (B + 1) on the device of values. On a GPU \
     nothing waits for them, and only variants that take everything do. Where one of the two does not begin at 0, \
     decreases somewhere or does not end at the number of rows, every output is NaN and invalid, and every gradient is \
     NaN. A plan keeps a copy of those on the host. Those on a GPU are read by each run, and tmaops_plan_rebind takes \
     them; runs of such a plan must follow one another. */ \
  option(tensor, source_offset_tensor, both, NULL) \
  option(tensor, target_offset_tensor, both, NULL) \
  option(tensor, values, backward, NULL) /* backward of min and max alone: the values of the forward pass, shape of grad_values */

// --- recordings ------------------------------------------------------------------------------------------------------

/// Texts are as the options of `tmaops resample` have them; null or empty: not given.
#define TMAOPS_RECORDING_OPTION_LIST(option) \
  option(f64, hz, none, 0) /* targets per second, from the first timestamp of each episode to its last; 0: targets are given */ \
  option(text, start, none, NULL) /* first and last target: seconds or ISO 8601 */ \
  option(text, end, none, NULL) \
  option(flag, align, none, 0) /* targets at multiples of the period */ \
  option(flag, sort, none, 0) /* rows by time, within each episode */ \
  option(flag, strict, none, 0) /* a warning is an error */ \
  option(flag, drop_gaps, none, 0) /* targets in gaps are left out, not invalid */ \
  option(f64, snap, none, 0) /* seconds within which a target takes a sample's values */ \
  option(f64, max_gap, none, 0) /* seconds; 0: no limit */ \
  option(text, columns, none, NULL) /* "x,y,z", "tx=p_x,*" */ \
  option(text_list, modes, none, NULL) /* "gripper=previous", "linear" */ \
  option(count, mode_count, none, 0) \
  option(text, outside, none, NULL) /* "hold", "nan" (the default), "extrapolate", "error", "drop" */ \
  option(text, duplicates, none, NULL) /* "error" (the default), "last" */ \
  option(text, time, none, NULL) /* name of the times */ \
  option(text, time_unit, none, NULL) /* "s", "ms", "us", "ns" */ \
  option(text, offsets_array, none, NULL) /* name of the column with the offsets of episodes */ \
  option(i64_list, offsets, none, NULL) /* of packed episodes: their first rows, and the number of rows; instead of a column */ \
  option(count, offset_count, none, 0) \
  option(column_list, targets, none, NULL) /* where hz is 0: one column of times, or the columns of a recording that has them */ \
  option(count, target_columns, none, 0) \
  option(flag, like, none, 0) /* not 0: these are a recording's; messages then speak of --like instead of --times */ \
  option(text, targets_name, none, NULL) /* of their times */ \
  option(text, targets_unit, none, NULL) \
  option(i64_list, target_offsets, none, NULL) /* optional: the targets of each episode; else each has all */ \
  option(count, target_offset_count, none, 0) \
  option(text, where, none, NULL) /* what messages call the recording; null: "recording" */ \
  option(f64, offset, none, 0) /* seconds that are added to the times, but not to the targets */ \
  option(text, group, none, NULL) /* name of the column each of whose values is an episode */

// clang-format on
