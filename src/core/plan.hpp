// From a choice to a plan, the same for every operator.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/registry.hpp"
#include "core/work.hpp"
#include "tmaops/plan.hpp"

namespace tmaops {

struct Plan::State {
  std::string_view op;
  std::string_view variant;
  std::string config;
  std::unique_ptr<const RepeatedWork> work;
};

/// What a call runs; nothing for a problem that says it is empty().
template <class Choice, class Problem, class Arguments>
Work work_of(const Choice& choice, const Problem& problem, const Arguments& arguments) {
  if constexpr (requires { problem.empty(); })
    if (problem.empty()) return Work();
  return choice.variant->plan(problem, arguments, choice.config);
}

/// The plan of a call.
template <class Choice, class Problem, class Arguments>
Plan make_plan(const Choice& choice, const Problem& problem, const Arguments& arguments) {
  auto state = std::make_unique<Plan::State>();
  state->op = choice.variant->op;
  state->variant = choice.variant->name;
  state->config = choice.config.text();
  state->work = RepeatedWork::of(work_of(choice, problem, arguments));
  return Plan(std::move(state));
}

/// Runs a call that is made once.
template <class Choice, class Problem, class Arguments>
void run_once(const Choice& choice, const Problem& problem, const Arguments& arguments, Stream stream) {
  work_of(choice, problem, arguments).run(stream);
}

}  // namespace tmaops
