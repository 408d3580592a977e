// Matrix multiplications: random normal operands in the four modes.
#include "tmaops/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "bench/workloads/common.hpp"
#include "bench/workloads/element.hpp"
#include "core/fail.hpp"
#include "core/parallel.hpp"
#include "core/spelling.hpp"
#include "ops/gemm/problem.hpp"
#include "ops/gemm/tuning.hpp"

namespace tmaops::bench {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 24;
/// A product that is not checked whole is checked on as many rows as columns, at least so many.
constexpr std::int64_t kFewestSampled = 48;

struct GemmConfig {
  std::string mode = "RC";
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  bool batched = false;
  DType dtype = DType::f16;
  DType out = DType::f16;
  float alpha = 1;
  float beta = 0;
  std::string bias = "none";
  Activation activation = Activation::none;
  bool wgmma = false;  // impl: wgmma
};

/// "RC 1024" or "RC 64x4096x7168".
void read_case(const Settings& problem, const Setting& setting, GemmConfig& config) {
  const std::string& text = setting.value;
  const std::string needed = "a mode and a size: 'RC 1024' or 'RC 64x4096x7168' (M x N x K)";
  const std::size_t space = text.find(' ');
  if (space != 2) problem.fail(ErrorCode::unknown_case, setting, needed);
  config.mode = text.substr(0, 2);
  if (config.mode != "RC" && config.mode != "CR" && config.mode != "RR" && config.mode != "CC")
    problem.fail(ErrorCode::unknown_case, setting, needed);
  std::vector<std::int64_t> extents;
  for (const std::string& part : split_list(std::string_view(text).substr(space + 1), 'x')) {
    const auto extent = parse_integer(part);
    if (!extent || *extent < 0 || *extent > kLargest) problem.fail(ErrorCode::unknown_case, setting, needed);
    extents.push_back(*extent);
  }
  if (extents.size() != 1 && extents.size() != 3) problem.fail(ErrorCode::unknown_case, setting, needed);
  config.m = extents[0];
  config.n = extents.size() == 3 ? extents[1] : extents[0];
  config.k = extents.size() == 3 ? extents[2] : extents[0];
}

GemmConfig read_gemm(const Settings& problem) {
  problem.only({"mode", "size", "m", "n", "k", "case", "batch", "dtype", "out", "alpha", "beta", "bias", "activation",
                "variant", "version", "impl"});
  GemmConfig config;
  if (const Setting* named = problem.find("case")) {
    for (const char* other : {"mode", "size", "m", "n", "k"})
      if (const Setting* extra = problem.find(other))
        problem.fail(ErrorCode::bad_value, *extra, "no mode or size beside a case: the case has both");
    read_case(problem, *named, config);
  } else {
    config.mode = problem.word("mode", "RC", {"RC", "CR", "RR", "CC"});
    const std::int64_t size = problem.integer("size", -1, 0, kLargest);
    config.m = problem.integer("m", size, 0, kLargest);
    config.n = problem.integer("n", size, 0, kLargest);
    config.k = problem.integer("k", size, 0, kLargest);
    if (config.m < 0 || config.n < 0 || config.k < 0)
      fail(ErrorCode::bad_value, problem.place().text() + ": gemm", "no size",
           "size (M = N = K), or m, n and k, or a case");
  }
  config.batched = problem.has("batch");
  config.batch = problem.integer("batch", 1, 1, 1 << 20);
  config.dtype = problem.dtype("dtype", DType::f16, {DType::f16, DType::bf16, DType::f32});
  config.out = problem.dtype("out", config.dtype, {DType::f16, DType::bf16, DType::f32});
  config.alpha = static_cast<float>(problem.number("alpha", 1, -1e30, 1e30));
  config.beta = static_cast<float>(problem.number("beta", 0, -1e30, 1e30));
  config.bias = problem.word("bias", "none", {"none", "column", "row"});
  config.wgmma = problem.has("impl");  // of the operator's own choice; CuTe's kernels are peers
  config.activation = *parse_activation(problem.word("activation", "none", {TMAOPS_WORDS_activation(TMAOPS_TEXT)}));
  return config;
}

/// The product without what becomes of it: "RC 1024 batch=2".
std::string product_name(const GemmConfig& config) {
  const bool square = config.m == config.n && config.n == config.k;
  std::string name =
      config.mode + (square ? fmt::format(" {}", config.m) : fmt::format(" {}x{}x{}", config.m, config.n, config.k));
  if (config.batched) name += fmt::format(" batch={}", config.batch);
  return name;
}

std::string case_name(const GemmConfig& config) {
  std::string name = product_name(config);
  if (config.alpha != 1) name += fmt::format(" alpha={}", config.alpha);
  if (config.beta != 0) name += fmt::format(" beta={}", config.beta);
  if (config.bias != "none") name += " bias=" + config.bias;
  if (config.activation != Activation::none) name += " " + std::string(to_string(config.activation));
  return name;
}

/// Layout of a rows x columns matrix, or a batch of them.
Layout matrix(const GemmConfig& config, std::int64_t rows, std::int64_t columns, bool row_major) {
  const std::int64_t outer = row_major ? columns : 1;
  const std::int64_t inner = row_major ? 1 : rows;
  if (!config.batched) return Layout::strided({rows, columns}, {outer, inner});
  return Layout::strided({config.batch, rows, columns}, {rows * columns, outer, inner});
}

std::vector<TensorSpec> tensors(const GemmConfig& config) {
  std::vector<TensorSpec> all{{"a", config.dtype, matrix(config, config.m, config.k, config.mode[0] == 'R')},
                              {"b", config.dtype, matrix(config, config.k, config.n, config.mode[1] == 'R')},
                              {"d", config.out, matrix(config, config.m, config.n, true), true}};
  if (config.beta != 0) all.push_back({"c", config.out, matrix(config, config.m, config.n, true)});
  if (config.bias != "none")
    all.push_back({"bias", config.out, Layout::contiguous({config.bias == "row" ? config.m : config.n})});
  return all;
}

CaseInfo describe(const Settings& problem, const GemmConfig& config, Device device) {
  CaseInfo made{
      .op = "gemm", .name = case_name(config), .dtype = std::string(to_string(config.dtype)), .device = device};
  if (config.out != config.dtype) made.dtype += "->" + std::string(to_string(config.out));
  made.problem = problem.to_text();
  made.flops = 2.0 * static_cast<double>(config.batch) * static_cast<double>(config.m) * static_cast<double>(config.n) *
               static_cast<double>(config.k);
  return made;
}

class GemmWorkload : public Workload {
 public:
  GemmWorkload(const Settings& problem, const GemmConfig& config, Device device)
      : Workload(describe(problem, config, device), bench::tensors(config)), config_(config) {}

  std::vector<VariantChoice> variants() const override {
    return choices(ops::gemm::variants(), problem(), device_info(info_.device));
  }
  std::string tuning_key() const override { return product_name(config_); }
  std::vector<std::string> candidates() const override {
    if (info_.device.type != DeviceType::cuda) return {};
    std::vector<std::string> names;
    for (const auto& choice : ops::gemm::every_choice(problem(), device_info(info_.device)))
      names.push_back(choice.name());
    return names;
  }
  std::string selected() const override {
    std::string name(ops::gemm::select(problem(), device_info(info_.device)).variant->name);
    if (config_.wgmma && !name.starts_with("wgmma"))
      fail(ErrorCode::variant_refuses, "gemm: impl", name + " for " + problem().text(),
           "a problem that a variant with wgmma takes: f16 or bf16 on a GPU of compute capability 9.0");
    return name;
  }
  nlohmann::json peer_parameters() const override {
    return {{"mode", config_.mode},
            {"alpha", config_.alpha},
            {"beta", config_.beta},
            {"bias", config_.bias},
            {"activation", to_string(config_.activation)},
            {"batched", config_.batched}};
  }
  Call bind(const std::string& variant, int set, Launch launch) const override {
    return call_of(plan_gemm(tensor("a", set), tensor("b", set), tensor("d", set), options(variant, set, launch)));
  }
  Call fresh(const std::string& variant, int set, Launch launch) const override {
    return [a = tensor("a", set), b = tensor("b", set), d = tensor("d", set),
            wanted = options(variant, set, launch)](Stream stream) mutable {
      wanted.stream = stream;
      gemm(a, b, d, wanted);
    };
  }

 protected:
  void fill(std::uint64_t seed) override {
    fill_normal(tensor("a", 0), part_seed(seed, 1));
    fill_normal(tensor("b", 0), part_seed(seed, 2));
    if (config_.beta != 0) fill_normal(tensor("c", 0), part_seed(seed, 3));
    if (config_.bias != "none") fill_normal(tensor("bias", 0), part_seed(seed, 4));
  }
  std::vector<Expected> reference(std::uint64_t seed, double work) const override;
  double tolerance() const override { return rounding_tolerance(config_.out); }

 private:
  GemmOptions options(const std::string& variant, int set, Launch launch = Launch::plain) const {
    GemmOptions made;
    made.dependent_launch = launch == Launch::dependent;
    made.alpha = config_.alpha;
    made.beta = config_.beta;
    if (config_.beta != 0) made.c = tensor("c", set);
    if (config_.bias != "none") made.bias = tensor("bias", set);
    made.bias_axis = config_.bias == "row" ? BiasAxis::row : BiasAxis::column;
    made.activation = config_.activation;
    made.variant = variant;
    return made;
  }
  ops::gemm::Problem problem() const {
    return ops::gemm::make_problem(tensor("a", 0), tensor("b", 0), tensor("d", 0), options("", 0));
  }

  GemmConfig config_;
};

/// The rows and columns of one matrix that the indices name, packed in f32, which holds all types that a matrix may
/// have. `order`: along which of them it is contiguous.
Buffer gather(const TensorView& from, std::int64_t batch, const std::vector<std::int64_t>& rows,
              const std::vector<std::int64_t>& columns, ops::gemm::Order order = ops::gemm::Order::row) {
  const auto r = static_cast<std::size_t>(from.rank - 2);
  const std::int64_t start = from.rank == 3 ? batch * from.strides[0] : 0;
  const auto height = static_cast<std::int64_t>(rows.size());
  const auto width = static_cast<std::int64_t>(columns.size());
  const bool by_rows = order == ops::gemm::Order::row;
  Buffer packed(DType::f32, Layout::strided({height, width}, {by_rows ? width : 1, by_rows ? 1 : height}));
  const TensorView to = packed.view();
  parallel_for(height, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t j = 0; j < width; ++j)
        store(DType::f32, to.data, i * to.strides[0] + j * to.strides[1],
              load(from.dtype, from.data,
                   start + rows[static_cast<std::size_t>(i)] * from.strides[r] +
                       columns[static_cast<std::size_t>(j)] * from.strides[r + 1]));
  });
  return packed;
}

std::vector<Expected> GemmWorkload::reference(std::uint64_t seed, double work) const {
  Random random(seed, 77);
  const double inner_work = static_cast<double>(std::max<std::int64_t>(config_.k, 1));
  const double all_work =
      static_cast<double>(config_.batch) * static_cast<double>(config_.m) * static_cast<double>(config_.n) * inner_work;
  const bool whole = all_work <= work;
  const auto batches = sample_indices(config_.batch, whole ? config_.batch : 2, random);
  const double share = work / inner_work / static_cast<double>(std::max<std::size_t>(batches.size(), 1));
  const auto sampled = std::max(kFewestSampled, static_cast<std::int64_t>(std::sqrt(share)));
  const auto rows = sample_indices(config_.m, whole ? config_.m : sampled, random);
  const auto columns = sample_indices(config_.n, whole ? config_.n : sampled, random);
  std::vector<std::int64_t> inner(static_cast<std::size_t>(config_.k));
  for (std::size_t i = 0; i < inner.size(); ++i) inner[i] = static_cast<std::int64_t>(i);

  Expected expected{.tensor = "d", .elements = {}, .values = {}};
  if (rows.empty() || columns.empty()) return {expected};
  const TensorView d = tensor("d", 0);
  const auto r = static_cast<std::size_t>(d.rank - 2);
  for (const std::int64_t batch : batches) {
    const Buffer a = gather(tensor("a", 0), batch, rows, inner);
    const Buffer b = gather(tensor("b", 0), batch, inner, columns, ops::gemm::Order::column);
    const Buffer want(DType::f32, Layout::contiguous({static_cast<std::int64_t>(rows.size()),
                                                      static_cast<std::int64_t>(columns.size())}));
    GemmOptions packed = options("reference", 0);
    Buffer c;
    Buffer bias;
    if (config_.beta != 0) {
      c = gather(tensor("c", 0), batch, rows, columns);
      packed.c = c.view();
    }
    if (config_.bias != "none") {
      const auto& chosen = config_.bias == "row" ? rows : columns;
      const TensorView given = tensor("bias", 0);
      bias = Buffer(DType::f32, Layout::contiguous({static_cast<std::int64_t>(chosen.size())}));
      for (std::size_t i = 0; i < chosen.size(); ++i)
        store(DType::f32, bias.view().data, static_cast<std::int64_t>(i), load(given.dtype, given.data, chosen[i]));
      packed.bias = bias.view();
    }
    gemm(a.view(), b.view(), want.view(), packed);
    std::int64_t at = 0;
    for (const std::int64_t row : rows) {
      for (const std::int64_t column : columns) {
        expected.elements.push_back((d.rank == 3 ? batch * d.strides[0] : 0) + row * d.strides[r] +
                                    column * d.strides[r + 1]);
        expected.values.push_back(load(DType::f32, want.view().data, at++));
      }
    }
  }
  return {expected};
}

}  // namespace

std::unique_ptr<Workload> make_gemm_workload(const Settings& problem, Device device) {
  return std::make_unique<GemmWorkload>(problem, read_gemm(problem), device);
}

}  // namespace tmaops::bench
