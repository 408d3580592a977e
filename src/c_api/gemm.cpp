#include "tmaops/gemm.hpp"

#include "c_api/option_fields.hpp"
#include "c_api/plan.hpp"

namespace tmaops::c_api {
namespace {

constexpr std::string_view kGemm = "gemm";

GemmOptions gemm_options(const Arguments& read, const tmaops_gemm_options* given, Stream stream) {
  const auto options = read.options<tmaops_gemm_options>(given, TMAOPS_GEMM_OPTIONS);
  GemmOptions made{.stream = stream};
  TMAOPS_GEMM_OPTION_LIST(TMAOPS_READ)
  return made;
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

int tmaops_gemm_workspace(const tmaops_tensor* a, const tmaops_tensor* b, const tmaops_tensor* d,
                          const tmaops_gemm_options* options, size_t* bytes) {
  return status_of_workspace(kGemm, bytes, [&](const Arguments& read) {
    return tmaops::gemm_workspace(read.tensor("a", a), read.tensor("b", b), read.tensor("d", d),
                                  gemm_options(read, options, nullptr));
  });
}
