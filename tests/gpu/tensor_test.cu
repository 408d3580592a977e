// Copies through tensor maps against the rule in words: dense box, dimension 0 fastest, zero outside the tensor.
#include "device/bulk_copy.cuh"
#include "device/fence.cuh"
#include "device/tensor_copy.cuh"
#include "device/tile.cuh"
#include "gpu/im2col_copy.cuh"
#include "gpu/support.hpp"
#include "gpu/tensor_map.hpp"

namespace tmaops {
namespace {

using test::DeviceArray;
using test::encode_im2col;
using test::encode_tiled;
using test::run;
using namespace device;  // NOLINT(google-build-using-namespace)

constexpr int kTensorThreads = 64;

template <int rank>
struct At {
  std::int32_t c[rank];
};

/// A tensor of 16-bit numbers, innermost dimension first, rows padded to 16 bytes by the choice of extents.
template <int rank>
struct Tensor {
  std::array<std::uint64_t, rank> extents;
  std::array<std::uint32_t, rank> box;
  std::size_t size() const {
    std::size_t all = 1;
    for (const auto e : extents) all *= e;
    return all;
  }
  int box_elements() const {
    int all = 1;
    for (const auto b : box) all *= static_cast<int>(b);
    return all;
  }
  /// Linear index of the element that box element `i` of a box at `at` stands for; -1 outside.
  std::int64_t element(int i, const At<rank>& at) const {
    std::int64_t index = 0, step = 1;
    bool inside = true;
    for (int d = 0; d < rank; ++d) {
      const auto k = static_cast<std::size_t>(d);
      const std::int64_t c = at.c[d] + i % static_cast<int>(box[k]);
      i /= static_cast<int>(box[k]);
      inside = inside && c >= 0 && c < static_cast<std::int64_t>(extents[k]);
      index += c * step;
      step *= static_cast<std::int64_t>(extents[k]);
    }
    return inside ? index : -1;
  }
};

// The first coordinate times the element size is a multiple of 16 bytes: any other start is an illegal instruction.
enum class How { plain, hinted, prefetched };

template <int rank, How how>
__global__ void load_kernel(const __grid_constant__ CUtensorMap map, const At<rank> at, int elements,
                            std::uint16_t* to) {
  auto& tile = block_shared<std::uint16_t[8192], 1024>();
  auto& barrier = block_shared<Barrier>();
  if (threadIdx.x == 0) {
    prefetch_tensor_map(&map);
    init_barrier(barrier, 1);
    fence_barrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive_expect_bytes(barrier, static_cast<std::uint32_t>(elements) * 2);
    if constexpr (how == How::prefetched) tensor_prefetch(&map, at.c, evict_first_of(0.5F));
    if constexpr (how == How::hinted)
      tensor_load(tile, &map, at.c, barrier, CacheHint::evict_last);
    else
      tensor_load(tile, &map, at.c, barrier);
  }
  wait(barrier, 0);
  for (int i = threadIdx.x; i < elements; i += kTensorThreads) to[i] = tile[i];
}

template <int rank, How how>
void check_load(const Tensor<rank>& tensor, const At<rank>& at) {
  const auto values = test::counting(tensor.size());
  const DeviceArray<std::uint16_t> global(values);
  const auto elements = static_cast<std::size_t>(tensor.box_elements());
  const DeviceArray<std::uint16_t> out(elements);
  const CUtensorMap map = encode_tiled(global.get(), tensor.extents, tensor.box);
  run<load_kernel<rank, how>>({.grid = 1, .block = kTensorThreads}, map, at, static_cast<int>(elements), out.get());
  const auto got = out.values();
  for (std::size_t i = 0; i < elements; ++i) {
    const std::int64_t from = tensor.element(static_cast<int>(i), at);
    ASSERT_EQ(got[i], from < 0 ? 0 : values[static_cast<std::size_t>(from)]) << "rank " << rank << ", element " << i;
  }
}

template <How how>
void check_all_ranks() {
  check_load<1, how>({{200}, {64}}, {{168}});
  check_load<2, how>({{40, 9}, {16, 4}}, {{-8, 7}});
  check_load<3, how>({{32, 10, 8}, {32, 2, 2}}, {{0, -1, 3}});
  check_load<4, how>({{16, 7, 6, 5}, {8, 2, 3, 2}}, {{8, 6, -1, 4}});
  check_load<5, how>({{32, 3, 6, 5, 2}, {32, 1, 2, 2, 1}}, {{0, 2, 5, -1, 1}});
}

TEST(TensorCopy, loads_boxes_of_rank_one_to_five_and_fills_outside_with_zero) {
  TMAOPS_NEEDS_HOPPER();
  check_all_ranks<How::plain>();
}
TEST(TensorCopy, loads_the_same_with_a_cache_hint) {
  TMAOPS_NEEDS_HOPPER();
  check_all_ranks<How::hinted>();
}
TEST(TensorCopy, loads_the_same_after_a_prefetch) {
  TMAOPS_NEEDS_HOPPER();
  check_all_ranks<How::prefetched>();
}

template <Swizzle swizzle>
void check_swizzle(tma::Swizzle mode) {
  constexpr std::uint32_t row = static_cast<std::uint32_t>(swizzle) / 2;
  const Tensor<2> tensor{{row, 64}, {row, 64}};
  const auto values = test::counting(tensor.size());
  const DeviceArray<std::uint16_t> global(values), out(tensor.size());
  const CUtensorMap map = encode_tiled(global.get(), tensor.extents, tensor.box, mode);
  run<load_kernel<2, How::plain>>({.grid = 1, .block = kTensorThreads}, map, At<2>{{0, 0}}, tensor.box_elements(),
                                  out.get());
  const auto got = out.values();
  for (std::uint32_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[swizzled<swizzle>(i * 2) / 2], values[i]) << i;
}

TEST(TensorCopy, swizzle_is_the_function_of_the_address) {
  TMAOPS_NEEDS_HOPPER();
  check_swizzle<Swizzle::b32>(tma::Swizzle::b32);
  check_swizzle<Swizzle::b64>(tma::Swizzle::b64);
  check_swizzle<Swizzle::b128>(tma::Swizzle::b128);
}

template <int rank>
__global__ void store_kernel(const __grid_constant__ CUtensorMap map, const At<rank> at, int elements) {
  auto& tile = block_shared<std::uint16_t[8192], 1024>();
  for (int i = threadIdx.x; i < elements; i += kTensorThreads) tile[i] = static_cast<std::uint16_t>(i + 1);
  fence_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) {
    tensor_store(&map, at.c, tile);
    commit_stores();
    wait_stores_read<0>();
  }
}

template <int rank>
void check_store(const Tensor<rank>& tensor, const At<rank>& at) {
  auto want = test::counting(tensor.size());
  const DeviceArray<std::uint16_t> global(want);
  const CUtensorMap map = encode_tiled(global.get(), tensor.extents, tensor.box);
  run<store_kernel<rank>>({.grid = 1, .block = kTensorThreads}, map, at, tensor.box_elements());
  for (int i = 0; i < tensor.box_elements(); ++i)
    if (const std::int64_t to = tensor.element(i, at); to >= 0)
      want[static_cast<std::size_t>(to)] = static_cast<std::uint16_t>(i + 1);
  EXPECT_EQ(global.values(), want) << "rank " << rank;
}

TEST(TensorCopy, stores_boxes_and_leaves_out_what_overhangs) {
  TMAOPS_NEEDS_HOPPER();
  check_store<1>({{200}, {64}}, {{168}});
  check_store<2>({{40, 9}, {16, 4}}, {{8, 7}});
  check_store<3>({{32, 10, 8}, {32, 2, 2}}, {{0, 9, 3}});
  check_store<4>({{16, 7, 6, 5}, {8, 2, 3, 2}}, {{8, 6, 1, 4}});
  check_store<5>({{32, 3, 6, 5, 2}, {32, 1, 2, 2, 1}}, {{0, 2, 5, 1, 1}});
}

template <int rank>
__global__ void im2col_kernel(const __grid_constant__ CUtensorMap map, const At<rank> at, const std::uint16_t tap0,
                              const std::uint16_t tap1, int elements, std::uint16_t* to) {
  auto& tile = block_shared<std::uint16_t[8192], 1024>();
  auto& barrier = block_shared<Barrier>();
  if (threadIdx.x == 0) {
    init_barrier(barrier, 1);
    fence_barrier_init();
    arrive_expect_bytes(barrier, static_cast<std::uint32_t>(elements) * 2);
    std::uint16_t tap[rank - 2];
    tap[0] = tap0;
    if constexpr (rank > 3) tap[1] = tap1;
    if constexpr (rank > 4) tap[2] = 0;
    test::im2col_load(tile, &map, at.c, tap, barrier);
  }
  __syncthreads();
  wait(barrier, 0);
  for (int i = threadIdx.x; i < elements; i += kTensorThreads) to[i] = tile[i];
}

// A 3 x 3 filter without padding over an image of 8 channels: the box of base pixels is the image less 2 on each side's
// end, and tap (1, 2) shifts every pixel. 12 pixels starting at base pixel (w 3, h 1) run over the end of a row.
TEST(TensorCopy, im2col_walks_over_the_rows_of_an_image) {
  TMAOPS_NEEDS_HOPPER();
  constexpr int C = 8, W = 9, H = 6, N = 2, kPixels = 12;
  const auto values = test::counting(C * W * H * N);
  const DeviceArray<std::uint16_t> image(values), out(C * kPixels);
  const CUtensorMap map = encode_im2col<4>(image.get(), {C, W, H, N}, {0, 0}, {-2, -2}, C, kPixels);
  run<im2col_kernel<4>>({.grid = 1, .block = kTensorThreads}, map, At<4>{{0, 3, 1, 0}}, std::uint16_t{1},
                        std::uint16_t{2}, C * kPixels, out.get());
  const auto got = out.values();
  int w = 3, h = 1, n = 0;
  for (int pixel = 0; pixel < kPixels; ++pixel) {
    for (int c = 0; c < C; ++c) {
      const std::size_t from = static_cast<std::size_t>(((n * H + h + 2) * W + w + 1) * C + c);
      ASSERT_EQ(got[static_cast<std::size_t>(pixel * C + c)], values[from]) << "pixel " << pixel << ", channel " << c;
    }
    if (++w == W - 2) {
      w = 0;
      if (++h == H - 2) {
        h = 0;
        ++n;
      }
    }
  }
}

// The same filter with a pixel of padding on each side, in steps of two pixels. Tap (0, 0) at base pixel (-1, -1) lies
// outside of the image, as do the whole first row and, from pixel 6 on, the image behind the last.
TEST(TensorCopy, im2col_fills_the_padding_with_zero) {
  TMAOPS_NEEDS_HOPPER();
  constexpr int C = 16, W = 5, H = 3, kPixels = 16;
  const auto values = test::counting(C * W * H);
  const DeviceArray<std::uint16_t> image(values), out(8 * kPixels);
  const CUtensorMap map = encode_im2col<4>(image.get(), {C, W, H, 1}, {-1, -1}, {-1, -1}, 8, kPixels, 2);
  run<im2col_kernel<4>>({.grid = 1, .block = kTensorThreads}, map, At<4>{{8, -1, -1, 0}}, std::uint16_t{0},
                        std::uint16_t{0}, 8 * kPixels, out.get());
  const auto got = out.values();
  for (int pixel = 0; pixel < kPixels; ++pixel) {
    const int w = pixel % 3 * 2 - 1, h = pixel / 3 % 2 * 2 - 1;
    const bool inside = w >= 0 && h >= 0 && pixel < 6;
    for (int c = 0; c < 8; ++c)
      ASSERT_EQ(got[static_cast<std::size_t>(pixel * 8 + c)],
                inside ? values[static_cast<std::size_t>((h * W + w) * C + 8 + c)] : 0)
          << "pixel " << pixel << ", channel " << c;
  }
}

TEST(TensorCopy, im2col_of_rank_three_and_five) {
  TMAOPS_NEEDS_HOPPER();
  constexpr int C = 8, W = 9, kPixels = 5;
  const auto values = test::counting(C * W * 3 * 3 * 2);
  const DeviceArray<std::uint16_t> image(values), out(C * kPixels);
  const CUtensorMap line = encode_im2col<3>(image.get(), {C, W, 2}, {0}, {-2}, C, kPixels);
  run<im2col_kernel<3>>({.grid = 1, .block = kTensorThreads}, line, At<3>{{0, 1, 0}}, std::uint16_t{2},
                        std::uint16_t{0}, C * kPixels, out.get());
  for (std::size_t i = 0; i < C * kPixels; ++i) ASSERT_EQ(out.values()[i], values[3 * C + i]);
  const CUtensorMap volume = encode_im2col<5>(image.get(), {C, W, 3, 3, 2}, {0, 0, 0}, {-2, -2, -2}, C, kPixels);
  run<im2col_kernel<5>>({.grid = 1, .block = kTensorThreads}, volume, At<5>{{0, 1, 0, 0, 1}}, std::uint16_t{1},
                        std::uint16_t{1}, C * kPixels, out.get());
  for (std::size_t i = 0; i < C * kPixels; ++i) ASSERT_EQ(out.values()[i], values[(3 * 3 * W + W + 2) * C + i]);
}

}  // namespace
}  // namespace tmaops
