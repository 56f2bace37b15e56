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

constexpr std::string_view kThink = "<think>", kThinkEnd = "</think>", kCall = "<tool_call>", kCallEnd = "</tool_call>";
constexpr std::string_view kBlanks = " \t\r\n";
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
  std::vector<ToolCall> calls = calls_in_json(inside, {});
  if (calls.empty())
    if (std::optional<ToolCall> call = call_in_tags(inside)) calls.push_back(std::move(*call));
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
      if (!ends && (text.empty() || (text.size() < kCall.size() && kCall.starts_with(text)))) return false;
      state_ = may_be_calls(held_) && !text.starts_with(kCall) ? State::perhaps_call : State::answer;
      return true;
    }
    case State::answer: {
      if (tools_.empty()) {
        answered_ |= !held_.empty();
        part.answer += std::exchange(held_, {});
        return false;
      }
      const size_t begin = held_.find(kCall);
      if (begin != std::string::npos) {
        // Blanks around calls are no answer.
        const std::string_view before = std::string_view(held_).substr(0, begin);
        if (!trimmed(before).empty()) part.answer += before.substr(0, before.find_last_not_of(kBlanks) + 1);
        held_.erase(0, begin);
        state_ = State::call;
        return true;
      }
      // Blanks may stand in front of a call.
      size_t kept = ends ? 0 : begun_of(held_, kCall);
      if (!ends)
        while (kept < held_.size() && kBlanks.find(held_[held_.size() - kept - 1]) != std::string_view::npos) ++kept;
      const bool after_call = answered_ && trimmed(held_).empty();
      if (!(ends && after_call)) part.answer += held_.substr(0, held_.size() - kept);
      held_.erase(0, held_.size() - kept);
      return false;
    }
    case State::call: {
      const size_t end = held_.find(kCallEnd);
      if (end == std::string::npos && !ends) return false;
      const size_t stop = std::min(end, held_.size());
      const size_t next = std::min(stop + (end == std::string::npos ? 0 : kCallEnd.size()), held_.size());
      const std::string whole = held_.substr(0, next);
      take_call(std::string_view(held_).substr(kCall.size(), stop - kCall.size()), whole, part);
      held_.erase(0, next);
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
