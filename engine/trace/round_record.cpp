#include "engine/trace/round_record.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"

namespace canopy {
namespace {

[[noreturn]] void refuse(const RoundRecord& record, const std::string& what) {
  throw bad_input("The record of round " + std::to_string(record.round) + " is wrong: " + what);
}

/// Finite and not negative.
void check_amount(const RoundRecord& record, std::string_view field, double value) {
  if (std::isfinite(value) && value >= 0) return;
  refuse(record, "its " + std::string(field) + " is " + std::to_string(value) + "; a number from 0 on is allowed.");
}

void check_times(const RoundRecord& record, const RoundTimes& times) {
  for (const double ms : {times.draft, times.build, times.verify, times.walk, times.commit, times.other}) {
    check_amount(record, "time of a stage", ms);
  }
}

void check_counts(const RoundRecord& record) {
  if (record.shape == DecodeMode::adaptive) refuse(record, "its shape is adaptive; ar, chain and tree are allowed.");
  if (record.width == 0 || record.width > max_round_width) {
    refuse(record,
           "its width is " + std::to_string(record.width) + "; allowed: 1 to " + std::to_string(max_round_width) + ".");
  }
  const bool plain = record.width == 1 && record.nodes.empty();
  if (!plain && record.nodes.size() != record.width) {
    refuse(record, "it has " + std::to_string(record.nodes.size()) + " nodes; its width is " +
                       std::to_string(record.width) + ".");
  }
  if (record.accepted >= record.width) {
    refuse(record, std::to_string(record.accepted) + " drafted tokens were accepted of a pass of width " +
                       std::to_string(record.width) + ".");
  }
  if (!(record.distinct_experts >= 0 && record.distinct_experts <= max_distinct_experts)) {
    refuse(record, "its rows went through " + std::to_string(record.distinct_experts) + " experts; allowed: 0 to " +
                       std::to_string(max_distinct_experts) + ".");
  }
  if (record.emitted.size() > size_t{record.accepted} + 1) {
    refuse(record, "it emitted " + std::to_string(record.emitted.size()) + " tokens with " +
                       std::to_string(record.accepted) + " accepted; at most one more is allowed.");
  }
}

void check_node(const RoundRecord& record, size_t index) {
  const RoundNode& row = record.nodes[index];
  const TreeNode& node = row.node;
  const std::string name = "node " + std::to_string(index);
  if (index == 0) {
    if (node.parent != TreeNode::none || node.depth != 0) refuse(record, "node 0 is not the root of its tree.");
    if (row.state != NodeState::accepted) refuse(record, "its root is not accepted.");
  } else {
    if (node.parent >= index) {
      refuse(record,
             name + " has the parent " + std::to_string(node.parent) + "; an earlier node of the tree is allowed.");
    }
    const uint32_t depth = record.nodes[node.parent].node.depth + 1;
    if (node.depth != depth || depth > max_round_depth) {
      refuse(record, name + " has the depth " + std::to_string(node.depth) + "; its parent's and one are " +
                         std::to_string(depth) + ", and at most " + std::to_string(max_round_depth) + " is allowed.");
    }
  }
  if (!std::isfinite(node.log_q) || !std::isfinite(node.score)) {
    refuse(record, name + " has a log q of " + std::to_string(node.log_q) + " and a score of " +
                       std::to_string(node.score) + "; numbers are allowed.");
  }
  if (row.log_p == std::numeric_limits<float>::infinity()) refuse(record, name + " has an infinite log p.");
}

void check_choice(const RoundRecord& record) {
  const RoundChoice& choice = record.choice;
  uint32_t last = 0;
  for (const WidthForecast& candidate : choice.candidates) {
    if (candidate.width <= last || candidate.width > max_round_width) {
      refuse(record, "a candidate's width is " + std::to_string(candidate.width) + " behind one of " +
                         std::to_string(last) + "; ascending widths up to " + std::to_string(max_round_width) +
                         " are allowed.");
    }
    last = candidate.width;
    check_amount(record, "expected tokens of a candidate", candidate.expected);
    check_amount(record, "predicted time of a candidate", candidate.ms);
  }
  check_amount(record, "rate of plain decoding", choice.ar_tokens_per_second);
  if (choice.reason.size() > max_reason_bytes) {
    refuse(record, "its reason has " + std::to_string(choice.reason.size()) + " bytes; at most " +
                       std::to_string(max_reason_bytes) + " are allowed.");
  }
}

}  // namespace

void validate(const RoundRecord& record) {
  check_counts(record);
  for (size_t i = 0; i < record.nodes.size(); ++i) check_node(record, i);
  check_times(record, record.ms);
  check_times(record, record.device_ms);
  check_times(record, record.predicted);
  check_choice(record);
}

const WidthForecast* chosen_candidate(const RoundRecord& record) {
  const auto& candidates = record.choice.candidates;
  const auto found = std::ranges::lower_bound(candidates, record.width, {}, &WidthForecast::width);
  return found != candidates.end() && found->width == record.width ? &*found : nullptr;
}

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop_token: return "stop token";
    case FinishReason::max_tokens: return "token limit";
    case FinishReason::context_full: return "context full";
    case FinishReason::cancelled: return "cancelled";
    case FinishReason::failed: return "failed";
  }
  return "?";
}

}  // namespace canopy
