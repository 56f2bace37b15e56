#include "cuda_backend/memory.h"

#include <cstring>
#include <string>

#include "cuda_backend/context.h"
#include "engine/base/error.h"

namespace canopy::cuda {
namespace {

/// From here on the driver is asked beforehand what is free: under Windows it may give memory of the host's instead.
constexpr uint64_t kAskedBytes = uint64_t{16} << 20;

Error no_memory(std::string_view name, uint64_t bytes, uint64_t available) {
  return out_of_memory("There is no memory for " + std::string(name) + ": " + std::to_string(bytes) +
                       " bytes are needed, " + std::to_string(available) + " are free.");
}

}  // namespace

Error no_host_memory(std::string_view name, uint64_t bytes) {
  return out_of_memory("The host has no memory for " + std::string(name) +
                       " that could be pinned: " + std::to_string(bytes) + " bytes are needed.");
}

Memory::Memory(Context& context, uint64_t bytes, bool on_host, std::string_view name, MemoryContents contents)
    : context_(context), bytes_(bytes) {
  const DriverApi& api = context.api();
  if (!on_host && bytes >= kAskedBytes) {
    if (const uint64_t available = context.memory().available; available < bytes) {
      throw no_memory(name, bytes, available);
    }
  }
  const Result result =
      on_host ? api.allocate_host(&host_, bytes, kHostPortable | kHostMapped) : api.allocate(&address_, bytes);
  if (result == kOutOfMemory) {
    if (on_host) throw no_host_memory(name, bytes);
    throw no_memory(name, bytes, context.memory().available);
  }
  context.check(result, "Allocating memory");
  if (on_host) {
    if (contents == MemoryContents::zero) std::memset(host_, 0, bytes);
    address_ = reinterpret_cast<Address>(host_);
  } else if (contents == MemoryContents::zero) {
    try {
      context.fill(address_, 0, (bytes + 3) / 4);
    } catch (...) {
      context.note(api.free(address_));
      throw;
    }
  }
}

Memory::~Memory() {
  const DriverApi& api = context_.api();
  if (host_ != nullptr) {
    context_.note(api.free_host(host_));
  } else if (address_ != 0) {
    context_.note(api.free(address_));
  }
}

}  // namespace canopy::cuda
