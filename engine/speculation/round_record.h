#pragma once
// One round of decoding: the modes, the choice among all widths of its draft, its times by stage and the record that
// it leaves. A record is immutable once published; a trace holds one for each round.

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/speculation/ddtree.h"
#include "engine/speculation/draft_source.h"

namespace canopy {

/// The mode of a reply, and of one of its rounds; a round is never `adaptive`.
enum class DecodeMode : uint8_t { ar, chain, tree, adaptive };

std::string_view to_string(DecodeMode mode);

/// The mode of that name; nothing for another name.
std::optional<DecodeMode> decode_mode_of(std::string_view name);

// The choice among all widths of a draft: a global maximum, since what passes cost is not convex.

/// The limits on the width of a round.
struct WidthLimits {
  static constexpr uint32_t none = UINT32_MAX;  // no such limit, or not known

  uint32_t budget = none;        // drafted nodes that the user allows
  uint32_t depth = none;         // of the tree; the drafter's B - 1 holds besides
  uint32_t tokens_left = none;   // of the reply
  uint32_t context_left = none;  // positions of the cache behind the committed ones
  uint32_t rows = none;          // of a pass, by its scratch memory

  uint32_t widest() const;   // rows of the widest tree, root included
  uint32_t deepest() const;  // drafted tokens of the longest path; the round emits one more and commits the root
  bool operator==(const WidthLimits&) const = default;
};

/// The forecast for one width.
struct WidthForecast {
  uint32_t width = 0;   // rows, root included
  double expected = 0;  // tokens emitted
  double ms = 0;        // of the whole round
  double tokens_per_second() const { return ms > 0 ? 1000 * expected / ms : 0; }
};

enum class WidthObjective : uint8_t {
  per_round,  // the most tokens per time in this round: S(W), as the BASTION paper has it
  long_run,   // the most tokens above what the round's time would bring at the usual speed: E(W) - rate * ms(W)
};

/// Expected tokens and costs by width. All spans start at width 1, the root alone.
struct WidthCurves {
  std::span<const double> tree;   // [built] tokens emitted by the first W nodes of the tree
  std::span<const double> chain;  // [deepest + 1] by a chain of W - 1 drafted tokens
  std::span<const double> ms;     // [>= both] of a round of that width
  double longest_ms = 0;          // wider rounds may not take longer; width 1 always may
  double tokens_per_ms = 0;       // the usual speed
  WidthObjective objective = WidthObjective::long_run;
};

/// The chosen tree of a round and the reason. choose_width() fills shape and best alone.
struct WidthChoice {
  DecodeMode shape = DecodeMode::ar;                 // ar: the root alone, the draft is not worth verifying
  WidthForecast best{1, 1, 0};                       // rows to verify; a chain has best.width - 1 drafted tokens
  double draft_ms = 0, verify_ms = 0, other_ms = 0;  // predicted
  double ar_tokens_per_second = 0;                   // of autoregressive decoding, predicted
  std::vector<WidthForecast> candidates = {};        // trees, ascending widths, at most 64
  std::string reason = {};                           // one sentence
};

/// The value of a forecast by the objective; the largest is chosen.
double worth(const WidthCurves& curves, double expected, double ms);

/// The best of all widths. A chain must be worth clearly more than the best tree. Above 64 rows only multiples of 16
/// count, and the whole tree: every width that occurs is recorded for the device, and tiles are no finer there.
WidthChoice choose_width(const WidthCurves& curves);
bool may_occur(uint32_t width, uint32_t built);

/// The trees of the curves for a record or a plot, at most 64 of them, ascending: all narrow ones, fewer wide ones,
/// the chosen width and the widest always.
std::vector<WidthForecast> forecasts(const WidthCurves& curves, uint32_t chosen);

inline double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// Adds the milliseconds between its construction and its destruction to a sum.
class StageTimer {
 public:
  explicit StageTimer(double& ms) : ms_(ms) {}
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;
  ~StageTimer() { ms_ += milliseconds_since(start_); }

 private:
  double& ms_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The record of a round, and its parts.

/// Why a reply ended.
enum class FinishReason { stop_token, max_tokens, context_full, cancelled, failed, repeats };

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
  uint32_t match = 0;          // tokens of the text's end that were found in it before; 0: none, or nobody looked
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

/// The sources of a drafted node as they are told: the drafter, the text, or both. What was recycled counts as the
/// text's, and as the drafter's what was recorded before version 1.2 of traces.
DraftSources proposed_by(const TreeNode& node);

/// Who guessed in a round: the sources of its nodes together, and the drafter where it was asked in vain. The text
/// alone where no drafter was asked; none in a round that is plain from the start.
DraftSources guessed_by(const RoundRecord& record);

/// What plain decoding takes in the very minutes of a reply, on the same load and at its context: so that its speed is
/// compared with nothing of another day.
struct PlainBeside {
  double ms = 0;        // of one plain pass, which writes one token; 0: not known
  uint32_t passes = 0;  // that it is the median of
  bool own = false;     // they are rounds of the reply; else passes right behind it, which wrote nothing

  bool known() const { return ms > 0; }
  double tokens_per_second() const { return known() ? 1000 / ms : 0; }
  bool operator==(const PlainBeside&) const = default;
};

inline constexpr size_t kEnoughPlain = 4;  // plain rounds of a reply that say what plain decoding takes

/// Whether nothing but the target's pass is in the time of a round: without a draft, and without passes that were
/// prepared in it.
bool is_plain(const RoundRecord& round);

/// The median of these times, of which there is at least one: a pass that something else held up makes plain decoding
/// no slower, and so drafting no better.
PlainBeside median_pass(std::vector<double> ms, bool own);

/// The forecast for the width that the round used; null where there is none.
const WidthForecast* chosen_candidate(const RoundRecord& record);

}  // namespace canopy
