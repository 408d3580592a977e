// What is never chosen is a study: every other variant runs for some problem where nobody names one.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "bench/run/options.hpp"
#include "bench/workloads/workload.hpp"
#include "config/config.hpp"
#include "support/gpus.hpp"
#include "tmaops/registry.hpp"

namespace tmaops::bench {
namespace {

/// A problem of which no configuration has a case, and the variant that is there for it.
struct Reason {
  std::string problem;
  std::string why;
};
const std::vector<Reason> kReasons{
    {"ms_deform_attn: {levels: 100x167, queries: 300, channels: 30, direction: backward}",
     "warp_atomics_backward: rows of channels that are no multiple of 16 bytes"},
    {"gemm: {mode: RC, size: 255, dtype: f16}", "wgmma_cp_async: rows that TMA cannot take"},
    {"resample: {case: '32,100->256,32', dtype: bf16, max_gap: 1}", "bulk_window: calls that are not plain"},
    {"resample: {case: '256,500->250,128', dtype: bf16, outside: nan}", "touched_rows: calls that are not plain"},
    {"resample: {case: '64,1000->500,72', dtype: bf16}",
     "bulk_window_block: short calls with rows of no power of two of chunks"},
    {"resample: {case: '4096,100->50,7', dtype: bf16, outside: extrapolate}", "narrow_rows: calls that are not plain"},
    {"resample: {case: '32,100->256,32', dtype: bf16, interpolation: cubic}", "curve_window: short calls of curves"},
    {"resample: {case: '4,100->50,101', dtype: bf16}", "warp_search: wide rows of no whole chunks"},
};

std::vector<Settings> problems() {
  std::vector<Settings> all;
  for (const auto& file : std::filesystem::directory_iterator(TMAOPS_SOURCE_DIR "/configs"))
    for (Settings& problem :
         io::read_configuration(file.path(), {option_keys(), option_list_keys(), workload_operators()}).problems)
      all.push_back(problem);
  for (const Reason& reason : kReasons)
    for (Settings& problem : io::parse_problems(reason.problem, reason.why, workload_operators()))
      all.push_back(problem);
  return all;
}

/// Variants of an operator that nothing chooses. Not asked of studies, of the reference, and of the last variant before
/// it of each kind of device, which takes what is left.
std::vector<std::string> never_chosen(const std::vector<VariantInfo>& variants, const std::set<std::string>& chosen) {
  std::vector<std::string> names;
  std::set<DeviceType> asked;
  for (auto variant = variants.rbegin(); variant != variants.rend(); ++variant) {
    if (variant->study || variant->name.starts_with("reference")) continue;
    const bool last = asked.insert(variant->device).second;
    if (variant->name == "few_rows") continue;  // of builds without oneDNN
    if (!last && variant->built && !chosen.contains(std::string(variant->name))) names.emplace_back(variant->name);
  }
  return names;
}

TEST(ChosenVariants, what_nothing_chooses_is_found) {
  const VariantInfo best{.op = "toy", .name = "best", .device = DeviceType::cpu, .arch = "any", .description = ""};
  VariantInfo second = best, study = best, last = best, reference = best;
  second.name = "second";
  study.name = "compared";
  study.study = true;
  last.name = "any_problem";
  reference.name = "reference_toy";
  const std::vector<VariantInfo> all{best, second, study, last, reference};
  EXPECT_EQ(never_chosen(all, {"best"}), std::vector<std::string>{"second"});
  EXPECT_TRUE(never_chosen(all, {"best", "second"}).empty());
}

TEST(ChosenVariants, what_is_never_chosen_is_a_study) {
  std::set<std::pair<std::string, std::string>> chosen;
  const auto choose = [&](Device device) {
    for (const Settings& problem : problems()) try {
        const auto workload = make_workload(problem, device);
        const std::string choice = workload->selected();
        chosen.emplace(workload->info().op, choice.substr(0, choice.find('/')));
      } catch (const Error&) {  // of another device, or a study as a whole
      }
  };
  choose({DeviceType::cpu, 0});
  for (const int capability : {90, 100, 120}) {
    const PretendedDevice pretended(test::made_up_gpu(capability));
    choose({DeviceType::cuda, 0});
  }
  for (const std::string_view op : operators()) {
    std::set<std::string> names;
    for (const auto& [of, name] : chosen)
      if (of == op) names.insert(name);
    if (names.empty()) continue;  // no problem of a configuration can name it
    for (const std::string& name : never_chosen(variants(op), names))
      ADD_FAILURE() << op << ": nothing chooses " << name
                    << ". Move it to study/, retire it, or add a case to configs/ or a reason here";
  }
}

}  // namespace
}  // namespace tmaops::bench
