// Reproduces the kernel of the published attention report that has the name TMA and is none: memcpy_async of
// cooperative groups, two stages of padded shared memory, the tiles of the next level under way while those of this one
// are added up, f16 arithmetic. The source was not published. memcpy_async becomes cp.async, which is written here as
// such because it can fill with zeros. cp.async of 8 bytes needs rows that are multiples of 8 bytes: they have CHANNELS
// + 4 values, where the report names CHANNELS + 2 for the kernel without asynchronous copies. The rest is as in
// `staged_padded`.
#include "device/cp_async.cuh"
#include "study/ms_deform_attn/shared/staged_halves.cuh"

namespace tmaops::ops::ms_deform_attn::staged_async {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 64;
constexpr int kWarps = kThreads / device::kWarpThreads;
constexpr Padding kPadding = Padding::four_channels;

struct Storage {
  HalfStage<kPadding> stage[kWarps][2];
};

__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Call call) {
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  HalfStage<kPadding>(&stages)[2] = device::dynamic_shared<Storage, kSite.smem>().stage[device::warp_index()];
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kWarps + device::warp_index()) * kStagedQueries;
  if (first >= call.items) return;
  const StagedItem item(call, first);
  const auto copy = [&](int l, const OwnSamples& samples, HalfStage<kPadding>& stage) {
    stage_level(call, call.levels[l], item, samples, stage,
                [](std::uint32_t* to, const std::uint32_t* from, bool there) {
                  device::copy_async_small<8>(to, from, there ? 8u : 0u);
                });
    device::commit_copies();
  };

  __half2 sum[4] = {};
  OwnSamples samples = own_samples(call, call.levels[0], item);
  copy(0, samples, stages[0]);
  for (int l = 0; l < call.level_count; ++l) {
    OwnSamples next;
    if (l + 1 < call.level_count) {
      next = own_samples(call, call.levels[l + 1], item);
      copy(l + 1, next, stages[(l + 1) % 2]);
      device::wait_copies<1>();
    } else {
      device::wait_copies<0>();
    }
    __syncwarp();  // the copies of all threads have arrived
    add_stage(sum, samples, stages[l % 2]);
    __syncwarp();  // all have read the stage before it is filled again
    samples = next;
  }
  if (item.number < call.items) store_half_sums(call, item.item, item.part * device::kPerVector<__half>, sum);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_half_arithmetic(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return half_work(kSite, kernel, kThreads, problem, arguments, sizeof(Storage));
}

}  // namespace tmaops::ops::ms_deform_attn::staged_async
