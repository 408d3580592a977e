#include "tmaops/gemm.hpp"

#include "c_api/plan.hpp"

namespace tmaops::c_api {
namespace {

constexpr std::string_view kGemm = "gemm";

GemmOptions gemm_options(const Arguments& arguments, const tmaops_gemm_options* given, Stream stream) {
  const tmaops_gemm_options options = arguments.options<tmaops_gemm_options>(given, TMAOPS_GEMM_OPTIONS);
  return {.alpha = options.alpha,
          .beta = options.beta,
          .c = arguments.optional_tensor("c", options.c),
          .bias = arguments.optional_tensor("bias", options.bias),
          .bias_axis = arguments.enumerator<BiasAxis>("bias_axis", options.bias_axis),
          .activation = arguments.enumerator<Activation>("activation", options.activation),
          .dependent_launch = options.dependent_launch != 0,
          .variant = text(options.variant),
          .tuning = text(options.tuning),
          .stream = stream,
          .version = options.version,
          .impl = text(options.impl)};
}

}  // namespace
}  // namespace tmaops::c_api

using namespace tmaops::c_api;  // NOLINT(google-build-using-namespace): this file is a part of it

int tmaops_gemm(const tmaops_tensor* a, const tmaops_tensor* b, const tmaops_tensor* d,
                const tmaops_gemm_options* options, tmaops_stream stream) {
  return status_of_call(kGemm, [&](const Arguments& read) {
    tmaops::gemm(read.tensor("a", a), read.tensor("b", b), read.tensor("d", d), gemm_options(read, options, stream));
  });
}

int tmaops_plan_gemm(const tmaops_tensor* a, const tmaops_tensor* b, const tmaops_tensor* d,
                     const tmaops_gemm_options* options, tmaops_plan** plan) {
  return status_of_plan(kGemm, plan, [&](const Arguments& read) {
    return tmaops::plan_gemm(read.tensor("a", a), read.tensor("b", b), read.tensor("d", d),
                             gemm_options(read, options, nullptr));
  });
}
