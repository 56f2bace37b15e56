#include "cuda_backend/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "cuda_backend/attention_plan.h"
#include "cuda_backend/objects.h"
#include "cuda_backend/peak.h"
#include "cuda_backend/record.h"
#include "cuda_backend/weight_upload.h"
#include "engine/base/damage_hash.h"
#include "engine/base/error.h"
#include "engine/base/half.h"

namespace canopy {
namespace {

using namespace cuda;

struct CudaCommands : Commands {
  std::vector<std::unique_ptr<Memory>> tables;
  std::unique_ptr<Graph> graph;
};

class CudaDevice : public Device {
 public:
  explicit CudaDevice(const CudaDeviceOptions& options) : context_(options.api, options.facts, options.kernels) {
    const DeviceFacts& facts = options.facts;
    info_.name = facts.name;
    info_.type = device_type(facts);
    info_.driver = facts.driver;
    info_.uuid = device_identity(facts);
    info_.backend = "cuda";
    info_.pci_address = facts.pci_address;
    const std::string_view kernels(reinterpret_cast<const char*>(options.kernels.data()), options.kernels.size());
    limits_ = {facts.architecture, facts.shared_bytes, facts.multiprocessors, has_warpgroups(facts)};
    version_ = "cuda " + damage_hash_text(kernels);
    name_kernels();
    info_.adds_in_halves = cuda::adds_slowly(facts.architecture);
    info_.draws_tokens = true;
    info_.widest_tile = 64;
    info_.width_buckets = {1, 8, 16, 32, 64};
  }

  const DeviceInfo& info() const override { return info_; }
  /// To products of each warp by itself, from those of warpgroups.
  bool fall_back() override {
    if (!limits_.warpgroups) return false;
    limits_.warpgroups = false;
    name_kernels();
    return true;
  }
  MemoryInfo memory() const override { return context_.memory(); }

  std::unique_ptr<Buffer> allocate(uint64_t bytes, std::string_view name) override {
    return std::make_unique<CudaBuffer>(std::make_shared<Memory>(context_, words(bytes), false, name), 0, bytes);
  }
  /// What the host writes for every pass lies in pinned memory, from which each recording brings what it reads into the
  /// device's; what the host reads, the device writes to the host's.
  std::unique_ptr<Buffer> allocate_exchanged(uint64_t bytes, HostUse use, std::string_view name) override {
    const uint64_t stored = (std::max<uint64_t>(bytes, 1) + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
    auto memory = std::make_shared<Memory>(context_, stored, use == HostUse::reads, name);
    if (use == HostUse::writes) memory->source = std::make_unique<Memory>(context_, stored, true, name);
    return std::make_unique<CudaBuffer>(std::move(memory), 0, bytes);
  }
  std::unique_ptr<Buffer> part(Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) override {
    check_part(whole, offset, bytes, name);
    const auto& of = own<CudaBuffer>(&whole, "A buffer");
    return std::make_unique<CudaBuffer>(of.memory, of.offset + offset, bytes);
  }
  std::unique_ptr<Activations> allocate_activations(uint32_t max_width, uint32_t cols, std::string_view name) override {
    if (max_width == 0 || cols == 0) throw bad_input("Activations need at least one row and one column.");
    auto made = std::make_unique<CudaActivations>(max_width, cols);
    const auto memory = [&](uint64_t bytes) { return std::make_unique<Memory>(context_, bytes, false, name); };
    made->values = memory(CudaActivations::value_bytes(max_width, cols));
    made->squares = memory(CudaActivations::square_bytes(max_width, cols));
    made->halves = memory(CudaActivations::half_bytes(max_width, cols));
    made->units = memory(CudaActivations::unit_bytes(max_width));
    return made;
  }
  std::unique_ptr<KvCache> allocate_kv(const KvShape& shape, uint32_t layers, std::string_view name) override {
    if (shape.slots == 0 || shape.kv_heads == 0 || shape.head_dim == 0 || shape.head_dim % 2 != 0) {
      throw bad_input("A K/V cache needs slots, heads, and an even number of elements in a head.");
    }
    check_keeps_heads(shape.type, shape.head_dim);
    std::vector<std::unique_ptr<KvLayer>> all;
    for (uint32_t i = 0; i < layers; ++i) {
      auto layer = std::make_unique<CudaKv>();
      layer->shape = shape;
      layer->keys = std::make_unique<Memory>(context_, shape.slots * slot_bytes(shape), false, name);
      layer->values = std::make_unique<Memory>(context_, shape.slots * slot_bytes(shape), false, name);
      all.push_back(std::move(layer));
    }
    return std::make_unique<KvCache>(std::move(all));
  }
  std::unique_ptr<Weight> make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                      std::string_view name) override {
    return weights_.make(parts, layout, name);
  }
  void expect_weights(std::span<const WeightRequest> requests) override { weights_.expect(requests); }
  uint64_t weight_bytes(std::span<const WeightPart> parts, WeightLayout layout) const override {
    return tile_layout(parts, layout).bytes();
  }
  uint64_t activation_bytes(uint32_t max_width, uint32_t cols) const override {
    return CudaActivations::value_bytes(max_width, cols) + CudaActivations::square_bytes(max_width, cols) +
           CudaActivations::half_bytes(max_width, cols) + CudaActivations::unit_bytes(max_width);
  }
  uint64_t attention_bytes(const KvShape& shape, uint32_t heads, uint32_t max_width,
                           uint32_t max_positions) const override {
    // Where there is a window, rows have more chunks of their own.
    const AttentionExtent extent{shape, heads, max_positions, max_positions, true};
    return attention_scratch_bytes(extent, std::min(max_width, attention_rows_at_a_time(extent)));
  }

  void write(Buffer& to, uint64_t offset, std::span<const std::byte> from) override;
  void read_all(std::span<const BufferRead> reads) override;
  std::vector<float> read_activations(const Activations& activations, uint32_t width) override;
  void write_activations(Activations& activations, uint32_t width, std::span<const float> values) override;
  std::vector<float> read_kv(const KvLayer& layer, bool values, uint32_t first, uint32_t count) override;
  void write_kv(KvLayer& layer, bool values, uint32_t first, std::span<const float> data) override;

  DevicePeak measure_peak() override { return cuda::measure_peak(context_, limits_.warpgroups); }
  double sample_fma_rate() override {
    if (!fma_probe_) fma_probe_.emplace(context_);
    return fma_probe_->run();
  }
  double measure_upload() override { return cuda::measure_upload(context_); }

  std::unique_ptr<Commands> compile(std::span<const Op> ops, const std::stop_token& stop) override {
    auto commands = std::make_unique<CudaCommands>();
    CallRecorder recorder(context_, limits_, partials_, counters_, head_counters_, attention_, moves_, groups_,
                          commands->tables);
    for (const Op& op : ops) {
      if (stop.stop_requested()) return nullptr;
      recorder.record(op);
    }
    std::vector<KernelCall> calls = uploads_of(recorder.inputs);
    calls.insert(calls.end(), std::make_move_iterator(recorder.calls.begin()),
                 std::make_move_iterator(recorder.calls.end()));
    // All kernels wait by themselves (kernels/nvcc/gpu.h). The first comes after an event, not after a kernel.
    for (size_t i = 1; i < calls.size(); ++i) calls[i].overlaps = true;
    commands->graph = std::make_unique<Graph>(context_, calls);
    return commands;
  }
  bool run(Commands& commands, const std::stop_token& stop) override {
    if (stop.stop_requested()) return false;
    start(commands);
    finish();
    return true;
  }
  void start(Commands& commands) override { context_.start(*static_cast<CudaCommands&>(commands).graph); }
  void finish() override { context_.finish(); }
  double last_run_ms() const override { return context_.last_ms(); }
  double waited_ms() const override { return context_.waited_ms(); }

 private:
  void name_kernels() { info_.kernels = version_ + (limits_.warpgroups ? " warpgroups" : " matrix"); }

  static constexpr uint64_t kUnitBytes = 16;
  static uint64_t words(uint64_t bytes) { return (bytes + 3) / 4 * 4; }
  static Address range(const Buffer& buffer, uint64_t offset, uint64_t bytes) {
    const auto& found = own<CudaBuffer>(&buffer, "A buffer");
    if (offset % 4 != 0 || bytes % 4 != 0 || offset + bytes > found.bytes()) {
      throw bad_input("A copy of " + std::to_string(bytes) + " bytes from " + std::to_string(offset) +
                      " on does not fit into " + std::to_string(found.bytes()) + " bytes, or is no multiple of 4.");
    }
    return found.address() + offset;
  }

  static std::vector<KernelCall> uploads_of(std::span<const CudaBuffer* const> inputs);

  Context context_;
  GpuLimits limits_;
  std::string version_;
  DeviceInfo info_;
  WeightUpload weights_{context_};
  std::optional<FmaProbe> fma_probe_;
  Scratch partials_{context_}, counters_{context_}, head_counters_{context_}, attention_{context_}, moves_{context_},
      groups_{context_};
};

/// Calls that bring what a recording reads of the host's memory into the device's: of each allocation one run of units.
std::vector<KernelCall> CudaDevice::uploads_of(std::span<const CudaBuffer* const> inputs) {
  std::map<const Memory*, std::pair<uint64_t, uint64_t>> ranges;  // in units
  for (const CudaBuffer* input : inputs) {
    const uint64_t first = input->offset / kUnitBytes;
    const uint64_t end = (input->offset + input->bytes() + kUnitBytes - 1) / kUnitBytes;
    auto& range = ranges.try_emplace(input->memory.get(), first, end).first->second;
    range = {std::min(range.first, first), std::max(range.second, end)};
  }
  std::vector<KernelCall> calls;
  for (const auto& [memory, range] : ranges) {
    UploadParams p;
    p.from = memory->source->address() + range.first * kUnitBytes;
    p.to = memory->address() + range.first * kUnitBytes;
    p.units = static_cast<uint32_t>(range.second - range.first);
    calls.push_back(call_of("upload", p, 256, (p.units + 255) / 256));
  }
  return calls;
}

void CudaDevice::write(Buffer& to, uint64_t offset, std::span<const std::byte> from) {
  const Address address = range(to, offset, from.size());
  const Memory& memory = *own<CudaBuffer>(&to, "A buffer").memory;
  const Memory* const seen = memory.source != nullptr ? memory.source.get() : &memory;
  if (seen->host() != nullptr) {
    std::memcpy(seen->host() + (address - memory.address()), from.data(), from.size());
  } else {
    context_.write(address, from);
  }
}

void CudaDevice::read_all(std::span<const BufferRead> reads) {
  std::vector<DeviceRead> of_device;
  for (const BufferRead& each : reads) {
    const Address from = range(*each.from, each.offset, each.to.size());
    if (own<CudaBuffer>(each.from, "A buffer").memory->host() == nullptr) of_device.push_back({from, each.to});
  }
  context_.read(of_device);  // waits
  for (const BufferRead& each : reads) {
    const auto& buffer = own<CudaBuffer>(each.from, "A buffer");
    const std::byte* host = buffer.memory->host();
    if (host != nullptr) std::memcpy(each.to.data(), host + buffer.offset + each.offset, each.to.size());
  }
}

std::vector<float> CudaDevice::read_activations(const Activations& activations, uint32_t width) {
  const auto& own_activations = own<CudaActivations>(&activations, "Activations");
  if (width > activations.max_width()) throw bad_input("Activations have fewer rows than are to be read.");
  const uint32_t stride = CudaActivations::stride_of(activations.cols());
  std::vector<float> padded(size_t{width} * stride), values;
  context_.read(own_activations.values->address(), std::as_writable_bytes(std::span(padded)));
  for (uint32_t w = 0; w < width; ++w) {
    values.insert(values.end(), padded.begin() + size_t{w} * stride,
                  padded.begin() + size_t{w} * stride + activations.cols());
  }
  return values;
}

void CudaDevice::write_activations(Activations& activations, uint32_t width, std::span<const float> values) {
  const auto& own_activations = own<CudaActivations>(&activations, "Activations");
  const uint32_t cols = activations.cols(), stride = CudaActivations::stride_of(cols);
  const uint32_t blocks = CudaActivations::blocks_of(cols);
  if (width > activations.max_width() || values.size() != size_t{width} * cols) {
    throw bad_input("What is written to activations has another shape than they have.");
  }
  std::vector<float> padded(size_t{width} * stride, 0.0f), squares(size_t{width} * blocks, 0.0f), units(width);
  std::vector<uint16_t> halves(size_t{width} * stride, 0);
  for (uint32_t w = 0; w < width; ++w) {
    const std::span<const float> row = values.subspan(size_t{w} * cols, cols);
    std::ranges::copy(row, padded.begin() + size_t{w} * stride);
    float all = 0;
    for (uint32_t k = 0; k < cols; ++k) {
      squares[size_t{w} * blocks + k / kSquareBlock] += row[k] * row[k];
      all += row[k] * row[k];
    }
    units[w] = unit_of_squares(all / static_cast<float>(cols));
    for (uint32_t k = 0; k < cols; ++k) {
      halves[size_t{w} * stride + half_place(k)] = f32_to_f16(row[k] * inverse_of_unit(units[w]));
    }
  }
  context_.write(own_activations.values->address(), as_bytes_of(padded));
  context_.write(own_activations.squares->address(), as_bytes_of(squares));
  context_.write(own_activations.halves->address(), as_bytes_of(halves));
  context_.write(own_activations.units->address(), as_bytes_of(units));
}

std::vector<float> CudaDevice::read_kv(const KvLayer& layer, bool values, uint32_t first, uint32_t count) {
  const auto& kv = own<CudaKv>(&layer, "The K/V cache");
  if (uint64_t{first} + count > kv.shape.slots) throw bad_input("Slots beyond the K/V cache's are to be read.");
  std::vector<std::byte> bytes(count * slot_bytes(kv.shape));
  context_.read((values ? *kv.values : *kv.keys).address() + first * slot_bytes(kv.shape), bytes);
  return decode_slots(kv.shape, bytes);
}

void CudaDevice::write_kv(KvLayer& layer, bool values, uint32_t first, std::span<const float> data) {
  const auto& kv = own<CudaKv>(&layer, "The K/V cache");
  const std::vector<std::byte> bytes = encode_slots(kv.shape, data);
  if (first * slot_bytes(kv.shape) + bytes.size() > kv.shape.slots * slot_bytes(kv.shape)) {
    throw bad_input("Slots beyond the K/V cache's are to be written.");
  }
  context_.write((values ? *kv.values : *kv.keys).address() + first * slot_bytes(kv.shape), bytes);
}

}  // namespace

std::unique_ptr<Device> open_cuda_device(const CudaDeviceOptions& options) {
  return std::make_unique<CudaDevice>(options);
}

}  // namespace canopy
