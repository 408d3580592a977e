// All output of the tool: data to stdout, everything else to stderr, colour only where it is wanted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tmaops::cli {

struct Globals;

/// Writes data to stdout. When the reader has ended (`tmaops list | head -1`), the rest is dropped. Throws Error
/// write_failed when the output cannot be written, for example on a full disk.
void print_data(std::string_view text);
/// One line to stderr, unless --quiet. Control characters in it are printed as \xNN.
void print_note(const Globals& globals, std::string_view line);
/// One line to stderr, also with --quiet. Control characters are printed the same way.
void print_problem(std::string_view line);
/// Writes text to stderr unchanged. Its only control sequences may be those of styled().
void print_styled(std::string_view text);

enum class Stream { data, notes };
/// A terminal that obeys control sequences: TERM is set, and not to dumb.
bool is_terminal(Stream stream);
/// The width at which lines are wrapped.
inline constexpr std::size_t kAnyWidth = static_cast<std::size_t>(-1);
/// COLUMNS of the environment, else the terminal's width; kAnyWidth where there is neither.
std::size_t line_width(Stream stream);
/// Lines that are wider, such as those of a help text, go on below the text they belong to.
std::string wrapped(std::string_view text, std::size_t width);
/// --color always or never; auto: a terminal, NO_COLOR unset or empty.
bool use_color(const Globals& globals, Stream stream);

enum class Style { plain, bold, good, bad, faint };
/// The text between the escape sequences of a style, or the plain text when colour is off.
std::string styled(std::string_view text, Style style, bool color);

}  // namespace tmaops::cli
