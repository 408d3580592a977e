#include "bench/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "bench/block_cycles.hpp"
#include "bench/cold_inputs.hpp"
#include "bench/device.hpp"
#include "bench/groups.hpp"
#include "bench/peers/peers.hpp"
#include "bench/running.hpp"
#include "bench/wanted_variants.hpp"
#include "core/repeated_launches.hpp"
#include "core/spelling.hpp"

namespace tmaops::bench {
namespace {

/// Calls longer than this need no untimed call before them: what it would warm up is a small part of them.
constexpr double kWarmCall = 0.05;
constexpr std::int64_t kMostCalls = 100000;

class Run {
 public:
  Run(const RunOptions& options, const Observer& observer)
      : options_(options),
        observer_(observer),
        timer_(options.device.type == DeviceType::cuda ? make_cuda_timer(options.device) : make_cpu_timer()),
        peers_(options, observer, *timer_) {}

  Report all(const std::vector<Settings>& problems) {
    check_options();
    // A mistake in the last problem is reported before the first one is timed.
    for (const Settings& problem : problems)
      wanted_variants(problem, make_workload(problem, options_.device)->variants(), options_.all_variants);
    std::vector<std::string> temperatures;
    if (!options_.time) temperatures = {""};
    if (options_.time && options_.hot && !(options_.single_run && options_.cold)) temperatures.emplace_back("hot");
    if (options_.time && options_.cold) temperatures.emplace_back("cold");
    total_ = problems.size() * temperatures.size() * (options_.counters ? 2 : 1);
    if (const std::string why = timer_->clocks_problem(); options_.time && !why.empty())
      note("what holds SM clocks down is not recorded: " + why);
    if (const auto state = options_.counters ? counters_state() : CountersState{}; !state.problem.empty())
      note("there will be no counters: " + state.problem);
    each(groups_of(problems, options_), temperatures, [this](Group group, const std::string& t) { work(group, t); });
    // When all is timed, since launches stay a hundredth slower once CUPTI has been at work.
    if (options_.counters) {
      refusing_ = false;
      each(groups_of(problems, options_), temperatures, [this](Group group, const std::string& t) {
        for (const Settings& problem : group) count(problem, t);
      });
    }
    if (interrupted()) report_.status = Status::partial;
    return std::move(report_);
  }

 private:
  void each(const std::vector<Group>& groups, const std::vector<std::string>& temperatures,
            const std::function<void(Group, const std::string&)>& work) {
    for (const Group& group : groups) {
      for (const std::string& temperature : temperatures) {
        if (interrupted()) return;
        try {
          work(group, temperature);
        } catch (const Error& error) {
          if (error.code() != ErrorCode::interrupted) throw;  // while a peer was asked
        }
        done_ += group.size();
      }
    }
  }

  void check_options() const {
    if (options_.counters && options_.device.type == DeviceType::cpu)
      throw Error(ErrorCode::usage, {.where = "--counters (or counters: true)",
                                     .got = "a run on the CPU",
                                     .needed = "a GPU, whose hardware counters are read: --device cuda"});
    const auto known = peer_names();
    for (const std::string& peer : options_.peers) {
      if (std::ranges::find(known, peer) != known.end()) continue;
      const std::string_view near = nearest_name(peer, known);
      throw Error(ErrorCode::bad_value, {.where = "peers",
                                         .got = "'" + peer + "'",
                                         .needed = "one of " + joined(known),
                                         .mend = near.empty() ? "" : "Did you mean '" + std::string(near) + "'?"});
    }
  }

  bool interrupted() const { return observer_.interrupted && observer_.interrupted(); }
  void progress(const Workload& workload, const std::string& what, double part) const {
    if (observer_.progress)
      observer_.progress(done_ * 100 + static_cast<std::size_t>(part * 100), total_ * 100,
                         workload.info().op + " " + workload.info().name + ": " + what);
  }
  void note(const std::string& text) const {
    if (observer_.note) observer_.note(text);
  }
  void refuse(Refusal refusal) {
    if (!refusing_) return;  // was told the first time round
    if (observer_.refused) observer_.refused(refusal);
    report_.refused.push_back(std::move(refusal));
  }

  /// Null, and refused, when there is not enough memory.
  std::unique_ptr<Workload> prepared(const Settings& problem, const std::string& temperature, bool checked) {
    std::unique_ptr<Workload> workload = make_workload(problem, options_.device);
    progress(*workload, checked ? "data and reference" : "data", 0);
    try {
      const bool cold = temperature == "cold";
      const int sets = cold ? cold_sets(*workload, options_.cold_bytes) : 1;
      if (checked)
        workload->prepare(options_.seed, sets);
      else
        workload->prepare_unchecked(options_.seed, sets);
      if (cold) workload->add_sets(cold_sets(*workload, options_.cold_bytes));  // now the data says what is touched
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
      refuse({workload->info(), "tmaops", "not enough memory: " + reason_of(error), true, error.exit_code()});
      return nullptr;
    }
    return workload;
  }

  void work(Group group, const std::string& temperature) {
    std::vector<Running> running;
    peers_.forget();
    for (const Settings& problem : group) {
      std::unique_ptr<Workload> workload = prepared(problem, temperature, true);
      if (!workload) continue;
      Running& one = running.emplace_back(std::move(workload));
      for (auto& implementation : implementations(problem, *one.workload)) {
        if (interrupted()) return;
        progress(*one.workload, "checking " + implementation->name(), 0.1);
        add_verified(*one.workload, std::move(implementation), one.timed, temperature);
      }
    }
    if (options_.time && !options_.single_run) time(running);
    for (Running& one : running) {
      if (options_.single_run) {
        for (const Timed& timed : one.timed) launch_once(*one.workload, *timed.implementation);
      } else if (options_.time) {
        for (std::size_t i = 0; i < one.timed.size() && !interrupted(); ++i) {
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
      if (!counters_) counters_ = make_cuda_counters(options_.device);
      for (const auto& implementation : implementations(problem, *workload)) {
        if (interrupted()) return;
        progress(*workload, "counters of " + implementation->name(), 0.5);
        Row like{.info = workload->info(), .implementation = implementation->name(), .temperature = temperature};
        const auto row = std::ranges::find_if(report_.rows, [&](const Row& done) {
          return done.implementation == like.implementation && same_case(done, like);
        });
        const KernelsOneByOne kernels;
        if (row != report_.rows.end() && !implementation->calls().empty())
          row->counters = counters_->read(implementation->calls());
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::variant_refuses) throw;
      counters_failed_ = refusing_ = true;
      refuse({workload->info(), "counters", reason_of(error), true, 4});
    }
  }

  void launch_once(const Workload& workload, const Implementation& implementation) {
    const auto& calls = implementation.calls();
    const std::size_t set = calls.size() / 2;  // cold: not one of those that were checked
    if (calls.empty()) return refuse({workload.info(), implementation.name(), "it runs in another process", true, 2});
    const KernelsOneByOne kernels;
    timer_->run_profiled(calls[set]);
    note(fmt::format("launched once: {} {} {} {}, inputs {} of {}", workload.info().op, workload.info().name,
                     workload.info().dtype, implementation.name(), set + 1, calls.size()));
  }

  /// Of a single run only the one that is wanted.
  void keep_wanted(const Workload& workload, std::vector<std::unique_ptr<Implementation>>& found) {
    const auto wanted = options_.implementation.empty()
                            ? found.begin()
                            : std::ranges::find(found, options_.implementation, &Implementation::name);
    std::unique_ptr<Implementation> kept;
    std::string names;
    for (const auto& one : found) names += (names.empty() ? "" : ", ") + one->name();
    if (wanted != found.end()) kept = std::move(*wanted);
    found.clear();
    if (kept)
      found.push_back(std::move(kept));
    else if (!options_.implementation.empty())
      refuse({workload.info(), options_.implementation, "no row of this problem; there are: " + names, true, 2});
  }

  std::vector<std::unique_ptr<Implementation>> implementations(const Settings& problem, const Workload& workload) {
    std::vector<std::unique_ptr<Implementation>> found;
    if (options_.tune) {
      for (const std::string& name : workload.candidates()) add_variant(workload, name, name, found);
      if (found.empty()) refuse({workload.info(), "tmaops", "nothing to choose from: only gemm has tiles", true, 2});
      return found;
    }
    const auto variants = workload.variants();
    const WantedVariants wanted = wanted_variants(problem, variants, options_.all_variants);
    std::string chosen;
    if (wanted.chosen) {
      try {
        chosen = workload.selected();
        add_variant(workload, "tmaops", chosen, found);
      } catch (const Error& error) {
        refuse({workload.info(), "tmaops", reason_of(error), true, error.exit_code()});
      }
    }
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const VariantChoice& variant = variants[i];
      const std::string name(variant.info.name);
      const bool named = std::ranges::find(wanted.named, i) != wanted.named.end();
      if (!named && !(wanted.all && name != chosen)) continue;
      if (variant.support) {
        add_variant(workload, name, name, found);
      } else {
        const bool no_device = variant.info.device == DeviceType::cuda && options_.device.type == DeviceType::cpu;
        refuse({workload.info(), name, variant.support.reason, named, no_device ? 4 : 2});
      }
    }
    if (options_.time) add_peers(workload, found);
    if (options_.single_run) keep_wanted(workload, found);
    return found;
  }

  void add_variant(const Workload& workload, const std::string& name, const std::string& variant,
                   std::vector<std::unique_ptr<Implementation>>& to) const {
    std::vector<Call> calls;
    for (int set = 0; set < workload.sets(); ++set) calls.push_back(workload.bind(variant, set));
    to.push_back(make_local(name, Kind::variant, variant, std::move(calls), *timer_));
    if (options_.device.type == DeviceType::cpu || options_.tune) return;
    // Dependent launch changes small cases by a third: a row of its own.
    std::vector<Call> dependent;
    for (int set = 0; set < workload.sets(); ++set)
      if (Call call = workload.bind_dependent(variant, set)) dependent.push_back(std::move(call));
    if (!dependent.empty())
      to.push_back(
          make_local(name + std::string(kDependentSuffix), Kind::variant, variant, std::move(dependent), *timer_));
  }

  void add_peers(const Workload& workload, std::vector<std::unique_ptr<Implementation>>& to) {
    peers_.next_workload();
    for (const std::string& peer : options_.peers) {
      if (!Peers::applies(peer, workload.info()) || (!refusing_ && !Peers::in_process(peer))) continue;
      try {
        if (auto made = peers_.make(peer, workload)) to.push_back(std::move(made));
      } catch (const Error& error) {
        if (error.code() != ErrorCode::variant_refuses) throw;
        refuse({workload.info(), peer, reason_of(error), false, 2});
      }
    }
  }

  void add_verified(Workload& workload, std::unique_ptr<Implementation> implementation, std::vector<Timed>& timed,
                    const std::string& temperature) {
    Comparison error;
    try {
      error = implementation->verify(workload, 0, options_.tolerance);
      if (error.ok && workload.sets() > 1)
        error = implementation->verify(workload, workload.sets() - 1, options_.tolerance);
    } catch (const Error& refusal) {  // of a peer that cannot go on, for example for want of memory
      if (implementation->kind() == Kind::variant || refusal.code() != ErrorCode::variant_refuses) throw;
      return refuse({workload.info(), implementation->name(), reason_of(refusal), false, 2});
    }
    if (error.ok) {
      timed.push_back({std::move(implementation), error});
      return;
    }
    add_failed(workload, *implementation, error, temperature);
  }

  void add_failed(const Workload& workload, const Implementation& implementation, const Comparison& error,
                  const std::string& temperature) {
    Row row{.info = workload.info(),
            .implementation = implementation.name(),
            .kind = implementation.kind(),
            .selected = implementation.selected(),
            .temperature = temperature,
            .error = error};
    if (row.kind != Kind::variant)
      return refuse({workload.info(), implementation.name(), "its result differs: " + error.problem, false, 2});
    if (observer_.row) observer_.row(row);
    report_.failed.push_back(std::move(row));
  }

  /// One sample: seconds of `calls` calls, after the process has come to rest.
  double sample(Timed& one) {
    wait_until_quiet();
    if (one.estimate < kWarmCall && options_.hot) one.implementation->seconds(one.next, 1);
    timer_->take_clocks();
    const double seconds = one.implementation->seconds(one.next, one.calls);
    if (const auto reading = timer_->take_clocks()) one.clocks.push_back(*reading);
    one.next += one.calls;
    one.spent += seconds;
    return seconds;
  }

  /// A peer whose process ends meanwhile is left out; the others go on.
  bool try_sample(const Workload& workload, Timed& one, double& seconds) {
    if (one.lost) return false;
    try {
      seconds = sample(one);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::variant_refuses) throw;
      one.lost = true;
      refuse({workload.info(), one.implementation->name(), reason_of(error), false, 2});
    }
    return !one.lost;
  }

  void time(std::vector<Running>& running) {
    std::vector<std::pair<const Workload*, Timed*>> order;
    for (Running& problem : running)
      for (Timed& one : problem.timed) order.emplace_back(problem.workload.get(), &one);
    for (const auto& [workload, one] : order) {
      if (!try_sample(*workload, *one, one->estimate)) continue;
      one->calls = std::clamp<std::int64_t>(std::llround(std::ceil(options_.min_time / std::max(one->estimate, 1e-8))),
                                            1, kMostCalls);
    }
    // Another order each round: what ran before decides how warm the chip is, and its clock.
    std::mt19937_64 generator(options_.seed);
    for (std::int64_t round = 0; round < options_.samples; ++round) {
      if (!order.empty())
        progress(*order.front().first, "timing",
                 0.3 + 0.7 * static_cast<double>(round) / static_cast<double>(options_.samples));
      std::ranges::shuffle(order, generator);
      for (const auto& [workload, one] : order) {
        if (interrupted()) return;
        if (one->lost || (round >= kFewestSamples && one->spent > options_.max_time)) continue;
        double seconds = 0;
        if (!try_sample(*workload, *one, seconds)) continue;
        const double each = seconds / static_cast<double>(one->calls);
        one->samples.push_back(each * 1e6);
        if (const auto cost = one->implementation->host_cost(each)) one->host.push_back(*cost);
      }
    }
  }

  void add_row(const Workload& workload, const Timed& one, const std::string& temperature) {
    if (one.lost) return;
    if (!one.cycles.checked.ok) return add_failed(workload, *one.implementation, one.cycles.checked, temperature);
    Row row{.info = workload.info(),
            .implementation = one.implementation->name(),
            .kind = one.implementation->kind(),
            .selected = one.implementation->selected(),
            .temperature = temperature,
            .error = one.error,
            .verified = true};
    if (options_.time && !options_.single_run) {
      if (static_cast<std::int64_t>(one.samples.size()) < std::min(kFewestSamples, options_.samples))
        return;  // interrupted
      row.us = summarize(one.samples);
      row.clocks = summarize(one.clocks);
      row.block_cycles = one.cycles.cycles;
      row.host = undisturbed(one.host);
    }
    if (observer_.row) observer_.row(row);
    report_.rows.push_back(std::move(row));
  }

  const RunOptions& options_;
  const Observer& observer_;
  std::unique_ptr<Timer> timer_;
  Peers peers_;
  std::unique_ptr<CounterReader> counters_;
  bool counters_failed_ = false;
  bool refusing_ = true;
  Report report_;
  std::size_t done_ = 0;
  std::size_t total_ = 0;
};

}  // namespace

Report run(const std::vector<Settings>& problems, const RunOptions& options, const Observer& observer) {
  return Run(options, observer).all(problems);
}

}  // namespace tmaops::bench
