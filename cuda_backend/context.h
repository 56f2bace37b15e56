#pragma once
// One opened NVIDIA GPU: its memory, its streams of work, its kernels. Belongs to one thread and knows nothing of
// models.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda_backend/driver.h"
#include "engine/base/error.h"
#include "engine/compute/types.h"

namespace canopy::cuda {

// Memory of an opened GPU, and of the host as the GPU sees it.

class Context;

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

/// A kernel with its one argument, as it is launched.
struct KernelCall {
  std::string kernel;
  std::vector<std::byte> params;  // the bytes of its struct
  uint32_t grid[3] = {1, 1, 1};
  uint32_t threads = 32;
  uint32_t shared_bytes = 0;
  /// The kernel waits by itself for those before it (griddepcontrol.wait) before it touches anything that they write,
  /// and so may start while the last of them still runs. Only GPUs of compute capability 9.0 and later make use of it.
  bool overlaps = false;
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

/// Bytes of the device's memory, and where they go on the host.
struct DeviceRead {
  Address from = 0;
  std::span<std::byte> to;
};

class Context {
 public:
  /// `kernels`: fat binaries, one after the other (Kernels). Throws bad_input for other bytes, unavailable,
  /// out_of_memory or device_lost.
  Context(const DriverApi& api, const DeviceFacts& facts, std::span<const std::byte> kernels);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// The driver, for calls on this GPU: another one's may have been used last.
  const DriverApi& api() const {
    use();
    return api_;
  }
  const DeviceFacts& facts() const { return facts_; }
  /// Throws what check() throws.
  MemoryInfo memory() const;

  /// Copies `from` before it returns; the device has it for what is started later.
  void write(Address to, std::span<const std::byte> from);
  /// Waits once for all of them.
  void read(std::span<const DeviceRead> reads);
  void read(Address from, std::span<std::byte> to) {
    const DeviceRead one{from, to};
    read({&one, 1});
  }
  void fill(Address to, uint32_t word, uint64_t words);

  /// Throws bad_input for a name that no kernel has.
  void launch(const KernelCall& call);
  /// Submits and does not wait.
  void start(const Graph& graph);
  /// Waits for all that was submitted, if anything was since the last time.
  void finish();
  /// Milliseconds of the graph that was started last, by the device's clock; 0 before it has ended.
  double last_ms() const;
  /// Milliseconds that the host has waited so far.
  double waited_ms() const { return waited_ms_; }

  /// A stream of its own for copies that go on beside the others.
  StreamHandle copies() const { return copies_; }
  /// What is started later waits for an event of another stream.
  void wait_before_next(EventHandle event) {
    pending_ = true;
    check(api_.stream_waits(stream_, event, 0), "Copying to the GPU");
  }

  /// For results of the driver: throws what error_of() makes of it, and remembers that the device is lost.
  void check(Result result, const char* doing) const;
  /// The same where nothing can be thrown.
  void note(Result result) const noexcept { lost_ = lost_ || is_lost(result); }
  bool lost() const { return lost_; }

 private:
  friend class Graph;
  void open(std::span<const std::byte> kernels);
  void close() noexcept;
  void use() const noexcept;
  FunctionHandle function(const std::string& name, uint32_t shared_bytes);
  FunctionHandle find_function(const std::string& name);
  /// Pinned memory for at most kStagingBytes; waits where that means using some again.
  std::span<std::byte> stage(uint64_t bytes);

  DriverApi api_;
  DeviceFacts facts_;
  DeviceId id_ = 0;
  ContextHandle context_ = nullptr;
  StreamHandle stream_ = nullptr, copies_ = nullptr;
  std::vector<ModuleHandle> modules_;
  EventHandle begin_ = nullptr, end_ = nullptr;
  void* staging_ = nullptr;
  uint64_t staged_ = 0;    // bytes of it that are in use
  bool pending_ = false;   // something was submitted that nobody has waited for
  bool ran_ = false;       // a graph was started
  bool overlaps_ = false;  // the GPU and its driver make use of KernelCall::overlaps
  double waited_ms_ = 0;
  std::map<std::string, FunctionHandle, std::less<>> functions_;
  std::map<FunctionHandle, uint32_t> shared_of_;  // dynamic shared bytes that they may have
  mutable bool lost_ = false;                     // the driver has said so, whatever was asked
};

}  // namespace canopy::cuda
