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
/// The widths of all query heads of layers of attention.
std::set<uint32_t> query_widths(const ModelConfig& config);
/// Words of all tables of rotations.
uint64_t rotation_words(const ModelConfig& config, uint32_t context);

PassBuffers allocate_pass_buffers(Device& device, const ModelConfig& config, const ModelLimits& limits);

}  // namespace canopy
