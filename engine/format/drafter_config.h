#pragma once
// The configuration of a DFlash drafter or one of its relatives, from GGUF in any of its dialects or from config.json,
// and the part of the vocabulary that its head is over.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/architecture.h"
#include "engine/format/gguf.h"
#include "engine/format/json_text.h"
#include "engine/format/model_config.h"
#include "engine/format/model_file.h"
#include "engine/format/tensor.h"

namespace canopy {

// The part of the vocabulary that a drafter's head is over: the ids of its tokens, as files hold them.
//
//   draft_token_ids   ids in the metadata (GGUF "dflash.draft_token_ids", dflash_config of config.json). The rows of
//                     the head are then the target's. Programs that do not know it draft with the target's whole head.
//   d2t               a tensor: in safetensors offsets, id = row + d2t[row], as EAGLE-3 drafters have it; in GGUF ids,
//                     as llama.cpp writes it. Beside it a head of these rows ("output"), else the target's rows.
//   a list            for a drafter that names none: a JSON file beside it, [0, 2, 13], draft_tokens_path().

/// Token ids that ascend, so that they are unique and the lower place has the lower id. `where` names their field in
/// messages, without an article; `vocab` 0: it is unknown. Throws bad_input where there are none or more than `vocab`,
/// and where one is outside the vocabulary or does not ascend.
std::vector<uint32_t> checked_draft_token_ids(std::string_view where, std::span<const int64_t> ids, uint32_t vocab);

/// What the elements of a d2t are.
enum class DraftMap { ids, offsets };

/// The ids of a d2t, I32 or I64 [n]. Throws bad_input for another type or rank, and as above.
std::vector<uint32_t> draft_token_ids_of(const TensorView& d2t, DraftMap elements, uint32_t vocab);

/// The ids in a JSON file, a list of them, as they stand there. Throws bad_input naming the file where it is none.
std::vector<uint32_t> read_draft_token_list(const std::filesystem::path& path);

/// Where a list for a drafter is looked for: draft_tokens.json in its folder, "name.gguf.draft_tokens.json" beside a
/// file.
std::filesystem::path draft_tokens_path(const std::filesystem::path& drafter);

// The configuration, the same for all formats and dialects. A drafter is a small transformer over a block of rows that
// also attends to features of the target's hidden states. The target's embedding and head are used: the whole head, or
// its rows for the tokens that the drafter names, for which it may bring its own.

/// Rows of one drafter pass, at most: depth B of a tree stays below what the engine's attention can look back.
inline constexpr uint32_t max_draft_block = 64;
/// Columns of a Markov head's tables and of a selector's codebooks, at most.
inline constexpr uint32_t max_markov_rank = 4096;
/// Candidates of a selector and taps of a convolution, at most.
inline constexpr uint32_t max_selector_candidates = 64, max_conv_taps = 8;

/// What makes a DFlash drafter a DSpark one: logits of a row gain w2 [drafted tokens, rank] times row t of w1 [V,
/// rank], t being the token before the row's; the confidence head says how likely the row's likeliest token is then
/// right: sigmoid(proj [the row's hidden state; row t of w1] + bias).
struct MarkovConfig {
  uint32_t rank = 0;                    // 0: there is no such head, and no other field counts
  bool has_confidence = false;          // there is a confidence head,
  bool confidence_reads_markov = true;  // which reads w1's row, too,
  bool confidence_has_bias = false;     // and adds a bias
  friend bool operator==(const MarkovConfig&, const MarkovConfig&) = default;
};

/// What makes a DFlash drafter a DFlash2 one: around attention and feed-forward a convolution along the rows of the
/// block whose kernels depend on the row (ConvRowsArgs), both of its sides by what goes in.
struct DrafterConvConfig {
  uint32_t taps = 0;   // 0: there is none
  uint32_t group = 0;  // columns that share a kernel
  friend bool operator==(const DrafterConvConfig&, const DrafterConvConfig&) = default;

  /// Rows of the matrix that makes a row's kernels.
  uint64_t kernel_rows(uint64_t hidden) const { return 2 * uint64_t{taps} * (hidden / group); }
};

/// And a selector: of the likeliest tokens of a place, how likely each is given the token before it
/// (engine/model/candidate_selector.h).
struct SelectorConfig {
  uint32_t rank = 0;   // 0: there is none
  uint32_t top_k = 0;  // candidates
  friend bool operator==(const SelectorConfig&, const SelectorConfig&) = default;
};

/// The keys that a row of the block sees in one drafter layer. JetSpec drafters are causal in all layers.
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

  uint32_t block_size = 0;  // B: rows of a pass, the root and B - 1 mask rows
  /// Row i of the block predicts the token behind its own place, and the last row nothing (JetSpec's field); otherwise
  /// the token at its own place, and row 0, the root's, nothing.
  bool draft_shift = false;
  /// Likewise, and the last row predicts, too (DSpark's field).
  bool sample_from_anchor = false;
  MarkovConfig markov;
  DrafterConvConfig conv;
  SelectorConfig selector;
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

  /// "DFlash", "JetSpec", "DSpark" or "DFlash2": what has its arithmetic, whatever the file calls it.
  std::string_view kind() const;
  /// The row that predicts the token behind the root.
  uint32_t first_slot() const { return draft_shift || sample_from_anchor ? 0 : 1; }
  /// Tokens that a block drafts.
  uint32_t depths() const { return sample_from_anchor ? block_size : block_size - 1; }
  /// Rows of the head.
  uint32_t drafted_tokens() const {
    return draft_token_ids.empty() ? vocab : static_cast<uint32_t>(draft_token_ids.size());
  }
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

/// fc [H, aux layers*H], hidden_norm [H], output_norm [H], those of the layers, of a Markov head and of a selector.
std::vector<RequiredTensor> required_drafter_tensors(const DrafterConfig& config);

// The engine's view of a drafter's GGUF metadata, in llama.cpp's dialect and in those of its forks.

/// Config without what depends on tensors alone (quantization, parameters, has_qk_norm, brings_vocabulary, and what
/// GGUF does not say of a Markov head). Not validated.
///
/// The dialects, told apart by metadata alone (A is general.architecture):
///   llama.cpp     A = dflash; A.target_layers holds aux layer + 1; the mask is tokenizer.ggml.mask_token_id
///   unshifted     A = dflash, but aux layers as they are, with the mask in A.mask_token_id
///   forks         A = dflash-draft, qwen35-dflash-draft, ...: A.dflash.target_layer_ids holds the aux layers as
///                 they are
DrafterConfig read_gguf_drafter_config(const GgufFile& file);

/// Canonical names from those of llama.cpp: "enc.output_norm.weight" -> "hidden_norm".
std::string drafter_name_from_gguf(std::string_view name);
/// And from those of the forks: "dflash.fc.weight" -> "fc", "blk.0.post_attention_norm.weight" -> "blk.0.ffn_norm".
std::string drafter_name_from_fork(std::string_view name);

/// Whether the file is in llama.cpp's dialect, or at least of its architecture, whose tensor names it then has.
bool has_upstream_drafter_names(const GgufFile& file);

// The engine's view of a drafter's config.json.

/// Config without what depends on tensors alone (quantization, parameters, has_qk_norm, brings_vocabulary). Not
/// validated. block_size, target_layer_ids, mask_token_id and what the block's rows see and predict may stand at the
/// top level or in dflash_config.
DrafterConfig read_hf_drafter_config(std::string_view config_json);

/// Whether the class in config.json is that of a drafter of some kind. Throws where there is none.
bool is_drafter_config(const JsonFields& fields);

/// "layers.0.self_attn.q_proj.weight" -> "blk.0.attn_q", "norm.weight" -> "output_norm"; with or without "model." in
/// front. Names we do not know stay as they are.
std::string drafter_name_from_hugging_face(std::string_view name);

}  // namespace canopy
