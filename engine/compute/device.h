#pragma once
// The interface a backend implements. The forward passes of engine/model know nothing else.

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/compute/op_list.h"
#include "engine/compute/types.h"

namespace canopy {

/// Ops compiled once for given buffers and widths, replayed any number of times. What changes between replays (tokens,
/// positions, slots) is read from buffers.
class Commands {
 public:
  virtual ~Commands() = default;
};

/// Bytes of a buffer from `offset`, and where they go on the host.
struct BufferRead {
  const Buffer* from = nullptr;
  uint64_t offset = 0;
  std::span<std::byte> to;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;
  virtual MemoryInfo memory() const = 0;

  /// Zeroed memory. Throws Error(out_of_memory) with needed and available bytes before anything is allocated.
  virtual std::unique_ptr<Buffer> allocate(uint64_t bytes, std::string_view name) = 0;
  /// Bytes [offset, offset + bytes) of a buffer as a buffer that ops take like any other: what is written to one is
  /// read through the other. Allocates nothing; `whole` must outlive it. `name` is for messages. Throws bad_input for
  /// an empty range, one that leaves `whole`, or an offset that is no multiple of kPartAlignment.
  virtual std::unique_ptr<Buffer> part(Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) = 0;
  virtual std::unique_ptr<Activations> allocate_activations(uint32_t max_width, uint32_t cols,
                                                            std::string_view name) = 0;
  virtual std::unique_ptr<KvLayer> allocate_kv(const KvShape& shape, std::string_view name) = 0;

  /// Repacks a matrix into the device's layout. Throws Error(bad_input) when the parts do not fit each other.
  virtual std::unique_ptr<Weight> make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                              std::string_view name) = 0;

  /// Device bytes that make_weight would take; reads no data.
  virtual uint64_t weight_bytes(std::span<const WeightPart> parts, WeightLayout layout) const = 0;
  virtual uint64_t activation_bytes(uint32_t max_width, uint32_t cols) const = 0;

  /// Blocking copies, in bytes. Offsets and sizes are multiples of 4.
  virtual void write(Buffer& to, uint64_t offset, std::span<const std::byte> from) = 0;
  /// All of them behind one wait: over a bus, each wait costs more than small results do.
  virtual void read_all(std::span<const BufferRead> reads) = 0;
  void read(const Buffer& from, uint64_t offset, std::span<std::byte> to) {
    const BufferRead one{&from, offset, to};
    read_all({&one, 1});
  }

  /// Values of the first `width` rows, row-major [width, cols]; for tests and for the drafter's features.
  virtual std::vector<float> read_activations(const Activations& activations, uint32_t width) = 0;
  /// Fills activations and their sums of squares from row-major values [width, cols]; for tests.
  virtual void write_activations(Activations& activations, uint32_t width, std::span<const float> values) = 0;

  /// Keys (or values) of slots [first, first + count), as f32 [count, kv_heads, head_dim].
  virtual std::vector<float> read_kv(const KvLayer& layer, bool values, uint32_t first, uint32_t count) = 0;
  virtual void write_kv(KvLayer& layer, bool values, uint32_t first, std::span<const float> data) = 0;

  /// What the device itself reaches in two small kernels: reading memory, and fused multiply-adds. Takes about a
  /// second.
  virtual DevicePeak measure_peak() = 0;
  /// GFLOP/s of multiply-adds in one short run (some 30 ms; the first call prepares it): what the device reaches at
  /// this moment, with whatever else it does.
  virtual double sample_fma_rate() = 0;

  /// Makes commands of the ops. Compiling kernels and choosing their variants may take seconds: `stop` is looked
  /// at before each op; once it is requested, null comes back. Throws bad_input when an op's arguments do not fit each
  /// other.
  virtual std::unique_ptr<Commands> compile(std::span<const Op> ops, const std::stop_token& stop = {}) = 0;

  /// Runs commands and waits. `stop` is looked at between the parts that a long list is submitted in; once it is
  /// requested, the rest is dropped and false comes back.
  virtual bool run(Commands& commands, const std::stop_token& stop = {}) = 0;
  /// Runs short commands that nothing is waiting for: what runs later, and what is read later, sees what they did.
  /// finish() must come before the same commands start again and before a buffer that they read is written. A device
  /// that cannot do it runs them at once.
  virtual void start(Commands& commands) = 0;
  /// Waits for what was started.
  virtual void finish() = 0;
  /// Milliseconds the device itself spent on what the last run() submitted, by its own clock; 0 where it has none.
  virtual double last_run_ms() const = 0;
};

template <class T>
std::span<const std::byte> as_bytes_of(const std::vector<T>& v) {
  return std::as_bytes(std::span<const T>(v));
}

}  // namespace canopy
