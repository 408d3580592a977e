#include "executor/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
// void tmaops_switch(void** saved, void* next): the registers that a call preserves, on the stack that is left.
asm(R"(
    .text
    .globl tmaops_executor_switch
    .hidden tmaops_executor_switch
    .type tmaops_executor_switch,@function
tmaops_executor_switch:
    .cfi_startproc
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    pushq %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    pushq %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r12, 0
    pushq %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r13, 0
    pushq %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r14, 0
    pushq %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r15, 0
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r15
    popq %r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r14
    popq %r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r13
    popq %r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r12
    popq %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    popq %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    ret
    .cfi_endproc
    .size tmaops_executor_switch,.-tmaops_executor_switch
)");
extern "C" void tmaops_executor_switch(void** saved, void* next);
#endif

namespace tmaops::executor {

Fiber::~Fiber() {
  if (stack_ != nullptr) munmap(stack_, kStackBytes);
}

void Fiber::start(void (*entry)()) {
  if (stack_ == nullptr) {
    void* memory =
        mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    stack_ = static_cast<unsigned char*>(memory);
    bottom_ = stack_;
  }
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, kStackBytes);  // of what the last thread on this stack never returned from
#endif
  // Stacks that are full at like addresses would share a few lines of the caches.
  const std::size_t bytes = kStackBytes - reinterpret_cast<std::uintptr_t>(stack_) / kStackBytes % 64 * 17 * 64;
#if defined(__x86_64__)
  constexpr std::size_t kSavedRegisters = 6;
  auto** top = reinterpret_cast<void**>(stack_ + bytes - 64);
  *--top = nullptr;  // nobody is returned to
  *--top = reinterpret_cast<void*>(entry);
  for (std::size_t i = 0; i < kSavedRegisters; ++i) *--top = nullptr;
  stack_pointer_ = top;
#else
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = bytes;
  context_.uc_link = nullptr;
  makecontext(&context_, entry, 0);
#endif
}

#if defined(__SANITIZE_ADDRESS__)
void Fiber::adopt_stack() {
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  void* bottom = nullptr;
  pthread_attr_getstack(&attributes, &bottom, &bytes_);
  bottom_ = bottom;
  pthread_attr_destroy(&attributes);
}
void Fiber::entered() { __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr); }
#else
void Fiber::adopt_stack() {}
void Fiber::entered() {}
#endif

void Fiber::switch_from(Fiber& from) {
#if defined(__SANITIZE_ADDRESS__)
  void* kept = nullptr;
  __sanitizer_start_switch_fiber(&kept, bottom_, bytes_);
#endif
#if defined(__x86_64__)
  tmaops_executor_switch(&from.stack_pointer_, stack_pointer_);
#else
  swapcontext(&from.context_, &context_);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(kept, nullptr, nullptr);
#endif
}

}  // namespace tmaops::executor
