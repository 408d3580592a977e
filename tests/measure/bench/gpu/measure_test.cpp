// Clocks, hardware counters and cycles of blocks on a GPU: plausible, and of the right kernel.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "bench/measure/counters.hpp"
#include "bench/measure/kernels.hpp"
#include "bench/measure/timer.hpp"
#include "bench/run/runner.hpp"
#include "core/cuda_status.hpp"
#include "core/device_info.hpp"

namespace tmaops::bench {
namespace {

constexpr Device kGpu{DeviceType::cuda, 0};

class MeasuringOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU that can be used";
  }
};

Settings tiles(const std::string& variant) {
  Settings settings("tile_load", {"c.yaml", 1, 1});
  for (const auto& [name, value] : {std::pair{"queries", std::string("100")}, {"levels", "2"}, {"variant", variant}})
    settings.add({name, value, {"c.yaml", 1, 1}, false});
  return settings;
}

double value(const Counters& counters, const char* name) { return counters.values[counter_index(name)]; }

TEST_F(MeasuringOnGpu, every_timed_row_has_the_clock_it_ran_at) {
  const Report report = run({tiles("plain")}, kGpu, {.samples = kFewestSamples, .peers = {"copy"}}, {});
  ASSERT_FALSE(report.rows.empty());
  for (const Row& row : report.rows) {
    ASSERT_TRUE(row.clocks.has_value()) << row.implementation;
    // No NVIDIA GPU with TMA idles below 100 MHz or boosts above 4 GHz.
    EXPECT_GT(row.clocks->sm_mhz, 100) << row.implementation;
    EXPECT_LT(row.clocks->sm_mhz, 4000) << row.implementation;
  }
}

TEST_F(MeasuringOnGpu, every_timed_row_has_what_a_call_costs_the_host) {
  Settings trajectories("resample", {"c.yaml", 1, 1});
  trajectories.add({"case", "32,100->256,32", {"c.yaml", 1, 1}, false});
  const Report report = run({tiles("plain"), trajectories}, kGpu,
                            {.temperature = "cold", .samples = kFewestSamples, .peers = {"copy", "empty"}}, {});
  ASSERT_FALSE(report.rows.empty());
  for (const Row& row : report.rows) {
    EXPECT_EQ(row.host.has_value(), row.implementation != "copy") << row.info.op << " " << row.implementation;
    if (!row.host) continue;
    std::printf("%s %s %s: %.2f us of the host, a launch %.2f\n", row.info.op.c_str(), row.info.name.c_str(),
                row.implementation.c_str(), row.host->call_us, row.host->launch_us);
    for (const double us : {row.host->call_us, row.host->launch_us}) {
      EXPECT_GT(us, 0.1) << "no launch is that cheap";
      EXPECT_LT(us, 1e3) << "it was waited for";
    }
  }
}

TEST_F(MeasuringOnGpu, a_block_takes_the_cycles_of_memory_and_no_more_than_the_call) {
  const Report report = run({tiles("tensor_levels")}, kGpu, {.samples = kFewestSamples}, {});
  ASSERT_FALSE(report.rows.empty());
  const Row& row = report.rows.front();
  ASSERT_TRUE(row.loads && row.loads->cycles);
  EXPECT_GE(row.loads->cycles->n, 1);
  EXPECT_GT(row.loads->cycles->min, 200) << "a load from L2 takes some 250 cycles";
  EXPECT_LE(row.loads->cycles->min, row.loads->cycles->mean);
  EXPECT_LE(row.loads->cycles->mean, row.loads->cycles->max);
  EXPECT_LT(row.loads->cycles->max, 1e6);
}

TEST_F(MeasuringOnGpu, counters_are_those_of_the_call) {
  std::unique_ptr<CounterReader> reader;
  try {
    reader = make_cuda_counters(kGpu);
    void* memory = nullptr;
    constexpr std::int64_t kBytes = std::int64_t{256} << 20;  // more than any L2: all of it passes the DRAM
    check_cuda(cudaMalloc(&memory, 2 * kBytes), "test");
    const std::unique_ptr<void, decltype(&cudaFree)> owner(memory, &cudaFree);
    auto* bytes = static_cast<char*>(memory);
    const Call copy = [=](Stream stream) { launch_copy(bytes, bytes + kBytes, kBytes / 16, stream); };
    const Call both = [=](Stream stream) {
      copy(stream);
      launch_empty(stream);
    };
    for (int again = 0; again < 2; ++again) {
      const Counters one = reader->read({copy});
      EXPECT_EQ(one.kernels, 1);
      EXPECT_GT(one.runs, 1);
      EXPECT_NEAR(value(one, "dram__bytes_read.sum"), kBytes, 0.1 * kBytes);
      EXPECT_NEAR(value(one, "dram__bytes_write.sum"), kBytes, 0.3 * kBytes);
      EXPECT_GT(value(one, "gpu__time_duration.sum"), 20e3) << "256 MiB in 20 us would be 26 TB/s";
      EXPECT_GT(value(one, "dram__throughput.avg.pct_of_peak_sustained_elapsed"), 30);
      EXPECT_LE(value(one, "dram__throughput.avg.pct_of_peak_sustained_elapsed"), 101);
      EXPECT_EQ(value(one, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"), 0) << "no shared memory";
      EXPECT_NEAR(value(one, "l1tex__m_xbar2l1tex_read_bytes.sum"), kBytes, 0.1 * kBytes);
      EXPECT_NEAR(value(one, "lts__t_sectors_srcunit_tex.sum"), 2 * kBytes / 32, 0.1 * kBytes / 32);
      EXPECT_NEAR(value(one, "l1tex__t_sectors.sum"), 2 * kBytes / 32, 0.1 * kBytes / 32);
      EXPECT_LE(value(one, "lts__t_sectors_srcunit_tex_lookup_hit.sum"), value(one, "lts__t_sectors_srcunit_tex.sum"));
      EXPECT_GT(value(one, "smsp__inst_executed.sum"), kBytes / 16 / 32 * 3)
          << "a load, a store and the end per thread";
      EXPECT_EQ(value(one, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"), 0) << "no products";
      const double hertz = value(one, "sm__cycles_elapsed.avg.per_second");
      EXPECT_NEAR(value(one, "sm__cycles_elapsed.max") / hertz * 1e9, value(one, "gpu__time_duration.sum"),
                  0.1 * value(one, "gpu__time_duration.sum"));
      EXPECT_EQ(longest_wait(one.values).reason, "long scoreboard") << "a copy waits for memory";

      const double alone = value(one, "gpu__time_duration.sum");
      const BackToBack all = reader->read_back_to_back({copy}, 1e-9 * alone);
      const auto of_all = [&](const char* name) { return all.values[counter_index(name)]; };
      EXPECT_GE(all.calls, 100);
      EXPECT_NEAR(of_all("gpu__time_duration.sum"), alone, 0.1 * alone);
      EXPECT_NEAR(of_all("dram__bytes_read.sum"), kBytes, 0.1 * kBytes);
      EXPECT_NEAR(of_all("dram__bytes_write.sum"), kBytes, 0.1 * kBytes);
      EXPECT_NEAR(of_all("dram__throughput.avg.pct_of_peak_sustained_elapsed"),
                  value(one, "dram__throughput.avg.pct_of_peak_sustained_elapsed"), 10);
    }
    EXPECT_EQ(reader->read({both}).kernels, 2);
    EXPECT_EQ(reader->read({copy, copy, copy}).runs, reader->read({copy}).runs) << "on whichever set of inputs";
  } catch (const Error& error) {
    if (error.code() != ErrorCode::variant_refuses) throw;
    GTEST_SKIP() << error.what();
  }
}

TEST_F(MeasuringOnGpu, warm_inputs_come_from_the_cache) {
  std::unique_ptr<CounterReader> reader;
  try {
    reader = make_cuda_counters(kGpu);
    void* memory = nullptr;
    constexpr std::int64_t kBytes = std::int64_t{4} << 20;
    check_cuda(cudaMalloc(&memory, 2 * kBytes), "test");
    const std::unique_ptr<void, decltype(&cudaFree)> owner(memory, &cudaFree);
    auto* bytes = static_cast<char*>(memory);
    const Counters warm =
        reader->read({[=](Stream stream) { launch_copy(bytes, bytes + kBytes, kBytes / 16, stream); }});
    EXPECT_LT(value(warm, "dram__bytes_read.sum"), 0.1 * kBytes);
    std::vector<Call> calls;  // one such copy after the other: each brings its bytes in, and others' results out
    constexpr std::int64_t kSets = 32;
    void* more = nullptr;
    check_cuda(cudaMalloc(&more, 2 * kSets * kBytes), "test");
    const std::unique_ptr<void, decltype(&cudaFree)> owner_of_more(more, &cudaFree);
    for (std::int64_t set = 0; set < kSets; ++set)
      calls.emplace_back([from = static_cast<char*>(more) + 2 * set * kBytes](Stream stream) {
        launch_copy(from, from + kBytes, kBytes / 16, stream);
      });
    const Counters cold = reader->read(calls);
    EXPECT_NEAR(value(cold, "dram__bytes_read.sum"), kBytes, 0.2 * kBytes);
    EXPECT_GT(value(cold, "dram__bytes_write.sum"), 0.5 * kBytes) << "the caches hold no more results";
  } catch (const Error& error) {
    if (error.code() != ErrorCode::variant_refuses) throw;
    GTEST_SKIP() << error.what();
  }
}

TEST_F(MeasuringOnGpu, counters_go_to_the_rows_that_were_timed) {
  const Report report =
      run({tiles("plain")}, kGpu, {.samples = kFewestSamples, .counters = true, .peers = {"copy"}}, {});
  if (!report.refused.empty()) GTEST_SKIP() << report.refused.front().reason;
  ASSERT_GE(report.rows.size(), 2u);
  for (const Row& row : report.rows) {
    ASSERT_TRUE(row.counters.has_value()) << row.implementation;
    EXPECT_GT(value(*row.counters, "gpu__time_duration.sum"), 0) << row.implementation;
  }
}

}  // namespace
}  // namespace tmaops::bench
