// A library of a client's that uses tmaops inside and exports one function of its own.
#include <cmath>
#include <cstring>
#include <tmaops/tmaops.hpp>
#include <vector>

extern "C" __attribute__((visibility("default"))) const char* plugin_run() {
  using tmaops::view;

  const std::vector<tmaops::bfloat16> a{tmaops::bfloat16(1.0F), tmaops::bfloat16(2.0F)};
  const std::vector<tmaops::bfloat16> b{tmaops::bfloat16(3.0F), tmaops::bfloat16(4.0F)};
  float d = NAN;
  tmaops::GemmOptions options;
  options.activation = tmaops::Activation::relu;
  const tmaops::Plan plan =
      tmaops::plan_gemm(view(a.data(), {1, 2}), view(b.data(), {2, 1}), view(&d, {1, 1}), options);
  plan.run();
  if (d != 11.0F) return "gemm is wrong";

  const std::vector<double> values{0, 10};
  std::vector<double> resampled(3, NAN);
  tmaops::resample(view(values.data(), {1, 2, 1}), view(values.data(), {2}), tmaops::UniformGrid{0.0, 5.0, 3},
                   view(resampled.data(), {1, 3, 1}));
  if (resampled != std::vector<double>{0, 5, 10}) return "resample is wrong";

  try {
    tmaops::gemm(view(a.data(), {2, 1}), view(b.data(), {2, 1}), view(&d, {1, 1}));
    return "no error";
  } catch (const tmaops::Error& error) {
    const tmaops::Error copy = error;
    if (copy.value() != 10 || std::strstr(copy.what(), "E010") == nullptr) return "another error";
  }
  for (const std::string_view op : tmaops::operators())
    if (tmaops::variants(op).empty()) return "an operator without variants";
  const auto spec = tmaops::tma::tiled_spec(tmaops::tma::element_type(tmaops::DType::f16), {64, 64}, {64, 8});
  if (tmaops::tma::transaction_bytes(spec) != 1024 || !tmaops::tma::check(spec).valid()) return "the toolbox is wrong";
  return "works";
}
