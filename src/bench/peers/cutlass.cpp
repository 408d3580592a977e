// CUTLASS: the fastest of a few of its kernels.
#include "bench/peers/cublas_library.hpp"
#include "bench/peers/cutlass_kernels.hpp"
#include "bench/peers/fastest_algorithm.hpp"
#include "bench/peers/peer_refuses.hpp"
#include "bench/peers/peers.hpp"
#include "tmaops/error.hpp"

namespace tmaops::bench {
namespace {

constexpr const char* kWhere = "cutlass";
constexpr const char* kNeeds = "a product of f16 into f16 in mode RC or CR, its rows at multiples of 16 bytes";

}  // namespace

std::unique_ptr<Implementation> make_cutlass(const Workload& workload, Timer& timer) {
  const cublas::Product p = cublas::product_of(workload);  // a plain one
  const TensorView d = workload.tensor("d", 0);
  // Transposed, B is contiguous along K, and A is not, or the other way round.
  if (workload.tensor("a", 0).dtype != DType::f16 || d.dtype != DType::f16 || p.transpose_a == p.transpose_b)
    peer_refuses(kWhere, kNeeds);
  std::vector<std::vector<Call>> ways;
  for (int set = 0; set < workload.sets(); ++set) {
    const auto launches = cutlass_peer::launches({.m = p.columns,
                                                  .n = p.rows,
                                                  .k = p.inner,
                                                  .k_major = p.transpose_b != 0,
                                                  .a = workload.tensor("a", set).data,
                                                  .b = workload.tensor("b", set).data,
                                                  .d = workload.tensor("d", set).data,
                                                  .leading_a = p.leading_a,
                                                  .leading_b = p.leading_b,
                                                  .leading_d = p.leading_d});
    ways.resize(launches.size());
    for (std::size_t way = 0; way < launches.size(); ++way)
      ways[way].push_back([launch = launches[way]](Stream stream) {
        if (!launch(stream))
          throw Error(ErrorCode::variant_refuses,
                      {.where = kWhere, .got = "a launch that failed", .needed = "a GPU of compute capability 9.0"});
      });
  }
  return make_local("cutlass", Kind::peer, "", fastest(std::move(ways), timer, kWhere, kNeeds), timer);
}

}  // namespace tmaops::bench
