#pragma once
// The kernels that were compiled for the host, by name.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/cuda_backend/host_gpu/block.h"

namespace canopy::host_gpu {

/// Registers a kernel while the program starts.
struct KernelEntry {
  KernelEntry(const char* name, size_t params_bytes, uint32_t threads, KernelBody body);
  std::string name;
  size_t params_bytes;
  uint32_t threads;  // of a block, at most
  KernelBody body;
};

/// The engine's kernels register themselves; a program that calls this has them linked.
void register_kernels();

/// Null where there is none.
const KernelEntry* find_kernel(std::string_view name);

}  // namespace canopy::host_gpu
