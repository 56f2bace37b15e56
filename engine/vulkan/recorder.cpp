#include "engine/vulkan/recorder.h"

#include <algorithm>
#include <string>

#include "engine/base/error.h"

namespace canopy::vk {

namespace {

// A submission is cut when it is expected to take longer: watchdogs end a device that is silent for two seconds.
constexpr double kSecondsPerSubmission = 0.1;
constexpr uint32_t kLeastCounters = 4096;

}  // namespace

std::string weight_shader(const std::string& op, WeightType type) {
  // Q4_0 and Q5_0 are kept as Q4_1 and Q5_1 whose minimum is a multiple of the scale.
  static const char* const names[kWeightTypes] = {"f32",  "f16",  "bf16", "q8_0", "q4_1", "q4_1",   "q5_1",   "q5_1",
                                                  "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4"};
  return op + "_" + names[static_cast<uint32_t>(type)];
}

std::string cache_shader(const std::string& op, CacheType type) {
  return op + "_" + to_string(type);
}

void require_width(uint32_t width, const canopy::Activations& activations, const char* op) {
  if (width == 0 || width > activations.max_width()) {
    throw bad_input(std::string(op) + " is asked for width " + std::to_string(width) + "; its activations hold 1 to " +
                    std::to_string(activations.max_width()) + " rows.");
  }
}

Binding whole(const canopy::Buffer& buffer) {
  const VulkanBuffer& own = buffer_of(buffer);
  return Binding(own.memory(), own.offset(), own.bound_bytes());
}

namespace {

Binding first_words(const Binding& all, uint64_t count, const char* what) {
  if (count * 4 > all.bytes) {
    throw bad_input(std::string(what) + " needs " + std::to_string(count * 4) + " bytes; the buffer has " +
                    std::to_string(all.bytes) + ".");
  }
  return Binding(*all.buffer, all.offset, count * 4);
}

}  // namespace

Binding words(const Buffer& buffer, uint64_t count, const char* what) {
  return first_words(Binding(buffer), count, what);
}

Binding words(const canopy::Buffer& buffer, uint64_t count, const char* what) {
  return first_words(whole(buffer), count, what);
}

Binding squares_of(const VulkanActivations& activations, uint32_t width, const char* what) {
  return words(activations.squares, uint64_t{width} * activations.square_blocks, what);
}

void bind_weight(std::vector<Binding>& bindings, const WeightShard& shard, const DeviceState& state) {
  bindings.emplace_back(shard.units);
  bindings.emplace_back(shard.scales ? shard.scales : state.dummy);
}

VulkanRecorder::VulkanRecorder(DeviceState& state) : state_(state), commands_(std::make_unique<VulkanCommands>()) {}

CommandList& VulkanRecorder::list(double flops) {
  if (!commands_) throw bad_input("A recorder is used after finish().");
  const double budget = state_.flops_per_second * kSecondsPerSubmission;
  if (commands_->lists.empty() || (flops_in_list_ > 0 && flops_in_list_ + flops > budget)) {
    finish_list();
    commands_->lists.emplace_back(*state_.context, CommandListOptions{"pass", 2});
    commands_->lists.back().timestamp("start");
    commands_->flops.push_back(0);
    flops_in_list_ = 0;
  }
  flops_in_list_ += flops;
  commands_->flops.back() = flops_in_list_;
  return commands_->lists.back();
}

Buffer& VulkanRecorder::scratch(uint64_t bytes, const char* name) {
  std::shared_ptr<Buffer>& shared = state_.scratch;
  if (!shared || shared->bytes() < bytes) {
    shared = std::make_shared<Buffer>(state_.context->create_buffer(BufferKind::device, bytes, name));
  }
  std::vector<std::shared_ptr<Buffer>>& own = commands_->scratch;
  if (own.empty() || own.back() != shared) own.push_back(shared);
  return *shared;
}

const Buffer& VulkanRecorder::sums(uint64_t bytes) {
  return bytes > 0 ? scratch(bytes, "partial sums") : state_.written_dummy;
}

const Buffer& VulkanRecorder::counters(uint32_t count) {
  if (count == 0) return state_.written_dummy;
  std::vector<Buffer>& all = commands_->counters;
  const uint64_t bytes = std::max<uint64_t>(count, kLeastCounters) * 4;
  if (!all.empty() && all.back().bytes() >= bytes) return all.back();
  Buffer& counters = all.emplace_back(state_.context->create_buffer(BufferKind::device, bytes, "counters"));
  CommandList clear(*state_.context, {"clear counters", 0});
  clear.fill(counters, 0, bytes, 0);
  state_.context->run(clear);
  return counters;
}

void VulkanRecorder::finish_list() {
  if (commands_->lists.empty()) return;
  commands_->lists.back().timestamp("end");
  commands_->lists.back().finish();
}

void VulkanRecorder::record(const Op& op) {
  std::visit([this](const auto& args) { record_op(args); }, op);
  if (!std::holds_alternative<ExpertSwigluArgs>(op)) grouped_.reset();
}

std::unique_ptr<VulkanCommands> VulkanRecorder::finish() {
  if (!commands_) throw bad_input("A recorder is used after finish().");
  finish_list();
  return std::move(commands_);
}

}  // namespace canopy::vk
