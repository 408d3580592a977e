#include "offers/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "core/display.hpp"
#include "core/enum_name.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "offers/commands.hpp"

namespace tmaops::cli {

void print_data(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  const int reason = errno;
  if (written || reason == EPIPE) return;
  fail(ErrorCode::write_failed, "standard output", std::generic_category().message(reason),
       "room for all of the output");
}

void print_note(const Globals& globals, std::string_view line) {
  if (!globals.quiet) print_problem(line);
}

void print_problem(std::string_view line) { print_styled(display_lines(line) + "\n"); }

void print_styled(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

bool is_terminal(Stream stream) {
  const char* term = std::getenv("TERM");
  return isatty(stream == Stream::data ? STDOUT_FILENO : STDERR_FILENO) == 1 && term != nullptr &&
         std::string_view(term) != "dumb";
}

std::size_t line_width(Stream stream) {
  constexpr std::int64_t kNarrowest = 20;
  const char* columns = std::getenv("COLUMNS");
  if (const auto number = parse_integer(columns == nullptr ? "" : columns); number && *number >= kNarrowest)
    return static_cast<std::size_t>(*number);
  winsize size{};
  const int file = stream == Stream::data ? STDOUT_FILENO : STDERR_FILENO;
  return ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col >= kNarrowest ? size.ws_col : kAnyWidth;
}

std::string wrapped(std::string_view text, std::size_t width) {
  constexpr std::size_t kShortestText = 20;
  std::string all;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    // What follows the second group of blanks, if any: "  -o,--output TEXT   Result file".
    const std::size_t word = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t gap = line.find("  ", word);
    std::size_t indent = gap == std::string_view::npos ? word : line.find_first_not_of(' ', gap);
    if (indent + kShortestText > width) indent = word + 2;
    std::size_t before = 0;  // blanks in front of a continued line
    while (line.size() + before > width) {
      const std::size_t least = before > 0 ? 0 : word;
      std::size_t end = line.rfind(' ', width - before);
      if (end == std::string_view::npos || end <= least) end = line.rfind(',', width - before - 1) + 1;  // of a list
      if (end <= least) break;  // one long word
      all += std::string(before, ' ') + std::string(line.substr(0, line.find_last_not_of(' ', end - 1) + 1)) + "\n";
      line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
      before = indent;
    }
    all += std::string(before, ' ') + std::string(line) + "\n";
  }
  return all;
}

bool use_color(const Globals& globals, Stream stream) {
  if (globals.color != "auto") return globals.color == "always";
  const char* no_color = std::getenv("NO_COLOR");  // https://no-color.org: any value but the empty one
  return (no_color == nullptr || *no_color == '\0') && is_terminal(stream);
}

std::string styled(std::string_view text, Style style, bool color) {
  if (!color || style == Style::plain) return std::string(text);
  constexpr std::string_view starts[] = {"", "\033[1m", "\033[32m", "\033[31m", "\033[2m"};  // as Style counts
  return std::string(enum_name(starts, style)) + std::string(text) + "\033[0m";
}

}  // namespace tmaops::cli
