// Explicit vectors (Highway), chosen for the processor at run time. shared/driver.hpp has the frame.
//
// Per query and head: place and weights of all points lane by lane; then per point the channels of its four corners,
// for the four dot products with grad_output and for the four sums of grad_value; then the gradients of all points lane
// by lane from the dot products.
#include "ops/ms_deform_attn/backward/shared/driver.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/ms_deform_attn/backward/cpu/simd_backward/simd_backward.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::ms_deform_attn_backward::simd_backward::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Scratch rows of one query and head; one entry per point.
struct Rows {
  float* HWY_RESTRICT offset;  // int32 bits: upper left corner in the map, the dummy for a skipped point
  float* HWY_RESTRICT a;       // place between the corners, to the right
  float* HWY_RESTRICT b;       // and down
  float* HWY_RESTRICT mask;    // int32 bits: 1, 2, 4, 8 for the four corners inside the level
  float* HWY_RESTRICT weight;  // of the four corners for grad_value, 4 per point
  float* HWY_RESTRICT dots;    // 4 per point
};

Rows SplitScratch(float* scratch, std::size_t step) {
  return {.offset = scratch,
          .a = scratch + step,
          .b = scratch + 2 * step,
          .mask = scratch + 3 * step,
          .weight = scratch + 4 * step,
          .dots = scratch + 8 * step};
}

template <bool kNearest>
void Locate(const KernelArguments<float>& call, const Rows& rows) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const MapTables<float>& tables = *call.tables;
  const auto one = hn::Set(d, 1.0F);
  const auto half = hn::Set(d, 0.5F);
  const auto zero = hn::Zero(d);
  const auto channels = hn::Set(di, static_cast<std::int32_t>(tables.channels));
  const auto dummy = hn::Set(di, tables.dummy);
  for (std::size_t k = 0; k < call.end - call.begin; k += hn::Lanes(d)) {
    const std::size_t point = call.begin + k;
    hn::Vec<decltype(d)> x;
    hn::Vec<decltype(d)> y;
    hn::LoadInterleaved2(d, call.xy + 2 * k, x, y);
    const auto attention = hn::LoadU(d, call.attention + k);
    const auto width = hn::LoadU(d, tables.width.data() + point);
    const auto height = hn::LoadU(d, tables.height.data() + point);
    const auto base = hn::LoadU(di, tables.base.data() + point);
    const auto pitch = hn::LoadU(di, tables.pitch.data() + point);
    auto left = zero;
    auto top = zero;
    auto a = zero;
    auto b = zero;
    auto keep = hn::And(hn::IsFinite(x), hn::IsFinite(y));
    if constexpr (kNearest) {
      left = hn::Clamp(hn::Floor(hn::MulAdd(x, width, half)), zero, hn::Sub(width, one));
      top = hn::Clamp(hn::Floor(hn::MulAdd(y, height, half)), zero, hn::Sub(height, one));
    } else {
      const auto u = hn::MulSub(x, width, half);
      const auto t = hn::MulSub(y, height, half);
      const auto outside = hn::Set(d, -1.0F);
      keep = hn::And(hn::And(hn::Gt(u, outside), hn::Lt(u, width)), hn::And(hn::Gt(t, outside), hn::Lt(t, height)));
      left = hn::Floor(u);
      top = hn::Floor(t);
      a = hn::IfThenElseZero(keep, hn::Sub(u, left));
      b = hn::IfThenElseZero(keep, hn::Sub(t, top));
    }
    const auto offset =
        hn::Add(base, hn::Add(hn::Mul(hn::ConvertTo(di, top), pitch), hn::Mul(hn::ConvertTo(di, left), channels)));
    hn::StoreU(hn::BitCast(d, hn::IfThenElse(hn::RebindMask(di, keep), offset, dummy)), d, rows.offset + k);
    const auto weight = hn::IfThenElseZero(keep, attention);
    if constexpr (kNearest) {
      hn::StoreInterleaved4(weight, zero, zero, zero, d, rows.weight + 4 * k);
      hn::StoreU(hn::BitCast(d, hn::IfThenElseZero(hn::RebindMask(di, keep), hn::Set(di, 1))), d, rows.mask + k);
      continue;
    }
    const auto in_left = hn::And(keep, hn::Ge(left, zero));
    const auto in_right = hn::And(keep, hn::Lt(hn::Add(left, one), width));
    const auto in_top = hn::Ge(top, zero);
    const auto in_bottom = hn::Lt(hn::Add(top, one), height);
    const auto bit = [&](auto mask, std::int32_t value)
                         HWY_ATTR { return hn::IfThenElseZero(hn::RebindMask(di, mask), hn::Set(di, value)); };
    const auto mask = hn::Or(hn::Or(bit(hn::And(in_top, in_left), 1), bit(hn::And(in_top, in_right), 2)),
                             hn::Or(bit(hn::And(in_bottom, in_left), 4), bit(hn::And(in_bottom, in_right), 8)));
    const auto upper = hn::Mul(weight, hn::Sub(one, b));
    const auto lower = hn::Mul(weight, b);
    const auto not_a = hn::Sub(one, a);
    hn::StoreU(a, d, rows.a + k);
    hn::StoreU(b, d, rows.b + k);
    hn::StoreU(hn::BitCast(d, mask), d, rows.mask + k);
    hn::StoreInterleaved4(hn::Mul(upper, not_a), hn::Mul(upper, a), hn::Mul(lower, not_a), hn::Mul(lower, a), d,
                          rows.weight + 4 * k);
  }
}

/// Writes the four sums over lanes of the four vectors.
template <class D, class V>
void StoreSums(D d, V s0, V s1, V s2, V s3, float* HWY_RESTRICT to) {
#if HWY_TARGET == HWY_SCALAR
  to[0] = hn::GetLane(s0);
  to[1] = hn::GetLane(s1);
  to[2] = hn::GetLane(s2);
  to[3] = hn::GetLane(s3);
  (void)d;
#else
  // Within each block of four lanes: two interleavings leave [s0 s1 s2 s3], then the blocks are added.
  const hn::RepartitionToWide<D> dw;
  const auto s01 = hn::Add(hn::InterleaveLower(d, s0, s1), hn::InterleaveUpper(d, s0, s1));
  const auto s23 = hn::Add(hn::InterleaveLower(d, s2, s3), hn::InterleaveUpper(d, s2, s3));
  const auto w01 = hn::BitCast(dw, s01);
  const auto w23 = hn::BitCast(dw, s23);
  const auto sums =
      hn::Add(hn::BitCast(d, hn::InterleaveLower(dw, w01, w23)), hn::BitCast(d, hn::InterleaveUpper(dw, w01, w23)));
  if constexpr (hn::MaxLanes(d) == 4) {
    hn::StoreU(sums, d, to);
  } else {
    const hn::Half<D> dh;
    const auto folded = hn::Add(hn::LowerHalf(dh, sums), hn::UpperHalf(dh, sums));
    if constexpr (hn::MaxLanes(dh) == 4) {
      hn::StoreU(folded, dh, to);
    } else {
      const hn::Half<decltype(dh)> dq;
      hn::StoreU(hn::Add(hn::LowerHalf(dq, folded), hn::UpperHalf(dq, folded)), dq, to);
    }
  }
#endif
}

/// Dot products and sums of all points; kVectors vectors of channels, or any number when it is 0.
template <std::size_t kVectors, std::size_t kCorners>
void Channels(const KernelArguments<float>& call, const Rows& rows) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const MapTables<float>& tables = *call.tables;
  const auto channels = static_cast<std::size_t>(tables.channels);
  const std::size_t vectors = kVectors > 0 ? kVectors : channels / lanes;
  const float* g = call.grad_output;
  // The compiler cannot know that grad_value does not overlap it; few channels stay in registers.
  hn::Vec<decltype(d)> kept[kVectors > 0 ? kVectors : 1];
  for (std::size_t v = 0; v < kVectors; ++v) kept[v] = hn::LoadU(d, g + v * lanes);
  const auto grad_vector = [&](std::size_t v) HWY_ATTR {
    if constexpr (kVectors > 0)
      return kept[v];
    else
      return hn::LoadU(d, g + v * lanes);
  };
  for (std::size_t k = 0; k < call.end - call.begin; ++k) {
    std::int32_t offset = 0;
    hwy::CopyBytes<4>(rows.offset + k, &offset);
    const std::ptrdiff_t pitch = tables.pitch[call.begin + k];
    if (call.value != nullptr) {
      const float* v0 = call.value + offset;
      const float* v1 = v0 + channels;
      const float* v2 = v0 + pitch;
      const float* v3 = v2 + channels;
      auto s0 = hn::Zero(d);
      auto s1 = hn::Zero(d);
      auto s2 = hn::Zero(d);
      auto s3 = hn::Zero(d);
      for (std::size_t v = 0; v < vectors; ++v) {
        const auto grad = grad_vector(v);
        s0 = hn::MulAdd(grad, hn::LoadU(d, v0 + v * lanes), s0);
        if constexpr (kCorners == 1) continue;
        s1 = hn::MulAdd(grad, hn::LoadU(d, v1 + v * lanes), s1);
        s2 = hn::MulAdd(grad, hn::LoadU(d, v2 + v * lanes), s2);
        s3 = hn::MulAdd(grad, hn::LoadU(d, v3 + v * lanes), s3);
      }
      StoreSums(d, s0, s1, s2, s3, rows.dots + 4 * k);
    }
    if (call.grad_value != nullptr) {
      const auto add = [&](float* to, float weight) HWY_ATTR {
        const auto w = hn::Set(d, weight);
        for (std::size_t v = 0; v < vectors; ++v)
          hn::StoreU(hn::MulAdd(w, grad_vector(v), hn::LoadU(d, to + v * lanes)), d, to + v * lanes);
      };
      float* to = call.grad_value + offset;
      add(to, rows.weight[4 * k]);
      if constexpr (kCorners == 1) continue;
      add(to + channels, rows.weight[4 * k + 1]);
      add(to + pitch, rows.weight[4 * k + 2]);
      add(to + pitch + static_cast<std::ptrdiff_t>(channels), rows.weight[4 * k + 3]);
    }
  }
}

/// Gradients of the points from the dot products.
template <bool kNearest>
void Finish(const KernelArguments<float>& call, const Rows& rows) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto zero = hn::Zero(d);
  for (std::size_t k = 0; k < call.end - call.begin; k += hn::Lanes(d)) {
    hn::Vec<decltype(d)> c0;
    hn::Vec<decltype(d)> c1;
    hn::Vec<decltype(d)> c2;
    hn::Vec<decltype(d)> c3;
    hn::LoadInterleaved4(d, rows.dots + 4 * k, c0, c1, c2, c3);
    const auto mask = hn::BitCast(di, hn::LoadU(d, rows.mask + k));
    const auto inside = [&](std::int32_t bits, auto vector) HWY_ATTR {
      const auto set = hn::Ne(hn::And(mask, hn::Set(di, bits)), hn::Zero(di));
      return hn::IfThenElseZero(hn::RebindMask(d, set), vector);
    };
    if constexpr (kNearest) {
      hn::StoreU(inside(1, c0), d, call.grad_attention + k);
      hn::StoreInterleaved2(zero, zero, d, call.grad_xy + 2 * k);
      continue;
    }
    c0 = inside(1, c0);
    c1 = inside(2, c1);
    c2 = inside(4, c2);
    c3 = inside(8, c3);
    const auto a = hn::LoadU(d, rows.a + k);
    const auto b = hn::LoadU(d, rows.b + k);
    const auto one = hn::Set(d, 1.0F);
    const auto not_a = hn::Sub(one, a);
    const auto not_b = hn::Sub(one, b);
    // A corner of bilinear weight 0 is left out, so that its value may be anything.
    const auto part = [&](auto bilinear, auto c)
                          HWY_ATTR { return hn::IfThenElseZero(hn::Ne(bilinear, zero), hn::Mul(bilinear, c)); };
    hn::StoreU(hn::Add(hn::Add(part(hn::Mul(not_a, not_b), c0), part(hn::Mul(a, not_b), c1)),
                       hn::Add(part(hn::Mul(not_a, b), c2), part(hn::Mul(a, b), c3))),
               d, call.grad_attention + k);
    const std::size_t point = call.begin + k;
    const auto attention = hn::LoadU(d, call.attention + k);
    const auto width = hn::Mul(attention, hn::LoadU(d, call.tables->width.data() + point));
    const auto height = hn::Mul(attention, hn::LoadU(d, call.tables->height.data() + point));
    const auto gx = hn::Mul(width, hn::MulAdd(not_b, hn::Sub(c1, c0), hn::Mul(b, hn::Sub(c3, c2))));
    const auto gy = hn::Mul(height, hn::MulAdd(not_a, hn::Sub(c2, c0), hn::Mul(a, hn::Sub(c3, c1))));
    const auto keep = hn::RebindMask(d, hn::Ne(mask, hn::Zero(di)));
    hn::StoreInterleaved2(hn::IfThenElseZero(keep, gx), hn::IfThenElseZero(keep, gy), d, call.grad_xy + 2 * k);
  }
}

template <bool kNearest>
void KernelOf(const KernelArguments<float>& call) {
  constexpr std::size_t kCorners = kNearest ? 1 : 4;
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  const std::size_t step = hwy::RoundUpTo(call.end - call.begin, kPointPadding);
  const Rows rows = SplitScratch(call.scratch, step);
  Locate<kNearest>(call, rows);
  switch (static_cast<std::size_t>(call.tables->channels) / lanes) {
    case 1:
      Channels<1, kCorners>(call, rows);
      break;
    case 2:
      Channels<2, kCorners>(call, rows);
      break;
    case 4:
      Channels<4, kCorners>(call, rows);
      break;
    default:
      Channels<0, kCorners>(call, rows);
  }
  if (call.value != nullptr) Finish<kNearest>(call, rows);
}

void Kernel(const KernelArguments<float>& call) {
  if (call.sampling == Sampling::nearest)
    KernelOf<true>(call);
  else
    KernelOf<false>(call);
}

Driver<float>::Kernel KernelPointer() { return &Kernel; }

}  // namespace tmaops::ops::ms_deform_attn_backward::simd_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tmaops::ops::ms_deform_attn_backward::simd_backward {

HWY_EXPORT(KernelPointer);

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.forward.value_dtype == DType::f64) return Support::no("computes in f32, the value is f64");
  if (!MapTables<float>::fits(problem.forward)) return Support::no("the map of one head has 2^31 elements or more");
  return Support::yes();
}

void run(const Problem& problem, const Arguments& arguments) {
  Driver<float>(problem, arguments, HWY_DYNAMIC_DISPATCH(KernelPointer)()).run();
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return cpu_work(run, problem, arguments);
}

}  // namespace tmaops::ops::ms_deform_attn_backward::simd_backward
#endif
