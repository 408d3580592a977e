// Finds the choices for gemm's table from the times of every candidate.
#pragma once

#include <string>
#include <vector>

#include "bench/run/report.hpp"
#include "ops/gemm/tuning.hpp"

namespace tmaops::bench {

/// The fastest candidate of each case of a run with RunOptions::tune. Where inputs were both hot and cold, the
/// geometric mean of the two times decides.
std::vector<ops::gemm::TunedChoice> fastest(const std::vector<Row>& rows, const std::string& gpu);

}  // namespace tmaops::bench
