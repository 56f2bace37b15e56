#pragma once
// The rounds that the window can show, of a running engine or of a trace. Panels read it; only app/rounds writes it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/client/engine_client.h"
#include "engine/trace/round_record.h"
#include "engine/trace/round_statistics.h"
#include "engine/trace/trace_format.h"

namespace canopy::app {

/// What charts and the timeline need of a round. Kept of all of them, whatever happens to their trees.
struct RoundSummary {
  uint32_t reply = 0;  // its place in RoundLog::replies()
  uint32_t context = 0;
  DecodeMode shape = DecodeMode::ar;
  uint32_t width = 1;
  uint32_t accepted = 0;  // drafted tokens in the text
  uint32_t emitted = 0;
  bool cut = false;  // the text ended inside the tree: no one knows how far it was right
  RoundTimes ms;
  RoundTimes predicted;
};

RoundSummary summarize(const RoundRecord& record, uint32_t reply);

struct ReplySummary {
  uint64_t id = 0;  // of a live reply: Generate::reply_id, which is the chat message's
  DecodeMode mode = DecodeMode::ar;
  uint32_t budget = 0;
  size_t first_round = 0;  // in the whole log
  size_t rounds = 0;
  std::optional<uint32_t> first_token;  // the root of its first round; it belongs to the prompt's pass
  std::optional<FinishReason> reason;   // once it ended
  double ar_tokens_per_second = 0;      // measured; 0 where it was not
  std::string prompt_text, text;        // of a trace; empty where it has none, and of live replies, whose chat has it
};

class RoundLog {
 public:
  virtual ~RoundLog() = default;

  size_t rounds() const { return summaries_.size(); }
  const RoundSummary& summary(size_t round) const { return summaries_[round]; }
  const std::vector<ReplySummary>& replies() const { return replies_; }
  /// What all the rounds that are whole come to, added in their order: a live run and its trace give the same.
  const RoundStatistics& statistics() const { return statistics_; }

  /// A round, whole. Null where its tree was let go for memory.
  virtual std::shared_ptr<const RoundRecord> round(size_t index) const = 0;
  /// The bytes of a token; none where nobody knows them. They stay valid as long as the log.
  virtual std::optional<trace::Piece> piece(uint32_t token) const = 0;
  /// Whether more may come.
  virtual bool is_live() const = 0;
  /// Device, model, drafter: what a caption says about where the rounds come from.
  virtual std::string origin() const = 0;

 protected:
  /// Counts a round to the last reply.
  void count(const RoundRecord& record);
  /// One that lost its nodes (RoundFinished::abridged): the statistics, which follow the tree, leave it out.
  void count_abridged(const RoundRecord& record);

  std::vector<RoundSummary> summaries_;
  std::vector<ReplySummary> replies_;
  RoundStatistics statistics_;
};

}  // namespace canopy::app
