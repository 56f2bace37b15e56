#pragma once
// Commands recorded once and run many times.

#include <volk.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/vulkan/memory.h"

namespace canopy::vk {

class Context;
class Kernel;
struct ShaderBinding;

/// The memory behind a kernel's binding: bytes of a buffer. A range without a size means all bytes
/// from `offset` to the end of the buffer, and is checked like any other.
struct Binding {
  Binding(const Buffer& whole) : buffer(&whole), bytes(whole.bytes()) {}  // NOLINT: implicit on purpose
  Binding(const Buffer& owner, uint64_t first, uint64_t size) : buffer(&owner), offset(first), bytes(size) {}

  const Buffer* buffer = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct CommandListOptions {
  std::string name = "commands";  // for messages and debuggers
  uint32_t max_timestamps = 0;    // how many timestamp() calls will follow
};

struct Timestamp {
  std::string label;
  double microseconds = 0;  // since the first timestamp of the list
};

/// One primary command buffer with the descriptor sets it needs. Record, finish(), then Context::run as often as
/// wanted; the contents of the buffers may change between runs, the buffers may not. Starts by waiting for the memory
/// effects of what was submitted before it, and ends by making its writes visible to the host. Errors of use (a wrong
/// push-constant size, number or type of bindings, a range beyond a buffer or a device limit, a misaligned offset, a
/// dispatch beyond the device's limits) are thrown while recording, as bad_input or out_of_memory, and name the kernel,
/// the binding, the value and the limit. Must not outlive its Context or what it binds.
class CommandList {
 public:
  explicit CommandList(Context& context, const CommandListOptions& options = {});
  ~CommandList() { reset(); }
  CommandList(CommandList&& other) noexcept;
  CommandList& operator=(CommandList&& other) noexcept;

  /// Bindings in the order of the shader's binding numbers (an array binding takes one entry per element);
  /// `push` must have exactly the size of the shader's push-constant block.
  void bind(const Kernel& kernel, std::span<const Binding> bindings, std::span<const std::byte> push = {});
  void bind(const Kernel& kernel, std::initializer_list<Binding> bindings, std::span<const std::byte> push = {}) {
    bind(kernel, std::span<const Binding>(bindings.begin(), bindings.size()), push);
  }
  template <class Push>
  requires(std::is_class_v<Push>&& std::is_trivially_copyable_v<Push> &&
           !std::is_convertible_v<const Push&, std::span<const std::byte>>) void bind(const Kernel& kernel,
                                                                                      std::initializer_list<Binding>
                                                                                          bindings,
                                                                                      const Push& push) {
    bind(kernel, std::span<const Binding>(bindings.begin(), bindings.size()), std::as_bytes(std::span(&push, 1)));
  }

  /// Runs the bound kernel with x·y·z workgroups. A count of 0 records nothing.
  void dispatch(uint32_t x, uint32_t y = 1, uint32_t z = 1);
  /// Workgroup counts from three consecutive uint32 at `offset` (a multiple of 4) when the list runs. The caller keeps
  /// them within DeviceLimits::max_group_count.
  void dispatch_indirect(const Buffer& counts, uint64_t offset);
  /// Commands after this see what those before it wrote, as shader, indirect or copy reads. Calls with nothing recorded
  /// between them cost one barrier; one at the end costs none.
  void barrier();

  /// Offsets and sizes in bytes; ranges of one buffer must not overlap.
  void copy(const Buffer& from, uint64_t from_offset, const Buffer& to, uint64_t to_offset, uint64_t bytes);
  /// Sets bytes (offset and size multiples of 4) to a repeated 32-bit word.
  void fill(const Buffer& buffer, uint64_t offset, uint64_t bytes, uint32_t word);

  /// Notes the time at which everything recorded before this has finished. Recorded but without effect where the queue
  /// has no timestamps.
  void timestamp(std::string label);

  /// Ends recording. Context::run and submit call it if it was not called.
  void finish();

  /// The timestamps of the last run, in recording order, non-decreasing; empty where the queue has none. Call after the
  /// run was waited for.
  std::vector<Timestamp> timestamps() const;

  uint32_t dispatch_count() const { return dispatches_; }
  const std::string& name() const { return name_; }
  VkCommandBuffer handle() const { return commands_; }

 private:
  friend class Context;

  struct Bound {  // a Binding resolved to handles
    VkBuffer buffer = VK_NULL_HANDLE;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    bool operator==(const Bound&) const = default;
  };

  void begin();
  void reset();
  void require_recording(const char* what) const;
  [[noreturn]] void fail(const Kernel& kernel, const std::string& problem) const;
  void before_command();
  void check_bindings(const Kernel& kernel, std::span<const Binding> bindings) const;
  void check_binding(const Kernel& kernel, const ShaderBinding& declared, const Binding& given) const;
  VkDescriptorSet allocate_set(const Kernel& kernel);
  void add_descriptor_pool(const Kernel& kernel);
  void write_descriptors(const Kernel& kernel, VkDescriptorSet set, std::span<const Bound> bound);

  Context* context_ = nullptr;
  std::string name_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  std::vector<VkDescriptorPool> descriptor_pools_;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  uint32_t max_timestamps_ = 0;
  std::vector<std::string> labels_;

  // Recording state: what the command buffer has bound already, so that nothing is bound twice.
  const Kernel* kernel_ = nullptr;
  std::vector<Bound> bound_;
  std::vector<std::byte> push_;
  bool barrier_pending_ = false;
  bool anything_recorded_ = false;
  bool finished_ = false;
  uint64_t last_submission_ = 0;  // set by Context; 0: never run
  uint32_t dispatches_ = 0;
};

}  // namespace canopy::vk
