// A call whose checks and host work are done once and which is run many times.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tmaops/export.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops {

/// What plan_gemm(), plan_resample() and the other plan functions return. The buffers of the call must outlive it, and
/// it must outlive its runs on a GPU: it may hold memory that they use.
class Plan {
 public:
  TMAOPS_API ~Plan();
  TMAOPS_API Plan(Plan&&) noexcept;
  TMAOPS_API Plan& operator=(Plan&&) noexcept;

  /// Runs on the given stream of the tensors' device (ignored on the CPU, where it returns when the result is there).
  /// Nothing is allocated, chosen or waited for; the run can be captured into a CUDA graph. Any thread may call it, on
  /// a GPU several at once where the function that made the plan does not say that runs must follow one another.
  /// Throws Error: the device errors.
  TMAOPS_API void run(Stream stream = nullptr) const;
  /// Binds the plan to other memory with tensors of the same shapes, strides, types and device; the runs from here on
  /// work there. `data`: the addresses of the call's tensors in the order of the function that made the plan, then
  /// those of the tensors that its options named, in the order of the options; those that were not given, and a c that
  /// is not read (beta 0), are left out. On a GPU each is at a multiple of as many bytes, up to 128, as when the plan
  /// was made. What shared memory then shares it now. No thread may run the plan meanwhile. Runs that are enqueued keep
  /// their memory. Nothing is allocated on the device, chosen or waited for. Throws Error with the name of the tensor,
  /// and leaves the plan as it was: bad_parameter (the number of addresses), null_pointer, misaligned, overlap, and the
  /// device errors.
  TMAOPS_API void rebind(std::span<const void* const> data);
  void rebind(std::initializer_list<const void*> data) { rebind(std::span(data.begin(), data.size())); }
  /// Name of the variant that runs.
  TMAOPS_API std::string_view variant() const;
  /// How the variant is set up ("64x128"); empty for a variant with a single way.
  TMAOPS_API std::string_view config() const;

  struct State;
  explicit Plan(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tmaops
