#include "app/state/text_link.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "app/state/words.h"

namespace canopy::app {
namespace {

using Where = FoundPlace::Where;

const ReplySummary* reply_with_id(const ViewModel& view, uint64_t id) {
  if (!view.rounds.log) return nullptr;
  const auto& replies = view.rounds.log->replies();
  for (auto reply = replies.rbegin(); reply != replies.rend(); ++reply)
    if (reply->id == id) return &*reply;
  return nullptr;
}

/// The index in the log of a message's round; none where the log does not have it.
std::optional<size_t> in_log(const ViewModel& view, const Message& message, uint32_t round) {
  if (view.replaying()) {
    const auto first = view.replay.first_round(message.id);
    return first ? std::optional(*first + round) : std::nullopt;
  }
  const ReplyPart part = part_of_round(message, round);
  const ReplySummary* reply = reply_with_id(view, part.reply_id);
  if (!reply || round - part.first_round >= reply->rounds) return std::nullopt;
  return reply->first_round + round - part.first_round;
}

}  // namespace

const TokenSpan* token_at(const Message& message, size_t byte) {
  const auto& spans = message.spans;
  const auto found =
      std::partition_point(spans.begin(), spans.end(), [&](const TokenSpan& span) { return span.end <= byte; });
  return found != spans.end() && found->begin <= byte ? &*found : nullptr;
}

std::optional<NodeRef> node_of(const ViewModel& view, const Message& message, const TokenSpan& span) {
  const auto round = in_log(view, message, span.round);
  return round ? std::optional(NodeRef{*round, span.node}) : std::nullopt;
}

std::optional<size_t> round_in_message(const ViewModel& view, const Message& message, size_t round) {
  if (view.replaying()) {
    const auto first = view.replay.first_round(message.id);
    return first && round >= *first ? std::optional(round - *first) : std::nullopt;
  }
  for (const ReplyPart& part : parts_of(message)) {
    const ReplySummary* reply = reply_with_id(view, part.reply_id);
    if (reply && round >= reply->first_round && round < reply->first_round + reply->rounds)
      return part.first_round + round - reply->first_round;
  }
  return std::nullopt;
}

const TokenSpan* token_of(const ViewModel& view, const Message& message, const NodeRef& node) {
  const auto found = round_in_message(view, message, node.round);
  if (!found) return nullptr;
  const size_t round = *found;
  const TokenSpan* before = nullptr;  // the last token before the round
  for (const TokenSpan& span : message.spans) {
    if (span.round > round) break;
    if (span.round == round && span.node == node.node) return &span;
    if (span.round < round) before = &span;
  }
  return node.node == 0 ? before : nullptr;
}

namespace {

/// What is looked for: the end of the text, then the guesses.
struct Sought {
  std::string text;
  size_t matched = 0;  // bytes of it that the text ended with
};

/// Whether tokens of the message begin and end where a place does. What no rounds are known of has no such borders.
bool at_borders(const Message& message, size_t begin, size_t followed, size_t end) {
  const auto& spans = message.spans;
  if (spans.empty()) return true;
  const auto is_border = [&](size_t byte) {
    const auto ends = [&](const TokenSpan& span) { return span.end < byte; };
    const auto at = std::partition_point(spans.begin(), spans.end(), ends);
    return byte == spans.front().begin || (at != spans.end() && at->end == byte);
  };
  return is_border(begin) && is_border(followed) && is_border(end);
}

/// The last place of what is sought in bytes [from, to) of the message's text.
std::optional<size_t> last_in(const Message& message, const Sought& sought, size_t from, size_t to) {
  const std::string_view text = std::string_view(message.text).substr(0, to);
  for (size_t at = text.rfind(sought.text); at != std::string_view::npos && at >= from;
       at = at > 0 ? text.rfind(sought.text, at - 1) : std::string_view::npos)
    if (at_borders(message, at, at + sought.matched, at + sought.text.size())) return at;
  return std::nullopt;
}

/// The messages from the first one to that one, whatever branch is on show; empty where the chat does not have it.
std::vector<const Message*> path_to(const Conversation& chat, uint64_t id) {
  const auto& nodes = chat.nodes();
  uint32_t node = 0;
  while (node < nodes.size() && nodes[node].message.id != id) ++node;
  std::vector<const Message*> path;
  if (node == nodes.size()) return path;
  for (; node != Conversation::none; node = nodes[node].parent) path.push_back(&nodes[node].message);
  std::reverse(path.begin(), path.end());
  return path;
}

/// The reply that a round belongs to.
const Message* message_of(const ViewModel& view, size_t round) {
  const Message* found = nullptr;  // a recording's replies go on for ever, as far as their numbers tell: the last one
  for (const Conversation::Node& node : view.conversation().nodes()) {
    const Message& message = node.message;
    if (message.role == Role::assistant && !message.spans.empty() && round_in_message(view, message, round))
      found = &message;
  }
  return found;
}

/// The letters of the guesses from the root's child down to the node, as far as they are known and are text.
std::string guessed_text(const RoundRecord& record, uint32_t node, const RoundLog& log) {
  std::vector<uint32_t> path;
  for (; node != 0; node = record.nodes[node].node.parent) path.push_back(record.nodes[node].node.token);
  std::string text;
  for (auto token = path.rbegin(); token != path.rend(); ++token) {
    const std::optional<trace::Piece> piece = log.piece(*token);
    if (!piece || piece->control) break;
    text += piece->bytes;
  }
  return text;
}

/// Where a message that was in the prompt has it; the newest place.
std::optional<FoundPlace> in_prompt(const Message& message, const Sought& sought, bool begins_reply) {
  FoundPlace place;
  place.message = message.id;
  place.where = message.role == Role::assistant ? Where::earlier_reply : Where::question;
  std::optional<size_t> at;
  if (message.role == Role::assistant) {
    // What was thought is in no later prompt.
    const size_t first = thinking_of(message).answer;
    if (!begins_reply) {
      at = last_in(message, sought, first, message.text.size());
    } else if (std::string_view(message.text).substr(std::min(first, message.text.size())).starts_with(sought.text)) {
      at = first;
    }
  } else if (!begins_reply) {
    at = last_in(message, sought, 0, message.text.size());
  }
  if (at) {
    place.begin = *at;
    place.followed = *at + sought.matched;
    place.end = *at + sought.text.size();
    return place;
  }
  if (begins_reply) return std::nullopt;
  for (auto file = message.attachments.rbegin(); file != message.attachments.rend(); ++file) {
    if (file->text.find(sought.text) == std::string::npos) continue;
    place.where = Where::file;
    place.message = 0;
    place.file = file->name;
    return place;
  }
  return std::nullopt;
}

/// Tokens from the end of the text, `count` tokens, back to that byte of the message.
uint32_t tokens_since(const Message& message, size_t byte, size_t count) {
  uint32_t tokens = 0;
  for (size_t i = count; i > 0 && message.spans[i - 1].end > byte; --i) ++tokens;
  return tokens;
}

FoundPlace place_in_prompt(const ViewModel& view, const std::vector<const Message*>& path, const Sought& sought,
                           bool begins_reply) {
  const ReplyParameters& asked = path.back()->parameters;
  const size_t first = std::min<size_t>(asked.left_out, path.size() - 1);
  for (size_t i = path.size() - 1; i > first; --i)
    if (auto place = in_prompt(*path[i - 1], sought, begins_reply)) return *std::move(place);
  FoundPlace place;
  const std::string& system = asked.system_prompt.empty() ? view.conversation().system_prompt : asked.system_prompt;
  const bool in_system = !begins_reply && system.find(sought.text) != std::string::npos;
  place.where = in_system ? Where::system_prompt : Where::hidden;
  return place;
}

}  // namespace

std::optional<FoundPlace> find_place(const ViewModel& view, const NodeRef& node) {
  const RoundLog& log = *view.rounds.log;
  const std::shared_ptr<const RoundRecord> record = node.round < log.rounds() ? log.round(node.round) : nullptr;
  if (!record || node.node == 0 || node.node >= record->nodes.size() || record->match == 0) return std::nullopt;
  if ((record->nodes[node.node].node.sources & kFromSuffix) == 0) return std::nullopt;
  const Message* reply = message_of(view, node.round);
  if (!reply) return std::nullopt;
  const size_t round = *round_in_message(view, *reply, node.round);
  const auto& spans = reply->spans;
  const auto before = [&](const TokenSpan& span) {
    return span.round < round || (span.round == round && span.node == 0);
  };
  const auto count = static_cast<size_t>(std::partition_point(spans.begin(), spans.end(), before) - spans.begin());
  if (count == 0) return std::nullopt;
  const size_t end = std::min<size_t>(spans[count - 1].end, reply->text.size());
  // Where the match begins before the reply does, what was found again is the beginning of a reply.
  const bool begins_reply = record->match > count;
  const size_t begin = begins_reply ? 0 : std::min<size_t>(spans[count - record->match].begin, end);
  Sought sought{reply->text.substr(begin, end - begin), end - begin};
  sought.text += guessed_text(*record, node.node, log);
  if (sought.text.size() == sought.matched) return std::nullopt;  // the guesses have no letters
  std::optional<FoundPlace> place;
  if (const auto at = begins_reply ? std::nullopt : last_in(*reply, sought, 0, end)) {
    place.emplace();
    place->where = Where::reply;
    place->message = reply->id;
    place->begin = *at;
    place->followed = *at + sought.matched;
    place->end = *at + sought.text.size();
    place->tokens_back = tokens_since(*reply, place->followed, count);
  } else {
    place = place_in_prompt(view, path_to(view.conversation(), reply->id), sought, begins_reply);
  }
  place->node = node;
  if (place->message != 0 && view.conversation().find(place->message) == view.conversation().size())
    place->where = Where::other_branch;
  return place;
}

const FoundPlace* place_of(const RoundsState& rounds, const std::optional<NodeRef>& node) {
  if (!node) return nullptr;
  for (const auto* place : {&rounds.hovered_place, &rounds.selected_place})
    if (*place && (*place)->node == *node) return &**place;
  return nullptr;
}

bool is_on_show(const Conversation& shown, const FoundPlace& place) {
  if (place.message == 0) return false;
  const size_t at = shown.find(place.message);
  return at < shown.size() && place.end <= shown[at].text.size();
}

std::string place_words(const FoundPlace& place) {
  switch (place.where) {
    case Where::reply: return "Lit in the chat, " + counted(place.tokens_back, "token", "tokens") + " back.";
    case Where::earlier_reply: return "Lit in the chat, in a reply before this one.";
    case Where::question: return "Lit in the chat, in a question.";
    case Where::file: return "It stood in the file " + place.file + ", which the chat does not show.";
    case Where::system_prompt: return "It stood in the system prompt, which the chat does not show.";
    case Where::other_branch: return "It stood in a message of another branch than is on show.";
    case Where::hidden: break;
  }
  return "It stood in a part of the prompt that the chat does not show.";
}

}  // namespace canopy::app
