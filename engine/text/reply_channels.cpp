#include "engine/text/reply_channels.h"

#include <algorithm>
#include <array>

#include "engine/text/tokenizer.h"

namespace canopy {
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

}  // namespace

bool ReplyChannels::known_to(const Tokenizer& tokenizer) {
  constexpr std::array<std::string_view, 6> spellings = {"<|start|>", "<|channel|>", "<|message|>",
                                                         "<|end|>",   "<|return|>",  "<|call|>"};
  return std::ranges::all_of(spellings, [&](std::string_view spelling) {
    const auto id = tokenizer.find_special(spelling);
    return id && tokenizer.is_special(*id);
  });
}

bool ReplyChannels::begin(std::span<const uint32_t> prompt, const PieceOf& piece) {
  const auto is = [&](uint32_t id, std::string_view spelling) {
    const Piece p = piece(id);
    return p.control && p.bytes == spelling;
  };
  const auto last = std::find_if(prompt.rbegin(), prompt.rend(), [&](uint32_t id) { return is(id, "<|start|>"); });
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
  return std::any_of(prompt.begin(), prompt.end(), [&](uint32_t id) { return is(id, "<|message|>"); });
}

bool ReplyChannels::control(std::string_view spelling, Shown& shown) {
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

}  // namespace canopy
