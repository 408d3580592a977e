// One catalogue of errors: every failure has a number, and `tmaops explain E012` prints its page.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tmaops/export.hpp"

namespace tmaops {

namespace detail {
/// 12 for "E012".
constexpr int error_value(std::string_view number) {
  int value = 0;
  for (const char digit : number.substr(1)) value = 10 * value + (digit - '0');
  return value;
}
}  // namespace detail

/// Every error tmaops can report, by name. Its value is its number in the catalogue (errors.def), 12 for E012, and
/// never changes.
enum class ErrorCode : int {
#define TMAOPS_ERROR(number, name, exit_code, title, explanation, mend) name = detail::error_value(#number),
#include "tmaops/errors.def"
#undef TMAOPS_ERROR
};

/// A page of the catalogue.
struct ErrorPage {
  ErrorCode code;
  std::string_view number;       // "E012"
  std::string_view name;         // "dtype_mismatch"
  int exit_code;                 // what the tool exits with
  std::string_view title;        // one line
  std::string_view explanation;  // what it means and why it happens
  std::string_view mend;         // what to do about it
};

/// All pages, in order of their numbers.
TMAOPS_API std::span<const ErrorPage> error_catalogue();
/// The page of a code; that of an internal error for a value that is no code.
TMAOPS_API const ErrorPage& error_page(ErrorCode code);

/// What went wrong, in parts. Leave a part empty when there is nothing to say.
struct TMAOPS_API ErrorDetails {
  std::string where;   // operator and argument, or file:line:column
  std::string got;     // what was found, with the numbers
  std::string needed;  // what would have been right
  std::string mend{};  // how to mend this very case; the catalogue's advice when empty
};

/// The only exception type tmaops throws, also where memory runs out (out_of_memory). what() holds the whole message,
/// several lines. Copies share what they hold and cannot fail.
class TMAOPS_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, ErrorDetails details);
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override;  // in the library, and with it the one typeinfo

  ErrorCode code() const { return code_; }
  /// 12 for E012: the same in every version, for callers in other languages.
  int value() const { return static_cast<int>(code_); }
  /// "E012".
  std::string_view number() const { return error_page(code_).number; }
  /// 1 check failed, 2 bad usage or input, 3 finished in part, 4 device not there, 5 out of memory, 130 interrupted.
  int exit_code() const { return error_page(code_).exit_code; }
  const ErrorDetails& details() const { return *details_; }

 private:
  ErrorCode code_;
  std::shared_ptr<const ErrorDetails> details_;
};

}  // namespace tmaops
