#pragma once
// Memory of an opened GPU, and of the host as the GPU sees it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "cuda_backend/driver_api.h"
#include "engine/base/error.h"

namespace canopy::cuda {

class Context;

/// That the host has no memory that could be pinned, with the bytes that are needed.
Error no_host_memory(std::string_view name, uint64_t bytes);

enum class MemoryContents { zero, undefined };

/// Device memory with one owner; or pinned memory of the host, which the device reads and writes directly, at the same
/// address. Must not outlive its Context.
class Memory {
 public:
  /// Throws out_of_memory with needed and free bytes, and what Context::check throws.
  Memory(Context& context, uint64_t bytes, bool on_host, std::string_view name,
         MemoryContents contents = MemoryContents::zero);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Address address() const { return address_; }
  uint64_t bytes() const { return bytes_; }
  /// Null for memory of the device.
  std::byte* host() const { return static_cast<std::byte*>(host_); }

  /// Of memory that the host fills for every pass: pinned memory of the host, which it writes to and which each
  /// recording copies from by itself. Null for other memory.
  std::unique_ptr<Memory> source;

 private:
  Context& context_;
  uint64_t bytes_;
  Address address_ = 0;
  void* host_ = nullptr;
};

/// A part of memory that several share.
struct MemoryShare {
  std::shared_ptr<Memory> memory;
  uint64_t offset = 0;
  Address address() const { return memory->address() + offset; }
};

}  // namespace canopy::cuda
