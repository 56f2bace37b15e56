#include "engine/whatif/reply_rerun.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/planning/adaptive_planner.h"

namespace canopy {
namespace {

DecodeMode wished_mode(const RecordedReply& reply, const WhatIfWish& wish) {
  const DecodeMode mode = wish.mode.value_or(reply.mode);
  if (mode == DecodeMode::ar || reply.drafting.block >= 2) return mode;
  throw bad_input("The mode " + std::string(to_string(mode)) +
                  " needs a drafter, and the recording was made without one; only ar can be re-run.");
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
      drafts_(reply, std::min(std::max(1u, wish.deepest), std::max(2u, reply.drafting.block) - 1), state.left()),
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
  drafts_.commit(static_cast<uint32_t>(round->record.emitted.size()), drafts_.drafted());
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
  drafts_.commit(static_cast<uint32_t>(gap), drafts_.drafted() || recorded.ms.draft > 0);
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
  const bool drafted = drafts_.drafted();
  if (shared_.times() != nullptr) {
    take_times(*shared_.times(), drafted, record);
    round.ar_ms = ar_ms(*shared_.times(), record);
    return;
  }
  const bool priced = state_.is_priced();
  if (recorded != nullptr && recorded->width == record.width && (recorded->ms.draft > 0) == drafted) {
    record.ms = recorded->ms;
    record.device_ms = recorded->device_ms;
    if (!recorded->teaches) shared_.prepare();
  } else if (priced) {
    take_times(state_.cost(), drafted, record);
  } else {
    throw bad_input("Round " + std::to_string(rounds_) +
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
  if (drafts_.is_shallow()) {
    doubt_ = "Some drafts were recorded with fewer tokens than this would have drafted.";
  } else if (drafts_.is_starved()) {
    doubt_ = "Some trees would have asked for more candidates of a token than were recorded.";
  }
}

std::string ReplyRerun::missing() const {
  return "Another tree ends a round elsewhere, and what would have been drafted there was not recorded (position " +
         std::to_string(reply_.committed(root_)) + "): totals are means over the recorded passes.";
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

}  // namespace canopy
