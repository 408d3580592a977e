// One kernel per function of the device layer; device_layer_test reads the machine code and looks for the instructions
// named here, so a function that became a no-op fails without a GPU. The line's form is read by sass_check.py.
#include <cuda.h>

#include "device/approximate.cuh"
#include "device/barrier.cuh"
#include "device/bulk_copy.cuh"
#include "device/cluster.cuh"
#include "device/cp_async.cuh"
#include "device/fence.cuh"
#include "device/l2.cuh"
#include "device/matrix.cuh"
#include "device/mma.cuh"
#include "device/tensor_copy.cuh"
#include "device/vector.cuh"
#include "device/warp.cuh"
#include "device/wgmma.cuh"

namespace {
using namespace tmaops::device;  // NOLINT(google-build-using-namespace)

struct Storage {
  alignas(1024) unsigned char tile[4096];
  Barrier barrier;
};

#define EXPECT_SASS(instructions, name, ...)                                                                           \
  extern "C" __global__ void sass_##name(unsigned char* global, unsigned n, const __grid_constant__ CUtensorMap map) { \
    Storage& shared = dynamic_shared<Storage>();                                                                       \
    (void)shared, (void)global, (void)n, (void)map;                                                                    \
    __VA_ARGS__                                                                                                        \
  }

EXPECT_SASS("SYNCS", init_barrier, init_barrier(shared.barrier, n);)
EXPECT_SASS("SYNCS", arrive, arrive(shared.barrier);)
EXPECT_SASS("SYNCS", arrive_expect_bytes, arrive_expect_bytes(shared.barrier, n);)
EXPECT_SASS("!MEMBAR,!CCTL", arrive_at, arrive_at(shared.barrier, n);)
EXPECT_SASS("SYNCS", test_wait, if (test_wait(shared.barrier, n)) global[0] = 1;)
EXPECT_SASS("SYNCS", try_wait, if (try_wait(shared.barrier, n)) global[0] = 1;)
EXPECT_SASS("SYNCS,BRA,!MEMBAR,!CCTL", wait, wait(shared.barrier, n);)
EXPECT_SASS("BAR", sync_threads, sync_threads<1>(64);)
EXPECT_SASS("BAR", arrive_threads, arrive_threads<1>(64);)
EXPECT_SASS("FENCE", fence_async_shared, fence_async_shared();)
EXPECT_SASS("ELECT", elect_one, if (elect_one()) global[n] = 1;)
EXPECT_SASS("REDUX", warp_sum, global[0] = static_cast<unsigned char>(warp_sum(n + threadIdx.x));)
EXPECT_SASS("SHFL", group_sum, global[0] = static_cast<unsigned char>(group_sum<8>(n + threadIdx.x));)
EXPECT_SASS("ACQBULK", wait_for_previous_kernel, wait_for_previous_kernel();)
EXPECT_SASS("PREEXIT", let_next_kernel_start, let_next_kernel_start();)
EXPECT_SASS("UCGABAR_ARV", cluster_arrive, cluster_arrive();)
EXPECT_SASS("UCGABAR_ARV,!MEMBAR", cluster_arrive_relaxed, cluster_arrive_relaxed();)
EXPECT_SASS("UCGABAR_WAIT", cluster_wait, cluster_wait();)
EXPECT_SASS("UCGABAR_ARV,UCGABAR_WAIT", cluster_sync, cluster_sync();)
EXPECT_SASS("STAS", store_async, store_async(shared.tile, make_uint4(n, n, n, n), shared.barrier, 1);)

EXPECT_SASS("UBLKCP", bulk_load, bulk_load(shared.tile, global, n, shared.barrier);)
EXPECT_SASS("UBLKCP", bulk_store, bulk_store(global, shared.tile, n);)
EXPECT_SASS("UBLKPF", bulk_prefetch, bulk_prefetch(global, n);)
EXPECT_SASS("UBLKPF", bulk_prefetch_hint, bulk_prefetch(global, n, CacheHint::evict_first);)
EXPECT_SASS("UTMACMDFLUSH", commit_stores, commit_stores();)
EXPECT_SASS("DEPBAR", wait_stores_read, wait_stores_read<1>();)

EXPECT_SASS("UTMALDG", tensor_load_1d, tensor_load(shared.tile, &map, {1}, shared.barrier);)
EXPECT_SASS("UTMALDG", tensor_load_2d, tensor_load(shared.tile, &map, {1, 2}, shared.barrier);)
EXPECT_SASS("UTMALDG", tensor_load_3d, tensor_load(shared.tile, &map, {1, 2, 3}, shared.barrier);)
EXPECT_SASS("UTMALDG", tensor_load_4d, tensor_load(shared.tile, &map, {1, 2, 3, 4}, shared.barrier);)
EXPECT_SASS("UTMALDG", tensor_load_5d, tensor_load(shared.tile, &map, {1, 2, 3, 4, 5}, shared.barrier);)
EXPECT_SASS("UTMALDG", load_1d_hint, tensor_load(shared.tile, &map, {1}, shared.barrier, CacheHint::evict_last);)
EXPECT_SASS("UTMALDG", load_2d_hint, tensor_load(shared.tile, &map, {1, 2}, shared.barrier, CacheHint::evict_last);)
EXPECT_SASS("UTMALDG", load_3d_hint, tensor_load(shared.tile, &map, {1, 2, 3}, shared.barrier, CacheHint::evict_last);)
EXPECT_SASS("UTMALDG", load_4d_hint,
            tensor_load(shared.tile, &map, {1, 2, 3, 4}, shared.barrier, CacheHint::evict_last);)
EXPECT_SASS("UTMALDG", load_5d_hint,
            tensor_load(shared.tile, &map, {1, 2, 3, 4, 5}, shared.barrier, CacheHint::evict_last);)
EXPECT_SASS("UTMALDG", multicast_3d, tensor_load_multicast(shared.tile, &map, {1, 2, 3}, shared.barrier, 3);)
EXPECT_SASS("UTMALDG", multicast_1d_hint,
            tensor_load_multicast(shared.tile, &map, {1}, shared.barrier, 3, CacheHint::evict_first);)
EXPECT_SASS("UTMALDG", multicast_2d_hint,
            tensor_load_multicast(shared.tile, &map, {1, 2}, shared.barrier, 3, CacheHint::evict_first);)
EXPECT_SASS("UTMALDG", multicast_3d_hint,
            tensor_load_multicast(shared.tile, &map, {1, 2, 3}, shared.barrier, 3, CacheHint::evict_first);)
EXPECT_SASS("UTMALDG", multicast_4d_hint,
            tensor_load_multicast(shared.tile, &map, {1, 2, 3, 4}, shared.barrier, 3, CacheHint::evict_first);)
EXPECT_SASS("UTMALDG", multicast_5d_hint,
            tensor_load_multicast(shared.tile, &map, {1, 2, 3, 4, 5}, shared.barrier, 3, CacheHint::evict_first);)
EXPECT_SASS("UTMASTG", tensor_store_1d, tensor_store(&map, {1}, shared.tile);)
EXPECT_SASS("UTMASTG", tensor_store_5d, tensor_store(&map, {1, 2, 3, 4, 5}, shared.tile);)
EXPECT_SASS("UTMAPF", tensor_prefetch_1d_hint, tensor_prefetch(&map, {1}, CacheHint::evict_first);)
EXPECT_SASS("UTMAPF", tensor_prefetch_2d_hint, tensor_prefetch(&map, {1, 2}, CacheHint::evict_first);)
EXPECT_SASS("UTMAPF", tensor_prefetch_3d_hint, tensor_prefetch(&map, {1, 2, 3}, CacheHint::evict_first);)
EXPECT_SASS("UTMAPF", tensor_prefetch_4d_hint, tensor_prefetch(&map, {1, 2, 3, 4}, CacheHint::evict_first);)
EXPECT_SASS("UTMAPF", tensor_prefetch_5d_hint, tensor_prefetch(&map, {1, 2, 3, 4, 5}, CacheHint::evict_first);)
EXPECT_SASS("UTMAPF", evict_first_of, tensor_prefetch(&map, {1}, evict_first_of(1.0F / static_cast<float>(n)));)
EXPECT_SASS("UTMACCTL", prefetch_tensor_map, prefetch_tensor_map(&map);)

EXPECT_SASS("LDGSTS", copy_async_16, copy_async_16(shared.tile, global, n);)
EXPECT_SASS("LDGSTS", copy_async_small, copy_async_small<8>(shared.tile, global);)
EXPECT_SASS("LDGDEPBAR", commit_copies, copy_async_16(shared.tile, global); commit_copies();)
EXPECT_SASS("DEPBAR", wait_copies, copy_async_16(shared.tile, global); commit_copies(); wait_copies<0>();)

EXPECT_SASS("LDG.128,STG.128", load_16, store_16(global, load_16(global + 64));)
EXPECT_SASS("LDG.128,STG.128", load_l2, store_16_l2(global, load_l2(reinterpret_cast<const uint4*>(global + 64)));)
EXPECT_SASS("LDG.128,STG.128", load_16_once, store_16_streaming(global, load_16_once(global + 64));)
EXPECT_SASS("LDG,STG", load_now, auto* to = reinterpret_cast<unsigned*>(global); to[0] = load_now(to + 64);)
EXPECT_SASS("RED", add_16_float, add_16(reinterpret_cast<float*>(global), make_float4(1.0F, 2.0F, 3.0F, 4.0F));)
EXPECT_SASS("RED", add_16_half, add_16(reinterpret_cast<__half*>(global), make_uint4(n, n, n, n));)
EXPECT_SASS("RED", add_16_bfloat, add_16(reinterpret_cast<__nv_bfloat16*>(global), make_uint4(n, n, n, n));)

EXPECT_SASS("MUFU", reciprocal, auto* to = reinterpret_cast<float*>(global); to[0] = reciprocal(to[64]);)
EXPECT_SASS("MUFU", power_of_two, auto* to = reinterpret_cast<float*>(global); to[0] = power_of_two(to[64]);)
EXPECT_SASS("MUFU", reciprocal_root, auto* to = reinterpret_cast<float*>(global); to[0] = reciprocal_root(to[64]);)

EXPECT_SASS("LDSM", load_matrices, unsigned m[4]; load_matrices(m, shared_address(shared.tile + 16 * threadIdx.x));
            global[0] = m[3] & 1;)
EXPECT_SASS("LDSM", load_matrices_transposed, unsigned m[4];
            load_matrices_transposed(m, shared_address(shared.tile + 16 * threadIdx.x)); global[0] = m[3] & 1;)
EXPECT_SASS("HMMA", multiply_add, float d[4] = {}; const unsigned a[4] = {n, n, n, n}; const unsigned b[2] = {n, n};
            multiply_add<__half>(d, a, b); multiply_add<__nv_bfloat16>(d, a, b); global[0] = d[0] > d[3];)
EXPECT_SASS("LDS", load_shared, global[0] = load_shared(shared_address(shared.tile) + 4 * n) & 1;)
EXPECT_SASS("STSM", store_matrices, unsigned m[4] = {n, n, n, n}; store_matrices(shared.tile + 16 * threadIdx.x, m);)

// Registers change hands only in a kernel whose block size is known.
extern "C" __global__ void __launch_bounds__(384, 1) sass_set_registers(float* global) {
  if (warp_index() < 4) {
    decrease_registers<24>();
  } else {
    increase_registers<240>();
    global[threadIdx.x] = 1.0F;
  }
}  // EXPECT_SASS("USETMAXREG", set_registers,

EXPECT_SASS("HGMMA,WARPGROUP.ARRIVE|WARPGROUP,WARPGROUP.DEPBAR|WARPGROUP", wgmma_shared,
            Wgmma<__half, 16>::Accumulators d;
            const OperandDescriptor a = operand_descriptor<Swizzle::b128>(shared.tile, 16, 1024); wgmma_fence();
            Wgmma<__half, 16>::multiply(d, a, a, false); wgmma_commit(); wgmma_wait<0>();
            reinterpret_cast<float*>(global)[threadIdx.x] = d[0] + d[1] + d[2] + d[3];)
}  // namespace
