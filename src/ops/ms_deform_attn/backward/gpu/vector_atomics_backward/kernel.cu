// Version 2: adds to warp_atomics_backward four channels per thread, so that a corner of 32 f32 channels is one 16-byte
// addition by each of eight threads (red.global.add.v4.f32); the threads of an item load one point each, coalesced, and
// pass them round by shuffles; and each writes the gradients of the point it loaded.
#include "ops/ms_deform_attn/backward/shared/item_order.cuh"
#include "ops/ms_deform_attn/backward/shared/value_sums.cuh"

namespace tmaops::ops::ms_deform_attn_backward::vector_atomics_backward {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

template <class Value>
__global__ void __launch_bounds__(kBackwardThreads, 3)
    kernel(const __grid_constant__ BackwardCall call, const ItemOrder order, const int lane_bits) {
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  const Call& in = call.inputs;
  const int lanes = 1 << lane_bits;
  const int part = device::lane_index() & (lanes - 1);
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kBackwardWarps + device::warp_index())
                             << (5 - lane_bits);
  if (first >= in.items) return;
  const std::int64_t number = first + (device::lane_index() >> lane_bits);
  const bool there = number < in.items;
  const Item item = order.item(in, static_cast<std::uint32_t>(min(number, in.items - 1)));
  const int d = part * kFour;
  const Value* value = static_cast<const Value*>(in.value.data) + in.value.at(item.n, 0, item.m) + d;
  float* sums = static_cast<float*>(const_cast<void*>(call.sums.data)) + call.sums.at(item.n, 0, item.m) + d;
  const bool wanted = there && call.sums.data != nullptr;

  float gradient[kFour];
  const std::int64_t gradient_at = in.output.at(item.n, item.q, item.m) + d;
  if (call.grad_output == DType::f32)
    load_four(static_cast<const float*>(in.output.data) + gradient_at, gradient);
  else
    load_four(static_cast<const Value*>(in.output.data) + gradient_at, gradient);

  const std::int64_t location_row = in.locations.row(item.n, item.q, item.m);
  const std::int64_t weight_row = in.weights.row(item.n, item.q, item.m);
  for (int l = 0; l < in.level_count; ++l) {
    const DeviceLevel& level = in.levels[l];
    const Value* map = value + level.value_at;
    float* map_sums = sums + level.first_pixel * call.sums.row;
    const int points = static_cast<int>(level.points);
    for (int p0 = 0; p0 < points; p0 += lanes) {
      const int mine = p0 + part;
      Point3 own;
      if (mine < points)
        own = load_point<AnyType>(in, location_row + level.location_at + mine * in.locations.point,
                                  weight_row + level.weight_at + mine * in.weights.point);
      PointSums own_sums;
      for (int p = p0; p < min(points, p0 + lanes); ++p) {
        const float weight = __shfl_sync(0xffffffffu, own.weight, p - p0, lanes);
        const Footprint where = footprint(__shfl_sync(0xffffffffu, own.x, p - p0, lanes),
                                          __shfl_sync(0xffffffffu, own.y, p - p0, lanes), level, in.nearest);
        const std::int64_t pixel = static_cast<std::int64_t>(where.row) * level.width + where.column;
        float corner[4][kFour] = {};
#pragma unroll
        for (int k = 0; k < 4; ++k)
          if (where.has(k)) load_four(map + (pixel + k / 2 * level.width + k % 2) * in.value.row, corner[k]);
        float c[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          c[k] = gradient[0] * corner[k][0];
#pragma unroll
          for (int i = 1; i < kFour; ++i) c[k] = fmaf(gradient[i], corner[k][i], c[k]);
          if (!where.has(k)) c[k] = 0;
          if (!wanted || !where.has(k)) continue;
          const float scale = weight * where.bilinear(k);
          device::add_16(map_sums + (pixel + k / 2 * level.width + k % 2) * call.sums.row,
                         float4{scale * gradient[0], scale * gradient[1], scale * gradient[2], scale * gradient[3]});
        }
        PointSums made = point_sums(where, c);
        for (int offset = lanes / 2; offset > 0; offset /= 2) {
          made.weight += __shfl_xor_sync(0xffffffffu, made.weight, offset);
          made.x += __shfl_xor_sync(0xffffffffu, made.x, offset);
          made.y += __shfl_xor_sync(0xffffffffu, made.y, offset);
        }
        if (p == mine) {
          own_sums = made;  // all 0 where the point is skipped
          if (where.inside == 0) own.weight = 0;
        }
      }
      if (there && mine < points) write_point(call, item, l, mine, level, own.weight, own_sums);
    }
  }
}

/// log2 of the threads of an item, -1 when there is no such power of two.
int thread_bits(const Problem& problem) {
  for (int bits = 0; bits <= 5; ++bits)
    if (problem.forward.channels == kFour << bits) return bits;
  return -1;
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.deterministic && problem.grad_value)
    return Support::no("adds in any order, deterministic sums are asked for");
  if (Support support = supports_items(problem); !support) return support;
  if (Support support = supports_f32_and_host_levels(problem.forward); !support) return support;
  if (thread_bits(problem) < 0) return Support::no("needs 4, 8, 16, 32, 64 or 128 channels");
  const ms_deform_attn::Problem& forward = problem.forward;
  if (!forward.dense_channels || forward.row_alignment < 16)
    return Support::no("needs channels next to each other, at multiples of 16 bytes");
  if (!forward.dense_pairs) return Support::no("needs x and y next to each other, at multiples of their size");
  if (forward.levels.size() > kInlineLevels)
    return Support::no("needs at most " + std::to_string(kInlineLevels) + " levels");
  if (forward.points > INT32_MAX / 2) return Support::no("needs less than 2^30 sampling points per query");
  return Support::yes();
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  const int bits = thread_bits(problem);
  return atomic_work(
      kSite, problem, arguments, {.aligned = true}, [&]<class Value>(Work& work, const BackwardCall& call, Value*) {
        work.add(kernel<Value>, one_group_each(call.inputs.items, kBackwardThreads, bits, arguments.dependent_launch),
                 call, item_order(problem.forward), bits);
      });
}

}  // namespace tmaops::ops::ms_deform_attn_backward::vector_atomics_backward
