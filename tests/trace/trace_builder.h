#pragma once
// Makes rounds and traces that look like real ones: best-first trees over random probabilities, a target that agrees
// with the drafter about as often as the drafter expects, times that grow with the width. The same seed gives the same
// trace.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/speculation/controller.h"
#include "engine/speculation/tree_builder.h"
#include "engine/trace/trace_writer.h"

namespace canopy::test {

class TraceBuilder {
 public:
  static constexpr uint32_t vocab = 500;
  static constexpr uint32_t depths = 15;

  explicit TraceBuilder(uint64_t seed = 1) : random_(seed) { learn_words(); }

  TraceHeader header() const {
    TraceHeader header;
    header.created = "2026-01-02T03:04:05Z";
    header.target = {"Example 135M Instruct", "example-135m.gguf", "llama", "Q4_1"};
    header.drafter = TraceModel{"Example 135M DFlash", "example-dflash.gguf", "dflash", "Q8_0"};
    header.device = "Example GPU";
    header.driver = "example driver 1.2";
    header.backend = "cuda";
    header.kv_type = "f16";
    header.context = 8192;
    header.variants = "variants 5f3a";
    header.calibration = "table 77c1";
    return header;
  }

  TraceReplyBegin begin(DecodeMode mode = DecodeMode::adaptive, uint32_t prompt_tokens = 12) {
    TraceReplyBegin begin;
    begin.mode = mode;
    begin.policy = mode == DecodeMode::adaptive ? "measured" : "";
    begin.budget = 16;
    begin.max_tokens = 512;
    begin.sampling.temperature = 0.7f;
    begin.sampling.seed = 18446744073709551615u;
    begin.sampling.logit_bias = {{7, -1.5f}};
    begin.stop_strings = {"END"};
    for (uint32_t i = 0; i < prompt_tokens; ++i) begin.prompt.push_back(any_token());
    mode_ = mode;
    context_ = prompt_tokens;
    round_ = 0;
    root_ = any_token();
    return begin;
  }

  /// Call after begin(). Its token is the root of the next round.
  TracePrefill prefill() const { return {3, 41.5, root_}; }

  TraceReplyEnd end() const { return {FinishReason::max_tokens, context_, 1234.5, "the text of the reply"}; }

  /// How drafting stood before the first round of a reply: costs and a state that no controller would read.
  TraceDrafting drafting() {
    TraceDrafting drafting;
    drafting.rules = controller_rules;
    drafting.block = depths + 1;
    drafting.drafted_tokens = vocab;
    drafting.rows = 129;
    drafting.most_waiting = 128;
    drafting.backlog = 12;
    drafting.prompt_read = 9;
    drafting.goes_on = true;
    drafting.committed = context_;
    drafting.remaining = 511;
    drafting.policy = "measured";
    drafting.priced = true;
    const ModelShape shape{
        .layers = 30, .hidden = 576, .query_heads = 9, .kv_heads = 3, .head_dim = 64, .ffn = 1536, .vocab = 49152};
    drafting.roofline.emplace(shape, DevicePeaks{1e12 / 3, 1e11});
    CostTable costs(8);
    for (uint32_t width = 1; width <= 64; width *= 2) costs.set_verify(width, 64, pass_ms(width) / 3);
    costs.set_verify(1, 4096, 9.1);
    costs.set_draft(1, 64, 1.9);
    costs.set_other(1, 0.1);
    drafting.costs = std::make_shared<const CostTable>(costs);
    drafting.state = std::string("\0\x80 learnt", 9);
    return drafting;
  }

  /// Records of drafted rounds keep the draft from now on, or so much of it.
  void keep_drafts(uint32_t kept_depths = depths, uint32_t candidates = 64) {
    kept_depths_ = kept_depths;
    kept_candidates_ = candidates;
  }

  /// A round of plain decoding: one row.
  RoundRecord plain() { return finish(DraftTree(root_), DecodeMode::ar); }
  /// A round with up to 15 drafted tokens in a row.
  RoundRecord chain(uint32_t width) { return draft(DecodeMode::chain, width); }
  RoundRecord tree(uint32_t width) { return draft(DecodeMode::tree, width); }
  /// A round of any of these kinds.
  RoundRecord any(uint32_t max_width = 64) {
    switch (random_() % 4) {
      case 0: return plain();
      case 1: return chain(2 + static_cast<uint32_t>(random_() % std::min(depths, max_width - 1)));
      default: return tree(2 + static_cast<uint32_t>(random_() % (max_width - 1)));
    }
  }

  /// Texts of tokens: words, a piece that is half a character, and a control token (0).
  TracePieces pieces() const {
    return [this](uint32_t token) {
      return token < words_.size() ? trace::Piece{words_[token], token == 0} : trace::Piece{};
    };
  }

  /// Writes a whole trace of one reply.
  void write(const std::filesystem::path& path, uint32_t rounds, bool redact = false, uint32_t max_width = 64) {
    TraceWriter trace(path, header(), pieces(), redact);
    trace.begin(begin());
    trace.prefilled(prefill());
    for (uint32_t i = 0; i < rounds; ++i) trace.append(any(max_width));
    trace.end(end());
    trace.finish();
  }

 private:
  void learn_words() {
    for (uint32_t i = 0; i < vocab; ++i) words_.push_back(" word" + std::to_string(i));
    words_[0] = "<|end|>";
    words_[1] = "\xe2\x82";
    words_[2] = "\n";
  }

  uint32_t any_token() { return static_cast<uint32_t>(random_() % vocab); }
  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  RoundRecord draft(DecodeMode shape, uint32_t width) {
    constexpr uint32_t candidates = 64;
    std::vector<std::vector<uint32_t>> tokens(depths);
    std::vector<std::vector<float>> logits(depths);
    std::vector<DepthCandidates> given;
    for (uint32_t d = 0; d < depths; ++d) {
      const uint32_t first = any_token();
      const double steepness = 0.3 + 2 * uniform();
      double sum = 0;
      for (uint32_t k = 0; k < candidates; ++k) {
        tokens[d].push_back((first + 7 * k) % vocab);
        logits[d].push_back(0.0f - static_cast<float>(steepness * std::log1p(3.0 * k)));
        sum += std::exp(double{logits[d].back()});
      }
      given.push_back({tokens[d], logits[d], static_cast<float>(std::log(sum))});
    }
    TreeBuilder builder;
    builder.begin(root_, given, candidates);
    if (shape == DecodeMode::chain) {
      builder.build_chain(width - 1);
    } else {
      builder.build(width - 1);
    }
    RoundRecord record = finish(builder.tree(), shape);
    record.backlog = 1 + static_cast<uint32_t>(record.emitted.size());
    if (kept_depths_ > 0) record.draft = kept(given);
    return record;
  }

  /// The draft of these candidates; a tree has asked for more of its second depth.
  std::shared_ptr<const KeptDraft> kept(std::span<const DepthCandidates> given) const {
    KeptDraft draft;
    draft.block.depths = kept_depths_;
    draft.block.candidates = kept_candidates_;
    for (const DepthCandidates& depth : given.first(kept_depths_)) {
      for (const uint32_t token : depth.tokens.first(kept_candidates_)) draft.block.tokens.push_back(token);
      for (const float logit : depth.logits.first(kept_candidates_)) draft.block.logits.push_back(logit);
      draft.block.log_sum_exp.push_back(static_cast<float>(depth.log_sum_exp));
    }
    MoreCandidates more{.depth = 2};
    const DepthCandidates known = draft.block.at(2);
    more.tokens.assign(known.tokens.begin(), known.tokens.end());
    more.logits.assign(known.logits.begin(), known.logits.end());
    for (uint32_t i = 1; i <= 3; ++i) {
      more.tokens.push_back(vocab + i);
      more.logits.push_back(more.logits.back() - 0.125f * static_cast<float>(i - 1));
    }
    draft.more.push_back(std::move(more));
    return std::make_shared<const KeptDraft>(std::move(draft));
  }

  /// Completes the record of a round: the target's pass over the tree, the accepted path, and the times.
  RoundRecord finish(const DraftTree& tree, DecodeMode shape) {
    RoundRecord record;
    record.round = round_++;
    record.context = context_;
    record.mode = mode_;
    record.shape = shape;
    record.width = tree.width();
    if (tree.drafted() > 0) verify(tree, record);
    walk(tree, record);
    time(record);
    choose_width(tree, record);
    context_ += static_cast<uint32_t>(record.emitted.size());
    root_ = record.emitted.back();
    return record;
  }

  /// At each node the target continues with one of its children about as often as the drafter expects.
  void verify(const DraftTree& tree, RoundRecord& record) {
    for (const TreeNode& node : tree.nodes()) {
      RoundNode row;
      row.node = node;
      row.target_token = any_token();
      // The root was not chosen in this round; the other nodes are nearly as probable as the drafter says.
      if (node.depth > 0) row.log_p = static_cast<float>(std::min(0.0, node.log_q + uniform() - 0.5));
      record.nodes.push_back(row);
    }
    std::vector<double> left(tree.width());
    for (double& share : left) share = uniform();
    for (uint32_t i = 1; i < tree.width(); ++i) {
      double& share = left[tree[i].parent];
      share -= std::exp(tree[i].log_q);
      if (share < 0) {
        record.nodes[tree[i].parent].target_token = tree[i].token;
        share = 2;
      }
    }
  }

  void walk(const DraftTree& tree, RoundRecord& record) {
    uint32_t node = 0;
    for (;;) {
      const uint32_t token = record.nodes.empty() ? any_token() : record.nodes[node].target_token;
      if (!record.nodes.empty()) record.nodes[node].state = NodeState::accepted;
      record.emitted.push_back(token);
      node = tree.child(node, token);
      if (node == TreeNode::none) break;
      ++record.accepted;
    }
    for (RoundNode& row : record.nodes) {
      if (row.state == NodeState::accepted) continue;
      const bool frontier = record.nodes[row.node.parent].state == NodeState::accepted;
      row.state = frontier ? NodeState::rejected : NodeState::not_reached;
    }
  }

  static double pass_ms(uint32_t width) { return 8 + 0.11 * width + (width > 32 ? 2.5 : 0); }

  void time(RoundRecord& record) {
    const bool drafted = record.width > 1;
    const double noise = 0.9 + 0.2 * uniform();
    if (drafted) {
      record.ms.draft = 1.9 * noise;
      record.ms.build = 0.0007 * record.width;
      record.ms.commit = 0.05 * noise;
      record.predicted.draft = 1.9;
    }
    record.ms.verify = pass_ms(record.width) * noise;
    record.ms.walk = 0.02 * noise;
    record.ms.other = 0.1;
    record.device_ms.draft = record.ms.draft * 0.9;
    record.device_ms.verify = record.ms.verify * 0.95;
    record.predicted.verify = pass_ms(record.width);
    record.predicted.other = 0.1;
  }

  void choose_width(const DraftTree& tree, RoundRecord& record) {
    RoundChoice& choice = record.choice;
    choice.limits.budget = 64;
    choice.limits.depth = depths;
    choice.limits.tokens_left = 500;
    choice.ar_tokens_per_second = 1000 / pass_ms(1);
    double expected = 1;
    for (uint32_t i = 0; i < tree.width(); ++i) {
      if (i > 0) expected += std::exp(tree[i].score);
      choice.candidates.push_back({i + 1, expected, pass_ms(i + 1) + (i > 0 ? 2.0 : 0.1)});
    }
    choice.reason = "Width " + std::to_string(tree.width()) + " promised the most tokens per second.";
  }

  std::mt19937_64 random_;
  std::vector<std::string> words_;
  DecodeMode mode_ = DecodeMode::adaptive;
  uint32_t round_ = 0;
  uint32_t context_ = 0;
  uint32_t root_ = 0;
  uint32_t kept_depths_ = 0, kept_candidates_ = 0;
};

}  // namespace canopy::test
