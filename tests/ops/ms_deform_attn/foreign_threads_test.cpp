// Operators on a framework's threads: the same bits as on tmaops' own, and its failures as errors.
#include <gtest/gtest.h>

#include <stdexcept>

#include "core/thread_count.hpp"
#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/case.hpp"
#include "support/expect_error.hpp"
#include "support/framework_threads.hpp"
#include "tmaops/gemm.hpp"
#include "tmaops/registry.hpp"
#include "tmaops/resample.hpp"

namespace tmaops::test {
namespace {

class ForeignThreads : public testing::Test {
 protected:
  ForeignThreads() { set_num_threads(3); }
  ~ForeignThreads() override { set_num_threads(0); }

  /// What `run` writes is the same on one thread, on tmaops' own and on a framework's, for every CPU variant.
  template <class Run>
  static void expect_same_bits(std::string_view op, const Run& run) {
    int jobs = 0;
    for (const VariantInfo& variant : variants(op)) {
      if (variant.device != DeviceType::cpu || !variant.built) continue;
      const std::string name(variant.name);
      if (name == "few_rows") continue;  // the product has many
      const auto own = run(name);
      set_num_threads(1);
      EXPECT_EQ(run(name), own) << name;
      set_num_threads(3);
      const FrameworkThreads framework;
      EXPECT_EQ(run(name), own) << name;
      jobs += framework.jobs();
    }
    EXPECT_GT(jobs, 0) << op << " never asked for threads";
  }
};

TEST_F(ForeignThreads, give_ms_deform_attn_the_same_bits) {
  Case c({.channels = 32, .queries = 600, .levels = {{40, 40}, {20, 20}}, .points = 4}, 21);
  expect_same_bits("ms_deform_attn", [&](const std::string& variant) {
    Buffer output = c.output();
    ms_deform_attn(c.value(), c.shape().levels, c.locations(), c.weights(), output, c.options(variant));
    return output.bits();
  });
  Buffer grad_output = c.output();
  grad_output.fill_normal(c.random());
  expect_same_bits("ms_deform_attn_backward", [&](const std::string& variant) {
    Buffer to_value(DType::f32, c.value().layout());
    Buffer to_locations(DType::f32, c.locations().layout());
    ms_deform_attn_backward(c.value(), c.shape().levels, c.locations(), c.weights(), grad_output,
                            {.value = to_value, .sampling_locations = to_locations}, c.options(variant));
    auto bits = to_value.bits();
    const auto more = to_locations.bits();
    bits.insert(bits.end(), more.begin(), more.end());
    return bits;
  });
}

TEST_F(ForeignThreads, give_resample_and_gemm_the_same_bits) {
  std::mt19937_64 random(3);
  Buffer values(DType::f32, {40, 200, 30});
  values.fill_normal(random);
  std::vector<double> x(200);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i) + 0.3 * std::sin(static_cast<double>(i));
  expect_same_bits("resample", [&](const std::string& variant) {
    Buffer output(DType::f32, {40, 300, 30});
    resample(values, view(x.data(), {200}), UniformGrid{0.0, 0.66, 300}, output, {.variant = variant});
    return output.bits();
  });
  Buffer a(DType::f32, {300, 70});
  Buffer b(DType::f32, {70, 250});
  a.fill_normal(random);
  b.fill_normal(random);
  expect_same_bits("gemm", [&](const std::string& variant) {
    Buffer d(DType::f32, {300, 250});
    gemm(a, b, d, {.variant = variant});
    return d.bits();
  });
}

TEST_F(ForeignThreads, are_not_asked_for_a_call_that_is_short) {
  detail::set_short_call(detail::kShortCall);
  // The decoder of a detector: eight heads, four levels, four points.
  for (const auto& [queries, jobs] : {std::pair{25, false}, {300, true}}) {
    Case c({.batch = 1,
            .heads = 8,
            .channels = 32,
            .queries = queries,
            .levels = {{32, 32}, {16, 16}, {8, 8}, {4, 4}},
            .points = 4,
            .odd_locations = false},
           23);
    Buffer output = c.output();
    const FrameworkThreads framework;
    ms_deform_attn(c.value(), c.shape().levels, c.locations(), c.weights(), output, c.options("portable"));
    EXPECT_EQ(framework.jobs() > 0, jobs) << queries << " queries";
  }
  Buffer d(DType::f32, {64, 64});
  const FrameworkThreads framework;
  gemm(Buffer(DType::f32, {64, 64}), Buffer(DType::f32, {64, 64}), d);
  EXPECT_EQ(framework.jobs(), 0);
  detail::set_short_call(0);
}

TEST_F(ForeignThreads, fail_as_errors_of_the_catalogue) {
  Case c({.channels = 32, .queries = 600, .levels = {{40, 40}}, .points = 4}, 22);
  Buffer output = c.output();
  const auto call = [&] {
    ms_deform_attn(c.value(), c.shape().levels, c.locations(), c.weights(), output, c.options("portable"));
  };
  set_parallel_for([](void*, int, ParallelTask, const void*) { throw std::runtime_error("no threads left"); }, nullptr);
  expect_error(ErrorCode::internal, call, "ms_deform_attn", "no threads left");
  set_parallel_for([](void*, int, ParallelTask, const void*) { throw std::bad_alloc(); }, nullptr);
  expect_error(ErrorCode::out_of_memory, call, "ms_deform_attn");
  set_parallel_for(nullptr, nullptr);
  call();
}

}  // namespace
}  // namespace tmaops::test
