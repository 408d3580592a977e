// How much of a column is faster than the targets can hold.
#include <algorithm>
#include <cmath>

#include "core/display.hpp"
#include "ops/resample/options.hpp"
#include "recording/decimal.hpp"
#include "recording/steps.hpp"

namespace tmaops::recording {
namespace {

/// Targets that are looked at, in blocks spread over the recording, so that the work has a bound.
constexpr std::int64_t kBlocks = 3, kBlockTargets = 16, kBlockRows = 16'384;
/// Periods of the targets on both sides of a block that the filter needs.
constexpr std::int64_t kReach = 4;
/// Targets at least this much further apart than the samples are a lower rate.
constexpr double kLower = 1.25;
/// The share of the energy that is worth a warning, and the part of a column's own size below which its changes are
/// noise of no account.
constexpr double kLeastShare = 0.1, kLeastPart = 1e-3;

/// Sums over the targets that were looked at, of one channel.
struct Energy {
  double fast = 0;  // of the difference between the value at the target and the filtered one
  double sum = 0, square = 0;
  std::int64_t count = 0;

  /// The energy above half the rate of the targets, by the energy of all changes.
  double share() const {
    const double mean = sum / static_cast<double>(count);
    const double changes = square / static_cast<double>(count) - mean * mean;
    return changes > 0 ? std::min(1.0, fast / static_cast<double>(count) / changes) : 0;
  }
  bool counts() const { return count > 0 && fast > kLeastPart * kLeastPart * square; }
};

constexpr std::size_t kMostNamed = 8;  // columns in the warning

struct Block {
  std::int64_t first_row = 0, rows = 0;
  std::int64_t first_target = 0, targets = 0;
};

/// Blocks of targets that lie inside an episode with the reach of the filter on both sides, and their samples.
std::vector<Block> blocks_of(const Recording& recording, const ResampleTargets& targets) {
  std::vector<Block> blocks;
  const auto episodes = static_cast<std::int64_t>(targets.offsets.size()) - 1;
  for (std::int64_t k = 0; k < kBlocks && episodes > 0; ++k) {
    const auto e = static_cast<std::size_t>(k * (episodes - 1) / (kBlocks - 1));
    const std::int64_t inner = targets.offsets[e + 1] - targets.offsets[e] - 2 * kReach;
    if (inner < 1) continue;
    std::int64_t count = std::min(kBlockTargets, inner);
    const std::int64_t first = targets.offsets[e] + kReach + (inner - count) * k / (kBlocks - 1);
    const auto time = targets.sample_times.begin() + first;
    if (!std::is_sorted(time - kReach, time + count + kReach)) continue;
    const auto begin = recording.times.begin() + recording.offsets[e];
    const auto end = recording.times.begin() + recording.offsets[e + 1];
    const auto low = std::lower_bound(begin, end, *(time - kReach));
    const auto rows = [&] { return std::upper_bound(low, end, *(time + count + kReach - 1)) - low; };
    if (static_cast<double>(rows()) < kLower * static_cast<double>(count + 2 * kReach)) continue;
    if (rows() > kBlockRows) count = std::max<std::int64_t>(1, count * kBlockRows / rows());
    // One more target on both sides, which says how far apart they are.
    blocks.push_back({low - recording.times.begin(), rows(), first - 1, count + 2});
  }
  return blocks;
}

/// The channels that a target takes from one or two samples.
std::vector<ChannelReference> sampled_channels(const ModePlan& plan) {
  std::vector<ChannelReference> channels;
  for (const ModeGroup& group : plan.groups)
    if (!group.angle && group.interpolation != Interpolation::slerp &&
        !ops::resample::over_interval(group.interpolation))
      channels.insert(channels.end(), group.channels.begin(), group.channels.end());
  return channels;
}

/// What the inner targets of the blocks have of each channel. The blocks are the episodes of one call.
std::vector<Energy> measure(const Recording& recording, const ResampleTargets& targets,
                            const std::vector<ChannelReference>& channels, Duplicates duplicates,
                            const std::vector<Block>& blocks) {
  const auto width = static_cast<std::int64_t>(channels.size());
  std::vector<std::int64_t> times, wanted, rows{0}, ends{0};
  for (const Block& block : blocks) {
    const auto row = recording.times.begin() + block.first_row;
    const auto target = targets.sample_times.begin() + block.first_target;
    times.insert(times.end(), row, row + block.rows);
    wanted.insert(wanted.end(), target, target + block.targets);
    rows.push_back(static_cast<std::int64_t>(times.size()));
    ends.push_back(static_cast<std::int64_t>(wanted.size()));
  }
  std::vector<double> source(times.size() * channels.size());
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (std::size_t k = 0; k < channels.size(); ++k) {
      const Column& column = recording.columns[channels[k].column];
      load_f64(column.data, blocks[b].first_row * column.width() + channels[k].channel, column.width(), blocks[b].rows,
               source.data() + rows[b] * width + static_cast<std::int64_t>(k), width);
    }
  const auto resampled = [&](Interpolation mode) {
    std::vector<double> made(wanted.size() * channels.size());
    ResampleOptions options{.interpolation = mode, .duplicates = duplicates};
    options.source_offsets = rows;
    options.target_offsets = ends;
    resample(view(std::as_const(source).data(), {rows.back(), width}), view(times.data(), {rows.back()}),
             view(wanted.data(), {ends.back()}), view(made.data(), {ends.back(), width}), options);
    return made;
  };
  const std::vector<double> sampled = resampled(Interpolation::linear);
  const std::vector<double> slow = resampled(Interpolation::lowpass);
  std::vector<Energy> energies(channels.size());
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (std::int64_t t = ends[b] + 1; t + 1 < ends[b + 1]; ++t)
      for (std::int64_t k = 0; k < width; ++k) {
        const auto at = static_cast<std::size_t>(t * width + k);
        const double fast = sampled[at] - slow[at];
        if (!std::isfinite(fast)) continue;
        Energy& energy = energies[static_cast<std::size_t>(k)];
        energy.fast += fast * fast;
        energy.sum += sampled[at];
        energy.square += sampled[at] * sampled[at];
        ++energy.count;
      }
  return energies;
}

}  // namespace

void warn_of_aliasing(const Recording& recording, const ResampleTargets& targets, const ModePlan& plan,
                      Duplicates duplicates, std::vector<Note>& warnings) {
  const std::vector<ChannelReference> channels = sampled_channels(plan);
  const std::vector<Block> blocks = channels.empty() ? std::vector<Block>{} : blocks_of(recording, targets);
  if (blocks.empty()) return;
  const std::vector<Energy> energies = measure(recording, targets, channels, duplicates, blocks);
  const ColumnView view{recording.columns};
  std::string shares, names;
  std::size_t more = 0, named = 0;
  for (std::size_t k = 0; k < channels.size(); ++k) {
    if (!energies[k].counts() || energies[k].share() < kLeastShare || (named == kMostNamed && ++more != 0)) continue;
    const std::string name = display_text(view.text(std::span(&channels[k], 1)));
    const std::string share = std::to_string(std::lround(100 * energies[k].share())) + " % of ";
    shares += named == 0 ? share + "the energy of " + name : ", " + share + "that of " + name;
    names += (named++ == 0 ? "" : ",") + name;
  }
  if (named == 0) return;
  warnings.push_back({"faster_than_targets",
                      shares + (more == 0 ? "" : ", and as much of " + std::to_string(more) + " other columns") +
                          " is above half the new rate, and comes out as slower changes that were not there: --mode '" +
                          names + "=lowpass' or mean removes it"});
}

}  // namespace tmaops::recording
