// Tiles of 256 bytes at random or local coordinates: random bit patterns, and the checksum decides.
#include "offers/tile_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/workloads/common.hpp"
#include "bench/workloads/ms_deform_attn_cases.hpp"
#include "core/parallel.hpp"

namespace tmaops::bench {
namespace {

/// The levels of the published experiments.
const std::vector<LevelShape> kLevels{{92, 160}, {46, 80}, {23, 40}, {12, 20}};
/// Offset of a tile from its query's place in local coordinates, in pixels: +-4, as a detector's samples lie.
constexpr std::int64_t kSpread = 9;
/// Fewest tiles that a block works on, of variants that do not give each query and level a block of its own.
constexpr std::int64_t kTilesPerBlock = 32;

struct TileLoadConfig : ops::tile_load::Problem {
  bool local = false;
};

TileLoadConfig read_tile_load(const Settings& problem) {
  problem.only({"batch", "queries", "points", "levels", "coordinates", "variant", "version"});
  TileLoadConfig config;
  config.batch = problem.integer("batch", 1, 1, 4096);
  config.queries = problem.integer("queries", 1000, 1, 1 << 24);
  config.points = problem.integer("points", 8, 1, 1024);
  if (const Setting* levels = problem.find("levels"); levels != nullptr && levels->value.find('x') != std::string::npos)
    config.levels = read_levels(problem, *levels);
  else
    config.levels.assign(kLevels.begin(),
                         kLevels.begin() + problem.integer("levels", 1, 1, static_cast<std::int64_t>(kLevels.size())));
  config.local = problem.choice("coordinates", "random", {"random", "local"}) == 1;
  return config;
}

std::vector<TensorSpec> tensors(const TileLoadConfig& config) {
  const auto levels = static_cast<std::int64_t>(config.levels.size());
  return {{"value", DType::f16, Layout::contiguous({config.batch, config.length(), ops::tile_load::kChannels})},
          {"coordinates", DType::i32, Layout::contiguous({config.batch, config.queries, levels, config.points, 2})},
          {"checksums", DType::i32, Layout::contiguous({config.batch, config.queries, levels, config.points}), true}};
}

/// " 100x100" where the levels are not the published ones.
std::string other_maps(const TileLoadConfig& config) {
  if ((levels_text(kLevels) + "+").starts_with(levels_text(config.levels) + "+")) return "";
  return " " + levels_text(config.levels);
}

CaseInfo describe(const Settings& problem, const TileLoadConfig& config, const std::vector<TensorSpec>& specs,
                  Device device) {
  CaseInfo made{
      .op = "tile_load",
      .name = fmt::format("{} tiles {}{}", config.tiles(), config.local ? "local" : "random", other_maps(config)),
      .dtype = "f16",
      .problem = problem.to_text(),
      .device = device};
  // The tiles as if each came from memory: what the publications' GB/s count.
  made.floor_bytes =
      static_cast<double>(config.tiles()) * ops::tile_load::kTileBytes + byte_count(specs[1]) + byte_count(specs[2]);
  return made;
}

class TileLoadWorkload : public Workload {
 public:
  TileLoadWorkload(const Settings& problem, const TileLoadConfig& config, Device device)
      : Workload(describe(problem, config, bench::tensors(config), device), bench::tensors(config)), config_(config) {}

  std::vector<VariantChoice> variants() const override {
    return choices(ops::tile_load::variants(), problem(), device_info(info_.device));
  }
  std::string selected() const override {
    return std::string(ops::tile_load::select(problem(), device_info(info_.device)).variant->name);
  }
  nlohmann::json peer_parameters() const override { return nlohmann::json::object(); }
  Call bind(const std::string& variant, int set, Launch launch) const override { return call(variant, set, launch); }
  std::optional<Loading> loading() const override {
    const std::int64_t tiles = config_.tiles();
    return Loading{.loads = static_cast<double>(tiles),
                   .manual = {"plain", "plain_prefetch"},
                   .most_blocks = std::max((tiles + kTilesPerBlock - 1) / kTilesPerBlock, tiles / config_.points)};
  }
  Call bind_counting(const std::string& variant, int set, const TensorView& cycles) const override {
    return call(variant, set, Launch::plain, cycles);
  }

 protected:
  void fill(std::uint64_t seed) override;
  std::vector<Expected> reference(std::uint64_t, double) const override {
    Expected expected{.tensor = "checksums", .elements = {}, .values = {}};
    const TileLoadConfig& c = config_;
    const auto levels = static_cast<std::int64_t>(c.levels.size());
    std::vector<std::int32_t> sums(static_cast<std::size_t>(tensor("checksums", 0).size()));
    ops::tile_load::plan_tile_load(tensor("value", 0), c.levels, tensor("coordinates", 0),
                                   view(sums.data(), {c.batch, c.queries, levels, c.points}), {"reference"})
        .run();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      expected.elements.push_back(static_cast<std::int64_t>(i));
      expected.values.push_back(sums[i]);
    }
    return {expected};
  }
  /// A sum of bits is right or wrong.
  double tolerance() const override { return 1e-30; }

 private:
  ops::tile_load::Problem problem() const {
    return ops::tile_load::make_problem(tensor("value", 0), config_.levels, tensor("coordinates", 0),
                                        tensor("checksums", 0));
  }
  Call call(const std::string& variant, int set, Launch launch, const TensorView& cycles = {}) const {
    return call_of(ops::tile_load::plan_tile_load(
        tensor("value", set), config_.levels, tensor("coordinates", set), tensor("checksums", set),
        {.variant = variant,
         .dependent_launch = launch == Launch::dependent,
         .cycles = static_cast<std::int64_t*>(cycles.data),
         .cycle_count = cycles.data == nullptr ? 0 : static_cast<int>(cycles.size())}));
  }

  TileLoadConfig config_;
};

void TileLoadWorkload::fill(std::uint64_t seed) {
  const TensorView value = tensor("value", 0);
  auto* words = static_cast<std::uint64_t*>(value.data);  // 64-byte pixels: a whole number of 8-byte words
  Random random(part_seed(seed, 0));
  for (std::int64_t i = 0; i < value.size() / 4; ++i) words[i] = random.next();
  auto* at = static_cast<std::int32_t*>(tensor("coordinates", 0).data);
  const auto& shapes = config_.levels;
  for (std::int64_t b = 0; b < config_.batch; ++b)
    for (std::int64_t q = 0; q < config_.queries; ++q)
      for (const LevelShape& level : shapes)
        for (std::int64_t p = 0; p < config_.points; ++p, at += 2) {
          if (!config_.local) {
            at[0] = static_cast<std::int32_t>(random.below(level.width + 1) - 1);  // some tiles lie across the border
            at[1] = static_cast<std::int32_t>(random.below(level.height + 1) - 1);
            continue;
          }
          // Queries in raster order over the finest level.
          const LevelShape& finest = shapes.front();
          const std::int64_t place = q * finest.height * finest.width / config_.queries;
          const std::int64_t x = place % finest.width * level.width / finest.width;
          const std::int64_t y = place / finest.width * level.height / finest.height;
          at[0] = static_cast<std::int32_t>(
              std::clamp<std::int64_t>(x + random.below(kSpread) - kSpread / 2, -1, level.width - 1));
          at[1] = static_cast<std::int32_t>(
              std::clamp<std::int64_t>(y + random.below(kSpread) - kSpread / 2, -1, level.height - 1));
        }
}

}  // namespace

std::unique_ptr<Workload> make_tile_load_workload(const Settings& problem, Device device) {
  return std::make_unique<TileLoadWorkload>(problem, read_tile_load(problem), device);
}

}  // namespace tmaops::bench
