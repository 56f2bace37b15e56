#include "engine/vulkan/memory.h"

#include <cstring>
#include <utility>

#include "engine/base/figures.h"
#include "engine/base/machine.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/instance.h"
#include "engine/vulkan/upload.h"

namespace canopy::vk {
namespace {

constexpr VkMemoryPropertyFlags never = VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |
                                        VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD |
                                        VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD |
                                        VK_MEMORY_PROPERTY_RDMA_CAPABLE_BIT_NV;

// Higher is better; negative: not for this kind. Each wish outweighs all the wishes after it.
int score(VkMemoryPropertyFlags flags, BufferKind kind, bool unified) {
  const bool local = (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
  const bool visible = (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
  const bool coherent = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
  const bool cached = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
  switch (kind) {
    case BufferKind::device:
      if (unified) {
        return 8 * local + 4 * visible + 2 * coherent + 1 * cached;
      }
      // On a discrete card mapped device memory is a small window; leave it to others.
      return 2 * local + 1 * !visible;
    case BufferKind::host_read: return visible ? 4 * cached + 2 * coherent + 1 * !local : -1;
    case BufferKind::host_write: return visible ? 4 * coherent + 2 * !local + 1 * !cached : -1;
    case BufferKind::input: return visible ? 4 * coherent + 2 * local + 1 * !cached : -1;
  }
  return -1;
}

}  // namespace

std::optional<uint32_t> select_memory_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed_types,
                                           BufferKind kind, uint64_t bytes, bool unified) {
  std::optional<uint32_t> best;
  int best_score = -1;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryType& type = memory.memoryTypes[i];
    if ((allowed_types >> i & 1) == 0 || (type.propertyFlags & never) != 0 ||
        memory.memoryHeaps[type.heapIndex].size < bytes) {
      continue;
    }
    const int value = score(type.propertyFlags, kind, unified);
    if (value > best_score) {  // ties: the first, which drivers list first because it is faster
      best = i;
      best_score = value;
    }
  }
  return best;
}

bool reads_in_place(VkMemoryPropertyFlags flags, uint64_t bytes) {
  constexpr uint64_t few = 1024;  // read in the time that a submission takes
  if ((flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0) return false;
  return (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0 || bytes <= few;
}

Buffer::Buffer(Buffer&& other) noexcept {
  *this = std::move(other);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    context_ = std::exchange(other.context_, nullptr);
    handle_ = std::exchange(other.handle_, VK_NULL_HANDLE);
    block_ = std::move(other.block_);
    block_offset_ = std::exchange(other.block_offset_, 0);
    bytes_ = std::exchange(other.bytes_, 0);
    mapped_ = std::exchange(other.mapped_, nullptr);
    coherent_ = other.coherent_;
    memory_flags_ = other.memory_flags_;
    kind_ = other.kind_;
  }
  return *this;
}

void Buffer::reset() {
  if (context_ == nullptr) {
    return;
  }
  Context& context = *std::exchange(context_, nullptr);
  // The memory counts as used until then.
  context.retire([&context, buffer = std::exchange(handle_, VK_NULL_HANDLE), block = std::move(block_)]() mutable {
    vkDestroyBuffer(context.device(), buffer, nullptr);
    block.reset();
  });
  block_.reset();
  mapped_ = nullptr;
  bytes_ = 0;
}

MemoryBlock::~MemoryBlock() {
  if (handle_ == VK_NULL_HANDLE) return;
  vkFreeMemory(context_.device(), handle_, nullptr);  // unmaps
  context_.forget_block(*this);
}

// Buffers: room for them, making them, moving bytes in and out.

namespace {

constexpr VkBufferUsageFlags all_usages = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
                                          VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                          VK_BUFFER_USAGE_TRANSFER_DST_BIT;

}  // namespace

// The heap that device buffers come from.
uint32_t Context::device_heap() const {
  const std::optional<uint32_t> type = select_memory_type(memory_, ~0u, BufferKind::device, 0, unified_);
  return type ? memory_.memoryTypes[*type].heapIndex : 0;
}

MemoryInfo Context::memory_info() const {
  const uint32_t heap = device_heap();
  MemoryInfo info{
      .total = memory_.memoryHeaps[heap].size, .budget = memory_.memoryHeaps[heap].size, .used = allocated_};
  if (features_.memory_budget) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    properties.pNext = &budget;
    vkGetPhysicalDeviceMemoryProperties2(physical_, &properties);
    info.budget = believable_budget(info.total, budget.heapBudget[heap]);
    info.used = believable_usage(info.used, budget.heapUsage[heap]);
  }
  if (report_.type == DeviceType::cpu) {
    // A software driver promises all the host has, or a fixed size; neither means that it is free. Memory that was
    // allocated and not touched yet still counts as available, hence the figure from before our first allocation.
    info.used = allocated_;
    info.budget = std::min({info.total, host_available_, info.used + system_memory().available});
  }
  if (options_.memory_budget) {
    info.budget = std::min(info.budget, *options_.memory_budget);
    info.used = allocated_;
  }
  return info;
}

void Context::check_room(BufferKind kind, uint64_t bytes, std::string_view name) const {
  const DeviceLimits& limits = report_.limits;
  const std::string what = "The buffer \"" + std::string(name) + "\" of " + byte_figures(bytes);
  if (bytes > limits.max_allocation) {
    throw out_of_memory(what + " is larger than the device " + report_.name + " allocates at once: at most " +
                        byte_figures(limits.max_allocation) + ".");
  }
  if (allocations_ >= limits.max_allocations) {
    throw out_of_memory(what + " cannot be made: all " + std::to_string(limits.max_allocations) +
                        " allocations that the device " + report_.name + " allows are in use.");
  }
  if (kind != BufferKind::device && !unified_) {
    return;  // host memory: the allocation itself tells
  }
  const MemoryInfo memory = memory_info();
  if (bytes > memory.available()) {
    throw out_of_memory(what + " does not fit the memory of the device " + report_.name + ": " +
                        byte_figures(memory.available()) + " are available of " + byte_figures(memory.budget) + ".");
  }
}

uint64_t Context::max_block() const {
  constexpr uint64_t most = 1ull << 30;  // that every device allocates at once
  const uint64_t heap = memory_.memoryHeaps[device_heap()].size;
  return std::min({most, report_.limits.max_allocation, heap / 4, options_.max_block.value_or(most)});
}

Buffer Context::create_buffer(BufferKind kind, uint64_t bytes, std::string_view name) {
  require_alive();
  check_room(kind, std::max<uint64_t>(bytes, 1), name);
  Buffer buffer = bare_buffer(kind, bytes, name);
  const VkMemoryRequirements needs = requirements(buffer);
  place(buffer, allocate_block(needs, kind, needs.size, name), 0, name);
  return buffer;
}

Buffer Context::bare_buffer(BufferKind kind, uint64_t bytes, std::string_view name) {
  require_alive();
  if (bytes == 0) {
    throw bad_input("The buffer \"" + std::string(name) + "\" has no bytes; at least one is needed.");
  }
  Buffer buffer;
  buffer.bytes_ = bytes;
  buffer.kind_ = kind;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = bytes;
  info.usage = all_usages;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  check(vkCreateBuffer(device_, &info, nullptr, &buffer.handle_), "Creating the buffer \"" + std::string(name) + "\"");
  buffer.context_ = this;  // from here on its destructor cleans up
  name_object(VK_OBJECT_TYPE_BUFFER, reinterpret_cast<uint64_t>(buffer.handle_), name);
  return buffer;
}

VkMemoryRequirements Context::requirements(const Buffer& buffer) const {
  VkMemoryRequirements needs{};
  vkGetBufferMemoryRequirements(device_, buffer.handle_, &needs);
  return needs;
}

// The driver's word on what is free says how far off the plan was: another program may have taken memory meanwhile.
void Context::throw_no_memory(VkResult result, const std::string& doing) const {
  const MemoryInfo memory = memory_info();
  throw out_of_memory(vk_error(result, doing).what() + (" By the driver " + byte_figures(memory.available()) +
                                                        " are available of " + byte_figures(memory.budget) + "."));
}

std::shared_ptr<MemoryBlock> Context::allocate_block(const VkMemoryRequirements& needs, BufferKind kind, uint64_t bytes,
                                                     std::string_view name) {
  check_room(kind, bytes, name);
  const std::string doing = "Allocating " + byte_figures(bytes) + " for \"" + std::string(name) + "\"";
  const std::optional<uint32_t> type = select_memory_type(memory_, needs.memoryTypeBits, kind, bytes, unified_);
  if (!type) {
    throw out_of_memory(doing + " failed: the device " + report_.name + " has no memory of that kind and size.");
  }
  auto block = std::make_shared<MemoryBlock>(*this);
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.allocationSize = bytes;
  info.memoryTypeIndex = *type;
  const VkResult result = vkAllocateMemory(device_, &info, nullptr, &block->handle_);
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY) throw_no_memory(result, doing);
  check(result, doing);
  block->bytes_ = bytes;
  block->type_ = *type;
  block->flags_ = memory_.memoryTypes[*type].propertyFlags;
  block->in_device_heap_ = kind == BufferKind::device || unified_;
  ++allocations_;
  allocated_ += block->in_device_heap_ ? bytes : 0;

  const bool mappable = (block->flags_ & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
  if (mappable && (kind != BufferKind::device || unified_)) {
    void* mapped = nullptr;
    check(vkMapMemory(device_, block->handle_, 0, VK_WHOLE_SIZE, 0, &mapped), "Mapping \"" + std::string(name) + "\"");
    block->mapped_ = static_cast<std::byte*>(mapped);
  }
  return block;
}

void Context::place(Buffer& buffer, std::shared_ptr<MemoryBlock> block, uint64_t offset, std::string_view name) {
  buffer.block_ = std::move(block);
  buffer.block_offset_ = offset;
  const MemoryBlock& memory = *buffer.block_;
  check(vkBindBufferMemory(device_, buffer.handle_, memory.handle(), offset),
        "Giving memory to \"" + std::string(name) + "\"");
  if (memory.mapped() == nullptr) return;
  buffer.mapped_ = memory.mapped() + offset;
  buffer.memory_flags_ = memory.flags();
  if (options_.force_uncached) {
    buffer.memory_flags_ &= ~static_cast<VkMemoryPropertyFlags>(VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
  }
  buffer.coherent_ = (memory.flags() & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
}

void Context::forget_block(const MemoryBlock& block) {
  --allocations_;
  allocated_ -= block.in_device_heap_ ? block.bytes() : 0;
}

void Context::check_range(const Buffer& buffer, uint64_t offset, uint64_t bytes, std::string_view doing) const {
  if (!buffer || offset > buffer.bytes() || bytes > buffer.bytes() - offset) {
    throw bad_input(std::string(doing) + " of " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                    " leaves a buffer of " + std::to_string(buffer.bytes()) + " bytes.");
  }
}

// Flushes and invalidations work on whole atoms; a buffer starts at one.
VkMappedMemoryRange Context::mapped_range(const Buffer& buffer, uint64_t offset, uint64_t bytes) const {
  const uint64_t atom = report_.limits.atom_size;
  const uint64_t begin = buffer.block_offset_ + offset;
  const uint64_t first = begin / atom * atom;
  const uint64_t end = (begin + bytes + atom - 1) / atom * atom;
  VkMappedMemoryRange range{VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE};
  range.memory = buffer.block_->handle();
  range.offset = first;
  range.size = end >= buffer.block_->bytes() ? VK_WHOLE_SIZE : end - first;
  return range;
}

void Context::write_mapped(const Buffer& buffer, uint64_t offset, std::span<const std::byte> data) {
  if (data.empty()) {
    return;
  }
  std::memcpy(buffer.mapped_ + offset, data.data(), data.size());
  if (!buffer.coherent_) {
    const VkMappedMemoryRange range = mapped_range(buffer, offset, data.size());
    check(vkFlushMappedMemoryRanges(device_, 1, &range), "Flushing mapped memory");
  }
}

void Context::read_mapped(const Buffer& buffer, uint64_t offset, std::span<std::byte> data) {
  if (data.empty()) {
    return;
  }
  if (!buffer.coherent_) {
    const VkMappedMemoryRange range = mapped_range(buffer, offset, data.size());
    check(vkInvalidateMappedMemoryRanges(device_, 1, &range), "Reading mapped memory");
  }
  std::memcpy(data.data(), buffer.mapped_ + offset, data.size());
}

void Context::upload(const Buffer& buffer, uint64_t offset, std::span<const std::byte> data) {
  require_alive();
  check_range(buffer, offset, data.size(), "An upload");
  if (buffer.mapped_ != nullptr) {
    wait_idle();
    write_mapped(buffer, offset, data);
  } else {
    staging_->upload(buffer, offset, data);
  }
}

void Context::download(const Buffer& buffer, uint64_t offset, std::span<std::byte> data) {
  const Download one{&buffer, offset, data};
  download({&one, 1});
}

void Context::download(std::span<const Download> downloads) {
  require_alive();
  for (const Download& d : downloads) check_range(*d.from, d.offset, d.to.size(), "A download");
  wait_idle();
  std::vector<Download> unseen;
  for (const Download& d : downloads) {
    const bool in_place = d.from->kind_ != BufferKind::device || reads_in_place(d.from->memory_flags_, d.to.size());
    if (d.from->mapped_ == nullptr || !in_place) {
      unseen.push_back(d);
    } else {
      read_mapped(*d.from, d.offset, d.to);
    }
  }
  staging_->download(unseen);
}

}  // namespace canopy::vk
