#include "engine/vulkan/command_list.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/vulkan/context.h"
#include "engine/vulkan/instance.h"
#include "engine/vulkan/kernel.h"

namespace canopy::vk {
namespace {

constexpr VkPipelineStageFlags2 device_work =
    VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT;
constexpr VkAccessFlags2 device_writes = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT;

void memory_barrier(VkCommandBuffer commands, VkPipelineStageFlags2 from, VkAccessFlags2 from_access,
                    VkPipelineStageFlags2 to, VkAccessFlags2 to_access) {
  VkMemoryBarrier2 barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER_2};
  barrier.srcStageMask = from;
  barrier.srcAccessMask = from_access;
  barrier.dstStageMask = to;
  barrier.dstAccessMask = to_access;
  VkDependencyInfo info{VK_STRUCTURE_TYPE_DEPENDENCY_INFO};
  info.memoryBarrierCount = 1;
  info.pMemoryBarriers = &barrier;
  vkCmdPipelineBarrier2(commands, &info);
}

// Writes by the device before, anything the device does after.
void device_barrier(VkCommandBuffer commands) {
  memory_barrier(commands, device_work, device_writes, device_work | VK_PIPELINE_STAGE_2_DRAW_INDIRECT_BIT,
                 VK_ACCESS_2_SHADER_STORAGE_READ_BIT | VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT |
                     VK_ACCESS_2_SHADER_SAMPLED_READ_BIT | VK_ACCESS_2_UNIFORM_READ_BIT |
                     VK_ACCESS_2_INDIRECT_COMMAND_READ_BIT | VK_ACCESS_2_TRANSFER_READ_BIT |
                     VK_ACCESS_2_TRANSFER_WRITE_BIT);
}

}  // namespace

CommandList::CommandList(Context& context, const CommandListOptions& options)
    : context_(&context), name_(options.name), max_timestamps_(options.max_timestamps) {
  context.require_alive();
  try {
    begin();
  } catch (...) {
    reset();
    throw;
  }
}

void CommandList::begin() {
  const VkDevice device = context_->device();
  VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool_info.queueFamilyIndex = context_->queue_family();
  context_->check(vkCreateCommandPool(device, &pool_info, nullptr, &pool_), "Creating a command pool");
  VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  context_->check(vkAllocateCommandBuffers(device, &info, &commands_), "Allocating a command buffer");
  context_->name_object(VK_OBJECT_TYPE_COMMAND_BUFFER, reinterpret_cast<uint64_t>(commands_), name_);
  const VkCommandBufferBeginInfo begin_info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  context_->check(vkBeginCommandBuffer(commands_, &begin_info), "Recording \"" + name_ + "\"");

  // Writes of earlier submissions are ordered before this list, but not visible to it without a barrier.
  device_barrier(commands_);
  if (max_timestamps_ > 0 && context_->limits().timestamp_valid_bits > 0) {
    VkQueryPoolCreateInfo query_info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    query_info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    query_info.queryCount = max_timestamps_;
    context_->check(vkCreateQueryPool(device, &query_info, nullptr, &queries_), "Creating a query pool");
    vkCmdResetQueryPool(commands_, queries_, 0, max_timestamps_);
  }
}

CommandList::CommandList(CommandList&& other) noexcept {
  *this = std::move(other);
}

CommandList& CommandList::operator=(CommandList&& other) noexcept {
  if (this != &other) {
    reset();
    context_ = std::exchange(other.context_, nullptr);
    name_ = std::move(other.name_);
    pool_ = std::exchange(other.pool_, VK_NULL_HANDLE);
    commands_ = std::exchange(other.commands_, VK_NULL_HANDLE);
    descriptor_pools_ = std::exchange(other.descriptor_pools_, {});
    queries_ = std::exchange(other.queries_, VK_NULL_HANDLE);
    max_timestamps_ = other.max_timestamps_;
    labels_ = std::move(other.labels_);
    kernel_ = std::exchange(other.kernel_, nullptr);
    bound_ = std::move(other.bound_);
    push_ = std::move(other.push_);
    barrier_pending_ = other.barrier_pending_;
    anything_recorded_ = other.anything_recorded_;
    finished_ = other.finished_;
    last_submission_ = other.last_submission_;
    dispatches_ = other.dispatches_;
  }
  return *this;
}

void CommandList::reset() {
  if (context_ == nullptr) {
    return;
  }
  const VkDevice device = context_->device();
  std::exchange(context_, nullptr)->retire([device, pool = pool_, queries = queries_, sets = descriptor_pools_] {
    vkDestroyCommandPool(device, pool, nullptr);
    vkDestroyQueryPool(device, queries, nullptr);
    for (const VkDescriptorPool set : sets) {
      vkDestroyDescriptorPool(device, set, nullptr);
    }
  });
}

void CommandList::require_recording(const char* what) const {
  if (context_ == nullptr || finished_) {
    throw bad_input(std::string(what) + " was called on the command list \"" + name_ +
                    "\", which is already finished.");
  }
}

void CommandList::fail(const Kernel& kernel, const std::string& problem) const {
  throw bad_input("In the command list \"" + name_ + "\", kernel " + kernel.name() + ": " + problem);
}

void CommandList::barrier() {
  require_recording("barrier");
  barrier_pending_ = anything_recorded_;
}

void CommandList::before_command() {
  if (barrier_pending_) {
    device_barrier(commands_);
    barrier_pending_ = false;
  }
  anything_recorded_ = true;
}

void CommandList::dispatch(uint32_t x, uint32_t y, uint32_t z) {
  require_recording("dispatch");
  if (kernel_ == nullptr) {
    throw bad_input("dispatch was called on the command list \"" + name_ + "\" before a kernel was bound.");
  }
  const std::array<uint32_t, 3> counts = {x, y, z};
  const std::array<uint32_t, 3>& allowed = context_->limits().max_group_count;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (counts[axis] > allowed[axis]) {
      fail(*kernel_, "a dispatch of " + std::to_string(counts[axis]) + " workgroups along " +
                         std::string(1, "xyz"[axis]) + " is larger than the device " + context_->report().name +
                         " allows: " + std::to_string(allowed[axis]) + ".");
    }
  }
  if (x == 0 || y == 0 || z == 0) {
    return;
  }
  before_command();
  vkCmdDispatch(commands_, x, y, z);
  ++dispatches_;
}

void CommandList::dispatch_indirect(const Buffer& counts, uint64_t offset) {
  require_recording("dispatch_indirect");
  if (kernel_ == nullptr) {
    throw bad_input("dispatch_indirect was called on the command list \"" + name_ + "\" before a kernel was bound.");
  }
  constexpr uint64_t needed = 3 * sizeof(uint32_t);
  if (offset % 4 != 0 || counts.bytes() < needed || offset > counts.bytes() - needed) {
    fail(*kernel_, "the workgroup counts at offset " + std::to_string(offset) +
                       " must be 12 bytes at a multiple of 4 " + "inside a buffer of " +
                       std::to_string(counts.bytes()) + " bytes.");
  }
  before_command();
  vkCmdDispatchIndirect(commands_, counts.handle(), offset);
  ++dispatches_;
}

namespace {

void require_inside(const Buffer& buffer, uint64_t offset, uint64_t bytes, const std::string& what) {
  if (!buffer || offset > buffer.bytes() || bytes > buffer.bytes() - offset) {
    throw bad_input(what + " of " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                    " leaves a buffer of " + std::to_string(buffer.bytes()) + " bytes.");
  }
}

}  // namespace

void CommandList::copy(const Buffer& from, uint64_t from_offset, const Buffer& to, uint64_t to_offset, uint64_t bytes) {
  require_recording("copy");
  require_inside(from, from_offset, bytes, "In the command list \"" + name_ + "\", a copy from");
  require_inside(to, to_offset, bytes, "In the command list \"" + name_ + "\", a copy to");
  const uint64_t low = std::min(from_offset, to_offset);
  const uint64_t high = std::max(from_offset, to_offset);
  if (from.handle() == to.handle() && high - low < bytes) {
    throw bad_input("In the command list \"" + name_ + "\", a copy of " + std::to_string(bytes) +
                    " bytes from offset " + std::to_string(from_offset) + " to " + std::to_string(to_offset) +
                    " of the same buffer overlaps itself.");
  }
  if (bytes == 0) {
    return;
  }
  before_command();
  const VkBufferCopy region{from_offset, to_offset, bytes};
  vkCmdCopyBuffer(commands_, from.handle(), to.handle(), 1, &region);
}

void CommandList::fill(const Buffer& buffer, uint64_t offset, uint64_t bytes, uint32_t word) {
  require_recording("fill");
  require_inside(buffer, offset, bytes, "In the command list \"" + name_ + "\", a fill");
  if (offset % 4 != 0 || bytes % 4 != 0) {
    throw bad_input("In the command list \"" + name_ + "\", a fill of " + std::to_string(bytes) + " bytes at offset " +
                    std::to_string(offset) + " is not in whole words of 4 bytes.");
  }
  if (bytes == 0) {
    return;
  }
  before_command();
  vkCmdFillBuffer(commands_, buffer.handle(), offset, bytes, word);
}

void CommandList::timestamp(std::string label) {
  require_recording("timestamp");
  if (labels_.size() >= max_timestamps_) {
    throw bad_input("The command list \"" + name_ + "\" was made for " + std::to_string(max_timestamps_) +
                    " timestamps; \"" + label + "\" is one more.");
  }
  if (queries_ != VK_NULL_HANDLE) {
    vkCmdWriteTimestamp2(commands_, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, queries_,
                         static_cast<uint32_t>(labels_.size()));
  }
  labels_.push_back(std::move(label));
}

void CommandList::finish() {
  if (finished_) {
    return;
  }
  require_recording("finish");
  memory_barrier(commands_, device_work, device_writes, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
  context_->check(vkEndCommandBuffer(commands_), "Finishing the command list \"" + name_ + "\"");
  finished_ = true;
}

std::vector<Timestamp> CommandList::timestamps() const {
  std::vector<Timestamp> result;
  if (queries_ == VK_NULL_HANDLE || labels_.empty()) {
    return result;
  }
  if (last_submission_ == 0 || !context_->is_complete(last_submission_)) {
    throw bad_input("The timestamps of the command list \"" + name_ + "\" were asked for before it had run.");
  }
  std::vector<uint64_t> ticks(labels_.size());
  context_->check(vkGetQueryPoolResults(context_->device(), queries_, 0, static_cast<uint32_t>(ticks.size()),
                                        ticks.size() * sizeof(uint64_t), ticks.data(), sizeof(uint64_t),
                                        VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
                  "Reading the timestamps of \"" + name_ + "\"");
  const DeviceLimits& limits = context_->limits();
  const uint64_t mask = limits.timestamp_valid_bits >= 64 ? ~0ull : (1ull << limits.timestamp_valid_bits) - 1;
  for (size_t i = 0; i < ticks.size(); ++i) {
    // The difference modulo the counter's width survives a wrap in between.
    const uint64_t elapsed = (ticks[i] - ticks[0]) & mask;
    result.push_back({labels_[i], static_cast<double>(elapsed) * limits.timestamp_period_ns / 1000});
  }
  return result;
}

// CommandList::bind: what a kernel is given is checked against what its shader declares.

namespace {

std::string binding_name(const ShaderBinding& binding) {
  return "binding " + std::to_string(binding.binding) + (binding.name.empty() ? "" : " (" + binding.name + ")");
}

}  // namespace

void CommandList::bind(const Kernel& kernel, std::span<const Binding> bindings, std::span<const std::byte> push) {
  require_recording("bind");
  check_bindings(kernel, bindings);
  if (push.size() != kernel.reflection().push_bytes) {
    fail(kernel, std::to_string(push.size()) + " bytes of push constants were given, the shader takes " +
                     std::to_string(kernel.reflection().push_bytes) + ".");
  }
  std::vector<Bound> wanted;
  wanted.reserve(bindings.size());
  for (const Binding& binding : bindings) {
    wanted.push_back({.buffer = binding.buffer->handle(), .offset = binding.offset, .bytes = binding.bytes});
  }
  const bool same_kernel = kernel_ == &kernel;
  if (!same_kernel) {
    vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline());
  }
  if (!wanted.empty() && (!same_kernel || wanted != bound_)) {
    const VkDescriptorSet set = allocate_set(kernel);
    write_descriptors(kernel, set, wanted);
    vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout(), 0, 1, &set, 0, nullptr);
  }
  if (!push.empty() && (!same_kernel || !std::equal(push.begin(), push.end(), push_.begin(), push_.end()))) {
    vkCmdPushConstants(commands_, kernel.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, static_cast<uint32_t>(push.size()),
                       push.data());
  }
  kernel_ = &kernel;
  bound_ = std::move(wanted);
  push_.assign(push.begin(), push.end());
}

void CommandList::check_bindings(const Kernel& kernel, std::span<const Binding> bindings) const {
  size_t needed = 0;
  for (const ShaderBinding& declared : kernel.reflection().bindings) {
    needed += declared.count;
  }
  if (bindings.size() != needed) {
    fail(kernel,
         std::to_string(bindings.size()) + " bindings were given, the shader takes " + std::to_string(needed) + ".");
  }
  size_t next = 0;
  for (const ShaderBinding& declared : kernel.reflection().bindings) {
    for (uint32_t element = 0; element < declared.count; ++element) {
      check_binding(kernel, declared, bindings[next++]);
    }
  }
}

void CommandList::check_binding(const Kernel& kernel, const ShaderBinding& declared, const Binding& given) const {
  const DeviceLimits& limits = context_->limits();
  const bool storage = declared.type == BindingType::storage_buffer;
  const uint64_t largest = storage ? limits.max_storage_range : limits.max_uniform_range;
  const uint64_t alignment = storage ? limits.storage_alignment : limits.uniform_alignment;
  const Buffer& buffer = *given.buffer;
  const auto range = [&] {
    return binding_name(declared) + " was given " + std::to_string(given.bytes) + " bytes at offset " +
           std::to_string(given.offset);
  };
  if (!buffer || given.bytes == 0 || given.offset > buffer.bytes() || given.bytes > buffer.bytes() - given.offset) {
    fail(kernel, range() + ", which is empty or leaves the buffer of " + std::to_string(buffer.bytes()) + " bytes.");
  }
  if (given.bytes > largest) {
    throw out_of_memory("In the command list \"" + name_ + "\", kernel " + kernel.name() + ": " + range() + "; a " +
                        std::string(to_string(declared.type)) + " of the device " + context_->report().name +
                        " has at most " + std::to_string(largest) + " bytes.");
  }
  if (given.offset % alignment != 0) {
    fail(kernel, range() + "; the offset must be a multiple of " + std::to_string(alignment) + ".");
  }
  // A uniform block is often declared at its largest size and read only as far as the push constants say; the fixed
  // part of a storage block is always there.
  if (storage && given.bytes < declared.static_bytes) {
    fail(kernel, range() + ", the shader declares at least " + std::to_string(declared.static_bytes) + ".");
  }
}

VkDescriptorSet CommandList::allocate_set(const Kernel& kernel) {
  const VkDescriptorSetLayout layout = kernel.set_layout();
  VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  if (!descriptor_pools_.empty()) {
    info.descriptorPool = descriptor_pools_.back();
    const VkResult result = vkAllocateDescriptorSets(context_->device(), &info, &set);
    if (result == VK_SUCCESS) {
      return set;
    }
    if (result != VK_ERROR_OUT_OF_POOL_MEMORY && result != VK_ERROR_FRAGMENTED_POOL) {
      context_->check(result, "Allocating a descriptor set for " + kernel.name());
    }
  }
  add_descriptor_pool(kernel);
  info.descriptorPool = descriptor_pools_.back();
  context_->check(vkAllocateDescriptorSets(context_->device(), &info, &set),
                  "Allocating a descriptor set for " + kernel.name());
  return set;
}

void CommandList::add_descriptor_pool(const Kernel& kernel) {
  constexpr uint32_t sets = 64;
  uint32_t needed = 0;  // by this kernel alone, of any one type
  for (const ShaderBinding& binding : kernel.reflection().bindings) {
    needed += binding.count;
  }
  const std::array<VkDescriptorPoolSize, 2> sizes = {{
      {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, std::max(sets * 6, needed)},
      {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, std::max(sets * 2, needed)},
  }};
  VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.maxSets = sets;
  info.poolSizeCount = static_cast<uint32_t>(sizes.size());
  info.pPoolSizes = sizes.data();
  VkDescriptorPool pool = VK_NULL_HANDLE;
  context_->check(vkCreateDescriptorPool(context_->device(), &info, nullptr, &pool), "Creating a descriptor pool");
  descriptor_pools_.push_back(pool);
}

void CommandList::write_descriptors(const Kernel& kernel, VkDescriptorSet set, std::span<const Bound> bound) {
  std::vector<VkDescriptorBufferInfo> buffers(bound.size());
  for (size_t i = 0; i < bound.size(); ++i) {
    buffers[i] = {bound[i].buffer, bound[i].offset, bound[i].bytes};
  }
  std::vector<VkWriteDescriptorSet> writes;
  size_t next = 0;
  for (const ShaderBinding& declared : kernel.reflection().bindings) {
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set;
    write.dstBinding = declared.binding;
    write.descriptorCount = declared.count;
    write.descriptorType = descriptor_type(declared.type);
    write.pBufferInfo = &buffers[next];
    writes.push_back(write);
    next += declared.count;
  }
  vkUpdateDescriptorSets(context_->device(), static_cast<uint32_t>(writes.size()), writes.data(), 0, nullptr);
}

}  // namespace canopy::vk
