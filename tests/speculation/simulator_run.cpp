#include "tests/speculation/simulator_run.h"

#include <algorithm>
#include <memory>

#include "engine/speculation/pass_cost.h"
#include "engine/speculation/tree_builder.h"

namespace canopy::test {
namespace {

/// The `count` tokens of the text after `position`.
std::vector<uint32_t> text_behind(const Trace& trace, uint32_t position, uint32_t count) {
  std::vector<uint32_t> tokens;
  for (uint32_t i = 1; i <= count; ++i) tokens.push_back(trace.token(position + i));
  return tokens;
}

/// Features that wait once those of a round have come: where they have no room, the others are injected.
uint32_t waiting_with(uint32_t backlog, uint32_t more) {
  return more > most_waiting - backlog ? more : backlog + more;
}

/// The same of a prompt, which may be longer: it fills what room there is.
uint32_t waiting_with_prompt(uint32_t backlog, uint32_t more) {
  while (more > 0) {
    if (backlog == most_waiting) backlog = 0;
    const uint32_t count = std::min(more, most_waiting - backlog);
    backlog += count;
    more -= count;
  }
  return backlog;
}

/// Runs one text, round by round.
class Run {
 public:
  Run(Controller& controller, const Trace& trace, const VirtualDevice& device, uint32_t budget, const Replies& replies,
      const RunWatcher& watcher)
      : controller_(controller),
        trace_(trace),
        device_(device),
        budget_(budget),
        replies_(replies),
        watcher_(watcher),
        cost_(make_cost(CostPolicy::measured, any_roofline(), device.calibrate())) {}

  RunResult all() {
    while (position_ < trace_.tokens()) {
      if (replies_.begins(position_)) begin_reply();
      round();
    }
    if (result_.verified > 0) result_.mean_width /= result_.verified;
    return result_;
  }

 private:
  void begin_reply() {
    controller_.begin_reply();
    backlog_ = waiting_with_prompt(backlog_, replies_.prompt);
    result_.reply_ms.push_back(0);
    result_.reply_ar_ms.push_back(0);
    if (watcher_.reply) watcher_.reply(position_, backlog_, controller_, *cost_);
  }

  void round() {
    WidthLimits limits;
    limits.budget = budget_;
    limits.tokens_left = replies_.left(position_, trace_.tokens());
    const DraftPlan plan = controller_.plan(position_, backlog_, limits, *cost_);
    const uint32_t drafted_backlog = backlog_;
    double draft_ms = 0;
    WidthChoice choice;
    uint32_t emitted = 1;
    if (plan.draft) {
      draft_ms = device_.draft_ms(backlog_, position_);
      choice = draft(plan);
      accept(
          builder_.tree(), [&](uint32_t node) { return trace_.token(position_ + builder_.tree()[node].depth + 1); },
          path_);
      emitted = path_.emitted();
      backlog_ = 0;
    }
    const double verify_ms = device_.verify_ms(choice.best.width, position_);
    const double other_ms = device_.other_ms(choice.best.width, position_);
    const std::vector<uint32_t> tokens = text_behind(trace_, position_, emitted);
    controller_.observe({tokens, draft_ms, verify_ms, other_ms});
    if (plan.draft) cost_->observe_draft(drafted_backlog, position_, draft_ms);
    cost_->observe_verify(choice.best.width, position_, verify_ms);
    cost_->observe_other(choice.best.width, other_ms);
    count(plan, choice, draft_ms + verify_ms + other_ms);
    if (watcher_.round) {
      if (choice.shape == DecodeMode::ar) builder_.begin(trace_.token(position_), {}, 1);
      watcher_.round(position_, plan.draft, choice, builder_.tree(), tokens, {draft_ms, verify_ms, other_ms});
    }
    double plain_ms = 0;
    for (uint32_t i = 0; i < emitted; ++i) plain_ms += device_.plain_ms(position_ + i);
    ar_ms_ += plain_ms;
    result_.reply_ar_ms.back() += plain_ms;
    result_.worst_ms = std::max(result_.worst_ms, result_.ms - 1.02 * ar_ms_);
    position_ += emitted;
    backlog_ = waiting_with(backlog_, emitted);
  }

  WidthChoice draft(const DraftPlan& plan) {
    const bool sulking = position_ < sulks_until_;
    const auto candidates = trace_.draft(position_, plan.depth, sulking);
    builder_.begin(trace_.token(position_), candidates, DraftTable::listed, controller_.calibration(plan.depth));
    while (controller_.wants_more(builder_.tree()) && builder_.next() == TreeStep::added) {
    }
    WidthChoice choice = controller_.choose(builder_.tree(), candidates);
    if (choice.shape == DecodeMode::chain) builder_.build_chain(choice.best.width - 1);
    if (choice.shape != DecodeMode::chain) builder_.cut(choice.best.width);
    if (choice.best.width > 1) sulks_until_ = position_ + trace_.spec().sulking;
    return choice;
  }

  void count(const DraftPlan& plan, const WidthChoice& choice, double ms) {
    result_.ms += ms;
    result_.reply_ms.back() += ms;
    result_.rounds += 1;
    if (!plan.draft) return;
    result_.drafts += 1;
    result_.longest_round_ms = std::max(result_.longest_round_ms, ms);
    if (choice.best.width == 1) return;
    result_.verified += 1;
    result_.chains += choice.shape == DecodeMode::chain ? 1 : 0;
    result_.mean_width += choice.best.width;
  }

  Controller& controller_;
  const Trace& trace_;
  const VirtualDevice& device_;
  uint32_t budget_;
  Replies replies_;
  const RunWatcher& watcher_;
  std::unique_ptr<ObservedCost> cost_;
  TreeBuilder builder_;
  AcceptedPath path_;
  uint32_t position_ = 0;  // position of the root
  uint32_t backlog_ = 0;
  double ar_ms_ = 0;  // time of plain decoding for the text so far
  uint32_t sulks_until_ = 0;
  RunResult result_;
};

}  // namespace

uint32_t Replies::left(uint32_t position, uint32_t text) const {
  const uint32_t end = tokens == 0 ? text : std::min(text, (position / tokens + 1) * tokens);
  return end - position;
}

RunResult run_adaptive(Controller& controller, const Trace& trace, const VirtualDevice& device, uint32_t budget,
                       const Replies& replies, const RunWatcher& watcher) {
  return Run(controller, trace, device, budget, replies, watcher).all();
}

Roofline any_roofline() {
  const ModelShape shape{
      .layers = 30, .hidden = 576, .query_heads = 9, .kv_heads = 3, .head_dim = 64, .ffn = 1536, .vocab = 49152};
  return Roofline(shape, {.flops_per_second = 1e12, .bytes_per_second = 1e11});
}

double run_ar(const Trace& trace, const VirtualDevice& device) {
  double ms = 0;
  for (uint32_t position = 0; position < trace.tokens(); ++position) ms += device.plain_ms(position);
  return ms;
}

Hindsight::Hindsight(const Trace& trace, uint32_t depths, uint32_t widest)
    : trace_(trace),
      widest_(widest),
      tree_(size_t{widest} * trace.tokens()),
      chain_(size_t{depths + 1} * trace.tokens()) {
  TreeBuilder builder;
  for (uint32_t position = 0; position < trace.tokens(); ++position) {
    const auto candidates = trace.draft(position, depths);
    builder.begin(trace.token(position), candidates, DraftTable::listed);
    builder.build(widest - 1);
    learn(builder.tree().nodes(), position, depths);
    uint32_t right = 0;
    for (uint32_t length = 1; length <= depths; ++length) {
      const bool goes_on = right + 1 == length && candidates[right].tokens[0] == trace.token(position + length);
      right += goes_on ? 1 : 0;
      chain_[size_t{length} * trace.tokens() + position] = static_cast<uint8_t>(right);
    }
  }
}

/// How many tokens each prefix of the best-first order accepts.
void Hindsight::learn(std::span<const TreeNode> tree, uint32_t position, uint32_t depths) {
  uint32_t end = 0;  // end of the accepted path
  uint8_t accepted = 0;
  for (uint32_t node = 1; node < widest_; ++node) {
    const bool follows = node < tree.size() && accepted < depths && tree[node].parent == end &&
                         tree[node].token == trace_.token(position + accepted + 1);
    if (follows) {
      end = node;
      ++accepted;
    }
    tree_[size_t{node} * trace_.tokens() + position] = accepted;
  }
}

double Hindsight::run(const VirtualDevice& device, uint32_t width, const Replies& replies,
                      std::span<const uint8_t> accepted) const {
  double ms = 0;
  uint32_t backlog = 0;
  for (uint32_t position = 0; position < trace_.tokens();) {
    const uint32_t left = replies.left(position, trace_.tokens());
    if (replies.begins(position)) backlog = waiting_with_prompt(backlog, replies.prompt);
    ms += device.draft_ms(backlog, position) + device.verify_ms(width, position) + device.other_ms(width, position);
    backlog = std::min(accepted[position] + 1u, left);
    position += backlog;
  }
  return ms;
}

double Hindsight::tree_ms(const VirtualDevice& device, uint32_t width, const Replies& replies) const {
  return run(device, width, replies, std::span(tree_).subspan(size_t{width - 1} * trace_.tokens(), trace_.tokens()));
}

double Hindsight::chain_ms(const VirtualDevice& device, uint32_t width, const Replies& replies) const {
  return run(device, width, replies, std::span(chain_).subspan(size_t{width - 1} * trace_.tokens(), trace_.tokens()));
}

std::vector<Hindsight::Best> Hindsight::all(const VirtualDevice& device) const {
  std::vector<Best> ways = {{1, false, run_ar(trace_, device)}};
  for (uint32_t width = 2; width <= widest_; ++width) ways.push_back({width, false, tree_ms(device, width)});
  for (uint32_t width = 2; width <= device.spec().block_size; ++width) {
    ways.push_back({width, true, chain_ms(device, width)});
  }
  return ways;
}

}  // namespace canopy::test
