// Which calls are made before a sample, and which are timed.
#include "bench/run/sampling.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace tmaops::bench {
namespace {

/// Says how often it was called, each time, and what a call is to take.
class Counted : public Implementation {
 public:
  Counted(double each, std::vector<std::int64_t>& calls)
      : Implementation("counted", Kind::variant, "counted"), each_(each), calls_(calls) {}
  Comparison verify(Workload&, int, double) override { return {}; }
  double seconds(std::int64_t, std::int64_t count) override {
    calls_.push_back(count);
    return each_ * static_cast<double>(count);
  }

 private:
  double each_;
  std::vector<std::int64_t>& calls_;
};

class Nothing : public Workload {
 public:
  Nothing() : Workload({.op = "nothing", .name = "nothing"}, {}) {}
  std::vector<VariantChoice> variants() const override { return {}; }
  std::string selected() const override { return "counted"; }
  nlohmann::json peer_parameters() const override { return nlohmann::json::object(); }
  Call bind(const std::string&, int, Launch) const override { return {}; }

 protected:
  void fill(std::uint64_t) override {}
  std::vector<Expected> reference(std::uint64_t, double) const override { return {}; }
  double tolerance() const override { return 1; }
};

struct Sampled {
  std::vector<std::int64_t> calls;  // of each run, timed or not
  std::vector<double> samples;      // us
};

Sampled sampled(double seconds_each, RunOptions options) {
  Sampled result;
  options.samples = 3;
  std::vector<TimedProblem> running(1);
  running[0].workload = std::make_unique<Nothing>();
  Timed timed;
  timed.implementation = std::make_unique<Counted>(seconds_each, result.calls);
  running[0].timed.push_back(std::move(timed));
  const Observer observer;
  Recorder log(observer);
  sample_in_turn(running, options, *make_cpu_timer(), log);
  result.samples = running[0].timed[0].samples;
  return result;
}

using Calls = std::vector<std::int64_t>;

TEST(Sampling, short_calls_are_warmed_up_and_repeated) {
  const Sampled result = sampled(0.5e-3, {.min_time = 2e-3});
  EXPECT_EQ(result.calls, (Calls{1, 1, 4, 4, 4, 4, 4, 4}));  // an estimate, then three samples
  EXPECT_EQ(result.samples, std::vector<double>(3, 500.0));
}

TEST(Sampling, long_calls_are_not_warmed_up) {
  const Sampled result = sampled(0.06, {.min_time = 2e-3});
  EXPECT_EQ(result.calls, (Calls{1, 1, 1, 1, 1}));  // how long they are is not known before the first
}

TEST(Sampling, cold_inputs_are_not_touched_before) {
  const Sampled result = sampled(0.5e-3, {.temperature = "cold", .min_time = 2e-3});
  EXPECT_EQ(result.calls, (Calls{1, 4, 4, 4}));
}

}  // namespace
}  // namespace tmaops::bench
