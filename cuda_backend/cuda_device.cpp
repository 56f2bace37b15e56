#include "cuda_backend/cuda_device.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cuda_backend/context.h"
#include "cuda_backend/kernels/params.h"
#include "cuda_backend/objects.h"
#include "cuda_backend/plan.h"
#include "cuda_backend/record.h"
#include "cuda_backend/weight_tiles.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/machine.h"
#include "engine/base/numbers.h"
#include "engine/compute/types.h"

namespace canopy::cuda {
namespace {

// Measures what a GPU reaches in reading memory, in multiply-adds and on tensor cores, which its kernels are compared
// with.

/// The fastest of several multiply-add kernels, prepared. Takes half a second to make; the context must outlive it.
class FmaProbe {
 public:
  explicit FmaProbe(Context& context);

  /// GFLOP/s of the best run while choosing the kernel.
  double best() const { return best_; }
  /// GFLOP/s of a loop over 32 sums, not unrolled.
  double plain() const { return plain_; }
  /// GFLOP/s of one more run of some 30 ms: what the GPU reaches at this moment.
  double run();

 private:
  double try_kernel(const std::string& kernel, uint32_t fmas);

  Context& context_;
  Memory out_;
  std::unique_ptr<Graph> graph_;
  double flops_ = 0;  // of the graph
  double best_ = 0, plain_ = 0;
};

constexpr uint32_t kThreads = 256;
constexpr uint32_t kBlocksOfAMultiprocessor = 16;  // twice what one holds at once
constexpr uint64_t kReadBlockBytes = uint64_t{kPeakReadUnits} * kThreads * 16;

double seconds_of(Context& context, const Graph& graph) {
  const auto start = std::chrono::steady_clock::now();
  context.start(graph);
  context.finish();
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double device = context.last_ms() * 1e-3;
  return device > 0 ? device : wall;
}

/// Several times the cache, as far as memory is free.
uint64_t read_bytes(const Context& context) {
  const uint64_t wanted = std::clamp<uint64_t>(uint64_t{context.facts().l2_bytes} * 8, 4 << 20, uint64_t{512} << 20);
  const uint64_t blocks = std::min(wanted, context.memory().available / 4) / kReadBlockBytes;
  return std::max<uint64_t>(blocks, 1) * kReadBlockBytes;
}

double read_gb_s(Context& context) {
  const uint64_t bytes = read_bytes(context);
  const Memory data(context, bytes, false, "the peak's data"), out(context, 16, false, "the peak's result");
  context.fill(data.address(), 1, bytes / 4);
  const KernelCall call = call_of("peak_read", PeakReadParams{data.address(), out.address(), 0}, kThreads,
                                  static_cast<uint32_t>(bytes / kReadBlockBytes));
  std::unique_ptr<Graph> graph;
  uint32_t recorded_times = 0;
  const auto run = [&](uint32_t times) {
    if (times != recorded_times) graph = std::make_unique<Graph>(context, std::vector<KernelCall>(times, call));
    recorded_times = times;
    return seconds_of(context, *graph);
  };
  return static_cast<double>(bytes) / best_seconds(run, 256) * 1e-9;
}

/// A kernel that repeats a loop.
class LoopKernel {
 public:
  LoopKernel(Context& context, Address out, std::string name, uint32_t shared_bytes = 0)
      : context_(context), out_(out), name_(std::move(name)), shared_bytes_(shared_bytes) {}

  /// GFLOP/s, the best of several runs. `fmas`: of a thread, in one loop.
  double rate(uint32_t fmas) {
    const auto run = [this](uint32_t loops) {
      if (loops != loops_) record(loops);
      return seconds_of(context_, *graph_);
    };
    flops_ = 2.0 * fmas * kThreads * blocks();
    return flops_ / best_seconds(run, 1u << 20) * 1e-9;
  }
  /// What rate() ran last, and its operations.
  std::unique_ptr<Graph> take_graph() { return std::move(graph_); }
  double flops() const { return flops_ * loops_; }

 private:
  uint32_t blocks() const { return std::max(1u, context_.facts().multiprocessors) * kBlocksOfAMultiprocessor; }
  void record(uint32_t loops) {
    PeakLoopParams params;
    params.out = out_;
    params.loops = loops;
    const KernelCall call = call_of(name_, params, kThreads, blocks(), 1, 1, shared_bytes_);
    graph_ = std::make_unique<Graph>(context_, std::span(&call, 1));
    loops_ = loops;
  }

  Context& context_;
  const Address out_;
  const std::string name_;
  const uint32_t shared_bytes_;
  std::unique_ptr<Graph> graph_;
  uint32_t loops_ = 0;
  double flops_ = 0;  // of one loop
};

double matrix_gflop_s(Context& context, bool warpgroups) {
  const Memory out(context, 16, false, "the peak's result");
  if (warpgroups) {
    constexpr uint32_t fmas = kPeakWarpgroupProducts * 64 * 64 * 16 / 128;  // of the 128 threads of a warpgroup
    return LoopKernel(context, out.address(), "peak_warpgroups", kPeakWarpgroupBytes).rate(fmas);
  }
  constexpr uint32_t fmas = kPeakMatrixChains * 2 * 16 * 8 * 16 / 32;  // of the 32 threads of a warp
  return LoopKernel(context, out.address(), "peak_matrix").rate(fmas);
}

FmaProbe::FmaProbe(Context& context) : context_(context), out_(context, 16, false, "the peak's result") {
  plain_ = try_kernel("peak_fma_plain", 32);
  graph_.reset();
  best_ = 0;
  for (const uint32_t chains : {8u, 16u, 32u}) try_kernel("peak_fma_" + std::to_string(chains), chains * 4);
}

/// GFLOP/s. Keeps the kernel when it is the fastest so far. `fmas`: of a thread, in one loop.
double FmaProbe::try_kernel(const std::string& kernel, uint32_t fmas) {
  LoopKernel looped(context_, out_.address(), kernel);
  const double rate = looped.rate(fmas);
  if (rate > best_) {
    best_ = rate;
    flops_ = looped.flops();
    graph_ = looped.take_graph();
  }
  return rate;
}

double FmaProbe::run() {
  return flops_ / seconds_of(context_, *graph_) * 1e-9;
}

/// Read rate, and that of multiply-adds and of tensor cores, each the best of several runs, by the device's clock.
/// `warpgroups`: whether products are made by those. Takes about a second and, for that long, up to 512 MiB of device
/// memory (a quarter of what is free at most).
DevicePeak measure_peak(Context& context, bool warpgroups) {
  DevicePeak peak;
  const FmaProbe probe(context);
  peak.fma_gflop_s = probe.best();
  peak.plain_fma_gflop_s = probe.plain();
  peak.matrix_gflop_s = matrix_gflop_s(context, warpgroups);
  peak.read_gb_s = read_gb_s(context);
  return peak;
}

}  // namespace
}  // namespace canopy::cuda

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
    check_latent_values(shape);
    std::vector<std::unique_ptr<KvLayer>> all;
    for (uint32_t i = 0; i < layers; ++i) {
      auto layer = std::make_unique<CudaKv>();
      layer->shape = shape;
      layer->keys = std::make_unique<Memory>(context_, shape.slots * slot_bytes(shape), false, name);
      if (!shape.is_latent()) {
        layer->values = std::make_unique<Memory>(context_, shape.slots * slot_bytes(shape), false, name);
      }
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
  context_.read(kv.plane(values).address() + first * slot_bytes(kv.shape), bytes);
  return decode_slots(kv.shape, bytes);
}

void CudaDevice::write_kv(KvLayer& layer, bool values, uint32_t first, std::span<const float> data) {
  const auto& kv = own<CudaKv>(&layer, "The K/V cache");
  const std::vector<std::byte> bytes = encode_slots(kv.shape, data);
  if (first * slot_bytes(kv.shape) + bytes.size() > kv.shape.slots * slot_bytes(kv.shape)) {
    throw bad_input("Slots beyond the K/V cache's are to be written.");
  }
  context_.write(kv.plane(values).address() + first * slot_bytes(kv.shape), bytes);
}

}  // namespace

std::unique_ptr<Device> open_cuda_device(const CudaDeviceOptions& options) {
  return std::make_unique<CudaDevice>(options);
}

}  // namespace canopy

namespace canopy::cuda {
namespace {

/// What a GPU is, the same for `canopy-cli devices --json` and for reports. Sizes in bytes. No uuid.
nlohmann::ordered_json to_json(const DeviceFacts& facts) {
  return {{"name", facts.name},
          {"type", device_type(facts)},
          {"vendor", "NVIDIA"},
          {"driver", facts.driver},
          {"compute_capability", capability_words(facts.capability)},
          {"pci_address", facts.pci_address},
          {"memory_bytes", facts.memory_bytes},
          {"usable", facts.usable()},
          {"reason", facts.reason},
          {"multiprocessors", facts.multiprocessors},
          {"l2_bytes", facts.l2_bytes},
          {"max_shared_bytes", facts.shared_bytes}};
}

}  // namespace
}  // namespace canopy::cuda

namespace canopy {

// CUDA as one of the backends: what its devices are, before one is opened.

namespace {

FoundDevice found(const cuda::DeviceFacts& facts) {
  const std::string capability = cuda::capability_words(facts.capability);
  FoundDevice device;
  device.backend = "cuda";
  device.ordinal = static_cast<uint32_t>(facts.ordinal);
  device.name = facts.name;
  device.type = cuda::device_type(facts);
  device.driver = facts.driver;
  device.about = facts.driver + ", compute capability " + capability + ", " + byte_figures(facts.memory_bytes);
  device.gpu = facts.uuid;
  device.usable = facts.usable();
  device.reason = facts.reason;
  device.uuid = cuda::device_identity(facts);
  device.memory_bytes = facts.memory_bytes;
  device.words = facts.driver.substr(0, facts.driver.find(" (")) + ", compute capability " + capability;
  device.details = facts.driver + "\nCompute capability " + capability;
  device.facts = cuda::to_json(facts);
  return device;
}

FoundDevices find(const cuda::FoundDriver& driver, const std::function<const cuda::Kernels&()>& kernels) {
  FoundDevices all;
  all.lacking = "NVIDIA GPUs with CUDA";
  if (!driver.api) {
    if (driver.present) all.problem = driver.reason;
    return all;
  }
  try {
    for (const cuda::DeviceFacts& facts : cuda::list_devices(*driver.api, kernels()))
      all.devices.push_back(found(facts));
  } catch (const Error& e) {
    all.problem = e.what();
  }
  return all;
}

std::unique_ptr<Device> open(const cuda::FoundDriver& driver, const std::function<const cuda::Kernels&()>& kernels,
                             uint32_t ordinal, const std::string& family) {
  if (!driver.api) throw Error(ErrorKind::unavailable, driver.reason);
  const cuda::Kernels& loaded = kernels();
  std::unique_ptr<Device> device =
      open_cuda_device({*driver.api, cuda::list_devices(*driver.api, loaded).at(ordinal), loaded.fatbins});
  if (family == "matrix") {
    while (device->fall_back()) {
    }
  }
  return device;
}

void pack(std::span<const WeightPart> parts, WeightLayout layout, std::span<uint32_t> scratch) {
  const cuda::TileLayout tiles = cuda::tile_layout(parts, layout);
  const uint64_t bytes = tiles.group_bytes(), most = scratch.size_bytes() / bytes;
  const std::span<std::byte> packed = std::as_writable_bytes(scratch);
  for (uint64_t first = 0; first < tiles.groups(); first += most) {
    parallel_for(std::min<uint64_t>(most, tiles.groups() - first), 1, [&](uint64_t begin, uint64_t end) {
      std::vector<std::byte> bands;
      for (uint64_t i = begin; i < end; ++i) {
        cuda::fill_group(parts, layout, tiles, static_cast<uint32_t>(first + i), packed.subspan(i * bytes, bytes),
                         bands);
      }
    });
  }
}

}  // namespace

Backend cuda_backend(std::function<cuda::FoundDriver()> driver, std::function<const cuda::Kernels&()> kernels) {
  return {"cuda",
          "CUDA",
          {"matrix"},
          [driver, kernels] { return find(driver(), kernels); },
          [driver, kernels](uint32_t ordinal, const DeviceSettings& settings) {
            return open(driver(), kernels, ordinal, settings.kernels);
          },
          pack};
}

}  // namespace canopy
