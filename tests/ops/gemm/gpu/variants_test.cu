// Every GPU variant of gemm against the definition in f64: random problems over all that it allows, outputs poisoned
// and between canaries, with and without dependent launch, which must give the same bits.
#include <algorithm>
#include <map>
#include <random>

#include "ops/gemm/gpu/gemm_check.cuh"

namespace tmaops {
namespace {

using test::GemmCase;
using test::Outcome;
using test::Placement;

constexpr int kSeeds = 16;
constexpr int kProblemsPerSeed = 150;  // 2,400 problems in all

std::vector<std::string> gpu_variants() {
  std::vector<std::string> names;
  for (const auto& variant : ops::gemm::variants())
    if (test::runs_here(variant)) names.emplace_back(variant.name);
  return names;
}

/// Every variant with its own choice of a tile, then each tile for the problem.
std::vector<std::string> every_tile(const ops::gemm::Problem& problem) {
  std::vector<std::string> names = gpu_variants();
  for (const auto& choice : ops::gemm::every_choice(problem, device_info(problem.device)))
    names.push_back(choice.name());
  return names;
}

/// Runs a case with every GPU variant that takes it; returns the names of those.
std::vector<std::string> check(test::GemmRunner& runner, const GemmCase& x) {
  std::vector<std::string> ran;
  runner.set(x);
  for (const std::string& variant : every_tile(runner.problem())) {
    Outcome outcome[2];
    try {
      for (const bool dependent : {false, true}) outcome[dependent ? 1 : 0] = runner.run(variant, dependent);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::variant_refuses || variant == "wgmma_cp_async" || variant == "mma_sync")
        ADD_FAILURE() << error.what() << "\n" << test::describe(x);
      continue;
    }
    ran.push_back(variant);
    for (int dependent = 0; dependent < 2; ++dependent) {
      const Outcome& got = outcome[dependent];
      const std::string what = variant + (dependent == 1 ? ", dependent launch" : "");
      EXPECT_EQ(got.wrong, 0) << what << ": first wrong element of D is number " << got.first_wrong << "\n"
                              << test::describe(x);
      EXPECT_EQ(got.stray_words, 0) << what << ": wrote around D\n" << test::describe(x);
      EXPECT_EQ(got.checksum, outcome[0].checksum) << what << ": other bits than in the first run\n"
                                                   << test::describe(x);
    }
    if (::testing::Test::HasFailure()) return ran;
  }
  return ran;
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  template <class... Choice>
  auto pick(Choice... choices) {
    const std::common_type_t<Choice...> all[] = {choices...};
    return all[random_() % sizeof...(choices)];
  }
  bool chance(unsigned one_in) { return random_() % one_in == 0; }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  /// Small, around multiples of tiles, or anything.
  std::int64_t extent() {
    if (chance(3)) return between(0, 70);
    if (chance(2)) return pick(64, 128, 192, 256, 384) + pick(-8, -1, 0, 0, 0, 1, 8);
    return between(1, 400);
  }
  /// Half of them are what the copy engine takes: contiguous rows that start at multiples of 16 bytes.
  Placement placement(std::int64_t rows, std::int64_t columns, bool input) {
    Placement placement{.column_major = chance(2)};
    const std::int64_t inner = placement.column_major ? rows : columns;
    if (chance(2)) {
      placement.padding = (8 - inner % 8) % 8 + 8 * pick(0, 0, 1, 3);
      placement.broadcast = input && chance(4);
      return placement;
    }
    placement.padding = pick(0, 0, 1, 2, 4, 8);
    placement.step = pick(1, 1, 1, 1, 2, 3);
    placement.reversed = input && chance(8);
    placement.broadcast = input && chance(4);
    placement.shift = pick(0, 0, 1, 2, 4);
    return placement;
  }
  /// A plain product of whole tiles, as the unrolled kernels take it.
  GemmCase whole_tiles() {
    GemmCase x{.m = 256 * between(1, 3), .n = 128 * between(1, 3), .k = pick(256, 512, 1024, 1024)};
    x.in = x.out = pick(DType::f16, DType::bf16);
    for (Placement* placement : {&x.a, &x.b, &x.d}) *placement = {.column_major = chance(2), .padding = pick(0, 8)};
    x.seed = random_() >> 8;
    return x;
  }
  GemmCase gemm() {
    if (chance(4)) return whole_tiles();
    GemmCase x{.m = extent(), .n = extent(), .k = chance(6) ? between(400, 1500) : extent()};
    x.batch = pick(0, 0, 0, 0, 1, 3, 7);
    if (x.batch > 1) x.m = x.m % 150;
    x.in = pick(DType::f16, DType::bf16);
    x.out = chance(2) ? x.in : pick(DType::f16, DType::bf16, DType::f32);
    x.a = placement(x.m, x.k, true);
    x.b = placement(x.k, x.n, true);
    x.c = placement(x.m, x.n, true);
    x.d = placement(x.m, x.n, false);
    if (chance(2)) {
      x.alpha = pick(1.0F, -0.75F, 0.0F);
      x.beta = pick(0.0F, 0.0F, 1.0F, 0.3F);
      x.c_is_d = chance(2);
      x.c_dtype = pick(DType::f16, DType::bf16, DType::f32);
      if (chance(2)) x.bias = pick(DType::f16, DType::bf16, DType::f32);
      x.bias_axis = pick(BiasAxis::column, BiasAxis::row);
      x.bias_stride = pick(1, 1, 2, -1, 0);
      x.activation = pick(Activation::none, Activation::none, Activation::relu, Activation::gelu, Activation::silu);
    }
    x.seed = random_() >> 8;
    return x;
  }

 private:
  std::mt19937_64 random_;
};

class GpuGemm : public ::testing::TestWithParam<int> {};

TEST_P(GpuGemm, variants_agree_with_the_definition_on_random_problems) {
  TMAOPS_NEEDS_GPU();
  test::GemmRunner runner;
  Draw draw(static_cast<std::uint64_t>(7000 + GetParam()));
  std::map<std::string, int> runs;
  for (int i = 0; i < kProblemsPerSeed; ++i) {
    for (const std::string& variant : check(runner, draw.gemm())) ++runs[variant];
    if (HasFailure()) return;
  }
  for (const std::string& variant : gpu_variants())
    EXPECT_GE(runs[variant], 5) << variant << " took hardly any problem";
}
INSTANTIATE_TEST_SUITE_P(Seeds, GpuGemm, ::testing::Range(0, kSeeds));

/// Several tiles in both directions, long K, all modes: what the pipelines and tile orders are made for.
TEST(GpuGemmShapes, large_problems_of_every_mode) {
  TMAOPS_NEEDS_GPU();
  test::GemmRunner runner;
  // 2176 x 1544: 153 tiles of 128 x 192, the last 21 in pieces of 64 columns.
  const std::int64_t sizes[][3] = {{256, 256, 256},   {512, 512, 512},   {1024, 1024, 1024}, {1000, 1000, 1000},
                                   {64, 4096, 7168},  {2048, 1536, 320}, {4096, 640, 64},    {136, 2056, 4096},
                                   {1, 4096, 1024},   {4096, 1, 1024},   {1500, 1560, 200},  {2500, 1100, 136},
                                   {3000, 2504, 200}, {17, 33, 8192},    {2176, 1544, 264}};
  std::uint64_t seed = 1;
  for (const auto& [m, n, k] : sizes)
    for (const bool a_column : {false, true})
      for (const bool b_column : {false, true}) {
        GemmCase x{.m = m, .n = n, .k = k, .in = DType::f16, .out = DType::f16, .seed = ++seed};
        x.a.column_major = a_column;
        x.b.column_major = b_column;
        const auto ran = check(runner, x);
        const bool hopper = test::runs_here(ops::gemm::variants(), "wgmma_persistent");
        if (hopper && b_column && !a_column && n % 8 == 0)
          EXPECT_EQ(std::ranges::count(ran, "wgmma_persistent/128x176"), 1) << test::describe(x);
        if (hopper && m == 1000) EXPECT_EQ(std::ranges::count(ran, "wgmma_cluster8/64x144c8"), 1) << test::describe(x);
        x.activation = Activation::gelu;
        x.bias = DType::bf16;
        x.beta = 0.5F;
        x.in = x.c_dtype = DType::bf16;
        x.out = DType::f32;
        check(runner, x);
        if (HasFailure()) return;
      }
}

/// What the unrolled kernels take, and neighbours that they must not take.
TEST(GpuGemmShapes, whole_tiles_of_every_mode_and_type) {
  TMAOPS_NEEDS_GPU();
  test::GemmRunner runner;
  const std::int64_t sizes[][3] = {{64, 32, 256},    {1024, 288, 256},   {256, 96, 512},
                                   {512, 256, 1024}, {1024, 1024, 1024}, {1000, 984, 1000},
                                   {128, 96, 512},   {72, 32, 256},      {1016, 1024, 968}};
  std::uint64_t seed = 100;
  for (const auto& [m, n, k] : sizes)
    for (int mode = 0; mode < 8; ++mode)
      for (const DType type : {DType::f16, DType::bf16})
        for (const int padding : {0, 8}) {
          GemmCase x{.m = m, .n = n, .k = k, .in = type, .out = type, .seed = ++seed};
          x.a = {.column_major = (mode & 1) != 0, .padding = padding};
          x.b = {.column_major = (mode & 2) != 0, .padding = 3 * padding};
          x.d = {.column_major = (mode & 4) != 0, .padding = 2 * padding};
          check(runner, x);
          if (HasFailure()) return;
        }
}

TEST(GpuGemmShapes, not_a_number_stays_in_its_row_and_column) {
  TMAOPS_NEEDS_GPU();
  constexpr std::int64_t m = 200, n = 136, k = 72;
  std::vector<__half> a(m * k, __half(1.0F)), b(k * n, __half(0.5F));
  a[65 * k + 3] = __half(NAN);
  b[7 * n + 130] = __half(INFINITY);
  const test::DeviceArray<__half> device_a(a), device_b(b);
  for (const std::string& variant : gpu_variants()) {
    const test::DeviceArray<float> device_d(m * n);
    const Device gpu{DeviceType::cuda, 0};
    try {
      gemm(ConstTensorView(device_a.get(), DType::f16, Layout::contiguous({m, k}), gpu),
           ConstTensorView(device_b.get(), DType::f16, Layout::contiguous({k, n}), gpu),
           TensorView(device_d.get(), DType::f32, Layout::contiguous({m, n}), gpu), {.variant = variant});
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::variant_refuses) << error.what();
      continue;
    }
    const auto d = device_d.values();
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        const float got = d[static_cast<std::size_t>(i * n + j)];
        const float want = i == 65 ? NAN : j == 130 ? INFINITY : 36.0F;
        ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want)
            << variant << " " << i << ", " << j << ": " << got;
      }
  }
}

TEST(GpuGemmShapes, plan_runs_inside_a_captured_graph) {
  TMAOPS_NEEDS_GPU();
  constexpr std::int64_t size = 256;
  const test::DeviceArray<__half> a(std::vector<__half>(size * size, __half(0.5F)));
  const test::DeviceArray<__half> b(std::vector<__half>(size * size, __half(0.25F)));
  const Device gpu{DeviceType::cuda, 0};
  const Layout square = Layout::contiguous({size, size});
  std::vector<std::string> names = gpu_variants();
  std::vector<std::string> ran;
  for (const std::string& variant : names) {
    const test::DeviceArray<__half> d(size * size);
    try {
      const Plan plan = plan_gemm(ConstTensorView(a.get(), DType::f16, square, gpu),
                                  ConstTensorView(b.get(), DType::f16, square, gpu),
                                  TensorView(d.get(), DType::f16, square, gpu), {.variant = variant});
      test::replay_captured(plan);
      ran.push_back(variant);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::variant_refuses) << error.what();
      continue;
    }
    for (const __half got : d.values()) ASSERT_EQ(static_cast<float>(got), 32.0F) << variant;
  }
  EXPECT_EQ(ran, names);
}

}  // namespace
}  // namespace tmaops
