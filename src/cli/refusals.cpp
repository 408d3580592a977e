#include "cli/refusals.hpp"

#include <algorithm>

#include "bench/peers/peers.hpp"
#include "bench/run/runner.hpp"
#include "cli/console.hpp"
#include "cli/progress.hpp"
#include "cli/result_table.hpp"

namespace tmaops::cli {
namespace {

constexpr int kNoDevice = 4;  // exit code

}  // namespace

void Refusals::tell(const bench::Refusal& refusal) {
  if (refusal.exit_code == kNoDevice && !refusal.requested) {
    std::vector<std::string>& names = on_gpu_[refusal.info.op];
    if (std::ranges::find(names, refusal.implementation) == names.end()) names.push_back(refusal.implementation);
    return;
  }
  const bool peer = std::ranges::find(bench::peer_names(), refusal.implementation) != bench::peer_names().end();
  if (peer && !reasons_of_peers_.insert(refusal.reason).second) return;
  progress_.clear();
  if (refusal.requested)
    print_problem(refusal_line(refusal));
  else
    print_note(globals_, refusal_line(refusal));
}

void Refusals::finish() {
  std::string names;
  for (const auto& [op, variants] : on_gpu_) {
    names += (names.empty() ? "" : "; ") + op + ": ";
    for (const std::string& one : variants) names += (&one == variants.data() ? "" : ", ") + one;
  }
  progress_.clear();
  if (!names.empty()) print_note(globals_, "left out, as they run on a GPU: " + names);
}

}  // namespace tmaops::cli
