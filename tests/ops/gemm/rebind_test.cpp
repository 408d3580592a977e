// A plan of gemm on other memory gives what a plain call there gives, and refuses by name what does not fit.
#include <gtest/gtest.h>

#include "ops/gemm/gemm_case.hpp"
#include "support/expect_error.hpp"

namespace tmaops::test {
namespace {

Buffer normal(const Layout& layout, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Buffer made(DType::f32, layout);
  made.fill_normal(random);
  return made;
}

struct Operands {
  explicit Operands(std::uint64_t seed)
      : a(normal(Layout::contiguous({9, 7}), seed)),
        b(normal(Layout::contiguous({7, 5}), seed + 1)),
        c(normal(Layout::contiguous({9, 5}), seed + 2)),
        bias(normal(Layout::contiguous({5}), seed + 3)),
        d(DType::f32, {9, 5}) {}
  GemmOptions options(std::string_view variant = {}) const {
    return {.beta = 0.5F, .c = c, .bias = bias, .variant = std::string(variant)};
  }
  Buffer a, b, c, bias, d;
};

TEST(GemmRebind, every_variant_works_on_the_other_memory) {
  for (const auto& info : variants("gemm")) {
    if (info.device != DeviceType::cpu || !info.built) continue;
    SCOPED_TRACE(info.name);
    Operands x(1);
    Operands y(10);
    Operands z(20);
    Plan plan = plan_gemm(x.a, x.b, x.d, x.options(info.name));
    gemm(y.a, y.b, y.d, y.options(info.name));
    gemm(z.a, z.b, z.d, z.options(info.name));
    for (Operands* to : {&y, &z, &y}) {
      Buffer d(DType::f32, {9, 5});
      plan.rebind({to->a.data(), to->b.data(), d.data(), to->c.data(), to->bias.data()});
      plan.run();
      EXPECT_EQ(d.bits(), to->d.bits());
    }
    EXPECT_EQ(x.d.bits(), Buffer(DType::f32, {9, 5}).bits()) << "the first memory was not touched";
  }
}

TEST(GemmRebind, says_which_address_does_not_fit) {
  Operands x(1);
  Operands y(10);
  Plan plan = plan_gemm(x.a, x.b, x.d, x.options());
  const auto rebind = [&](const void* a, const void* b, const void* d, const void* c, const void* bias) {
    return [=, &plan] { plan.rebind({a, b, d, c, bias}); };
  };
  const auto* c = static_cast<const char*>(x.c.data());
  expect_error(
      ErrorCode::bad_parameter, [&] { plan.rebind({x.a.data(), x.b.data(), x.d.data()}); }, "3 addresses",
      "5: a, b, d, c, bias");
  expect_error(ErrorCode::null_pointer, rebind(x.a.data(), nullptr, x.d.data(), c, x.bias.data()), "gemm: b");
  expect_error(ErrorCode::misaligned, rebind(x.a.data(), x.b.data(), x.d.data(), c + 2, x.bias.data()), "gemm: c");
  expect_error(ErrorCode::overlap, rebind(x.a.data(), x.b.data(), x.a.data(), c, x.bias.data()), "gemm: d", "a uses");
  plan.run();
  gemm(y.a, y.b, y.d, y.options());
  const Buffer want = [&] {
    Operands again(1);
    gemm(again.a, again.b, again.d, again.options());
    return again.d;
  }();
  EXPECT_EQ(x.d.bits(), want.bits()) << "a refusal leaves the plan as it was";
}

TEST(GemmRebind, what_shared_memory_shares_it_again) {
  Operands x(1);
  Operands y(10);
  Buffer in_place = x.c;
  Plan plan = plan_gemm(x.a, x.b, in_place, {.beta = 0.5F, .c = in_place});
  expect_error(
      ErrorCode::bad_parameter, [&] { plan.rebind({y.a.data(), y.b.data(), y.d.data(), y.c.data()}); }, "gemm: c",
      "that of d");
  Buffer want = y.c;
  gemm(y.a, y.b, want, {.beta = 0.5F, .c = want});
  plan.rebind({y.a.data(), y.b.data(), y.c.data(), y.c.data()});
  plan.run();
  EXPECT_EQ(y.c.bits(), want.bits());
}

TEST(GemmRebind, a_tensor_that_is_not_read_is_left_out) {
  Operands x(1);
  Operands y(10);
  Plan plan = plan_gemm(x.a, x.b, x.d, {.beta = 0, .c = x.c});
  plan.rebind({y.a.data(), y.b.data(), y.d.data()});
  plan.run();
  Buffer want(DType::f32, {9, 5});
  gemm(y.a, y.b, want, {});
  EXPECT_EQ(y.d.bits(), want.bits());
}

}  // namespace
}  // namespace tmaops::test
