#include "engine/cpu/cpu_device.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/machine.h"
#include "engine/base/numbers.h"
#include "engine/compute/backend.h"
#include "engine/compute/kv_slots.h"
#include "engine/compute/weights.h"
#include "engine/cpu/objects.h"
#include "engine/cpu/packing.h"
#include "engine/cpu/processor.h"
#include "engine/cpu/steps.h"
#include "engine/cpu/team.h"

namespace canopy {
namespace {

using namespace cpu;

// Changes with whatever changes bits, so that measurements of other kernels are not taken for those of these.
constexpr const char* kVersion = "cpu1";
constexpr uint32_t kMostThreads = 1024;
constexpr uint64_t kWeightAlignment = 64;
constexpr uint64_t kPeakBytes = 128 << 20;

struct CpuCommands : Commands {
  Plan plan;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The same on every start, and another on another processor or with other kernels.
std::string identity(const InstructionSet& set) {
  const std::string name = processor_name();
  return "cpu" + damage_hash_text(name) + "-" + damage_hash_text(std::string(kVersion) + set.kernels->name);
}

std::string driver_words(const InstructionSet& set, uint32_t threads) {
  return set.title + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

/// Such a device is told from the real one wherever its driver is told, also by what calibrations are kept for.
std::string emulation_words(double gb_s) {
  char text[64];
  std::snprintf(text, sizeof text, ", emulated memory of %g GB/s a thread", gb_s);
  return gb_s > 0 ? text : "";
}

class CpuDevice : public Device {
 public:
  CpuDevice(const InstructionSet& set, uint32_t threads, double memory_gb_s)
      : kernels_(*set.kernels), memory_gb_s_(memory_gb_s), team_(threads, PacedMemory(memory_gb_s)) {
    ledger_->at_start = system_memory().available;
    info_.name = processor_name();
    info_.type = "cpu";
    info_.driver = driver_words(set, threads) + emulation_words(memory_gb_s);
    info_.uuid = identity(set);
    info_.backend = "cpu";
    info_.kernels = std::string(kVersion) + " " + kernels_.name;
    info_.widest_tile = kernels_.tile;
    info_.rounds_to_16_bits = true;
  }

  const DeviceInfo& info() const override { return info_; }
  MemoryInfo memory() const override {
    const SystemMemory system = system_memory();
    return {system.total, ledger_->available()};
  }

  std::unique_ptr<Buffer> allocate(uint64_t bytes, std::string_view name) override {
    return std::make_unique<CpuBuffer>(ledger_, bytes, name);
  }
  std::unique_ptr<Buffer> part(Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) override {
    check_part(whole, offset, bytes, name);
    return std::make_unique<CpuBuffer>(dynamic_cast<CpuBuffer&>(whole), offset, bytes);
  }
  std::unique_ptr<Activations> allocate_activations(uint32_t max_width, uint32_t cols, std::string_view name) override {
    return std::make_unique<CpuActivations>(ledger_, max_width, cols, name);
  }
  std::unique_ptr<KvCache> allocate_kv(const KvShape& shape, uint32_t layers, std::string_view name) override {
    require(shape.slots > 0 && shape.kv_heads > 0 && shape.head_dim > 0, "A K/V cache needs slots, heads and columns.");
    require(shape.head_dim % 2 == 0, "The head dimension of a K/V cache is odd; rotations need pairs.");
    check_keeps_heads(shape.type, shape.head_dim);
    check_latent_values(shape);
    std::vector<std::unique_ptr<KvLayer>> all;
    for (uint32_t i = 0; i < layers; ++i) all.push_back(std::make_unique<CpuKv>(ledger_, shape, name));
    return std::make_unique<KvCache>(std::move(all));
  }

  std::unique_ptr<Weight> make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                      std::string_view name) override;
  void expect_weights(std::span<const WeightRequest> requests) override {
    block_.reset();
    expected_ = 0;
    for (const WeightRequest& request : requests) expected_ += stored_in_block(request.parts, request.layout);
  }
  uint64_t weight_bytes(std::span<const WeightPart> parts, WeightLayout layout) const override {
    return stored_in_block(parts, layout);
  }
  uint64_t activation_bytes(uint32_t max_width, uint32_t cols) const override {
    return CpuActivations::bytes_of(max_width, cols);
  }
  uint64_t attention_bytes(const KvShape& shape, uint32_t heads, uint32_t max_width,
                           uint32_t max_positions) const override {
    return cpu::attention_bytes(shape, heads, max_width, max_positions);
  }

  void write(Buffer& to, uint64_t offset, std::span<const std::byte> from) override {
    std::ranges::copy(from, range(to, offset, from.size()));
  }
  void read_all(std::span<const BufferRead> reads) override {
    for (const BufferRead& r : reads) std::copy_n(range(*r.from, r.offset, r.to.size()), r.to.size(), r.to.begin());
  }
  std::vector<float> read_activations(const Activations& activations, uint32_t width) override;
  void write_activations(Activations& activations, uint32_t width, std::span<const float> values) override;
  std::vector<float> read_kv(const KvLayer& layer, bool values, uint32_t first, uint32_t count) override;
  void write_kv(KvLayer& layer, bool values, uint32_t first, std::span<const float> data) override;

  DevicePeak measure_peak() override;
  double sample_fma_rate() override { return fma_rate(); }
  double measure_upload() override { return 0; }

  std::unique_ptr<Commands> compile(std::span<const Op> ops, const std::stop_token& stop) override {
    auto commands = std::make_unique<CpuCommands>();
    for (const Op& op : ops) {
      if (stop.stop_requested()) return nullptr;
      add_steps(op, kernels_, team_.threads(), commands->plan);
    }
    team_.reserve(commands->plan.scratch_floats, commands->plan.common_floats);
    return commands;
  }
  bool run(Commands& commands, const std::stop_token& stop) override {
    const auto start = std::chrono::steady_clock::now();
    const bool done = team_.run(dynamic_cast<CpuCommands&>(commands).plan.steps, stop);
    last_run_ms_ = seconds_since(start) * 1e3;
    waited_ms_ += last_run_ms_;
    return done;
  }
  void start(Commands& commands) override { run(commands, {}); }
  void finish() override {}
  double last_run_ms() const override { return last_run_ms_; }
  /// The calling thread computes, too, but as one of the device's.
  double waited_ms() const override { return waited_ms_; }

 private:
  static std::byte* range(const Buffer& buffer, uint64_t offset, uint64_t size) {
    require(offset % 4 == 0 && size % 4 == 0, "A copy's offset or size is no multiple of 4 bytes.");
    return bytes_of(&buffer, checked_add(offset, size, "end of a copy"), "A copied buffer") + offset;
  }
  static uint64_t stored_in_block(std::span<const WeightPart> parts, WeightLayout layout) {
    const WeightExtent extent = joined_extent(parts, layout);
    const uint64_t bytes = packed_bytes(packed_form(parts[0].type, extent.rows, extent.cols));
    return (bytes + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
  }
  double fma_rate();
  /// Runs a step of each thread by itself and returns the seconds it took.
  template <class Work>
  double seconds_of(Work work) {
    const std::vector<Step> steps = {{[&](Worker& worker) { work(worker.index()); }, false}};
    const auto start = std::chrono::steady_clock::now();
    team_.run(steps);
    return seconds_since(start);
  }

  const Kernels& kernels_;
  std::shared_ptr<Ledger> ledger_ = std::make_shared<Ledger>();
  DeviceInfo info_;
  double memory_gb_s_;  // emulated, of each thread; 0: not
  Team team_;
  std::shared_ptr<Memory> block_;  // in which the next weights lie
  uint64_t block_used_ = 0;
  uint64_t expected_ = 0;  // bytes of weights that are still to come, as far as is known
  double last_run_ms_ = 0, waited_ms_ = 0;
};

std::unique_ptr<Weight> CpuDevice::make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                               std::string_view name) {
  const uint64_t bytes = stored_in_block(parts, layout);
  for (const WeightPart& part : parts) {
    require(part.read || part.data.size() == part.rows * row_bytes(part),
            "The data of a part of " + std::string(name) + " has " + std::to_string(part.data.size()) +
                " bytes; needed: " + std::to_string(part.rows * row_bytes(part)) + ".");
  }
  const WeightExtent extent = joined_extent(parts, layout);
  const Packed form = packed_form(parts[0].type, extent.rows, extent.cols);
  if (!block_ || block_->bytes() - block_used_ < bytes) {
    // All that are expected together, so that small ones lie in large pages too.
    const bool several = expected_ > bytes;
    block_ =
        std::make_shared<Memory>(ledger_, std::max(bytes, expected_), several ? "the weights" : name, Pages::large);
    block_used_ = 0;
  }
  std::byte* to = block_->data() + block_used_;
  pack_bands(parts, layout, form, 0, form.bands, {reinterpret_cast<uint8_t*>(to), packed_bytes(form)});
  block_used_ += bytes;
  expected_ -= std::min(expected_, bytes);
  return std::make_unique<CpuWeight>(parts[0].type, form, block_, to);
}

std::vector<float> CpuDevice::read_activations(const Activations& activations, uint32_t width) {
  const RowsView rows = rows_of(&activations, width, activations.cols(), "read_activations: activations");
  std::vector<float> values;
  for (uint32_t w = 0; w < width; ++w) {
    const float* row = rows.values + size_t{w} * rows.blocks * kBlock;
    values.insert(values.end(), row, row + rows.cols);
  }
  return values;
}

void CpuDevice::write_activations(Activations& activations, uint32_t width, std::span<const float> values) {
  const RowsView rows = rows_of(&activations, width, activations.cols(), "write_activations: activations");
  require(values.size() == size_t{width} * rows.cols, "write_activations: the values are not [width, cols].");
  for (uint32_t w = 0; w < width; ++w) {
    for (uint32_t c = 0; c < rows.cols; c += kBlock) {
      float block[kBlock] = {};
      std::copy_n(values.data() + size_t{w} * rows.cols + c, std::min(kBlock, rows.cols - c), block);
      kernels_.write_block(rows, w, c / kBlock, block, block);
    }
  }
}

std::vector<float> CpuDevice::read_kv(const KvLayer& layer, bool values, uint32_t first, uint32_t count) {
  const auto& kv = dynamic_cast<const CpuKv&>(layer);
  const KvShape& shape = kv.shape();
  require(uint64_t{first} + count <= shape.slots, "read_kv: slots outside the cache.");
  std::vector<float> result(size_t{count} * shape.kv_heads * shape.head_dim);
  float* to = result.data();
  for (uint32_t slot = first; slot < first + count; ++slot) {
    for (uint32_t head = 0; head < shape.kv_heads; ++head, to += shape.head_dim) {
      if (values && !shape.is_latent()) {
        kv.load_value(slot, head, to);
      } else {
        kv.load_key(slot, head, 1, to);
      }
    }
  }
  return result;
}

void CpuDevice::write_kv(KvLayer& layer, bool values, uint32_t first, std::span<const float> data) {
  auto& kv = dynamic_cast<CpuKv&>(layer);
  const size_t size = size_t{kv.shape().kv_heads} * kv.shape().head_dim;
  require(data.size() % size == 0, "write_kv: the data are no whole number of slots.");
  require(first + data.size() / size <= kv.shape().slots, "write_kv: slots outside the cache.");
  for (size_t i = 0; i < data.size() / size; ++i) {
    const auto slot = static_cast<uint32_t>(first + i);
    if (values) {
      kv.store_values(kernels_, slot, data.data() + i * size);
    } else {
      kv.store_keys(kernels_, slot, data.data() + i * size);
    }
  }
}

double CpuDevice::fma_rate() {
  std::vector<float> kept(team_.threads());
  const double seconds = best_seconds(
      [&](uint32_t times) {
        return seconds_of([&](uint32_t thread) { kept[thread] = kernels_.multiply_add(uint64_t{times} * 10000); });
      },
      1u << 20);
  return 2.0 * 16 * kernels_.lanes * 10000 * team_.threads() / seconds * 1e-9;
}

DevicePeak CpuDevice::measure_peak() {
  DevicePeak peak;
  peak.fma_gflop_s = fma_rate();
  peak.plain_fma_gflop_s = peak.fma_gflop_s;
  const uint64_t bytes = std::min(kPeakBytes, ledger_->available() / 4) / team_.threads() / 256 * 256;
  if (bytes == 0) return peak;
  const Memory memory(ledger_, bytes * team_.threads(), "memory to read", Pages::large);
  std::memset(memory.data(), 1, memory.bytes());
  std::vector<float> kept(team_.threads());
  const double seconds = best_seconds(
      [&](uint32_t times) {
        return seconds_of([&](uint32_t thread) {
          for (uint32_t i = 0; i < times; ++i) {
            kept[thread] = kernels_.read_memory(memory.data() + thread * bytes, bytes);
          }
        });
      },
      64);
  peak.read_gb_s = static_cast<double>(memory.bytes()) / seconds * 1e-9;
  if (memory_gb_s_ > 0) peak.read_gb_s = std::min(peak.read_gb_s, memory_gb_s_ * team_.threads());
  return peak;
}

FoundDevices find_processor() {
  const InstructionSet set = choose_set("auto");
  FoundDevice device;
  device.backend = "cpu";
  device.name = processor_name();
  device.type = "cpu";
  device.about = driver_words(set, usable_cores());
  device.usable = true;
  device.uuid = identity(set);
  device.driver = device.about;
  device.memory_bytes = system_memory().total;
  device.words = device.about;
  device.details = device.about;
  nlohmann::ordered_json sets = nlohmann::ordered_json::array();
  for (const InstructionSet& each : instruction_sets()) {
    nlohmann::ordered_json entry = {{"name", each.kernels->name}, {"usable", each.missing.empty()}};
    if (!each.missing.empty()) {
      entry["reason"] = "The processor has no " + each.missing + ".";
      device.details += "\nNo " + each.missing + ": kernels " + each.kernels->name + " cannot run.";
    }
    sets.push_back(std::move(entry));
  }
  device.facts = {{"name", device.name},       {"type", device.type},          {"usable", true},
                  {"uuid", device.uuid},       {"driver", device.driver},      {"memory_bytes", device.memory_bytes},
                  {"threads", usable_cores()}, {"kernels", set.kernels->name}, {"instruction_sets", std::move(sets)}};
  return {{std::move(device)}, "", ""};
}

/// As many bands at a time as there is room for.
void pack_weight(std::span<const WeightPart> parts, WeightLayout layout, std::span<uint32_t> scratch) {
  const WeightExtent extent = joined_extent(parts, layout);
  const Packed form = packed_form(parts[0].type, extent.rows, extent.cols);
  const std::span<uint8_t> room(reinterpret_cast<uint8_t*>(scratch.data()), scratch.size_bytes());
  const auto most = static_cast<uint32_t>(std::max<uint64_t>(room.size() / form.band_bytes, 1));
  for (uint32_t first = 0; first < form.bands; first += most) {
    const uint32_t end = std::min(first + most, form.bands);
    const std::span<uint8_t> to = room.first((end - first) * form.band_bytes);
    std::ranges::fill(to, uint8_t{0});
    pack_bands(parts, layout, form, first, end, to);
  }
}

}  // namespace

std::unique_ptr<Device> open_cpu_device(const DeviceSettings& options) {
  const InstructionSet set = choose_set(options.kernels);
  if (options.threads > kMostThreads) {
    throw bad_input("The processor cannot compute with " + std::to_string(options.threads) +
                    " threads; allowed: 1 to " + std::to_string(kMostThreads) + ".");
  }
  const std::vector<InstructionSet> sets = instruction_sets();
  if (set.kernels == &kernels_portable && sets.size() > 1) {
    log_warning("The processor computes with portable kernels; those of " + sets[1].title +
                " are several times as fast.");
  }
  return std::make_unique<CpuDevice>(set, options.threads > 0 ? options.threads : usable_cores(), options.memory_gb_s);
}

Backend cpu_backend() {
  std::vector<std::string> names;
  for (const InstructionSet& set : instruction_sets()) names.emplace_back(set.kernels->name);
  const auto open = [](uint32_t, const DeviceSettings& settings) { return open_cpu_device(settings); };
  return {"cpu", "CPU", names, find_processor, open, pack_weight};
}

}  // namespace canopy
