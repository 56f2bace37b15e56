#include "app/rounds/live_rounds.h"

#include "engine/base/error.h"

namespace canopy::app {

std::shared_ptr<const RoundRecord> LiveRounds::round(size_t index) const {
  if (index >= places_.size()) return nullptr;
  const Place& place = places_[index];
  if (const auto* record = std::get_if<std::shared_ptr<const RoundRecord>>(&place)) return *record;
  if (const auto* spilled = std::get_if<SpilledRound>(&place)) return spilled->read();
  const InTrace& in = std::get<InTrace>(place);
  try {
    return std::make_shared<const RoundRecord>(in.trace->round(in.round));
  } catch (const Error&) {  // the file was changed after it was opened
    return nullptr;
  }
}

std::optional<trace::Piece> LiveRounds::piece(uint32_t token) const {
  if (texts_) return texts_->find(token);
  for (auto each = traces_.rbegin(); each != traces_.rend(); ++each)
    if (const trace::Piece* piece = (*each)->piece(token)) return *piece;
  return std::nullopt;
}

}  // namespace canopy::app
