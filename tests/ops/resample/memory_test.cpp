// Memory that runs out in the middle of a call is an error like any other.
#include <gtest/gtest.h>

#include "ops/resample/resample_call.hpp"
#include "ops/resample/resample_cases.hpp"
#include "support/failing_allocations.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::test {
namespace {

TEST(ResampleMemory, that_runs_out_is_an_error) {
  set_num_threads(2);
  Call call;
  std::swap(call.q[0], call.q[1]);  // unsorted: the backward pass puts them in order
  for (const std::string& variant : cpu_variants("resample")) {
    call.options.variant = variant;
    expect_out_of_memory_is_an_error(variant.c_str(), [&] { call.run(); });
    expect_out_of_memory_is_an_error("a plan", [&] {
      plan_resample(call.values, call.source_times, call.target_times, call.output, call.options).run();
    });
  }
  std::vector<float> gradient(12);
  for (const std::string& variant : cpu_variants("resample_backward")) {
    call.options.variant = variant;
    expect_out_of_memory_is_an_error(variant.c_str(), [&] {
      resample_backward(call.source_times, call.target_times, view(std::as_const(call.data).data(), {2, 2, 2}),
                        view(gradient.data(), {2, 3, 2}), call.options);
    });
  }
  std::vector<std::int64_t> counts(kResampleViolations);
  call.options.variant.clear();
  expect_out_of_memory_is_an_error("violations", [&] {
    resample_violations(call.source_times, call.target_times, view(counts.data(), {kResampleViolations}), call.options);
  });
  set_num_threads(0);
}

}  // namespace
}  // namespace tmaops::test
