#include "app/state/drafting.h"

#include <cstdio>

#include "app/state/view_model.h"

namespace canopy::app {

DecodeMode mode_for(const std::optional<DecodeMode>& chosen, const ModelReady& model) {
  if (model.drafter.empty()) return DecodeMode::ar;
  if (chosen) return *chosen;
  return model.is_software ? DecodeMode::tree : DecodeMode::adaptive;
}

bool is_chosen(const ViewModel& view, DecodeMode mode) {
  return view.drafting == mode || (mode == DecodeMode::tree && view.shell.tree_budget != kShownBudget);
}

TreeSetBy tree_set_by(const ViewModel& view, const RoundRecord& round, size_t reply) {
  if (round.mode == DecodeMode::adaptive) return TreeSetBy::controller;
  const RoundLog& log = *view.rounds.log;
  if (!log.is_live()) return TreeSetBy::recording;
  for (const Conversation::Node& node : view.messages.nodes()) {
    if (node.message.id != log.replies()[reply].message || !node.message.parameters.mode_chosen) continue;
    return *node.message.parameters.mode_chosen ? TreeSetBy::user : TreeSetBy::fallback;
  }
  return TreeSetBy::recording;  // of an earlier day
}

const char* mode_title(DecodeMode mode) {
  switch (mode) {
    case DecodeMode::ar: return "AR";
    case DecodeMode::chain: return "Chain";
    case DecodeMode::tree: return "Tree";
    case DecodeMode::adaptive: return "Adaptive";
  }
  return "";
}

const char* mode_detail(DecodeMode mode) {
  switch (mode) {
    case DecodeMode::ar: return "Autoregressive: one token a pass, no drafts";
    case DecodeMode::chain: return "DFlash: the drafter's likeliest line, checked in one pass";
    case DecodeMode::tree: return "DDTree: a draft tree of a fixed size, checked in one pass";
    case DecodeMode::adaptive: return "BASTION: each round the width that is fastest here";
  }
  return "";
}

std::string ar_verdict(const std::optional<DecodeMode>& chosen, const ReplyFinished& reply) {
  constexpr double clearly = 1.1;
  if (chosen || reply.mode == DecodeMode::ar || reply.mode == DecodeMode::adaptive) return "";
  if (reply.tokens_per_second <= 0 || reply.ar_tokens_per_second < clearly * reply.tokens_per_second) return "";
  char text[96];
  std::snprintf(text, sizeof text, "Plain decoding is about %.1f\u00d7 faster on this device.",
                reply.ar_tokens_per_second / reply.tokens_per_second);
  return text;
}

std::string short_ar_verdict(const ReplyFinished& reply, WindowLayout layout) {
  char text[48];
  std::snprintf(text, sizeof text, "%s is %.1f\u00d7 faster here", layout == WindowLayout::watch ? "Plain" : "AR",
                reply.tokens_per_second > 0 ? reply.ar_tokens_per_second / reply.tokens_per_second : 0.0);
  return text;
}

}  // namespace canopy::app
