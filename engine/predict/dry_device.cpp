#include "engine/predict/dry_device.h"

#include <string>

#include "engine/base/checked.h"
#include "engine/base/error.h"

namespace canopy::predict {
namespace {

class DryBuffer final : public Buffer {
 public:
  explicit DryBuffer(uint64_t bytes) : bytes_(bytes) {}
  uint64_t bytes() const override { return bytes_; }

 private:
  uint64_t bytes_;
};

[[noreturn]] void refuse(const char* wish) {
  throw bad_input(std::string("A device that only records was asked to ") + wish +
                  "; it has no memory and no kernels.");
}

}  // namespace

DryDevice::DryDevice(uint64_t available) : available_(available) {
  info_.name = "recording only";
  info_.type = "reference";
}

MemoryInfo DryDevice::memory() const {
  return {available_, available_};
}

std::unique_ptr<Buffer> DryDevice::allocate(uint64_t bytes, std::string_view) {
  return std::make_unique<DryBuffer>(bytes);
}

std::unique_ptr<Buffer> DryDevice::part(Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) {
  check_part(whole, offset, bytes, name);
  return std::make_unique<DryBuffer>(bytes);
}

std::unique_ptr<Activations> DryDevice::allocate_activations(uint32_t max_width, uint32_t cols, std::string_view) {
  return std::make_unique<Activations>(max_width, cols);
}

std::unique_ptr<KvCache> DryDevice::allocate_kv(const KvShape&, uint32_t layers, std::string_view) {
  std::vector<std::unique_ptr<KvLayer>> all(layers);
  for (std::unique_ptr<KvLayer>& layer : all) layer = std::make_unique<KvLayer>();
  return std::make_unique<KvCache>(std::move(all));
}

std::unique_ptr<Weight> DryDevice::make_weight(std::span<const WeightPart> parts, WeightLayout, std::string_view name) {
  if (parts.empty()) throw bad_input("The weight \"" + std::string(name) + "\" has no parts; one or more are allowed.");
  uint64_t rows = 0;
  for (const WeightPart& part : parts) rows += part.rows;
  return std::make_unique<Weight>(parts[0].type, checked_cast<uint32_t>(rows, "number of rows of " + std::string(name)),
                                  parts[0].cols);
}

uint64_t DryDevice::weight_bytes(std::span<const WeightPart> parts, WeightLayout) const {
  uint64_t bytes = 0;
  for (const WeightPart& part : parts) bytes += row_bytes(part) * part.rows;
  return bytes;
}

uint64_t DryDevice::activation_bytes(uint32_t max_width, uint32_t cols) const {
  return uint64_t{max_width} * cols * sizeof(float);
}

void DryDevice::write(Buffer&, uint64_t, std::span<const std::byte>) {}
void DryDevice::write_activations(Activations&, uint32_t, std::span<const float>) {}
void DryDevice::write_kv(KvLayer&, bool, uint32_t, std::span<const float>) {}

void DryDevice::read_all(std::span<const BufferRead>) {
  refuse("read a buffer");
}
std::vector<float> DryDevice::read_activations(const Activations&, uint32_t) {
  refuse("read activations");
}
std::vector<float> DryDevice::read_kv(const KvLayer&, bool, uint32_t, uint32_t) {
  refuse("read K/V");
}
DevicePeak DryDevice::measure_peak() {
  refuse("measure its rates");
}
double DryDevice::sample_fma_rate() {
  refuse("measure its rates");
}
std::unique_ptr<Commands> DryDevice::compile(std::span<const Op>, const std::stop_token&) {
  refuse("compile ops");
}
bool DryDevice::run(Commands&, const std::stop_token&) {
  refuse("run commands");
}
void DryDevice::start(Commands&) {
  refuse("run commands");
}

}  // namespace canopy::predict
