#include "core/plan.hpp"

#include <cstdint>

#include "core/entry.hpp"
#include "core/spelling.hpp"

namespace tmaops {
namespace {

constexpr std::uintptr_t kMostAlignment = 128;  // bytes; nothing asks for more

std::size_t alignment_of(const void* data) {
  const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(data) | kMostAlignment;
  return bits & -bits;
}

std::string names_of(const std::vector<Plan::State::Tensor>& tensors) {
  return joined(tensors, ", ", [](const Plan::State::Tensor& tensor) { return std::string(tensor.name); });
}

/// Refuses addresses that the plan's call could not have had.
void check_addresses(const Plan::State& plan, std::span<const void* const> data) {
  const ArgumentChecks checks(plan.op);
  if (data.size() != plan.tensors.size())
    checks.fail(ErrorCode::bad_parameter, "rebind", std::to_string(data.size()) + " addresses",
                std::to_string(plan.tensors.size()) + ": " + names_of(plan.tensors));
  const auto moved = [&](std::size_t i) {
    ConstTensorView view = plan.tensors[i].view;
    view.data = data[i];
    return view;
  };
  for (std::size_t i = 0; i < data.size(); ++i) {
    const Plan::State::Tensor& tensor = plan.tensors[i];
    if (tensor.range.empty()) continue;
    if (data[i] == nullptr || alignment_of(data[i]) < size_of(tensor.view.dtype)) checks.memory(tensor.name, moved(i));
    if (alignment_of(data[i]) < tensor.alignment)
      checks.fail(ErrorCode::misaligned, tensor.name,
                  "an address at a multiple of " + std::to_string(alignment_of(data[i])) + " bytes",
                  "a multiple of " + std::to_string(tensor.alignment) + ", as when the plan was made");
  }
  const auto ends_before = [&](std::size_t i, std::size_t j) {
    return reinterpret_cast<std::intptr_t>(data[i]) + plan.tensors[i].range.last <=
           reinterpret_cast<std::intptr_t>(data[j]) + plan.tensors[j].range.first;
  };
  for (const auto [written, other] : plan.apart)
    if (!ends_before(written, other) && !ends_before(other, written))  // slices of one buffer may still be apart
      checks.no_overlap(plan.tensors[written].name, moved(written), plan.tensors[other].name, moved(other));
  for (std::size_t i = 0; i < data.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (plan.tensors[i].view.data == plan.tensors[j].view.data && data[i] != data[j])
        checks.fail(ErrorCode::bad_parameter, plan.tensors[i].name, "memory of its own",
                    "that of " + std::string(plan.tensors[j].name) + ", as when the plan was made");
}

}  // namespace

void Plan::State::add_tensor(std::string_view name, const ConstTensorView& view, bool written) {
  const std::size_t alignment = view.device.type == DeviceType::cuda ? alignment_of(view.data) : 1;
  tensors.push_back({name, view, alignment, byte_range(view), written});
}

void Plan::State::keep_apart() {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    for (std::size_t j = 0; j < tensors.size(); ++j)
      if (tensors[i].written && i != j && !(tensors[j].written && j < i) &&
          !may_overlap(tensors[i].view, tensors[j].view))
        apart.push_back({i, j});
}

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

void Plan::run(Stream stream) const {
  public_entry(state_->op, [&] { state_->work->run(stream); });
}

void Plan::rebind(std::span<const void* const> data) {
  public_entry(state_->op, [&] {
    check_addresses(*state_, data);
    state_->work->rebind(state_->bind(data));
    for (std::size_t i = 0; i < data.size(); ++i) state_->tensors[i].view.data = data[i];
  });
}

std::string_view Plan::variant() const { return state_->variant; }
std::string_view Plan::config() const { return state_->config; }

}  // namespace tmaops
