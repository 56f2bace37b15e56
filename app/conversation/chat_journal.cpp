#include "app/conversation/chat_journal.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "app/conversation/chat_json.h"
#include "engine/base/error.h"
#include "engine/format/json_text.h"

namespace canopy::app {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr uint32_t kJournalVersion = 1;

void add_line(std::string& lines, const ordered_json& record) {
  // The engine sends valid UTF-8. If text should be invalid all the same, U+FFFD in the file is better than not saving.
  lines += record.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void add_node(std::string& lines, const Conversation::Node& node, size_t number) {
  ordered_json record;
  record["message"] = number;
  if (node.parent != Conversation::none) record["after"] = node.parent;
  record.update(message_json(node.message));
  if (node.message.writing) record["writing"] = true;
  add_line(lines, record);
}

/// Adds the lines for what the reply being written has grown by since the mark.
void add_growth(std::string& lines, const Message& message, JournalMark& mark) {
  ordered_json record;
  record["grown"] = mark.writing;
  if (message.text.size() > mark.text) {
    record["at"] = mark.text;
    record["text"] = message.text.substr(mark.text);
  }
  if (message.spans.size() > mark.spans) {
    record["span"] = mark.spans;
    record["spans"] = spans_json(message, mark.spans);
  }
  if (record.size() > 1 && message.thought.told_apart) record["thought"] = thought_json(message.thought);
  if (record.size() > 1) add_line(lines, record);
  mark.text = message.text.size();
  mark.spans = message.spans.size();
  if (message.writing) return;
  record = {{"ended", mark.writing}};
  record.update(ending_json(message));
  if (message.thought.told_apart) record["thought"] = thought_json(message.thought);
  add_line(lines, record);
  mark.writing = Conversation::none;
}

/// Adds lines for replies that were gone on with since the mark. What such a reply grows by follows as of any other.
void add_continuations(std::string& lines, const Conversation& chat, JournalMark& mark) {
  for (uint32_t n = 0; n < mark.nodes; ++n) {
    const Message& message = chat.nodes()[n].message;
    const size_t known = mark.continued.contains(n) ? mark.continued.at(n) : 0;
    if (message.continued.size() <= known) continue;
    for (size_t part = known; part < message.continued.size(); ++part) {
      const Continuation& each = message.continued[part];
      add_line(lines, {{"continued", n}, {"part", part + 1}, {"round", each.first_round}, {"at", each.text_begin}});
    }
    const Continuation& first = message.continued[known];
    const auto is_new = [&](const TokenSpan& span) { return span.round >= first.first_round; };
    const auto& spans = message.spans;
    mark.writing = n;
    mark.text = first.text_begin;
    mark.spans = static_cast<size_t>(std::find_if(spans.begin(), spans.end(), is_new) - spans.begin());
    mark.continued[n] = message.continued.size();
    add_growth(lines, message, mark);
  }
}

/// Reads one file, record by record.
class Reader {
 public:
  explicit Reader(uint64_t& last_id) : last_id_(last_id) {}

  void record(const json& object, const std::string& what) {
    const JsonFields fields(object, what);
    if (fields.has("canopy_chat")) return begin(fields);
    if (fields.has("message")) return message(fields, object);
    if (fields.has("continued")) return continued(fields);
    if (fields.has("grown")) return grown(fields);
    if (fields.has("ended")) return ended(fields, object);
    if (fields.has("leaf")) leaf_ = fields.u32("leaf");
    if (fields.has("title")) chat_.title = fields.text("title");
    if (fields.has("left_out")) chat_.left_out = fields.u32("left_out");
    if (fields.has("system_prompt")) chat_.system_prompt = fields.text("system_prompt");
  }

  /// Something left out that is no part of the conversation's text, as a sentence; else empty.
  const std::string& note() const { return note_; }

  /// After damage: accepts records whose message numbers have gaps or whose parent is missing.
  void expect_damage() { damaged_ = true; }

  Conversation finish() {
    settle();
    if (const auto leaf = nodes_.find(leaf_); leaf != nodes_.end()) chat_.show_leaf(leaf->second);
    return std::move(chat_);
  }

 private:
  void begin(const JsonFields& fields) {
    const uint32_t version = fields.u32("canopy_chat");
    if (version > kJournalVersion)
      throw bad_input(fields.what() + ": the format is " + std::to_string(version) +
                      ", from a newer Canopy; this one reads up to " + std::to_string(kJournalVersion) + ".");
    if (fields.has("created")) chat_.created_ms = time_from(fields.text("created"), fields.what());
    chat_.title = fields.text_or("title", "");
    chat_.system_prompt = fields.text_or("system_prompt", "");
    chat_.left_out = fields.u32_or("left_out", 0);
  }

  /// Ends a reply that was still being written when the program ended, as cancelled.
  void settle() {
    if (!writing_) return;
    writing_->writing = false;
    ReplyFinished result;
    result.reason = FinishReason::cancelled;
    // How many tokens came is written at the end of a reply; until then there is a span for each.
    writing_->tokens = std::max(writing_->tokens, static_cast<uint32_t>(writing_->spans.size()));
    result.reply_tokens = writing_->tokens;
    writing_->result = result;
    writing_ = nullptr;
  }

  void message(const JsonFields& fields, const json& object) {
    const uint32_t number = fields.u32("message");
    if (nodes_.contains(number)) return;  // the record was written twice
    if (number != next_ && !damaged_)
      throw bad_input(fields.what() + ": message " + std::to_string(number) + " comes where " + std::to_string(next_) +
                      " is expected.");
    Message message = message_from(object, fields.what(), note_);
    message.id = ++last_id_;
    for (Continuation& each : message.continued) each.reply_id = ++last_id_;
    message.writing = fields.boolean_or("writing", false);
    settle();
    go_to_parent(fields);
    Message& added = chat_.append(std::move(message));
    nodes_[number] = chat_.leaf();
    next_ = number + 1;
    writing_ = added.writing ? &added : nullptr;
    writing_number_ = number;
  }

  /// Shows the path that ends in the parent of the next message. If the parent is missing because the file is damaged,
  /// the message follows the one before it.
  void go_to_parent(const JsonFields& fields) {
    const uint32_t parent = fields.u32_or("after", Conversation::none);
    if (parent == Conversation::none) return chat_.cut(0);
    const auto node = nodes_.find(parent);
    if (node != nodes_.end()) {
      if (chat_.leaf() != node->second) chat_.show_leaf(node->second);
    } else if (!damaged_) {
      throw bad_input(fields.what() + ": it follows message " + std::to_string(parent) + ", which is not there.");
    }
  }

  /// The reply that a record adds to. Null for a reply that is already over: such a record was written twice.
  Message* grower(const JsonFields& fields, uint32_t number) const {
    if (!nodes_.contains(number))
      throw bad_input(fields.what() + ": message " + std::to_string(number) + " grows, which is not there.");
    return writing_ && number == writing_number_ ? writing_ : nullptr;
  }

  /// Opens a reply that was over: the records after it go on with it.
  void continued(const JsonFields& fields) {
    const uint32_t number = fields.u32("continued");
    const auto node = nodes_.find(number);
    if (node == nodes_.end())
      throw bad_input(fields.what() + ": message " + std::to_string(number) + " goes on, which is not there.");
    if (fields.u32("part") <= chat_.nodes()[node->second].message.continued.size()) return;  // written twice
    settle();
    if (chat_.leaf() != node->second) chat_.show_leaf(node->second);
    Message& message = chat_.back();
    const size_t at = fields.u32("at");
    if (at > message.text.size() || is_inside_character(message.text, at))
      throw bad_input(fields.what() + ": the reply goes on at byte " + std::to_string(at) + " of " +
                      std::to_string(message.text.size()) + ", where no character begins.");
    cut_text(message, at);
    message.continued.push_back({++last_id_, fields.u32("round"), fields.u32("at")});
    message.result.reset();
    message.writing = true;
    writing_ = &message;
    writing_number_ = number;
  }

  void grown(const JsonFields& fields) {
    Message* message = grower(fields, fields.u32("grown"));
    if (!message) return;
    if (fields.has("text")) {
      const size_t at = fields.u32("at");
      if (at > message->text.size())
        throw bad_input(fields.what() + ": text goes on at byte " + std::to_string(at) + " of " +
                        std::to_string(message->text.size()) + ".");
      const std::string more = fields.text("text");
      const size_t known = message->text.size() - at;
      if (more.size() > known) message->text += more.substr(known);
    }
    if (fields.has("thought")) read_thought(*message, fields.at("thought"), fields.what());
    if (fields.has("spans") && fields.u32("span") == message->spans.size())
      read_spans(*message, fields.list("spans"), fields.what());
  }

  void ended(const JsonFields& fields, const json& object) {
    Message* message = grower(fields, fields.u32("ended"));
    if (!message) return;
    read_ending(*message, object, fields.what(), note_);
    if (fields.has("thought")) read_thought(*message, fields.at("thought"), fields.what());
    message->writing = false;
    writing_ = nullptr;
  }

  uint64_t& last_id_;
  std::string note_;
  Conversation chat_;
  Message* writing_ = nullptr;  // in a node of chat_, so no node may be added while this is in use
  // From the number in the file to the node; they differ in a damaged file.
  std::unordered_map<uint32_t, uint32_t> nodes_;
  uint32_t writing_number_ = 0, next_ = 0, leaf_ = Conversation::none;
  bool damaged_ = false;
};

}  // namespace

std::string journal_lines(const Conversation& chat, JournalMark& mark) {
  std::string lines;
  if (!mark.begun) {
    ordered_json head = {{"canopy_chat", kJournalVersion}, {"created", time_text(chat.created_ms)}};
    if (!chat.title.empty()) head["title"] = chat.title;
    if (!chat.system_prompt.empty()) head["system_prompt"] = chat.system_prompt;
    if (chat.left_out > 0) head["left_out"] = chat.left_out;
    add_line(lines, head);
    mark = {};
    mark.begun = true;
    mark.title = chat.title;
    mark.system_prompt = chat.system_prompt;
    mark.left_out = chat.left_out;
  }
  if (mark.writing != Conversation::none) {
    const Message& message = chat.nodes()[mark.writing].message;
    const bool goes_on = mark.continued.contains(mark.writing) ? message.continued.size() > mark.continued[mark.writing]
                                                               : !message.continued.empty();
    if (!goes_on) add_growth(lines, message, mark);
  }
  add_continuations(lines, chat, mark);
  for (; mark.nodes < chat.nodes().size(); ++mark.nodes) {
    const Conversation::Node& node = chat.nodes()[mark.nodes];
    add_node(lines, node, mark.nodes);
    mark.leaf = static_cast<uint32_t>(mark.nodes);
    if (!node.message.continued.empty()) mark.continued[mark.leaf] = node.message.continued.size();
    if (!node.message.writing) continue;
    mark.writing = static_cast<uint32_t>(mark.nodes);
    mark.text = node.message.text.size();
    mark.spans = node.message.spans.size();
  }
  if (chat.leaf() != mark.leaf && chat.leaf() != Conversation::none) add_line(lines, {{"leaf", chat.leaf()}});
  mark.leaf = chat.leaf();
  if (chat.title != mark.title) add_line(lines, {{"title", chat.title}});
  if (chat.system_prompt != mark.system_prompt) add_line(lines, {{"system_prompt", chat.system_prompt}});
  if (chat.left_out != mark.left_out) add_line(lines, {{"left_out", chat.left_out}});
  mark.left_out = chat.left_out;
  mark.title = chat.title;
  mark.system_prompt = chat.system_prompt;
  return lines;
}

JournalMark mark_of(const Conversation& conversation) {
  JournalMark mark;
  journal_lines(conversation, mark);
  return mark;
}

JournalRead read_journal(std::string_view text, uint64_t& last_id) {
  JournalRead read;
  Reader reader(last_id);
  size_t line_number = 0;
  bool begun = false;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    const bool whole = newline != std::string_view::npos;
    text.remove_prefix(whole ? newline + 1 : text.size());
    ++line_number;
    if (line.empty()) continue;
    // A line cut off when the program ended: either the last line, or the line before a kResume record.
    const bool torn = !whole || text.starts_with(kResume.substr(1));
    try {
      const std::string what = "line " + std::to_string(line_number);
      const json object = parse_json(line, what);
      if (!begun && !object.contains("canopy_chat")) throw bad_input("It does not begin as a chat file does.");
      begun = true;
      reader.record(object, what);
      read.torn |= !whole;
    } catch (const Error& e) {
      if (!whole) read.torn = true;
      if (torn) continue;
      if (read.problem.empty()) read.problem = e.what();
      reader.expect_damage();
    }
  }
  if (!begun && read.problem.empty()) read.problem = "It is empty.";
  read.note = reader.note();
  read.conversation = reader.finish();
  return read;
}

}  // namespace canopy::app
