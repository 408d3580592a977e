#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "c_api/c_tensors.hpp"
#include "c_api/status.hpp"
#include "support/failing_allocations.hpp"

namespace tmaops::c_api_test {
namespace {

using c_api::status_of;

TEST(CErrors, constants_are_the_numbers_of_the_catalogue) {
#define TMAOPS_ERROR(number, name, exit_code, title, explanation, mend) \
  EXPECT_EQ(tmaops_error_##name, static_cast<int>(ErrorCode::name)) << #number;
#include "tmaops/errors.def"
#undef TMAOPS_ERROR
}

TEST(CErrors, every_error_arrives_with_its_number_and_its_parts) {
  for (const ErrorPage& page : error_catalogue()) {
    const ErrorDetails details{.where = "gemm: " + std::string(page.name), .got = "7", .needed = "8", .mend = "add 1"};
    const Error error(page.code, details);
    EXPECT_EQ(status_of("gemm", [&] { throw Error(error); }), error.value());
    const tmaops_error* last = tmaops_last_error();
    EXPECT_EQ(last->code, error.value());
    EXPECT_EQ(last->number, page.number);
    EXPECT_EQ(last->name, page.name);
    EXPECT_EQ(last->where, details.where);
    EXPECT_EQ(last->got, details.got);
    EXPECT_EQ(last->needed, details.needed);
    EXPECT_EQ(last->mend, details.mend);
    EXPECT_STREQ(last->message, error.what());
  }
}

TEST(CErrors, an_error_without_a_mend_of_its_own_has_that_of_the_catalogue) {
  for (const ErrorPage& page : error_catalogue()) {
    status_of("gemm", [&] { throw Error(page.code, {.where = "", .got = "", .needed = ""}); });
    EXPECT_EQ(tmaops_last_error()->mend, page.mend);
    EXPECT_STREQ(tmaops_last_error()->where, "");
  }
}

TEST(CErrors, other_exceptions_become_errors_of_the_catalogue) {
  EXPECT_EQ(status_of("gemm", [] { throw std::bad_alloc(); }), tmaops_error_out_of_memory);
  EXPECT_EQ(status_of("gemm", [] { throw std::length_error("vector"); }), tmaops_error_out_of_memory);
  EXPECT_EQ(status_of("gemm", [] { throw std::runtime_error("odd"); }), tmaops_error_internal);
  EXPECT_STREQ(tmaops_last_error()->got, "odd");
  EXPECT_EQ(status_of("gemm", [] { throw 1; }), tmaops_error_internal);
}

TEST(CErrors, the_last_error_is_the_threads_own_and_stays_through_calls_that_succeed) {
  std::thread([] {
    EXPECT_EQ(tmaops_last_error()->code, tmaops_done);
    EXPECT_STREQ(tmaops_last_error()->message, "");
  }).join();
  EXPECT_EQ(tmaops_set_num_threads(-1), tmaops_error_bad_parameter);
  std::thread([] { EXPECT_EQ(tmaops_set_num_threads(0), tmaops_done); }).join();
  EXPECT_EQ(tmaops_set_num_threads(0), tmaops_done);
  EXPECT_EQ(tmaops_last_error()->code, tmaops_error_bad_parameter);
}

TEST(CErrors, memory_that_runs_out_is_an_error_with_all_its_parts) {
  const CTensor<float> a({2, 2}, {1, 2, 3, 4});
  CTensor<float> d({2, 2});
  const tmaops_level_shape level{1, 2};
  const CTensor<float> value({1, 2, 1, 1}, {1, 2});
  const CTensor<float> locations({1, 1, 1, 1, 1, 2}, {0.5F, 0.5F});
  const CTensor<float> weights({1, 1, 1, 1, 1}, {1});
  CTensor<float> output({1, 1, 1});
  tmaops_gemm_options options = TMAOPS_GEMM_OPTIONS;
  options.variant = "blocked";  // oneDNN is not asked: it leaks when an allocation of its own fails
  const Error refused(ErrorCode::out_of_memory,
                      {.where = "", .got = "", .needed = ""});  // throwing a copy takes no memory
  test::expect_out_of_memory_is_an_error("the C interface", [&] {
    tmaops_plan* plan = nullptr;
    const int statuses[] = {tmaops_gemm(a, a, d, &options, nullptr), tmaops_plan_gemm(a, a, d, &options, &plan),
                            tmaops_ms_deform_attn(value, &level, 1, locations, weights, output, nullptr, nullptr)};
    tmaops_plan_destroy(plan);
    for (const int status : statuses) {
      if (status == tmaops_done) continue;
      if (tmaops_last_error()->name != std::string_view("out_of_memory")) throw status;
      throw Error(refused);
    }
  });
}

}  // namespace
}  // namespace tmaops::c_api_test
