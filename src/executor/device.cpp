// The executor as a device: what core and tma ask of a GPU (core/work_device.hpp, core/device_info.hpp,
// core/cuda_launch.hpp, tma/driver.hpp).
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "core/cuda_launch.hpp"
#include "core/device_info.hpp"
#include "core/fail.hpp"
#include "core/work_device.hpp"
#include "executor/state.hpp"
#include "executor/tensor_map.hpp"
#include "tma/driver.hpp"

namespace tmaops {
namespace {

/// Few, so that persistent kernels have several tiles for each block of a small problem; enough for a cluster of eight.
constexpr int kMultiprocessors = 12;

/// A kernel that breaks a rule fails as one does that a GPU stops.
void check_findings(std::string_view where, std::uint64_t before) {
  const std::uint64_t found = executor::findings_so_far() - before;
  if (found == 0) return;
  fail(ErrorCode::kernel_breaks_rule, std::string(where), executor::findings_since(before),
       "a kernel that keeps the rules of docs/executor.md");
}

void run_kernel(std::string_view where, const LaunchShape& shape, KernelFunction kernel, void** parameters) {
  const std::uint64_t before = executor::findings_so_far();
  executor::run(where, shape, [=] { kernel.call(kernel.handle, parameters); });
  check_findings(where, before);
}

class RepeatedOnExecutor : public RepeatedWork {
 public:
  explicit RepeatedOnExecutor(Work work) : work_(std::move(work)) {}
  void run(Stream stream) const override {
    run_on_device(work_.device(), work_.site(), work_.steps(), stream, Dependence::as_asked);
  }
  void rebind(Work work) override { work_ = std::move(work); }

 private:
  Work work_;
};

}  // namespace

const DeviceInfo& cuda_device_info(Device device) {
  static const DeviceInfo info{.device = {DeviceType::cuda, 0},
                               .name = "executor (sm_90)",
                               .compute_capability = 90,
                               .multiprocessors = kMultiprocessors,
                               .shared_memory_per_block = 227 << 10,
                               .l2_bytes = 50 << 20,
                               .memory_bytes = std::int64_t{64} << 30};
  if (device.index != 0) fail(ErrorCode::bad_parameter, "device index", to_string(device), "0");
  return info;
}

int cuda_device_count() { return 1; }

void run_on_device(Device, const LaunchSite& site, std::span<const Work::Step> steps, Stream, Dependence dependence) {
  for (const Work::Step& step : steps) {
    if (const auto* memset = std::get_if<Work::Memset>(&step)) {
      if (const std::string wrong = executor::outside_global(memset->to, memset->bytes); !wrong.empty())
        fail(ErrorCode::internal, std::string(site.where), "a memset " + wrong, "memory of the device");
      std::memset(memset->to, memset->byte, memset->bytes);
      executor::note_memset(memset->to, memset->bytes);
      continue;
    }
    const auto& kernel = std::get<Work::Kernel>(step);
    LaunchShape shape = kernel.shape;
    // Behind a memset a launch waits for all that came before.
    const bool behind_kernel = &step != &steps.front() ? std::holds_alternative<Work::Kernel>(*(&step - 1))
                                                       : dependence != Dependence::not_the_first;
    shape.dependent = shape.dependent && behind_kernel;
    run_kernel(site.where, shape, kernel.function, kernel.parameters.addresses());
  }
}

void finish_on_device(Device device, const LaunchSite& site, std::span<const Work::Step> steps, Stream stream) {
  run_on_device(device, site, steps, stream, Dependence::as_asked);
  executor::forget_kernels();
}

std::unique_ptr<RepeatedWork> repeat_on_device(Work work) {
  return std::make_unique<RepeatedOnExecutor>(std::move(work));
}

void launch_by_runtime(std::string_view where, const LaunchShape& shape, Stream, KernelFunction kernel,
                       void** parameters) {
  run_kernel(where, shape, kernel, parameters);
}

void* allocate_on_device(Device, std::size_t bytes, Stream, std::string_view) { return executor::allocate(bytes); }
void release_on_device(Device, void* memory, Stream) noexcept { executor::release(memory); }
Stream stream_of_plans(Device) { return nullptr; }

namespace tma {

void load_driver(int device_index) { cuda_device_info({DeviceType::cuda, device_index}); }

DriverAnswer encode_unchecked(const TensorMapSpec& spec, TensorMap& map) {
  if (!check(spec, cuda_device_info({DeviceType::cuda, 0}).compute_capability).valid() || spec.address == 0)
    return {.code = 1, .name = "CUDA_ERROR_INVALID_VALUE"};
  executor::EncodedMap encoded{};
  encoded.magic = executor::EncodedMap::kMagic;
  encoded.address = spec.address;
  encoded.rank = static_cast<std::uint8_t>(spec.rank());
  for (std::size_t i = 0; i < spec.dims.size(); ++i) {
    encoded.last_index[i] = static_cast<std::uint32_t>(spec.dims[i] - 1);
    encoded.element_strides[i] = static_cast<std::uint8_t>(spec.element_strides.empty() ? 1 : spec.element_strides[i]);
    if (spec.mode == Mode::tiled) encoded.box[i] = static_cast<std::uint16_t>(spec.box[i]);
    if (i > 0) encoded.strides[i - 1] = static_cast<std::uint64_t>(spec.strides[i - 1]);
  }
  std::ranges::copy(spec.lower_corner, encoded.lower_corner);
  std::ranges::copy(spec.upper_corner, encoded.upper_corner);
  encoded.channels_per_pixel = static_cast<std::uint16_t>(spec.channels_per_pixel);
  encoded.pixels_per_column = static_cast<std::uint16_t>(spec.pixels_per_column);
  encoded.dtype = static_cast<std::uint8_t>(spec.dtype);
  encoded.interleave = static_cast<std::uint8_t>(spec.interleave);
  encoded.swizzle = static_cast<std::uint8_t>(spec.swizzle);
  encoded.promotion = static_cast<std::uint8_t>(spec.l2_promotion);
  encoded.fill = static_cast<std::uint8_t>(spec.fill);
  encoded.mode = static_cast<std::uint8_t>(spec.mode);
  map = {};
  std::memcpy(static_cast<void*>(&map), &encoded, sizeof(encoded));
  return {};
}

}  // namespace tma
}  // namespace tmaops
