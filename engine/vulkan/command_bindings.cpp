// CommandList::bind: what a kernel is given is checked against what its shader declares.

#include <algorithm>
#include <cstring>

#include "engine/vulkan/check.h"
#include "engine/vulkan/command_list.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/kernel.h"

namespace canopy::vk {
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
