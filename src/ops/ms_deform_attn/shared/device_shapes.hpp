// Level shapes and starts that only the device knows. Nobody has checked them: a level that does not lie in S has no
// pixels here.
#pragma once

#include "ops/ms_deform_attn/shared/call.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

struct DeviceShapes {
  const std::int64_t* shapes = nullptr;  // height and width of each level; null: the levels of the call are known
  const std::int64_t* starts = nullptr;  // of each level in S; null: one lies after the other
  std::int64_t length = 0;               // S, below 2^31

  /// Level l of a call. One that does not lie in S has height and width 0.
  constexpr DeviceLevel level(const Call& call, int l) const {
    DeviceLevel made = call.level(l);
    if (shapes == nullptr) return made;
    std::int64_t start = starts != nullptr ? starts[l] : 0;
    if (starts == nullptr)
      for (int before = 0; before < l && start <= length; ++before) start += pixels(call, before);
    if (start < 0 || start > length || pixels(call, l) > length - start) return made;
    made.height = static_cast<int>(shapes[2 * l]);
    made.width = static_cast<int>(shapes[2 * l + 1]);
    made.pitch = made.width + call.border;
    made.first_pixel = start + (call.border != 0 ? made.pitch + 1 : 0);
    made.value_at = made.first_pixel * call.value.row;
    return made;
  }

 private:
  /// Pixels of a level with its border; more than S for what is no shape.
  constexpr std::int64_t pixels(const Call& call, int l) const {
    const std::int64_t height = shapes[2 * l];
    const std::int64_t width = shapes[2 * l + 1];
    if (height < 1 || width < 1 || height > length || width > length ||
        height + call.border > length / (width + call.border))
      return length + 1;
    return (height + call.border) * (width + call.border);
  }
};

inline DeviceShapes device_shapes(const Problem& problem, const LevelViews& views) {
  if (!problem.levels_on_device) return {};
  return {static_cast<const std::int64_t*>(views.shapes.data), static_cast<const std::int64_t*>(views.starts.data),
          problem.length};
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
