#pragma once
// Device memory of the made-up machine: on the host, with known bounds, so that each access of a kernel is checked.

#include <cstddef>
#include <cstdint>

namespace canopy::host_gpu {

/// Memory filled with 0xFF, at addresses that no other allocation follows directly.
uint64_t allocate_memory(size_t bytes);
/// False for an address that allocate_memory() did not give.
bool free_memory(uint64_t address);
/// Bytes that are allocated now.
uint64_t allocated_bytes();

/// The host's pointer to bytes of device memory. Throws std::logic_error where they are not inside one allocation or
/// not aligned.
void* checked_address(uint64_t address, size_t bytes, size_t alignment = 1);

/// The same for a kernel's access, which is also remembered and checked: before a thread has waited for earlier kernels
/// it may write nothing, and read only what no kernel has written since it was allocated (block.h).
void* accessed(uint64_t address, size_t bytes, size_t alignment, bool writes);

[[noreturn]] void fail_index(uint32_t index, uint32_t count);

}  // namespace canopy::host_gpu
