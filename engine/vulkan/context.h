#pragma once
// One opened device: queue, memory, kernels, submission. All else in this folder hangs on it.

#include <volk.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/vulkan/instance.h"
#include "engine/vulkan/kernel.h"
#include "engine/vulkan/memory.h"
#include "engine/vulkan/physical_device.h"

namespace canopy::vk {

class CommandList;
class Staging;

struct ContextOptions {
  /// Keeps compiled pipelines between runs; empty: none are kept.
  std::filesystem::path pipeline_cache_file;
  /// The time after which wait() gives the device up. Unless given: 10 s, or 300 s on a software device, which compiles
  /// a kernel when it first runs (for seconds, on a busy machine much longer) and shares the processor with others.
  std::optional<std::chrono::milliseconds> timeout;
  /// Ask the driver for registers, spills, assembly … of each kernel, where it can tell.
  bool pipeline_statistics = false;

  // For tests, and for users whose driver overstates: each lowers a limit, none can raise one. Bytes.
  std::optional<uint64_t> max_storage_range;
  std::optional<uint64_t> max_uniform_range;
  std::optional<uint64_t> max_allocation;
  std::optional<uint64_t> max_block;  // see Context::max_block()
  std::optional<uint64_t> memory_budget;
  std::optional<uint32_t> max_group_count;  // workgroups along each axis
  /// Treat device memory as invisible to the host, so that uploads and downloads go through staging.
  bool force_staging = false;
  /// Treat mapped device memory as not cached by the host.
  bool force_uncached = false;
  /// Lower all limits to baseline_limits() and use no optional feature but those a shader asks for on every device.
  bool baseline = false;
};

struct MemoryInfo {
  uint64_t total = 0;   // bytes of the heap that device buffers come from
  uint64_t budget = 0;  // bytes this process may use there, those it uses included
  uint64_t used = 0;    // bytes this process uses there
  uint64_t available() const { return budget > used ? budget - used : 0; }
};

/// Names a submission, to wait for it; 0 is "nothing".
using Submission = uint64_t;

/// Not thread-safe: one thread (the engine's) owns a Context and all that was made from it.
class Context {
 public:
  /// Opens the device at DeviceReport::index. Throws unavailable if it cannot be used.
  Context(const Instance& instance, uint32_t device_index, ContextOptions options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const DeviceReport& report() const { return report_; }
  const DeviceLimits& limits() const { return report_.limits; }
  /// The features that are switched on: those that the device has and the options allow.
  const DeviceFeatures& features() const { return features_; }
  const ContextOptions& options() const { return options_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  /// The identity of device and driver, for keys of files with measurements of it.
  const CacheIdentity& identity() const { return identity_; }
  /// The device's memory is the host's: device buffers are mapped, copies between host and device are memcpy.
  bool unified_memory() const { return unified_; }
  /// Messages for a log: a pipeline cache that was ignored, a feature that was refused.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Asked from the driver each time: other processes move the budget. On a software device also bounded by the
  /// memory the host has left.
  MemoryInfo memory_info() const;

  /// The most that is allocated at once for several buffers, and the most that a weight has in one buffer: 1 GiB, or
  /// less where the device allows less or has little memory. Bytes.
  uint64_t max_block() const;

  /// A buffer with memory of its own; `bytes` > 0; contents undefined. Throws out_of_memory, before allocating, beyond
  /// the largest allocation or the budget, with the bytes needed and available.
  Buffer create_buffer(BufferKind kind, uint64_t bytes, std::string_view name);

  /// Copies host bytes to `buffer` at `offset` and back, in any kind of buffer, after everything submitted before and
  /// before everything submitted later. An upload to memory that the host cannot see returns when it has taken the
  /// bytes; the device may still be copying.
  void upload(const Buffer& buffer, uint64_t offset, std::span<const std::byte> data);
  void download(const Buffer& buffer, uint64_t offset, std::span<std::byte> data);
  /// Several behind one wait.
  void download(std::span<const Download> downloads);

  /// The kernel of that shader and options, made on first use and kept. Throws with the shader's name.
  const Kernel& kernel(std::string_view shader, const KernelOptions& options = {});
  const Kernel& kernel(const ShaderCode& shader, const KernelOptions& options = {});
  size_t kernel_count() const { return kernels_.size(); }

  /// Submits and waits. Throws device_lost if the device fails or takes longer than ContextOptions::timeout.
  void run(CommandList& list);
  /// Starts a list; lists run in the order submitted. The same list may not be submitted again before it was waited
  /// for.
  Submission submit(CommandList& list);
  /// Waits for a submission and all before it.
  void wait(Submission submission);
  /// Waits for everything submitted.
  void wait_idle();
  bool is_complete(Submission submission);
  /// Milliseconds spent in waits so far.
  double waited_ms() const { return waited_ms_; }
  /// The newest submission, and so how many there were.
  Submission last_submission() const { return submitted_; }

  /// True once the device failed or timed out; then every further submission throws device_lost.
  bool lost() const { return lost_; }

  /// Writes the pipeline cache now (the destructor does it too). What went wrong becomes a note.
  void save_pipeline_cache();

  // For the classes of this folder.

  VkDevice device() const { return device_; }
  VkPhysicalDevice physical_device() const { return physical_; }
  uint32_t queue_family() const { return queue_family_; }
  VkPipelineCache pipeline_cache() const { return cache_; }
  /// check_vk that remembers a lost device.
  VkResult check(VkResult result, std::string_view doing);
  void require_alive() const;
  /// Runs `destroy` once the device has finished all that is submitted by now: at once if it has.
  void retire(std::function<void()> destroy);
  void name_object(VkObjectType type, uint64_t handle, std::string_view name) const;
  /// memcpy to and from a mapped buffer, with the flush that memory which is not coherent needs; no waiting.
  void write_mapped(const Buffer& buffer, uint64_t offset, std::span<const std::byte> data);
  void read_mapped(const Buffer& buffer, uint64_t offset, std::span<std::byte> data);
  /// A buffer that has no memory yet. Throws as create_buffer, but for want of memory.
  Buffer bare_buffer(BufferKind kind, uint64_t bytes, std::string_view name);
  VkMemoryRequirements requirements(const Buffer& buffer) const;
  /// Memory for `bytes` of buffers like one of these needs. Throws out_of_memory, with the bytes needed and available.
  std::shared_ptr<MemoryBlock> allocate_block(const VkMemoryRequirements& needs, BufferKind kind, uint64_t bytes,
                                              std::string_view name);
  /// Gives a bare buffer its place in a block. `offset` is a multiple of its alignment and of limits().atom_size.
  void place(Buffer& buffer, std::shared_ptr<MemoryBlock> block, uint64_t offset, std::string_view name);
  void forget_block(const MemoryBlock& block);

 private:
  struct InFlight {
    Submission id;
    VkFence fence;
  };
  struct Retired {
    Submission after;
    std::function<void()> destroy;
  };

  void open(const Instance& instance);
  void find_features();
  void create_device();
  void load_pipeline_cache();
  void apply_limits();
  void check_room(BufferKind kind, uint64_t bytes, std::string_view name) const;
  void check_range(const Buffer& buffer, uint64_t offset, uint64_t bytes, std::string_view doing) const;
  VkMappedMemoryRange mapped_range(const Buffer& buffer, uint64_t offset, uint64_t bytes) const;
  uint32_t device_heap() const;
  [[noreturn]] void throw_no_memory(VkResult result, const std::string& doing) const;
  VkFence take_fence();
  void note(const std::string& text);
  void collect(Submission completed);
  void close();

  ContextOptions options_;
  std::chrono::milliseconds timeout_{0};
  DeviceReport report_;
  DeviceFeatures features_;
  CacheIdentity identity_;
  std::vector<std::string> notes_;
  VkPhysicalDeviceMemoryProperties memory_{};
  bool unified_ = false;
  bool debug_names_ = false;
  bool lost_ = false;
  bool hung_ = false;  // timed out: the device may still be using what we own

  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t queue_family_ = 0;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  uint64_t saved_cache_hash_ = 0;
  std::deque<InFlight> in_flight_;  // in order of submission
  std::vector<VkFence> free_fences_;

  Submission submitted_ = 0;
  Submission completed_ = 0;
  double waited_ms_ = 0;
  std::deque<Retired> retired_;  // in order of `after`
  std::map<std::string, std::unique_ptr<Kernel>, std::less<>> kernels_;
  std::unique_ptr<Staging> staging_;
  uint64_t allocated_ = 0;  // bytes of our blocks in the device heap
  uint32_t allocations_ = 0;
  uint64_t host_available_ = 0;  // on a software device: what the host had left when it was opened
};

}  // namespace canopy::vk
