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
  /// Saves the running fiber in `from` and goes on with this one.
  void switch_from(Fiber& from);
  bool on_stack(const void* address) const {
    return static_cast<const unsigned char*>(address) - stack_ < static_cast<std::ptrdiff_t>(kStackBytes) &&
           address >= stack_ && stack_ != nullptr;
  }

 private:
  static constexpr std::size_t kStackBytes = std::size_t{256} << 10;  // mapped when it is touched
  unsigned char* stack_ = nullptr;
#if defined(__x86_64__)
  void* stack_pointer_ = nullptr;
#else
  ucontext_t context_{};
#endif
};

}  // namespace tmaops::executor
