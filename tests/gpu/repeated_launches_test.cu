// Plans repeat their launches as kernels or as a graph: the results are the same wherever they run.
#include <thread>

#include "core/repeated_launches.hpp"
#include "device/warp.cuh"
#include "gpu/support.hpp"

namespace tmaops {
namespace {

using test::DeviceArray;

constexpr Device kGpu{DeviceType::cuda, 0};

__global__ void add_kernel(int* sums, int number, long long cycles) {
  device::wait_for_previous_kernel();
  const auto begin = clock64();
  while (clock64() - begin < cycles) {
  }
  sums[blockIdx.x] += number;
}
__global__ void double_kernel(int* sums) {
  device::wait_for_previous_kernel();
  sums[blockIdx.x] *= 2;
}

struct NewStream {
  NewStream() { check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream"); }
  ~NewStream() { cudaStreamDestroy(stream); }
  void wait() const { check_cuda(cudaStreamSynchronize(stream), "wait"); }
  cudaStream_t stream{};
};

/// sum = (sum + 1) * 2, by two kernels.
std::shared_ptr<const RepeatedLaunches> steps(int* sums, bool dependent, long long cycles = 0) {
  const LaunchConfig config{.grid = dim3(4), .block = dim3(1)};
  LaunchConfig second = config;
  second.dependent = dependent;
  return RepeatedLaunches::of(kGpu, [&] {
    launch_kernel<add_kernel>("add", config, nullptr, sums, 1, cycles);
    launch_kernel<double_kernel>("double", second, nullptr, sums);
  });
}
std::vector<int> after(int runs) { return std::vector<int>(4, (2 << runs) - 2); }

TEST(RepeatedLaunches, nothing_is_launched_when_they_are_noted) {
  TMAOPS_NEEDS_GPU();
  const DeviceArray<int> sums(4, 0);
  const auto launches = steps(sums.get(), false);
  check_cuda(cudaDeviceSynchronize(), "wait");
  EXPECT_EQ(sums.values(), after(0));
}

TEST(RepeatedLaunches, run_in_order_on_every_kind_of_stream) {
  TMAOPS_NEEDS_GPU();
  const NewStream made;
  for (const bool dependent : {false, true})
    for (const cudaStream_t stream : {cudaStream_t{}, made.stream, cudaStreamLegacy, cudaStreamPerThread}) {
      const DeviceArray<int> sums(4, 0);
      const auto launches = steps(sums.get(), dependent);
      for (int i = 0; i < 5; ++i) launches->run(stream);
      check_cuda(cudaStreamSynchronize(stream), "wait");
      EXPECT_EQ(sums.values(), after(5));
    }
}

TEST(RepeatedLaunches, streams_in_turn_and_kernels_one_by_one_give_the_same) {
  TMAOPS_NEEDS_GPU();
  const NewStream a, b;
  const DeviceArray<int> sums(4, 0);
  const auto launches = steps(sums.get(), false);
  for (const NewStream* on : {&a, &a, &b, &b, &b, &a}) {
    launches->run(on->stream);
    on->wait();
  }
  {
    const KernelsOneByOne kernels;
    launches->run(a.stream);
  }
  launches->run(a.stream);
  a.wait();
  EXPECT_EQ(sums.values(), after(8));
}

TEST(RepeatedLaunches, are_captured_as_kernels_also_between_runs_as_a_graph) {
  TMAOPS_NEEDS_GPU();
  const NewStream on;
  const DeviceArray<int> sums(4, 0);
  const auto launches = steps(sums.get(), false);
  for (int i = 0; i < 3; ++i) launches->run(on.stream);
  cudaGraph_t graph{};
  cudaGraphExec_t executable{};
  check_cuda(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeGlobal), "capture");
  launches->run(on.stream);
  check_cuda(cudaStreamEndCapture(on.stream, &graph), "capture");
  std::size_t nodes = 0;
  check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes), "nodes");
  EXPECT_EQ(nodes, 2);
  check_cuda(cudaGraphInstantiate(&executable, graph, 0), "graph");
  check_cuda(cudaGraphLaunch(executable, on.stream), "graph");
  launches->run(on.stream);
  on.wait();
  EXPECT_EQ(sums.values(), after(5));
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

TEST(RepeatedLaunches, a_graph_is_made_while_another_stream_is_captured) {
  TMAOPS_NEEDS_GPU();
  const NewStream on, captured;
  const DeviceArray<int> sums(4, 0);
  const auto launches = steps(sums.get(), false);
  const auto others = steps(sums.get(), false);
  cudaGraph_t graph{};
  check_cuda(cudaStreamBeginCapture(captured.stream, cudaStreamCaptureModeGlobal), "capture");
  others->run(captured.stream);
  for (int i = 0; i < 3; ++i) launches->run(on.stream);
  ASSERT_EQ(cudaStreamEndCapture(captured.stream, &graph), cudaSuccess) << "the capture goes on";
  cudaGraphDestroy(graph);
  on.wait();
  EXPECT_EQ(sums.values(), after(3));
}

TEST(RepeatedLaunches, threads_may_share_them) {
  TMAOPS_NEEDS_GPU();
  constexpr int kRuns = 50;
  const DeviceArray<int> sums(4, 0);
  const auto launches = RepeatedLaunches::of(kGpu, [&] {
    launch_kernel<add_kernel>("add", {.grid = dim3(4), .block = dim3(1)}, nullptr, sums.get(), 1, 0LL);
  });
  const NewStream on;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int run = 0; run < kRuns; ++run) launches->run(on.stream);
    });
  for (std::thread& thread : threads) thread.join();
  on.wait();
  EXPECT_EQ(sums.values(), std::vector<int>(4, 4 * kRuns));
}

TEST(RepeatedLaunches, may_be_gone_before_their_kernels_run) {
  TMAOPS_NEEDS_GPU();
  const NewStream on;
  const DeviceArray<int> sums(4, 0);
  {
    const auto launches = steps(sums.get(), false, 2'000'000);
    for (int i = 0; i < 4; ++i) launches->run(on.stream);
  }
  on.wait();
  EXPECT_EQ(sums.values(), after(4));
}

}  // namespace
}  // namespace tmaops
