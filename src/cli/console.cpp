#include "cli/console.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "cli/commands.hpp"
#include "io/file_error.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {

void print_data(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  const int reason = errno;
  if (written || reason == EPIPE) return;
  throw Error(ErrorCode::write_failed,
              {.where = "standard output", .got = io::system_text(reason), .needed = "room for all of the output"});
}

void print_note(const Globals& globals, std::string_view line) {
  if (!globals.quiet) print_problem(line);
}

void print_problem(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

bool is_terminal(Stream stream) { return isatty(stream == Stream::data ? STDOUT_FILENO : STDERR_FILENO) == 1; }

bool use_color(const Globals& globals, Stream stream) {
  if (globals.color != "auto") return globals.color == "always";
  const char* no_color = std::getenv("NO_COLOR");  // https://no-color.org: any value but the empty one
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  return is_terminal(stream) && term != nullptr && std::string_view(term) != "dumb";
}

std::string styled(std::string_view text, Style style, bool color) {
  if (!color || style == Style::plain) return std::string(text);
  const char* start = "";
  switch (style) {
    case Style::plain:
      break;
    case Style::bold:
      start = "\033[1m";
      break;
    case Style::good:
      start = "\033[32m";
      break;
    case Style::bad:
      start = "\033[31m";
      break;
    case Style::faint:
      start = "\033[2m";
      break;
  }
  return std::string(start) + std::string(text) + "\033[0m";
}

}  // namespace tmaops::cli
