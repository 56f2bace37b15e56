#pragma once
// What a CUDA device owns behind the types of engine/compute, and how weights come to lie in its memory.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda_backend/context.h"
#include "cuda_backend/kernels/params.h"
#include "cuda_backend/weight_tiles.h"
#include "engine/base/error.h"
#include "engine/compute/kv_slots.h"
#include "engine/compute/weights.h"

namespace canopy::cuda {

// What a CudaDevice owns, behind the types of engine/compute.

struct CudaBuffer : Buffer {
  CudaBuffer(std::shared_ptr<Memory> whole, uint64_t first, uint64_t size)
      : memory(std::move(whole)), offset(first), bytes_(size) {}
  uint64_t bytes() const override { return bytes_; }
  Address address() const { return memory->address() + offset; }

  std::shared_ptr<Memory> memory;
  uint64_t offset;

 private:
  uint64_t bytes_;
};

struct CudaWeight : Weight {
  CudaWeight(WeightType type, const TileLayout& layout) : Weight(type, layout.rows, layout.cols), tiles(layout) {}
  TileLayout tiles;
  MemoryShare memory;

  WeightParams params() const { return tiles.params(memory.address()); }
};

struct CudaActivations : Activations {
  using Activations::Activations;
  std::unique_ptr<Memory> values, squares, halves, units;  // units: of the rows, then the next ones

  static uint32_t stride_of(uint32_t cols) { return (cols + kStep - 1) / kStep * kStep; }
  static uint32_t blocks_of(uint32_t cols) { return (cols + kSquareBlock - 1) / kSquareBlock; }
  // Bytes of rows.
  static uint64_t value_bytes(uint64_t rows, uint32_t cols) { return rows * stride_of(cols) * 4; }
  static uint64_t square_bytes(uint64_t rows, uint32_t cols) { return rows * blocks_of(cols) * 4; }
  static uint64_t half_bytes(uint64_t rows, uint32_t cols) { return rows * stride_of(cols) * 2; }
  static uint64_t unit_bytes(uint64_t rows) { return rows * 2 * 4; }
  ActivationsParams params() const {
    return {values->address(),
            squares->address(),
            halves->address(),
            units->address(),
            units->address() + max_width() * uint64_t{4},
            cols(),
            stride_of(cols()),
            blocks_of(cols())};
  }
};

struct CudaKv : KvLayer {
  KvShape shape;
  std::unique_ptr<Memory> keys, values;  // no values of a latent cache

  const Memory& plane(bool of_values) const { return of_values && !shape.is_latent() ? *values : *keys; }
  CacheParams params() const {
    return {keys->address(),
            plane(true).address(),
            static_cast<uint32_t>(slot_bytes(shape) / 4),
            static_cast<uint32_t>(shape.type),
            shape.kv_heads,
            shape.head_dim};
  }
};

/// The object as this backend's; throws bad_input, naming it, for null or another backend's.
template <class Own, class T>
const Own& own(const T* object, std::string_view what) {
  const auto* found = dynamic_cast<const Own*>(object);
  if (found == nullptr) {
    throw bad_input(std::string(what) + (object == nullptr ? " is missing." : " belongs to another device."));
  }
  return *found;
}

// Memory for the weights of a load in few allocations.

/// Knows beforehand what will be asked for, so that a block is as large as what comes to lie in it. A block is freed
/// when the last weight in it is gone: the arena itself holds nothing.
class WeightArena {
 public:
  static constexpr uint64_t kMostBlockBytes = uint64_t{1} << 30;
  static constexpr uint64_t kAlignment = 256;

  /// Weights of these bytes, in this order. The context must outlive it.
  WeightArena(Context& context, std::vector<uint64_t> expected) : context_(context), expected_(std::move(expected)) {}

  /// Memory with undefined contents. What was expected lies in blocks of at most kMostBlockBytes (a larger weight in
  /// one of its own), or in smaller ones where so much is not to be had at once; a weight of another size than expected
  /// gets memory of its own. Throws what Memory throws.
  MemoryShare create(uint64_t bytes, std::string_view name);

 private:
  std::shared_ptr<Memory> allocate(uint64_t bytes, std::string_view name) const;
  std::shared_ptr<Memory> next_block(std::string_view name);

  Context& context_;
  std::vector<uint64_t> expected_;
  size_t next_ = 0;  // of expected_
  uint64_t most_ = kMostBlockBytes;
  std::weak_ptr<Memory> block_;
  uint64_t taken_ = 0;  // bytes of it
};

// Weights on their way to the GPU: laid out by all cores in pinned memory, from which it copies meanwhile.

/// Copies go through a stream of their own. What is started on the device after submit() waits for them.
class PinnedSlots : public UploadSlots {
 public:
  /// The context must outlive it. Throws what Memory and Context::check throw.
  PinnedSlots(Context& context, uint64_t slot_bytes);
  /// Waits for copies that still go on.
  ~PinnedSlots() override;
  PinnedSlots(const PinnedSlots&) = delete;
  PinnedSlots& operator=(const PinnedSlots&) = delete;

  uint64_t slot_bytes() const { return slots_[0].memory->bytes(); }
  std::span<std::byte> slot(uint64_t index) const override;
  bool is_free(uint64_t index) override;
  void wait_until_free(uint64_t index) override;
  /// Starts to copy the slot's first bytes to memory of the device.
  void submit(uint64_t index, Address to, uint64_t bytes);

 private:
  struct Slot {
    std::unique_ptr<Memory> memory;
    EventHandle copied = nullptr;
    bool submitted = false;
  };
  void close() noexcept;

  Context& context_;
  std::array<Slot, kUploadSlots> slots_;
};

class WeightUpload {
 public:
  explicit WeightUpload(Context& context) : context_(context) {}

  /// What Device::expect_weights says.
  void expect(std::span<const WeightRequest> requests);
  /// What Device::make_weight says.
  std::unique_ptr<CudaWeight> make(std::span<const WeightPart> parts, WeightLayout layout, std::string_view name);

 private:
  /// Returns the largest scale in its tiles.
  float fill(const CudaWeight& weight, std::span<const WeightPart> parts, WeightLayout layout);

  Context& context_;
  std::unique_ptr<WeightArena> arena_;  // during a load
  std::unique_ptr<PinnedSlots> slots_;
  uint64_t next_slot_ = 0;
};

/// GB/s (10^9) of copies out of pinned slots that are filled already. Takes some 100 ms and 64 MiB of device memory.
double measure_upload(Context& context);

}  // namespace canopy::cuda
