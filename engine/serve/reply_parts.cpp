#include "engine/serve/reply_parts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/format/json_text.h"

namespace canopy {
namespace {

using CallJson = nlohmann::ordered_json;

constexpr std::string_view kThink = "<think>", kThinkEnd = "</think>";
constexpr std::string_view kBlanks = " \t\r\n";
/// Between which calls stand: of Hermes and Qwen, and of Gemma 4, whose texts stand between quotes of its own.
constexpr std::string_view kCall = "<tool_call>", kCallEnd = "</tool_call>";
constexpr std::string_view kGemmaCall = "<|tool_call>", kGemmaCallEnd = "<tool_call|>", kGemmaQuote = "<|\"|>";
constexpr int kDeepestArguments = 64;
/// What families write in front of a call that is JSON. Where these are control tokens nothing of them is shown.
constexpr std::array<std::string_view, 6> kMarks = {"<|python_tag|>", "[TOOL_CALLS]", "<|tool_call|>",
                                                    "functools",      "```json",      "```tool_call"};
constexpr std::array<std::string_view, 2> kMarkEnds = {"```", "<|/tool_call|>"};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Bytes at the end of a text that may be the beginning of `tag`.
size_t begun_of(std::string_view text, std::string_view tag) {
  for (size_t size = std::min(text.size(), tag.size() - 1); size > 0; --size)
    if (text.ends_with(tag.substr(0, size))) return size;
  return 0;
}

/// Whether a text, or what it may become, begins with `tag`.
bool may_begin(std::string_view text, std::string_view tag) {
  return text.size() < tag.size() ? tag.starts_with(text) : text.starts_with(tag);
}

std::optional<CallJson> parse_call_json(std::string_view text) {
  try {
    parse_json(text, "The call");  // bounds the depth
    return CallJson::parse(text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<ToolCall> call_of(const CallJson& json, const std::vector<std::string>& names) {
  if (!json.is_object()) return std::nullopt;
  const auto name = json.find("name");
  if (name == json.end() || !name->is_string()) return std::nullopt;
  ToolCall call{name->get<std::string>(), "{}"};
  if (call.name.empty()) return std::nullopt;
  if (!names.empty() && std::ranges::find(names, call.name) == names.end()) return std::nullopt;
  for (const char* field : {"arguments", "parameters"}) {
    const auto arguments = json.find(field);
    if (arguments == json.end() || arguments->is_null()) continue;
    // Some models write the arguments as a string of JSON.
    call.arguments = arguments->is_string() ? arguments->get<std::string>() : arguments->dump();
    break;
  }
  return call;
}

/// The end of the object or list that a text begins with; npos: it has none yet.
size_t end_of_json(std::string_view text) {
  int depth = 0;
  bool in_string = false, escaped = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (escaped) {
        escaped = false;
      } else if (c == '\\') {
        escaped = true;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth <= 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

/// <function=NAME><parameter=KEY>VALUE</parameter>…</function>, whose values are JSON where they can be read as such.
std::optional<ToolCall> call_in_tags(std::string_view text) {
  constexpr std::string_view function = "<function=", parameter = "<parameter=", parameter_end = "</parameter>";
  text = trimmed(text);
  if (!text.starts_with(function)) return std::nullopt;
  const size_t name_end = text.find('>');
  if (name_end == std::string_view::npos || name_end == function.size()) return std::nullopt;
  ToolCall call{std::string(text.substr(function.size(), name_end - function.size())), ""};
  CallJson arguments = CallJson::object();
  text.remove_prefix(name_end + 1);
  for (size_t begin = 0; (begin = text.find(parameter)) != std::string_view::npos;) {
    text.remove_prefix(begin + parameter.size());
    const size_t key_end = text.find('>');
    if (key_end == std::string_view::npos) return std::nullopt;
    const std::string key(text.substr(0, key_end));
    text.remove_prefix(key_end + 1);
    const size_t end = text.find(parameter_end);
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view value = text.substr(0, end);
    if (value.starts_with('\n')) value.remove_prefix(1);
    if (value.ends_with('\n')) value.remove_suffix(1);
    const std::optional<CallJson> json = parse_call_json(value);
    arguments[key] = json ? *json : CallJson(std::string(value));
    text.remove_prefix(end + parameter_end.size());
  }
  call.arguments = arguments.dump(-1, ' ', false, CallJson::error_handler_t::replace);
  return call;
}

/// call:NAME{KEY:VALUE,…} of Gemma 4. Texts stand between <|"|> as they are, also a key; objects and lists are written
/// like the whole; what else can be read as JSON is that, and None is null.
class GemmaCall {
 public:
  explicit GemmaCall(std::string_view text) : text_(trimmed(text)) {}

  std::optional<ToolCall> read() {
    constexpr std::string_view lead = "call:";
    if (!text_.starts_with(lead)) return std::nullopt;
    text_.remove_prefix(lead.size());
    const size_t name_end = text_.find('{');
    if (name_end == std::string_view::npos) return std::nullopt;
    const std::string_view name = trimmed(text_.substr(0, name_end));
    if (name.empty() || name.find_first_of(kBlanks) != std::string_view::npos) return std::nullopt;
    text_.remove_prefix(name_end + 1);
    const std::optional<CallJson> arguments = object(1);
    if (!arguments || !text_.empty()) return std::nullopt;
    return ToolCall{std::string(name), arguments->dump(-1, ' ', false, CallJson::error_handler_t::replace)};
  }

 private:
  bool take(std::string_view sign) {
    if (!text_.starts_with(sign)) return false;
    text_.remove_prefix(sign.size());
    return true;
  }
  void skip_blanks() { text_.remove_prefix(std::min(text_.find_first_not_of(kBlanks), text_.size())); }

  /// Behind the quote that opens a text.
  std::optional<std::string> quoted() {
    const size_t end = text_.find(kGemmaQuote);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(text_.substr(0, end));
    text_.remove_prefix(end + kGemmaQuote.size());
    return text;
  }

  /// Up to one of these signs, which stays.
  std::optional<std::string_view> bare(std::string_view ends) {
    const size_t end = text_.find_first_of(ends);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view word = trimmed(text_.substr(0, end));
    text_.remove_prefix(end);
    return word;
  }

  /// Behind the brace that opens it.
  std::optional<CallJson> object(int depth) {
    CallJson object = CallJson::object();
    skip_blanks();
    if (take("}")) return object;
    while (true) {
      skip_blanks();
      std::optional<std::string> key;
      if (take(kGemmaQuote)) {
        key = quoted();
      } else if (const auto word = bare(":{}[],")) {
        key = unquoted(*word);
      }
      skip_blanks();
      if (!key || key->empty() || !take(":")) return std::nullopt;
      std::optional<CallJson> each = value(depth);
      if (!each) return std::nullopt;
      object[*key] = std::move(*each);
      skip_blanks();
      if (take("}")) return object;
      if (!take(",")) return std::nullopt;
    }
  }

  std::optional<CallJson> list(int depth) {
    CallJson list = CallJson::array();
    skip_blanks();
    if (take("]")) return list;
    while (true) {
      std::optional<CallJson> each = value(depth);
      if (!each) return std::nullopt;
      list.push_back(std::move(*each));
      skip_blanks();
      if (take("]")) return list;
      if (!take(",")) return std::nullopt;
    }
  }

  std::optional<CallJson> value(int depth) {
    skip_blanks();
    if (take(kGemmaQuote)) {
      std::optional<std::string> text = quoted();
      return text ? std::optional<CallJson>(*std::move(text)) : std::nullopt;
    }
    if (text_.starts_with('"')) return in_json_quotes();
    if (take("{")) return depth < kDeepestArguments ? object(depth + 1) : std::nullopt;
    if (take("[")) return depth < kDeepestArguments ? list(depth + 1) : std::nullopt;
    const std::optional<std::string_view> word = bare(",}]");
    if (!word || word->empty()) return std::nullopt;
    if (*word == "None") return CallJson();
    const std::optional<CallJson> json = parse_call_json(*word);
    return json ? *json : CallJson(std::string(*word));
  }

  /// A text as JSON has it, which the model was not taught.
  std::optional<CallJson> in_json_quotes() {
    for (size_t end = 1; (end = text_.find('"', end)) != std::string_view::npos; ++end) {
      size_t slashes = 0;
      while (text_[end - 1 - slashes] == '\\') ++slashes;
      if (slashes % 2 != 0) continue;
      const std::optional<CallJson> json = parse_call_json(text_.substr(0, end + 1));
      text_.remove_prefix(end + 1);
      return json;
    }
    return std::nullopt;
  }

  static std::string unquoted(std::string_view word) {
    const bool has_quotes = word.size() > 2 && word.starts_with('"') && word.ends_with('"');
    return std::string(has_quotes ? word.substr(1, word.size() - 2) : word);
  }

  std::string_view text_;
};

/// Where the first call begins; npos: nowhere.
size_t begin_of_call(std::string_view text) {
  return std::min(text.find(kCall), text.find(kGemmaCall));
}

/// Bytes at the end of a text that may be the beginning of a call.
size_t begun_call(std::string_view text) {
  return std::max(begun_of(text, kCall), begun_of(text, kGemmaCall));
}

/// A call at the beginning of a text.
struct CallBounds {
  bool ended = false;
  size_t inside = 0, inside_end = 0, end = 0;  // of what is between the marks, and of all
};

CallBounds bounds_of_call(std::string_view text) {
  const bool is_gemma = text.starts_with(kGemmaCall);
  const std::string_view mark = is_gemma ? kGemmaCall : kCall, end_mark = is_gemma ? kGemmaCallEnd : kCallEnd;
  size_t from = mark.size();
  size_t end = text.find(end_mark, from);
  // The letters of the end in a text of Gemma's are no end.
  while (is_gemma && end != std::string_view::npos) {
    const size_t quote = text.find(kGemmaQuote, from);
    if (quote >= end) break;
    const size_t closing = text.find(kGemmaQuote, quote + kGemmaQuote.size());
    if (closing == std::string_view::npos) {
      end = closing;
      break;
    }
    from = closing + kGemmaQuote.size();
    end = text.find(end_mark, from);
  }
  if (end == std::string_view::npos) return {false, mark.size(), text.size(), text.size()};
  return {true, mark.size(), end, end + end_mark.size()};
}

/// A text without the mark of a family around it.
std::string_view without_marks(std::string_view text) {
  text = trimmed(text);
  for (const std::string_view mark : kMarks) {
    if (!text.starts_with(mark)) continue;
    text = trimmed(text.substr(mark.size()));
    break;
  }
  for (const std::string_view mark : kMarkEnds)
    if (text.ends_with(mark)) text = trimmed(text.substr(0, text.size() - mark.size()));
  return text;
}

/// Whether a text that begins so may turn out to be nothing but calls.
bool may_be_calls(std::string_view text) {
  text = text.substr(std::min(text.find_first_not_of(kBlanks), text.size()));
  if (text.empty() || text.front() == '{' || text.front() == '[') return true;
  return std::ranges::any_of(kMarks, [&](std::string_view mark) { return may_begin(text, mark); });
}

}  // namespace

std::vector<ToolCall> calls_in_json(std::string_view text, const std::vector<std::string>& names) {
  std::vector<ToolCall> calls;
  text = trimmed(text);
  while (!text.empty()) {
    if (text.front() != '{' && text.front() != '[') return {};
    const size_t end = end_of_json(text);
    if (end == std::string_view::npos) return {};
    const std::optional<CallJson> json = parse_call_json(text.substr(0, end));
    if (!json) return {};
    const CallJson list = json->is_array() ? *json : CallJson::array({*json});
    for (const CallJson& each : list) {
      std::optional<ToolCall> call = call_of(each, names);
      if (!call) return {};
      calls.push_back(std::move(*call));
    }
    // Llama writes several with semicolons in between.
    text = trimmed(text.substr(end));
    while (!text.empty() && (text.front() == ';' || text.front() == ',')) text = trimmed(text.substr(1));
  }
  return calls;
}

ReplyParts::ReplyParts(std::vector<std::string> tools, bool begins_thinking)
    : tools_(std::move(tools)), begins_thinking_(begins_thinking) {}

ReplyPart ReplyParts::push(std::string_view text) {
  held_ += text;
  ReplyPart part;
  while (step(part, false)) {
  }
  return part;
}

ReplyPart ReplyParts::finish() {
  ReplyPart part;
  while (step(part, true)) {
  }
  return part;
}

ReplyPart ReplyParts::push_apart(std::string_view thinking, std::string_view answer) {
  ReplyPart part;
  think(thinking, part);
  if (state_ == State::start) state_ = State::behind_thinking;
  held_ += answer;
  while (step(part, false)) {
  }
  return part;
}

void ReplyParts::think(std::string_view text, ReplyPart& part) {
  const size_t last = text.find_last_not_of(kBlanks);
  if (last == std::string_view::npos) {
    if (thought_) blanks_ += text;
    return;
  }
  if (!thought_) text.remove_prefix(text.find_first_not_of(kBlanks));
  const size_t end = text.find_last_not_of(kBlanks) + 1;
  part.thinking += std::exchange(blanks_, std::string(text.substr(end)));
  part.thinking += text.substr(0, end);
  thought_ = true;
}

void ReplyParts::take_call(std::string_view inside, std::string_view whole, ReplyPart& part) {
  const bool is_gemma = whole.starts_with(kGemmaCall);
  std::vector<ToolCall> calls = is_gemma ? std::vector<ToolCall>() : calls_in_json(inside, {});
  if (calls.empty()) {
    std::optional<ToolCall> call = is_gemma ? GemmaCall(inside).read() : call_in_tags(inside);
    if (call) calls.push_back(std::move(*call));
  }
  if (calls.empty()) part.answer += whole;  // the client sees what the model wrote
  for (ToolCall& call : calls) part.calls.push_back(std::move(call));
}

/// One step in what is held. True: it went on and may go on further.
bool ReplyParts::step(ReplyPart& part, bool ends) {
  switch (state_) {
    case State::start: {
      if (begins_thinking_) {
        state_ = State::thinking;
        return true;
      }
      const std::string_view text =
          std::string_view(held_).substr(std::min(held_.find_first_not_of(kBlanks), held_.size()));
      if (text.starts_with(kThink)) {
        held_.erase(0, held_.size() - text.size() + kThink.size());
        state_ = State::thinking;
        return true;
      }
      if (!ends && may_begin(text, kThink)) return false;
      state_ = State::behind_thinking;
      return true;
    }
    case State::thinking: {
      const size_t end = held_.find(kThinkEnd);
      const size_t kept = end != std::string::npos || ends ? 0 : begun_of(held_, kThinkEnd);
      think(std::string_view(held_).substr(0, end != std::string::npos ? end : held_.size() - kept), part);
      if (end == std::string::npos) {
        held_.erase(0, held_.size() - kept);
        return false;
      }
      held_.erase(0, end + kThinkEnd.size());
      // The blank line between thinking and answer belongs to neither.
      begins_thinking_ = true;
      state_ = State::behind_thinking;
      return true;
    }
    case State::behind_thinking: {
      if (begins_thinking_ && !answered_) held_.erase(0, std::min(held_.find_first_not_of(kBlanks), held_.size()));
      if (held_.empty()) return false;
      if (tools_.empty()) {
        state_ = State::answer;
        return true;
      }
      const std::string_view text =
          std::string_view(held_).substr(std::min(held_.find_first_not_of(kBlanks), held_.size()));
      if (!ends && (text.empty() || begun_call(text) == text.size())) return false;
      state_ = may_be_calls(held_) && begin_of_call(text) != 0 ? State::perhaps_call : State::answer;
      return true;
    }
    case State::answer: {
      if (tools_.empty()) {
        answered_ |= !held_.empty();
        part.answer += std::exchange(held_, {});
        return false;
      }
      const size_t begin = begin_of_call(held_);
      if (begin != std::string::npos) {
        // Blanks around calls are no answer.
        const std::string_view before = std::string_view(held_).substr(0, begin);
        if (!trimmed(before).empty()) part.answer += before.substr(0, before.find_last_not_of(kBlanks) + 1);
        held_.erase(0, begin);
        state_ = State::call;
        return true;
      }
      // Blanks may stand in front of a call.
      size_t kept = ends ? 0 : begun_call(held_);
      if (!ends)
        while (kept < held_.size() && kBlanks.find(held_[held_.size() - kept - 1]) != std::string_view::npos) ++kept;
      const bool after_call = answered_ && trimmed(held_).empty();
      if (!(ends && after_call)) part.answer += held_.substr(0, held_.size() - kept);
      held_.erase(0, held_.size() - kept);
      return false;
    }
    case State::call: {
      const CallBounds call = bounds_of_call(held_);
      if (!call.ended && !ends) return false;
      const std::string whole = held_.substr(0, call.end);
      take_call(std::string_view(whole).substr(call.inside, call.inside_end - call.inside), whole, part);
      held_.erase(0, call.end);
      answered_ = true;
      state_ = State::answer;
      return true;
    }
    case State::perhaps_call: {
      if (!ends && may_be_calls(held_)) return false;
      state_ = State::answer;
      if (!ends) return true;
      std::vector<ToolCall> calls = calls_in_json(without_marks(held_), tools_);
      if (calls.empty()) return true;
      held_.clear();
      for (ToolCall& call : calls) part.calls.push_back(std::move(call));
      return false;
    }
  }
  return false;
}

}  // namespace canopy
