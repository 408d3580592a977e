// From exceptions to the numbers that C functions return.
#pragma once

#include <string_view>

#include "core/entry.hpp"
#include "tmaops/error.hpp"

namespace tmaops::c_api {

/// Makes an error the last one of this thread and returns its number.
int remember(const Error& error) noexcept;

/// The same for what is thrown and is no std::exception.
int remember_unknown() noexcept;

/// Runs the body of a C function that works for `op`: 0 when it ends, else the number of its error. Nothing is thrown.
template <class Fn>
int status_of(std::string_view op, const Fn& fn) noexcept {
  try {
    public_entry(op, fn);
    return 0;
  } catch (const Error& error) {
    return remember(error);
  } catch (...) {
    return remember_unknown();
  }
}

}  // namespace tmaops::c_api
