#pragma once
// The shape of a pass, which is all that its recording depends on, and the memory that it works in besides weights
// and caches: its packed input and results, and its activations.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "engine/compute/device.h"
#include "engine/compute/types.h"
#include "engine/format/model_config.h"
#include "engine/model/load_plan.h"

namespace canopy {

// Several arrays in one buffer, so that a pass costs one upload and one read.

/// Offsets, in bytes, of arrays that follow each other, each where a part of a buffer may start (Device::part).
class Packing {
 public:
  /// Where the next array starts; that of an empty one is where the array after it starts.
  uint64_t add(uint64_t bytes) {
    const uint64_t start = (end_ + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
    if (bytes > 0) end_ = start + bytes;
    return start;
  }
  uint64_t end() const { return end_; }

 private:
  uint64_t end_ = 0;
};

/// Copies an array to its place in what is uploaded, which grows as far as it needs.
template <class T>
void put(std::vector<std::byte>& packed, uint64_t offset, const std::vector<T>& values) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  packed.resize(std::max<size_t>(packed.size(), offset + bytes.size()));
  std::ranges::copy(bytes, packed.begin() + static_cast<std::ptrdiff_t>(offset));
}

/// The same of `count` elements that are made one by one: at(i).
template <class At>
void put_each(std::vector<std::byte>& packed, uint64_t offset, size_t count, const At& at) {
  using T = decltype(at(size_t{0}));
  packed.resize(std::max<size_t>(packed.size(), offset + count * sizeof(T)));
  for (size_t i = 0; i < count; ++i) {
    const T value = at(i);
    std::memcpy(packed.data() + offset + i * sizeof(T), &value, sizeof(T));
  }
}

/// Element i of an array in what was read, which must hold it.
template <class T>
T element_at(std::span<const std::byte> packed, uint64_t offset, size_t i) {
  T value;
  std::memcpy(&value, packed.data() + offset + i * sizeof(T), sizeof(T));
  return value;
}

/// An array of `count` elements out of what was read, all of which it must hold.
template <class T>
std::vector<T> array_at(std::span<const std::byte> packed, uint64_t offset, size_t count) {
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), packed.data() + offset, count * sizeof(T));
  return values;
}

// The shape of a pass: everything that its recording depends on.

/// The computation after the last layer.
enum class HeadOutput {
  none,     // only K/V (and aux hidden states): all of a prompt but its end
  argmax,   // id and value of each wanted row's largest logit
  logits,   // all logits of each wanted row; they stay on the device
  sampled,  // the token drawn after each wanted row, as ForwardInput::sampling says
};

/// Tokens that are the likeliest after a row, where they are wanted.
inline constexpr uint32_t kLikeliest = 8;

/// The key of a recording; all else is read from buffers.
struct PassShape {
  uint32_t width = 0;
  uint32_t max_positions = 0;  // no row has more keys
  HeadOutput head = HeadOutput::none;
  uint32_t head_rows = 0;      // rows the head is computed for
  bool all_rows = false;       // these are all rows, in order
  bool probabilities = false;  // log_sum_exp of these rows
  bool likeliest = false;      // the kLikeliest tokens after each of them
  uint32_t token_logits = 0;   // single logits that are wanted, rounded up
  bool random = false;         // of tokens that are drawn: not at temperature 0
  bool filtered = false;       // of these: with top-k or top-p
  uint32_t adjustments = 0;    // tokens whose logits are adjusted, rounded up; 0: none can be
  bool aux_hidden_states = false;
  bool recurrent = false;      // some layers are recurrences
  uint32_t expert_layers = 0;  // layers with experts, of which those are counted that rows touch
  bool head_only = false;      // of rows whose pass was before: width is that pass's
  auto operator<=>(const PassShape&) const = default;
};

// Everything a pass works in besides weights and cache. W is at most limits.max_width, R at most limits.head_rows, P at
// most limits.max_token_logits().

/// Of latent attention, whose sizes are LatentWeights'.
struct LatentBuffers {
  std::unique_ptr<Buffer> query_latent;              // [W, G]; null where queries are made of the rows themselves
  std::unique_ptr<Activations> normed_query_latent;  // [W, G], likewise
  std::unique_ptr<Buffer> query_keys;                // [W * heads, E]
  std::unique_ptr<Activations> query_key_rows;       // [W * heads, E], the same for a product
  std::unique_ptr<Buffer> query_turned;              // [W * heads, T]
  std::unique_ptr<Buffer> latent, normed_latent;     // [W, R]
  std::unique_ptr<Activations> spare;                // [W, R]; nothing reads it
  std::unique_ptr<Buffer> keys;                      // [W, D]
  std::unique_ptr<Buffer> head_rows;                 // Row [W * heads]: attention has each query head as a row
  std::unique_ptr<Activations> attended;             // [W * heads, R]
  std::unique_ptr<Buffer> values;                    // [W * heads, V]
  std::unique_ptr<Activations> head_values;          // [W, heads * V], the same for a product
  // Constant.
  std::unique_ptr<Buffer> ones;           // [R], a norm without weights
  std::unique_ptr<Buffer> zeros;          // [1, R]
  std::unique_ptr<Buffer> from_zeros;     // uint32 [W, 2]: row 0 to each row
  std::unique_ptr<Buffer> heads;          // uint32 [W * heads]: the head of each
  std::unique_ptr<Buffer> rows_of_heads;  // uint32 [W * heads, 2]: a row to those of its heads
  // Pieces of latents and turned parts, whose lengths all of them are multiples of, to their places in keys and
  // queries.
  uint32_t piece = 0;
  std::unique_ptr<Buffer> latent_moves;  // uint32 [W * R / piece, 2]
  std::unique_ptr<Buffer> turned_moves;  // uint32 [W * heads * T / piece, 2]
};

struct PassBuffers {
  // Packed: a recording has parts of them (PassParts).
  std::unique_ptr<Buffer> input;    // what changes between two runs of a recording, uploaded before each
  std::unique_ptr<Buffer> results;  // what the host reads after each

  std::unique_ptr<Buffer> moves;  // uint32 [kMaxKvMoves, 2]

  // Constant.
  std::unique_ptr<Buffer> rotation;        // [context, D/2, 2], or twice that (rotation_table)
  uint32_t query_offset = 0;               // where it has the rotations of queries
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

  LatentBuffers latent;  // null but of latent attention, of which `qkv` has the queries before they are turned

  // Of L layers that are given I elements each of a token besides the residual stream; null where they are not.
  std::unique_ptr<Buffer> layer_inputs;           // [W, L, I]
  std::unique_ptr<Buffer> layer_products;         // [W, L, I], the part of them that the embedding gives
  std::unique_ptr<Buffer> layer_gate;             // [W, I]
  std::unique_ptr<Activations> looked_up_inputs;  // [W, L * I]; nothing reads it, as what follows
  std::unique_ptr<Activations> normed_inputs;     // [W * L, I]
  std::unique_ptr<Activations> gated_inputs;      // [W, I]

  // Of layers with E experts of width X, of which a row uses k; null where there are none.
  std::unique_ptr<Buffer> touched_experts;    // uint32 [layers with experts, a bit for each], 0 between passes
  std::unique_ptr<Buffer> expert_logits;      // [W, E], one more with a shared expert
  std::unique_ptr<Buffer> chosen_experts;     // uint32 [W, k]
  std::unique_ptr<Buffer> expert_shares;      // [W, k], one more with a shared expert
  std::unique_ptr<Activations> expert_gated;  // [W * k, X]
  std::unique_ptr<Buffer> expert_products;    // [W, k, H]
  std::unique_ptr<Activations> shared_gated;  // [W, S] of a shared expert of width S, else null
  std::unique_ptr<Buffer> shared_product;     // [W, H], likewise

  // Of layers with experts beside a feed-forward, else null.
  std::unique_ptr<Buffer> both;        // [W, H] what both give, each normed
  std::unique_ptr<Buffer> expert_sum;  // [W, H] what the experts give
  // Of these, and of experts without gates.
  std::unique_ptr<Buffer> zeros;       // [1, H]
  std::unique_ptr<Buffer> from_zeros;  // uint32 [W, 2]: row 0 to each row

  // Of feed-forwards and experts without gates, else null.
  std::unique_ptr<Buffer> upper;             // [W, the widest F or S] what the first matrix gives
  std::unique_ptr<Buffer> normed_rows;       // [W, H]
  std::unique_ptr<Activations> unread_rows;  // [W, H]
  std::unique_ptr<Buffer> pair_rows;         // [W, k, H]: each row as often as it has experts
  std::unique_ptr<Activations> pairs;        // [W * k, H], the same for a product
  std::unique_ptr<Buffer> expert_upper;      // [W, k, X]
  std::unique_ptr<Buffer> to_pairs;          // uint32 [W * k, 2]: a row to its pairs

  // Of models that scale what layers add, where some have aux hidden states; else null (ModelConfig::scales_branches).
  std::unique_ptr<Buffer> nothing;      // [W, H] zeros
  std::unique_ptr<Activations> unread;  // [W, H]

  // Outputs.
  std::unique_ptr<Buffer> aux_hidden_states;  // [W, aux layers * H], null without aux layers
  std::unique_ptr<Buffer> logits;             // [R, V] of the rows that the head was computed for last
  // Outputs of top_k that are not used: where it runs for the sums alone, or for the tokens alone.
  std::unique_ptr<Buffer> likeliest;         // uint32 [W]
  std::unique_ptr<Buffer> likeliest_logits;  // [W, kLikeliest]
  std::unique_ptr<Buffer> sums;              // [W]
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
  std::unique_ptr<Buffer> pages;              // uint32 [pages_for(max_positions)]: the page table
  std::unique_ptr<Buffer> steps;              // DeltaStep [W], where there are recurrent layers
  std::unique_ptr<Buffer> ancestors;          // uint32 slots
  std::unique_ptr<Buffer> best;               // of an argmax alone: uint32 [head rows, 2], id and bits of its logit
  std::unique_ptr<Buffer> likeliest;          // of an argmax with probabilities, or wanted: uint32 [head rows, k] ids
  std::unique_ptr<Buffer> likeliest_logits;   // of an argmax, their logits, [head rows, k]
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

/// Tokens that top_k gives of a row: 0 where it does not run.
uint32_t top_tokens(const PassShape& shape);

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
/// Elements of a row of PassBuffers::upper.
uint32_t ungated_width(const ModelConfig& config);
/// The widths of all query heads of layers of attention.
std::set<uint32_t> query_widths(const ModelConfig& config);
/// Elements of a piece of latents and turned parts: see LatentBuffers.
uint32_t latent_piece(const ModelConfig& config);
/// Words of all tables of rotations.
uint64_t rotation_words(const ModelConfig& config, uint32_t context);

PassBuffers allocate_pass_buffers(Device& device, const ModelConfig& config, const ModelLimits& limits);

}  // namespace canopy
