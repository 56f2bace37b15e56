#pragma once
// One opened NVIDIA GPU: its memory, its stream of work, its kernels. Nothing here knows of models. Belongs to one
// thread.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compute/types.h"
#include "engine/cuda_backend/device_facts.h"
#include "engine/cuda_backend/driver_api.h"

namespace canopy::cuda {

class Context;

/// Device memory with one owner, zeroed; or host memory that the device writes to directly.
class Memory {
 public:
  Memory(Context& context, uint64_t bytes, bool on_host, std::string_view name);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Address address() const { return address_; }
  uint64_t bytes() const { return bytes_; }
  /// Null for memory of the device.
  std::byte* host() const { return static_cast<std::byte*>(host_); }

 private:
  Context& context_;
  uint64_t bytes_;
  Address address_ = 0;
  void* host_ = nullptr;
};

/// A kernel with its one argument, as it is launched.
struct KernelCall {
  std::string kernel;
  std::vector<std::byte> params;  // the bytes of its struct
  uint32_t grid[3] = {1, 1, 1};
  uint32_t threads = 32;
  uint32_t shared_bytes = 0;
};

template <class Params>
KernelCall call_of(std::string kernel, const Params& params, uint32_t threads, uint32_t x, uint32_t y = 1,
                   uint32_t z = 1, uint32_t shared_bytes = 0) {
  KernelCall call{std::move(kernel), {}, {x, y, z}, threads, shared_bytes};
  const auto bytes = std::as_bytes(std::span(&params, 1));
  call.params.assign(bytes.begin(), bytes.end());
  return call;
}

/// Kernels recorded once and replayed by one call to the driver.
class Graph {
 public:
  Graph(Context& context, std::span<const KernelCall> calls);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

 private:
  friend class Context;
  Context& context_;
  GraphExecHandle exec_ = nullptr;
};

class Context {
 public:
  /// `fatbin`: the kernels. Throws unavailable, out_of_memory or device_lost.
  Context(const DriverApi& api, const DeviceFacts& facts, const void* fatbin);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const DriverApi& api() const { return api_; }
  const DeviceFacts& facts() const { return facts_; }
  MemoryInfo memory() const;

  /// Blocking copies. `from` and `to` are any memory of the host.
  void write(Address to, std::span<const std::byte> from);
  void read(Address from, std::span<std::byte> to);
  void fill(Address to, uint32_t word, uint64_t words);

  /// Throws bad_input for a name that no kernel has.
  void launch(const KernelCall& call);
  /// Submits and does not wait.
  void start(const Graph& graph);
  /// Waits for all that was submitted.
  void finish();
  /// Milliseconds of the graph that was started last, by the device's clock. It must have ended.
  double last_ms();

  /// For results of the driver: throws what check() throws, and remembers that the device is lost.
  void check(Result result, const char* doing);
  bool lost() const { return lost_; }

 private:
  friend class Memory;
  friend class Graph;
  FunctionHandle function(const std::string& name, uint32_t shared_bytes);
  void close() noexcept;

  DriverApi api_;
  DeviceFacts facts_;
  DeviceId id_ = 0;
  ContextHandle context_ = nullptr;
  StreamHandle stream_ = nullptr;
  ModuleHandle module_ = nullptr;
  EventHandle begin_ = nullptr, end_ = nullptr;
  void* staging_ = nullptr;  // pinned
  std::map<std::string, FunctionHandle, std::less<>> functions_;
  std::map<FunctionHandle, uint32_t> shared_of_;  // dynamic shared bytes that they may have
  bool lost_ = false;
};

}  // namespace canopy::cuda
