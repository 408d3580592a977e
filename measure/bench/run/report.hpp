// Results, and the result file (schema 1).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/counters.hpp"
#include "bench/measure/implementation.hpp"
#include "bench/measure/nvml.hpp"
#include "bench/run/code_digest.hpp"
#include "bench/run/statistics.hpp"
#include "bench/workloads/workload.hpp"
#include "tmaops/error.hpp"

namespace tmaops::bench {

/// What a row of a case that measures loading has beside its times.
struct TileLoads {
  double count = 0;                   // of one call
  std::vector<std::string> manual{};  // the variants that load by hand
  std::optional<Summary> cycles{};    // of one call's blocks, in a run of its own
};

/// One implementation on one case.
struct Row {
  CaseInfo info;
  std::string implementation;
  Kind kind = Kind::variant;
  std::string selected{};            // variant that ran; empty for peers and ceilings
  std::optional<CodeDigest> code{};  // of the variant
  std::string temperature{};         // "cold" or "hot"; empty when only verified
  std::optional<Summary> us{};       // microseconds per call; none when only verified
  Comparison error{};
  bool verified = false;
  std::optional<HostCost> host{};      // per call of the thread that makes it
  std::optional<Clocks> clocks{};      // while it was timed
  std::optional<Counters> counters{};  // read when all was timed
  std::optional<TileLoads> loads{};    // of a case that measures loading
  double memory_peak = 0;              // of the GPU, 1e9 bytes per second; 0: not known
  std::string tuning_key{};            // of a case whose operator keeps a table of measured choices

  double gbps() const;    // of the floor bytes, 1e9 bytes per second
  double tflops() const;  // 1e12 operations per second
  /// Bandwidth divided by memory_peak. Nothing where that is not known or nothing was moved.
  std::optional<double> of_peak() const;
};

/// The reason in an error: what is needed, without the error's number and advice.
std::string reason_of(const Error& error);

/// What was asked for and not done.
struct Refusal {
  CaseInfo info;
  std::string implementation;
  std::string reason;
  bool requested = false;  // named by the user, so that leaving it out matters
  int exit_code = 2;       // of a run in which nothing was done because of it: 4 no device, 5 no memory, 2 otherwise
};

enum class Status { complete, partial };

struct Report {
  std::vector<Row> rows;
  std::vector<Row> failed;  // wrong results: no times
  std::vector<Refusal> refused;
  Status status = Status::complete;  // partial: interrupted

  /// 130 interrupted; 1 a wrong result; 3 done in part; the refusals' own when nothing was done; else 0.
  int exit_code() const;
};

/// Whether two rows are of one case, with inputs of one temperature.
bool same_case(const Row& a, const Row& b);
/// The timed row of that implementation in the same case; null when there is none.
const Row* row_beside(const Report& report, const Row& row, std::string_view implementation);
/// Bandwidth divided by the copy's of the same case. Nothing for the copy itself and where it was not timed.
std::optional<double> of_copy(const Report& report, const Row& row);
/// Of a case that measures loading: how many times as fast as the fastest variant that loads by hand.
std::optional<double> vs_manual(const Report& report, const Row& row);

/// The result file. `config` is put in as it is. Throws Error internal when a number is not finite: JSON has no NaN,
/// and a silent null would read as "not measured".
nlohmann::ordered_json to_json(const Report& report, const nlohmann::ordered_json& config);

/// The text of a file: objects are indented, and each element of a list is one line. Invalid UTF-8 is replaced.
std::string to_text(const nlohmann::ordered_json& document);

/// Checks a document against schema 1; throws Error bad_format that names the first place that breaks it.
void check_schema(const nlohmann::ordered_json& document, const std::string& source);

}  // namespace tmaops::bench
