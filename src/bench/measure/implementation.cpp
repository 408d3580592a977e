#include "bench/measure/implementation.hpp"

#include <utility>

namespace tmaops::bench {
namespace {

class Local : public InProcess {
 public:
  Local(std::string name, Kind kind, std::string selected, std::vector<Call> calls, Timer& timer,
        std::vector<Call> fresh)
      : InProcess(std::move(name), kind, std::move(selected), timer, std::move(calls)), fresh_(std::move(fresh)) {}

  Comparison verify(Workload& workload, int set, double tolerance) override {
    workload.poison(set);
    timer_.run(calls_.at(static_cast<std::size_t>(set)));
    return workload.check(set, tolerance > 0 ? tolerance : workload.variant_tolerance(selected()));
  }
  std::optional<HostCost> host_cost(double seconds_each) override {
    return timer_.host_cost(calls_, fresh_, seconds_each, name().ends_with(kDependentSuffix));
  }

 private:
  std::vector<Call> fresh_;
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
                                           Timer& timer, std::vector<Call> fresh) {
  return std::make_unique<Local>(std::move(name), kind, std::move(selected), std::move(calls), timer,
                                 std::move(fresh));
}

}  // namespace tmaops::bench
