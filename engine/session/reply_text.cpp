#include "engine/session/reply_text.h"

#include <algorithm>
#include <utility>

namespace canopy {

ReplyText::ReplyText(const Tokenizer& tokenizer, std::vector<std::string> stop_strings,
                     std::span<const uint32_t> prompt)
    : tokenizer_(tokenizer), stops_(std::move(stop_strings)) {
  if (!ReplyChannels::known_to(tokenizer)) return;
  channels_.emplace();
  channels_->begin(prompt, [&](uint32_t id) {
    return ReplyChannels::Piece{tokenizer.token_bytes(id), tokenizer.is_special(id)};
  });
}

std::string ReplyText::push(uint32_t id) {
  if (tokenizer_.is_special(id)) {
    if (!channels_) return {};
    std::string shown = show(characters_.finish());  // it belongs to the text in front of the token
    ReplyChannels::Shown headless;
    if (channels_->control(tokenizer_.token_bytes(id), headless)) shown += end_message();
    return shown + show(headless);
  }
  std::string_view bytes = tokenizer_.token_bytes(id);
  if (at_start_ && tokenizer_.drops_leading_space() && bytes.starts_with(' ')) bytes.remove_prefix(1);
  at_start_ = false;
  return show(characters_.push(bytes));
}

std::string ReplyText::push_end(uint32_t id) {
  return channels_ && tokenizer_.is_special(id) ? push(id) : std::string();
}

std::string ReplyText::show(const std::string& characters) {
  return show(channels_ ? channels_->text(characters) : ReplyChannels::Shown{{}, characters});
}

/// A stop string is looked for in what the model wrote, not in what is put between its messages.
std::string ReplyText::show(const ReplyChannels::Shown& part) {
  if (stops_.stopped()) return {};
  completed_ += part.lead.size() + part.text.size();
  std::string shown = part.lead + stops_.push(part.text);
  text_ += shown;
  return shown;
}

/// No stop string reaches from one message into the next.
std::string ReplyText::end_message() {
  std::string shown = stops_.finish();
  text_ += shown;
  return shown;
}

std::string ReplyText::finish() {
  const std::string rest = show(characters_.finish());
  return rest + end_message();
}

ThoughtPart ReplyText::thought() const {
  if (!channels_) return {};
  ThoughtPart thought = channels_->thought();
  // Less is shown than came, where something is held back or a stop string was met.
  thought.bytes = std::min(thought.bytes, static_cast<uint32_t>(text_.size()));
  return thought;
}

}  // namespace canopy
