#include "ops/resample/options.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/enum_name.hpp"

namespace tmaops::ops::resample {

namespace {

constexpr std::string_view kInterpolations[] = {TMAOPS_WORDS_interpolation(TMAOPS_TEXT)};
constexpr std::string_view kOutside[] = {TMAOPS_WORDS_outside(TMAOPS_TEXT)};

}  // namespace

std::string_view name_of(Interpolation interpolation) { return enum_name(kInterpolations, interpolation); }
std::string_view name_of(Outside outside) { return enum_name(kOutside, outside); }
std::optional<Interpolation> parse_interpolation(std::string_view name) {
  return parse_enum<Interpolation>(kInterpolations, name);
}

double as_double(const std::variant<double, std::int64_t>& number) {
  return std::visit([](auto value) { return static_cast<double>(value); }, number);
}

std::int64_t as_nanoseconds(const std::variant<double, std::int64_t>& number) {
  const auto* whole = std::get_if<std::int64_t>(&number);
  return whole ? *whole : 0;
}

namespace {

/// A time beside times of this type is in their unit: whole nanoseconds beside i64, else floating-point seconds. 0 is
/// the same in both.
void check_unit(const ArgumentChecks& checks, std::string_view argument, DType times,
                const std::variant<double, std::int64_t>& number) {
  const auto* seconds = std::get_if<double>(&number);
  const auto* whole = std::get_if<std::int64_t>(&number);
  if (times == DType::i64 && seconds && *seconds != 0)
    checks.fail(ErrorCode::bad_parameter, argument, std::to_string(*seconds) + " as a floating-point number",
                "an integer number of nanoseconds, since the times are i64");
  if (times != DType::i64 && whole && *whole != 0)
    checks.fail(ErrorCode::bad_parameter, argument, std::to_string(*whole) + " as an integer",
                "a floating-point number of seconds, since the times are " + std::string(to_string(times)));
}

}  // namespace

PackedOffsets packed_offsets(std::span<const std::int64_t> list, const ConstTensorView& tensor) {
  if (!tensor.given())
    return {.given = !list.empty(), .trajectories = static_cast<std::int64_t>(list.size()) - 1, .known = list};
  PackedOffsets offsets{
      .given = true, .on_device = tensor.device.type != DeviceType::cpu, .trajectories = tensor.shape[0] - 1};
  if (!offsets.on_device)
    offsets.known = {static_cast<const std::int64_t*>(tensor.data), static_cast<std::size_t>(tensor.shape[0])};
  return offsets;
}

void check_offset_tensors(const ArgumentChecks& checks, const ResampleOptions& options, std::string_view rows_name,
                          const ConstTensorView& rows) {
  const auto check = [&](std::string_view name, const ConstTensorView& tensor, std::string_view list_name,
                         std::span<const std::int64_t> list) {
    checks.view(name, tensor);
    if (!tensor.given()) return;
    if (!list.empty())
      checks.fail(ErrorCode::bad_parameter, name, "given beside " + std::string(list_name), "one of them");
    checks.rank(name, tensor, {1}, "(B + 1)");
    checks.dtype(name, tensor, {DType::i64});
    checks.same_device(name, tensor, rows_name, rows);
    checks.memory(name, tensor);
    if (!tensor.is_contiguous())
      checks.fail(ErrorCode::bad_strides, name, "gaps between the elements", "a contiguous (B + 1)");
  };
  checks.list("source_offsets", options.source_offsets);
  checks.list("target_offsets", options.target_offsets);
  check("source_offset_tensor", options.source_offset_tensor, "source_offsets", options.source_offsets);
  check("target_offset_tensor", options.target_offset_tensor, "target_offsets", options.target_offsets);
}

void check_offsets(const ArgumentChecks& checks, std::string_view argument, const PackedOffsets& given,
                   std::int64_t rows) {
  if (given.trajectories < 1 && !(given.trajectories == 0 && rows == 0))
    checks.fail(ErrorCode::bad_offsets, argument, std::to_string(given.trajectories + 1) + " offsets",
                "B + 1 offsets for B trajectories");
  if (given.on_device) return;
  const std::span<const std::int64_t> offsets = given.known;
  if (offsets.front() != 0)
    checks.fail(ErrorCode::bad_offsets, argument, "a first offset of " + std::to_string(offsets.front()), "0");
  for (std::size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i] < offsets[i - 1])
      checks.fail(ErrorCode::bad_offsets, argument,
                  "offset " + std::to_string(i) + " is " + std::to_string(offsets[i]) + " after " +
                      std::to_string(offsets[i - 1]),
                  "offsets that never decrease");
  if (offsets.back() != rows)
    checks.fail(ErrorCode::bad_offsets, argument, "a last offset of " + std::to_string(offsets.back()),
                std::to_string(rows) + ", the number of packed rows");
}

std::vector<ChannelGroup> checked_groups(const ArgumentChecks& checks, std::int64_t channels,
                                         const ResampleOptions& options) {
  std::vector<ChannelGroup> groups(options.channel_groups.begin(), options.channel_groups.end());
  if (groups.empty() && channels > 0) groups.push_back({0, channels, options.interpolation});
  std::int64_t next = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const ChannelGroup& group = groups[i];
    const std::string argument = "channel_groups[" + std::to_string(i) + "]";
    if (group.first != next || group.count < 1 || group.count > channels - next)
      checks.fail(ErrorCode::bad_parameter, argument,
                  std::to_string(group.count) + " channels from channel " + std::to_string(group.first) + " on",
                  "a group that starts at channel " + std::to_string(next) + " and ends by channel " +
                      std::to_string(channels));
    checks.enumerator(options.channel_groups.empty() ? "interpolation" : argument + ".interpolation",
                      group.interpolation, {TMAOPS_WORDS_interpolation(TMAOPS_TEXT)});
    if (group.interpolation == Interpolation::slerp && group.count != 4)
      checks.fail(ErrorCode::bad_quaternion, options.channel_groups.empty() ? "interpolation" : argument,
                  "slerp over " + std::to_string(group.count) + " channels", "4 channels x, y, z, w");
    next += group.count;
  }
  if (next != channels)
    checks.fail(ErrorCode::bad_parameter, "channel_groups",
                "groups that end at channel " + std::to_string(next) + " of " + std::to_string(channels),
                "groups that cover every channel");
  return groups;
}

void check_policies(const ArgumentChecks& checks, DType times, const ResampleOptions& options) {
  checks.enumerator("outside", options.outside, {TMAOPS_WORDS_outside(TMAOPS_TEXT)});
  checks.enumerator("duplicates", options.duplicates, {TMAOPS_WORDS_duplicates(TMAOPS_TEXT)});
  if (const auto* seconds = std::get_if<double>(&options.max_gap); seconds && !(*seconds >= 0))
    checks.fail(ErrorCode::bad_parameter, "max_gap", std::to_string(*seconds), "0 or more");
  if (const auto* whole = std::get_if<std::int64_t>(&options.max_gap); whole && *whole < 0)
    checks.fail(ErrorCode::bad_parameter, "max_gap", std::to_string(*whole), "0 or more");
  if (!std::isinf(as_double(options.max_gap))) check_unit(checks, "max_gap", times, options.max_gap);
}

void check_grid(const ArgumentChecks& checks, DType times, const UniformGrid& grid) {
  if (grid.count < 0)
    checks.fail(ErrorCode::bad_parameter, "grid.count", std::to_string(grid.count), "0 or more targets");
  check_unit(checks, "grid.start", times, grid.start);
  check_unit(checks, "grid.period", times, grid.period);
  if (times == DType::i64) {
    const std::int64_t start = as_nanoseconds(grid.start);
    const std::int64_t period = as_nanoseconds(grid.period);
    if (period <= 0) checks.fail(ErrorCode::bad_parameter, "grid.period", std::to_string(period), "more than 0 ns");
    std::int64_t last = 0;
    if (grid.count > 0 &&
        (__builtin_mul_overflow(grid.count - 1, period, &last) || __builtin_add_overflow(start, last, &last)))
      checks.fail(ErrorCode::time_overflow, "grid",
                  std::to_string(start) + " + " + std::to_string(grid.count - 1) + " * " + std::to_string(period),
                  "a last target within 64 bits");
    return;
  }
  const double start = as_double(grid.start);
  const double period = as_double(grid.period);
  if (!std::isfinite(start))
    checks.fail(ErrorCode::times_not_finite, "grid.start", std::to_string(start), "a finite time");
  if (!(period > 0) || std::isinf(period))
    checks.fail(ErrorCode::bad_parameter, "grid.period", std::to_string(period), "more than 0 s, and finite");
  if (grid.count == 0) return;
  const double last = start + period * static_cast<double>(grid.count - 1);
  const double largest = std::max(std::abs(start), std::abs(last));
  if (!std::isfinite(times == DType::f32 ? static_cast<double>(static_cast<float>(largest)) : largest))
    checks.fail(ErrorCode::time_overflow, "grid", "a last target of " + std::to_string(last), "a finite target");
  if (times == DType::f32 && grid.count > 1) {
    const float magnitude = static_cast<float>(largest);
    const double resolution = static_cast<double>(std::nextafter(magnitude, INFINITY)) - static_cast<double>(magnitude);
    if (resolution > period)
      checks.fail(ErrorCode::time_precision, "grid",
                  "targets " + std::to_string(period) + " s apart at " + std::to_string(largest) +
                      " s, where f32 resolves " + std::to_string(resolution) + " s",
                  "f64 or i64 times");
  }
}

}  // namespace tmaops::ops::resample
