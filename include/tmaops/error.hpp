// One catalogue of errors: every failure has a number, and `tmaops explain E012` prints its page.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tmaops {

/// Every error tmaops can report, by name; the number is in the catalogue (errors.def).
enum class ErrorCode {
#define TMAOPS_ERROR(number, name, exit_code, title, explanation, mend) name,
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
std::span<const ErrorPage> error_catalogue();
/// The page of a code.
const ErrorPage& error_page(ErrorCode code);

/// What went wrong, in parts. Leave a part empty when there is nothing to say.
struct ErrorDetails {
  std::string where;   // operator and argument, or file:line:column
  std::string got;     // what was found, with the numbers
  std::string needed;  // what would have been right
  std::string mend{};  // how to mend this very case; the catalogue's advice when empty
};

/// The only exception type tmaops throws. what() holds the whole message, several lines.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, ErrorDetails details);

  ErrorCode code() const { return code_; }
  /// "E012".
  std::string_view number() const { return error_page(code_).number; }
  /// 1 check failed, 2 bad usage or input, 3 finished in part, 4 device not there, 5 out of memory, 130 interrupted.
  int exit_code() const { return error_page(code_).exit_code; }
  const ErrorDetails& details() const { return details_; }

 private:
  ErrorCode code_;
  ErrorDetails details_;
};

}  // namespace tmaops
