// A call whose checks and host work are done once and which is run many times.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tmaops/export.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops {

/// What plan_gemm(), plan_resample() and the other plan functions return. The buffers of the call must outlive it.
class Plan {
 public:
  TMAOPS_API ~Plan();
  TMAOPS_API Plan(Plan&&) noexcept;
  TMAOPS_API Plan& operator=(Plan&&) noexcept;

  /// Runs on the given stream of the tensors' device (ignored on the CPU, where it returns when the result is there).
  /// Nothing is allocated, chosen or waited for; the run can be captured into a CUDA graph. Any thread may call it, on a
  /// GPU several at once. Throws Error: the device errors.
  TMAOPS_API void run(Stream stream = nullptr) const;
  /// Name of the variant that runs.
  TMAOPS_API std::string_view variant() const;
  /// How the variant is set up ("64x128"); empty for a variant with a single way.
  TMAOPS_API std::string_view config() const;

  struct State;
  explicit Plan(std::unique_ptr<const State> state);

 private:
  std::unique_ptr<const State> state_;
};

}  // namespace tmaops
