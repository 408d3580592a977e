// A backward call as the kernels take it.
#pragma once

#include "core/checks.hpp"
#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/shared/device_shapes.hpp"

namespace tmaops::ops::ms_deform_attn_backward::gpu {

using namespace ms_deform_attn::gpu;  // NOLINT(google-build-using-namespace): what forward and backward share

inline constexpr int kBackwardThreads = 256;
inline constexpr int kBackwardWarps = kBackwardThreads / 32;
inline constexpr int kFour = 4;  // channels of a thread that adds, or sums, 16 bytes of f32

/// Offset of point p of level l behind [n, q, m].
struct PointOffsets {
  std::int64_t level = 0;
  std::int64_t point = 0;
  bool ragged = false;
  constexpr std::int64_t at(int l, std::int64_t p, const DeviceLevel& level_of) const {
    return ragged ? (level_of.last_point - level_of.points + p) * point : l * level + p * point;
  }
};

/// Passed to kernels by value.
struct BackwardCall {
  Call inputs{};  // `output` is grad_output
  DeviceShapes shapes{};
  DType grad_output = DType::f32;
  ChannelRows sums{};     // f32 (f64 for f64 values): the value's gradient, or scratch for it; null when not wanted
  PointRows locations{};  // gradients; null data when not wanted
  PointRows weights{};
  PointOffsets location_offsets{};
  PointOffsets weight_offsets{};
  // Deterministic sums: 64-bit integers (N, S, M, D), dense, and the two largest magnitudes they are scaled by.
  long long* fixed = nullptr;
  unsigned* largest = nullptr;  // of grad_output and of attention_weights, the bits of an f32
  int count_bits = 0;           // log2 of the most terms of one sum, so that it stays below 2^60 units
  std::int64_t length = 0;
  std::int64_t batch = 0;

  constexpr DeviceLevel level(int l) const { return shapes.level(inputs, l); }
};

/// The parts of a call that do not depend on how the value's gradient is summed.
BackwardCall backward_call(const Problem& problem, const Arguments& arguments);

/// log2, rounded up, of the most terms that a sum can have: a point adds to a pixel once.
int count_bits(const ms_deform_attn::Problem& problem);

/// Blocks of a kernel that goes round until so many threads have had their turn.
LaunchShape rounds(std::int64_t threads, Device device);

/// What every variant asks of items and levels.
Support supports_items(const Problem& problem);

}  // namespace tmaops::ops::ms_deform_attn_backward::gpu
