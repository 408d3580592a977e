// Compares what the driver accepts with what the rules say. The driver is a function, so that tests need no driver.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tma/driver.hpp"
#include "tma/rules.hpp"

namespace tmaops::probe {

/// Where the driver's answer is known to differ from the documented rules.
struct Quirk {
  std::string_view id;
  tma::Driver driver;     // what it does there: refuses what the rules allow, or accepts what they forbid
  std::string_view text;  // when
};

/// Every quirk, in the order of quirks.def.
std::span<const Quirk> quirks();

/// The quirk that explains why the driver's answer to this specification differs from that of the rules; nullptr when
/// there is none. `found` has every rule that the specification breaks. Each of them must have a quirk, and the last
/// one is returned.
const Quirk* quirk_of(const tma::TensorMapSpec& spec, const tma::Findings& found, bool accepted);

/// Called repeatedly while a part of the probe runs.
struct Observer {
  std::function<void(std::size_t done, std::size_t total, const std::string& what)> progress =
      [](std::size_t, std::size_t, const std::string&) {};
  std::function<bool()> stop = [] { return false; };
};

/// The driver's answer to a specification for which fits_driver() holds.
using AskDriver = std::function<tma::DriverAnswer(const tma::TensorMapSpec&)>;

/// agrees: rules and driver give the same answer. quirk: their answers differ, and the table of quirks says why.
/// disagrees: their answers differ, and nothing says why. not_asked: the driver's parameters cannot hold the
/// specification.
enum class Agreement { agrees, quirk, disagrees, not_asked };
std::string_view to_string(Agreement agreement);

/// What rules and driver say about one specification.
struct Verdict {
  tma::TensorMapSpec spec;
  bool valid = false;                 // no error-level rule is broken
  std::vector<std::string> broken{};  // ids of the error-level rules that are
  tma::DriverAnswer driver{};
  Agreement agreement = Agreement::not_asked;
  const Quirk* quirk = nullptr;
};
Verdict put_to_driver(const tma::TensorMapSpec& spec, int compute_capability, const AskDriver& ask);

/// A specification just outside or just inside the edge of a rule.
struct MatrixRow {
  const tma::Rule* rule = nullptr;
  bool outside = false;
  Verdict verdict;
};

/// Every example of every rule about maps. Specifications without an address get `address`, which is in real memory.
std::vector<MatrixRow> run_matrix(std::uint64_t address, int compute_capability, const AskDriver& ask);

struct SpecificationOptions {
  std::uint64_t seed = 1;
  std::size_t count = 100'000;
  std::uint64_t address = 0;  // of real memory, a multiple of 1024
};

struct SpecificationRun {
  std::size_t count = 0;
  std::size_t tiled = 0;
  std::size_t accepted = 0;  // by the driver
  std::size_t agreed = 0;
  std::map<std::string, std::size_t> quirks{};  // by id
  std::size_t disagreed = 0;
  std::vector<Verdict> disagreements{};  // the first kMostShown
  static constexpr std::size_t kMostShown = 50;
};

/// Random specifications, most of them near a rule's edge.
SpecificationRun run_specifications(const SpecificationOptions& options, int compute_capability, const AskDriver& ask,
                                    const Observer& observer);

}  // namespace tmaops::probe
