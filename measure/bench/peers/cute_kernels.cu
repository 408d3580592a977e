// Versions 1 and 2 of the published gemm, written with CuTe as it was: 128 x 128 tiles of D, 64 of K per stage, three
// stages. Version 1 fetches with cp.async of all threads, version 2 with TMA of one thread. Every warp multiplies.
// Differs from the published one: version 2 takes a product of one tile.
#include <cutlass/arch/barrier.h>
#include <cutlass/cutlass.h>

#include <cute/tensor.hpp>
#include <type_traits>

#include "bench/peers/cutlass_kernels.hpp"

namespace tmaops::bench::cutlass_peer {
namespace {

using namespace cute;  // NOLINT(google-build-using-namespace): a file of CuTe's words
using cute::Layout;    // and not tmaops::Layout

using Half = cutlass::half_t;
using Barrier = cutlass::arch::ClusterTransactionBarrier;

constexpr int kStages = 3;
constexpr int kThreads = 256;
constexpr int kChunk = 8;  // elements of 16 bytes
using TileD = Shape<_128, _128>;
using TileOperand = Shape<_128, _64>;  // of A and of B, as M x K and N x K
constexpr int kStageBytes = 2 * 128 * 64 * static_cast<int>(sizeof(Half));

/// What follows from the mode: RC has both operands contiguous along K, CR along M and N.
template <bool k_major>
struct Mode {
  static constexpr GMMA::Major kMajor = k_major ? GMMA::Major::K : GMMA::Major::MN;
  using Atom = std::conditional_t<k_major, GMMA::Layout_K_SW128_Atom<Half>, GMMA::Layout_MN_SW128_Atom<Half>>;
  // Atoms that a box of TMA holds follow each other.
  using Order = std::conditional_t<k_major, Step<_1, _2, _3>, Step<_2, _1, _3>>;
  using Stages = decltype(tile_to_shape(Atom{}, Shape<_128, _64, Int<kStages>>{}, Order{}));
  // Each warpgroup has 64 rows of D.
  using Mma = decltype(make_tiled_mma(SM90_64x128x16_F32F16F16_SS<kMajor, kMajor>{}, Layout<Shape<_2, _1, _1>>{}));
  using Stride = std::conditional_t<k_major, cute::Stride<std::int64_t, _1>, cute::Stride<_1, std::int64_t>>;
  static Stride stride(std::int64_t leading) {
    if constexpr (k_major)
      return make_stride(leading, _1{});
    else
      return make_stride(_1{}, leading);
  }
  /// 16 bytes of each thread, in the order of memory.
  using Threads = std::conditional_t<k_major, Layout<Shape<_32, _8>, cute::Stride<_8, _1>>, Layout<Shape<_16, _16>>>;
  using Values = std::conditional_t<k_major, Layout<Shape<_1, _8>>, Layout<Shape<_8, _1>>>;
  using Copy = decltype(make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, Half>{}, Threads{}, Values{}));
};

/// A swizzle of 128 bytes repeats after 1,024.
template <bool k_major>
struct alignas(1024) Shared {
  alignas(1024) ArrayEngine<Half, cosize_v<typename Mode<k_major>::Stages>> a;
  alignas(1024) ArrayEngine<Half, cosize_v<typename Mode<k_major>::Stages>> b;
  std::uint64_t full[kStages];  // of version 2
};

template <bool k_major>
__device__ Shared<k_major>& shared_memory() {
  extern __shared__ __align__(1024) unsigned char memory[];
  return *reinterpret_cast<Shared<k_major>*>(memory);
}

/// The sums of a thread, and what they are multiplied from in each stage.
template <bool k_major, class TileOfD>
__device__ auto fragments(Shared<k_major>& shared, const TileOfD& tile) {
  using Stages = typename Mode<k_major>::Stages;
  const auto mma = typename Mode<k_major>::Mma{}.get_thread_slice(threadIdx.x);
  auto sums = mma.make_fragment_C(mma.partition_C(tile));
  clear(sums);
  return cute::make_tuple(sums,
                          mma.make_fragment_A(mma.partition_A(make_tensor(make_smem_ptr(shared.a.begin()), Stages{}))),
                          mma.make_fragment_B(mma.partition_B(make_tensor(make_smem_ptr(shared.b.begin()), Stages{}))));
}

/// Starts the products of a stage. They have ended after the next warpgroup_wait.
template <bool k_major, class A, class B, class Sums>
__device__ void multiply(const A& a, const B& b, int slot, Sums& sums) {
  typename Mode<k_major>::Mma mma;
  warpgroup_fence_operand(sums);
  warpgroup_arrive();
  gemm(mma, a(_, _, _, slot), b(_, _, _, slot), sums);
  warpgroup_commit_batch();
}

/// Waits for the last products, rounds the sums and stores them, two neighbours at a time.
template <bool k_major, class Sums, class TileOfD>
__device__ void store(Sums& sums, const TileOfD& tile) {
  warpgroup_wait<0>();
  warpgroup_fence_operand(sums);
  auto rounded = make_tensor_like<Half>(sums);
  CUTE_UNROLL
  for (int i = 0; i < size(sums); ++i) rounded(i) = Half(sums(i));
  auto to = typename Mode<k_major>::Mma{}.get_thread_slice(threadIdx.x).partition_C(tile);
  copy(AutoVectorizingCopyWithAssumedAlignment<32>{}, rounded, to);
}

__device__ auto tile_of_d(const Product& p) {
  const auto d =
      make_tensor(make_gmem_ptr(static_cast<Half*>(p.d)), make_shape(p.m, p.n), make_stride(p.leading_d, _1{}));
  return local_tile(d, TileD{}, make_coord(blockIdx.x, blockIdx.y));
}

template <bool k_major>
__global__ void __launch_bounds__(kThreads)
    by_cp_async(const Product p, typename Mode<k_major>::Stride stride_a, typename Mode<k_major>::Stride stride_b) {
  using Stages = typename Mode<k_major>::Stages;
  Shared<k_major>& shared = shared_memory<k_major>();
  const auto tile = tile_of_d(p);
  auto [sums, a, b] = fragments<k_major>(shared, tile);

  const auto whole_a = make_tensor(make_gmem_ptr(static_cast<const Half*>(p.a)), make_shape(p.m, p.k), stride_a);
  const auto whole_b = make_tensor(make_gmem_ptr(static_cast<const Half*>(p.b)), make_shape(p.n, p.k), stride_b);
  typename Mode<k_major>::Copy copy_chunks;
  const auto mine = copy_chunks.get_slice(threadIdx.x);
  const auto from_a = mine.partition_S(local_tile(whole_a, TileOperand{}, make_coord(blockIdx.x, _)));
  const auto from_b = mine.partition_S(local_tile(whole_b, TileOperand{}, make_coord(blockIdx.y, _)));
  auto to_a = mine.partition_D(make_tensor(make_smem_ptr(shared.a.begin()), Stages{}));
  auto to_b = mine.partition_D(make_tensor(make_smem_ptr(shared.b.begin()), Stages{}));
  const int steps = p.k / size<1>(TileOperand{});
  const auto fetch = [&](int step) {
    if (step < steps) {
      copy(copy_chunks, from_a(_, _, _, step), to_a(_, _, _, step % kStages));
      copy(copy_chunks, from_b(_, _, _, step), to_b(_, _, _, step % kStages));
    }
    cp_async_fence();  // an empty group too: the wait below counts groups
  };
  for (int step = 0; step < kStages - 1; ++step) fetch(step);
  for (int step = 0; step < steps; ++step) {
    cp_async_wait<kStages - 2>();
    cutlass::arch::fence_view_async_shared();  // wgmma reads through the asynchronous proxy
    warpgroup_wait<0>();
    __syncthreads();  // the stage is there, and nobody reads the one before
    multiply<k_major>(a, b, step % kStages, sums);
    fetch(step + kStages - 1);
  }
  store<k_major>(sums, tile);
}

template <bool k_major, class TmaA, class TmaB>
__global__ void __launch_bounds__(kThreads)
    by_tma(const Product p, const __grid_constant__ TmaA tma_a, const __grid_constant__ TmaB tma_b) {
  using Stages = typename Mode<k_major>::Stages;
  Shared<k_major>& shared = shared_memory<k_major>();
  const auto tile = tile_of_d(p);
  auto [sums, a, b] = fragments<k_major>(shared, tile);

  const auto tiles_a = local_tile(tma_a.get_tma_tensor(make_shape(p.m, p.k)), TileOperand{}, make_coord(blockIdx.x, _));
  const auto tiles_b = local_tile(tma_b.get_tma_tensor(make_shape(p.n, p.k)), TileOperand{}, make_coord(blockIdx.y, _));
  const auto stages_a = make_tensor(make_smem_ptr(shared.a.begin()), Stages{});
  const auto stages_b = make_tensor(make_smem_ptr(shared.b.begin()), Stages{});
  auto [from_a, to_a] =
      tma_partition(tma_a, _0{}, Layout<_1>{}, group_modes<0, 2>(stages_a), group_modes<0, 2>(tiles_a));
  auto [from_b, to_b] =
      tma_partition(tma_b, _0{}, Layout<_1>{}, group_modes<0, 2>(stages_b), group_modes<0, 2>(tiles_b));
  if (threadIdx.x == 0) {
    for (std::uint64_t& full : shared.full) Barrier::init(&full, 1);
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();

  const int steps = p.k / size<1>(TileOperand{});
  const auto fetch = [&](int step) {
    if (step < steps && threadIdx.x == 0) {
      std::uint64_t& full = shared.full[step % kStages];
      Barrier::arrive_and_expect_tx(&full, kStageBytes);
      copy(tma_a.with(full), from_a(_, step), to_a(_, step % kStages));
      copy(tma_b.with(full), from_b(_, step), to_b(_, step % kStages));
    }
    __syncwarp();  // wgmma needs whole warps
  };
  for (int step = 0; step < kStages - 1; ++step) fetch(step);
  for (int step = 0; step < steps; ++step) {
    warpgroup_wait<0>();
    __syncthreads();  // nobody reads the stage before
    fetch(step + kStages - 1);
    Barrier::wait(&shared.full[step % kStages], step / kStages % 2);
    multiply<k_major>(a, b, step % kStages, sums);
  }
  store<k_major>(sums, tile);
}

/// Whole tiles, and what a copy of 16 bytes and a tensor map ask of addresses.
bool takes(const Product& p) {
  const auto aligned = [](const void* data, std::int64_t leading) {
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && leading % kChunk == 0;
  };
  return p.m % size<0>(TileD{}) == 0 && p.n % size<1>(TileD{}) == 0 && p.k % size<1>(TileOperand{}) == 0 && p.k > 0 &&
         aligned(p.a, p.leading_a) && aligned(p.b, p.leading_b) && aligned(p.d, p.leading_d);
}

template <bool k_major, class Kernel, class... More>
Launch launch(const Product& p, Kernel kernel, More... more) {
  constexpr int kShared = sizeof(Shared<k_major>);
  const dim3 grid(p.m / size<0>(TileD{}), p.n / size<1>(TileD{}));
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  return [=](Stream stream) {
    kernel<<<grid, kThreads, kShared, static_cast<cudaStream_t>(stream)>>>(p, more...);
    return cudaGetLastError() == cudaSuccess;
  };
}

template <bool k_major>
Launch version_1(const Product& p) {
  return launch<k_major>(p, by_cp_async<k_major>, Mode<k_major>::stride(p.leading_a),
                         Mode<k_major>::stride(p.leading_b));
}

template <bool k_major>
Launch version_2(const Product& p) {
  const auto map_of = [](const void* data, int rows, int columns, std::int64_t leading) {
    const auto whole = make_tensor(make_gmem_ptr(static_cast<const Half*>(data)), make_shape(rows, columns),
                                   Mode<k_major>::stride(leading));
    return make_tma_atom(SM90_TMA_LOAD{}, whole, typename Mode<k_major>::Stages{}(_, _, _0{}), TileOperand{});
  };
  auto tma_a = map_of(p.a, p.m, p.k, p.leading_a);
  auto tma_b = map_of(p.b, p.n, p.k, p.leading_b);
  return launch<k_major>(p, by_tma<k_major, decltype(tma_a), decltype(tma_b)>, tma_a, tma_b);
}

}  // namespace

Launch cute_v1(const Product& product) {
  if (!takes(product)) return {};
  return product.k_major ? version_1<true>(product) : version_1<false>(product);
}

Launch cute_v2(const Product& product) {
  if (!takes(product)) return {};
  return product.k_major ? version_2<true>(product) : version_2<false>(product);
}

}  // namespace tmaops::bench::cutlass_peer
