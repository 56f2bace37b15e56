// Submission, waiting and what happens to objects that the device may still use.

#include <algorithm>
#include <chrono>

#include "engine/vulkan/check.h"
#include "engine/vulkan/command_list.h"
#include "engine/vulkan/context.h"

namespace canopy::vk {

uint64_t nanoseconds(std::chrono::milliseconds time) {
  return time.count() <= 0 ? 0 : static_cast<uint64_t>(time.count()) * 1'000'000;
}

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
