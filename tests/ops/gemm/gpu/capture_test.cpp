// A gemm that is captured into a CUDA graph, and a plan on other memory, give what a plain call gives.
#include <random>

#include "gpu/mirror.hpp"
#include "gpu/support.hpp"
#include "ops/gemm/problem.hpp"

namespace tmaops::test {
namespace {

Buffer normal(DType dtype, const Layout& layout, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Buffer made(dtype, layout);
  made.fill_normal(random);
  return made;
}

/// Two sets of operands of one shape, and what each gives.
struct Products {
  Products(std::int64_t n, std::int64_t k)
      : host_a{normal(DType::f16, Layout::contiguous({n, k}), 1), normal(DType::f16, Layout::contiguous({n, k}), 2)},
        host_b(normal(DType::f16, Layout::contiguous({k, n}), 3)),
        host_d(DType::f16, {n, n}) {}
  Buffer host_a[2];
  Buffer host_b;
  Buffer host_d;
  Mirror a[2] = {Mirror(host_a[0]), Mirror(host_a[1])};
  Mirror b{host_b};
  Mirror d[2] = {Mirror(host_d), Mirror(host_d)};
};

TEST(GpuGemmCapture, every_variant_is_captured_and_bound_to_other_memory) {
  TMAOPS_NEEDS_CHIP();
  bool any_memory = false;
  for (const auto& [n, k] : {std::pair{128, 128}, {512, 512}, {256, 9000}}) {
    const Products x(n, k);
    const auto problem = ops::gemm::make_problem(x.a[0].view(), x.b.view(), x.d[0].view(), {});
    for (const auto& choice : ops::gemm::every_choice(problem, device_info({DeviceType::cuda, 0}))) {
      SCOPED_TRACE(choice.name());
      CountingAllocator memory;
      GemmOptions options{.variant = choice.name(), .allocator = memory.allocator()};
      std::vector<unsigned char> want[2];
      for (int i = 0; i < 2; ++i) {
        gemm(x.a[i].view(), x.b.view(), x.d[i].view(), options);
        check_cuda(cudaDeviceSynchronize(), "gemm");
        want[i] = x.d[i].download().bits();
        x.d[i].reset();
      }
      EXPECT_EQ(memory.allocated, 2 * gemm_workspace(x.a[0].view(), x.b.view(), x.d[0].view(), options));
      EXPECT_EQ(memory.held, 0);
      any_memory = any_memory || memory.allocated > 0;
      ASSERT_NE(want[0], want[1]);
      replay_captured(
          [&](cudaStream_t stream) {
            options.stream = stream;
            gemm(x.a[0].view(), x.b.view(), x.d[0].view(), options);
          },
          2);
      EXPECT_EQ(x.d[0].download().bits(), want[0]) << "captured";
      x.d[0].reset();
      Plan plan = plan_gemm(x.a[0].view(), x.b.view(), x.d[0].view(), options);
      for (int run = 0; run < 3; ++run) plan.run();  // the last ones as a graph
      plan.rebind({x.a[1].view().data, x.b.view().data, x.d[1].view().data});
      for (int run = 0; run < 3; ++run) plan.run();
      check_cuda(cudaDeviceSynchronize(), "plans");
      EXPECT_EQ(x.d[0].download().bits(), want[0]) << "planned";
      EXPECT_EQ(x.d[1].download().bits(), want[1]) << "bound to other memory";
      x.d[1].reset();
      replay_captured(plan);
      EXPECT_EQ(x.d[1].download().bits(), want[1]) << "captured plan on other memory";
      for (const Mirror& d : x.d) d.reset();
    }
  }
  EXPECT_TRUE(any_memory);
}

}  // namespace
}  // namespace tmaops::test
