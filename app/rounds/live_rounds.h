#pragma once
// Rounds of the running engine as they stand at a moment, for a thread beside the window.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/rounds/round_log.h"
#include "app/rounds/round_spill.h"
#include "engine/trace/token_texts.h"
#include "engine/trace/trace_reader.h"

namespace canopy::app {

/// Shares the log's memory and files, so that making it (LiveLog::share) takes no time to speak of; what left memory is
/// read when it is asked for. Any thread may read it, also when the log goes on or has ended.
class LiveRounds {
 public:
  size_t rounds() const { return places_.size(); }
  /// Null where its tree was dropped to save memory, or cannot be read any more.
  std::shared_ptr<const RoundRecord> round(size_t index) const;
  /// As RoundLog::piece(); the bytes stay valid as long as this.
  std::optional<trace::Piece> piece(uint32_t token) const;
  /// The reply that a round belongs to, and its number in the log. first_round and rounds are those of the log.
  const ReplySummary& reply_of(size_t index) const { return replies_[reply_[index] - reply_[0]]; }
  size_t number_of_reply(size_t index) const { return reply_[index]; }
  const std::string& origin() const { return origin_; }

 private:
  friend class LiveLog;
  struct InTrace {
    std::shared_ptr<const TraceReader> trace;
    size_t round = 0;
  };
  using Place = std::variant<std::shared_ptr<const RoundRecord>, SpilledRound, InTrace>;

  std::vector<Place> places_;
  std::vector<uint32_t> reply_;        // of each round: its reply in the log
  std::vector<ReplySummary> replies_;  // those of the rounds
  std::shared_ptr<const TokenTexts> texts_;
  std::vector<std::shared_ptr<const TraceReader>> traces_;  // the oldest first; asked where there are no texts
  std::string origin_;
};

}  // namespace canopy::app
