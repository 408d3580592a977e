// A call of offsets from reference points and of logits. Kernels take it instead of Call where these are given, so that
// they cost the others nothing.
#pragma once

#include "ops/ms_deform_attn/forward/shared/definition.cuh"

namespace tmaops::ops::ms_deform_attn::gpu {

struct OffsetsCall : Call {
  PointRows reference{};  // x and y: `head` is the stride of levels, `axis` that of the two
};

template <class Point>
class Samples<Point, OffsetsCall, float> : public Samples<Point, Call> {
  using Stored = Samples<Point, Call>;

 public:
  __device__ __forceinline__ Samples(const OffsetsCall& call, const Item& item) : Stored(call, item), call_(call) {
    reference_ = call.reference.row(item.n, item.q, 0);
    // fmaxf passes over a NaN; the sum then is NaN, and with it every weight.
    each_logit([&](float logit) { largest_ = fmaxf(largest_, logit); });
    each_logit([&](float logit) { sum_ += expf(logit - largest_); });
  }
  __device__ __forceinline__ Point3 at(const DeviceLevel& level, int l, std::int64_t p) const {
    const Point3 stored = Stored::at(level, l, p);
    const std::int64_t x = reference_ + l * call_.reference.head;
    return {
        read_point<AnyType>(call_.reference, x) + stored.x / static_cast<float>(level.width),
        read_point<AnyType>(call_.reference, x + call_.reference.axis) + stored.y / static_cast<float>(level.height),
        expf(stored.weight - largest_) / sum_};
  }

 private:
  template <class Fn>
  __device__ __forceinline__ void each_logit(const Fn& fn) const {
    for (int l = 0; l < call_.level_count; ++l)
#pragma unroll 1
      for (std::int64_t p = 0; p < call_.levels[l].points; ++p) fn(Stored::at(call_.levels[l], l, p).weight);
  }
  const OffsetsCall& call_;
  std::int64_t reference_;
  float largest_ = -std::numeric_limits<float>::infinity();
  float sum_ = 0;
};

}  // namespace tmaops::ops::ms_deform_attn::gpu
