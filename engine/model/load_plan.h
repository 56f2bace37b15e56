#pragma once
// The plan of a load, made before anything is allocated: the types of the weights, the context and the device memory
// that it takes, with what a model that it replaces would give back.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "engine/compute/device.h"
#include "engine/format/model_config.h"
#include "engine/format/model_file.h"
#include "engine/format/quantize.h"
#include "engine/model/page_table.h"
#include "engine/model/weight_plan.h"

namespace canopy {

// The device memory that a model takes, checked before anything is allocated.

/// The sizes a model is set up for.
struct ModelLimits {
  uint32_t context = 0;      // positions of committed text
  uint32_t rotations = 0;    // positions that tables of rotations have; 0: the context's
  uint32_t texts = 1;        // of that length, which the K/V cache has pages for
  uint32_t most_texts = 1;   // so many where there is ample memory: choose_context() raises `texts`
  uint32_t spare_pages = 0;  // beside those
  uint32_t tree_slots = 0;   // K/V slots behind the pages, for the rows of a draft tree
  uint32_t max_width = 0;    // rows of one pass
  uint32_t padded_rows = 0;  // that such a pass is padded to: padded_width()
  uint32_t head_rows = 0;    // rows whose logits are in memory at a time
  uint32_t aux_layers = 0;   // layers whose output is kept
  uint32_t states = 0;       // kept of recurrent layers, that of an empty text included; 0: there are no such layers
  CacheType cache_type = CacheType::f16;

  uint32_t turned_positions() const { return rotations != 0 ? rotations : context; }
  /// Pages of the K/V cache, which all texts share.
  uint32_t pages() const { return texts * pages_for(context) + spare_pages; }
  uint32_t first_tree_slot() const { return pages() * kPagePositions; }
  uint32_t slots() const { return first_tree_slot() + tree_slots; }
  /// Rows that the buffers of a pass have room for.
  uint32_t rows() const { return padded_rows > max_width ? padded_rows : max_width; }
  /// Single logits that one pass can bring: more than a tree of max_width rows has. A power of two.
  uint32_t max_token_logits() const;
  /// Tokens whose logits can be adjusted in a pass that draws tokens: those of the longest text and some with a bias. A
  /// power of two.
  uint32_t max_adjustments() const;
};

/// Bytes on the device.
struct MemoryPlan {
  uint64_t weights = 0;
  uint64_t cache = 0;    // keys and values, tree slots included
  uint64_t states = 0;   // kept states of recurrent layers
  uint64_t working = 0;  // activations, logits, rotation table
  uint64_t reserve = 0;  // left for what the backend allocates itself, and for its pipelines
  uint64_t total() const { return weights + cache + states + working + reserve; }
};

/// States that a model with recurrent layers keeps at least: of an empty text, of one text, the place for its next one,
/// and one to go back to. And at most, as far as they take no more than a quarter of what the weights leave: each is
/// one more point that a text can be gone back to, or the end of another text.
inline constexpr uint32_t kFewestStates = 4, kMostStates = 16;
/// That each further text takes at once: its own, and the place for its next one.
inline constexpr uint32_t kStatesOfText = 2;

/// A context chosen by itself never gets shorter than this (or than the model's own limit); asking for less is allowed.
inline constexpr uint32_t kMinimumContext = 512;
/// A row of a tree has so many ancestors besides itself at most.
inline constexpr uint32_t kMaxTreeDepth = kMostAncestors - 1;
/// A pass that brings single logits is recorded for a power of two of them, no smaller than this.
inline constexpr uint32_t kFewestTokenLogits = 16;

/// A pass that draws tokens is recorded for a power of two of adjustments, no smaller than this.
inline constexpr uint32_t kFewestAdjustments = 256;

/// Throws out_of_memory, with needed and available bytes, where the device has fewer available: "`what` needs ...".
void require_memory(const Device& device, uint64_t bytes, const std::string& what);

/// Of the keys and values of a layer of attention.
KvShape kv_shape(const ModelConfig& config, const ModelLimits& limits, uint32_t layer);

MemoryPlan plan_memory(const ModelConfig& config, const ModelLimits& limits, uint64_t weight_bytes,
                       const Device& device);

/// Rows that the head is computed for at a time: few enough that their logits are no burden beside the head's weights
/// (and 32 MiB at most, or as good as), enough for whole tiles of the products. At most max_width.
uint32_t head_rows_for(const ModelConfig& config, uint32_t max_width);

/// Sets limits.context: `requested`, or, where that is 0, the longest that the model was trained for and that fits the
/// `available` bytes (the cache takes at most half of what the weights leave). Then raises limits.texts up to
/// limits.most_texts, where the cache takes no more than that and its buffers fit every device. Throws bad_input when
/// more positions are asked for than the model has, and out_of_memory, with needed and available bytes, when it does
/// not fit.
MemoryPlan choose_context(const ModelConfig& config, ModelLimits& limits, uint32_t requested, uint64_t weight_bytes,
                          const Device& device, uint64_t available);

// Memory of a device that a load may count on: what is free, and what the model that it replaces would give back.

/// A load plans with the memory of the model it replaces as if that were free, so that a file gets the same context and
/// the same weights as in an empty device. The old model is released only once the plan stands, and only where the new
/// one does not fit beside it. Belongs to the thread of the load.
class ReclaimableMemory {
 public:
  /// Nothing is replaced.
  ReclaimableMemory() = default;
  /// `bytes` on the device come back when `release` is called, which happens at most once.
  ReclaimableMemory(uint64_t bytes, std::function<void()> release) : bytes_(bytes), release_(std::move(release)) {}

  /// Bytes that a load may plan with.
  uint64_t available(const Device& device) const { return device.memory().available + bytes_; }

  /// Called when so many bytes are about to be allocated by a plan that stands. True when the old model was released
  /// for it: available() is then what the device says, and a plan may be made anew.
  bool make_room(const Device& device, uint64_t bytes) {
    planned_ = true;
    if (!release_ || bytes <= device.memory().available) return false;
    release_now();
    return true;
  }

  /// Whether a plan stood: what ran out of memory before that does not fit without the old model either.
  bool is_planned() const { return planned_; }

 private:
  void release_now() {
    bytes_ = 0;
    std::exchange(release_, nullptr)();
  }

  uint64_t bytes_ = 0;
  std::function<void()> release_;
  bool planned_ = false;
};

// The plan of a load, made before anything is allocated: the types of the weights, the context, the memory.

struct LoadPlan {
  WeightPlan weights;
  MemoryPlan memory;
  QuantizeOnLoad quantized = QuantizeOnLoad::none;  // what will be done: never automatic, and none where none is wide
};

/// A model whose context would be shortened below this (or below its own limit) counts as one that does not fit as it
/// is: quantizing it then serves its user better.
inline constexpr uint32_t kRoomyContext = 4096;

/// The memory of a model with so many bytes of weights as it is opened where nothing else is asked for: passes of
/// `max_width` rows, and a context of kRoomyContext or its own limit. For a model whose file is not here yet.
MemoryPlan plan_roomy(const ModelConfig& config, uint64_t weight_bytes, uint32_t max_width, const Device& device);

/// Plans the load and sets limits.context, see choose_context(). `automatic` quantizes only where the file's own types
/// do not fit, or leave less than kRoomyContext positions where a context is to be chosen.
/// Throws what choose_context() throws; a refusal for want of memory names the sizes that quantizing would give, and
/// the option. `would_fit`, where given, is then told the widest choice that fits, if any does. `available` are the
/// bytes of the device that the load may take.
LoadPlan plan_load(const ModelFile& file, const Device& device, uint64_t available, ModelLimits& limits,
                   uint32_t requested_context, QuantizeOnLoad quantize,
                   const std::function<void(QuantizeOnLoad)>& would_fit = {});

}  // namespace canopy
