#include "bench/workloads/ms_deform_attn_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "core/fail.hpp"
#include "core/spelling.hpp"

namespace tmaops::bench {
namespace {

struct NamedShape {
  std::string_view name;
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t points;
  std::int64_t queries;
  bool seed_levels;
  bool raster_queries;
};

// 800 x 1333 pixels at strides 8 to 64, and the maps of the experiment this work started from.
constexpr std::array<LevelShape, 4> kDetrLevels{{{100, 167}, {50, 84}, {25, 42}, {13, 21}}};
constexpr std::array<LevelShape, 4> kSeedLevels{{{92, 160}, {46, 80}, {23, 40}, {12, 20}}};

// seed8 is the published workload in full: the seed has one head of it.
constexpr std::array<NamedShape, 6> kShapes{{{"seed", 48, 1, 8, 15422, true, true},
                                             {"seed8", 48, 8, 8, 15422, true, true},
                                             {"enc", 2, 8, 4, 22223, false, true},
                                             {"dec", 8, 8, 4, 300, false, false},
                                             {"enc1", 1, 8, 4, 22223, false, true},
                                             {"dec1", 1, 8, 4, 300, false, false}}};

[[noreturn]] void fail_case(const Settings& problem, const Setting& setting) {
  problem.fail(ErrorCode::unknown_case, setting,
               "one of " + joined(kShapes, ", ", &NamedShape::name) + " with /uniform or /detr, for example enc1/detr");
}

/// "softmax+reference_points": steps joined by +, or none.
FusedSteps read_fused(const Settings& problem, const Setting& setting) {
  FusedSteps fused;
  std::string_view text = setting.value;
  while (text != "none") {
    const std::size_t end = std::min(text.find('+'), text.size());
    const std::string_view step = text.substr(0, end);
    const FusedSteps before = fused;
    if (step == "softmax") fused.softmax = true;
    if (step == "mask") fused.mask = true;
    if (step == "border") fused.border = true;
    if (fused.reference_components == 0 && step == "reference_points") fused.reference_components = 2;
    if (fused.reference_components == 0 && step == "reference_boxes") fused.reference_components = 4;
    if (fused == before)  // an unknown step, or one twice
      problem.fail(ErrorCode::bad_value, setting,
                   "none, or some of softmax, reference_points or reference_boxes, mask and border joined by +: "
                   "softmax+reference_points");
    if (end == text.size()) break;
    text.remove_prefix(end + 1);
  }
  return fused;
}

void read_named(const Settings& problem, const Setting& setting, MsDeformAttnCase& made) {
  const std::string_view text = setting.value;
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) fail_case(problem, setting);
  const auto shape = std::ranges::find(kShapes, text.substr(0, slash), &NamedShape::name);
  const std::string_view locations = text.substr(slash + 1);
  if (shape == kShapes.end() || (locations != "uniform" && locations != "detr")) fail_case(problem, setting);
  made.name = text;
  made.batch = shape->batch;
  made.heads = shape->heads;
  made.points = shape->points;
  made.queries = shape->queries;
  const auto& levels = shape->seed_levels ? kSeedLevels : kDetrLevels;
  made.levels.assign(levels.begin(), levels.end());
  made.raster_queries = shape->raster_queries;
  made.locations = locations == "detr" ? Locations::detr : Locations::uniform;
}

/// A number, or as many as there are levels: '3 6 3'. Returns it as names of cases have it.
std::string read_points(const Settings& problem, MsDeformAttnCase& made) {
  const Setting* setting = problem.find("points");
  if (setting == nullptr || std::string_view(setting->value).find_first_of(", ") == std::string_view::npos) {
    made.points = problem.integer("points", 4, 1, 1 << 12);
    return std::to_string(made.points);
  }
  std::string_view text = setting->value;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find_first_of(", "));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    if (one.empty()) continue;
    const auto number = parse_integer(one);
    if (!number || *number < 0 || *number > 1 << 12) break;
    made.level_points.push_back(static_cast<std::int32_t>(*number));
  }
  if (!text.empty() || made.level_points.size() != made.levels.size())
    problem.fail(ErrorCode::bad_value, *setting, "a number, or one for each of the levels: '3 6 3'");
  return joined(made.level_points, "+", [](std::int32_t number) { return std::to_string(number); });
}

void read_shape(const Settings& problem, MsDeformAttnCase& made) {
  const Setting* levels = problem.find("levels");
  if (levels == nullptr || !problem.has("queries"))
    fail(ErrorCode::bad_value, problem.place().text() + ": ms_deform_attn", "neither a case nor levels and queries",
         "case: enc1/detr, or levels: '100x167 50x84' and queries: 300");
  made.levels = read_levels(problem, *levels);
  made.batch = problem.integer("batch", 1, 0, 1 << 20);
  made.heads = problem.integer("heads", 8, 1, 1 << 16);
  made.channels = problem.integer("channels", 32, 1, 1 << 16);
  const std::string points_text = read_points(problem, made);
  made.queries = problem.integer("queries", 0, 0, std::int64_t{1} << 32);
  made.locations =
      problem.choice("locations", "uniform", {"uniform", "detr"}) == 1 ? Locations::detr : Locations::uniform;
  made.raster_queries = made.queries == made.length();
  made.name =
      fmt::format("N{} M{} D{} Lq{} P{} {}/{}", made.batch, made.heads, made.channels, made.queries, points_text,
                  levels_text(made.levels), made.locations == Locations::detr ? "detr" : "uniform");
}

}  // namespace

std::vector<LevelShape> read_levels(const Settings& problem, const Setting& setting) {
  std::vector<LevelShape> levels;
  std::string_view text = setting.value;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find_first_of(", "));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    if (one.empty()) continue;
    const std::size_t times = one.find('x');
    const auto height = parse_integer(one.substr(0, times));
    const auto width = times == std::string_view::npos ? std::nullopt : parse_integer(one.substr(times + 1));
    if (!height || !width || *height < 1 || *width < 1 || *height > 65536 || *width > 65536)
      problem.fail(ErrorCode::bad_value, setting, "height x width of each level: '100x167 50x84'");
    levels.push_back({*height, *width});
  }
  if (levels.empty()) problem.fail(ErrorCode::bad_value, setting, "at least one level: '100x167 50x84'");
  return levels;
}

std::string levels_text(const std::vector<LevelShape>& levels) {
  return joined(levels, "+", [](const LevelShape& level) { return fmt::format("{}x{}", level.height, level.width); });
}

std::int64_t MsDeformAttnCase::length() const {
  std::int64_t total = 0;
  for (const LevelShape& level : levels) total += level.height * level.width;
  return total;
}

std::int64_t MsDeformAttnCase::row_points() const {
  if (level_points.empty()) return static_cast<std::int64_t>(levels.size()) * points;
  return std::accumulate(level_points.begin(), level_points.end(), std::int64_t{0});
}

std::int64_t MsDeformAttnCase::value_length() const {
  std::int64_t total = length();
  if (fused.border)
    for (const LevelShape& level : levels) total += 2 * (level.height + level.width) + 4;
  return total;
}

std::string FusedSteps::text() const {
  std::string text;
  const auto add = [&](bool there, std::string_view step) {
    if (there) text += (text.empty() ? "" : "+") + std::string(step);
  };
  add(softmax, "softmax");
  add(reference_components == 2, "reference_points");
  add(reference_components == 4, "reference_boxes");
  add(mask, "mask");
  add(border, "border");
  return text.empty() ? "none" : text;
}

MsDeformAttnCase read_ms_deform_attn_case(const Settings& problem) {
  problem.only({"case", "batch", "heads", "channels", "levels", "points", "queries", "locations", "dtype",
                "location_dtype", "output_dtype", "sampling", "direction", "deterministic", "fused", "offset_scale",
                "variant", "version"});
  MsDeformAttnCase made;
  made.backward = problem.choice("direction", "forward", {"forward", "backward"}) == 1;
  made.deterministic = problem.boolean("deterministic", false);
  if (made.deterministic && !made.backward)
    problem.fail(ErrorCode::bad_value, *problem.find("deterministic"), "direction: backward; forward it is always so");
  if (const Setting* fused = problem.find("fused")) made.fused = read_fused(problem, *fused);
  if (made.fused != FusedSteps{} && made.backward)
    problem.fail(ErrorCode::bad_value, *problem.find("fused"), "direction: forward; the backward pass fuses no steps");
  if (const Setting* scale = problem.find("offset_scale")) {
    if (made.fused.reference_components != 4)
      problem.fail(ErrorCode::bad_value, *scale, "fused: reference_boxes; it is their factor");
    made.fused.offset_scale = problem.number("offset_scale", 0.5, 1e-3, 1e3);
  }
  made.dtype = problem.dtype("dtype", DType::f32, {DType::f16, DType::bf16, DType::f32, DType::f64});
  made.location_dtype = problem.dtype("location_dtype", made.dtype, {DType::f16, DType::bf16, DType::f32, DType::f64});
  made.output_dtype = made.dtype;
  if (problem.has("output_dtype"))
    made.output_dtype = size_of(made.dtype) == 2 ? problem.dtype("output_dtype", made.dtype, {made.dtype, DType::f32})
                                                 : problem.dtype("output_dtype", made.dtype, {made.dtype});
  made.sampling =
      problem.choice("sampling", "bilinear", {"bilinear", "nearest"}) == 1 ? Sampling::nearest : Sampling::bilinear;
  if (const Setting* named = problem.find("case")) {
    for (const char* other : {"batch", "heads", "channels", "levels", "points", "queries", "locations"})
      if (const Setting* extra = problem.find(other))
        problem.fail(ErrorCode::bad_value, *extra, "no shape beside a case: the case has all of it");
    read_named(problem, *named, made);
  } else {
    read_shape(problem, made);
  }
  if (made.location_dtype != made.dtype) made.name += " locations=" + std::string(to_string(made.location_dtype));
  if (made.sampling == Sampling::nearest) made.name += " nearest";
  if (made.deterministic) made.name += " deterministic";
  if (made.fused != FusedSteps{}) made.name += " fused=" + made.fused.text();
  if (problem.has("offset_scale")) made.name += fmt::format(" offset_scale={}", made.fused.offset_scale);
  return made;
}

}  // namespace tmaops::bench
