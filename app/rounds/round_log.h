#pragma once
// The list of rounds that the window shows, of the running engine or of a trace. Panels only read it; only app/rounds
// adds to it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/rounds/plain_rounds.h"
#include "engine/client/engine_client.h"
#include "engine/trace/round_record.h"
#include "engine/trace/round_statistics.h"
#include "engine/trace/trace_format.h"

namespace canopy::app {

/// What charts and the timeline need of a round. Kept for every round, also when its tree has left memory.
struct RoundSummary {
  uint32_t reply = 0;  // index in RoundLog::replies()
  uint32_t context = 0;
  DecodeMode shape = DecodeMode::ar;
  uint32_t width = 1;
  uint32_t accepted = 0;  // drafted tokens that became text
  uint32_t emitted = 0;
  float distinct_experts = 0;  // of a layer, that its pass went through; 0: the model has none
  bool cut = false;  // the text ended inside the tree, so it is not known how many more drafted tokens were right
  RoundTimes ms;
  RoundTimes predicted;
};

RoundSummary summarize(const RoundRecord& record, uint32_t reply);

struct ReplySummary {
  uint64_t id = 0;  // for a live reply Generate::reply_id
  uint64_t message =
      0;  // for a live reply the id of the chat's message; that has several replies where it was continued
  DecodeMode mode = DecodeMode::ar;
  uint32_t budget = 0;
  size_t first_round = 0;  // index in the log
  size_t rounds = 0;
  std::optional<uint32_t> first_token;  // the root of its first round; computed by the pass over the prompt
  std::optional<FinishReason> reason;   // set once the reply has ended
  double ar_tokens_per_second = 0;      // measured speed of plain decoding; 0 where it was not measured
  std::string prompt_text, text;  // only for replies of a trace that has texts; for live replies the chat has them
};

class RoundLog {
 public:
  virtual ~RoundLog() = default;

  size_t rounds() const { return summaries_.size(); }
  const RoundSummary& summary(size_t round) const { return summaries_[round]; }
  const std::vector<ReplySummary>& replies() const { return replies_; }
  /// The first round of the reply that holds this one, as the user sees it: with all that it goes on from.
  size_t first_of_reply(size_t round) const;
  /// The sums over all rounds that have a tree, added in their order, so that a live run and its trace give the same
  /// figures.
  const RoundStatistics& statistics() const { return statistics_; }
  /// The newest rounds without a draft.
  const PlainRounds& plain() const { return plain_; }

  /// The whole round. Null where its tree was dropped to save memory.
  virtual std::shared_ptr<const RoundRecord> round(size_t index) const = 0;
  /// The bytes of a token; nullopt where they are not known. The bytes stay valid as long as the log.
  virtual std::optional<trace::Piece> piece(uint32_t token) const = 0;
  /// Whether more rounds may come.
  virtual bool is_live() const = 0;
  /// Where its times come from if they were not recorded: "predicted", "measured elsewhere"; else empty.
  virtual std::string_view times() const { return {}; }
  /// Model, drafter and device that the rounds come from, for a caption.
  virtual std::string origin() const = 0;
  /// Whether a processor computed them; of recordings alone.
  virtual bool on_processor() const { return false; }

 protected:
  /// Adds a round to the last reply.
  void count(const RoundRecord& record);
  /// Adds a round without its nodes (RoundFinished::abridged). The statistics leave it out, as they are computed from
  /// the tree.
  void count_abridged(const RoundRecord& record);

  std::vector<RoundSummary> summaries_;
  std::vector<ReplySummary> replies_;
  RoundStatistics statistics_;
  PlainRounds plain_;
};

}  // namespace canopy::app
