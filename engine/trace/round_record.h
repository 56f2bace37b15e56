#pragma once
// The record of one round of decoding (design.md, section 5). Immutable once published; a trace holds one for each
// round.

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/speculation/block_draft.h"
#include "engine/speculation/controller_choice.h"
#include "engine/speculation/decode_mode.h"
#include "engine/speculation/draft_tree.h"

namespace canopy {

/// Why a reply ended.
enum class FinishReason { stop_token, max_tokens, context_full, cancelled, failed };

/// "stop token", "token limit", ...
const char* to_string(FinishReason reason);

/// Wall time by stage, in milliseconds.
struct RoundTimes {
  double draft = 0;   // features injected, the drafter's pass, its candidates on the host
  double build = 0;   // the tree from the drafter's candidates
  double verify = 0;  // the target's pass, with its submission and the download of its result
  double walk = 0;    // choosing the tokens: sampler, stop rules
  double commit = 0;  // moving accepted K/V and features behind the text
  double other = 0;   // the rest
  double total() const { return draft + build + verify + walk + commit + other; }
  bool operator==(const RoundTimes&) const = default;
};

enum class NodeState : uint8_t {
  accepted,     // on the accepted path; always true of the root
  rejected,     // its parent is accepted, but the target chose another token
  not_reached,  // below a rejected node
};

/// A verified row: a node of the draft tree, the target's next token there and the node's probabilities.
struct RoundNode {
  static constexpr uint32_t unknown = std::numeric_limits<uint32_t>::max();

  TreeNode node;
  NodeState state = NodeState::not_reached;
  uint32_t target_token = unknown;                        // the target's own next token after this node
  float log_p = std::numeric_limits<float>::quiet_NaN();  // log of the target's probability of the node's token
};

/// Why the round had its width.
struct RoundChoice {
  std::vector<WidthForecast> candidates;  // ascending widths; empty where nothing was chosen
  WidthLimits limits;
  double ar_tokens_per_second = 0;  // predicted for autoregressive decoding; 0 where no prediction was made
  std::string reason;               // one sentence
};

struct RoundRecord {
  uint32_t round = 0;                // from 0
  uint32_t context = 0;              // committed positions before the round; its pass uses context + width of the cache
  DecodeMode mode = DecodeMode::ar;  // of the reply
  DecodeMode shape = DecodeMode::ar;  // of this round
  uint32_t width = 1;                 // rows of the target's pass, root included
  uint32_t accepted = 0;              // drafted tokens of the path
  std::vector<uint32_t> emitted;
  std::vector<RoundNode> nodes;  // [width] in the order of the tree, the root first; empty for an AR round
  RoundTimes ms;                 // by the wall clock
  RoundTimes device_ms;          // by the device's own clock; 0 where the device has none, or has no part
  RoundTimes predicted;          // 0 where nothing was predicted
  RoundChoice choice;
  uint32_t backlog = 0;        // features that its draft injected first; 0 where nothing was drafted
  bool teaches = true;         // false: passes were prepared in it, so that its times say nothing of such rounds
  float distinct_experts = 0;  // that the rows went through, the mean over layers with experts; 0: there are none
  std::shared_ptr<const KeptDraft> draft;  // what it was drafted from, where that is kept; a trace has it beside
};

constexpr uint32_t max_round_width = 1u << 16;
constexpr uint32_t max_round_depth = 1024;
constexpr uint32_t max_distinct_experts = 1024;
constexpr size_t max_reason_bytes = 4096;

/// Throws bad_input naming the field, its value and what is allowed when a record contradicts itself or could not be
/// drawn: for example a wrong number of nodes, a parent after its child, or times that are not finite.
void validate(const RoundRecord& record);

/// The forecast for the width that the round used; null where there is none.
const WidthForecast* chosen_candidate(const RoundRecord& record);

}  // namespace canopy
