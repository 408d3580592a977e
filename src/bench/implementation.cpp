#include "bench/implementation.hpp"

#include <chrono>
#include <ctime>
#include <thread>
#include <utility>

namespace tmaops::bench {
namespace {

class CpuTimer : public Timer {
 public:
  double seconds(const std::vector<Call>& calls, std::int64_t first, std::int64_t count) override {
    const auto sets = static_cast<std::int64_t>(calls.size());
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < count; ++i) calls[static_cast<std::size_t>((first + i) % sets)](nullptr);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  void run(const Call& call) override { call(nullptr); }
};

class Local : public Implementation {
 public:
  Local(std::string name, Kind kind, std::string selected, std::vector<Call> calls, Timer& timer)
      : Implementation(std::move(name), kind, std::move(selected)), calls_(std::move(calls)), timer_(timer) {}

  Comparison verify(Workload& workload, int set, double tolerance) override {
    workload.poison(set);
    timer_.run(calls_.at(static_cast<std::size_t>(set)));
    return workload.check(set, tolerance);
  }
  double seconds(std::int64_t first, std::int64_t count) override { return timer_.seconds(calls_, first, count); }
  const std::vector<Call>& calls() const override { return calls_; }

 private:
  std::vector<Call> calls_;
  Timer& timer_;
};

double process_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

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

std::unique_ptr<Timer> make_cpu_timer() { return std::make_unique<CpuTimer>(); }

void wait_until_quiet() {
  constexpr double kQuiet = 1e-4;  // seconds of processor time in a nap of 0.5 ms: less than a fifth of one thread
  for (int nap = 0; nap < 100; ++nap) {
    const double before = process_seconds();
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    if (process_seconds() - before < kQuiet) return;
  }
}

std::unique_ptr<Implementation> make_local(std::string name, Kind kind, std::string selected, std::vector<Call> calls,
                                           Timer& timer) {
  return std::make_unique<Local>(std::move(name), kind, std::move(selected), std::move(calls), timer);
}

}  // namespace tmaops::bench
