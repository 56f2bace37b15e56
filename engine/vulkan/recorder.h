#pragma once
// Makes dispatches of ops, with the state that it shares with the device; here also the ops on rows and the recurrent
// ones. Long recordings are cut into several command lists.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/compute/device.h"
#include "engine/compute/types.h"
#include "engine/vulkan/command_list.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/device_objects.h"
#include "engine/vulkan/product_config.h"
#include "engine/vulkan/product_tuner.h"
#include "engine/vulkan/upload.h"

namespace canopy::vk {

// State shared by the device and its recorders.

struct DeviceState {
  std::unique_ptr<Instance> instance;
  std::unique_ptr<Context> context;
  DeviceInfo info;
  bool software = false;
  KernelFamily family = KernelFamily::fma;
  std::optional<MatrixShape> matrix;    // of the family matrix
  std::optional<MatrixShape> integers;  // of matrix_i8
  uint32_t max_tile = 8;                // columns of a matrix product's tile
  uint32_t attention_lanes = 32;
  bool separate_steps = false;     // heads and merges of attention in steps of their own, whatever could be done
  double flops_per_second = 5e11;  // for splitting submissions: a cautious guess, then half of the best that was seen
  std::optional<FmaConfig> forced_fma;
  std::optional<MatrixConfig> forced_matrix;
  // What the recorder takes for every product while a candidate is being timed.
  std::optional<ProductVariant> timed_product;
  std::optional<ExpertVariant> timed_experts;
  std::unique_ptr<ProductTuner> tuner;  // null where kernels follow from rules alone
  std::unique_ptr<BufferArena> arena;   // of the weights that are expected
  std::unique_ptr<UploadRing> ring;     // for weights, while they are loaded
  uint64_t next_slot = 0;               // of the ring
  // Stand in for optional bindings: for those that a kernel reads, and for those that it could write. Dispatches side
  // by side would else read what others are said to write.
  Buffer dummy, written_dummy;
  /// Of ops that need some while they run. All recordings share it, as they run one after the other; one that was made
  /// when it was smaller keeps its own.
  std::shared_ptr<Buffer> scratch;

  /// Of a family on matrix cores that the device has.
  const MatrixShape& matrix_of(KernelFamily of) const { return of == KernelFamily::matrix_i8 ? *integers : *matrix; }
};

inline const VulkanBuffer& buffer_of(const canopy::Buffer& buffer) {
  return static_cast<const VulkanBuffer&>(buffer);
}
inline VulkanActivations& activations_of(canopy::Activations& activations) {
  return static_cast<VulkanActivations&>(activations);
}
inline const VulkanActivations& activations_of(const canopy::Activations& activations) {
  return static_cast<const VulkanActivations&>(activations);
}
inline const VulkanWeight& weight_of(const canopy::Weight& weight) {
  return static_cast<const VulkanWeight&>(weight);
}
inline const VulkanKv& kv_of(const canopy::KvLayer& layer) {
  return static_cast<const VulkanKv&>(layer);
}

/// Shader variant of a weight type: "embed_q4_1".
std::string weight_shader(const std::string& op, WeightType type);

/// Shader variant of a cache type: "rope_store_f16".
std::string cache_shader(const std::string& op, CacheType type);

// Makes dispatches of ops. An op is recorded in full between two barriers; long recordings are cut into several command
// lists so that no submission comes near a watchdog.

class VulkanCommands : public canopy::Commands {
 public:
  std::vector<CommandList> lists;                // run in order; each with a timestamp at its start and one at its end
  std::vector<double> flops;                     // of each
  std::vector<std::shared_ptr<Buffer>> scratch;  // DeviceState::scratch, as it was then
  std::vector<Buffer> counters;                  // see VulkanRecorder::counters
};

struct ExpertProduct;

/// How an op has taken the pairs of rows and their experts (record_products.cpp), and where it leaves them in groups.
struct GroupedPairs {
  const Buffer* chosen = nullptr;
  uint64_t chosen_offset = 0;
  const Buffer* room = nullptr;  // scratch memory; null where each pair is by itself
  ExpertCounts experts;
  uint32_t width = 0;
  uint32_t columns = 0;  // of a tile
  bool operator==(const GroupedPairs&) const = default;

  bool is_of(const Binding& choice, const ExpertCounts& counts, uint32_t rows) const {
    return chosen == choice.buffer && chosen_offset == choice.offset && experts == counts && width == rows;
  }
};

class VulkanRecorder {
 public:
  explicit VulkanRecorder(DeviceState& state);

  void record(const Op& op);
  /// The lists of all ops. The recorder is used up.
  std::unique_ptr<VulkanCommands> finish();

 private:
  /// Each op has its specialisation in the file of its kind (recorder.cpp, record_products.cpp, attention.cpp,
  /// logits.cpp); one that is missing is missed by the linker.
  template <class Args>
  void record_op(const Args& args);

  /// The list to record the next op in, after `flops` more.
  CommandList& list(double flops);
  /// Ends the list that is recorded, if there is one.
  void finish_list();
  /// At least so many bytes, until the op ends; `name` is that of the first op that asked for so many.
  Buffer& scratch(uint64_t bytes, const char* name);
  /// Counters of workgroups: at least `count` words, 0 between uses; of none any buffer.
  const Buffer& counters(uint32_t count);
  /// Scratch memory for the sums of a product's chunks; of none any buffer.
  const Buffer& sums(uint64_t bytes);
  // record_products.cpp.
  void record_products(std::span<const LinearArgs> products);
  void record_separate_heads(const ProjectHeadsArgs& args);
  /// The products of pairs with their experts.
  void record_expert_product(const ExpertProduct& product, const ExpertVariant& variant);

  DeviceState& state_;
  std::unique_ptr<VulkanCommands> commands_;
  double flops_in_list_ = 0;
  std::optional<GroupedPairs> grouped_;  // by the op before this one
};

// Shared by the files that implement the ops.

/// Of `size` each, for `count`.
inline uint32_t workgroups(uint32_t count, uint32_t size) {
  return (count + size - 1) / size;
}

/// Workgroups for so many rows along two axes, as along one a device may have no room for them all: some too many,
/// which the kernel leaves out.
struct RowGroups {
  RowGroups(uint32_t rows, const Context& context);
  uint32_t along = 0, again = 0;
};
/// Throws bad_input when a width is 0 or above what the activations have room for.
void require_width(uint32_t width, const canopy::Activations& activations, const char* op);
/// All of a buffer.
Binding whole(const canopy::Buffer& buffer);
/// Words from the start of a buffer, checked against its size.
Binding words(const canopy::Buffer& buffer, uint64_t count, const char* what);
Binding words(const Buffer& buffer, uint64_t count, const char* what);
/// The sums of squares of the first `width` rows.
Binding squares_of(const VulkanActivations& activations, uint32_t width, const char* what);
/// The layer on the device. Throws bad_input when its shape is another.
const VulkanKv& checked_kv(const KvLayer& layer, const KvShape& shape, const char* op);
/// The binding that the queries are written to; `none` where there are none.
Binding queries_of(const RopeStoreArgs& args, const Buffer& none);
/// The first two bindings of shaders that read a weight.
void bind_weight(std::vector<Binding>& bindings, const WeightShard& shard, const DeviceState& state);

template <class Push>
std::span<const std::byte> bytes_of(const Push& push) {
  return std::as_bytes(std::span(&push, 1));
}

}  // namespace canopy::vk
