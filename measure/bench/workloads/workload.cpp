#include "bench/workloads/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/fail.hpp"
#include "core/spelling.hpp"

namespace tmaops::bench {
namespace {

constexpr double kMostBytes = 1LL << 60;
/// Multiplications of the first sample of a reference, and by how much the next may have more.
constexpr double kFirstWork = 1 << 26;
constexpr double kMostGrowth = 256;
/// Seconds from which on a sample says what the whole takes, and the part of the allowed time that a part gets.
constexpr double kTelling = 0.1;
constexpr double kPartOfTime = 1.0 / 6;

}  // namespace

Workload::Workload(CaseInfo info, std::vector<TensorSpec> tensors)
    : info_(std::move(info)), specs_(std::move(tensors)) {
  // Each tensor apart from the others and aligned as its memory will be, below 2^57 as tensor maps need it.
  std::uintptr_t address = (std::uintptr_t{1} << 46) + (info_.device.type == DeviceType::cpu ? 64 : 256);
  for (const TensorSpec& spec : specs_) {
    const auto count = static_cast<double>(spec.layout.size());
    bytes_ += count * static_cast<double>(size_of(spec.dtype));
    if (bytes_ > kMostBytes)
      fail(ErrorCode::size_overflow, info_.op + " " + info_.name + ": " + spec.name, spec.layout.shape_text(),
           "tensors of less than 2^60 bytes in all");
    places_.push_back(reinterpret_cast<void*>(address));  // NOLINT(performance-no-int-to-ptr)
    const auto bytes = static_cast<std::uintptr_t>(spec.layout.size()) * size_of(spec.dtype);
    address += (bytes / 4096 + 1) * 4096;
  }
  if (!(info_.floor_bytes > 0)) info_.floor_bytes = bytes_;
}

void Workload::prepare(std::uint64_t seed, int sets) {
  expect_memory(on_gpu() ? 1 : sets);  // on a GPU the sets live there
  if (data_.empty()) data_ = new_set({});
  copies_.clear();
  making_data_ = true;
  fill(seed);
  making_data_ = false;
  copy_until(sets);
}

Reference Workload::make_reference(std::uint64_t seed, double seconds) {
  making_data_ = true;
  std::vector<Expected> made;
  // The first sample says how fast the reference is. It may be slow for what it does once, so that two more may follow.
  // Where the whole would take too long, a part gets little time.
  for (double work = kFirstWork, elapsed = 0, allowed = seconds;;) {
    const auto start = std::chrono::steady_clock::now();
    made = reference(seed, work);
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    elapsed += spent;
    if (spent > kTelling && spent > (seconds - elapsed) * compared_part(made)) allowed = seconds * kPartOfTime;
    const double more = std::min((allowed - elapsed) / std::max(spent, 1e-4), kMostGrowth);
    if (compared_part(made) >= 1 || more < 2) break;
    work *= more;
  }
  making_data_ = false;
  reference_ = std::make_shared<const std::vector<Expected>>(std::move(made));
  return reference_;
}

void Workload::add_sets(int sets) {
  if (!on_gpu()) expect_memory(sets - this->sets());
  copy_until(sets);
}

void Workload::expect_memory(int sets) const {
  const double needed = static_cast<double>(bytes()) * sets * 1.1;
  if (const auto available = static_cast<double>(available_memory()); needed > available)
    fail(ErrorCode::out_of_memory, info_.op + " " + info_.name,
         fmt::format("{:.1f} GiB available", available / (1 << 30)),
         fmt::format("{:.1f} GiB for the tensors and their check", needed / (1 << 30)));
}

Workload::Set Workload::new_set(Device device) const {
  Set made;
  for (const TensorSpec& spec : specs_) made.emplace_back(spec.dtype, spec.layout, device);
  return made;
}

const Workload::Set& Workload::set(int number) const {
  if (!on_gpu() && number == 0) return data_;
  return copies_.at(static_cast<std::size_t>(on_gpu() ? number : number - 1));
}

void Workload::copy_until(int sets) {
  while (this->sets() < sets) {
    Set& next = copies_.emplace_back(new_set(info_.device));
    for (std::size_t i = 0; i < specs_.size(); ++i)
      if (!specs_[i].output) next[i].upload(data_[i].view().data);
  }
}

std::size_t Workload::index(std::string_view name) const {
  const auto found = std::ranges::find(specs_, name, &TensorSpec::name);
  if (found == specs_.end()) fail(ErrorCode::internal, info_.op, "tensor '" + std::string(name) + "'", {});
  return static_cast<std::size_t>(found - specs_.begin());
}

TensorView Workload::tensor(std::string_view name, int set) const {
  const std::size_t i = index(name);
  if (data_.empty()) return {places_[i], specs_[i].dtype, specs_[i].layout, info_.device};
  return (making_data_ ? data_ : this->set(set))[i].view();
}

TensorView Workload::host(std::string_view name, int set) const {
  return (on_gpu() ? data_ : this->set(set))[index(name)].view();
}

void Workload::fetch(std::string_view name, int set) const {
  if (on_gpu()) this->set(set)[index(name)].download(host(name, set).data);
}

void Workload::put(std::string_view name, int set) {
  if (on_gpu()) this->set(set)[index(name)].upload(host(name, set).data);
}

void Workload::poison(int set) {
  for (std::size_t i = 0; i < specs_.size(); ++i)
    if (specs_[i].output) this->set(set)[i].poison();
}

std::span<const std::string_view> workload_operators() {
  static constexpr std::string_view names[] = {"gemm", "ms_deform_attn", "resample",
#ifdef TMAOPS_HAVE_TILE_LOAD
                                               "tile_load"
#endif
  };
  return names;
}

namespace {

std::unique_ptr<Workload> make(const Settings& problem, Device device) {
#ifdef TMAOPS_HAVE_TILE_LOAD
  if (problem.section() == "tile_load") return make_tile_load_workload(problem, device);
#endif
  if (problem.section() == "gemm") return make_gemm_workload(problem, device);
  if (problem.section() == "ms_deform_attn") return make_ms_deform_attn_workload(problem, device);
  if (problem.section() == "resample") return make_resample_workload(problem, device);
  fail(ErrorCode::unknown_key, problem.place().text(), "operator '" + problem.section() + "'",
       "one of " + joined(workload_operators()));
}

}  // namespace

std::unique_ptr<Workload> make_workload(const Settings& problem, Device device) try {
  return make(problem, device);
} catch (const Error& error) {  // of the library, which does not know where the problem stands
  const ErrorDetails& details = error.details();
  const std::string place = problem.place().text();
  if (error.exit_code() == 4 || details.where.starts_with(problem.place().source)) throw;
  fail(error.code(), place + ": " + details.where, details.got, details.needed, details.mend);
}

}  // namespace tmaops::bench
