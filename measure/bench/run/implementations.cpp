#include "bench/run/implementations.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/spelling.hpp"
#include "tmaops/error.hpp"

namespace tmaops::bench {

std::vector<std::unique_ptr<Implementation>> ImplementationFactory::of(const Settings& problem,
                                                                       const Workload& workload, bool in_process) {
  Found found;
  if (options_.tune) {
    add_tunings(workload, found);
    for (const std::string& peer : options_.peers) add_peer(peer, workload, in_process, found);
    return found;
  }
  const WantedVariants wanted = wanted_variants(problem, workload.variants(), options_.all_variants);
  add_variants(wanted, workload, found);
  peers_.next_workload();
  asked_ = wanted.peers;
  if (options_.time)
    for (const std::string& peer : options_.peers)
      if (std::ranges::find(asked_, peer) == asked_.end()) add_peer(peer, workload, in_process, found);
  for (const std::string& peer : asked_) add_peer(peer, workload, in_process, found);
  if (options_.single_run) keep_wanted(workload, found);
  return found;
}

void ImplementationFactory::add_tunings(const Workload& workload, Found& to) {
  for (const std::string& name : workload.candidates()) add_variant(workload, name, name, to);
  if (to.empty()) log_.refuse({workload.info(), "tmaops", "nothing to choose from: only gemm has tiles", true, 2});
}

void ImplementationFactory::add_variants(const WantedVariants& wanted, const Workload& workload, Found& to) {
  const auto variants = workload.variants();
  std::string chosen;
  if (wanted.chosen) {
    try {
      chosen = workload.selected();
      add_variant(workload, "tmaops", chosen, to);
    } catch (const Error& error) {
      log_.refuse({workload.info(), "tmaops", reason_of(error), true, error.exit_code()});
    }
  }
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const VariantChoice& variant = variants[i];
    std::set<std::string> names;
    for (const NamedVariant& one : wanted.named)
      if (one.index == i) names.insert(one.name);
    const bool named = !names.empty();
    if (!named && wanted.all && variant.info.name != chosen) names.emplace(variant.info.name);
    for (const std::string& name : names) {
      std::string reason = variant.support.reason;
      if (variant.support) try {
          add_variant(workload, name, name, to);
          continue;
        } catch (const Error& error) {  // it has no such configuration
          if (error.code() != ErrorCode::variant_refuses) throw;
          reason = reason_of(error);
        }
      const bool no_device = variant.info.device == DeviceType::cuda && device_.type == DeviceType::cpu;
      log_.refuse({workload.info(), name, reason, named, no_device ? 4 : 2});
    }
  }
}

void ImplementationFactory::add_variant(const Workload& workload, const std::string& name, const std::string& variant,
                                        Found& to) const {
  const auto add = [&](const std::string& row, Launch launch) {
    std::vector<Call> calls;
    std::vector<Call> fresh;
    for (int set = 0; set < workload.sets(); ++set) {
      calls.push_back(workload.bind(variant, set, launch));
      if (Call call = workload.fresh(variant, set, launch)) fresh.push_back(std::move(call));
    }
    to.push_back(std::make_unique<InProcess>(row, Kind::variant, variant, timer_, std::move(calls), std::move(fresh)));
  };
  add(name, Launch::plain);
  // Dependent launch changes small cases a lot, so it has a row of its own.
  if (device_.type == DeviceType::cuda && options_.dependent_launch && !options_.tune)
    add(name + std::string(kDependentSuffix), Launch::dependent);
}

bool ImplementationFactory::asked_for(const std::string& peer) const {
  return options_.peers_by_name || std::ranges::find(asked_, peer) != asked_.end();
}

void ImplementationFactory::add_peer(const std::string& peer, const Workload& workload, bool in_process, Found& to) {
  if (in_process && !Peers::in_process(peer)) return;
  try {
    if (Peers::applies(peer, workload.info()))
      to.push_back(peers_.make(peer, workload));
    else if (std::ranges::find(asked_, peer) != asked_.end())
      log_.refuse({workload.info(), peer, "runs on a GPU, the tensors are on the CPU", true, 4});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::variant_refuses && error.exit_code() != 5) throw;
    log_.refuse({workload.info(), peer, reason_of(error), asked_for(peer), error.exit_code()});
  }
}

/// Of a single run only those that are wanted, in their order.
void ImplementationFactory::keep_wanted(const Workload& workload, Found& found) {
  if (options_.implementations.empty()) {
    if (found.size() > 1) found.erase(found.begin() + 1, found.end());
    return;
  }
  const std::string names = joined(found, ", ", [](const auto& one) { return one->name(); });
  Found kept;
  for (const std::string& name : options_.implementations) {
    const auto wanted = std::ranges::find_if(found, [&](const auto& one) { return one && one->name() == name; });
    if (wanted != found.end())
      kept.push_back(std::move(*wanted));
    else
      log_.refuse({workload.info(), name, "no row of this problem; there are: " + names, true, 2});
  }
  found = std::move(kept);
}

}  // namespace tmaops::bench
