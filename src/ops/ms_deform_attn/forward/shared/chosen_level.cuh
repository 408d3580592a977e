// One of neighbouring levels, a different one for each thread of a warp.
#pragma once

#include "device/convert.cuh"
#include "ops/ms_deform_attn/shared/call.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

/// Its width is pitch - Call::border.
struct ChosenLevel {
  int start = 0;  // in units of 16 bytes
  int height = 0;
  int pitch = 0;
  int points = 0;
  std::int64_t location_at = 0;
  std::int64_t weight_at = 0;
  std::int64_t first_pixel = 0;  // in S
};

/// Level `number` of the `count` from `of` on. Its parts are chosen by selects: reading constant memory at addresses
/// that differ within a warp takes a turn for each.
template <class Value, int count>
__device__ __forceinline__ ChosenLevel choose_level(const DeviceLevel* of, int number) {
  static_assert(count == 1 || count == 3 || count == 4);
  const auto chosen = [&](auto part) {
    if constexpr (count == 1)
      return part(of[0]);
    else if constexpr (count == 3)
      return number == 0 ? part(of[0]) : (number == 1 ? part(of[1]) : part(of[2]));
    else
      return number < 2 ? (number == 0 ? part(of[0]) : part(of[1])) : (number == 2 ? part(of[2]) : part(of[3]));
  };
  constexpr int kVector = device::kPerVector<Value>;
  return {.start = chosen([](const DeviceLevel& level) { return static_cast<int>(level.value_at / kVector); }),
          .height = chosen([](const DeviceLevel& level) { return level.height; }),
          .pitch = chosen([](const DeviceLevel& level) { return level.pitch; }),
          .points = chosen([](const DeviceLevel& level) { return static_cast<int>(level.points); }),
          .location_at = chosen([](const DeviceLevel& level) { return level.location_at; }),
          .weight_at = chosen([](const DeviceLevel& level) { return level.weight_at; }),
          .first_pixel = chosen([](const DeviceLevel& level) { return level.first_pixel; })};
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
