// A stack of its own for each thread of a kernel. All fibers run on the thread that launched the kernel.
#pragma once

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace tmaops::executor {

class Fiber {
 public:
  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// Makes it start with entry(), which must not return, at the next switch_from().
  void start(void (*entry)());
  /// The stack that the calling thread of the system is on: for the fiber that others switch back to.
  void adopt_stack();
  /// Stands first in entry().
  static void entered();
  /// Saves the running fiber in `from` and goes on with this one.
  void switch_from(Fiber& from);
  bool on_stack(const void* address) const {
    return static_cast<const unsigned char*>(address) - stack_ < static_cast<std::ptrdiff_t>(kStackBytes) &&
           address >= stack_ && stack_ != nullptr;
  }
#if defined(__x86_64__)
  /// Where a fiber that does not run has its registers.
  void* stack_pointer() const { return stack_pointer_; }
#endif

 private:
  static constexpr std::size_t kStackBytes = std::size_t{256} << 10;  // mapped when it is touched
  unsigned char* stack_ = nullptr;
  const void* bottom_ = nullptr;  // of the stack, for AddressSanitizer
  std::size_t bytes_ = kStackBytes;
#if defined(__x86_64__)
  void* stack_pointer_ = nullptr;
#else
  ucontext_t context_{};
#endif
};

}  // namespace tmaops::executor
