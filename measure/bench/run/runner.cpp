#include "bench/run/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <new>

#include "bench/measure/gpu_memory.hpp"
#include "bench/measure/machine.hpp"
#include "bench/run/implementations.hpp"
#include "bench/run/recorder.hpp"
#include "bench/run/sampling.hpp"
#include "bench/workloads/wanted_variants.hpp"
#include "core/device_info.hpp"
#include "core/fail.hpp"
#include "core/work.hpp"
#include "tmaops/error.hpp"

namespace tmaops::bench {
namespace {

constexpr int kNoMemory = 5;  // exit code of the errors of memory

Row row_of(const Workload& workload, const Implementation& implementation, const std::string& temperature,
           const Comparison& error) {
  Row row{.info = workload.info(),
          .implementation = implementation.name(),
          .kind = implementation.kind(),
          .selected = implementation.selected(),
          .code = code_digest(workload.info().op, implementation.selected(), workload.info().device),
          .temperature = temperature,
          .error = error,
          .memory_peak = gpu_memory(workload.info().device).peak_gbps(),
          .tuning_key = workload.tuning_key()};
  if (const auto loading = workload.loading()) row.loads = {.count = loading->loads, .manual = loading->manual};
  return row;
}

/// So many sets of inputs that the calls on them touch more than the last-level cache of the device holds. 1 where one
/// set is twice that cache. The number may grow after prepare(), when the bytes that a resampling touches are known.
/// Throws Error out_of_memory when they exceed `cap` bytes.
int cold_sets(const Workload& workload, std::int64_t cap) {
  const Device device = workload.info().device;
  const std::int64_t known =
      device.type == DeviceType::cuda ? device_info(device).l2_bytes : machine().last_level_cache_bytes;
  const std::int64_t cache = known > 0 ? known : std::int64_t{64} << 20;
  const std::int64_t bytes = std::max<std::int64_t>(1, workload.bytes());
  const std::int64_t touched = std::max<std::int64_t>(1, workload.touched_bytes());
  if (touched >= 2 * cache) return 1;
  const std::int64_t sets = cache / touched + 2;
  if (sets * bytes > cap || sets > 100000)
    fail(ErrorCode::out_of_memory, "cold inputs",
         fmt::format("a last-level cache of {} MiB and a cap of {} MiB", cache >> 20, cap >> 20),
         fmt::format("{} copies of the tensors, {} MiB", sets, (sets * bytes) >> 20));
  return static_cast<int>(sets);
}

class Runner {
 public:
  Runner(Device device, const RunOptions& options, const Observer& observer)
      : device_(device),
        options_(options),
        timer_(device.type == DeviceType::cuda ? make_cuda_timer(device) : make_cpu_timer()),
        log_(observer),
        factory_(device, options, observer, *timer_, log_) {}

  Report all(const std::vector<Settings>& problems) {
    check_options();
    // A mistake in the last problem is reported before the first one is timed.
    for (const Settings& problem : problems)
      wanted_variants(problem, make_workload(problem, device_)->variants(), options_.all_variants);
    std::vector<std::string> temperatures;
    if (!options_.time) temperatures = {""};
    if (options_.time && options_.hot() && !(options_.single_run && options_.cold())) temperatures.emplace_back("hot");
    if (options_.time && options_.cold()) temperatures.emplace_back("cold");
    log_.expect(problems.size() * temperatures.size() * (options_.counters ? 2 : 1));
    if (const std::string why = timer_->clocks_problem(); options_.time && !why.empty())
      log_.note("what holds SM clocks down is not recorded: " + why);
    if (const auto state = options_.counters ? counters_state() : CountersState{}; !state.problem.empty())
      log_.note("there will be no counters: " + state.problem);
    each(timing_groups(problems, device_, options_), temperatures,
         [this](Group group, const std::string& t) { work(group, t); });
    // After all timing, since launches stay slower once CUPTI has been at work.
    if (options_.counters) {
      log_.tell_refusals(false);
      each(timing_groups(problems, device_, options_), temperatures, [this](Group group, const std::string& t) {
        for (const Settings& problem : group) count(problem, t);
      });
    }
    return log_.take();
  }

 private:
  void each(const std::vector<Group>& groups, const std::vector<std::string>& temperatures,
            const std::function<void(Group, const std::string&)>& work) {
    for (const Group& group : groups) {
      references_.clear();
      for (const std::string& temperature : temperatures) {
        if (log_.interrupted()) return;
        try {
          work(group, temperature);
        } catch (const Error& error) {
          if (error.code() != ErrorCode::interrupted) throw;  // while a peer was asked
        }
        log_.finished(group.size());
      }
    }
  }

  void check_options() const {
    if (options_.counters && device_.type == DeviceType::cpu)
      fail(ErrorCode::usage, "--counters (or counters: true)", "a run on the CPU",
           "a GPU, whose hardware counters are read: --device cuda");
    for (const std::string& peer : options_.peers) Peers::in_process(peer);  // throws for an unknown one
  }

  /// Does work on a problem. False, and the problem is refused, where the memory does not suffice.
  template <class Work>
  bool fits(const Settings& problem, const CaseInfo& info, const Work& work) {
    std::string reason;
    try {
      work();
      return true;
    } catch (const Error& error) {
      if (error.exit_code() != kNoMemory) throw;
      reason = reason_of(error);
    } catch (const std::bad_alloc&) {
      reason = "the system has no more";
    }
    log_.refuse({info, "tmaops",
                 "not enough memory: " + reason + " (" + problem.place().text() + ": " + problem.to_text() + ")", true,
                 kNoMemory});
    return false;
  }

  /// Null, and refused, when there is not enough memory.
  std::unique_ptr<Workload> prepared(const Settings& problem, const std::string& temperature, bool checked) {
    std::unique_ptr<Workload> workload = make_workload(problem, device_);
    log_.progress(*workload, checked ? "data and reference" : "data", 0);
    const bool done = fits(problem, workload->info(), [&] {
      const bool cold = temperature == "cold";
      workload->prepare(options_.seed, cold ? cold_sets(*workload, options_.cold_bytes) : 1);
      if (checked) set_reference(problem, *workload);
      if (cold) workload->add_sets(cold_sets(*workload, options_.cold_bytes));  // now the data says what is touched
    });
    return done ? std::move(workload) : nullptr;
  }

  /// The same for hot and cold inputs and for further runs, so that what the first made serves the others.
  void set_reference(const Settings& problem, Workload& workload) {
    Reference& made = (options_.references ? *options_.references : references_)[problem.section() + problem.to_text()];
    if (!made) made = workload.make_reference(options_.seed, options_.check_time);
    workload.set_reference(made);
  }

  void check(const Settings& problem, TimedProblem& one, const std::string& temperature) {
    for (auto& implementation : factory_.of(problem, *one.workload, false)) {
      if (log_.interrupted()) return;
      log_.progress(*one.workload, "checking " + implementation->name(), 0.1);
      add_verified(*one.workload, std::move(implementation), one.timed, temperature);
    }
  }

  void work(Group group, const std::string& temperature) {
    std::vector<TimedProblem> running;
    factory_.forget();
    for (const Settings& problem : group) {
      TimedProblem one{prepared(problem, temperature, true)};
      if (one.workload && fits(problem, one.workload->info(), [&] { check(problem, one, temperature); }))
        running.push_back(std::move(one));
      if (log_.interrupted()) return;
    }
    if (options_.time && !options_.single_run) sample_in_turn(running, options_, *timer_, log_);
    for (TimedProblem& one : running) {
      if (options_.single_run) {
        for (const Timed& timed : one.timed) launch_once(*one.workload, *timed.implementation);
      } else if (options_.time) {
        for (std::size_t i = 0; i < one.timed.size() && !log_.interrupted(); ++i) {
          const Implementation& done = *one.timed[i].implementation;
          if (done.kind() == Kind::variant && !done.name().ends_with(kDependentSuffix))
            one.timed[i].cycles = count_block_cycles(*one.workload, *timer_, done.selected(), static_cast<int>(i));
        }
      }
      for (Timed& timed : one.timed) add_row(*one.workload, timed, temperature);
    }
  }

  /// Adds the counters to the rows of a case that was timed.
  void count(const Settings& problem, const std::string& temperature) {
    if (counters_failed_) return;
    const std::unique_ptr<Workload> workload = prepared(problem, temperature, false);  // was checked
    if (!workload) return;
    try {
      if (!counters_) counters_ = make_cuda_counters(device_);
      std::vector<std::pair<Row*, const Implementation*>> counted;
      const auto implementations = factory_.of(problem, *workload, true);
      for (const auto& implementation : implementations) {
        if (log_.interrupted()) return;
        Row* row = log_.find(row_of(*workload, *implementation, temperature, {}));
        if (row == nullptr || implementation->calls().empty()) continue;
        log_.progress(*workload, "counters of " + implementation->name(), 0.3);
        const KernelsOneByOne kernels;
        row->counters = counters_->read(implementation->calls());
        counted.emplace_back(row, implementation.get());
      }
      for (const auto& [row, implementation] : counted) {  // a loop of its own: changing the kind of range is slow
        if (log_.interrupted()) return;
        log_.progress(*workload, "counters of " + row->implementation + ", back to back", 0.6);
        const double seconds = 1e-9 * row->counters->values.front();
        row->counters->back_to_back = counters_->read_back_to_back(implementation->calls(), seconds);
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::variant_refuses) throw;
      counters_failed_ = true;
      log_.tell_refusals(true);
      log_.refuse({workload->info(), "counters", reason_of(error), true, 4});
    }
  }

  void launch_once(const Workload& workload, const Implementation& implementation) {
    const auto& calls = implementation.calls();
    const std::size_t set = calls.size() / 2;  // cold: not one of those that were checked
    if (calls.empty())
      return log_.refuse({workload.info(), implementation.name(), "it runs in another process", true, 2});
    const KernelsOneByOne kernels;
    timer_->run_profiled(calls[set]);
    log_.note(fmt::format("launched once: {} {} {} {}, inputs {} of {}", workload.info().op, workload.info().name,
                          workload.info().dtype, implementation.name(), set + 1, calls.size()));
  }

  void add_verified(Workload& workload, std::unique_ptr<Implementation> implementation, std::vector<Timed>& timed,
                    const std::string& temperature) {
    Comparison error;
    try {
      error = implementation->verify(workload, 0, options_.tolerance);
      if (error.ok && workload.sets() > 1)
        error = implementation->verify(workload, workload.sets() - 1, options_.tolerance);
    } catch (const Error& refusal) {
      if (refusal.code() == ErrorCode::kernel_breaks_rule)
        return add_failed(workload, *implementation, {.ok = false, .compared = 0, .problem = refusal.details().got},
                          temperature);
      // Of a peer that cannot go on, for example for want of memory
      if (implementation->kind() == Kind::variant || refusal.code() != ErrorCode::variant_refuses) throw;
      return log_.refuse(
          {workload.info(), implementation->name(), reason_of(refusal), factory_.asked_for(implementation->name()), 2});
    }
    if (error.ok) {
      timed.push_back({std::move(implementation), error});
      return;
    }
    add_failed(workload, *implementation, error, temperature);
  }

  void add_failed(const Workload& workload, const Implementation& implementation, const Comparison& error,
                  const std::string& temperature) {
    if (implementation.kind() != Kind::variant)
      return log_.refuse({workload.info(), implementation.name(), "its result differs: " + error.problem,
                          factory_.asked_for(implementation.name()), 1});
    log_.add(row_of(workload, implementation, temperature, error));
  }

  void add_row(const Workload& workload, const Timed& one, const std::string& temperature) {
    if (one.lost) return;
    if (!one.cycles.checked.ok) return add_failed(workload, *one.implementation, one.cycles.checked, temperature);
    Row row = row_of(workload, *one.implementation, temperature, one.error);
    row.verified = true;
    if (options_.time && !options_.single_run) {
      if (static_cast<std::int64_t>(one.samples.size()) < std::min(kFewestSamples, options_.samples))
        return;  // interrupted
      row.us = summarize(one.samples);
      row.clocks = summarize(one.clocks);
      if (row.loads) row.loads->cycles = one.cycles.cycles;
      row.host = undisturbed(one.host);
    }
    log_.add(std::move(row));
  }

  Device device_;
  const RunOptions& options_;
  std::unique_ptr<Timer> timer_;
  Recorder log_;
  ImplementationFactory factory_;
  References references_;  // of a group
  std::unique_ptr<CounterReader> counters_;
  bool counters_failed_ = false;
};

}  // namespace

std::vector<Group> timing_groups(const std::vector<Settings>& problems, Device device, const RunOptions& options) {
  const bool compiles = std::ranges::find(options.peers, "torch_compile") != options.peers.end();
  const bool together = device.type == DeviceType::cpu && !compiles;
  std::vector<Group> groups;
  CaseInfo last;
  for (const Settings& problem : problems) {
    CaseInfo info = make_workload(problem, device)->info();
    if (together && !groups.empty() && info.op == last.op && info.name == last.name)
      groups.back() = {groups.back().data(), groups.back().size() + 1};
    else
      groups.emplace_back(&problem, 1);
    last = std::move(info);
  }
  return groups;
}
Report run(const std::vector<Settings>& problems, Device device, const RunOptions& options, const Observer& observer) {
  return Runner(device, options, observer).all(problems);
}

}  // namespace tmaops::bench
