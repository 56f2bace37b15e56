#include "engine/base/lost_pages.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

#include "engine/base/error.h"

namespace canopy {
namespace {

// State read by the signal handler, in which only lock-free atomics are allowed.
struct Slot {
  std::atomic<uintptr_t> begin{0};  // 0: free
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> lost{false};
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

std::array<Slot, 4096> slots;  // a model has at most some 1000 shards
std::mutex slots_mutex;        // for claiming one
struct sigaction previous;
uintptr_t page_bytes = 4096;

/// Maps zeros over the mapping from the lost page to its end: if the file was shrunk, all later pages are lost too.
bool replace_by_zeros(uintptr_t address) {
  for (Slot& slot : slots) {
    const uintptr_t begin = slot.begin;
    const uintptr_t end = slot.end;
    if (begin == 0 || address < begin || address >= end) continue;
    const uintptr_t page = address / page_bytes * page_bytes;
    const uintptr_t past = (end + page_bytes - 1) / page_bytes * page_bytes;
    slot.lost = true;
    return ::mmap(reinterpret_cast<void*>(page), past - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                  0) != MAP_FAILED;
  }
  return false;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool handled = replace_by_zeros(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = saved;
  if (handled) return;  // the instruction runs again, and reads zeros
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(signal, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(signal);
  ::signal(SIGBUS, SIG_DFL);  // the instruction runs again, and ends the process as it would have without us
}

void install_handler() {
  static const bool installed = [] {
    page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    return ::sigaction(SIGBUS, &action, &previous) == 0;
  }();
  (void)installed;  // without a handler, things are as they were before
}

}  // namespace

LostPagesWatch::LostPagesWatch(std::span<const std::byte> mapping) {
  install_handler();
  const std::lock_guard lock(slots_mutex);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].begin != 0) continue;
    slots[i].lost = false;
    slots[i].end = reinterpret_cast<uintptr_t>(mapping.data()) + mapping.size();
    slots[i].begin = reinterpret_cast<uintptr_t>(mapping.data());
    slot_ = static_cast<int>(i);
    return;
  }
  throw out_of_memory("More than " + std::to_string(slots.size()) + " files are open at a time.");
}

LostPagesWatch::LostPagesWatch(LostPagesWatch&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}

LostPagesWatch& LostPagesWatch::operator=(LostPagesWatch&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

LostPagesWatch::~LostPagesWatch() {
  if (slot_ >= 0) slots[static_cast<size_t>(slot_)].begin = 0;
}

bool LostPagesWatch::lost() const noexcept {
  return slot_ >= 0 && slots[static_cast<size_t>(slot_)].lost;
}

}  // namespace canopy
