#include "engine/vulkan/context.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/base/machine.h"
#include "engine/vulkan/command_list.h"
#include "engine/vulkan/upload.h"

namespace canopy::vk {
namespace {

bool has_unified_memory(const VkPhysicalDeviceMemoryProperties& memory, DeviceType type) {
  if (type != DeviceType::integrated && type != DeviceType::cpu) {
    return false;
  }
  constexpr VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  return std::any_of(memory.memoryTypes, memory.memoryTypes + memory.memoryTypeCount,
                     [](const VkMemoryType& t) { return (t.propertyFlags & wanted) == wanted; });
}

template <class T>
void lower(T& limit, const std::optional<T>& to) {
  limit = to ? std::min(limit, *to) : limit;
}

void lower_to_baseline(DeviceLimits& limits) {
  const DeviceLimits least = baseline_limits();
  const auto lower_one = [&](auto DeviceLimits::*limit) { limits.*limit = std::min(limits.*limit, least.*limit); };
  lower_one(&DeviceLimits::max_storage_range);
  lower_one(&DeviceLimits::max_uniform_range);
  lower_one(&DeviceLimits::max_allocation);
  lower_one(&DeviceLimits::max_allocations);
  lower_one(&DeviceLimits::max_push_bytes);
  lower_one(&DeviceLimits::max_shared_bytes);
  lower_one(&DeviceLimits::max_invocations);
  lower_one(&DeviceLimits::max_storage_buffers);
  lower_one(&DeviceLimits::max_uniform_buffers);
  for (size_t axis = 0; axis < 3; ++axis) {
    limits.max_group_size[axis] = std::min(limits.max_group_size[axis], least.max_group_size[axis]);
    limits.max_group_count[axis] = std::min(limits.max_group_count[axis], least.max_group_count[axis]);
  }
}

/// For Vulkan's timeouts; negative counts as none.
uint64_t nanoseconds(std::chrono::milliseconds time) {
  return time.count() <= 0 ? 0 : static_cast<uint64_t>(time.count()) * 1'000'000;
}

}  // namespace

Context::Context(const Instance& instance, uint32_t device_index, ContextOptions options)
    : options_(std::move(options)) {
  physical_ = instance.physical_device(device_index);
  report_ = report_device(instance.handle(), physical_, device_index);
  if (!report_.usable) {
    throw Error(ErrorKind::unavailable, "The Vulkan device " + std::to_string(device_index) + " (" + report_.name +
                                            ") cannot be used: " + report_.reason);
  }
  timeout_ = options_.timeout.value_or(std::chrono::seconds(report_.type == DeviceType::cpu ? 300 : 10));
  try {
    open(instance);
  } catch (...) {
    close();
    throw;
  }
}

Context::~Context() {
  close();
}

void Context::open(const Instance& instance) {
  debug_names_ = instance.has_debug_names() && instance.validating();
  identity_ = identity_of(physical_);
  vkGetPhysicalDeviceMemoryProperties(physical_, &memory_);
  host_available_ = system_memory().available;
  unified_ = has_unified_memory(memory_, report_.type) && !options_.force_staging;
  queue_family_ = compute_queue_family(physical_).value();
  apply_limits();
  find_features();
  create_device();
  load_pipeline_cache();
  staging_ = std::make_unique<Staging>(*this);
}

void Context::apply_limits() {
  DeviceLimits& limits = report_.limits;
  if (options_.baseline) lower_to_baseline(limits);
  lower(limits.max_storage_range, options_.max_storage_range);
  lower(limits.max_uniform_range, options_.max_uniform_range);
  lower(limits.max_allocation, options_.max_allocation);
  for (uint32_t& count : limits.max_group_count) {
    lower(count, options_.max_group_count);
  }
}

void Context::find_features() {
  features_ = report_.features;
  features_.pipeline_statistics = features_.pipeline_statistics && options_.pipeline_statistics;
  if (options_.baseline) {
    features_ = {.memory_budget = features_.memory_budget,
                 .pipeline_statistics = features_.pipeline_statistics,
                 .buffer_array_indexing = features_.buffer_array_indexing};
    report_.limits.pinned_subgroup = 0;
  }
}

void Context::create_device() {
  FeatureChain enable(features_.pipeline_statistics, features_.cooperative_matrix, features_.bfloat16);
  request(features_, enable);
  const std::vector<const char*> extensions = extensions_of(features_);
  const float priority = 1.0F;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = queue_family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &enable.base;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  check(vkCreateDevice(physical_, &info, nullptr, &device_), "Opening the Vulkan device " + report_.name);
  vkGetDeviceQueue(device_, queue_family_, 0, &queue_);
}

void Context::note(const std::string& text) {
  log_warning(text);
  notes_.push_back(text);
}

void Context::load_pipeline_cache() {
  CacheFile file;
  if (!options_.pipeline_cache_file.empty()) {
    file = load_cache(options_.pipeline_cache_file, identity_);
  }
  if (!file.note.empty()) {
    note(file.note);
  }
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = file.data.size();
  info.pInitialData = file.data.data();
  if (vkCreatePipelineCache(device_, &info, nullptr, &cache_) == VK_SUCCESS) {
    saved_cache_hash_ = file.data.empty() ? 0 : damage_hash(file.data);
    return;
  }
  note("The driver refused the pipeline cache; starting with an empty one.");
  info.initialDataSize = 0;
  check(vkCreatePipelineCache(device_, &info, nullptr, &cache_), "Creating a pipeline cache");
}

void Context::save_pipeline_cache() {
  if (options_.pipeline_cache_file.empty() || cache_ == VK_NULL_HANDLE || lost_) {
    return;
  }
  size_t bytes = 0;
  if (vkGetPipelineCacheData(device_, cache_, &bytes, nullptr) != VK_SUCCESS || bytes == 0) {
    return;
  }
  std::vector<std::byte> data(bytes);
  if (vkGetPipelineCacheData(device_, cache_, &bytes, data.data()) != VK_SUCCESS) {
    return;
  }
  data.resize(bytes);
  const uint64_t hash = damage_hash(data);
  if (hash == saved_cache_hash_) {
    return;
  }
  const std::string problem = save_cache(options_.pipeline_cache_file, identity_, data);
  if (problem.empty()) {
    saved_cache_hash_ = hash;
  } else {
    note(problem);
  }
}

void Context::close() {
  if (device_ == VK_NULL_HANDLE) {
    return;
  }
  if (hung_ && vkWaitForFences(device_, 1, &in_flight_.back().fence, VK_TRUE, nanoseconds(timeout_)) == VK_TIMEOUT) {
    // The device may still run what we submitted: leaking everything beats freeing it underneath.
    for (auto& [key, kernel] : kernels_) {
      static_cast<void>(kernel.release());
    }
    static_cast<void>(staging_.release());
    static_cast<void>(new std::deque<Retired>(std::move(retired_)));
    return;
  }
  if (completed_ < submitted_) {  // RADV's null device cannot be asked
    vkDeviceWaitIdle(device_);    // a lost device reports so and is idle all the same
  }
  save_pipeline_cache();
  staging_.reset();
  kernels_.clear();
  collect(submitted_);
  for (const InFlight& flight : in_flight_) {
    vkDestroyFence(device_, flight.fence, nullptr);
  }
  for (const VkFence fence : free_fences_) {
    vkDestroyFence(device_, fence, nullptr);
  }
  vkDestroyPipelineCache(device_, cache_, nullptr);
  vkDestroyDevice(device_, nullptr);
  device_ = VK_NULL_HANDLE;
}

VkResult Context::check(VkResult result, std::string_view doing) {
  if (result == VK_ERROR_DEVICE_LOST) {
    lost_ = true;
  }
  return check_vk(result, doing);
}

void Context::require_alive() const {
  if (lost_) {
    throw Error(ErrorKind::device_lost, "The Vulkan device " + report_.name +
                                            " was lost earlier; it must be opened again before it can be used.");
  }
}

void Context::name_object(VkObjectType type, uint64_t handle, std::string_view name) const {
  if (!debug_names_) {
    return;
  }
  const std::string text(name);
  VkDebugUtilsObjectNameInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT};
  info.objectType = type;
  info.objectHandle = handle;
  info.pObjectName = text.c_str();
  vkSetDebugUtilsObjectNameEXT(device_, &info);  // only a label: failing is harmless
}

const Kernel& Context::kernel(std::string_view shader, const KernelOptions& options) {
  return kernel(find_shader(shader), options);
}

const Kernel& Context::kernel(const ShaderCode& shader, const KernelOptions& options) {
  std::string key = Kernel::describe(shader, options);
  const auto found = kernels_.find(key);
  if (found != kernels_.end()) {
    return *found->second;
  }
  require_alive();
  auto kernel = std::make_unique<Kernel>(*this, shader, options);
  return *kernels_.emplace(std::move(key), std::move(kernel)).first->second;
}

// Submission, waiting and what happens to objects that the device may still use.

VkFence Context::take_fence() {
  if (!free_fences_.empty()) {
    const VkFence fence = free_fences_.back();
    check(vkResetFences(device_, 1, &fence), "Resetting a fence");
    free_fences_.pop_back();
    return fence;
  }
  const VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
  VkFence fence = VK_NULL_HANDLE;
  check(vkCreateFence(device_, &info, nullptr, &fence), "Creating a fence");
  return fence;
}

Submission Context::submit(CommandList& list) {
  require_alive();
  list.finish();
  if (list.last_submission_ != 0 && !is_complete(list.last_submission_)) {
    throw bad_input("The command list \"" + list.name() +
                    "\" is still running; wait for it before submitting it again.");
  }
  VkCommandBufferSubmitInfo commands{VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO};
  commands.commandBuffer = list.handle();
  VkSubmitInfo2 info{VK_STRUCTURE_TYPE_SUBMIT_INFO_2};
  info.commandBufferInfoCount = 1;
  info.pCommandBufferInfos = &commands;
  const VkFence fence = take_fence();
  const VkResult result = vkQueueSubmit2(queue_, 1, &info, fence);
  if (result < 0) {
    vkDestroyFence(device_, fence, nullptr);
    check(result, "Submitting the command list \"" + list.name() + "\"");
  }
  in_flight_.push_back({++submitted_, fence});
  list.last_submission_ = submitted_;
  return submitted_;
}

void Context::wait(Submission submission) {
  if (submission > submitted_) {
    throw bad_input("Submission " + std::to_string(submission) + " does not exist; the last one is " +
                    std::to_string(submitted_) + ".");
  }
  if (submission <= completed_) {
    return;
  }
  require_alive();
  // Submissions run and finish in order, so one fence tells of all before it.
  const auto last = std::find_if(in_flight_.begin(), in_flight_.end(),
                                 [&](const InFlight& flight) { return flight.id == submission; });
  const auto start = std::chrono::steady_clock::now();
  const VkResult result =
      check(vkWaitForFences(device_, 1, &last->fence, VK_TRUE, nanoseconds(timeout_)), "Waiting for the device");
  waited_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (result == VK_TIMEOUT) {
    lost_ = true;
    hung_ = true;
    throw Error(ErrorKind::device_lost, "The Vulkan device " + report_.name + " did not finish within " +
                                            std::to_string(timeout_.count()) +
                                            " ms; it must be opened again before it can be used.");
  }
  collect(submission);
}

bool Context::is_complete(Submission submission) {
  while (completed_ < submission && !in_flight_.empty() &&
         check(vkGetFenceStatus(device_, in_flight_.front().fence), "Asking whether the device is done") ==
             VK_SUCCESS) {
    collect(in_flight_.front().id);
  }
  return submission <= completed_;
}

void Context::wait_idle() {
  wait(submitted_);
}

void Context::run(CommandList& list) {
  wait(submit(list));
}

void Context::retire(std::function<void()> destroy) {
  if (completed_ == submitted_) {
    destroy();
  } else {
    retired_.push_back({submitted_, std::move(destroy)});
  }
}

// Everything up to `completed` is done: its fences can be used again, what waited for it can go.
void Context::collect(Submission completed) {
  while (!in_flight_.empty() && in_flight_.front().id <= completed) {
    free_fences_.push_back(in_flight_.front().fence);
    in_flight_.pop_front();
  }
  completed_ = std::max(completed_, completed);
  while (!retired_.empty() && retired_.front().after <= completed_) {
    const std::function<void()> destroy = std::move(retired_.front().destroy);
    retired_.pop_front();
    destroy();
  }
}

}  // namespace canopy::vk
