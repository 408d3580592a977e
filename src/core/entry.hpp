// What every public function goes through: nothing but Error leaves the library.
#pragma once

#include <string_view>

#include "tmaops/error.hpp"

namespace tmaops {

namespace detail {
/// Inside a handler: throws what is being handled as Error. Memory that ran out becomes out_of_memory, anything else
/// that is no Error becomes internal.
[[noreturn]] void throw_as_error(std::string_view where);
}  // namespace detail

/// Runs the body of the public function `where`.
template <class Fn>
decltype(auto) public_entry(std::string_view where, const Fn& fn) {
  try {
    return fn();
  } catch (const Error&) {
    throw;
  } catch (...) {
    detail::throw_as_error(where);
  }
}

}  // namespace tmaops
