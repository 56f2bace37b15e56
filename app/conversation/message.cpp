#include "app/conversation/message.h"

#include <algorithm>
#include <vector>

namespace canopy::app {
namespace {

/// The tree node of each accepted token of a round: the accepted nodes below the root, by depth.
std::vector<uint32_t> accepted_nodes(const RoundRecord& record) {
  std::vector<uint32_t> nodes;
  for (uint32_t n = 1; n < record.nodes.size(); ++n)
    if (record.nodes[n].state == NodeState::accepted) nodes.push_back(n);
  std::sort(nodes.begin(), nodes.end(),
            [&](uint32_t a, uint32_t b) { return record.nodes[a].node.depth < record.nodes[b].node.depth; });
  return nodes;
}

}  // namespace

ReplyPart part_of_round(const Message& message, uint32_t round) {
  ReplyPart part{message.id, 0};
  for (const Continuation& each : message.continued)
    if (each.first_round <= round) part = {each.reply_id, each.first_round};
  return part;
}

std::vector<ReplyPart> parts_of(const Message& message) {
  std::vector<ReplyPart> parts = {{message.id, 0}};
  for (const Continuation& each : message.continued) parts.push_back({each.reply_id, each.first_round});
  return parts;
}

void cut_text(Message& message, size_t size) {
  if (size >= message.text.size()) return;
  message.text.resize(size);
  if (message.thought.told_apart && size <= message.thought.bytes) {
    message.thought.bytes = static_cast<uint32_t>(size);
    message.thought.open = true;
  }
  for (TokenSpan& span : message.spans) {
    span.begin = std::min(span.begin, static_cast<uint32_t>(size));
    span.end = std::min(span.end, static_cast<uint32_t>(size));
  }
}

void append_spans(Message& message, const RoundRecord& record, uint32_t round, uint32_t text_begin,
                  std::span<const uint32_t> text_ends) {
  uint32_t at = message.spans.empty() ? 0 : message.spans.back().end;
  const bool begins = !message.continued.empty() && message.continued.back().first_round == round;
  if (message.spans.empty() || begins) {
    const TokenSource source = record.mode == DecodeMode::ar ? TokenSource::ar : TokenSource::own;
    message.spans.push_back({at, std::max(at, text_begin), round, 0, source});
  }
  at = std::max(at, text_begin);
  const std::vector<uint32_t> accepted = accepted_nodes(record);
  const auto bonus = static_cast<uint32_t>(record.nodes.size());
  for (size_t i = 0; i < text_ends.size(); ++i) {
    const bool drafted = i < record.accepted;
    const TokenSource source = drafted                          ? TokenSource::accepted
                               : record.shape == DecodeMode::ar ? TokenSource::ar
                                                                : TokenSource::own;
    const uint32_t node = drafted && i < accepted.size() ? accepted[i] : bonus;
    const uint32_t end = std::max(at, text_ends[i]);
    message.spans.push_back({at, end, round, node, source});
    at = end;
  }
}

}  // namespace canopy::app
