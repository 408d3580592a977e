// What a resampling is asked to do, after its arguments were checked: Problem says which, Arguments where the data is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checks.hpp"
#include "core/choose.hpp"
#include "core/device_info.hpp"
#include "core/registry.hpp"
#include "tmaops/resample.hpp"

namespace tmaops {
class Workspace;
}

namespace tmaops::ops::resample {

using Targets = ResampleTargets;

/// Calls fn with a null pointer of the type of times: f32, f64 or i64.
template <class Fn>
constexpr decltype(auto) visit_time_type(DType times, const Fn& fn) {
  if (times == DType::f32) return fn(static_cast<float*>(nullptr));
  if (times == DType::f64) return fn(static_cast<double*>(nullptr));
  return fn(static_cast<std::int64_t*>(nullptr));
}

/// The same for the type of values: f64, f32, f16 or bf16.
template <class Fn>
decltype(auto) visit_value_type(DType values, const Fn& fn) {
  if (values == DType::f64) return fn(static_cast<double*>(nullptr));
  if (values == DType::f32) return fn(static_cast<float*>(nullptr));
  if (values == DType::f16) return fn(static_cast<float16*>(nullptr));
  return fn(static_cast<bfloat16*>(nullptr));
}

/// Everything a choice of variant may depend on; no pointers to data.
struct Problem {
  std::string_view op = "resample";
  std::int64_t batch = 0;
  std::int64_t source = 0;          // rows per trajectory, or rows of all trajectories when packed
  std::int64_t target = 0;          // the same for targets
  std::int64_t longest_source = 0;  // rows of the longest trajectory
  std::int64_t channels = 0;
  bool packed_source = false;
  bool packed_target = false;
  bool source_offsets_on_device = false;  // they are not known here, and longest_source is a limit
  bool target_offsets_on_device = false;
  bool shared_source_times = false;
  bool shared_target_times = false;
  bool uniform_grid = false;
  DType values = DType::f32;  // backward: of grad_values
  DType output = DType::f32;  // the same as values; backward: of grad_output
  DType times = DType::f64;
  std::vector<ChannelGroup> groups{};  // cover every channel once, in order
  Outside outside = Outside::hold;
  Duplicates duplicates = Duplicates::error;
  bool max_gap = false;
  bool valid_mask = false;
  bool unit_channel_stride = true;  // of values and output
  bool unit_time_stride = true;     // of source and target times
  bool dense_rows = true;           // the rows of a trajectory follow one another without gaps, in values and output
  bool dense_batches = true;        // all four tensors are contiguous as a whole
  int row_alignment = 16;           // bytes, at most 16: divides the address of every row of values and output
  // Bytes, at most 16, that divide the address of the first element of a tensor.
  int source_times_alignment = 16;
  int target_times_alignment = 16;
  int values_alignment = 16;
  int output_alignment = 16;
  // Elements from one trajectory to the next; 0 where trajectories share the tensor or are packed.
  std::int64_t source_times_stride = 0;
  std::int64_t target_times_stride = 0;
  std::int64_t values_stride = 0;
  std::int64_t output_stride = 0;
  bool dependent_launch = false;
  Device device{};

  /// There are no targets.
  bool empty() const { return batch == 0 || target == 0; }
  /// Whether only the device knows which rows are a trajectory's.
  bool offsets_on_device() const { return source_offsets_on_device || target_offsets_on_device; }
  /// Bytes of a row of values.
  std::int64_t row_bytes() const { return channels * static_cast<std::int64_t>(size_of(values)); }

  /// The problem in the configuration's syntax.
  std::string text() const;
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// Whether some channels have a mode over the interval of a target.
bool has_intervals(const Problem& problem);

/// For core/choice_cache.hpp.
std::size_t hash_of(const Problem& problem);

/// Addresses of a (B, N, D) or packed (rows, D) tensor; strides in elements.
struct Rows {
  const void* data = nullptr;
  std::int64_t trajectory_stride = 0;  // 0 when all trajectories share the rows
  std::int64_t row_stride = 0;
  std::int64_t channel_stride = 0;
  const std::int64_t* offsets = nullptr;  // packed: the first row of each trajectory

  /// Element offset of a trajectory's first row.
  constexpr std::int64_t first(std::int64_t b) const {
    return offsets ? offsets[b] * row_stride : b * trajectory_stride;
  }
  /// Address of the first channel of a row.
  template <class T>
  constexpr T* at(std::int64_t b, std::int64_t row = 0) const {
    return static_cast<T*>(const_cast<void*>(data)) + first(b) + row * row_stride;
  }
  /// Address of a channel of a row, where the type of the elements is known at run time alone.
  char* address(DType dtype, std::int64_t b, std::int64_t row = 0, std::int64_t channel = 0) const {
    const std::int64_t element = first(b) + row * row_stride + channel * channel_stride;
    return static_cast<char*>(const_cast<void*>(data)) + static_cast<std::int64_t>(size_of(dtype)) * element;
  }
};

/// Source and target times with the policies about them: all that says which samples a target is made of.
struct Timeline {
  DType dtype = DType::f64;
  std::int64_t batch = 0;
  std::int64_t source_rows = 0;  // per trajectory, when not packed
  std::int64_t target_rows = 0;
  const std::int64_t* source_offsets = nullptr;  // packed: B + 1 row offsets, where the problem says
  const std::int64_t* target_offsets = nullptr;
  Rows source{};
  Rows target{};  // unused with a grid
  bool uniform_grid = false;
  double grid_start = 0, grid_period = 0;  // seconds, float times
  std::int64_t grid_start_ns = 0, grid_period_ns = 0;
  Outside outside = Outside::hold;
  Duplicates duplicates = Duplicates::error;
  double max_gap = 0;  // 0: no limit
  std::int64_t max_gap_ns = 0;

  constexpr std::int64_t source_count(std::int64_t b) const {
    return source_offsets ? source_offsets[b + 1] - source_offsets[b] : source_rows;
  }
  constexpr std::int64_t target_count(std::int64_t b) const {
    return target_offsets ? target_offsets[b + 1] - target_offsets[b] : target_rows;
  }
  /// Number of targets of the trajectories before b.
  constexpr std::int64_t target_begin(std::int64_t b) const {
    return target_offsets ? target_offsets[b] : b * target_rows;
  }
  constexpr std::int64_t target_total() const { return target_begin(batch); }
};

/// The offsets of packed rows that are known here, which the addresses of a call point into.
struct Offsets {
  std::vector<std::int64_t> source;
  std::vector<std::int64_t> target;
};

/// What a call of each of the three operators has. The tensors must outlive it.
struct TimeArguments {
  Timeline timeline{};
  bool dependent_launch = false;
  std::shared_ptr<const Offsets> offsets{};  // null when none are known here
  Workspace* workspace = nullptr;
};

/// The data of one call.
struct Arguments : TimeArguments {
  Rows values{};
  Rows output{};  // data is written
  Rows valid{};   // data null: not wanted
};

/// How a variant is set up. A variant without configurations has none of these.
struct Config {
  int chunks = 0;        // of 16 bytes, per lane at a time
  int trajectories = 0;  // whole ones per block
  int threads = 0;       // per block
  int blocks = 0;        // per multiprocessor, of a persistent grid
  std::string text() const;
  friend bool operator==(const Config&, const Config&) = default;
};

/// Checks every argument that can be checked without reading times or values.
Problem make_problem(const ConstTensorView& values, const ConstTensorView& source_times, const Targets& targets,
                     const TensorView& output, const ResampleOptions& options);
/// The same arguments as addresses, with a copy of the offsets.
Arguments make_arguments(const Problem& problem, const ConstTensorView& values, const ConstTensorView& source_times,
                         const Targets& targets, const TensorView& output, const ResampleOptions& options);

VariantTable<Problem, Arguments, Config> variants();
std::vector<VariantInfo> variant_list();
Choice<Problem, Arguments, Config> select(const Problem& problem, const DeviceInfo& device, std::string_view name = "",
                                          VariantTable<Problem, Arguments, Config> table = variants());

// --- parts that all three operators share ----------------------------------------------------------------------------

/// Fills the parts of Problem that times and options decide, and checks them. `rows` is the tensor on the source side
/// (values or grad_values), `made` the one on the target side (output or grad_output).
Problem check_timeline(std::string_view op, std::string_view rows_name, const ConstTensorView& rows,
                       std::string_view made_name, const ConstTensorView& made, const ConstTensorView& source_times,
                       const Targets& targets, const ResampleOptions& options);
/// A tensor that is written shares no memory with the times and offsets of the call.
void check_apart_from_times(const ArgumentChecks& checks, std::string_view written, const ConstTensorView& tensor,
                            const ConstTensorView& source_times, const Targets& targets,
                            const ResampleOptions& options);
/// The times as addresses, with a copy of the offsets.
TimeArguments time_arguments(const Problem& problem, const ConstTensorView& source_times, const Targets& targets,
                             const ResampleOptions& options);
Rows make_rows(const ConstTensorView& tensor, const std::int64_t* offsets);

}  // namespace tmaops::ops::resample
