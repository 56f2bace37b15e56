#include "engine/session/reply.h"

namespace canopy {

std::string Reply::thinking() const {
  if (!thought.told_apart) return {};
  std::string thinking = text.substr(0, thought.bytes);
  thinking.erase(thinking.find_last_not_of(" \t\r\n") + 1);
  return thinking;
}

std::string advice_on_room(uint32_t context, uint32_t model_context) {
  if (context >= model_context)
    return ", all that the model was made for. Use fewer tokens, or begin a new conversation.";
  return ". Use fewer tokens, or load the model with a longer context: it was made for " +
         std::to_string(model_context) + ".";
}

double Reply::tokens_per_second() const {
  uint64_t emitted = 0;
  for (const RoundRecord& round : rounds) emitted += round.emitted.size();
  return decode_ms > 0 ? 1000.0 * static_cast<double>(emitted) / decode_ms : 0;
}

double Reply::tau() const {
  uint64_t emitted = 0;
  for (const RoundRecord& round : rounds) emitted += round.emitted.size();
  return rounds.empty() ? 0 : static_cast<double>(emitted) / static_cast<double>(rounds.size());
}

}  // namespace canopy
