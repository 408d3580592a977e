// CUTLASS: the fastest of a few of its kernels; and two kernels of ours that are written with its CuTe.
#include "bench/peers/cublas_library.hpp"
#include "bench/peers/cutlass_kernels.hpp"
#include "bench/peers/peers.hpp"
#include "core/fail.hpp"

namespace tmaops::bench {
namespace {

constexpr const char* kNeeds = "a product of f16 into f16 in mode RC or CR, its rows at multiples of 16 bytes";
constexpr const char* kNeedsTiles =
    "a product of f16 into f16 in mode RC or CR, M and N multiples of 128, K of 64, its rows at multiples of 16 bytes";

using Launches = std::vector<cutlass_peer::Launch> (*)(const cutlass_peer::Product&);

std::unique_ptr<Implementation> make(const std::string& peer, Launches launches_of, const char* needs,
                                     const Workload& workload, Timer& timer) {
  const cublas::Product p = cublas::product_of(workload);  // a plain one
  // Transposed, B is contiguous along K, and A is not, or the other way round.
  if (workload.tensor("a", 0).dtype != DType::f16 || workload.tensor("d", 0).dtype != DType::f16 ||
      p.transpose_a == p.transpose_b)
    peer_refuses(peer, needs);
  std::vector<std::vector<Call>> ways;
  for (int set = 0; set < workload.sets(); ++set) {
    auto launches = launches_of({.m = p.columns,
                                 .n = p.rows,
                                 .k = p.inner,
                                 .k_major = p.transpose_b != 0,
                                 .a = workload.tensor("a", set).data,
                                 .b = workload.tensor("b", set).data,
                                 .d = workload.tensor("d", set).data,
                                 .leading_a = p.leading_a,
                                 .leading_b = p.leading_b,
                                 .leading_d = p.leading_d});
    std::erase_if(launches, [](const auto& launch) { return !launch; });
    ways.resize(launches.size());
    for (std::size_t way = 0; way < launches.size(); ++way)
      ways[way].push_back([peer, launch = launches[way]](Stream stream) {
        if (!launch(stream))
          fail(ErrorCode::variant_refuses, peer, "a launch that failed", "a GPU of compute capability 9.0");
      });
  }
  return std::make_unique<InProcess>(peer, Kind::peer, "", timer, fastest(std::move(ways), timer, peer, needs));
}

}  // namespace

std::unique_ptr<Implementation> make_cutlass(const Workload& workload, Timer& timer) {
  return make(
      "cutlass",
      [](const auto& p) { return p.k_major ? cutlass_peer::launches<true>(p) : cutlass_peer::launches<false>(p); },
      kNeeds, workload, timer);
}

std::unique_ptr<Implementation> make_cute_v1(const Workload& workload, Timer& timer) {
  return make(
      "cute_v1", [](const auto& p) { return std::vector{cutlass_peer::cute_v1(p)}; }, kNeedsTiles, workload, timer);
}

std::unique_ptr<Implementation> make_cute_v2(const Workload& workload, Timer& timer) {
  return make(
      "cute_v2", [](const auto& p) { return std::vector{cutlass_peer::cute_v2(p)}; }, kNeedsTiles, workload, timer);
}

}  // namespace tmaops::bench
