#pragma once
// A device that passes everything on to another one; tests override the calls that should fail.

#include <memory>
#include <stop_token>
#include <utility>

#include "engine/compute/device.h"

namespace canopy::test {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}
  /// Over a device that somebody else owns and that outlives this one.
  explicit ForwardingDevice(Device& inner) : inner_(std::shared_ptr<void>(), &inner) {}

  const DeviceInfo& info() const override { return inner_->info(); }
  MemoryInfo memory() const override { return inner_->memory(); }
  std::unique_ptr<Buffer> allocate(uint64_t bytes, std::string_view name) override {
    return inner_->allocate(bytes, name);
  }
  std::unique_ptr<Buffer> allocate_exchanged(uint64_t bytes, HostUse use, std::string_view name) override {
    return inner_->allocate_exchanged(bytes, use, name);
  }
  std::unique_ptr<Buffer> part(Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) override {
    return inner_->part(whole, offset, bytes, name);
  }
  std::unique_ptr<Activations> allocate_activations(uint32_t max_width, uint32_t cols, std::string_view name) override {
    return inner_->allocate_activations(max_width, cols, name);
  }
  std::unique_ptr<KvCache> allocate_kv(const KvShape& shape, uint32_t layers, std::string_view name) override {
    return inner_->allocate_kv(shape, layers, name);
  }
  std::unique_ptr<Weight> make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                      std::string_view name) override {
    return inner_->make_weight(parts, layout, name);
  }
  void expect_weights(std::span<const WeightRequest> requests) override { inner_->expect_weights(requests); }
  uint64_t weight_bytes(std::span<const WeightPart> parts, WeightLayout layout) const override {
    return inner_->weight_bytes(parts, layout);
  }
  uint64_t activation_bytes(uint32_t max_width, uint32_t cols) const override {
    return inner_->activation_bytes(max_width, cols);
  }
  uint64_t attention_bytes(const KvShape& shape, uint32_t heads, uint32_t max_width,
                           uint32_t max_positions) const override {
    return inner_->attention_bytes(shape, heads, max_width, max_positions);
  }
  void write(Buffer& to, uint64_t offset, std::span<const std::byte> from) override { inner_->write(to, offset, from); }
  void read_all(std::span<const BufferRead> reads) override { inner_->read_all(reads); }
  std::vector<float> read_activations(const Activations& activations, uint32_t width) override {
    return inner_->read_activations(activations, width);
  }
  void write_activations(Activations& activations, uint32_t width, std::span<const float> values) override {
    inner_->write_activations(activations, width, values);
  }
  std::vector<float> read_kv(const KvLayer& layer, bool values, uint32_t first, uint32_t count) override {
    return inner_->read_kv(layer, values, first, count);
  }
  void write_kv(KvLayer& layer, bool values, uint32_t first, std::span<const float> data) override {
    inner_->write_kv(layer, values, first, data);
  }
  DevicePeak measure_peak() override { return inner_->measure_peak(); }
  double measure_upload() override { return inner_->measure_upload(); }
  double sample_fma_rate() override { return inner_->sample_fma_rate(); }
  std::unique_ptr<Commands> compile(std::span<const Op> ops, const std::stop_token& stop) override {
    return inner_->compile(ops, stop);
  }
  bool fall_back() override { return inner_->fall_back(); }
  bool run(Commands& commands, const std::stop_token& stop) override { return inner_->run(commands, stop); }
  void start(Commands& commands) override { inner_->start(commands); }
  void finish() override { inner_->finish(); }
  double last_run_ms() const override { return inner_->last_run_ms(); }
  double waited_ms() const override { return inner_->waited_ms(); }

 private:
  std::shared_ptr<Device> inner_;
};

/// A token of a stop that was requested before.
inline std::stop_token stopped_before() {
  std::stop_source source;
  source.request_stop();
  return source.get_token();
}

}  // namespace canopy::test
