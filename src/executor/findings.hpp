// What the executor finds in kernels, in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tmaops::executor {

enum class Rule : std::uint8_t {
#define TMAOPS_RULE(id, text) id,
#include "executor/rules.def"
#undef TMAOPS_RULE
};
/// "race".
std::string_view to_string(Rule rule);

/// Which thread or copy goes on where several can.
enum class Schedule : std::uint8_t {
  random,   // any
  eager,    // copies complete as soon as they are issued, threads go on in turn
  lazy,     // copies go on only when no thread can
  starving  // one warp goes on only when no other can
};
inline constexpr Schedule kSchedules[] = {Schedule::random, Schedule::eager, Schedule::lazy, Schedule::starving};
std::string_view to_string(Schedule schedule);

/// How kernels are run from here on. Every decision follows from the seed.
struct Options {
  std::uint64_t seed = 1;
  Schedule schedule = Schedule::random;
  /// Also what the hardware forgives and PTX does not promise: docs/executor.md has the list.
  bool strict = false;
  /// Also accesses of several blocks, or of threads of one, to the same global memory. Slow.
  bool global_races = false;
  /// The one launch since set_options() that runs by the schedule; the others run eagerly. 0: all of them.
  std::uint64_t only_launch = 0;
};
void set_options(const Options& options);
/// Kernels that ran since set_options().
std::uint64_t launches_so_far();

/// A rule that a kernel breaks.
struct Finding {
  Rule rule{};
  std::string kernel;  // "gemm: wgmma_tma"
  std::string thread;  // "thread 33 of block (0, 0, 0)"; empty where it is about several
  std::string text;
  std::string line;          // of the kernel: "kernel.cu:131", then who called it
  std::uint64_t count;       // how often it was met
  Options options;           // of the run that met it first
  std::uint64_t launch = 0;  // its number in that run, from 1
};
/// Several lines for people.
std::string to_text(const Finding& finding);
/// What `tmaops verify --replay` takes.
std::string replay_of(const Finding& finding);

/// Those of all launches since the last call, each rule once per kernel and line.
std::vector<Finding> take_findings();

/// A line of the source for an address in a kernel: "kernel.cu:131 < ring.cuh:40" (inlined into the former from the
/// latter). Frames of the device layer are left out.
std::string source_line(const void* address);

}  // namespace tmaops::executor
