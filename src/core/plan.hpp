// From a choice to a run or a plan, the same for every operator.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/checks.hpp"
#include "core/registry.hpp"
#include "core/work.hpp"
#include "core/workspace.hpp"
#include "tmaops/plan.hpp"

namespace tmaops {

/// A tensor of a call that is planned, and where its address stands in the call's arguments.
template <class Arguments>
struct PlannedTensor {
  std::string_view name;
  ConstTensorView view;
  void (*set)(Arguments& arguments, void* data);
  bool written = false;
};

struct Plan::State {
  struct Tensor {
    std::string_view name;
    ConstTensorView view;       // with the address of now
    std::size_t alignment = 1;  // on a GPU that of the address when the plan was made, bytes, at most 128
    ByteRange range{};          // empty for a tensor without elements
    bool written = false;       // by the call, apart from the others
  };
  /// Tensors that share no memory, and of which one is written.
  struct Apart {
    std::size_t written;
    std::size_t other;
  };

  std::string_view op;
  std::string_view variant;
  std::string config;
  std::vector<Tensor> tensors;
  std::vector<Apart> apart;
  /// The call's work on memory at these addresses, in the order of the tensors.
  std::function<Work(std::span<const void* const> data)> bind;
  std::unique_ptr<RepeatedWork> work;

  void add_tensor(std::string_view name, const ConstTensorView& view, bool written);
  /// Finds the tensors that must stay apart.
  void keep_apart();
};

/// Where the memory of a call comes from.
struct MemoryOptions {
  Device device{};
  Allocator allocator{};
  Stream stream = nullptr;
};

/// What a call runs; nothing for a problem that says it is empty().
template <class Choice, class Problem, class Arguments>
Work work_of(const Choice& choice, const Problem& problem, const Arguments& arguments) {
  if constexpr (requires { problem.empty(); })
    if (problem.empty()) return Work();
  return choice.variant->plan(problem, arguments, choice.config);
}

template <class Arguments>
void set_workspace(Arguments& arguments, Workspace& workspace) {
  if constexpr (requires { arguments.workspace; }) arguments.workspace = &workspace;
}

/// The plan of a call. `tensors` in the order in which Plan::rebind() takes them; those that are not given are left
/// out.
template <class Choice, class Problem, class Arguments>
Plan make_plan(const Choice& choice, const Problem& problem, const Arguments& arguments,
               const MemoryOptions& memory = {},
               std::initializer_list<PlannedTensor<std::type_identity_t<Arguments>>> tensors = {}) {
  auto state = std::make_unique<Plan::State>();
  state->op = choice.variant->op;
  state->variant = choice.variant->name;
  state->config = choice.config.text();
  std::vector<void (*)(Arguments&, void*)> setters;
  for (const PlannedTensor<Arguments>& tensor : tensors) {
    if (!tensor.view.given()) continue;
    state->add_tensor(tensor.name, tensor.view, tensor.written);
    setters.push_back(tensor.set);
  }
  state->keep_apart();
  const auto workspace =
      std::make_shared<Workspace>(memory.device, memory.allocator, memory.stream, Workspace::Use::plan);
  Arguments own = arguments;
  set_workspace(own, *workspace);
  Work work = work_of(choice, problem, own);
  state->bind = [choice, problem, own, workspace, setters](std::span<const void* const> data) mutable {
    for (std::size_t i = 0; i < data.size(); ++i) setters[i](own, const_cast<void*>(data[i]));
    workspace->rewind();
    return work_of(choice, problem, own);
  };
  state->work = RepeatedWork::of(std::move(work), workspace->stream());
  return Plan(std::move(state));
}

/// Runs a call that is made once.
template <class Choice, class Problem, class Arguments>
void run_once(const Choice& choice, const Problem& problem, Arguments& arguments, const MemoryOptions& memory) {
  Workspace workspace(memory.device, memory.allocator, memory.stream, Workspace::Use::call);
  set_workspace(arguments, workspace);
  work_of(choice, problem, arguments).run(memory.stream);
}

/// Bytes of device memory that a call needs beside its tensors.
template <class Choice, class Problem, class Arguments>
std::size_t workspace_bytes(const Choice& choice, const Problem& problem, Arguments& arguments,
                            const MemoryOptions& memory) {
  Workspace workspace(memory.device, {}, nullptr, Workspace::Use::count);
  set_workspace(arguments, workspace);
  work_of(choice, problem, arguments);
  return workspace.bytes();
}

}  // namespace tmaops
