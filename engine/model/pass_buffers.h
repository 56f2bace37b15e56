#pragma once
// Everything a pass works in besides weights and cache. W is at most limits.max_width, R at most limits.head_rows, P at
// most limits.max_token_logits().

#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "engine/compute/device.h"
#include "engine/format/model_config.h"
#include "engine/model/memory_plan.h"
#include "engine/model/pass_shape.h"

namespace canopy {

struct PassBuffers {
  // Packed: a recording has parts of them (PassParts).
  std::unique_ptr<Buffer> input;    // what changes between two runs of a recording, uploaded before each
  std::unique_ptr<Buffer> results;  // what the host reads after each

  std::unique_ptr<Buffer> moves;  // uint32 [kMaxKvMoves, 2]

  // Constant.
  std::unique_ptr<Buffer> rotation;        // [context, D/2, 2]
  std::unique_ptr<Buffer> no_rotation;     // likewise, by an angle of 0; null where all layers turn their heads
  std::unique_ptr<Buffer> local_rotation;  // likewise, by ModelConfig::local_rope_theta; null where no layer does

  // Activations.
  std::unique_ptr<Buffer> x;            // [W, H] residual stream
  std::unique_ptr<Buffer> branch;       // [W, H] what goes through a post norm; null where there are none
  std::unique_ptr<Buffer> qkv;          // [W, Q + 2K]
  std::unique_ptr<Buffer> q;            // [W, Q]
  std::unique_ptr<Buffer> gate;         // [W, Q], null where attention has none
  std::unique_ptr<Activations> normed;  // [W, H]
  std::map<uint32_t, std::unique_ptr<Activations>> attended;  // by Q, of all heads of a layer: [W, Q]
  std::map<uint32_t, std::unique_ptr<Activations>> gated;     // by F, the inner width of feed-forwards: [W, F]
  std::unique_ptr<Activations> gathered;                      // [R, H] the rows that the logits are at

  // Of layers with E experts of width X, of which a row uses k; null where there are none.
  std::unique_ptr<Buffer> touched_experts;    // uint32 [layers with experts, a bit for each], 0 between passes
  std::unique_ptr<Buffer> expert_logits;      // [W, E], one more with a shared expert
  std::unique_ptr<Buffer> chosen_experts;     // uint32 [W, k]
  std::unique_ptr<Buffer> expert_shares;      // [W, k], one more with a shared expert
  std::unique_ptr<Activations> expert_gated;  // [W * k, X]
  std::unique_ptr<Buffer> expert_products;    // [W, k, H]
  std::unique_ptr<Activations> shared_gated;  // [W, S] of a shared expert of width S, else null
  std::unique_ptr<Buffer> shared_product;     // [W, H], likewise

  // Outputs.
  std::unique_ptr<Buffer> aux_hidden_states;  // [W, aux layers * H], null without aux layers
  std::unique_ptr<Buffer> logits;             // [R, V] of the rows that the head was computed for last
  // Outputs of top_k that are not used: where it runs with one candidate a row for the sums alone.
  std::unique_ptr<Buffer> likeliest;         // uint32 [W]
  std::unique_ptr<Buffer> likeliest_logits;  // [W]
};

/// A recording's inputs, and its results for the host, as parts of PassBuffers::input and results. Those that its
/// shape has no use for are null.
struct PassParts {
  std::unique_ptr<Buffer> rows;               // Row [W]
  std::unique_ptr<Buffer> head_rows;          // uint32 [head rows]: the rows whose head is wanted
  std::unique_ptr<Buffer> token_logit_pairs;  // uint32 [P, 2]: index into head_rows, token
  std::unique_ptr<Buffer> sampling;           // SamplingWords
  std::unique_ptr<Buffer> sampled_rows;       // SampledRow [head rows]
  std::unique_ptr<Buffer> adjustments;        // TokenAdjustment [adjustments]
  std::unique_ptr<Buffer> pages;              // uint32 [pages_of(max_positions)]: the page table
  std::unique_ptr<Buffer> steps;              // DeltaStep [W], where there are recurrent layers
  std::unique_ptr<Buffer> ancestors;          // uint32 slots
  std::unique_ptr<Buffer> best;               // of an argmax alone: uint32 [head rows, 2], id and bits of its logit
  std::unique_ptr<Buffer> likeliest;          // of an argmax with probabilities: uint32 [head rows] ids
  std::unique_ptr<Buffer> likeliest_logits;   // and their logits, [head rows]
  std::unique_ptr<Buffer> drawn;              // uint32 [head rows]: tokens
  std::unique_ptr<Buffer> log_sum_exp;        // [head rows]
  std::unique_ptr<Buffer> token_logits;       // [P] logits of the tokens of the pairs
  std::unique_ptr<Buffer> distinct_experts;   // uint32 [layers with experts]: how many the rows went through
};

/// Where the parts lie, in bytes from the start of their buffer. The shape decides, so that a replay uploads and reads
/// as much as it has, in one piece each. The ancestors come last: how many there are changes from pass to pass.
struct PassLayout {
  explicit PassLayout(const PassShape& shape);

  // Of the input, then of the results.
  uint64_t rows = 0, head_rows = 0, token_logit_pairs = 0, sampling = 0, sampled_rows = 0, adjustments = 0;
  uint64_t pages = 0, steps = 0, ancestors = 0;
  uint64_t best = 0, likeliest = 0, likeliest_logits = 0, drawn = 0, log_sum_exp = 0, token_logits = 0;
  uint64_t distinct_experts = 0;
  uint64_t result_bytes = 0;  // 0: the host reads nothing
};

/// Entries of a pass's page table: as many as its longest row may need.
inline uint32_t page_entries(uint32_t max_positions) {
  return (max_positions + kPagePositions - 1) / kPagePositions;
}
/// Entry i of the page table that a device reads: that of the rows, or page i as the i-th where they have none, padded.
uint32_t page_entry(std::span<const uint32_t> pages, size_t i);

PassParts make_pass_parts(Device& device, const PassBuffers& buffers, const PassShape& shape);

/// Bytes of PassBuffers::input and results.
uint64_t pass_input_bytes(const ModelLimits& limits);
uint64_t pass_result_bytes(const ModelConfig& config, const ModelLimits& limits);

/// Words of PassBuffers::touched_experts.
uint64_t touched_words(const ModelConfig& config);
/// Clears the marks of a pass that did not end.
void forget_touched_experts(Device& device, const ModelConfig& config, const PassBuffers& buffers);
/// The inner widths of the feed-forwards of layers without experts.
std::set<uint32_t> ffn_widths(const ModelConfig& config);
/// The widths of all query heads of layers of attention.
std::set<uint32_t> query_widths(const ModelConfig& config);
/// Words of all tables of rotations.
uint64_t rotation_words(const ModelConfig& config, uint32_t context);

PassBuffers allocate_pass_buffers(Device& device, const ModelConfig& config, const ModelLimits& limits);

}  // namespace canopy
