// Resampling of trajectories: random normal values at irregular times.
#include "tmaops/resample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "bench/element.hpp"
#include "bench/workloads/common.hpp"
#include "core/parallel.hpp"
#include "ops/resample/problem.hpp"

namespace tmaops::bench {
namespace {

/// Output elements that are checked; larger cases are checked on whole trajectories chosen at random.
constexpr std::int64_t kChecked = std::int64_t{1} << 22;
constexpr double kSourceStep = 0.01;  // seconds between samples, on average
constexpr double kNanoseconds = 1e9;

struct Config {
  std::int64_t batch = 0;     // B
  std::int64_t samples = 0;   // S
  std::int64_t targets = 0;   // T
  std::int64_t channels = 0;  // D
  bool random_times = false;
  DType dtype = DType::f32;
  DType time_dtype = DType::f32;
  int interpolation = 0;
  int outside = 0;
  double max_gap = 0;  // seconds
};

constexpr std::array<std::string_view, 6> kInterpolations{"linear", "previous", "next", "nearest", "cubic", "slerp"};
constexpr std::array<std::string_view, 3> kOutsides{"hold", "nan", "extrapolate"};

/// "B,S->T,D", with "/random" for random times.
void read_case(const Settings& problem, const Setting& setting, Config& config) {
  std::string_view text = setting.value;
  const auto bad = [&] {
    problem.fail(ErrorCode::unknown_case, setting, "'B,S->T,D' as in '32,500->256,256', or '32,500->256,256/random'");
  };
  if (text.ends_with("/random")) {
    config.random_times = true;
    text.remove_suffix(7);
  }
  const std::array<std::pair<std::int64_t*, std::string_view>, 4> parts{
      {{&config.batch, ","}, {&config.samples, "->"}, {&config.targets, ","}, {&config.channels, ""}}};
  for (const auto& [extent, separator] : parts) {
    const std::size_t end = separator.empty() ? text.size() : text.find(separator);
    if (end == std::string_view::npos) bad();
    const auto value = parse_integer(text.substr(0, end));
    if (!value || *value < 0 || *value > (std::int64_t{1} << 32)) bad();
    *extent = *value;
    text.remove_prefix(std::min(text.size(), end + separator.size()));
  }
  if (config.samples < 1) bad();
}

Config read(const Settings& problem) {
  problem.only({"case", "dtype", "times", "interpolation", "outside", "max_gap", "variant", "version"});
  Config config;
  const Setting* named = problem.find("case");
  if (named == nullptr)
    throw Error(ErrorCode::bad_value, {.where = problem.place().text() + ": resample",
                                       .got = "no case",
                                       .needed = "case: '32,500->256,256' (B,S->T,D)"});
  read_case(problem, *named, config);
  config.dtype = problem.dtype("dtype", DType::f32, {DType::f16, DType::bf16, DType::f32, DType::f64});
  config.time_dtype = problem.dtype("times", DType::f32, {DType::f32, DType::f64, DType::i64});
  config.interpolation =
      problem.choice("interpolation", "linear", {"linear", "previous", "next", "nearest", "cubic", "slerp"});
  config.outside = problem.choice("outside", "hold", {"hold", "nan", "extrapolate"});
  config.max_gap = problem.number("max_gap", 0, 0, 1e9);
  if (kInterpolations[static_cast<std::size_t>(config.interpolation)] == "slerp" && config.channels % 4 != 0)
    problem.fail(ErrorCode::bad_value, *named, "a number of channels that is a multiple of 4 for slerp");
  return config;
}

CaseInfo describe(const Settings& problem, const Config& config, Device device) {
  CaseInfo made{.op = "resample",
                .name = fmt::format("{},{}->{},{}{}", config.batch, config.samples, config.targets, config.channels,
                                    config.random_times ? "/random" : ""),
                .dtype = std::string(to_string(config.dtype)),
                .device = device};
  if (config.interpolation != 0)
    made.name += " " + std::string(kInterpolations[static_cast<std::size_t>(config.interpolation)]);
  if (config.time_dtype != DType::f32) made.name += " times=" + std::string(to_string(config.time_dtype));
  if (config.outside != 0) made.name += " outside=" + std::string(kOutsides[static_cast<std::size_t>(config.outside)]);
  if (config.max_gap > 0) made.name += fmt::format(" max_gap={}", config.max_gap);
  made.problem = problem.to_text();
  // Two differences, a quotient and one multiply-add per target would vanish beside 3 per output element.
  made.flops = 3.0 * static_cast<double>(config.batch) * static_cast<double>(config.targets) *
               static_cast<double>(config.channels);
  return made;
}

std::vector<TensorSpec> tensors(const Config& config) {
  return {{"values", config.dtype, Layout::contiguous({config.batch, config.samples, config.channels})},
          {"source_times", config.time_dtype, Layout::contiguous({config.batch, config.samples})},
          {"target_times", config.time_dtype, Layout::contiguous({config.batch, config.targets})},
          {"output", config.dtype, Layout::contiguous({config.batch, config.targets, config.channels}), true}};
}

class ResampleWorkload : public Workload {
 public:
  ResampleWorkload(const Settings& problem, const Config& config, Device device)
      : Workload(describe(problem, config, device), bench::tensors(config)), config_(config) {
    if (interpolation() != Interpolation::slerp) return;
    for (std::int64_t first = 0; first < config.channels; first += 4)
      groups_.push_back({first, 4, Interpolation::slerp});
  }

  std::vector<VariantChoice> variants() const override {
    return choices(ops::resample::variants(), problem(), device_info(info_.device));
  }
  std::string selected() const override {
    return std::string(ops::resample::select(problem(), device_info(info_.device), "").name);
  }
  nlohmann::json peer_parameters() const override {
    return {{"interpolation", kInterpolations[static_cast<std::size_t>(config_.interpolation)]},
            {"outside", kOutsides[static_cast<std::size_t>(config_.outside)]},
            {"max_gap", config_.max_gap}};
  }
  Call bind(const std::string& variant, int set) const override { return call(options(variant), set); }
  Call bind_dependent(const std::string& variant, int set) const override {
    ResampleOptions dependent = options(variant);
    dependent.dependent_launch = true;
    return call(dependent, set);
  }

 protected:
  void fill(std::uint64_t seed) override;
  std::vector<Expected> reference(std::uint64_t seed) const override;
  double tolerance() const override {
    // f32 weights have an error of 2^-24, and the values around a target may differ by several times the result.
    return config_.dtype == DType::f64 ? 1e-11 : rounding_tolerance(config_.dtype);
  }

 private:
  Call call(const ResampleOptions& options, int set) const {
    auto plan = std::make_shared<ResamplePlan>(tensor("values", set), tensor("source_times", set),
                                               tensor("target_times", set), tensor("output", set), options);
    return [plan](Stream stream) { plan->run(stream); };
  }
  Interpolation interpolation() const { return static_cast<Interpolation>(config_.interpolation); }
  ResampleOptions options(const std::string& variant) const {
    ResampleOptions made;
    made.interpolation = groups_.empty() ? interpolation() : Interpolation::linear;
    made.channel_groups = groups_;
    made.outside = static_cast<Outside>(config_.outside);
    if (config_.time_dtype == DType::i64) {
      made.max_gap = static_cast<std::int64_t>(config_.max_gap * kNanoseconds);
    } else {
      made.max_gap = config_.max_gap;
    }
    made.variant = variant;
    return made;
  }
  ops::resample::Problem problem() const {
    return ops::resample::make_problem(tensor("values", 0), tensor("source_times", 0), {tensor("target_times", 0), {}},
                                       tensor("output", 0), options(""));
  }
  void fill_times(std::uint64_t seed);
  double rows_touched() const;

  Config config_;
  std::vector<ChannelGroup> groups_;  // of slerp: one for each quaternion
};

/// Jittered: both grids are regular, each stamp moved by up to 40 % of its step. Random: source steps of 0.5 to 1.5
/// times the average, targets drawn uniformly over the recorded time and sorted.
void ResampleWorkload::fill_times(std::uint64_t seed) {
  const TensorView source = tensor("source_times", 0);
  const TensorView target = tensor("target_times", 0);
  const double scale = config_.time_dtype == DType::i64 ? kNanoseconds : 1.0;
  const auto put = [&](const TensorView& to, std::int64_t index, double seconds) {
    store(to.dtype, to.data, index, config_.time_dtype == DType::i64 ? std::round(seconds * scale) : seconds);
  };
  const double span = kSourceStep * static_cast<double>(std::max<std::int64_t>(1, config_.samples - 1));
  const double target_step = span / static_cast<double>(std::max<std::int64_t>(1, config_.targets - 1));
  parallel_for(config_.batch, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> drawn(static_cast<std::size_t>(config_.targets));
    for (std::int64_t b = begin; b < end; ++b) {
      Random random(part_seed(seed, 5), static_cast<std::uint64_t>(b));
      double time = 0;
      for (std::int64_t s = 0; s < config_.samples; ++s) {
        if (config_.random_times) {
          put(source, b * config_.samples + s, time);
          time += kSourceStep * random.uniform(0.5, 1.5);
        } else {
          put(source, b * config_.samples + s, kSourceStep * (static_cast<double>(s) + random.uniform(-0.4, 0.4)));
        }
      }
      for (std::int64_t t = 0; t < config_.targets; ++t)
        drawn[static_cast<std::size_t>(t)] = config_.random_times
                                                 ? random.uniform(0, time)
                                                 : target_step * (static_cast<double>(t) + random.uniform(-0.4, 0.4));
      if (config_.random_times) std::ranges::sort(drawn);
      for (std::int64_t t = 0; t < config_.targets; ++t)
        put(target, b * config_.targets + t, drawn[static_cast<std::size_t>(t)]);
    }
  });
}

/// Rows of values that some target needs, over all trajectories: the two around it.
double ResampleWorkload::rows_touched() const {
  const TensorView source = tensor("source_times", 0);
  const TensorView target = tensor("target_times", 0);
  std::vector<std::int64_t> touched(static_cast<std::size_t>(config_.batch));
  parallel_for(config_.batch, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<bool> seen;
    for (std::int64_t b = begin; b < end; ++b) {
      seen.assign(static_cast<std::size_t>(config_.samples), false);
      std::int64_t row = 0;  // last sample at or before the target; targets are sorted
      for (std::int64_t t = 0; t < config_.targets; ++t) {
        const double time = load(target.dtype, target.data, b * config_.targets + t);
        while (row + 1 < config_.samples && load(source.dtype, source.data, b * config_.samples + row + 1) <= time)
          ++row;
        const bool before = time < load(source.dtype, source.data, b * config_.samples);
        seen[static_cast<std::size_t>(row)] = true;
        if (!before && row + 1 < config_.samples) seen[static_cast<std::size_t>(row + 1)] = true;
      }
      touched[static_cast<std::size_t>(b)] = std::ranges::count(seen, true);
    }
  });
  double total = 0;
  for (const std::int64_t rows : touched) total += static_cast<double>(rows);
  return total;
}

void ResampleWorkload::fill(std::uint64_t seed) {
  fill_normal(tensor("values", 0), part_seed(seed, 1));
  fill_times(seed);
  info_.floor_bytes =
      byte_count(this->tensors()[1]) + byte_count(this->tensors()[2]) + byte_count(this->tensors()[3]) +
      rows_touched() * static_cast<double>(config_.channels) * static_cast<double>(size_of(config_.dtype));
}

std::vector<Expected> ResampleWorkload::reference(std::uint64_t seed) const {
  Random random(seed, 77);
  const std::int64_t per_trajectory = std::max<std::int64_t>(1, config_.targets * config_.channels);
  const auto chosen = sample_indices(config_.batch, std::max<std::int64_t>(1, kChecked / per_trajectory), random);
  const TensorView values = tensor("values", 0);
  const std::int64_t rows = config_.samples * config_.channels;
  const auto times_of = [](const TensorView& times, std::int64_t trajectory) {
    const std::int64_t count = times.shape[1];
    const auto* bytes = static_cast<const std::byte*>(times.data);
    return ConstTensorView(bytes + trajectory * count * static_cast<std::int64_t>(size_of(times.dtype)), times.dtype,
                           Layout::contiguous({1, count}));
  };
  Expected expected{.tensor = "output", .elements = {}, .values = {}};
  const Buffer exact(DType::f64, Layout::contiguous({1, config_.samples, config_.channels}));
  const Buffer want(DType::f64, Layout::contiguous({1, config_.targets, config_.channels}));
  for (const std::int64_t b : chosen) {
    for (std::int64_t i = 0; i < rows; ++i)
      store(DType::f64, exact.view().data, i, load(values.dtype, values.data, b * rows + i));
    resample(exact.view(), times_of(tensor("source_times", 0), b), times_of(tensor("target_times", 0), b), want.view(),
             options("reference"));
    for (std::int64_t i = 0; i < config_.targets * config_.channels; ++i) {
      expected.elements.push_back(b * config_.targets * config_.channels + i);
      expected.values.push_back(load(DType::f64, want.view().data, i));
    }
  }
  return {expected};
}

}  // namespace

std::unique_ptr<Workload> make_resample_workload(const Settings& problem, Device device) {
  return std::make_unique<ResampleWorkload>(problem, read(problem), device);
}

}  // namespace tmaops::bench
