#include "engine/session/reply_text.h"

namespace canopy {

std::string ReplyText::push(uint32_t id) {
  if (tokenizer_.is_special(id)) return {};
  std::string_view bytes = tokenizer_.token_bytes(id);
  if (at_start_ && tokenizer_.drops_leading_space() && bytes.starts_with(' ')) bytes.remove_prefix(1);
  at_start_ = false;
  const std::string characters = characters_.push(bytes);
  completed_ += characters.size();
  std::string shown = stops_.push(characters);
  text_ += shown;
  return shown;
}

std::string ReplyText::finish() {
  std::string shown = stops_.push(characters_.finish());
  shown += stops_.finish();
  text_ += shown;
  return shown;
}

}  // namespace canopy
