#include "engine/session/reply_text.h"

namespace canopy {

std::string ReplyText::push(uint32_t id) {
  if (tokenizer_.is_special(id)) return {};
  std::string shown = stops_.push(characters_.push(tokenizer_.token_bytes(id)));
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
