#include "commands/progress.hpp"

#include <algorithm>
#include <cstdio>

#include "bench/peers/peers.hpp"
#include "bench/run/runner.hpp"
#include "commands/result_table.hpp"
#include "core/spelling.hpp"
#include "offers/commands.hpp"
#include "offers/console.hpp"

namespace tmaops::cli {
namespace {

constexpr std::size_t kBarWidth = 24;
constexpr int kNoDevice = 4;  // exit code

}  // namespace

Progress::Progress(const Globals& globals) : on_(!globals.quiet && is_terminal(Stream::notes)) {}

Progress::~Progress() { clear(); }

void Progress::show(std::size_t done, std::size_t total, const std::string& what) {
  const auto now = std::chrono::steady_clock::now();
  if (!on_ || total == 0 || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  const std::size_t filled = std::min(kBarWidth, done * kBarWidth / total);
  std::string line = "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "] " +
                     std::to_string(std::min<std::size_t>(100, done * 100 / total)) + "% " + what;
  line.resize(std::min(line.size(), line_width(Stream::notes) - 1));
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

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
  const std::string names =
      joined(on_gpu_, "; ", [](const auto& entry) { return entry.first + ": " + joined(entry.second); });
  progress_.clear();
  if (!names.empty()) print_note(globals_, "left out, as they run on a GPU: " + names);
}

}  // namespace tmaops::cli
