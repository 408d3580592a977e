// Recordings as different recorders write them, made at random.
#pragma once

#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "cli/resample.hpp"
#include "cli/resample_sweep_model.hpp"
#include "support/scratch.hpp"

namespace tmaops::test {

/// A file (or two), what is in it, and how exactly its numbers come out again.
struct Recorded {
  std::filesystem::path path{};
  Drive drive{};
  cli::ResampleCommand command{};   // options that this recorder needs
  double tolerance = 1e-12;         // of values, relative to 1 + their size
  std::int64_t time_tolerance = 0;  // nanoseconds, where times are f64 or f32 seconds
  bool archive = false;
};

struct Style {
  const char* name;
  std::function<Recorded(std::mt19937_64& random, const Scratch& folder, const std::string& stem)> make;
};

const std::vector<Style>& styles();
/// Those of them that are npz archives.
std::vector<Style> archive_styles();

}  // namespace tmaops::test
