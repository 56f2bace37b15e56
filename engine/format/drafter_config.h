#pragma once
// The configuration of a DFlash drafter, the same for all formats and dialects. A drafter is a small
// transformer over a block of rows that also attends to features of the target's hidden states. The target's embedding
// and head are used: the whole head, or its rows for the tokens that the drafter names, for which it may bring its own.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/format/architecture.h"
#include "engine/format/model_config.h"

namespace canopy {

/// Rows of one drafter pass, at most: depth B - 1 of a tree stays below what the engine's attention can look back.
inline constexpr uint32_t max_draft_block = 64;

/// The keys that a row of the block sees in one drafter layer.
struct DrafterAttention {
  uint32_t window = 0;  // a key is visible iff p_row - p_key < window; 0: there is no window
  bool causal = false;  // whether rows of the block see only themselves and the rows before them
  friend bool operator==(const DrafterAttention&, const DrafterAttention&) = default;
};

struct DrafterConfig {
  /// Sizes, norm epsilon, rotary embedding, name, quantization and parameters of the drafter's own layers, as the
  /// engine's blocks take them. Without a vocabulary (`vocab` is 0) and without special tokens.
  ModelConfig transformer;
  std::vector<DrafterAttention> attention;  // [transformer.layers]

  uint32_t block_size = 0;           // B: rows of a pass, the root and B - 1 mask rows
  uint32_t mask_token = 0;           // id in the target's vocabulary
  std::vector<uint32_t> aux_layers;  // 0-based target layers whose *output* is a feature, in the order of fc's columns
                                     // (the file's own, ascending in every published drafter)
  uint32_t target_layers = 0;        // layers of the target it was trained for; 0: the file does not say
  uint32_t vocab = 0;                // rows of that target's embedding; 0: the file does not say

  float input_embedding_scale = 1;    // the rows' embeddings are multiplied by it
  float output_multiplier = 1;        // the logits are multiplied by it,
  float final_logit_softcapping = 0;  // then become cap * tanh(logits / cap); 0: they stay

  /// The tokens that the head is over, ascending; empty: the whole vocabulary.
  std::vector<uint32_t> draft_token_ids;
  uint32_t draft_vocab_size = 0;  // how many the configuration says they are; 0: it does not say
  bool own_head = false;          // the file has a head over draft_token_ids: "output" [their number, H]

  bool brings_vocabulary = false;  // the file has an embedding or a head, which is not used: the target's is
  std::string dialect;             // "Hugging Face", "dflash (llama.cpp)", ...: for messages

  /// Columns of fc: the aux layers' hidden states beside each other.
  uint64_t feature_width() const { return uint64_t{transformer.hidden} * aux_layers.size(); }
};

/// The attention of a layer; `window` 0 is full attention. Where the file does not say otherwise, full layers see the
/// block in both directions and sliding ones are causal, as the published drafters were trained.
DrafterAttention drafter_attention(uint32_t window);

/// Throws an Error that names the field when a value is zero, absurd, not a number or does not fit the others.
void validate_drafter_config(const DrafterConfig& config);

/// The specifications of its layers: attention over features and block, as config.attention says.
std::vector<LayerSpec> layer_specs(const DrafterConfig& config);

/// fc [H, aux layers*H], hidden_norm [H], output_norm [H] and those of the layers.
std::vector<RequiredTensor> required_drafter_tensors(const DrafterConfig& config);

}  // namespace canopy
