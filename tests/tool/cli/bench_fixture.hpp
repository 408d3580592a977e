// What the tests of bench and verify share: a small problem, a short run of it, and its result file.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/scratch.hpp"
#include "support/tool.hpp"

namespace tmaops::test {

using Json = nlohmann::ordered_json;

inline const std::string kSmallProblem = "gemm: {mode: RC, size: 32, dtype: f32}";

inline Json read_json(const std::filesystem::path& path) {
  Json json = Json::parse(read_all(path), nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << path << " is no JSON";
  return json;
}

/// Five short samples of a small problem, and whatever else.
inline std::vector<std::string> short_bench(const std::filesystem::path& output, std::vector<std::string> more = {},
                                            const std::string& problem = kSmallProblem) {
  std::vector<std::string> arguments{"bench",      "-p", problem, "--samples",    "5",
                                     "--min-time", "0",  "-o",    output.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace tmaops::test
