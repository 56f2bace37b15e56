#pragma once
// A device that allocates nothing and computes nothing: passes are recorded over it, to be listed and priced.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/compute/device.h"

namespace canopy::predict {

/// Buffers, weights and caches have their sizes and no memory, and data that is written is dropped. Running, reading
/// and measuring throw bad_input.
class DryDevice final : public Device {
 public:
  /// `available` bytes of memory, as far as plans are concerned; what is allocated takes none of it.
  explicit DryDevice(uint64_t available = uint64_t{1} << 62);

  const DeviceInfo& info() const override { return info_; }
  MemoryInfo memory() const override;
  std::unique_ptr<Buffer> allocate(uint64_t bytes, std::string_view name) override;
  std::unique_ptr<Buffer> part(Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) override;
  std::unique_ptr<Activations> allocate_activations(uint32_t max_width, uint32_t cols, std::string_view name) override;
  std::unique_ptr<KvCache> allocate_kv(const KvShape& shape, uint32_t layers, std::string_view name) override;
  std::unique_ptr<Weight> make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                      std::string_view name) override;
  uint64_t weight_bytes(std::span<const WeightPart> parts, WeightLayout layout) const override;
  uint64_t activation_bytes(uint32_t max_width, uint32_t cols) const override;
  void write(Buffer& to, uint64_t offset, std::span<const std::byte> from) override;
  void read_all(std::span<const BufferRead> reads) override;
  std::vector<float> read_activations(const Activations& activations, uint32_t width) override;
  void write_activations(Activations& activations, uint32_t width, std::span<const float> values) override;
  std::vector<float> read_kv(const KvLayer& layer, bool values, uint32_t first, uint32_t count) override;
  void write_kv(KvLayer& layer, bool values, uint32_t first, std::span<const float> data) override;
  DevicePeak measure_peak() override;
  double sample_fma_rate() override;
  std::unique_ptr<Commands> compile(std::span<const Op> ops, const std::stop_token& stop) override;
  bool run(Commands& commands, const std::stop_token& stop) override;
  void start(Commands& commands) override;
  void finish() override {}
  double last_run_ms() const override { return 0; }

 private:
  uint64_t available_;
  DeviceInfo info_;
};

}  // namespace canopy::predict
