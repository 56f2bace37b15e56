#include "engine/whatif/what_if.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "engine/base/error.h"
#include "engine/speculation/ddtree.h"
#include "engine/speculation/round_planner.h"
#include "engine/speculation/speculation_state.h"
#include "engine/speculation/state_archive.h"

namespace canopy {
namespace {

// What a re-run knows of costs and of the drafter, from reply to reply.
class WhatIfState {
 public:
  /// Throws bad_input where the wish needs costs and there are none. The replies must outlive it.
  WhatIfState(std::span<const RecordedReply> replies, const WhatIfWish& wish);
  WhatIfState(const WhatIfState&) = delete;
  WhatIfState& operator=(const WhatIfState&) = delete;

  /// As a reply finds it that is written in this mode.
  SpeculationState& before(const RecordedReply& reply, DecodeMode mode, CostPolicy policy);
  /// What rounds take; null: as recorded.
  const PassCost* times() const { return times_; }
  /// Features that waited when the reply before ended, where that was not as recorded.
  std::optional<uint32_t> left() const { return table_ ? left_ : std::nullopt; }
  void leave(uint32_t waiting) { left_ = waiting; }
  /// The next observed round counts as one that prepared passes.
  void prepare() { ++prepared_; }

 private:
  std::unique_ptr<SpeculationState> make(const RecordedReply& reply, CostTable table) const;
  /// As it was before the reply was recorded; nothing where that was not recorded.
  std::unique_ptr<SpeculationState> restored(const RecordedReply& reply) const;
  void take(CostTable table, const RecordedReply& first);

  std::optional<CostTable> table_;  // that the choice of widths starts from; none: as recorded
  std::optional<CostTable> clock_;
  std::shared_ptr<const PassCost> own_times_;
  const PassCost* times_ = nullptr;
  uint64_t prepared_ = 0;
  std::optional<uint32_t> left_;
  std::unique_ptr<SpeculationState> state_;
};

/// For passes beyond the measured ones where no roofline was recorded: how times grow with rows and positions.
Roofline some_roofline() {
  const ModelShape shape{
      .layers = 30, .hidden = 576, .query_heads = 9, .kv_heads = 3, .head_dim = 64, .ffn = 1536, .vocab = 49152};
  return Roofline(shape, {.flops_per_second = 1e12, .bytes_per_second = 1e11});
}

/// Whether anything is to be other than it was recorded.
bool differs(const WhatIfWish& wish) {
  return wish.mode || wish.policy || wish.budget || wish.widest != UINT32_MAX || wish.deepest != UINT32_MAX;
}

bool predicts(const RecordedReply& reply, const WhatIfWish& wish) {
  return wish.mode.value_or(reply.mode) == DecodeMode::adaptive;
}

[[noreturn]] void refuse_without_costs() {
  throw bad_input(
      "What passes cost was not recorded, so the recording cannot be re-run with its own costs; give those of a device "
      "(its name or a calibration).");
}

}  // namespace

WhatIfState::WhatIfState(std::span<const RecordedReply> replies, const WhatIfWish& wish) {
  const RecordedReply& first = replies.front();
  if (wish.costs) {
    own_times_ = wish.costs->times;
    take(wish.costs->table, first);
  } else if (differs(wish)) {
    const std::unique_ptr<SpeculationState> then = restored(first);
    if (then == nullptr || then->table().verify_points().empty()) refuse_without_costs();
    take(then->refreshed_table().value_or(then->table()), first);
  } else {
    for (const RecordedReply& reply : replies) {
      if (predicts(reply, wish) && (!reply.knows_drafting || !reply.drafting.priced)) refuse_without_costs();
    }
  }
}

/// Rounds take what the table says, beyond its edges as the choice of widths believes.
void WhatIfState::take(CostTable table, const RecordedReply& first) {
  if (own_times_ == nullptr) {
    clock_ = table;
    clock_->set_roofline(calibrated_roofline(first.drafting.roofline.value_or(some_roofline()), table));
  }
  table_ = std::move(table);
  times_ = own_times_ != nullptr ? own_times_.get() : &*clock_;
}

std::unique_ptr<SpeculationState> WhatIfState::make(const RecordedReply& reply, CostTable table) const {
  PairFacts pair;
  pair.block_size = reply.drafting.block == 0 ? 0 : std::max(2u, reply.drafting.block);
  pair.by_token = (reply.drafting.sources & kFromSteps) != 0;
  pair.roofline = [&reply] { return reply.drafting.roofline.value_or(some_roofline()); };
  pair.recordings = [this] { return prepared_; };
  return std::make_unique<SpeculationState>(std::move(pair), std::move(table));
}

std::unique_ptr<SpeculationState> WhatIfState::restored(const RecordedReply& reply) const {
  if (!reply.knows_drafting) return nullptr;
  const TraceDrafting& drafting = reply.drafting;
  if (drafting.rules < 1 || drafting.rules > controller_rules) {
    throw bad_input("The recording was made by rules number " + std::to_string(drafting.rules) +
                    " for the choice of a tree; this version of Canopy knows numbers 1 to " +
                    std::to_string(controller_rules) + ".");
  }
  auto state = make(reply, drafting.costs != nullptr ? *drafting.costs : CostTable());
  const std::optional<CostPolicy> policy = cost_policy_of(drafting.policy);
  if (!policy) throw bad_input("The recording names the policy '" + drafting.policy + "', which is not known.");
  state->use(*policy);
  Reader bytes(std::as_bytes(std::span(drafting.state)));
  StateReader reader(bytes, drafting.rules);
  state->archive(reader);
  return state;
}

SpeculationState& WhatIfState::before(const RecordedReply& reply, DecodeMode mode, CostPolicy policy) {
  if (!table_) {
    state_ = restored(reply);
    if (state_ == nullptr) state_ = make(reply, CostTable());
  } else if (state_ == nullptr) {
    state_ = make(reply, *table_);
    const std::unique_ptr<SpeculationState> then = restored(reply);
    const auto same_rules = [&](CostPolicy other) {
      const ControllerOptions a = controller_options(policy), b = controller_options(other);
      return a.objective == b.objective && a.calibrate == b.calibrate;
    };
    state_->use(policy);
    if (then != nullptr && same_rules(then->policy())) {
      state_->controller() = then->controller();
      state_->controller().forget_times();
    }
  }
  state_->use(mode == DecodeMode::adaptive ? policy : state_->policy());
  return *state_;
}

namespace {

// The rounds of one recorded reply, once more, by the planner that would have written it.
class ReplyRerun {
 public:
  /// All must outlive it. Throws bad_input for a mode that needs a drafter where none was recorded.
  ReplyRerun(const RecordedReply& reply, size_t index, const WhatIfWish& wish, WhatIfState& state,
             std::stop_token stop);

  bool at_end() const { return root_ + 1 >= reply_.text.size() || cut_; }
  /// The round behind the last one; nothing where its draft was not recorded, or at the end.
  std::optional<WhatIfRound> next();
  /// A round at the place of a recorded one, with its draft or what is known of it; nothing where nothing is.
  std::optional<WhatIfRound> at(const RoundRecord& recorded);

  /// Why next() gave nothing, as a sentence.
  std::string missing() const;
  /// Why the rounds may be other ones than these, as a sentence; empty where they are not.
  const std::string& doubt() const { return doubt_; }

 private:
  std::optional<WhatIfRound> run(RoundStart start, const RoundRecord* recorded,
                                 std::shared_ptr<const KeptDraft> instead);
  void walk(RoundRecord& record);
  void describe(RoundRecord& record) const;
  void time(const RoundRecord* recorded, WhatIfRound& round);
  double ar_ms(const PassCost& cost, const RoundRecord& record) const;
  void note_doubt();
  const RoundRecord* recorded_at(uint32_t committed);

  const RecordedReply& reply_;
  size_t index_;
  DecodeMode mode_;
  WhatIfState& shared_;
  std::stop_token stop_;
  uint32_t widest_;
  RecordedDrafts drafts_;
  SpeculationState& state_;
  std::unique_ptr<RoundPlanner> planner_;
  const DraftTree* tree_ = nullptr;  // of the round
  AcceptedPath path_;                // likewise
  size_t root_ = 0;                  // in the text
  uint32_t rounds_ = 0;              // so far
  size_t next_recorded_ = 0;         // the recorded round that was looked at last
  std::optional<RoundRecord> looked_at_;
  bool cut_ = false;  // the text ends in the middle of a round that would have gone on
  std::string doubt_;
};

DecodeMode wished_mode(const RecordedReply& reply, const WhatIfWish& wish) {
  const DecodeMode mode = wish.mode.value_or(reply.mode);
  if (mode == DecodeMode::ar || reply.drafting.block >= 2 || (reply.drafting.sources & kFreeSources) != 0) return mode;
  throw bad_input("The mode " + std::string(to_string(mode)) +
                  " needs a drafter, and the recording was made without one; only ar can be re-run.");
}

/// Of the drafter's longest draft; 0 where none is asked.
uint32_t drafter_depth(const RecordedReply& reply, const WhatIfWish& wish) {
  if (reply.drafting.block == 0 || (reply.drafting.sources & kFromModels) == 0) return 0;
  return std::min(std::max(1u, wish.deepest), std::max(2u, reply.drafting.block) - 1);
}

bool same_pass(const RoundRecord& a, const RoundRecord& b) {
  if (a.shape != b.shape || a.width != b.width || a.nodes.size() != b.nodes.size()) return false;
  return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), [](const RoundNode& x, const RoundNode& y) {
    return x.node.token == y.node.token && x.node.parent == y.node.parent && x.state == y.state;
  });
}

}  // namespace

ReplyRerun::ReplyRerun(const RecordedReply& reply, size_t index, const WhatIfWish& wish, WhatIfState& state,
                       std::stop_token stop)
    : reply_(reply),
      index_(index),
      mode_(wished_mode(reply, wish)),
      shared_(state),
      stop_(std::move(stop)),
      widest_(std::max(1u, wish.widest)),
      drafts_(reply, drafter_depth(reply, wish), state.left(), std::max(1u, wish.deepest)),
      state_(state.before(reply, mode_, wish.policy.value_or(reply.policy))) {
  const CostPolicy policy = state_.policy();
  switch (mode_) {
    case DecodeMode::ar: planner_ = std::make_unique<ArPlanner>(); break;
    case DecodeMode::chain:
    case DecodeMode::tree:
      planner_ =
          std::make_unique<FixedPlanner>(mode_, std::max(1u, wish.budget.value_or(reply.budget)), drafts_, &state_);
      break;
    case DecodeMode::adaptive:
      if (policy == CostPolicy::paper) {
        planner_ = std::make_unique<PaperPlanner>(PaperRuleSettings{}, drafts_, state_);
      } else {
        planner_ = std::make_unique<AdaptivePlanner>(drafts_, state_);
      }
      break;
  }
}

std::optional<WhatIfRound> ReplyRerun::next() {
  const RoundStart start = reply_.start(root_);
  const RoundRecord* const recorded = recorded_at(start.context);
  std::shared_ptr<const KeptDraft> instead;
  // A tree that was recorded without its draft stands for it where nothing else is asked for.
  if (shared_.times() == nullptr && recorded != nullptr && reply_.draft(start.context) == nullptr) {
    instead = draft_of_tree(*recorded);
  }
  std::optional<WhatIfRound> round = run(start, recorded, std::move(instead));
  if (!round) return round;
  planner_->observe(round->record);
  drafts_.commit(static_cast<uint32_t>(round->record.emitted.size()), drafts_.drafted() != nullptr);
  shared_.leave(drafts_.backlog());
  root_ += round->record.emitted.size();
  return round;
}

std::optional<WhatIfRound> ReplyRerun::at(const RoundRecord& recorded) {
  const uint32_t first = reply_.drafting.committed;
  if (recorded.context < first || recorded.context - first + 1 >= reply_.text.size()) return std::nullopt;
  root_ = recorded.context - first;
  std::shared_ptr<const KeptDraft> instead;
  if (reply_.draft(recorded.context) == nullptr) instead = draft_of_tree(recorded);
  cut_ = false;
  std::optional<WhatIfRound> round = run(reply_.start(root_), &recorded, std::move(instead));
  const std::span<const uint32_t> text = std::span(reply_.text).subspan(root_ + 1);
  const size_t gap = std::min(recorded.emitted.size(), text.size());
  size_t seen = 0;
  if (round) {
    // The next round begins where the recorded one ended, whatever this one would have emitted.
    const std::vector<uint32_t> emitted = round->record.emitted;
    seen = std::min(gap, emitted.size());
    round->record.emitted.resize(seen);
    planner_->observe(round->record);
    round->record.emitted = emitted;
  }
  state_.controller().skip(text.subspan(seen, gap - seen));
  drafts_.commit(static_cast<uint32_t>(gap), drafts_.drafted() != nullptr || recorded.ms.draft > 0);
  return round;
}

/// Plans, walks, describes and times a round. Nothing where its draft is not known, or where it would have gone beyond
/// the text.
std::optional<WhatIfRound> ReplyRerun::run(RoundStart start, const RoundRecord* recorded,
                                           std::shared_ptr<const KeptDraft> instead) {
  start.rows = std::min(start.rows, widest_);
  if (instead != nullptr) start.rows = std::min(start.rows, recorded->width);
  drafts_.move_to(start.context, std::move(instead));
  WhatIfRound round;
  round.reply = index_;
  RoundRecord& record = round.record;
  record.round = rounds_;
  record.context = start.context;
  record.mode = mode_;
  tree_ = planner_->plan(start, record, stop_);
  if (stop_.stop_requested()) throw cancelled("The re-run was cancelled.");
  if (tree_ == nullptr) return std::nullopt;
  note_doubt();
  record.width = tree_->width();
  walk(record);
  if (cut_) return std::nullopt;
  if (tree_->drafted() > 0) describe(record);
  time(recorded, round);
  round.chosen = mode_ == DecodeMode::adaptive;
  round.as_recorded = recorded != nullptr && same_pass(record, *recorded);
  ++rounds_;
  return round;
}

void ReplyRerun::walk(RoundRecord& record) {
  const size_t last = reply_.text.size() - 1;
  accept(
      *tree_,
      [&](uint32_t node) -> WalkedToken {
        const size_t place = root_ + 1 + (*tree_)[node].depth;
        const uint32_t token = reply_.text[place];
        record.emitted.push_back(token);
        // What follows a text that was interrupted is not known.
        if (place == last && !reply_.ended && tree_->child(node, token) != TreeNode::none) cut_ = true;
        return {token, place == last};
      },
      path_);
  record.accepted = path_.accepted();
}

void ReplyRerun::describe(RoundRecord& record) const {
  record.nodes.resize(tree_->width());
  for (uint32_t i = 0; i < tree_->width(); ++i) record.nodes[i].node = (*tree_)[i];
  for (uint32_t depth = 0; depth < path_.nodes.size(); ++depth) {
    record.nodes[path_.nodes[depth]].state = NodeState::accepted;
    record.nodes[path_.nodes[depth]].target_token = record.emitted[depth];
  }
  for (RoundNode& node : record.nodes) {
    if (node.state == NodeState::accepted) continue;
    const bool at_frontier = record.nodes[node.node.parent].state == NodeState::accepted;
    node.state = at_frontier ? NodeState::rejected : NodeState::not_reached;
  }
}

void ReplyRerun::time(const RoundRecord* recorded, WhatIfRound& round) {
  RoundRecord& record = round.record;
  const bool drafted = drafts_.drafted() != nullptr;
  if (shared_.times() != nullptr) {
    take_times(*shared_.times(), drafts_.drafted(), record);
    round.ar_ms = ar_ms(*shared_.times(), record);
    return;
  }
  const bool priced = state_.is_priced();
  if (recorded != nullptr && recorded->width == record.width && (recorded->ms.draft > 0) == drafted) {
    record.ms = recorded->ms;
    record.device_ms = recorded->device_ms;
    if (!recorded->teaches) shared_.prepare();
  } else if (priced) {
    take_times(state_.cost(), drafts_.drafted(), record);
  } else {
    throw bad_input("Pass " + std::to_string(rounds_) +
                    " would be another one than was recorded, and what it would take was not recorded.");
  }
  if (priced) {
    round.ar_ms = ar_ms(state_.cost(), record);
  } else if (record.shape == DecodeMode::ar && !drafted) {
    round.ar_ms = record.ms.total();
  } else if (recorded != nullptr && recorded->choice.ar_tokens_per_second > 0) {
    round.ar_ms = 1000 * static_cast<double>(record.emitted.size()) / recorded->choice.ar_tokens_per_second;
  }
}

double ReplyRerun::ar_ms(const PassCost& cost, const RoundRecord& record) const {
  double ms = 0;
  for (uint32_t i = 0; i < record.emitted.size(); ++i) ms += cost.ar_ms(record.context + i);
  return ms;
}

void ReplyRerun::note_doubt() {
  if (!doubt_.empty()) return;
  const DraftSources sources = reply_.drafting.sources;
  if (mode_ != DecodeMode::ar && (sources & kFromRecycling) != 0) {
    doubt_ = "What was recycled is not recorded: guesses come from the drafter and the text alone.";
  } else if (mode_ != DecodeMode::ar && (sources & kFromSuffix) != 0 && reply_.prompt.empty()) {
    doubt_ = "The prompt is not known: what it suggested is left out.";
  }
  if (!doubt_.empty()) return;
  if (drafts_.is_shallow()) {
    doubt_ = "Some guesses were recorded with fewer tokens than this would have made.";
  } else if (drafts_.is_starved()) {
    doubt_ = "Some trees would have asked for more candidates of a token than were recorded.";
  }
}

std::string ReplyRerun::missing() const {
  return "Totals are means over the recorded passes: with other guesses, passes would also begin at words behind which "
         "nothing was guessed here (first at position " +
         std::to_string(reply_.committed(root_)) + ").";
}

/// The recorded round with that context; null where there is none. Asked for in ascending order.
const RoundRecord* ReplyRerun::recorded_at(uint32_t committed) {
  while (next_recorded_ < reply_.rounds) {
    if (!looked_at_) looked_at_ = reply_.round(next_recorded_);
    if (looked_at_->context == committed) return &*looked_at_;
    if (looked_at_->context > committed) return nullptr;
    looked_at_.reset();
    ++next_recorded_;
  }
  return nullptr;
}

namespace {

/// Whether all rounds could be chained; nothing is in the result otherwise but the reason.
bool run_chained(std::span<const RecordedReply> replies, const WhatIfWish& wish, const WhatIfCallbacks& callbacks,
                 WhatIf& result) {
  WhatIfState state(replies, wish);
  uint64_t done = 0, total = 0;
  for (const RecordedReply& reply : replies) total += reply.text.size() - 1;
  for (size_t index = 0; index < replies.size(); ++index) {
    ReplyRerun rerun(replies[index], index, wish, state, callbacks.stop);
    while (!rerun.at_end()) {
      std::optional<WhatIfRound> round = rerun.next();
      if (!round && rerun.at_end()) break;
      if (!round) {
        result = {};
        result.why_not = rerun.missing();
        return false;
      }
      done += round->record.emitted.size();
      result.add(std::move(*round));
      if (callbacks.progress) callbacks.progress(done, total);
    }
    if (result.why_not.empty()) result.why_not = rerun.doubt();
  }
  result.exact = result.why_not.empty();
  return true;
}

void run_at_recorded_places(std::span<const RecordedReply> replies, const WhatIfWish& wish,
                            const WhatIfCallbacks& callbacks, WhatIf& result) {
  WhatIfState state(replies, wish);
  uint64_t done = 0, total = 0;
  for (const RecordedReply& reply : replies) total += reply.text.size() - 1;
  for (size_t index = 0; index < replies.size(); ++index) {
    const RecordedReply& reply = replies[index];
    ReplyRerun rerun(reply, index, wish, state, callbacks.stop);
    for (size_t i = 0; i < reply.rounds; ++i) {
      const RoundRecord recorded = reply.round(i);
      std::optional<WhatIfRound> round = rerun.at(recorded);
      if (round) {
        result.add(std::move(*round));
      } else {
        ++result.left_out;
      }
      done += recorded.emitted.size();
      if (callbacks.progress) callbacks.progress(done, total);
    }
  }
  result.exact = false;
}

}  // namespace

void WhatIf::add(WhatIfRound round) {
  tokens += round.record.emitted.size();
  ms += round.record.ms.total();
  plain_known = plain_known && round.ar_ms > 0;
  ar_ms = plain_known ? ar_ms + round.ar_ms : 0;
  chosen += round.chosen ? 1 : 0;
  as_recorded += round.as_recorded ? 1 : 0;
  rounds.push_back(std::move(round));
}

WhatIf what_if(std::span<const RecordedReply> replies, const WhatIfWish& wish, const WhatIfCallbacks& callbacks) {
  if (replies.empty()) {
    throw bad_input(
        "Nothing can be re-run: the recording has no reply with a text (a redacted one has none), or none of two "
        "tokens.");
  }
  WhatIf result;
  if (!run_chained(replies, wish, callbacks, result)) run_at_recorded_places(replies, wish, callbacks, result);
  return result;
}

namespace {

constexpr double pays_from = 1.05, costs_below = 0.97;

std::string guesses(uint32_t narrowest, uint32_t widest) {
  const uint32_t least = narrowest - 1, most = widest - 1;
  if (most == 0) return "no guesses";
  if (least == most) return std::to_string(most) + (most == 1 ? " guess a pass" : " guesses a pass");
  return std::to_string(least) + " to " + std::to_string(most) + " guesses a pass";
}

std::string times(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", ratio);
  return text;
}

std::string verdict_of(const WhatIfSummary& summary) {
  if (summary.widths.empty()) return "Nothing could be re-run.";
  const std::string widths = guesses(summary.narrowest, summary.widest);
  switch (summary.payoff) {
    case Payoff::pays:
      return "Guessing pays: " + widths + ", " + times(summary.ratio) + " times as fast as plain decoding.";
    case Payoff::even:
      return "Hardly worth guessing: " + widths + ", " + times(summary.ratio) + " times plain decoding.";
    case Payoff::costs:
      return "Guessing does not pay: " + widths + ", " + times(summary.ratio) + " times the speed of plain decoding.";
    case Payoff::unknown: break;
  }
  return "With " + widths + "; what plain decoding takes is not known.";
}

}  // namespace

WhatIfSummary summarize(const WhatIf& run) {
  WhatIfSummary summary;
  for (const WhatIfRound& round : run.rounds) {
    const uint32_t width = round.record.width;
    ++summary.widths[width];
    summary.plain_rounds += width == 1 ? 1 : 0;
  }
  if (!summary.widths.empty()) {
    summary.narrowest = summary.widths.begin()->first;
    summary.widest = summary.widths.rbegin()->first;
  }
  if (run.ms > 0 && run.ar_ms > 0) {
    summary.ratio = run.ar_ms / run.ms;
    summary.payoff = summary.ratio >= pays_from     ? Payoff::pays
                     : summary.ratio <= costs_below ? Payoff::costs
                                                    : Payoff::even;
  }
  summary.verdict = verdict_of(summary);
  return summary;
}

std::vector<WidthRatio> ratios_by_width(std::span<const RecordedReply> replies, WhatIfWish wish,
                                        std::span<const uint32_t> widths, std::stop_token stop) {
  uint32_t widest = 1;
  for (const RecordedReply& reply : replies) widest = std::max(widest, reply.drafting.rows);
  std::vector<WidthRatio> ratios;
  for (const uint32_t width : widths) {
    if (width > std::min(widest, wish.widest)) break;
    wish.mode = width == 1 ? DecodeMode::ar : DecodeMode::tree;
    wish.budget = std::max(1u, width - 1);
    const WhatIf run = what_if(replies, wish, {{}, stop});
    // A narrower recording cut no wider: its trees end where they ended.
    const WhatIfSummary summary = summarize(run);
    if (summary.widths.empty() || summary.widest < width) break;
    ratios.push_back({width, summary.ratio, run.exact});
  }
  return ratios;
}

}  // namespace canopy
