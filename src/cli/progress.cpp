#include "cli/progress.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/table.hpp"

namespace tmaops::cli {
namespace {

constexpr std::size_t kBarWidth = 24;

}  // namespace

Progress::Progress(const Globals& globals) {
  const char* term = std::getenv("TERM");
  on_ = !globals.quiet && is_terminal(Stream::notes) && term != nullptr && std::string_view(term) != "dumb";
}

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

}  // namespace tmaops::cli
