// One case of an operator: its data, its variants, and what the right output is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/workloads/buffer.hpp"
#include "config/settings.hpp"
#include "core/registry.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops::bench {

/// One call of an operator on fixed buffers. On the CPU it returns when the result is there; on a GPU it launches.
using Call = std::function<void(Stream)>;

/// `dependent`: programmatic dependent launch, on a GPU.
enum class Launch { plain, dependent };

/// What the rows of a case have in common.
struct CaseInfo {
  std::string op{};       // "ms_deform_attn_backward"
  std::string name{};     // "enc1/detr", as in the anchors
  std::string dtype{};    // "f16", or "bf16->f32" where the output differs
  std::string problem{};  // in the configuration's syntax: what repeats it
  Device device{};
  double floor_bytes = 0;  // each input read once, each output written once; 0 becomes the bytes of all tensors
  double flops = 0;
};

struct VariantChoice {
  VariantInfo info;
  Support support;
};

/// What an operator that measures loading says of a case.
struct Loading {
  double loads = 0;                   // of one call
  std::vector<std::string> manual{};  // the variants that load by hand, to compare with
  std::int64_t most_blocks = 0;       // no variant has more
};

/// How an output compares with the reference.
struct Comparison {
  bool ok = false;
  double relative = 0;    // |got - want| / |want|, Frobenius norms
  double max = 0;         // largest |got - want|
  double compared = 1;    // part of the outputs' elements that the reference was made of
  std::string problem{};  // what is wrong, in words, when not ok
};

/// The values some elements of an output must have. Elements are offsets in memory.
struct Expected {
  std::string tensor;
  std::vector<std::int64_t> elements;
  std::vector<double> values;
};

/// What the reference makes of a case's data; the same for all sets.
using Reference = std::shared_ptr<const std::vector<Expected>>;

struct TensorSpec {
  std::string name;
  DType dtype;
  Layout layout;
  bool output = false;
};

class Workload {
 public:
  Workload(CaseInfo info, std::vector<TensorSpec> tensors);
  virtual ~Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  const CaseInfo& info() const { return info_; }
  const std::vector<TensorSpec>& tensors() const { return specs_; }
  /// Bytes of all tensors of one set.
  std::int64_t bytes() const { return static_cast<std::int64_t>(bytes_); }
  /// What a call touches of them: the floor bytes, where these are less. Known after prepare() where data decides.
  std::int64_t touched_bytes() const { return static_cast<std::int64_t>(std::min(bytes_, info_.floor_bytes)); }

  /// Every variant of the operator, best first, and whether it takes the case. Needs no data.
  virtual std::vector<VariantChoice> variants() const = 0;
  /// Name of the variant that the operator chooses. Throws Error variant_refuses.
  virtual std::string selected() const = 0;
  /// What a peer needs to know besides the tensors.
  virtual nlohmann::json peer_parameters() const = 0;

  /// Makes `sets` sets of tensors with the same data in different memory. Throws Error out_of_memory.
  void prepare(std::uint64_t seed, int sets);
  /// What check() needs, of the data of the last prepare(): of the whole outputs if that takes no more than about so
  /// many seconds, else of as much as a sixth of them allows.
  Reference make_reference(std::uint64_t seed, double seconds);
  void set_reference(Reference reference) { reference_ = std::move(reference); }
  /// Copies of the same data until there are `sets` sets. Throws Error out_of_memory.
  void add_sets(int sets);
  int sets() const { return static_cast<int>(copies_.size()) + (on_gpu() || data_.empty() ? 0 : 1); }
  /// On a GPU: memory of the GPU, but of the host while the data and the reference are made. Before prepare() there is
  /// no memory, and the address is made up: enough to ask the variants, which read nothing.
  TensorView tensor(std::string_view name, int set) const;
  /// Where the tensor lies in the host's memory: the tensor itself on the CPU. On a GPU the inputs, which are the same
  /// in all sets, and room for the outputs.
  TensorView host(std::string_view name, int set) const;
  /// Brings an output from its GPU to host(), and the other way. Nothing to do on the CPU.
  void fetch(std::string_view name, int set) const;
  void put(std::string_view name, int set);
  /// A planned call of a variant on one set.
  virtual Call bind(const std::string& variant, int set, Launch launch = Launch::plain) const = 0;
  /// The same call without a plan: checked, chosen and launched each time. Empty where the operator has plans alone.
  virtual Call fresh(const std::string& /*variant*/, int /*set*/, Launch /*launch*/) const { return {}; }

  /// Makes sure that what check() sees was written after this.
  void poison(int set);
  /// Compares the outputs of a set with the reference, where there is one. Every element must have been written, and
  /// nothing around the tensors. tolerance 0: the operator's own.
  Comparison check(int set, double tolerance);
  /// What check() allows a variant that rounds more than the others: the relative error, or 0 for the operator's own.
  virtual double variant_tolerance(const std::string&) const { return 0; }

  /// How the operator's table of measured choices, which `--tune` fills, names the case; empty where there is no table.
  virtual std::string tuning_key() const { return {}; }
  /// Every way to run the case that the table may choose, as bind() takes it.
  virtual std::vector<std::string> candidates() const { return {}; }
  /// Of an operator that measures loading.
  virtual std::optional<Loading> loading() const { return {}; }
  /// A call as bind()'s that raises an entry of `cycles` (i64, most_blocks of them, on the GPU) for every block to the
  /// cycles the block took. Of an operator that measures loading.
  virtual Call bind_counting(const std::string& /*variant*/, int /*set*/, const TensorView& /*cycles*/) const {
    return {};
  }
  /// For peers that round what lies between to the inputs' type, and compute weights in f32 for f64 values.
  double peer_tolerance() const;

 protected:
  /// Fills the inputs of set 0 with random data.
  virtual void fill(std::uint64_t seed) = 0;
  /// What the reference makes of them: all outputs if that takes no more than about `work` multiplications, else a
  /// seeded sample, which is never empty.
  virtual std::vector<Expected> reference(std::uint64_t seed, double work) const = 0;
  /// Relative error (Frobenius) that a correct variant stays below.
  virtual double tolerance() const = 0;

  CaseInfo info_;

 private:
  using Set = std::vector<Buffer>;
  std::size_t index(std::string_view name) const;
  /// Memory for one set, unfilled.
  Set new_set(Device device) const;
  const Set& set(int number) const;
  /// Elements that are expected, of all of the outputs.
  double compared_part(const std::vector<Expected>& expected) const;
  bool on_gpu() const { return info_.device.type == DeviceType::cuda; }
  /// Throws Error out_of_memory unless there is room for so many sets in the host's memory.
  void expect_memory(int sets) const;
  void copy_until(int sets);

  std::vector<TensorSpec> specs_;
  double bytes_ = 0;           // of one set
  std::vector<void*> places_;  // made-up addresses of the tensors, until there is data
  Set data_;                   // of the host: the first set, or what a GPU's data and outputs pass through
  std::vector<Set> copies_;    // the other sets, of a GPU all
  bool making_data_ = false;
  Reference reference_;
};

/// Tolerance for results rounded once to a type, with sums in f32.
double rounding_tolerance(DType output);

/// Operators that have workloads, in the order of the table: the sections a configuration may have.
std::span<const std::string_view> workload_operators();

/// The workload of one problem. Throws Error unknown_key to unknown_case for bad settings, and the device errors.
std::unique_ptr<Workload> make_workload(const Settings& problem, Device device);

std::unique_ptr<Workload> make_gemm_workload(const Settings& problem, Device device);
std::unique_ptr<Workload> make_ms_deform_attn_workload(const Settings& problem, Device device);
std::unique_ptr<Workload> make_resample_workload(const Settings& problem, Device device);
std::unique_ptr<Workload> make_tile_load_workload(const Settings& problem, Device device);

}  // namespace tmaops::bench
