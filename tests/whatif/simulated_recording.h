#pragma once
// A run of the simulator as a recording: the simulator has its own loop of rounds, so that a re-run of what it did is
// compared with something that was written apart from it.

#include <memory>
#include <vector>

#include "engine/speculation/state_archive.h"
#include "engine/whatif/what_if.h"
#include "tests/speculation/simulator_run.h"

namespace canopy::test {

/// What rounds take on a virtual device without noise and drift.
class DeviceTimes final : public PassCost {
 public:
  explicit DeviceTimes(const VirtualDevice& device) : device_(device) {}
  double verify_ms(uint32_t width, uint32_t context) const override { return device_.verify_ms(width, context); }
  double draft_ms(uint32_t backlog, uint32_t context) const override { return device_.draft_ms(backlog, context); }
  double other_ms(uint32_t width) const override { return device_.other_ms(width, 0); }

 private:
  const VirtualDevice& device_;
};

struct SimulatedRecording {
  RunResult result;
  std::vector<RecordedReply> replies;
  std::vector<std::vector<RoundRecord>> rounds;  // of each reply
};

/// All drafts of a text, in the form of a recording.
inline std::shared_ptr<const KeptDraft> kept_draft(const Trace& trace, uint32_t position, uint32_t depths) {
  auto draft = std::make_shared<KeptDraft>();
  draft->block.depths = depths;
  draft->block.candidates = DraftTable::listed;
  for (const DepthCandidates& depth : trace.draft(position, depths)) {
    draft->block.tokens.insert(draft->block.tokens.end(), depth.tokens.begin(), depth.tokens.end());
    draft->block.logits.insert(draft->block.logits.end(), depth.logits.begin(), depth.logits.end());
    draft->block.log_sum_exp.push_back(static_cast<float>(depth.log_sum_exp));
  }
  return draft;
}

/// Records while a controller writes all replies of the text, as a program of these rules would. Trace and the result
/// must stay.
inline void record_run(Controller& controller, const Trace& trace, const VirtualDevice& device, uint32_t budget,
                       const Replies& replies, SimulatedRecording& recording, uint32_t rules = controller_rules) {
  const uint32_t block = device.spec().block_size;
  RunWatcher watcher;
  watcher.reply = [&](uint32_t position, uint32_t backlog, Controller& now, ObservedCost& cost) {
    RecordedReply reply;
    reply.mode = DecodeMode::adaptive;
    const uint32_t count = replies.left(position, trace.tokens());
    for (uint32_t i = 0; i <= count; ++i) reply.text.push_back(trace.token(position + i));
    reply.ended = reply.knows_drafting = reply.dense = true;
    TraceDrafting& drafting = reply.drafting;
    drafting.rules = rules;
    drafting.block = block;
    drafting.drafted_tokens = DraftTable::listed;
    drafting.rows = budget + 1;
    drafting.most_waiting = most_waiting;
    drafting.backlog = backlog;
    drafting.prompt_read = replies.prompt;
    drafting.goes_on = position > 0;
    drafting.committed = position;
    drafting.remaining = count;
    drafting.policy = "measured";
    drafting.priced = true;
    drafting.roofline = any_roofline();
    drafting.costs = std::make_shared<const CostTable>(device.calibrate());
    StateWriter writer(drafting.state, rules);
    bool yes = true;
    writer.flag(yes);
    now.archive(writer);
    writer.flag(yes);
    cost.archive(writer);
    reply.draft = [&trace, block](uint32_t committed) { return kept_draft(trace, committed, block - 1); };
    recording.replies.push_back(std::move(reply));
    recording.rounds.emplace_back();
  };
  watcher.round = [&](uint32_t position, bool drafted, const WidthChoice& choice, const DraftTree& tree,
                      std::span<const uint32_t> emitted, const RunTimes& ms) {
    RoundRecord record;
    record.context = position;
    record.mode = DecodeMode::adaptive;
    record.shape = choice.shape;
    record.width = tree.width();
    record.emitted.assign(emitted.begin(), emitted.end());
    record.accepted = static_cast<uint32_t>(emitted.size()) - 1;
    record.ms.draft = drafted ? ms.draft : 0;
    record.ms.verify = ms.verify;
    record.ms.other = ms.other;
    if (drafted) record.predicted = {choice.draft_ms, 0, choice.verify_ms, 0, 0, choice.other_ms};
    if (tree.drafted() > 0) {
      for (uint32_t i = 0; i < tree.width(); ++i) {
        const TreeNode& node = tree[i];
        NodeState state = NodeState::accepted;
        if (i > 0) {
          const NodeState parent = record.nodes[node.parent].state;
          const bool taken = node.depth <= record.accepted && emitted[node.depth - 1] == node.token;
          if (parent != NodeState::accepted) {
            state = NodeState::not_reached;
          } else if (!taken) {
            state = NodeState::rejected;
          }
        }
        record.nodes.push_back({.node = node, .state = state});
      }
    }
    recording.rounds.back().push_back(std::move(record));
  };
  recording.result = run_adaptive(controller, trace, device, budget, replies, watcher);
  for (size_t i = 0; i < recording.replies.size(); ++i) {
    recording.replies[i].rounds = recording.rounds[i].size();
    recording.replies[i].round = [&recording, i](size_t round) { return recording.rounds[i][round]; };
  }
}

}  // namespace canopy::test
