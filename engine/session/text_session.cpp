#include "engine/session/text_session.h"

#include <algorithm>
#include <bit>

#include "engine/session/reply_writer.h"

namespace canopy {

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

TextSession::TextSession(Model& model, const TextModel& text, Drafter* drafter, SpeculationState* state)
    : model_(model), text_(text), drafter_(drafter), state_(state), sequence_(model) {
  constexpr uint32_t software_chunk = 32;
  const uint32_t widest = model.limits().max_width;
  prefill_chunk_ = std::bit_floor(model.device().info().is_software ? std::min(software_chunk, widest) : widest);
}

Reply TextSession::reply(std::span<const uint32_t> prompt, const ReplySettings& settings,
                         const ReplyCallbacks& callbacks) {
  return ReplyWriter({model_, text_, drafter_, state_, sequence_, prefill_chunk_}, prompt, settings, callbacks).write();
}

}  // namespace canopy
