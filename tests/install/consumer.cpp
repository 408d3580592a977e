// Uses each operator once through the installed headers and library.
#include <cmath>
#include <cstdio>
#include <tmaops/tmaops.hpp>
#include <vector>

int main() {
  using tmaops::view;

  const std::vector<float> a{1, 2, 3, 4};
  const std::vector<float> b{5, 6, 7, 8};
  std::vector<float> d(4, NAN);
  tmaops::gemm(view(a.data(), {2, 2}), view(b.data(), {2, 2}), view(d.data(), {2, 2}));
  if (d != std::vector<float>{19, 22, 43, 50}) return std::puts("gemm is wrong"), 1;

  const std::vector<float> values{0, 10, 30};
  const std::vector<double> source_times{0, 1, 3};
  const std::vector<double> target_times{0.5, 2};
  std::vector<float> resampled(2, NAN);
  tmaops::resample(view(values.data(), {1, 3, 1}), view(source_times.data(), {1, 3}), view(target_times.data(), {1, 2}),
                   view(resampled.data(), {1, 2, 1}));
  if (resampled != std::vector<float>{5, 20}) return std::puts("resample is wrong"), 1;

  const std::vector<float> pixels{1, 2, 3, 4};
  const tmaops::LevelShape level{2, 2};
  const std::vector<float> location{0.5F, 0.5F};
  const std::vector<float> weight{2};
  float output = NAN;
  tmaops::ms_deform_attn(view(pixels.data(), {1, 4, 1, 1}), {&level, 1}, view(location.data(), {1, 1, 1, 1, 1, 2}),
                         view(weight.data(), {1, 1, 1, 1, 1}), view(&output, {1, 1, 1}));
  if (output != 5.0F) return std::puts("ms_deform_attn is wrong"), 1;

  for (const std::string_view op : tmaops::operators())
    for (const tmaops::VariantInfo& variant : tmaops::variants(op))
      if (variant.study) return std::puts("a study is in the installed library"), 1;

  std::printf("tmaops %s works\n", tmaops::version().data());
  return 0;
}
