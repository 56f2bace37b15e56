#include "engine/vulkan/vulkan_device.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/files.h"
#include "engine/base/machine.h"
#include "engine/compute/kv_slots.h"
#include "engine/compute/types.h"
#include "engine/vulkan/attention.h"
#include "engine/vulkan/device_objects.h"
#include "engine/vulkan/peak.h"
#include "engine/vulkan/recorder.h"
#include "engine/vulkan/upload.h"

namespace canopy::vk {

std::vector<ListedDevice> listed(std::span<const DeviceReport> reports) {
  std::vector<ListedDevice> devices;
  for (const DeviceReport& report : reports) {
    devices.push_back({report.index, "vulkan", report.index, report.name, std::string(to_string(report.type)),
                       report.driver_name + " " + report.driver_version, std::string(gpu_of(report.uuid)),
                       report.usable, report.reason});
  }
  return devices;
}

size_t select_device(std::span<const DeviceReport> reports, std::string_view selector) {
  static const std::vector<std::string> backends = {"vulkan"};
  return choose_device(listed(reports), selector, backends);
}

// Weights on their way to a device: repacked into its memory, or through memory that it copies from.

namespace {

// A new buffer's own words where its memory is the host's, so that no second copy is needed; else nothing.
std::span<uint32_t> words_in_place(const Context& context, const Buffer& buffer) {
  const DeviceType type = context.report().type;
  const bool unified = type == DeviceType::cpu || type == DeviceType::integrated;
  if (!unified || buffer.mapped().empty() || !buffer.coherent()) return {};
  return {reinterpret_cast<uint32_t*>(buffer.mapped().data()), buffer.bytes() / 4};
}

// The shards cut into pieces of whole bands that slots hold.
std::vector<StreamPiece> pieces_of(const VulkanWeight& weight, uint64_t slot_bytes) {
  std::vector<StreamPiece> pieces;
  for (const WeightShard& shard : weight.shards) {
    const WeightShardLayout& whole = shard.layout;
    const uint64_t unit_bytes = whole.band_unit_bytes(), scale_bytes = whole.band_scale_bytes();
    const uint64_t most = slot_bytes / (unit_bytes + scale_bytes);  // bands
    for (uint64_t first = 0; first < whole.bands(); first += most) {
      const uint64_t bands = std::min(most, whole.bands() - first);
      const auto first_row = static_cast<uint32_t>(first * kBandRows);
      const auto stored_rows = static_cast<uint32_t>(bands * kBandRows);
      const WeightShardLayout layout = {whole.first_row + first_row, std::min(stored_rows, whole.rows - first_row),
                                        stored_rows, bands * unit_bytes, bands * scale_bytes};
      pieces.push_back(
          {layout, &shard.units, shard.scales ? &shard.scales : nullptr, first * unit_bytes, first * scale_bytes});
    }
  }
  return pieces;
}

// In place, or through a ring of slots: the device copies from some while all cores repack into the next.
void fill(DeviceState& state, const VulkanWeight& weight, std::span<const WeightPart> parts, WeightLayout layout) {
  const Context& context = *state.context;
  if (!words_in_place(context, weight.shards[0].units).empty()) {
    for (const WeightShard& shard : weight.shards) {
      repack(parts, layout, shard.layout, words_in_place(context, shard.units), words_in_place(context, shard.scales));
    }
    return;
  }
  const WeightShardLayout& shard = weight.shards[0].layout;
  const uint64_t slot_bytes = std::max(UploadRing::kSlotBytes, shard.band_unit_bytes() + shard.band_scale_bytes());
  if (state.ring == nullptr || state.ring->slot_bytes() < slot_bytes) {
    state.ring.reset();
    state.ring = std::make_unique<UploadRing>(*state.context, slot_bytes);
  }
  stream(*state.ring, state.next_slot, parts, layout, pieces_of(weight, slot_bytes));
}

/// Bytes of the largest buffer that weights and caches are cut into: what one binding reaches and one allocation holds.
uint64_t shard_limit(const DeviceState& state) {
  const DeviceLimits& limits = state.context->limits();
  uint64_t limit = std::min(limits.max_storage_range, state.context->max_block());
  return limit;
}

/// What Device::expect_weights says.
void expect_weights(DeviceState& state, std::span<const WeightRequest> requests) {
  std::vector<uint64_t> buffers;
  for (const WeightRequest& request : requests) {
    for (const auto& shard :
         shard_rows(request.parts[0].type, joined_extent(request.parts, request.layout), shard_limit(state))) {
      buffers.push_back(shard.unit_bytes);
      if (shard.scale_bytes > 0) buffers.push_back(shard.scale_bytes);
    }
  }
  state.ring.reset();
  state.arena.reset();
  if (!buffers.empty()) state.arena = std::make_unique<BufferArena>(*state.context, std::move(buffers));
}

/// What Device::make_weight says.
std::unique_ptr<VulkanWeight> upload_weight(DeviceState& state, std::span<const WeightPart> parts, WeightLayout layout,
                                            std::string_view name) {
  Context& context = *state.context;
  const auto make = [&](uint64_t bytes) {
    return state.arena ? state.arena->create(bytes, name) : context.create_buffer(BufferKind::device, bytes, name);
  };
  const WeightExtent extent = joined_extent(parts, layout);
  auto weight = std::make_unique<VulkanWeight>(parts[0].type, extent.rows, extent.cols);
  for (const WeightShardLayout& shard_layout : shard_rows(parts[0].type, extent, shard_limit(state))) {
    WeightShard& shard = weight->shards.emplace_back();
    shard.layout = shard_layout;
    shard.units = make(shard_layout.unit_bytes);
    if (shard_layout.scale_bytes > 0) shard.scales = make(shard_layout.scale_bytes);
    if (shard_layout.scale_bytes == 0) continue;
  }
  fill(state, *weight, parts, layout);
  return weight;
}

/// What Device::weight_bytes says.
uint64_t weight_bytes(const DeviceState& state, std::span<const WeightPart> parts, WeightLayout layout) {
  uint64_t bytes = 0;
  for (const auto& shard : shard_rows(parts[0].type, joined_extent(parts, layout), shard_limit(state))) {
    bytes += shard.unit_bytes + shard.scale_bytes;
  }
  return bytes;
}

}  // namespace
}  // namespace canopy::vk

namespace canopy {
namespace {

/// Where a copy of `bytes` from `offset` on starts in the memory of a buffer, which may be a part of another.
uint64_t checked_start(const Buffer& buffer, uint64_t offset, uint64_t bytes) {
  const vk::VulkanBuffer& own = vk::buffer_of(buffer);
  if (offset > own.bound_bytes() || bytes > own.bound_bytes() - offset) {
    throw bad_input("A copy of " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                    " leaves a buffer of " + std::to_string(own.bytes()) + " bytes.");
  }
  return own.offset() + offset;
}

using vk::BufferKind;
using vk::DeviceState;

// Raised when a change of the shaders makes old choices meaningless.
constexpr int kShaderVersion = 6;

vk::KernelFamily own_family(const DeviceState& state) {
  return state.matrix ? vk::KernelFamily::matrix : vk::KernelFamily::fma;
}

// Tiles of the products are padded to these widths anyway. A software device pays for every row.
std::vector<uint32_t> width_buckets(const DeviceState& state) {
  if (vk::on_matrix_cores(state.family)) return {1, 8, 16, 32, 64};
  if (state.family == vk::KernelFamily::fma && !state.software) return {1, 2, 4, 8};
  return {};
}

// Columns of the widest tile.
uint32_t default_tile(const DeviceState& state) {
  return vk::on_matrix_cores(state.family) ? vk::kMostMatrixColumns : vk::kMostFmaColumns;
}

class VulkanDevice : public Device {
 public:
  explicit VulkanDevice(const VulkanDeviceOptions& options);
  ~VulkanDevice() override;

  const DeviceInfo& info() const override { return state_.info; }
  MemoryInfo memory() const override;
  std::unique_ptr<Buffer> allocate(uint64_t bytes, std::string_view name) override;
  std::unique_ptr<Buffer> allocate_exchanged(uint64_t bytes, HostUse use, std::string_view name) override;
  std::unique_ptr<Buffer> part(Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) override;
  std::unique_ptr<Activations> allocate_activations(uint32_t max_width, uint32_t cols, std::string_view name) override;
  std::unique_ptr<KvCache> allocate_kv(const KvShape& shape, uint32_t layers, std::string_view name) override;
  std::unique_ptr<Weight> make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                      std::string_view name) override;
  void expect_weights(std::span<const WeightRequest> requests) override {
    vk::expect_weights(state_, requests);
    if (state_.tuner && !requests.empty()) state_.tuner->renew_budget();
  }
  uint64_t weight_bytes(std::span<const WeightPart> parts, WeightLayout layout) const override;
  uint64_t activation_bytes(uint32_t max_width, uint32_t cols) const override;
  uint64_t attention_bytes(const KvShape& shape, uint32_t heads, uint32_t max_width,
                           uint32_t max_positions) const override;
  void write(Buffer& to, uint64_t offset, std::span<const std::byte> from) override;
  void read_all(std::span<const BufferRead> reads) override;
  std::vector<float> read_activations(const Activations& activations, uint32_t width) override;
  void write_activations(Activations& activations, uint32_t width, std::span<const float> values) override;
  std::vector<float> read_kv(const KvLayer& layer, bool values, uint32_t first, uint32_t count) override;
  void write_kv(KvLayer& layer, bool values, uint32_t first, std::span<const float> data) override;
  DevicePeak measure_peak() override {
    const auto hold = keep_awake();
    // Products of 8-bit integers have a rate of their own, which nothing measures; and a processor's matrices are
    // multiply-adds, of which its compiler takes what is the same in all loops out of them.
    const bool has_cores = state_.family == vk::KernelFamily::matrix && !state_.software;
    return vk::measure_peak(*state_.context, has_cores ? &*state_.matrix : nullptr);
  }
  double measure_upload() override { return vk::measure_upload(context()); }
  double sample_fma_rate() override {
    if (!fma_probe_) fma_probe_.emplace(*state_.context);
    const auto hold = keep_awake();
    return fma_probe_->run();
  }
  std::unique_ptr<Commands> compile(std::span<const Op> ops, const std::stop_token& stop) override;
  bool fall_back() override;
  bool run(Commands& commands, const std::stop_token& stop) override;
  void start(Commands& commands) override {
    for (vk::CommandList& list : static_cast<vk::VulkanCommands&>(commands).lists) context().submit(list);
  }
  void finish() override { context().wait_idle(); }
  double last_run_ms() const override { return last_run_ms_; }
  double waited_ms() const override { return context().waited_ms(); }

  const vk::Instance& instance() const { return *state_.instance; }
  uint64_t submissions() const { return state_.context->last_submission(); }

 private:
  vk::Buffer zeroed(uint64_t bytes, std::string_view name, BufferKind kind = BufferKind::device);
  void describe_kernels();
  void make_tuner(const VulkanDeviceOptions& options);
  void note_time(const vk::VulkanCommands& commands, size_t part);
  vk::Context& context() const { return *state_.context; }
  /// Held while the device computes.
  std::optional<AwakeCores::Hold> keep_awake() {
    if (!cores_) return std::nullopt;
    return std::optional<AwakeCores::Hold>(std::in_place, *cores_);
  }

  DeviceState state_;
  std::optional<vk::FmaProbe> fma_probe_;
  std::optional<AwakeCores> cores_;  // on software devices
  double last_run_ms_ = 0;
};

VulkanDevice::VulkanDevice(const VulkanDeviceOptions& options) {
  state_.instance = std::make_unique<vk::Instance>(options.instance);
  const auto reports = state_.instance->list_devices();
  const vk::DeviceReport& report = reports[vk::select_device(reports, options.selector)];
  vk::ContextOptions context_options = options.context;
  if (!options.cache_folder.empty()) {
    context_options.pipeline_cache_file = options.cache_folder / ("pipelines-" + std::to_string(report.index) + ".bin");
  }
  state_.context = std::make_unique<vk::Context>(*state_.instance, report.index, context_options);
  for (const std::string& note : state_.context->notes()) log_info(note);

  state_.info.name = report.name;
  state_.info.type = vk::to_string(report.type);
  state_.info.driver = report.driver_name + " " + report.driver_version;
  state_.info.uuid = report.uuid;
  state_.info.pci_address = report.pci_address;
  state_.info.backend = "vulkan";
  const bool on_processor = is_on_processor(state_.info.type);
  if (on_processor) cores_.emplace();
  state_.software = options.as_software.value_or(on_processor);
  // A processor draws as fast by itself, and for the rows alone that a walk visits.
  state_.info.draws_tokens = !state_.software;
  if (on_processor) state_.info.prompt_rows = 32;  // each row takes as long as the one before
  state_.attention_lanes = state_.software ? 8 : 32;
  state_.flops_per_second = state_.software ? 5e9 : 5e11;
  state_.separate_steps = options.separate_steps;
  state_.forced_fma = options.fma;
  state_.forced_matrix = options.matrix;
  const vk::MatrixShape* matrix = vk::product_matrix(state_.context->report(), state_.context->features());
  if (matrix != nullptr) state_.matrix = *matrix;
  const vk::MatrixShape* integers = vk::integer_matrix(state_.context->report(), state_.context->features());
  if (integers != nullptr) state_.integers = *integers;
  if (state_.forced_matrix) state_.forced_matrix->subgroup_size = state_.context->limits().pinned_subgroup;
  state_.family = options.family.value_or(own_family(state_));
  if (state_.family == vk::KernelFamily::matrix && !state_.matrix) {
    throw Error(ErrorKind::unavailable,
                "The device " + report.name +
                    " has no cooperative matrices of halves with sums in f32, which the kernels "
                    "of the family matrix need.");
  }
  if (state_.family == vk::KernelFamily::matrix_i8) {
    const std::string missing = vk::missing_for_integers(state_.context->report(), state_.context->features());
    if (!missing.empty()) {
      throw Error(ErrorKind::unavailable, "The device " + report.name + " has no " + missing +
                                              ", which the kernels of the family matrix_i8 need.");
    }
  }
  state_.max_tile = options.max_tile.value_or(default_tile(state_));
  describe_kernels();
  make_tuner(options);
  state_.dummy = zeroed(256, "dummy");
  state_.written_dummy = zeroed(256, "written dummy");
}

// On the processor times are noise.
void VulkanDevice::make_tuner(const VulkanDeviceOptions& options) {
  if (is_on_processor(state_.info.type) && !options.tuning) return;
  const std::filesystem::path choices = options.cache_folder.empty()
                                            ? std::filesystem::path()
                                            : options.cache_folder / ("variants-" + state_.info.uuid + ".json");
  const std::string identity =
      state_.info.uuid + ", " + state_.info.driver + ", shaders " + vk::shaders_hash({"product"});
  state_.tuner = std::make_unique<vk::ProductTuner>(*this, state_, options.tuning.value_or(vk::TuningOptions()),
                                                    choices, identity);
}

VulkanDevice::~VulkanDevice() {
  if (state_.tuner) state_.tuner->report();
}

MemoryInfo VulkanDevice::memory() const {
  const vk::MemoryInfo info = state_.context->memory_info();
  return {info.budget, info.available()};
}

vk::Buffer VulkanDevice::zeroed(uint64_t bytes, std::string_view name, BufferKind kind) {
  const uint64_t size = (std::max<uint64_t>(bytes, 4) + 15) / 16 * 16;
  vk::Buffer buffer = context().create_buffer(kind, size, name);
  if (!buffer.mapped().empty() && buffer.coherent()) {
    std::memset(buffer.mapped().data(), 0, buffer.mapped().size());
  } else {
    vk::CommandList list(context(), {"clear", 0});
    list.fill(buffer, 0, size, 0);
    context().submit(list);  // all later work is behind it
  }
  return buffer;
}

std::unique_ptr<Buffer> VulkanDevice::allocate(uint64_t bytes, std::string_view name) {
  return std::make_unique<vk::VulkanBuffer>(zeroed(bytes, name), bytes);
}

// Where memory is unified, all buffers are mapped.
std::unique_ptr<Buffer> VulkanDevice::allocate_exchanged(uint64_t bytes, HostUse use, std::string_view name) {
  if (context().unified_memory()) return allocate(bytes, name);
  const BufferKind kind = use == HostUse::writes ? BufferKind::input : BufferKind::host_read;
  return std::make_unique<vk::VulkanBuffer>(zeroed(bytes, name, kind), bytes);
}

std::unique_ptr<Buffer> VulkanDevice::part(Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) {
  check_part(whole, offset, bytes, name);
  return std::make_unique<vk::VulkanBuffer>(vk::buffer_of(whole), offset, bytes);
}

std::unique_ptr<Activations> VulkanDevice::allocate_activations(uint32_t max_width, uint32_t cols,
                                                                std::string_view name) {
  auto activations = std::make_unique<vk::VulkanActivations>(max_width, cols);
  activations->values = zeroed(uint64_t{max_width} * vk::activation_stride(cols) * 4, name);
  activations->squares = zeroed(uint64_t{max_width} * activations->square_blocks * 4, name);
  return activations;
}

uint64_t VulkanDevice::activation_bytes(uint32_t max_width, uint32_t cols) const {
  return uint64_t{max_width} * (vk::activation_stride(cols) + vk::square_blocks(cols)) * 4;
}

uint64_t VulkanDevice::attention_bytes(const KvShape& shape, uint32_t heads, uint32_t max_width,
                                       uint32_t max_positions) const {
  return vk::attention_scratch_bytes({.width = max_width,
                                      .heads = heads,
                                      .kv_heads = shape.kv_heads,
                                      .head_dim = shape.value_dim(),
                                      .type = shape.type,
                                      .keys = max_positions,
                                      .windowed = true},
                                     {context().limits().max_shared_bytes, state_.software});
}

std::unique_ptr<KvCache> VulkanDevice::allocate_kv(const KvShape& shape, uint32_t layers, std::string_view name) {
  check_keeps_heads(shape.type, shape.head_dim);
  check_latent_values(shape);
  constexpr uint32_t kMostHeadDim = 1024, kMostValueDim = 512;
  const uint32_t unit = shape.type == CacheType::f32 ? 4 : 8;
  if (shape.head_dim == 0 || shape.head_dim % unit != 0 || shape.head_dim > kMostHeadDim) {
    throw bad_input("A K/V cache of type " + std::string(to_string(shape.type)) + " has heads of " +
                    std::to_string(shape.head_dim) + " elements; allowed: multiples of " + std::to_string(unit) +
                    " up to " + std::to_string(kMostHeadDim) + ".");
  }
  if (shape.value_dim() > kMostValueDim) {
    throw bad_input("A K/V cache has values of " + std::to_string(shape.value_dim()) + " elements; allowed: up to " +
                    std::to_string(kMostValueDim) + ".");
  }
  const uint64_t bytes = shape.slots * slot_bytes(shape);
  if (bytes > context().limits().max_storage_range) {
    throw out_of_memory("One layer's keys take " + byte_figures(bytes) + " for " + std::to_string(shape.slots) +
                        " positions; the device allows " + byte_figures(context().limits().max_storage_range) +
                        " in one buffer. Choose a shorter context.");
  }
  constexpr uint64_t alignment = 256;  // of a plane: the largest that Vulkan lets a device ask for
  const uint64_t stride = (bytes + alignment - 1) / alignment * alignment;
  const uint64_t planes = uint64_t{layers} * shape.planes();
  const uint64_t per_shard = std::clamp<uint64_t>(vk::shard_limit(state_) / stride, 1, planes);
  std::vector<vk::VulkanKvCache::Shard> shards;
  for (uint64_t first = 0; first < planes; first += per_shard) {
    const auto count = static_cast<uint32_t>(std::min(per_shard, planes - first));
    // The last plane is not padded: with one to a shard it may be as large as a binding.
    shards.push_back({std::make_unique<vk::Buffer>(zeroed((count - 1) * stride + bytes, name)), count});
  }
  const auto plane = [&](uint64_t index) {
    return vk::Binding(*shards[index / per_shard].memory, index % per_shard * stride, bytes);
  };
  std::vector<std::unique_ptr<KvLayer>> all;
  for (uint32_t i = 0; i < layers; ++i) {
    const uint64_t first = uint64_t{i} * shape.planes();
    all.push_back(std::make_unique<vk::VulkanKv>(shape, plane(first), plane(first + shape.planes() - 1)));
  }
  return std::make_unique<vk::VulkanKvCache>(std::move(all), std::move(shards), shape,
                                             static_cast<uint32_t>(stride / 4));
}

std::unique_ptr<Weight> VulkanDevice::make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                                  std::string_view name) {
  return vk::upload_weight(state_, parts, layout, name);
}

uint64_t VulkanDevice::weight_bytes(std::span<const WeightPart> parts, WeightLayout layout) const {
  return vk::weight_bytes(state_, parts, layout);
}

void VulkanDevice::write(Buffer& to, uint64_t offset, std::span<const std::byte> from) {
  context().upload(vk::buffer_of(to).memory(), checked_start(to, offset, from.size()), from);
}

void VulkanDevice::read_all(std::span<const BufferRead> reads) {
  std::vector<vk::Download> downloads;
  for (const BufferRead& r : reads) {
    downloads.push_back({&vk::buffer_of(*r.from).memory(), checked_start(*r.from, r.offset, r.to.size()), r.to});
  }
  context().download(downloads);
}

std::vector<float> VulkanDevice::read_activations(const Activations& activations, uint32_t width) {
  vk::require_width(width, activations, "read_activations");
  const uint64_t stride = vk::activation_stride(activations.cols());
  std::vector<float> stored(width * stride);
  context().download(vk::activations_of(activations).values, 0, std::as_writable_bytes(std::span(stored)));
  std::vector<float> values(uint64_t{width} * activations.cols());
  for (uint32_t w = 0; w < width; ++w) {
    std::copy_n(stored.begin() + static_cast<ptrdiff_t>(w * stride), activations.cols(),
                values.begin() + static_cast<ptrdiff_t>(uint64_t{w} * activations.cols()));
  }
  return values;
}

void VulkanDevice::write_activations(Activations& activations, uint32_t width, std::span<const float> values) {
  vk::require_width(width, activations, "write_activations");
  const uint64_t stride = vk::activation_stride(activations.cols());
  std::vector<float> stored(width * stride, 0.0f);
  vk::VulkanActivations& target = vk::activations_of(activations);
  std::vector<float> squares(uint64_t{width} * target.square_blocks, 0.0f);
  for (uint32_t w = 0; w < width; ++w) {
    double sum = 0;
    for (uint32_t k = 0; k < activations.cols(); ++k) {
      const float x = values[uint64_t{w} * activations.cols() + k];
      stored[w * stride + k] = x;
      sum += double{x} * x;
    }
    squares[uint64_t{w} * target.square_blocks] = static_cast<float>(sum);
  }
  context().upload(target.values, 0, as_bytes_of(stored));
  context().upload(target.squares, 0, as_bytes_of(squares));
}

std::vector<float> VulkanDevice::read_kv(const KvLayer& layer, bool values, uint32_t first, uint32_t count) {
  const vk::VulkanKv& kv = vk::kv_of(layer);
  const vk::Binding& plane = values ? kv.values : kv.keys;
  std::vector<std::byte> slots(count * slot_bytes(kv.shape));
  context().download(*plane.buffer, plane.offset + first * slot_bytes(kv.shape), slots);
  return decode_slots(kv.shape, slots);
}

void VulkanDevice::write_kv(KvLayer& layer, bool values, uint32_t first, std::span<const float> data) {
  vk::VulkanKv& kv = static_cast<vk::VulkanKv&>(layer);
  const vk::Binding& plane = values ? kv.values : kv.keys;
  context().upload(*plane.buffer, plane.offset + first * slot_bytes(kv.shape), encode_slots(kv.shape, data));
}

std::unique_ptr<Commands> VulkanDevice::compile(std::span<const Op> ops, const std::stop_token& stop) {
  vk::VulkanRecorder recorder(state_);
  if (state_.tuner) state_.tuner->set_stop(stop);
  for (const Op& op : ops) {
    if (stop.stop_requested()) return nullptr;
    recorder.record(op);
  }
  if (state_.tuner) state_.tuner->report();
  return recorder.finish();
}

bool VulkanDevice::run(Commands& commands, const std::stop_token& stop) {
  const auto hold = keep_awake();
  auto& parts = static_cast<vk::VulkanCommands&>(commands);
  last_run_ms_ = 0;
  // One part runs while the next is submitted, so that the device does not wait for the host between them.
  std::vector<vk::Submission> submitted;
  for (size_t i = 0; i < parts.lists.size() && (i == 0 || !stop.stop_requested()); ++i) {
    if (i >= 2) context().wait(submitted[i - 2]);
    submitted.push_back(context().submit(parts.lists[i]));
  }
  if (!submitted.empty()) context().wait(submitted.back());
  for (size_t i = 0; i < submitted.size(); ++i) note_time(parts, i);
  return submitted.size() == parts.lists.size();
}

// Weights and activations of these families lie alike.
bool VulkanDevice::fall_back() {
  if (!vk::on_matrix_cores(state_.family)) return false;
  state_.family = state_.family == vk::KernelFamily::matrix_i8 ? vk::KernelFamily::matrix : vk::KernelFamily::fma;
  state_.max_tile = std::min(state_.max_tile, default_tile(state_));
  describe_kernels();
  return true;
}

void VulkanDevice::describe_kernels() {
  state_.info.kernels = "shaders " + std::to_string(kShaderVersion) + " " + vk::to_string(state_.family);
  state_.info.rounds_to_8_bits = state_.family == vk::KernelFamily::matrix_i8;
  state_.info.widest_tile = state_.max_tile;
  state_.info.width_buckets = width_buckets(state_);
}

// Adds up the time of a pass, and learns from it how long recordings may be before they are cut.
void VulkanDevice::note_time(const vk::VulkanCommands& commands, size_t part) {
  const std::vector<vk::Timestamp> times = commands.lists[part].timestamps();  // none where the queue has no clock
  if (times.empty()) return;
  const double ms = times.back().microseconds / 1000;
  last_run_ms_ += ms;
  constexpr double safety = 0.5;  // later recordings may be slower for each FLOP
  if (ms > 0) state_.flops_per_second = std::max(state_.flops_per_second, safety * commands.flops[part] / ms * 1000);
}

}  // namespace

std::unique_ptr<Device> open_vulkan_device(const VulkanDeviceOptions& options) {
  return std::make_unique<VulkanDevice>(options);
}

std::vector<vk::ValidationMessage> validation_messages(const Device& device) {
  const auto* vulkan = dynamic_cast<const VulkanDevice*>(&device);
  return vulkan != nullptr ? vulkan->instance().messages() : std::vector<vk::ValidationMessage>{};
}

uint64_t submission_count(const Device& device) {
  const auto* vulkan = dynamic_cast<const VulkanDevice*>(&device);
  return vulkan != nullptr ? vulkan->submissions() : 0;
}

}  // namespace canopy

namespace canopy::vk {

// What a device is and offers, as JSON: the same for `canopy-cli devices --json` and for reports.

namespace {

using nlohmann::ordered_json;

ordered_json to_json(const MatrixShape& shape) {
  return {{"m", shape.m},
          {"n", shape.n},
          {"k", shape.k},
          {"a", to_string(shape.a)},
          {"b", to_string(shape.b)},
          {"c", to_string(shape.c)},
          {"result", to_string(shape.result)},
          {"scope", to_string(shape.scope)},
          {"saturating", shape.saturating}};
}

ordered_json to_json(const DeviceFeatures& features) {
  return {{"subgroup_size_control", features.subgroup_size_control},
          {"compute_full_subgroups", features.compute_full_subgroups},
          {"shader_float16", features.shader_float16},
          {"shader_int8", features.shader_int8},
          {"storage_16bit", features.storage_16bit},
          {"storage_8bit", features.storage_8bit},
          {"integer_dot_product", features.integer_dot_product},
          {"packed_dot_s8_accelerated", features.packed_dot_s8},
          {"packed_dot_u8_accelerated", features.packed_dot_u8},
          {"packed_dot_mixed_accelerated", features.packed_dot_mixed},
          {"bfloat16", features.bfloat16},
          {"bfloat16_matrix", features.bfloat16_matrix},
          {"cooperative_matrix", features.cooperative_matrix},
          {"pipeline_statistics", features.pipeline_statistics}};
}

ordered_json limits_json(const DeviceLimits& limits) {
  return {{"subgroup",
           {{"size", limits.subgroup_size},
            {"min", limits.min_subgroup_size},
            {"max", limits.max_subgroup_size},
            {"pinned", limits.pinned_subgroup}}},
          {"max_subgroups", limits.max_subgroups},
          {"max_invocations", limits.max_invocations},
          {"max_shared_bytes", limits.max_shared_bytes},
          {"max_storage_range", limits.max_storage_range},
          {"max_allocation", limits.max_allocation}};
}

/// Sizes in bytes and invocations; "pinned" is the subgroup size that kernels ask for, 0 without a choice. No uuid.
ordered_json to_json(const DeviceReport& report) {
  ordered_json shapes = ordered_json::array();
  for (const MatrixShape& shape : report.matrix_shapes) shapes.push_back(to_json(shape));
  return {{"name", report.name},
          {"type", to_string(report.type)},
          {"vendor", report.vendor},
          {"driver", report.driver_name},
          {"driver_version", report.driver_version},
          {"api_version", report.api_version},
          {"memory_bytes", report.memory_bytes},
          {"usable", report.usable},
          {"reason", report.reason},
          {"features", to_json(report.features)},
          {"limits", limits_json(report.limits)},
          {"matrix_shapes", shapes}};
}

}  // namespace
}  // namespace canopy::vk

namespace canopy {

// Vulkan as one of the backends: what its devices are, before one is opened.

namespace {

/// Empty where there is none: compiled pipelines are then made anew each time, which only takes longer.
std::filesystem::path writable_cache_folder() {
  try {
    return cache_dir();
  } catch (const Error& e) {
    log_warning(e.what());
    return {};
  }
}

/// "Vulkan 1.3, radv Mesa 25.2": of the API what matters, of the driver what stands before its details.
std::string short_words(const vk::DeviceReport& report, const std::string& driver) {
  const size_t minor = report.api_version.find('.');
  const size_t patch = minor == std::string::npos ? minor : report.api_version.find('.', minor + 1);
  const std::string api = report.api_version.empty() ? "" : "Vulkan " + report.api_version.substr(0, patch) + ", ";
  return api + driver.substr(0, driver.find(" ("));
}

FoundDevice found(const vk::DeviceReport& report, ListedDevice listed) {
  FoundDevice device;
  static_cast<ListedDevice&>(device) = std::move(listed);
  device.uuid = report.uuid;
  device.driver = device.about;
  device.memory_bytes = report.memory_bytes;
  device.words = short_words(report, device.about);
  device.details = device.about + (report.api_version.empty() ? "" : ", Vulkan " + report.api_version);
  device.facts = vk::to_json(report);
  return device;
}

std::unique_ptr<Device> open(uint32_t ordinal, const DeviceSettings& settings) {
  VulkanDeviceOptions options;
  options.selector = std::to_string(ordinal);
  options.cache_folder = writable_cache_folder();
  if (settings.kernels == "matrix") options.family = vk::KernelFamily::matrix;
  if (settings.kernels == "matrix_i8") options.family = vk::KernelFamily::matrix_i8;
  return open_vulkan_device(options);
}

void pack(std::span<const WeightPart> parts, WeightLayout layout, std::span<uint32_t> scratch) {
  for (const auto& shard : vk::shard_rows(parts[0].type, joined_extent(parts, layout), scratch.size_bytes() / 2)) {
    vk::repack(parts, layout, shard, scratch.first(shard.unit_bytes / 4),
               scratch.subspan(shard.unit_bytes / 4, shard.scale_bytes / 4));
  }
}

}  // namespace

Backend vulkan_backend(std::function<std::vector<vk::DeviceReport>()> list) {
  if (!list) list = [] { return vk::Instance().list_devices(); };
  const auto find = [list = std::move(list)] {
    FoundDevices all;
    try {
      const std::vector<vk::DeviceReport> reports = list();
      std::vector<ListedDevice> listed = vk::listed(reports);
      for (size_t i = 0; i < reports.size(); ++i) all.devices.push_back(found(reports[i], std::move(listed[i])));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::unavailable) throw;
      all.problem = e.what();
      all.lacking = "GPUs with Vulkan";
    }
    return all;
  };
  return {"vulkan", "Vulkan", {"matrix", "matrix_i8"}, find, open, pack};
}

}  // namespace canopy
