#include "core/checks.hpp"
#include "core/plan.hpp"
#include "offers/tile_load.hpp"

namespace tmaops::ops::tile_load {

std::int64_t Problem::length() const {
  std::int64_t sum = 0;
  for (const LevelShape& level : levels) sum += level.height * level.width;
  return sum;
}

std::string Problem::text() const {
  std::string shapes;
  for (const LevelShape& level : levels)
    shapes += (shapes.empty() ? "" : ", ") + std::to_string(level.height) + "x" + std::to_string(level.width);
  return "tile_load: {batch: " + std::to_string(batch) + ", queries: " + std::to_string(queries) +
         ", points: " + std::to_string(points) + ", levels: [" + shapes + "]}";
}

Problem make_problem(const ConstTensorView& value, std::span<const LevelShape> levels,
                     const ConstTensorView& coordinates, const TensorView& checksums) {
  const ArgumentChecks checks("tile_load");
  checks.views({{"value", value}, {"coordinates", coordinates}, {"checksums", checksums}});
  checks.list("levels", levels);
  const auto count = static_cast<std::int64_t>(levels.size());
  checks.rank("value", value, {3}, "(B, S, 32)");
  checks.rank("coordinates", coordinates, {5}, "(B, Q, L, P, 2)");
  checks.dtype("value", value, {DType::f16});
  checks.dtype("coordinates", coordinates, {DType::i32});
  checks.dtype("checksums", checksums, {DType::i32});
  Problem problem{
      value.shape[0], coordinates.shape[1], coordinates.shape[3], {levels.begin(), levels.end()}, value.device};
  if (levels.empty() || count > kMaxLevels)
    checks.fail(ErrorCode::empty_level, "levels", std::to_string(count) + " levels",
                "1 to " + std::to_string(kMaxLevels));
  for (const LevelShape& level : levels)
    if (level.height < 1 || level.width < 1 || level.height > 1 << 20 || level.width > 1 << 20)
      checks.fail(ErrorCode::empty_level, "levels", std::to_string(level.height) + " x " + std::to_string(level.width),
                  "1 to 2^20 pixels each way");
  if (problem.length() != value.shape[1])
    checks.fail(ErrorCode::level_shapes_mismatch, "levels", "levels of " + std::to_string(problem.length()) + " pixels",
                "S = " + std::to_string(value.shape[1]));
  checks.shape("value", value, {-1, -1, kChannels}, "(B, S, 32)");
  checks.shape("coordinates", coordinates, {problem.batch, -1, count, -1, 2}, "(B, Q, L, P, 2)");
  checks.shape("checksums", checksums, {problem.batch, problem.queries, count, problem.points}, "(B, Q, L, P)");
  if (problem.tiles() > INT32_MAX)
    checks.fail(ErrorCode::size_overflow, "coordinates", std::to_string(problem.tiles()) + " tiles", "less than 2^31");
  for (const auto& [name, view] : {std::pair{"value", value}, std::pair{"coordinates", coordinates},
                                   std::pair{"checksums", ConstTensorView(checksums)}}) {
    if (!view.is_contiguous()) checks.fail(ErrorCode::bad_strides, name, view.strides_text(), "a contiguous tensor");
    checks.same_device(name, view, "value", value);
    checks.memory(name, view);
  }
  if (reinterpret_cast<std::uintptr_t>(value.data) % 16 != 0)
    checks.fail(ErrorCode::misaligned, "value", "an address not a multiple of 16", "one that is",
                "This measuring operator compares 16-byte loads and TMA, which both need it.");
  if (reinterpret_cast<std::uintptr_t>(coordinates.data) % 8 != 0)
    checks.fail(ErrorCode::misaligned, "coordinates", "an address not a multiple of 8", "one that is");
  checks.writable("checksums", checksums);
  checks.no_overlap("checksums", checksums, "value", value);
  checks.no_overlap("checksums", checksums, "coordinates", coordinates);
  return problem;
}

Plan plan_tile_load(const ConstTensorView& value, std::span<const LevelShape> levels,
                    const ConstTensorView& coordinates, const TensorView& checksums, const Options& options) {
  const Problem problem = make_problem(value, levels, coordinates, checksums);
  return make_plan(select(problem, device_info(value.device), options.variant), problem,
                   Arguments{.value = value.data,
                             .coordinates = static_cast<const std::int32_t*>(coordinates.data),
                             .checksums = static_cast<std::uint32_t*>(checksums.data),
                             .cycles = options.cycles,
                             .cycle_count = options.cycle_count,
                             .dependent_launch = options.dependent_launch});
}

}  // namespace tmaops::ops::tile_load
