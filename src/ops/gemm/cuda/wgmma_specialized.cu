// Version 3: roles. What is new against version 2: a warp that does nothing but fetch, so that fetching never waits for
// a product; two consumer warpgroups, which get its warpgroup's registers (setmaxnreg) for 128 x 256 of D; a ring of
// 192 KiB; D written by the copy engine from each warp's own staging. One block per multiprocessor and tile.
// (256: 3.6 us instead of 4.4; 1024: 7.3 instead of 9.0; 4096: 211 instead of 220.)
#include "ops/gemm/cuda/specialized.cuh"
#include "ops/gemm/tiling.hpp"

namespace tmaops::ops::gemm::wgmma_specialized {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

template <class T, int n, Major a_major, Major b_major>
__global__ void __launch_bounds__(kSpecializedThreads, 1) kernel(const __grid_constant__ SpecializedJob job) {
  using Storage = SpecializedStorage<n>;
  constexpr int kStages = Storage::stages;
  Storage& shared = device::dynamic_shared<Storage>();
  device::let_next_kernel_start();
  const TilePosition tile(job.order);
  if (!tile.inside(job.order)) return;
  const int row = tile.row * kSpecializedRows;
  const int column = tile.column * n;
  const int batch = static_cast<int>(blockIdx.z);
  const int warp = device::warp_index();
  if (threadIdx.x == 0) {
    device::prefetch_tensor_map(&job.map_a);
    device::prefetch_tensor_map(&job.map_b);
    shared.ring.init(1, kConsumerWarps);
  }
  __syncthreads();
  device::wait_for_previous_kernel();

  if (warp < 4) {
    device::decrease_registers<kProducerRegisters>();
    if (warp == 0 && device::elect_one()) {
      device::Producer<kStages> producer(shared.ring);
#pragma unroll 1
      for (int k_tile = 0; k_tile < job.k_tiles; ++k_tile) {
        const int stage = producer.acquire();
        producer.expect(stage, sizeof(typename Storage::Stage));
        load_tile<a_major, kSpecializedRows>(shared.stage[stage].a, job.map_a, job.a, row, k_tile * kDepth, batch,
                                             producer.full(stage));
        load_tile<b_major, n>(shared.stage[stage].b, job.map_b, job.b, column, k_tile * kDepth, batch,
                              producer.full(stage));
      }
    }
  } else {
    device::increase_registers<kConsumerRegisters>();
    const int consumer_warp = warp - 4;
    device::Consumer<kStages> consumer(shared.ring);
    float sums[n / 2];
    multiply_tile<T, n, a_major, b_major>(sums, shared.stage, consumer, job.k_tiles, consumer_warp / 4, [&](int stage) {
      if (device::lane_index() == 0) consumer.release(stage);
    });
    finish_tile<n>(job, sums, shared.staging[consumer_warp], row + consumer_warp * kStagedRows, column, batch);
    if (device::lane_index() == 0) device::wait_stores_read();
  }
}

struct Prepared {
  SpecializedJob job;
  int columns;
};

}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) {
  if (Support support = supports_tensor_loads(problem, device); !support) return support;
  return supports_grid(problem, kSpecializedRows, 128);
}

std::shared_ptr<const void> prepare(const Problem& given, const Arguments& arguments) {
  const RowMajorCall call(given, arguments);
  const int columns = best_tiling("wgmma_specialized", call.problem, device_info(given.device).multiprocessors).columns;
  return std::make_shared<Prepared>(Prepared{make_specialized_job(call, columns, kSpecializedRows, columns), columns});
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const auto& prepared = *static_cast<const Prepared*>(arguments.prepared.get());
  const CurrentDevice current(problem.device.index);
  const LaunchConfig config{.grid = prepared.job.order.grid(problem.batch),
                            .block = dim3(kSpecializedThreads),
                            .shared_bytes = prepared.columns == 256 ? static_cast<int>(sizeof(SpecializedStorage<256>))
                                                                    : static_cast<int>(sizeof(SpecializedStorage<128>)),
                            .dependent = arguments.dependent_launch};
  with_kernel_types(problem, [&]<class T, Major a, Major b>() {
    if (prepared.columns == 256)
      launch_kernel<kernel<T, 256, a, b>>("gemm: wgmma_specialized", config, stream, prepared.job);
    else
      launch_kernel<kernel<T, 128, a, b>>("gemm: wgmma_specialized", config, stream, prepared.job);
  });
}

}  // namespace tmaops::ops::gemm::wgmma_specialized
