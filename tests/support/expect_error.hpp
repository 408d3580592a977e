// Expecting a named error, and that its message says what the user needs.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tmaops/error.hpp"

namespace tmaops::test {

/// Runs fn and checks that it throws Error with this code, and that the message contains every given piece of text.
template <class Fn, class... Text>
void expect_error(ErrorCode code, const Fn& fn, const Text&... pieces) {
  try {
    fn();
  } catch (const Error& error) {
    EXPECT_EQ(error.number(), error_page(code).number) << error.what();
    const std::string message = error.what();
    for (const std::string& piece : {std::string(pieces)..., std::string()})
      EXPECT_NE(message.find(piece), std::string::npos) << "no '" << piece << "' in:\n" << message;
    return;
  }
  ADD_FAILURE() << "no error; expected " << error_page(code).number << " " << error_page(code).name;
}

}  // namespace tmaops::test
