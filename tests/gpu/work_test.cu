// Work runs once, or many times as kernels or as a graph: the results are the same wherever it runs.
#include <thread>

#include "core/work.hpp"
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
Work steps(int* sums, bool dependent, long long cycles = 0) {
  Work work("steps", kGpu);
  work.add(add_kernel, {.grid = 4}, sums, 1, cycles);
  work.add(double_kernel, {.grid = 4, .dependent = dependent}, sums);
  return work;
}
std::unique_ptr<const RepeatedWork> repeated(Work work) { return RepeatedWork::of(std::move(work)); }
std::vector<int> after(int runs) { return std::vector<int>(4, (2 << runs) - 2); }

TEST(RepeatedWork, nothing_is_launched_when_it_is_made_ready) {
  TMAOPS_NEEDS_HOPPER();
  const DeviceArray<int> sums(4, 0);
  const auto launches = repeated(steps(sums.get(), false));
  check_cuda(cudaDeviceSynchronize(), "wait");
  EXPECT_EQ(sums.values(), after(0));
}

TEST(RepeatedWork, runs_in_order_on_every_kind_of_stream) {
  TMAOPS_NEEDS_HOPPER();
  const NewStream made;
  for (const bool dependent : {false, true})
    for (const cudaStream_t stream : {cudaStream_t{}, made.stream, cudaStreamLegacy, cudaStreamPerThread}) {
      const DeviceArray<int> sums(4, 0);
      const auto launches = repeated(steps(sums.get(), dependent));
      for (int i = 0; i < 5; ++i) launches->run(stream);
      check_cuda(cudaStreamSynchronize(stream), "wait");
      EXPECT_EQ(sums.values(), after(5));
    }
}

TEST(RepeatedWork, streams_in_turn_and_kernels_one_by_one_give_the_same) {
  TMAOPS_NEEDS_HOPPER();
  const NewStream a, b;
  const DeviceArray<int> sums(4, 0);
  const auto launches = repeated(steps(sums.get(), false));
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

TEST(RepeatedWork, is_captured_as_kernels_also_between_runs_as_a_graph) {
  TMAOPS_NEEDS_HOPPER();
  const NewStream on;
  const DeviceArray<int> sums(4, 0);
  const auto launches = repeated(steps(sums.get(), false));
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

TEST(RepeatedWork, a_graph_is_made_while_another_stream_is_captured) {
  TMAOPS_NEEDS_HOPPER();
  const NewStream on, captured;
  const DeviceArray<int> sums(4, 0);
  const auto launches = repeated(steps(sums.get(), false));
  const auto others = repeated(steps(sums.get(), false));
  cudaGraph_t graph{};
  check_cuda(cudaStreamBeginCapture(captured.stream, cudaStreamCaptureModeGlobal), "capture");
  others->run(captured.stream);
  for (int i = 0; i < 3; ++i) launches->run(on.stream);
  ASSERT_EQ(cudaStreamEndCapture(captured.stream, &graph), cudaSuccess) << "the capture goes on";
  cudaGraphDestroy(graph);
  on.wait();
  EXPECT_EQ(sums.values(), after(3));
}

TEST(RepeatedWork, threads_may_share_it) {
  TMAOPS_NEEDS_HOPPER();
  constexpr int kRuns = 50;
  const DeviceArray<int> sums(4, 0);
  Work work("add", kGpu);
  work.add(add_kernel, {.grid = 4}, sums.get(), 1, 0LL);
  const auto launches = repeated(std::move(work));
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

TEST(RepeatedWork, may_be_gone_before_its_kernels_run) {
  TMAOPS_NEEDS_HOPPER();
  const NewStream on;
  const DeviceArray<int> sums(4, 0);
  {
    const auto launches = repeated(steps(sums.get(), false, 2'000'000));
    for (int i = 0; i < 4; ++i) launches->run(on.stream);
  }
  on.wait();
  EXPECT_EQ(sums.values(), after(4));
}

TEST(Work, runs_once_in_order_with_a_memset_between) {
  TMAOPS_NEEDS_HOPPER();
  const NewStream on;
  const DeviceArray<int> sums(4, 0);
  Work work = steps(sums.get(), true);
  work.add_memset(sums.get(), 0, 2 * sizeof(int));
  work.add(add_kernel, {.grid = 4}, sums.get(), 1, 0LL);
  work.run(on.stream);
  on.wait();
  EXPECT_EQ(sums.values(), (std::vector<int>{1, 1, 3, 3}));
}

TEST(RepeatedWork, repeats_a_memset_in_its_place) {
  TMAOPS_NEEDS_HOPPER();
  const NewStream on;
  const DeviceArray<int> sums(4, 7);
  Work work("memset", kGpu);
  work.add_memset(sums.get(), 0, 4 * sizeof(int));
  work.add(add_kernel, {.grid = 4}, sums.get(), 5, 0LL);
  const auto launches = repeated(std::move(work));
  for (int i = 0; i < 4; ++i) launches->run(on.stream);
  on.wait();
  EXPECT_EQ(sums.values(), std::vector<int>(4, 5));
}

}  // namespace
}  // namespace tmaops
