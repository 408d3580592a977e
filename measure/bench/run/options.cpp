#include "bench/run/options.hpp"

#include <algorithm>

#include "bench/workloads/workload.hpp"
#include "core/spelling.hpp"

namespace tmaops::bench {
namespace {

constexpr std::string_view kOptionKeys[] = {"device",   "operators", "temperature", "samples",         "min_time",
                                            "max_time", "seed",      "threads",     "tolerance",       "check_time",
                                            "variants", "counters",  "peers",       "dependent_launch"};
constexpr std::string_view kListKeys[] = {"operators", "peers"};

void take_words(const Settings& given, std::string_view key, std::vector<std::string>& words) {
  if (!given.has(key)) return;
  words.clear();
  for (const Setting* one : given.find_all(key)) words.push_back(one->value);
}

}  // namespace

std::span<const std::string_view> option_keys() { return kOptionKeys; }
std::span<const std::string_view> option_list_keys() { return kListKeys; }

void apply(const Settings& given, RunOptions& options) {
  // Other names of a GPU, which as spellings are nearer to 'cpu'.
  if (const Setting* device = given.find("device"))
    for (const std::string_view other : {"gpu", "GPU", "cuda:", "nvidia"})
      if (device->value.starts_with(other))
        given.fail(ErrorCode::bad_value, *device, "one of auto, cpu, cuda, executor", "Did you mean 'cuda'?");
  const auto known = workload_operators();
  for (const Setting* one : given.find_all("operators"))
    if (std::ranges::find(known, one->value) == known.end())
      given.fail(ErrorCode::bad_value, *one, "one of " + joined(known), did_you_mean(one->value, known));
  options.device = given.word("device", options.device, {"auto", "cpu", "cuda", "executor"});
  take_words(given, "operators", options.operators);
  options.temperature = given.word("temperature", options.temperature, {"hot", "cold", "both"});
  options.samples = given.integer("samples", options.samples, kFewestSamples, 10000);
  options.min_time = given.number("min_time", options.min_time, 0, 10);
  options.max_time = given.number("max_time", options.max_time, 0, 3600);
  options.seed =
      static_cast<std::uint64_t>(given.integer("seed", static_cast<std::int64_t>(options.seed), 0, INT64_MAX));
  options.threads = given.integer("threads", options.threads, 0, 1024);
  options.tolerance = given.number("tolerance", options.tolerance, 0, 1);
  options.check_time = given.number("check_time", options.check_time, 0, 3600);
  options.all_variants = given.choice("variants", options.all_variants ? "all" : "auto", {"auto", "all"}) == 1;
  options.dependent_launch = given.boolean("dependent_launch", options.dependent_launch);
  options.counters = given.boolean("counters", options.counters);
  take_words(given, "peers", options.peers);
}

nlohmann::ordered_json to_json(const RunOptions& options) {
  return {{"device", options.device},
          {"temperature", options.temperature},
          {"samples", options.samples},
          {"min_time", options.min_time},
          {"max_time", options.max_time},
          {"seed", options.seed},
          {"threads", options.threads},
          {"tolerance", options.tolerance},
          {"check_time", options.check_time},
          {"variants", options.all_variants ? "all" : "auto"},
          {"counters", options.counters},
          {"dependent_launch", options.dependent_launch},
          {"peers", options.peers}};
}

}  // namespace tmaops::bench
