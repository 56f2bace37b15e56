#pragma once
// The interface that a backend implements; the forward passes of engine/model use nothing else of it.

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/compute/ops.h"
#include "engine/compute/types.h"

namespace canopy {

/// Ops compiled once for given buffers and widths, and run any number of times. Values that change between runs
/// (tokens, positions, slots) are read from buffers.
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

/// What the host does with a buffer that it exchanges with the device in every pass.
enum class HostUse { writes, reads };

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;
  virtual MemoryInfo memory() const = 0;

  /// Zeroed memory. Throws Error(out_of_memory) with needed and available bytes before anything is allocated.
  virtual std::unique_ptr<Buffer> allocate(uint64_t bytes, std::string_view name) = 0;
  /// The same where the host writes the contents, or reads the results, of every pass: on a device behind a bus such
  /// copies then cost no submission of their own. Small: the memory may be scarce.
  virtual std::unique_ptr<Buffer> allocate_exchanged(uint64_t bytes, HostUse, std::string_view name) {
    return allocate(bytes, name);
  }
  /// Bytes [offset, offset + bytes) of a buffer as a buffer that ops take like any other: what is written to one is
  /// read through the other. Allocates nothing; `whole` must outlive it. `name` is for messages. Throws bad_input for
  /// an empty range, one that leaves `whole`, or an offset that is no multiple of kPartAlignment.
  virtual std::unique_ptr<Buffer> part(Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) = 0;
  virtual std::unique_ptr<Activations> allocate_activations(uint32_t max_width, uint32_t cols,
                                                            std::string_view name) = 0;
  /// Zeroed slots of so many layers.
  virtual std::unique_ptr<KvCache> allocate_kv(const KvShape& shape, uint32_t layers, std::string_view name) = 0;

  /// Repacks a matrix into the device's layout. Throws Error(bad_input) when the parts do not fit each other.
  virtual std::unique_ptr<Weight> make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                              std::string_view name) = 0;

  /// Says which weights will be made next, in this order, so that a device can lay them out in few allocations. It
  /// allocates nothing; whoever makes others after all gets them too. Replaces what was said before; none when a load
  /// has ended, so that a device gives up what it kept for it.
  virtual void expect_weights(std::span<const WeightRequest> /*requests*/) {}

  /// Device bytes that make_weight would take; reads no data.
  virtual uint64_t weight_bytes(std::span<const WeightPart> parts, WeightLayout layout) const = 0;
  virtual uint64_t activation_bytes(uint32_t max_width, uint32_t cols) const = 0;
  /// Device bytes that attention works in at most, beside its operands: of up to max_width rows with `heads` query
  /// heads that see up to max_positions positions. All recordings share them.
  virtual uint64_t attention_bytes(const KvShape& /*shape*/, uint32_t /*heads*/, uint32_t /*max_width*/,
                                   uint32_t /*max_positions*/) const {
    return 0;
  }

  /// Blocking copies, in bytes. Offsets and sizes are multiples of 4.
  virtual void write(Buffer& to, uint64_t offset, std::span<const std::byte> from) = 0;
  /// Copies all ranges to the host and waits once for all of them: with a device behind a bus, a wait takes longer than
  /// copying a small result.
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

  /// Measures the device's memory read rate, its multiply-add rate and that of its matrix cores, where products are
  /// made by them, with small kernels. Takes about a second.
  virtual DevicePeak measure_peak() = 0;
  /// GFLOP/s of multiply-adds in one short run of about 30 ms, measured beside whatever else the device is doing now.
  /// The first call also compiles the kernel, so it takes longer.
  virtual double sample_fma_rate() = 0;
  /// GB/s (10^9 bytes) that copies of the host's bytes into the device's memory reach by themselves; takes some 100 ms.
  /// 0 where a device does not tell.
  virtual double measure_upload() { return 0; }

  /// Compiles the ops into commands. Compiling kernels and choosing their variants may take seconds, so `stop` is
  /// checked before each op; returns null once a stop is requested. Throws bad_input when an op's arguments do not fit
  /// each other.
  virtual std::unique_ptr<Commands> compile(std::span<const Op> ops, const std::stop_token& stop = {}) = 0;

  /// Takes the next of the device's kernels, slower and simpler ones, after those in use gave wrong results; info()
  /// says which. Weights, buffers and activations stay valid, commands compiled before must not be run again. False
  /// where there are none left.
  virtual bool fall_back() { return false; }

  /// Runs commands and waits for their end. A long list is submitted in parts, and `stop` is checked between them: once
  /// a stop is requested, the remaining parts are not run and false is returned. Otherwise returns true.
  virtual bool run(Commands& commands, const std::stop_token& stop = {}) = 0;
  /// Submits short commands without waiting for them. Commands run later and reads made later see their results. Call
  /// finish() before starting the same commands again and before writing a buffer that they read. A device that cannot
  /// run commands asynchronously runs them before it returns.
  virtual void start(Commands& commands) = 0;
  /// Waits for the end of all commands given to start().
  virtual void finish() = 0;
  /// Milliseconds that the last run() took by the device's own clock; 0 for a device without one.
  virtual double last_run_ms() const = 0;
  /// Milliseconds that the host has waited for the device since it was opened. The rest of what calls take is the
  /// host's own work, all of it on a device that computes in these calls.
  virtual double waited_ms() const { return 0; }
};

template <class T>
std::span<const std::byte> as_bytes_of(const std::vector<T>& v) {
  return std::as_bytes(std::span<const T>(v));
}

}  // namespace canopy
