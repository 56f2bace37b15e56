#include "tests/cuda_backend/host_gpu/fiber.h"

#include <cstdint>

#if !defined(__x86_64__) || defined(_WIN32)
#include <ucontext.h>
#endif

namespace canopy::host_gpu {

#if defined(__x86_64__) && !defined(_WIN32)

// Saves what a call must preserve on the stack, leaves the stack's end in *from, and takes up the other. A context of
// the C library would do the same with a system call each time, of which a test makes millions.
extern "C" void canopy_switch_stack(void** from, void* to);
asm(R"(
.text
.globl canopy_switch_stack
.type canopy_switch_stack, @function
canopy_switch_stack:
  endbr64
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size canopy_switch_stack, .-canopy_switch_stack
)");

struct Fiber::Registers {
  void* own = nullptr;     // end of the fiber's stack
  void* caller = nullptr;  // of resume()'s
};

namespace {

thread_local Fiber* starting = nullptr;

}  // namespace

void Fiber::prepare(void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
  ended_ = false;
  auto top = reinterpret_cast<uintptr_t>(stack_.get() + kStackBytes) & ~uintptr_t{15};
  auto* words = reinterpret_cast<void**>(top);
  *--words = nullptr;  // where the first function would return to: never
  *--words = reinterpret_cast<void*>(+[] { run(starting); });
  for (int i = 0; i < 6; ++i) *--words = nullptr;  // the registers
  registers_->own = words;
}

void Fiber::resume() {
  starting = this;
  canopy_switch_stack(&registers_->caller, registers_->own);
}

void Fiber::pause() {
  canopy_switch_stack(&registers_->own, registers_->caller);
}

#else

struct Fiber::Registers {
  ucontext_t own, caller;
};

void Fiber::prepare(void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
  ended_ = false;
  getcontext(&registers_->own);
  registers_->own.uc_stack.ss_sp = stack_.get();
  registers_->own.uc_stack.ss_size = kStackBytes;
  registers_->own.uc_link = nullptr;
  const auto address = reinterpret_cast<uintptr_t>(this);
  const auto start = +[](unsigned high, unsigned low) {
    run(reinterpret_cast<Fiber*>((static_cast<uintptr_t>(high) << 16 << 16) | low));
  };
  makecontext(&registers_->own, reinterpret_cast<void (*)()>(start), 2, static_cast<unsigned>(address >> 16 >> 16),
              static_cast<unsigned>(address));
}

void Fiber::resume() {
  swapcontext(&registers_->caller, &registers_->own);
}

void Fiber::pause() {
  swapcontext(&registers_->own, &registers_->caller);
}

#endif

Fiber::Fiber()
    : stack_(std::make_unique_for_overwrite<std::byte[]>(kStackBytes)), registers_(std::make_unique<Registers>()) {}

Fiber::~Fiber() = default;

void Fiber::run(Fiber* fiber) {
  fiber->entry_(fiber->argument_);
  fiber->ended_ = true;
  fiber->pause();
}

}  // namespace canopy::host_gpu
