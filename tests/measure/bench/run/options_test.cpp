// The options of a run, from a configuration or from the command line.
#include "bench/run/options.hpp"

#include <gtest/gtest.h>

#include "bench/workloads/workload.hpp"
#include "config/config.hpp"
#include "support/expect_error.hpp"

namespace tmaops::bench {
namespace {

using test::expect_error;

RunOptions parse(const std::string& text) {
  RunOptions options;
  apply(
      io::parse_configuration(io::parse_yaml(text, "c.yaml"), {option_keys(), option_list_keys(), workload_operators()})
          .options,
      options);
  return options;
}

TEST(RunOptions, every_key_is_read) {
  const RunOptions options = parse(
      "device: cpu\ntemperature: both\nsamples: 7\nmin_time: 0.5\nmax_time: 2\nseed: 9\npeers: [copy, numpy]\n"
      "threads: 3\ntolerance: 0.25\nvariants: all\ncounters: true\noperators: gemm\n"
      "check_time: 4\ndependent_launch: false\n");
  EXPECT_EQ(options.device, "cpu");
  EXPECT_TRUE(options.hot() && options.cold());
  EXPECT_EQ(options.samples, 7);
  EXPECT_EQ(options.min_time, 0.5);
  EXPECT_EQ(options.max_time, 2);
  EXPECT_EQ(options.seed, 9u);
  EXPECT_EQ(options.peers, (std::vector<std::string>{"copy", "numpy"}));
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.tolerance, 0.25);
  EXPECT_TRUE(options.all_variants);
  EXPECT_TRUE(options.counters);
  EXPECT_EQ(options.check_time, 4);
  EXPECT_FALSE(options.dependent_launch);
  EXPECT_EQ(options.operators, std::vector<std::string>{"gemm"});
}

TEST(RunOptions, what_is_not_given_stays) {
  RunOptions options{.temperature = "cold", .samples = 7, .all_variants = true, .counters = true, .peers = {"copy"}};
  Settings given;
  given.add({"seed", "5", {"--seed"}});
  apply(given, options);
  EXPECT_EQ(options.seed, 5u);
  EXPECT_EQ(options.samples, 7);
  EXPECT_EQ(options.peers, std::vector<std::string>{"copy"});
  EXPECT_TRUE(options.all_variants && options.counters && !options.hot());
}

TEST(RunOptions, outputs_are_compared_whole_where_the_reference_takes_less_than_a_minute) {
  EXPECT_EQ(RunOptions().check_time, 60);
}

TEST(RunOptions, mistakes_are_named_with_their_place) {
  expect_error(ErrorCode::wrong_type, [] { parse("samples: many\n"); }, "c.yaml:1:10", "'many'");
  expect_error(ErrorCode::bad_value, [] { parse("samples: 2\n"); }, "c.yaml:1:10", "5 to");
  expect_error(ErrorCode::bad_value, [] { parse("device: gpu\n"); }, "auto, cpu, cuda");
  expect_error(ErrorCode::bad_value, [] { parse("operators: [gemm, conv]\n"); }, "c.yaml:1:19", "'conv'");
}

}  // namespace
}  // namespace tmaops::bench
