// 2,004 recordings in the styles of many recorders, compared with an independent computation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/resample_sweep_model.hpp"
#include "cli/resample_sweep_styles.hpp"
#include "io/recording.hpp"
#include "tmaops/error.hpp"

namespace tmaops::test {
namespace {

constexpr int kFilesPerStyle = 167;

/// A recording as a flat table: array `state` of three channels is state_0, state_1, state_2.
struct Flat {
  std::map<std::string, std::vector<double>> numbers{};
  std::map<std::string, std::vector<std::string>> texts{};
};

Flat flatten(const io::Recording& recording) {
  Flat flat;
  for (const io::Column& column : recording.columns)
    for (std::int64_t i = 0; i < column.data.size(); ++i) {
      const std::string name =
          column.data.shape.size() > 1 ? column.name + "_" + std::to_string(i % column.width()) : column.name;
      if (column.data.type.kind == io::ElementKind::text) {
        const std::string text = io::element_text(column.data, i);
        if (text == "true" || text == "false") flat.numbers[name].push_back(text == "true");  // a boolean in a csv
        flat.texts[name].push_back(io::element_text(column.data, i));
      } else {
        flat.numbers[name].push_back(io::element_f64(column.data, i));
      }
    }
  return flat;
}

struct Target {
  std::int64_t time = 0;
  Bracket bracket{};
};

class Sweep {
 public:
  Sweep(const Recorded& recorded, std::mt19937_64& random, const Scratch& folder)
      : recorded_(recorded), random_(random), folder_(folder), command_(recorded.command) {}

  /// Resamples the file with random options and compares every number.
  void run() {
    choose_options();
    cli::ResampleReport report;
    try {
      cli::resample_file(command_, report);
    } catch (const Error& error) {
      // With every target in a gap or outside there is nothing to write.
      const auto targets = wanted();
      const bool nothing = std::ranges::none_of(targets, [&](const Target& target) { return has_data(target); });
      if (nothing && (error.code() == ErrorCode::bad_parameter || error.code() == ErrorCode::target_outside)) return;
      FAIL() << error.what();
    }
    compare(io::read_recording(command_.output));
  }

 private:
  bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }

  void choose_options() {
    to_archive_ = recorded_.drive.offsets.size() > 2 || chance(0.5);
    command_.input = recorded_.path;
    command_.output = folder_ / (to_archive_ ? "out.npz" : "out.csv");
    command_.force = true;
    if (chance(0.5)) {
      max_gap_ = std::uniform_int_distribution<std::int64_t>(1, 150)(random_) * 1'000'000;
      command_.max_gap = static_cast<double>(max_gap_) / 1e9;
    }
    if (chance(0.3)) command_.outside = "hold";
    if (chance(0.6)) {
      static const double kRates[] = {7.3, 10, 30, 100, 997.3};
      command_.hz = kRates[random_() % 5];
    } else {
      // From a little before the first sample to a little after the last.
      const auto [first, last] = std::minmax_element(recorded_.drive.times.begin(), recorded_.drive.times.end());
      std::string text;
      for (int i = 0; i < 20; ++i) {
        const std::int64_t margin = (*last - *first) / 10;
        file_targets_.push_back(std::uniform_int_distribution<std::int64_t>(*first - margin, *last + margin)(random_));
        text += std::to_string(file_targets_.back()) + "\n";
      }
      command_.times = folder_.file("targets.txt", text);
      command_.times_unit = "ns";
    }
  }

  std::vector<Target> wanted() const {
    std::vector<Target> all;
    const Drive& drive = recorded_.drive;
    const bool keeps = to_archive_ && command_.outside.empty();
    for (std::size_t e = 0; e + 1 < drive.offsets.size(); ++e)
      for (const std::int64_t time : command_.hz ? grid_of(drive, e, *command_.hz) : file_targets_) {
        const Target target{time, find_bracket(drive, e, time, max_gap_)};
        if (target.bracket.outside && !keeps && command_.outside != "hold") continue;
        if (target.bracket.in_gap && !to_archive_) continue;
        all.push_back(target);
      }
    return all;
  }

  void compare(const io::Recording& got) const {
    const std::vector<Target> targets = wanted();
    ASSERT_EQ(got.times.size(), targets.size());
    const std::int64_t tolerance =
        to_archive_ && recorded_.time_tolerance == 0 && !got.time.integer ? 240 : recorded_.time_tolerance;
    for (std::size_t i = 0; i < targets.size(); ++i)
      ASSERT_LE(std::abs(got.times[i] - targets[i].time), tolerance) << "row " << i;
    const Flat flat = flatten(got);
    for (const Quantity& quantity : recorded_.drive.quantities) {
      if (quantity.rule == Rule::text) {
        compare_texts(quantity, flat, targets);
      } else {
        compare_numbers(quantity, flat, targets);
      }
    }
  }

  bool has_data(const Target& target) const {
    return !target.bracket.in_gap && (!target.bracket.outside || command_.outside == "hold");
  }

  void compare_texts(const Quantity& quantity, const Flat& flat, const std::vector<Target>& targets) const {
    ASSERT_TRUE(flat.texts.contains(quantity.names[0])) << quantity.names[0];
    for (std::size_t i = 0; i < targets.size(); ++i)
      EXPECT_EQ(flat.texts.at(quantity.names[0])[i],
                has_data(targets[i]) ? quantity.texts[targets[i].bracket.before] : "");
  }

  void compare_numbers(const Quantity& quantity, const Flat& flat, const std::vector<Target>& targets) const {
    std::vector<const std::vector<double>*> got;
    for (const std::string& name : quantity.names) {
      ASSERT_TRUE(flat.numbers.contains(name)) << name;
      got.push_back(&flat.numbers.at(name));
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const Bracket& at = targets[i].bracket;
      if (!has_data(targets[i])) {
        for (const auto* column : got)
          EXPECT_TRUE(quantity.rule == Rule::held ? (*column)[i] == 0 : std::isnan((*column)[i]));
        continue;
      }
      std::vector<long double> want;
      for (std::size_t k = 0; k < got.size(); ++k) want.push_back(expected(quantity, k, at));
      // q and -q are one rotation.
      long double dot = 1;
      if (quantity.rule == Rule::quaternion) {
        dot = 0;
        for (std::size_t k = 0; k < 4; ++k) dot += want[k] * static_cast<long double>((*got[k])[i]);
      }
      for (std::size_t k = 0; k < got.size(); ++k) {
        long double error = static_cast<long double>((*got[k])[i]) - (dot < 0 ? -want[k] : want[k]);
        if (quantity.rule == Rule::angle) error = std::remainder(error, static_cast<long double>(quantity.turn));
        const long double tolerance = quantity.rule == Rule::held ? 0 : recorded_.tolerance * (1 + std::abs(want[k]));
        ASSERT_LE(std::abs(error), tolerance)
            << quantity.names[k] << ", row " << i << ": " << (*got[k])[i] << " for " << want[k];
        if (quantity.rule == Rule::angle) {
          ASSERT_LE(std::abs((*got[k])[i] - (quantity.turn == 360 ? 180 : 0)), quantity.turn / 2 + 1e-9);
        }
      }
    }
  }

  const Recorded& recorded_;
  std::mt19937_64& random_;
  const Scratch& folder_;
  cli::ResampleCommand command_;
  std::vector<std::int64_t> file_targets_{};
  std::int64_t max_gap_ = 0;
  bool to_archive_ = false;
};

class ResampleSweep : public testing::TestWithParam<Style> {};

TEST_P(ResampleSweep, every_number_agrees_with_an_independent_computation) {
  std::mt19937_64 random(20261123);
  const Scratch folder;
  for (int file = 0; file < kFilesPerStyle && !HasFailure(); ++file) {
    SCOPED_TRACE("file " + std::to_string(file));
    const Recorded recorded = GetParam().make(random, folder, "in" + std::to_string(file));
    Sweep(recorded, random, folder).run();
  }
}

INSTANTIATE_TEST_SUITE_P(Recorders, ResampleSweep, testing::ValuesIn(styles()), [](const auto& style) {
  std::string name = style.param.name;
  std::ranges::replace(name, ' ', '_');
  return name;
});

}  // namespace
}  // namespace tmaops::test
