// Reproduces the published "option A": the rows of a tile come by cp.async.bulk.tensor.2d through a tensor map of all
// rows of the call, {channels, samples}, as one box. Nothing of it was published but the instruction. All else is as in
// bulk_window, which copies the same rows by one bulk copy. It differs from the published lines in the barrier, since
// cuda::barrier's arrive_and_wait() does not wait for the bytes of a copy. A box has one size: near the end of a
// trajectory it may bring rows that nobody reads.
#include "device/tensor_copy.cuh"
#include "ops/resample/forward/shared/window_tile.cuh"
#include "tmaops/tensor_map.hpp"

namespace tmaops::ops::resample::tensor_window {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

struct Job {
  tma::TensorMap rows;
  Call call;
  Tile tile;
};

template <class Time, class Value>
__global__ void __launch_bounds__(kTileThreads) kernel(const __grid_constant__ Job job) {
  WindowStorage& shared = device::dynamic_shared<WindowStorage, kSite.smem>();
  run_window_tile<Time, Value>(
      shared, job.call, job.tile, [&](std::int64_t b, const Range& near, const RowBytes&, unsigned char* to) {
        const auto first = static_cast<int>(job.call.values.first(b) / job.call.channels) + near.first;
        device::arrive_expect_bytes(shared.rows_ready,
                                    static_cast<std::uint32_t>(job.tile.row_capacity * job.tile.chunks.count * 16));
        device::tensor_load<2>(to, &job.rows, {0, first}, shared.rows_ready);
      });
}

/// All rows of the values: those of trajectory b begin at its first element / channels.
tma::TensorMap map_of(const Problem& problem, const Arguments& arguments, const Tile& tile) {
  std::int64_t rows = problem.source;
  if (!problem.packed_source) rows += (problem.batch - 1) * problem.values_stride / problem.channels;
  const tma::ElementType type = tma::element_type(problem.values);
  tma::TensorMapSpec spec = tma::tiled_spec(type, {problem.channels, rows}, {problem.channels, tile.row_capacity});
  spec.address = reinterpret_cast<std::uintptr_t>(arguments.values.data);
  spec.l2_promotion = tma::L2Promotion::b128;
  return tma::encode(spec, problem.device.index);
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  constexpr int kMostBox = 256;  // rows
  Work work(kSite, problem.device, arguments.workspace);
  const Call call = device_call(work, problem, arguments);
  Tile tile = make_tile(problem, call.longest_target);
  tile.row_capacity = std::min(tile.row_capacity, kMostBox);
  const LaunchShape shape = window_launch(problem, arguments, call, tile);
  const tma::TensorMap rows = map_of(problem, arguments, tile);
  with_types(problem, [&]<class Time, class Value>(Time*, Value*) {
    work.add(kernel<Time, Value>, shape, Job{rows, call, tile});
  });
  return work;
}

}  // namespace tmaops::ops::resample::tensor_window
