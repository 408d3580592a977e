// What the line of a GPU variant asks of a device, held against GPUs that are not there.
#include <gtest/gtest.h>

#include "core/registry.hpp"
#include "support/gpus.hpp"

namespace tmaops {
namespace {

using test::made_up_gpu;
using test::made_up_gpus;

VariantAttributes needing(int shared_memory, int least = -1) {
  return {.shared_memory = shared_memory, .least_shared_memory = least};
}

TEST(DeviceFit, kernels_with_wgmma_run_on_compute_capability_9_0_alone) {
  for (const DeviceInfo& device : made_up_gpus()) {
    const PretendedDevice pretended(device);
    const Support fit = fits_device("sm90a", needing(1024), device);
    EXPECT_EQ(fit.ok, device.compute_capability == 90) << device.name;
    EXPECT_TRUE(fit || fit.reason.starts_with("needs compute capability 9.0, made-up GPU")) << fit.reason;
  }
}

TEST(DeviceFit, kernels_with_tma_run_from_compute_capability_9_0_on) {
  for (const DeviceInfo& device : made_up_gpus()) {
    const PretendedDevice pretended(device);
    const Support fit = fits_device("sm90", needing(1024), device);
    EXPECT_EQ(fit.ok, device.compute_capability >= 90) << device.name;
    EXPECT_TRUE(fit || fit.reason.starts_with("needs compute capability 9.0 or newer")) << fit.reason;
  }
}

TEST(DeviceFit, all_other_kernels_run_from_compute_capability_8_0_on) {
  for (const DeviceInfo& device : made_up_gpus()) {
    const PretendedDevice pretended(device);
    EXPECT_TRUE(fits_device("sm80", needing(1024), device)) << device.name;
  }
  DeviceInfo older = made_up_gpu(80);
  older.compute_capability = 75;
  const PretendedDevice pretended(older);
  EXPECT_EQ(fits_device("sm80", needing(1024), older).reason,
            "needs compute capability 8.0 or newer, made-up GPU 80 has 7.5");
}

__attribute__((noinline)) void kernel_in_name_alone() {}

TEST(DeviceFit, a_dependent_launch_is_a_plain_one_where_kernels_do_not_wait) {
  for (const DeviceInfo& device : made_up_gpus()) {
    const PretendedDevice pretended(device);
    EXPECT_FALSE(has_dependent_launch(device) && device.compute_capability < 90) << device.name;
    for (const bool dependent : {false, true}) {
      Work work(LaunchSite("test"), device.device);
      work.add(kernel_in_name_alone, {.dependent = dependent});
      EXPECT_EQ(std::get<Work::Kernel>(work.steps().front()).shape.dependent, dependent && has_dependent_launch(device))
          << device.name;
    }
  }
}

TEST(DeviceFit, a_block_has_as_much_shared_memory_as_the_device_gives) {
  const DeviceInfo device = made_up_gpu(120);
  const PretendedDevice pretended(device);
  EXPECT_TRUE(fits_device("sm90", needing(101376), device));
  const Support fit = fits_device("sm90", needing(101377), device);
  EXPECT_FALSE(fit);
  EXPECT_EQ(fit.reason, "asks for 101377 bytes of shared memory per block, made-up GPU 120 has 101376");
  EXPECT_TRUE(fits_device("sm90", needing(101377), made_up_gpu(100)));
}

TEST(DeviceFit, a_line_with_smem_least_is_refused_only_where_no_problem_fits) {
  const DeviceInfo device = made_up_gpu(120);
  const PretendedDevice pretended(device);
  EXPECT_TRUE(fits_device("sm90", needing(204800, 101376), device));
  EXPECT_FALSE(fits_device("sm90", needing(204800, 101377), device));
}

TEST(DeviceFit, what_the_build_left_out_is_said_with_the_way_to_get_it) {
  const DeviceInfo unknown{.device = {DeviceType::cuda, 0}, .name = "GPU of tomorrow", .compute_capability = 990};
  const Support fit = fits_device("sm90", needing(0), unknown);
  EXPECT_FALSE(fit);
  EXPECT_NE(fit.reason.find("compiled for compute capability " + compiled_for()), std::string::npos) << fit.reason;
  EXPECT_NE(fit.reason.find("GPU of tomorrow has 99.0 (configure with -DTMAOPS_GPUS=ALL)"), std::string::npos)
      << fit.reason;
}

TEST(DeviceFit, a_pretended_device_is_what_device_info_says_while_it_lives) {
  const int before = cuda_device_count();
  {
    const PretendedDevice pretended(made_up_gpu(86));
    EXPECT_EQ(device_info({DeviceType::cuda, 0}).name, "made-up GPU 86");
    EXPECT_EQ(device_info({}).name, "CPU");
  }
  EXPECT_EQ(cuda_device_count(), before);
  EXPECT_FALSE(PretendedDevice::exists());
}

}  // namespace
}  // namespace tmaops
