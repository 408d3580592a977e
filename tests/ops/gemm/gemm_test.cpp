// What gemm promises beyond its arithmetic: modes, edges, special values, plans, threads, forked children.
#include "tmaops/gemm.hpp"

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <limits>
#include <thread>

#include "ops/gemm/gemm_case.hpp"
#include "support/expect_error.hpp"

namespace tmaops::test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Gemm, names_of_modes_activations_and_axes_parse_back) {
  for (const GemmMode mode : {GemmMode::RC, GemmMode::CR, GemmMode::RR, GemmMode::CC})
    EXPECT_EQ(parse_gemm_mode(to_string(mode)), mode);
  for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu, Activation::silu})
    EXPECT_EQ(parse_activation(to_string(activation)), activation);
  for (const BiasAxis axis : {BiasAxis::column, BiasAxis::row}) EXPECT_EQ(parse_bias_axis(to_string(axis)), axis);
  EXPECT_EQ(to_string(GemmMode::CR), "CR");
  EXPECT_FALSE(parse_gemm_mode("rc"));
  EXPECT_FALSE(parse_activation(""));
}

// oneDNN 2.6.3's AMX kernels stop with an illegal instruction at 79 x 6 x 63.
TEST(Gemm, odd_depths_of_16_bits_agree_with_f64) {
  for (const std::int64_t k : {1, 31, 63, 65})
    for (const std::int64_t n : {6, 16})
      check_case({.m = 79, .n = n, .k = k, .batch = 9, .in = DType::bf16, .out = DType::bf16});
}

TEST(Gemm, every_mode_type_and_output_order_agrees_with_f64) {
  std::uint64_t seed = 1;
  for (const DType in : {DType::f32, DType::f16, DType::bf16})
    for (const DType out : {DType::f32, DType::f16, DType::bf16})
      for (int orders = 0; orders < 8; ++orders)
        for (const std::int64_t m : {37, 131})
          check_case({.m = m,
                      .n = 43,
                      .k = 65,
                      .in = in,
                      .out = out,
                      .a = {.column_major = (orders & 1) != 0},
                      .b = {.column_major = (orders & 2) != 0},
                      .d = {.column_major = (orders & 4) != 0},
                      .seed = seed++});
}

TEST(Gemm, every_epilogue_agrees_with_f64) {
  std::uint64_t seed = 1;
  for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu, Activation::silu})
    for (const DType out : {DType::f32, DType::f16, DType::bf16})
      for (int terms = 0; terms < 32; ++terms)
        check_case({.m = 33,
                    .n = 50,
                    .k = 40,
                    .in = DType::bf16,
                    .out = out,
                    .alpha = (terms & 1) != 0 ? 0.5F : 1.0F,
                    .beta = (terms & 2) != 0 ? -1.5F : 0.0F,
                    .c_is_d = (terms & 4) != 0,
                    .c_dtype = DType::f16,
                    .bias = (terms & 8) != 0 ? std::optional(DType::f32) : std::nullopt,
                    .bias_axis = (terms & 16) != 0 ? BiasAxis::row : BiasAxis::column,
                    .activation = activation,
                    .seed = seed++});
}

/// More tiles than threads, the last ones cut short, in each of the tilings.
TEST(Gemm, large_problems_agree_with_f64) {
  check_case({.m = 700, .n = 300, .k = 65, .in = DType::bf16, .out = DType::bf16, .activation = Activation::relu});
  check_case({.m = 600, .n = 333, .k = 70, .in = DType::f32, .a = {.column_major = true}});
  check_case({.m = 40, .n = 1500, .k = 80, .in = DType::f16, .out = DType::f16, .b = {.column_major = true}});
  check_case({.m = 130, .n = 40, .k = 30, .batch = 12, .in = DType::bf16, .b = {.broadcast = true}});
  // K of whole KiB: rows with zeros behind them, read by the next run too
  check_case({.m = 514, .n = 70, .k = 512, .in = DType::bf16});
  check_case({.m = 514, .n = 70, .k = 512, .in = DType::bf16, .out = DType::f16, .b = {.column_major = true}});
  check_case({.m = 5000, .n = 3, .k = 7, .in = DType::f32, .d = {.column_major = true}});
}

/// More columns than a task has and more of K than is in work at a time, in both directions, with what is left over.
TEST(Gemm, few_rows_or_columns_agree_with_f64) {
  std::uint64_t seed = 1;
  for (const DType in : {DType::f32, DType::f16, DType::bf16})
    for (const std::int64_t few : {1, 2, 5, 8})
      for (const auto& [many, k] : {std::pair{300, 70}, {21, 2100}})
        for (const bool column_major : {false, true})
          for (const std::int64_t step : {1, 2}) {
            GemmCase x{.m = few, .n = many, .k = k, .in = in, .out = in, .bias = DType::f32, .seed = seed++};
            x.a = {.column_major = !column_major};
            x.b = {.column_major = column_major, .step = step};
            check_case(x);
            std::swap(x.m, x.n);
            std::swap(x.a, x.b);
            x.beta = 0.5F;
            check_case(x);
          }
}

TEST(Gemm, zero_extents_write_nothing_or_the_epilogue_of_zero) {
  for (const std::string& variant : cpu_variants(1, 1)) {
    for (const auto& [m, n, batch] : {std::tuple{0, 5, 2}, {5, 0, 2}, {4, 5, 0}}) {
      Buffer a(DType::f32, {batch, m, 3}), b(DType::f32, {batch, 3, n}), d(DType::f32, {batch, m, n});
      gemm(a, b, d, {.variant = variant});
      EXPECT_TRUE(d.canaries_intact());
    }
    Buffer a(DType::bf16, {2, 0}), b(DType::bf16, {0, 3}), d(DType::f32, {2, 3}), c(DType::f16, {2, 3});
    Buffer bias(DType::f32, {3});
    for (std::int64_t i = 0; i < 6; ++i) c.set(i, static_cast<double>(i) - 2);
    for (std::int64_t j = 0; j < 3; ++j) bias.set(j, 0.5);
    gemm(a, b, d, {.beta = 2, .c = c.view(), .bias = bias.view(), .activation = Activation::relu, .variant = variant});
    for (std::int64_t i = 0; i < 6; ++i)
      EXPECT_EQ(d.get(i), std::max(0.0, 2 * (static_cast<double>(i) - 2) + 0.5)) << variant;
    gemm(a, b, d, {.variant = variant});
    for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(d.get(i), 0.0) << variant;
  }
}

TEST(Gemm, does_not_read_c_when_beta_is_zero) {
  for (const std::string& variant : cpu_variants(1, 1)) {
    std::vector<float> a{1, 2}, b{3, 4};
    std::vector<float> d(1, kNaN);
    gemm(view(a.data(), {1, 2}), view(b.data(), {2, 1}), view(d.data(), {1, 1}),
         {.beta = 0, .c = view(d.data(), {1, 1}), .variant = variant});
    EXPECT_EQ(d[0], 11.0F) << variant;
  }
}

/// One row of A picks row 0 of B, so D's row is act(B's row) and special values pass through every code path.
void expect_special_values(DType in, DType out, Activation activation) {
  const std::vector<double> specials{kNaN, kInfinity, -kInfinity, -0.0, 0.0, -1.5, 2.5, 1e30};
  for (const std::string& variant : cpu_variants(3, 8)) {
    Buffer a(in, {3, 1}), b(in, {1, 8}), d(out, {3, 8});
    for (std::int64_t i = 0; i < 3; ++i) a.set(i, 1);
    for (std::int64_t j = 0; j < 8; ++j) b.set(j, specials[static_cast<std::size_t>(j)]);
    gemm(a, b, d, {.activation = activation, .variant = variant});
    for (std::int64_t j = 0; j < 8; ++j) {
      const double x = b.get(j);  // 1e30 is infinity in f16
      const double want = exact_activation(activation, x);
      const double got = d.get(2 * 8 + j);
      EXPECT_EQ(std::isnan(got), std::isnan(want)) << variant << " " << to_string(activation) << " of " << x;
      if (std::isinf(want) || (std::abs(want) > 1e9 && out == DType::f16)) {
        EXPECT_EQ(got, std::copysign(kInfinity, want)) << variant << " " << to_string(activation) << " of " << x;
      }
    }
  }
}

TEST(Gemm, nan_and_infinity_go_through) {
  for (const DType in : {DType::f32, DType::bf16, DType::f16})
    for (const DType out : {DType::f32, DType::bf16, DType::f16})
      for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu, Activation::silu})
        expect_special_values(in, out, activation);
}

/// Libraries read past the end of a row and multiply by 0 what they find there: NaN and infinity would come through.
TEST(Gemm, a_nan_or_infinity_stays_in_its_row_and_column) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const std::int64_t k : {1, 31, 33, 65})
      for (const std::int64_t m : {8, 20, 600})
        for (const std::string& variant : cpu_variants(m, 35))
          for (const bool column_major : {false, true}) {
            const GemmCase x{.m = m,
                             .n = 35,
                             .k = k,
                             .in = dtype,
                             .a = {.column_major = column_major},
                             .b = {.column_major = column_major}};
            GemmBuffers buffers(x);
            buffers.a.set(0, 5, 0, kInfinity);
            buffers.a.set(0, 7, k - 1, kNaN);
            buffers.b.set(0, 0, 11, kNaN);
            buffers.b.set(0, k - 1, 12, kInfinity);
            buffers.run(variant);
            std::int64_t wrong = 0;
            for (std::int64_t i = 0; i < m; ++i)
              for (std::int64_t j = 0; j < 35; ++j)
                wrong += std::isfinite(buffers.d.get(0, i, j)) != (i != 5 && i != 7 && j != 11 && j != 12);
            EXPECT_EQ(wrong, 0) << variant << " " << describe(x);
          }
}

TEST(Gemm, rounds_once_where_twice_would_differ) {
  // 1 + 2^-11 + 2^-24 in f32 is just above the middle between the f16 neighbours 1 and 1 + 2^-10; through bf16, or with
  // the bias added after rounding, it would come out as 1.
  for (const std::string& variant : cpu_variants(1, 1)) {
    Buffer a(DType::f16, {1, 1}), b(DType::f16, {1, 1}), d(DType::f16, {1, 1}), bias(DType::f32, {1});
    a.set(0, 1);
    b.set(0, 1);
    bias.set(0, 0x1p-11 + 0x1p-23);
    gemm(a, b, d, {.bias = bias.view(), .variant = variant});
    EXPECT_EQ(d.get(0), 1 + 0x1p-10) << variant;
  }
}

#if defined(__x86_64__)
TEST(Gemm, bf16_numbers_that_are_not_normal_count_as_documented) {
  // 2^-130 is a bf16 below the smallest normal one, and 2^-140 such an f32. oneDNN uses the instructions that take them
  // as 0 where the processor has AVX-512 BF16 (which all with AMX have), unless the environment keeps it from them.
  const bool flushes = __builtin_cpu_supports("avx512bf16") != 0 && std::getenv("ONEDNN_MAX_CPU_ISA") == nullptr &&
                       std::getenv("DNNL_MAX_CPU_ISA") == nullptr;
  constexpr std::int64_t kSide = 64;
  for (const auto& [a, b] : {std::pair{-130, 100}, {-70, -70}})
    for (const std::string& variant : cpu_variants(kSide, kSide)) {
      Buffer left(DType::bf16, {kSide, kSide});
      Buffer right(DType::bf16, {kSide, kSide});
      Buffer product(DType::f32, {kSide, kSide});
      left.fill([a = a] { return std::ldexp(1.0, a); });
      right.fill([b = b] { return std::ldexp(1.0, b); });
      gemm(left, right, product, {.variant = variant});
      const double want = variant == "onednn" && flushes ? 0 : std::ldexp(64.0, a + b);
      for (const double got : product.values()) ASSERT_EQ(got, want) << variant << ": 2^" << a << " times 2^" << b;
    }
  if (!flushes) GTEST_SKIP() << "this processor has no bf16 instructions: only the other variants were looked at";
}
#endif

TEST(Gemm, two_dimensional_operands_serve_every_batch) {
  for (const std::string& variant : cpu_variants(4, 6)) {
    std::mt19937_64 random(5);
    Buffer a(DType::f32, {3, 4, 5}), b(DType::f32, {5, 6}), d(DType::f32, {3, 4, 6}), flat(DType::f32, {12, 6});
    a.fill_normal(random);
    b.fill_normal(random);
    gemm(a, b, d, {.variant = variant});
    gemm(ConstTensorView(a.data(), DType::f32, Layout::contiguous({12, 5})), b, flat, {.variant = "reference"});
    for (std::int64_t i = 0; i < d.layout().size(); ++i) EXPECT_NEAR(d.get(i), flat.get(i), 1e-5) << variant;
  }
}

TEST(GemmPlan, runs_again_with_new_data_and_from_several_threads) {
  for (const std::string& variant : cpu_variants(600, 90)) {
    std::mt19937_64 random(6);
    Buffer a(DType::bf16, {600, 40}), b(DType::bf16, {40, 90}), d(DType::f32, {600, 90}), want(DType::f32, {600, 90});
    const Plan plan = plan_gemm(a, b, d, {.variant = variant});
    EXPECT_EQ(plan.variant(), variant);
    for (int round = 0; round < 3; ++round) {
      a.fill_normal(random);
      b.fill_normal(random);
      gemm(a, b, want, {.variant = variant});
      set_num_threads(round + 1);
      plan.run();
      EXPECT_EQ(d.bits(), want.bits()) << variant;
      set_num_threads(0);
    }
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i) {
      callers.emplace_back([&] {
        Buffer mine(DType::f32, {600, 90});
        for (int round = 0; round < 5; ++round) {
          gemm(a, b, mine, {.variant = variant});
          EXPECT_EQ(mine.bits(), want.bits()) << variant;
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
  }
}

TEST(GemmPlan, moves) {
  Buffer a(DType::f32, {1, 1}), b(DType::f32, {1, 1}), d(DType::f32, {1, 1});
  a.set(0, 2);
  b.set(0, 3);
  Plan first = plan_gemm(a, b, d);
  Plan second = std::move(first);
  second.run();
  EXPECT_EQ(d.get(0), 6);
}

#if !defined(__SANITIZE_THREAD__)  // ThreadSanitizer does not support threads started in a forked child
TEST(Gemm, works_in_a_forked_child_with_the_same_bits) {
  for (const std::string& variant : cpu_variants(600, 100)) {
    std::mt19937_64 random(7);
    Buffer a(DType::bf16, {600, 64}), b(DType::bf16, {64, 100}), d(DType::f32, {600, 100});
    a.fill_normal(random);
    b.fill_normal(random);
    set_num_threads(3);
    const Plan plan = plan_gemm(a, b, d, {.variant = variant});
    plan.run();
    const auto want = d.bits();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);  // a hang ends here
      plan.run();
      bool same = d.bits() == want;
      gemm(a, b, d, {.activation = Activation::relu, .variant = variant});  // a primitive the parent never made
      gemm(a, b, d, {.variant = variant});
      same = same && d.bits() == want;
      _exit(same ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << variant << ": status " << status;
    set_num_threads(0);
  }
}
#endif

/// A kernel that keeps its stack pointer elsewhere has the handler's frame written over what lies there.
TEST(Gemm, a_signal_handler_may_run_during_a_product) {
  struct sigaction action{}, before{};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  std::mt19937_64 random(11);
  Buffer a(DType::f32, {256, 256}), b(DType::f32, {256, 256}), d(DType::f32, {256, 256});
  a.fill_normal(random);
  b.fill_normal(random);
  ConstTensorView columns = b;
  std::swap(columns.strides[0], columns.strides[1]);
  const itimerval often{{0, 100}, {0, 100}}, never{};
  for (const std::string& variant : cpu_variants(256, 256)) {
    if (variant == "reference") continue;
    gemm(a, columns, d, {.variant = variant});
    const auto want = d.bits();
    bool same = true;
    setitimer(ITIMER_REAL, &often, nullptr);
    for (int made = 0; made < 10; ++made) {  // the heap notices damage when memory is given back
      const Plan plan = plan_gemm(a, columns, d, {.variant = variant});
      for (int run = 0; run < 15; ++run) {
        plan.run();
        same = same && d.bits() == want;
      }
    }
    setitimer(ITIMER_REAL, &never, nullptr);
    EXPECT_TRUE(same) << variant;
  }
  sigaction(SIGALRM, &before, nullptr);
}

TEST(Gemm, chooses_the_best_variant_that_is_built) {
  Buffer a(DType::f32, {4, 4}), b(DType::f32, {4, 4}), d(DType::f32, {4, 4});
  EXPECT_EQ(plan_gemm(a, b, d).variant(), cpu_variants(4, 4).front());
  EXPECT_EQ(cpu_variants(4, 4).back(), "reference");
}

TEST(Gemm, chooses_few_rows_before_a_library_where_it_is_faster) {
  const auto chosen = [](DType dtype, std::int64_t m, std::int64_t n) {
    Buffer a(dtype, {m, 64}), b(dtype, {64, n}), d(dtype, {m, n});
    return plan_gemm(a, b, d).variant();
  };
  const std::string otherwise = cpu_variants(8, 512).front();
  for (const DType dtype : {DType::f32, DType::f16}) {
    EXPECT_EQ(chosen(dtype, 1, 512), "few_rows");
    EXPECT_EQ(chosen(dtype, 512, 1), "few_rows");
  }
  EXPECT_EQ(chosen(DType::f16, 8, 512), "few_rows");
  EXPECT_EQ(chosen(DType::f16, 512, 4), "few_rows");
  EXPECT_EQ(chosen(DType::f16, 512, 8), otherwise);
  EXPECT_EQ(chosen(DType::f32, 2, 512), otherwise);
  EXPECT_EQ(chosen(DType::bf16, 1, 512), otherwise);
  EXPECT_NE(chosen(DType::f16, 9, 512), "few_rows");
}

}  // namespace
}  // namespace tmaops::test
