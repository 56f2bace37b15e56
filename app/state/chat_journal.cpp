#include "app/state/chat_journal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <unordered_map>
#include <utility>

#include "engine/base/error.h"
#include "engine/format/json_text.h"

namespace canopy::app {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::array kSources = {"plain", "accepted", "own"};
constexpr std::array kReasons = {FinishReason::stop_token, FinishReason::max_tokens, FinishReason::context_full,
                                 FinishReason::cancelled,  FinishReason::failed,     FinishReason::repeats};

/// The decimal number with the fewest digits that reads back as the same float: 0.9, not 0.8999999761581421.
double shortest(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double back = 0;
  std::from_chars(text, end, back);
  return back;
}

ordered_json parameters_json(const ReplyParameters& p) {
  const SamplingSettings& s = p.sampling;
  ordered_json out;
  if (!p.model.empty()) out["model"] = p.model;
  if (!p.device.empty()) out["device"] = p.device;
  if (p.mode) out["mode"] = to_string(*p.mode);
  if (p.mode_chosen) out["mode_chosen"] = *p.mode_chosen;
  out["budget"] = p.budget;
  out["max_tokens"] = p.max_tokens;
  out["temperature"] = shortest(s.temperature);
  out["top_k"] = s.top_k;
  out["top_p"] = shortest(s.top_p);
  out["min_p"] = shortest(s.min_p);
  out["repetition_penalty"] = shortest(s.repetition_penalty);
  out["presence_penalty"] = shortest(s.presence_penalty);
  out["frequency_penalty"] = shortest(s.frequency_penalty);
  out["seed"] = s.seed;
  for (const auto& [token, bias] : s.logit_bias) out["logit_bias"].push_back({token, shortest(bias)});
  if (!p.system_prompt.empty()) out["system_prompt"] = p.system_prompt;
  if (p.thinking) out["thinking"] = *p.thinking;
  if (p.left_out > 0) out["left_out"] = p.left_out;
  return out;
}

float float_or(const JsonFields& fields, const char* name, float fallback) {
  return static_cast<float>(fields.number_or(name, static_cast<double>(fallback)));
}

uint64_t whole_number(const JsonFields& fields, const char* name, uint64_t fallback) {
  const json* value = fields.find(name);
  if (!value) return fallback;
  if (value->is_number_unsigned()) return value->get<uint64_t>();
  throw bad_input(fields.what() + ": \"" + name + "\" is " + value->dump() + "; it must be a whole number from 0 on.");
}

std::optional<DecodeMode> mode_in(const JsonFields& fields) {
  const std::string name = fields.text_or("mode", "");
  if (name.empty()) return std::nullopt;
  if (const auto mode = decode_mode_of(name)) return mode;
  throw bad_input(fields.what() + ": \"mode\" is \"" + name +
                  "\"; it must be \"ar\", \"chain\", \"tree\" or \"adaptive\".");
}

ReplyParameters parameters_from(const json& object, const std::string& what) {
  const JsonFields fields(object, what + ": parameters");
  ReplyParameters p;
  p.model = fields.text_or("model", "");
  p.device = fields.text_or("device", "");
  p.mode = mode_in(fields);
  if (fields.has("mode_chosen")) p.mode_chosen = fields.boolean_or("mode_chosen", false);
  p.budget = fields.u32_or("budget", 0);
  p.max_tokens = fields.u32_or("max_tokens", 0);
  SamplingSettings& s = p.sampling;
  s.temperature = float_or(fields, "temperature", s.temperature);
  s.top_k = fields.u32_or("top_k", s.top_k);
  s.top_p = float_or(fields, "top_p", s.top_p);
  s.min_p = float_or(fields, "min_p", s.min_p);
  s.repetition_penalty = float_or(fields, "repetition_penalty", s.repetition_penalty);
  s.presence_penalty = float_or(fields, "presence_penalty", s.presence_penalty);
  s.frequency_penalty = float_or(fields, "frequency_penalty", s.frequency_penalty);
  s.seed = whole_number(fields, "seed", 0);
  if (fields.has("logit_bias")) {
    for (const json& pair : fields.list("logit_bias")) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() || !pair[1].is_number())
        throw bad_input(fields.what() + ": an entry of \"logit_bias\" is " + pair.dump() +
                        "; it must be [id, number].");
      s.logit_bias.emplace_back(pair[0].get<uint32_t>(), static_cast<float>(pair[1].get<double>()));
    }
  }
  p.system_prompt = fields.text_or("system_prompt", "");
  if (fields.has("thinking")) p.thinking = fields.boolean_or("thinking", false);
  p.left_out = fields.u32_or("left_out", 0);
  return p;
}

ordered_json result_json(const ReplyFinished& r) {
  ordered_json out;
  out["ended"] = to_string(r.reason);
  out["mode"] = to_string(r.mode);
  out["tau"] = r.tau;
  out["tokens_per_second"] = r.tokens_per_second;
  out["plain_tokens_per_second"] = r.ar_tokens_per_second;
  if (r.plain.known())
    out["plain_beside"] = {{"pass_ms", r.plain.ms}, {"passes", r.plain.passes}, {"own_rounds", r.plain.own}};
  out["prompt_tokens"] = r.prompt_tokens;
  out["reused_tokens"] = r.reused_tokens;
  out["reply_tokens"] = r.reply_tokens;
  out["context_used"] = r.context_used;
  out["prefill_ms"] = r.prefill_ms;
  out["decode_ms"] = r.decode_ms;
  return out;
}

FinishReason reason_in(const JsonFields& fields) {
  const std::string name = fields.text("ended");
  for (FinishReason reason : kReasons)
    if (name == to_string(reason)) return reason;
  throw bad_input(fields.what() + ": \"ended\" is \"" + name + "\"; it must be one of the reasons that Canopy writes.");
}

ReplyFinished result_from(const json& object, const std::string& what) {
  const JsonFields fields(object, what + ": result");
  ReplyFinished r;
  r.reason = reason_in(fields);
  r.mode = mode_in(fields).value_or(DecodeMode::ar);
  r.tau = fields.number_or("tau", 0);
  r.tokens_per_second = fields.number_or("tokens_per_second", 0);
  r.ar_tokens_per_second = fields.number_or("plain_tokens_per_second", 0);
  if (const json* beside = fields.object("plain_beside")) {
    const JsonFields plain(*beside, fields.what() + ": plain_beside");
    r.plain.ms = std::max(0.0, plain.number_or("pass_ms", 0));
    r.plain.passes = plain.u32_or("passes", 0);
    r.plain.own = plain.boolean_or("own_rounds", false);
  }
  r.prompt_tokens = fields.u32_or("prompt_tokens", 0);
  r.reused_tokens = fields.u32_or("reused_tokens", 0);
  r.reply_tokens = fields.u32_or("reply_tokens", 0);
  r.context_used = fields.u32_or("context_used", 0);
  r.prefill_ms = fields.number_or("prefill_ms", 0);
  r.decode_ms = fields.number_or("decode_ms", 0);
  return r;
}

ordered_json tokens_json(const TurnTokens& tokens) {
  ordered_json out = {{"vocabulary", tokens.vocabulary}, {"ids", tokens.ids}};
  if (!tokens.ending.empty()) out["ending"] = tokens.ending;
  return out;
}

uint32_t token_id_in(const json& id, const std::string& what) {
  if (id.is_number_unsigned() && id.get<uint64_t>() <= UINT32_MAX) return id.get<uint32_t>();
  throw bad_input(what + ": a token is " + id.dump() + "; it must be a whole number from 0 to 4294967295.");
}

/// The token ids of a reply that has `count` tokens.
TurnTokens tokens_from(const json& object, uint32_t count, const std::string& what) {
  if (!object.is_object()) throw bad_input(what + " are " + object.dump() + "; they must be an object.");
  const JsonFields fields(object, what);
  TurnTokens tokens;
  tokens.vocabulary = whole_number(fields, "vocabulary", 0);
  for (const json& id : fields.list("ids")) tokens.ids.push_back(token_id_in(id, what));
  if (fields.has("ending"))
    for (const json& id : fields.list("ending")) tokens.ending.push_back(token_id_in(id, what));
  const size_t all = tokens.ids.size() + tokens.ending.size();
  if (all != count)
    throw bad_input(what + " are " + std::to_string(all) + "; the reply has " + std::to_string(count) + ".");
  return tokens;
}

ordered_json attachments_json(const std::vector<Attachment>& attachments) {
  ordered_json out = ordered_json::array();
  for (const Attachment& each : attachments) {
    out.push_back({{"name", each.name}, {"text", each.text}});
    if (each.tokens == 0) continue;
    out.back()["tokens"] = each.tokens;
    out.back()["vocabulary"] = each.vocabulary;
  }
  return out;
}

std::vector<Attachment> attachments_from(const JsonFields& fields, const std::string& what) {
  std::vector<Attachment> all;
  for (const json& each : fields.list("attachments")) {
    const JsonFields file(each, what + ": attachments");
    all.push_back(
        {file.text("name"), file.text("text"), file.u32_or("tokens", 0), whole_number(file, "vocabulary", 0)});
  }
  return all;
}

/// Its reply_id is left to the caller.
Continuation continuation_from(const json& each, const std::string& what) {
  const auto whole = [](const json& n) { return n.is_number_unsigned() && n.get<uint64_t>() <= UINT32_MAX; };
  if (each.is_array() && each.size() == 2 && whole(each[0]) && whole(each[1]))
    return {0, each[0].get<uint32_t>(), each[1].get<uint32_t>()};
  throw bad_input(what + ": \"continued\" holds " + each.dump() + "; it must be [round, byte].");
}

/// The fields that are known only when a reply has ended: result and figures. Empty for a question.
ordered_json ending_json(const Message& message) {
  ordered_json out = ordered_json::object();
  if (message.role == Role::user) return out;
  out["tokens"] = message.tokens;
  out["rounds"] = message.rounds;
  out["tokens_per_second"] = message.tokens_per_second;
  if (message.result) out["result"] = result_json(*message.result);
  if (message.result && !message.result->tokens.ids.empty()) out["token_ids"] = tokens_json(message.result->tokens);
  return out;
}

void read_ending(Message& message, const json& object, const std::string& what, std::string& note) {
  const JsonFields fields(object, what);
  message.tokens = fields.u32_or("tokens", message.tokens);
  message.rounds = fields.u32_or("rounds", message.rounds);
  message.tokens_per_second = fields.number_or("tokens_per_second", message.tokens_per_second);
  if (const json* result = fields.object("result")) message.result = result_from(*result, what);
  if (!message.result || !fields.has("token_ids")) return;
  try {
    message.result->tokens = tokens_from(*fields.find("token_ids"), message.tokens, what + ": token_ids");
  } catch (const Error& e) {
    note = std::string(e.what()) + " They are left out; the text is there.";
  }
}

/// Whether a byte of a text is one of a character that begins before it.
bool is_inside_character(const std::string& utf8, size_t at) {
  return at < utf8.size() && (static_cast<unsigned char>(utf8[at]) & 0xC0) == 0x80;
}

ordered_json thought_json(const ThoughtPart& thought) {
  return {{"bytes", thought.bytes}, {"open", thought.open}};
}

void read_thought(Message& message, const json& object, const std::string& what) {
  const JsonFields fields(object, what + ": thought");
  const ThoughtPart thought{true, fields.boolean_or("open", false), fields.u32("bytes")};
  const bool within = thought.bytes <= message.text.size() && !is_inside_character(message.text, thought.bytes);
  if (!within)
    throw bad_input(what + ": what was thought ends at byte " + std::to_string(thought.bytes) + " of " +
                    std::to_string(message.text.size()) + ", where no character ends.");
  message.thought = thought;
}

/// The tokens from number `first` on, each as [end, round, node, source]; a token begins where the one before it ends.
ordered_json spans_json(const Message& message, size_t first = 0) {
  ordered_json out = ordered_json::array();
  for (size_t i = first; i < message.spans.size(); ++i) {
    const TokenSpan& s = message.spans[i];
    out.push_back({s.end, s.round, s.node, kSources[static_cast<size_t>(s.source)]});
  }
  return out;
}

void read_spans(Message& message, const json& list, const std::string& what) {
  if (!list.is_array()) throw bad_input(what + ": \"spans\" is no list.");
  for (const json& each : list) {
    const bool shaped = each.is_array() && each.size() == 4 && each[0].is_number_unsigned() &&
                        each[1].is_number_unsigned() && each[2].is_number_unsigned() && each[3].is_string();
    const auto source =
        shaped ? std::find(kSources.begin(), kSources.end(), each[3].get<std::string>()) : kSources.end();
    if (source == kSources.end())
      throw bad_input(what + ": a span is " + each.dump() + "; it must be [end, round, node, source].");
    const uint32_t begin = message.spans.empty() ? 0 : message.spans.back().end;
    const uint32_t end = each[0].get<uint32_t>();
    if (end < begin)
      throw bad_input(what + ": a span ends at " + std::to_string(end) + ", before the one in front of it (" +
                      std::to_string(begin) + ").");
    message.spans.push_back({begin, end, each[1].get<uint32_t>(), each[2].get<uint32_t>(),
                             static_cast<TokenSource>(source - kSources.begin())});
  }
}

}  // namespace

ordered_json message_json(const Message& message) {
  ordered_json out;
  out["role"] = message.role == Role::user ? "user" : "assistant";
  out["created"] = time_text(message.created_ms);
  out["text"] = message.text;
  if (!message.attachments.empty()) out["attachments"] = attachments_json(message.attachments);
  if (message.role == Role::user) return out;
  if (message.begins_thinking) out["begins_thinking"] = true;
  if (message.thought.told_apart) out["thought"] = thought_json(message.thought);
  out["parameters"] = parameters_json(message.parameters);
  if (message.seed) out["seed"] = *message.seed;
  if (!message.spans.empty()) out["spans"] = spans_json(message);
  for (const Continuation& each : message.continued) out["continued"].push_back({each.first_round, each.text_begin});
  if (!message.writing) out.update(ending_json(message));
  return out;
}

Message message_from(const json& object, const std::string& what, std::string& note) {
  const JsonFields fields(object, what);
  Message message;
  const std::string role = fields.text("role");
  if (role != "user" && role != "assistant")
    throw bad_input(what + ": \"role\" is \"" + role + "\"; it must be \"user\" or \"assistant\".");
  message.role = role == "user" ? Role::user : Role::assistant;
  message.text = fields.text("text");
  if (fields.has("created")) message.created_ms = time_from(fields.text("created"), what);
  if (const json* parameters = fields.object("parameters")) message.parameters = parameters_from(*parameters, what);
  message.begins_thinking = fields.boolean_or("begins_thinking", false);
  if (fields.has("thought")) read_thought(message, fields.at("thought"), what);
  if (fields.has("attachments")) message.attachments = attachments_from(fields, what);
  if (fields.has("seed")) message.seed = whole_number(fields, "seed", 0);
  if (fields.has("spans")) read_spans(message, fields.list("spans"), what);
  if (fields.has("continued"))
    for (const json& each : fields.list("continued")) message.continued.push_back(continuation_from(each, what));
  read_ending(message, object, what, note);
  return message;
}

std::string time_text(int64_t milliseconds) {
  using namespace std::chrono;
  const sys_time<std::chrono::milliseconds> time{std::chrono::milliseconds(milliseconds)};
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

int64_t time_from(const std::string& text, const std::string& what) {
  using namespace std::chrono;
  int y = 0, h = 0, min = 0, s = 0, ms = 0, used = 0;
  unsigned m = 0, d = 0;
  const int fields = std::sscanf(text.c_str(), "%4d-%2u-%2uT%2d:%2d:%2d.%3dZ%n", &y, &m, &d, &h, &min, &s, &ms, &used);
  const year_month_day date{year(y), month(m), day(d)};
  const bool in_day = h >= 0 && h < 24 && min >= 0 && min < 60 && s >= 0 && s < 60 && ms >= 0;
  if (fields != 7 || static_cast<size_t>(used) != text.size() || !date.ok() || !in_day)
    throw bad_input(what + ": the time is \"" + text + "\"; it must be like \"2026-01-31T13:45:00.000Z\".");
  return duration_cast<std::chrono::milliseconds>(sys_days(date).time_since_epoch()).count() +
         ((h * 60 + min) * 60 + s) * 1000LL + ms;
}

namespace {

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
  const std::vector<uint32_t>& ids = message.so_far.ids;
  if (ids.size() > mark.ids) {
    record["id"] = mark.ids;
    record["ids"] = std::vector<uint32_t>(ids.begin() + static_cast<std::ptrdiff_t>(mark.ids), ids.end());
    record["vocabulary"] = message.so_far.vocabulary;
  }
  if (record.size() > 1 && message.thought.told_apart) record["thought"] = thought_json(message.thought);
  if (record.size() > 1) add_line(lines, record);
  mark.text = message.text.size();
  mark.spans = message.spans.size();
  mark.ids = ids.size();
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
    mark.ids = message.before ? message.before->tokens.ids.size() + message.before->tokens.ending.size() : 0;
    mark.continued[n] = message.continued.size();
    add_growth(lines, message, mark);
  }
}

/// Reads one file, record by record.
class JournalReader {
 public:
  explicit JournalReader(uint64_t& last_id) : last_id_(last_id) {}

  void record(const json& object, const std::string& what) {
    const JsonFields fields(object, what);
    if (fields.has("canopy_chat")) return begin(fields);
    if (fields.has("message")) return message(fields, object);
    if (fields.has("continued")) return continued(fields);
    if (fields.has("grown")) return grown(fields);
    if (fields.has("ended")) return ended(fields, object);
    if (fields.has("leaf")) leaf(fields.u32("leaf"));
    if (fields.has("title")) chat_.title = fields.text("title");
    if (fields.has("left_out")) chat_.left_out = fields.u32("left_out");
    if (fields.has("pinned")) chat_.pinned = fields.boolean_or("pinned", false);
    if (fields.has("system_prompt")) chat_.system_prompt = fields.text("system_prompt");
  }

  /// Something left out that is no part of the conversation's text, as a sentence; else empty.
  const std::string& note() const { return note_; }

  /// After damage: accepts records whose message numbers have gaps or whose parent is missing.
  void expect_damage() { damaged_ = true; }

  Conversation finish() {
    settle();
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

  /// Shows another path. Messages that follow in the file move it on: each was shown when it was written.
  void leaf(uint32_t number) {
    if (const auto node = nodes_.find(number); node != nodes_.end()) chat_.show_leaf(node->second);
  }

  /// Ends a reply that was still being written when the program ended, as cancelled.
  void settle() {
    if (!writing_) return;
    writing_->writing = false;
    ReplyFinished result;
    result.reason = FinishReason::cancelled;
    // How many tokens came is written at the end of a reply; until then there is a span for each.
    writing_->tokens = std::max(writing_->tokens, static_cast<uint32_t>(writing_->spans.size()));
    if (!writing_->spans.empty()) writing_->rounds = std::max(writing_->rounds, writing_->spans.back().round + 1);
    result.reply_tokens = writing_->tokens;
    writing_->result = result;
    end_tokens(*writing_);
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
    begin_tokens(message, message.result ? message.result->tokens : TurnTokens());
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
    if (fields.has("ids") && fields.u32("id") == message->so_far.ids.size()) ids(*message, fields);
  }

  /// Damaged ids are left out, with all that follow them: those before are still the reply's first.
  void ids(Message& message, const JsonFields& fields) {
    try {
      std::vector<uint32_t> more;
      for (const json& id : fields.list("ids")) more.push_back(token_id_in(id, fields.what() + ": ids"));
      message.so_far.vocabulary = whole_number(fields, "vocabulary", 0);
      message.so_far.ids.insert(message.so_far.ids.end(), more.begin(), more.end());
    } catch (const Error& e) {
      note_ = std::string(e.what()) + " They are left out; the text is there.";
    }
  }

  void ended(const JsonFields& fields, const json& object) {
    Message* message = grower(fields, fields.u32("ended"));
    if (!message) return;
    read_ending(*message, object, fields.what(), note_);
    if (fields.has("thought")) read_thought(*message, fields.at("thought"), fields.what());
    message->writing = false;
    message->so_far = {};
    writing_ = nullptr;
  }

  uint64_t& last_id_;
  std::string note_;
  Conversation chat_;
  Message* writing_ = nullptr;  // in a node of chat_, so no node may be added while this is in use
  // From the number in the file to the node; they differ in a damaged file.
  std::unordered_map<uint32_t, uint32_t> nodes_;
  uint32_t writing_number_ = 0, next_ = 0;
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
    mark.ids = 0;
    add_growth(lines, node.message, mark);
  }
  if (chat.leaf() != mark.leaf && chat.leaf() != Conversation::none) add_line(lines, {{"leaf", chat.leaf()}});
  mark.leaf = chat.leaf();
  if (chat.title != mark.title) add_line(lines, {{"title", chat.title}});
  if (chat.system_prompt != mark.system_prompt) add_line(lines, {{"system_prompt", chat.system_prompt}});
  if (chat.left_out != mark.left_out) add_line(lines, {{"left_out", chat.left_out}});
  if (chat.pinned != mark.pinned) add_line(lines, {{"pinned", chat.pinned}});
  mark.left_out = chat.left_out;
  mark.title = chat.title;
  mark.system_prompt = chat.system_prompt;
  mark.pinned = chat.pinned;
  return lines;
}

JournalMark mark_of(const Conversation& conversation) {
  JournalMark mark;
  journal_lines(conversation, mark);
  return mark;
}

JournalRead read_journal(std::string_view text, uint64_t& last_id) {
  JournalRead read;
  JournalReader reader(last_id);
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
