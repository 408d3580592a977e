// Kernels that CUTLASS's collective builder makes: fed by TMA, warps with roles, f16 in and out, f32 sums. One wave of
// small tiles for products up to 1024, persistent blocks for larger ones. The two modes are two files of the build,
// since each kernel takes a quarter of a minute to compile.
#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>

#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <memory>
#include <type_traits>

#include "bench/peers/cutlass_kernels.hpp"

namespace tmaops::bench::cutlass_peer {
namespace {

using Half = cutlass::half_t;

template <bool k_major, class Schedule, class EpilogueSchedule, class Scheduler, class Tile, class Cluster>
struct Made {
  using LayoutA = std::conditional_t<k_major, cutlass::layout::RowMajor, cutlass::layout::ColumnMajor>;
  using LayoutB = std::conditional_t<k_major, cutlass::layout::ColumnMajor, cutlass::layout::RowMajor>;
  using LayoutD = cutlass::layout::RowMajor;
  static constexpr int kAligned = 8;  // elements
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, LayoutD, kAligned, Half, LayoutD, kAligned,
      EpilogueSchedule>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, LayoutA, kAligned, Half, LayoutB, kAligned, float,
      Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
      Schedule>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue, Scheduler>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

  /// Null when this kernel does not take the product.
  static Launch plan(const Product& p) {
    const auto along_k = [](std::int64_t leading) { return cute::make_stride(leading, cute::_1{}, std::int64_t{0}); };
    const auto across_k = [](std::int64_t leading) { return cute::make_stride(cute::_1{}, leading, std::int64_t{0}); };
    const auto strides = [&] {
      if constexpr (k_major)
        return std::pair(along_k(p.leading_a), along_k(p.leading_b));
      else
        return std::pair(across_k(p.leading_a), across_k(p.leading_b));
    }();
    const typename Gemm::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGemm,
        {p.m, p.n, p.k, 1},
        {static_cast<const Half*>(p.a), strides.first, static_cast<const Half*>(p.b), strides.second},
        {{1.0F, 0.0F}, nullptr, {}, static_cast<Half*>(p.d), along_k(p.leading_d)}};
    if (Gemm::can_implement(arguments) != cutlass::Status::kSuccess) return {};
    if (Gemm::get_workspace_size(arguments) != 0) return {};  // none of these needs one
    auto gemm = std::make_shared<Gemm>();
    if (gemm->initialize(arguments) != cutlass::Status::kSuccess) return {};
    return [gemm](Stream stream) { return gemm->run(static_cast<cudaStream_t>(stream)) == cutlass::Status::kSuccess; };
  }
};

template <int m, int n, int k = 64>
using Tile = cute::Shape<cute::Int<m>, cute::Int<n>, cute::Int<k>>;
template <int m>
using Cluster = cute::Shape<cute::Int<m>, cute::_1, cute::_1>;

template <bool k_major, class Tile, class Cluster>
using OneTile =
    Made<k_major, cutlass::gemm::KernelTmaWarpSpecialized, cutlass::epilogue::TmaWarpSpecialized, void, Tile, Cluster>;
template <bool k_major, class Tile, class Cluster>
using InTurn = Made<k_major, cutlass::gemm::KernelTmaWarpSpecializedPingpong, cutlass::epilogue::TmaWarpSpecialized,
                    cutlass::gemm::PersistentScheduler, Tile, Cluster>;
template <bool k_major, class Tile, class Cluster>
using Together =
    Made<k_major, cutlass::gemm::KernelTmaWarpSpecializedCooperative, cutlass::epilogue::TmaWarpSpecializedCooperative,
         cutlass::gemm::PersistentScheduler, Tile, Cluster>;

#ifdef TMAOPS_CUTLASS_RC
constexpr bool kKMajor = true;
#else
constexpr bool kKMajor = false;
#endif

}  // namespace

template <>
std::vector<Launch> launches<kKMajor>(const Product& p) {
  return {OneTile<kKMajor, Tile<64, 16, 128>, Cluster<1>>::plan(p),
          OneTile<kKMajor, Tile<64, 32, 128>, Cluster<1>>::plan(p),
          OneTile<kKMajor, Tile<64, 32, 128>, Cluster<2>>::plan(p),
          OneTile<kKMajor, Tile<64, 64, 128>, Cluster<1>>::plan(p),
          OneTile<kKMajor, Tile<64, 128, 128>, Cluster<2>>::plan(p),
          InTurn<kKMajor, Tile<64, 128>, Cluster<1>>::plan(p),
          InTurn<kKMajor, Tile<128, 128>, Cluster<2>>::plan(p),
          Together<kKMajor, Tile<128, 128>, Cluster<2>>::plan(p),
          Together<kKMajor, Tile<128, 256>, Cluster<2>>::plan(p)};
}

}  // namespace tmaops::bench::cutlass_peer
