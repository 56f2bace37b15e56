#include "engine/text/chat_turn.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "engine/text/tokenizer.h"

namespace canopy {
namespace {

// More than the tokens of any stop string that is in use.
constexpr size_t longest_ending = 32;

}  // namespace

TurnTokens tokens_of_reply(const Tokenizer& tokenizer, std::span<const uint32_t> ids, std::string_view text,
                           bool in_channels) {
  if (in_channels) {
    const std::span<const uint32_t> ends = tokenizer.end_ids();
    const bool ended = !ids.empty() && std::ranges::binary_search(ends, ids.back());
    const auto end = ids.end() - (ended ? 1 : 0);
    return {{ids.begin(), end}, {end, ids.end()}, tokenizer.identity()};
  }
  const size_t shortest = ids.size() - std::min(ids.size(), longest_ending);
  for (size_t length = ids.size(); length > shortest; --length) {
    const auto end = ids.begin() + static_cast<std::ptrdiff_t>(length);
    const TurnTokens tokens{{ids.begin(), end}, {end, ids.end()}, tokenizer.identity()};
    if (spells(tokenizer, tokens, text)) return tokens;
  }
  return {};
}

TurnTokens tokens_of_answer(const Tokenizer& tokenizer, const TurnTokens& tokens) {
  if (tokens.vocabulary != tokenizer.identity()) return tokens;
  const auto last =
      std::find_if(tokens.ids.rbegin(), tokens.ids.rend(), [&](uint32_t id) { return tokenizer.is_special(id); });
  if (last == tokens.ids.rend()) return tokens;
  return {{last.base(), tokens.ids.end()}, tokens.ending, tokens.vocabulary};
}

bool spells(const Tokenizer& tokenizer, const TurnTokens& tokens, std::string_view text) {
  if (tokens.ids.empty() || tokens.vocabulary != tokenizer.identity()) return false;
  const auto is_content = [&](uint32_t id) { return id < tokenizer.vocab_size() && !tokenizer.is_special(id); };
  return std::all_of(tokens.ids.begin(), tokens.ids.end(), is_content) && tokenizer.decode(tokens.ids) == text;
}

namespace {

constexpr std::string_view assistant = "assistant", recipient = "to=", functions = "functions.", blank_line = "\n\n";
constexpr size_t longest_head = 4096;  // bytes; a head that never ends is cut

// "commentary to=functions.f json" -> "commentary"
std::string_view first_word(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find(' ', begin) - begin);
}

// The word behind "to=" in a head; empty where there is none.
std::string_view recipient_in(std::string_view head) {
  const size_t at = head.find(recipient);
  return at == std::string_view::npos ? std::string_view() : first_word(head.substr(at + recipient.size()));
}

bool marks_call_of_gemma(std::string_view spelling) {
  return spelling == "<|tool_call>" || spelling == "<tool_call|>" || spelling == "<|\"|>";
}

bool has_controls(const Tokenizer& tokenizer, std::initializer_list<std::string_view> spellings) {
  return std::ranges::all_of(spellings, [&](std::string_view spelling) {
    const auto id = tokenizer.find_special(spelling);
    return id && tokenizer.is_special(*id);
  });
}

}  // namespace

bool ReplyChannels::known_to(const Tokenizer& tokenizer) {
  return has_calls(tokenizer) || has_controls(tokenizer, {"<|turn>", "<|channel>", "<channel|>"});
}

bool ReplyChannels::has_calls(const Tokenizer& tokenizer) {
  return has_controls(tokenizer, {"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>"});
}

bool ReplyChannels::begin(std::span<const uint32_t> prompt, const PieceOf& piece) {
  const auto is = [&](uint32_t id, std::string_view spelling) {
    const Piece p = piece(id);
    return p.control && p.bytes == spelling;
  };
  const auto starts = [&](uint32_t id) { return is(id, "<|start|>") || is(id, "<|turn>"); };
  const auto last = std::find_if(prompt.rbegin(), prompt.rend(), starts);
  if (last == prompt.rend()) return false;
  Shown ignored;
  for (auto id = last.base() - 1; id != prompt.end(); ++id) {
    const Piece p = piece(*id);
    if (p.control) {
      control(p.bytes, ignored);
    } else if (in_head_) {
      text(p.bytes);
    }
  }
  answering_ = false;
  starts_ = true;
  shown_bytes_ = thought_bytes_ = 0;
  if (in_head_ || kind_ != Kind::call) calls_.clear();
  return std::any_of(prompt.begin(), prompt.end(),
                     [&](uint32_t id) { return is(id, "<|message|>") || is(id, "<|turn>"); });
}

bool ReplyChannels::control(std::string_view spelling, Shown& shown) {
  if (spelling == "<|channel>" || spelling == "<channel|>") {
    const bool ends = !in_head_;
    in_head_ = has_channel_ = head_is_line_ = spelling == "<|channel>";
    channel_.clear();
    kind_ = Kind::answer;
    starts_ = true;
    return ends;
  }
  if (marks_call_of_gemma(spelling)) {
    // A call ends the thinking, whether its channel was closed or not.
    const bool ends = spelling == "<|tool_call>" && (in_head_ || kind_ == Kind::thought);
    if (ends) {
      in_head_ = has_channel_ = head_is_line_ = false;
      kind_ = Kind::answer;
      starts_ = true;
    }
    shown = text(spelling);
    return ends;
  }
  if (spelling == "<|channel|>") {
    const bool ends = !in_head_;
    if (ends) role_.clear();
    in_head_ = has_channel_ = true;
    channel_.clear();
    return ends;
  }
  if (spelling == "<|constrain|>") {
    if (in_head_) (has_channel_ ? channel_ : role_) += ' ';
    return false;
  }
  if (spelling == "<|message|>") {
    const bool ends = !in_head_;
    if (in_head_) open_message();
    return ends;
  }
  const bool starts = spelling == "<|start|>";
  if (!starts && spelling != "<|end|>" && spelling != "<|return|>" && spelling != "<|call|>") return false;
  // A model may leave out the head of its answer.
  if (in_head_ && !has_channel_ && !starts) {
    std::string_view rest = role_;
    if (rest.starts_with(assistant)) rest.remove_prefix(assistant.size());
    const bool is_head = first_word(rest).starts_with(recipient);
    const std::string answer(is_head ? std::string_view() : rest);
    in_head_ = false;
    kind_ = Kind::answer;
    starts_ = true;
    shown = add(answer);
  }
  in_head_ = starts;
  has_channel_ = false;
  role_.clear();
  channel_.clear();
  kind_ = Kind::answer;
  starts_ = true;
  return true;
}

void ReplyChannels::open_message() {
  in_head_ = false;
  starts_ = true;
  const std::string_view name = first_word(channel_);
  std::string_view to = recipient_in(channel_);
  if (to.empty()) to = recipient_in(role_);
  if (has_channel_ ? name == "final" : role_.empty() || first_word(role_) == assistant) {
    kind_ = !has_channel_ && !to.empty() ? Kind::call : Kind::answer;
  } else {
    kind_ = to.empty() ? Kind::thought : Kind::call;
  }
  if (kind_ != Kind::call) return;
  if (to.starts_with(functions)) to.remove_prefix(functions.size());
  calls_.push_back({std::string(to), ""});
}

ReplyChannels::Shown ReplyChannels::text(std::string_view characters) {
  if (!in_head_) return add(characters);
  if (head_is_line_) {
    const size_t end = characters.find('\n');
    if (end == std::string_view::npos) return {};
    in_head_ = has_channel_ = head_is_line_ = false;
    kind_ = Kind::thought;
    return add(characters.substr(end + 1));
  }
  std::string& part = has_channel_ ? channel_ : role_;
  part.append(characters.substr(0, longest_head - std::min(longest_head, part.size())));
  return {};
}

ReplyChannels::Shown ReplyChannels::add(std::string_view characters) {
  if (characters.empty()) return {};
  if (kind_ == Kind::call && !calls_.empty()) calls_.back().arguments += characters;
  if (kind_ != Kind::answer && answering_) return {};  // the answer is shown already, and a text only grows at its end
  Shown shown;
  if (starts_ && shown_bytes_ > 0) shown.lead = blank_line;
  if (kind_ == Kind::answer && !answering_) {
    answering_ = true;
    thought_bytes_ = shown_bytes_ + static_cast<uint32_t>(shown.lead.size());
  }
  if (starts_ && kind_ == Kind::call) shown.lead += calls_.back().name + ": ";
  starts_ = false;
  shown.text = characters;
  shown_bytes_ += static_cast<uint32_t>(shown.lead.size() + shown.text.size());
  return shown;
}

namespace {

// Length of the longest end of text that is the beginning of stop, the whole of stop excluded.
size_t begun(std::string_view text, std::string_view stop) {
  for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (text.ends_with(stop.substr(0, n))) return n;
  }
  return 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopStrings::push(std::string_view text) {
  if (stopped_) return {};
  held_.append(text);
  size_t stop_at = std::string::npos;
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    if (const size_t at = held_.find(stop); at < stop_at) {
      stop_at = at;
      met_ = stop;
    }
    keep = std::max(keep, begun(held_, stop));
  }
  if (stop_at != std::string::npos) {
    stopped_ = true;
    return std::exchange(held_, {}).substr(0, stop_at);
  }
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopStrings::finish() {
  return std::exchange(held_, {});
}

}  // namespace canopy
