#include "tests/cuda_backend/host_gpu/host_memory.h"

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tests/cuda_backend/host_gpu/block.h"

namespace canopy::host_gpu {
namespace {

constexpr size_t kGuard = 256;  // bytes behind each allocation that nobody has

struct Allocation {
  std::unique_ptr<std::byte[]> memory;
  size_t bytes = 0;
  std::atomic<bool> written = false;  // by a kernel
};

struct Heap {
  std::mutex mutex;
  std::map<uint64_t, std::unique_ptr<Allocation>> blocks;  // by address
  uint64_t bytes = 0;
  std::atomic<uint64_t> changes{0};
};

Heap& heap() {
  static Heap all;
  return all;
}

struct Range {
  uint64_t begin = 0, end = 0;
  std::atomic<bool>* written = nullptr;
};

/// The ranges that this thread met last; those of a heap that has changed since are forgotten.
struct RecentRanges {
  static constexpr uint32_t kCount = 8;
  uint64_t changes = ~uint64_t{0};
  Range ranges[kCount];
  uint32_t next = 0;
};

Range range_of(uint64_t address) {
  Heap& all = heap();
  const std::lock_guard lock(all.mutex);
  auto found = all.blocks.upper_bound(address);
  if (found == all.blocks.begin()) return {};
  --found;
  const Range range{found->first, found->first + found->second->bytes, &found->second->written};
  return address < range.end + kGuard ? range : Range{};  // just behind one: said to be so
}

bool holds(const Range& range, uint64_t address, size_t bytes) {
  return address >= range.begin && address + bytes <= range.end;
}

}  // namespace

uint64_t allocate_memory(size_t bytes) {
  auto block = std::make_unique<Allocation>();
  block->memory = std::make_unique_for_overwrite<std::byte[]>(bytes + kGuard + kGuard);
  block->bytes = bytes;
  std::memset(block->memory.get(), 0xFF, bytes + kGuard + kGuard);
  const uint64_t address = (reinterpret_cast<uint64_t>(block->memory.get()) + kGuard - 1) / kGuard * kGuard;
  Heap& all = heap();
  const std::lock_guard lock(all.mutex);
  all.blocks[address] = std::move(block);
  all.bytes += bytes;
  ++all.changes;
  return address;
}

bool free_memory(uint64_t address) {
  Heap& all = heap();
  const std::lock_guard lock(all.mutex);
  const auto found = all.blocks.find(address);
  if (found == all.blocks.end()) return false;
  all.bytes -= found->second->bytes;
  all.blocks.erase(found);
  ++all.changes;
  return true;
}

uint64_t allocated_bytes() {
  Heap& all = heap();
  const std::lock_guard lock(all.mutex);
  return all.bytes;
}

namespace {

/// The allocation that holds the bytes.
Range checked_range(uint64_t address, size_t bytes, size_t alignment) {
  thread_local RecentRanges recent;
  if (address % alignment != 0) {
    fail("the address " + std::to_string(address) + " is no multiple of " + std::to_string(alignment));
  }
  if (const uint64_t changes = heap().changes; recent.changes != changes) {
    recent = {};
    recent.changes = changes;
  }
  for (const Range& range : recent.ranges) {
    if (holds(range, address, bytes)) return range;
  }
  const Range range = range_of(address);
  if (!holds(range, address, bytes)) {
    fail("an access to " + std::to_string(bytes) + " bytes " +
         (range.end == 0 ? "outside of all allocations"
                         : std::to_string(address - range.begin) + " bytes behind the beginning of an allocation of " +
                               std::to_string(range.end - range.begin)));
  }
  recent.ranges[recent.next++ % RecentRanges::kCount] = range;
  return range;
}

}  // namespace

void* checked_address(uint64_t address, size_t bytes, size_t alignment) {
  checked_range(address, bytes, alignment);
  return reinterpret_cast<void*>(address);
}

void* accessed(uint64_t address, size_t bytes, size_t alignment, bool writes) {
  const Range range = checked_range(address, bytes, alignment);
  if (!place().waited) {
    if (writes) fail("it writes before it waited for earlier kernels");
    if (range.written->load(std::memory_order_relaxed)) {
      fail("it reads what kernels write, before it waited for earlier ones");
    }
  }
  if (writes && !range.written->load(std::memory_order_relaxed)) range.written->store(true);
  return reinterpret_cast<void*>(address);
}

void fail_index(uint32_t index, uint32_t count) {
  fail("element " + std::to_string(index) + " of " + std::to_string(count) + " in shared memory");
}

}  // namespace canopy::host_gpu
