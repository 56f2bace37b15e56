#include "app/state/conversation.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "app/state/words.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/text/unicode.h"

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

void begin_tokens(Message& message, const TurnTokens& had) {
  message.so_far = {had.ids, {}, had.vocabulary};
  message.so_far.ids.insert(message.so_far.ids.end(), had.ending.begin(), had.ending.end());
}

void end_tokens(Message& message) {
  if (message.so_far.ids.empty()) return;
  message.tokens = message.result->reply_tokens = static_cast<uint32_t>(message.so_far.ids.size());
  message.result->tokens = std::exchange(message.so_far, {});
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

namespace {

constexpr std::string_view kThinkTag = "<think>", kThinkEnd = "</think>", kThinkBlanks = " \t\r\n";

}  // namespace

Thinking thinking_of(const Message& message) {
  Thinking found;
  if (message.role != Role::assistant) return found;
  const std::string_view text = message.text;
  if (message.thought.told_apart) {
    found.open = message.thought.open;
    found.answer = std::min<size_t>(message.thought.bytes, text.size());
    found.begin = std::min(text.find_first_not_of(kThinkBlanks), found.answer);
    found.end = text.substr(0, found.answer).find_last_not_of(kThinkBlanks) + 1;
    found.end = std::max(found.begin, found.end);
    found.there = found.end > found.begin || (found.open && message.writing);
    return found;
  }
  const size_t first = std::min(text.find_first_not_of(kThinkBlanks), text.size());
  const std::string_view rest = text.substr(first);
  size_t begin = 0;
  if (rest.starts_with(kThinkTag)) {
    begin = first + kThinkTag.size();
  } else if (message.writing && !rest.empty() && kThinkTag.starts_with(rest)) {
    begin = text.size();  // the tag is being written
  } else if (!message.begins_thinking) {
    return found;
  }
  const size_t tag = text.find(kThinkEnd, begin);
  found.open = tag == std::string_view::npos;
  found.begin = std::min(text.find_first_not_of(kThinkBlanks, begin), text.size());
  found.end = std::max(found.begin, found.open ? text.size() : tag);
  while (found.end > found.begin && kThinkBlanks.find(text[found.end - 1]) != std::string_view::npos) --found.end;
  found.answer =
      found.open ? text.size() : std::min(text.find_first_not_of(kThinkBlanks, tag + kThinkEnd.size()), text.size());
  found.there = found.end > found.begin || (found.open && message.writing);
  return found;
}

std::string answer_of(const Message& message) {
  return message.text.substr(thinking_of(message).answer);
}

std::string thought_of(const Message& message) {
  const Thinking thinking = thinking_of(message);
  return message.text.substr(thinking.begin, thinking.end - thinking.begin);
}

uint32_t thinking_tokens(const Message& message, const Thinking& thinking) {
  const auto end = std::partition_point(message.spans.begin(), message.spans.end(),
                                        [&](const TokenSpan& s) { return s.end <= thinking.end; });
  auto count = static_cast<uint32_t>(end - message.spans.begin());
  if (end != message.spans.end() && end->begin < thinking.end) ++count;  // one that goes on into the closing tag
  return thinking.open ? std::max(count, message.tokens) : count;
}

std::string thinking_words(const Message& message, const Thinking& thinking) {
  const uint32_t tokens = thinking_tokens(message, thinking);
  const std::string amount = tokens == 0 ? "" : counted(tokens, "token", "tokens");
  if (message.writing && thinking.open) return amount.empty() ? "Thinking" : "Thinking, " + amount;
  const std::string past = amount.empty() ? "Thought" : "Thought for " + amount;
  return thinking.open ? past + ", and came to no answer" : past;
}

namespace {

/// The longest run of backticks in a text.
size_t longest_ticks(std::string_view text) {
  size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

/// A file's name on one line, without backticks, so that it cannot end the line it stands in.
std::string plain_name(std::string name) {
  for (char& c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '`') c = '_';
  return to_valid_utf8(name);
}

}  // namespace

bool looks_like_text(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string start(4096, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(file.gcount()));
  return begins_like_text(start);
}

Attachment read_attachment(const std::string& path) {
  const std::filesystem::path file = path;
  const std::string name = plain_name(file.filename().string());
  std::error_code error;
  if (!std::filesystem::exists(file, error)) throw bad_input("\"" + name + "\" is not there.");
  if (std::filesystem::is_directory(file, error))
    throw bad_input("\"" + name + "\" is a folder; attach the text files in it one by one.");
  if (!std::filesystem::is_regular_file(file, error)) throw bad_input("\"" + name + "\" is no file.");
  const uintmax_t size = std::filesystem::file_size(file, error);
  if (error) throw bad_input("\"" + name + "\" cannot be read: " + error.message() + ".");
  if (size == 0) throw bad_input("\"" + name + "\" is empty.");
  if (size > kLargestAttachment)
    throw bad_input("\"" + name + "\" is too large to be attached: it has " + byte_figures(size) +
                    ", and a text file may have 1 MB.");
  const MappedFile mapped = MappedFile::open(path);
  const auto bytes = mapped.bytes();
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  text = text_from_bytes(std::move(text), "\"" + name + "\"");
  if (text.empty()) throw bad_input("\"" + name + "\" is empty.");
  return {name, std::move(text), 0, 0};
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMostListed = 5;
  const size_t shown = names.size() <= kMostListed ? names.size() : kMostListed - 1;
  std::string words;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) words += i + 1 == names.size() ? " and " : ", ";
    words += "\"" + printable(names[i]) + "\"";
  }
  return names.size() == shown ? words : words + " and " + std::to_string(names.size() - shown) + " more";
}

std::string fenced(const Attachment& attachment) {
  const std::string fence(std::max<size_t>(3, longest_ticks(attachment.text) + 1), '`');
  const bool ends = attachment.text.ends_with('\n');
  return attachment.name + ":\n" + fence + "\n" + attachment.text + (ends ? "" : "\n") + fence + "\n";
}

std::string question_with_files(const Message& question) {
  std::string all;
  for (const Attachment& each : question.attachments) all += fenced(each) + "\n";
  return all + question.text;
}

size_t Conversation::find(uint64_t message_id) const {
  // From the end, as the newest messages are asked for most.
  for (size_t i = size(); i-- > 0;)
    if ((*this)[i].id == message_id) return i;
  return size();
}

size_t Conversation::unsent() const {
  size_t from = std::min<size_t>(left_out, size());
  while (from > 0 && (from >= size() || (*this)[from].role != Role::user)) --from;
  return from;
}

Message& Conversation::append(Message message) {
  const uint32_t parent = leaf(), node = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({std::move(message), parent, none});
  if (parent != none) nodes_[parent].shown_child = node;
  path_.push_back(node);
  return nodes_.back().message;
}

void Conversation::cut(size_t length) {
  if (length < path_.size()) path_.resize(length);
}

std::vector<uint32_t> Conversation::alternatives(size_t i) const {
  const uint32_t here = path_[i], parent = nodes_[here].parent;
  std::vector<uint32_t> found;
  for (uint32_t n = parent == none ? 0 : parent + 1; n < nodes_.size(); ++n)
    if (nodes_[n].parent == parent && (n == here || !nodes_[n].message.failed_unsaid())) found.push_back(n);
  return found;
}

Conversation::Place Conversation::place(size_t i) const {
  const std::vector<uint32_t> all = alternatives(i);
  const auto here = std::find(all.begin(), all.end(), path_[i]);
  return {static_cast<size_t>(here - all.begin()), all.size()};
}

void Conversation::show_alternative(size_t i, int by) {
  if (i >= size()) return;
  const std::vector<uint32_t> all = alternatives(i);
  const auto last = static_cast<std::ptrdiff_t>(all.size()) - 1;
  const auto here = static_cast<std::ptrdiff_t>(place(i).index);
  const uint32_t chosen = all[static_cast<size_t>(std::clamp<std::ptrdiff_t>(here + by, 0, last))];
  path_.resize(i);
  path_.push_back(chosen);
  if (i > 0) nodes_[path_[i - 1]].shown_child = chosen;
  extend_to_leaf();
}

void Conversation::extend_to_leaf() {
  for (uint32_t next = nodes_[path_.back()].shown_child; next != none; next = nodes_[next].shown_child)
    path_.push_back(next);
}

void Conversation::show_leaf(uint32_t node) {
  path_.clear();
  if (node >= nodes_.size()) return;
  for (uint32_t n = node; n != none; n = nodes_[n].parent) path_.push_back(n);
  std::reverse(path_.begin(), path_.end());
  for (size_t i = 0; i + 1 < path_.size(); ++i) nodes_[path_[i]].shown_child = path_[i + 1];
}

Conversation Conversation::copy_of_path(size_t length) const {
  Conversation copy;
  copy.title = title;
  copy.system_prompt = system_prompt;
  copy.left_out = left_out;
  for (size_t i = 0; i < std::min(length, size()); ++i) copy.append((*this)[i]);
  return copy;
}

std::string Conversation::shown_title() const {
  if (!title.empty()) return first_line(title);
  if (nodes_.empty()) return "New chat";
  const Message& first = nodes_.front().message;
  return first_line(std::string_view(first.text).substr(thinking_of(first).answer));
}

std::string first_line(std::string_view line) {
  constexpr size_t kMostTitle = 256;  // bytes: a question may be a megabyte in one line, and titles are drawn always
  line.remove_prefix(std::min(line.find_first_not_of(" \t\r\n"), line.size()));
  line = line.substr(0, line.find_first_of("\r\n"));
  line = line.substr(0, line.find_last_not_of(" \t") + 1);
  std::string shown = printable(line, kMostTitle, LineBreaks::keep);
  std::ranges::replace(shown, '\t', ' ');
  return shown;
}

std::vector<ChatHit> find_in(const Conversation& conversation, std::string_view wanted, size_t most) {
  std::vector<ChatHit> hits;
  const FoldedText folded_wanted(wanted);
  if (folded_wanted.folded().empty()) return hits;
  for (const Message& message : conversation) {
    const FoldedText text(message.text);
    for (auto hit = text.find(folded_wanted); hit && hits.size() < most; hit = text.find(folded_wanted, hit->next))
      hits.push_back({message.id, hit->begin, hit->end});
  }
  return hits;
}

}  // namespace canopy::app
