#pragma once
// The device memory that a model takes, checked before anything is allocated.

#include <cstdint>
#include <string>

#include "engine/compute/device.h"
#include "engine/format/model_config.h"
#include "engine/model/page_table.h"

namespace canopy {

/// The sizes a model is set up for.
struct ModelLimits {
  uint32_t context = 0;      // positions of committed text
  uint32_t spare_pages = 0;  // of the K/V cache, beside those of one text of that length
  uint32_t tree_slots = 0;   // K/V slots behind the pages, for the rows of a draft tree
  uint32_t max_width = 0;    // rows of one pass
  uint32_t padded_rows = 0;  // that such a pass is padded to: padded_width()
  uint32_t head_rows = 0;    // rows whose logits are in memory at a time
  uint32_t aux_layers = 0;   // layers whose output is kept
  uint32_t states = 0;       // kept of recurrent layers, that of an empty text included; 0: there are no such layers
  CacheType cache_type = CacheType::f16;

  /// Pages of the K/V cache, which all texts share.
  uint32_t pages() const { return pages_for(context) + spare_pages; }
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

/// A context chosen by itself never gets shorter than this (or than the model's own limit); asking for less is allowed.
inline constexpr uint32_t kMinimumContext = 512;
/// A row of a tree has so many ancestors besides itself at most.
inline constexpr uint32_t kMaxTreeDepth = kMostAncestors - 1;
/// A pass that brings single logits is recorded for a power of two of them, no smaller than this.
inline constexpr uint32_t kFewestTokenLogits = 16;

/// A pass that draws tokens is recorded for a power of two of adjustments, no smaller than this.
inline constexpr uint32_t kFewestAdjustments = 256;

/// "93 MiB", rounded up: how messages about memory count.
std::string mebibytes(uint64_t bytes);

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
/// `available` bytes (the cache takes at most half of what the weights leave). Throws bad_input when more positions are
/// asked for than the model has, and out_of_memory, with needed and available bytes, when it does not fit.
MemoryPlan choose_context(const ModelConfig& config, ModelLimits& limits, uint32_t requested, uint64_t weight_bytes,
                          const Device& device, uint64_t available);

}  // namespace canopy
