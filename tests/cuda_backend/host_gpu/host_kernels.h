#pragma once
// The kernels that were compiled for the host, by name.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/cuda_backend/host_gpu/block.h"

namespace canopy::host_gpu {

/// The architectures that there is code for: of all kernels, and of those that are others where tensor cores add
/// slowly.
inline constexpr int kArchitecture = 90, kSlowlyAdding = 89;

/// Registers a kernel while the program starts.
struct KernelEntry {
  KernelEntry(int architecture, const char* name, size_t params_bytes, uint32_t threads, KernelBody body);
  std::string name;
  size_t params_bytes;
  uint32_t threads;  // of a block, at most
  KernelBody body;
};

/// The engine's kernels register themselves; a program that calls this has them linked.
void register_kernels();

/// What a GPU of this compute capability runs; null where there is none.
const KernelEntry* find_kernel(std::string_view name, int capability = kArchitecture);

}  // namespace canopy::host_gpu
