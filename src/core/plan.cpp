#include "core/plan.hpp"

#include "core/entry.hpp"

namespace tmaops {

Plan::Plan(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

void Plan::run(Stream stream) const {
  public_entry(state_->op, [&] { state_->work->run(stream); });
}
std::string_view Plan::variant() const { return state_->variant; }
std::string_view Plan::config() const { return state_->config; }

}  // namespace tmaops
