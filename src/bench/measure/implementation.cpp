#include "bench/measure/implementation.hpp"

#include <utility>

namespace tmaops::bench {
namespace {

class Local : public InProcess {
 public:
  Local(std::string name, Kind kind, std::string selected, std::vector<Call> calls, Timer& timer)
      : InProcess(std::move(name), kind, std::move(selected), timer, std::move(calls)) {}

  Comparison verify(Workload& workload, int set, double tolerance) override {
    workload.poison(set);
    timer_.run(calls_.at(static_cast<std::size_t>(set)));
    return workload.check(set, tolerance > 0 ? tolerance : workload.variant_tolerance(selected()));
  }
  std::optional<HostCost> host_cost(double seconds_each) override {
    return timer_.host_cost(calls_, seconds_each, name().ends_with(kDependentSuffix));
  }
};

}  // namespace

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::variant:
      return "variant";
    case Kind::peer:
      return "peer";
    case Kind::ceiling:
      break;
  }
  return "ceiling";
}

const std::vector<Call>& Implementation::calls() const {
  static const std::vector<Call> none;
  return none;
}

std::unique_ptr<Implementation> make_local(std::string name, Kind kind, std::string selected, std::vector<Call> calls,
                                           Timer& timer) {
  return std::make_unique<Local>(std::move(name), kind, std::move(selected), std::move(calls), timer);
}

}  // namespace tmaops::bench
