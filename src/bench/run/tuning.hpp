// From the times of every candidate to the table that gemm chooses by.
#pragma once

#include <string>
#include <vector>

#include "bench/run/report.hpp"
#include "ops/gemm/tuning.hpp"

namespace tmaops::bench {

/// The fastest candidate of each case of a run with RunOptions::tune. Where inputs were both hot and cold, the one with
/// the least product of both times, whose root is its time.
std::vector<ops::gemm::TunedChoice> fastest(const std::vector<Row>& rows, const std::string& gpu);

}  // namespace tmaops::bench
