#pragma once
// Weights on their way to the GPU: laid out by all cores in pinned memory, from which it copies meanwhile.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "cuda_backend/context.h"
#include "cuda_backend/objects.h"
#include "cuda_backend/weight_arena.h"
#include "engine/compute/upload_stream.h"

namespace canopy::cuda {

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
