// What variants for any problem need. For offsets on the device, a kernel in front checks them and makes tables that
// the variant's kernel can trust. Nothing comes back to the host, so the call does not wait and can be captured.
#pragma once

#include "device/warp.cuh"
#include "ops/resample/shared/call.cuh"
#include "ops/resample/shared/device_offsets.hpp"

namespace tmaops::ops::resample::gpu {

/// What is left of trajectories whose offsets are wrong. In both cases none has samples.
enum class WrongOffsets : std::uint8_t {
  missing_targets,  // the last one has all targets, so that every output is written as missing
  nothing           // they have no targets either
};

struct OffsetJob {
  UncheckedOffsets source, target;
  std::int64_t* source_table;  // batch + 1 numbers
  std::int64_t* target_table;  // null: not wanted
  WrongOffsets wrong;
  Elements poisoned;            // set to NaN where offsets are wrong
  unsigned long long* counted;  // where the number of wrong offsets is added; may be null
};

inline constexpr int kOffsetThreads = 1024;

/// One block, so that all offsets are checked before the first is used.
static __global__ void __launch_bounds__(kOffsetThreads) make_offset_tables(const __grid_constant__ OffsetJob job) {
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  const std::int64_t batch = job.source.batch;
  int wrong = 0;
  for (std::int64_t i = threadIdx.x; i <= batch; i += kOffsetThreads)
    wrong += (job.source.is_wrong(i) ? 1 : 0) + (job.target.is_wrong(i) ? 1 : 0);
  const bool any = __syncthreads_or(wrong) != 0;
  for (std::int64_t i = threadIdx.x; i <= batch; i += kOffsetThreads) {
    job.source_table[i] = any ? 0 : job.source.offset(i);
    if (job.target_table == nullptr) continue;
    const bool all = job.wrong == WrongOffsets::missing_targets && i == batch;
    job.target_table[i] = any ? (all ? job.target.rows : 0) : job.target.offset(i);
  }
  if (!any) return;
  if (job.counted != nullptr && wrong > 0) atomicAdd(job.counted, static_cast<unsigned long long>(wrong));
  for (std::int64_t i = threadIdx.x; i < job.poisoned.count(); i += kOffsetThreads) {
    unsigned char* const to = job.poisoned.element(i);  // all bits set are NaN in every type
    if (job.poisoned.size == 2)
      *reinterpret_cast<std::uint16_t*>(to) = 0xffff;
    else if (job.poisoned.size == 4)
      *reinterpret_cast<std::uint32_t*>(to) = 0xffffffff;
    else
      *reinterpret_cast<std::uint64_t*>(to) = ~std::uint64_t{0};
  }
}

/// What a variant that takes offsets on the device says about the case that they are wrong.
struct OffsetRules {
  WrongOffsets wrong = WrongOffsets::missing_targets;
  Elements poisoned{};
  unsigned long long* counted = nullptr;
  bool dependent_launch = false;
};

/// device_call() for problems with any offsets.
inline Call any_offsets_call(Work& work, const Problem& problem, const Arguments& arguments, const OffsetRules& rules) {
  Call call = device_call(work, problem, arguments);
  if (!problem.offsets_on_device() || problem.batch == 0) return call;
  const bool targets = problem.packed_target || rules.wrong == WrongOffsets::nothing;
  const auto numbers = static_cast<std::size_t>(problem.batch) + 1;
  auto* const tables =
      reinterpret_cast<std::int64_t*>(work.allocate((targets ? 2 : 1) * numbers * sizeof(std::int64_t)));
  const OffsetJob job{.source = {call.line.source_offsets, problem.source, problem.batch},
                      .target = {call.line.target_offsets, problem.target, problem.batch},
                      .source_table = tables,
                      .target_table = targets ? tables + numbers : nullptr,
                      .wrong = rules.wrong,
                      .poisoned = rules.poisoned,
                      .counted = rules.counted};
  work.add(make_offset_tables, {.block = kOffsetThreads, .dependent = rules.dependent_launch}, job);

  // Rows that are not packed are where they were: the table only counts them.
  call.line.source_offsets = job.source_table;
  if (problem.packed_source) call.line.source.offsets = call.values.offsets = job.source_table;
  if (targets) call.line.target_offsets = job.target_table;
  if (problem.packed_target) {
    call.output.offsets = job.target_table;
    if (call.line.target.offsets) call.line.target.offsets = job.target_table;
    if (call.valid.offsets) call.valid.offsets = job.target_table;
  }
  return call;
}

/// with_types() with values of f64, too.
template <class Fn>
void with_any_types(const Problem& problem, const Fn& fn) {
  with_any_value_type(problem.values,
                      [&](auto* value) { visit_time_type(problem.times, [&](auto* time) { fn(time, value); }); });
}

}  // namespace tmaops::ops::resample::gpu
