// Plans as C holds them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "c_api/arguments.hpp"
#include "c_api/status.hpp"
#include "tmaops/plan.hpp"
#include "tmaops/tmaops.h"

struct tmaops_plan {
  tmaops::Plan plan;
  std::string variant = std::string(plan.variant());
  std::string config = std::string(plan.config());
};

namespace tmaops::c_api {

/// Puts the plan that `make` returns into *plan; null when it fails.
template <class Make>
int status_of_plan(std::string_view op, tmaops_plan** plan, const Make& make) noexcept {
  return status_of(op, [&] {
    const Arguments arguments(op);
    arguments.place("plan", plan);
    *plan = nullptr;
    *plan = new tmaops_plan{make(arguments)};
  });
}

/// Puts the number of bytes that `count` returns into *bytes.
template <class Count>
int status_of_workspace(std::string_view op, std::size_t* bytes, const Count& count) noexcept {
  return status_of(op, [&] {
    const Arguments arguments(op);
    arguments.place("bytes", bytes);
    *bytes = count(arguments);
  });
}

/// Runs a call with the reader of its arguments.
template <class Call>
int status_of_call(std::string_view op, const Call& call) noexcept {
  return status_of(op, [&] { call(Arguments(op)); });
}

}  // namespace tmaops::c_api
