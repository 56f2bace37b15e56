#pragma once
// The rounds of the running engine, collected from its events. Memory is bounded: the oldest trees move to a file.

#include <deque>
#include <span>
#include <vector>

#include "app/rounds/live_rounds.h"
#include "app/rounds/recent_rounds.h"
#include "app/rounds/round_log.h"
#include "app/rounds/round_spill.h"
#include "engine/trace/token_texts.h"
#include "engine/trace/trace_reader.h"

namespace canopy::app {

/// Bytes of memory for the trees of live rounds; beyond it the oldest trees go to the file.
inline constexpr size_t kRoundMemory = size_t{256} << 20;

class LiveLog final : public RoundLog {
 public:
  explicit LiveLog(size_t memory = kRoundMemory, RoundSpill spill = RoundSpill())
      : memory_(memory), spill_(std::move(spill)) {}

  /// Whether rounds of this model can be added to this log: the log is empty, or it has rounds of the same model. The
  /// token ids of another model would mean other texts.
  bool fits(const ModelReady& model) const { return model_.empty() || model_ == model.file_name; }

  /// Adds the rounds of an earlier message, read from its trace. `ids` are those of the replies that it was written in;
  /// the trace has the first or more of them. Call before any live round is added. False where they are of another
  /// model than those in the log, and after live rounds. Throws bad_input for a round whose values contradict each
  /// other; the log is unchanged then.
  bool restore(std::span<const uint64_t> ids, double ar_tokens_per_second, std::shared_ptr<const TraceReader> trace);
  /// Whether all its rounds were restored, and there is at least one.
  bool only_restored() const { return restored_ > 0 && restored_ == rounds(); }

  /// Model, drafter and device of the rounds, for a trace of them.
  const TraceHeader& header() const { return header_; }

  /// Call when a reply is requested, for this message of the chat (0: it has the reply's id). The reply gets its place
  /// in the log with its first event, not now.
  void expect(const Generate& request, uint64_t message = 0);
  void take(const Event& event);

  std::shared_ptr<const RoundRecord> round(size_t index) const override;
  std::optional<trace::Piece> piece(uint32_t token) const override;
  bool is_live() const override { return true; }
  std::string origin() const override { return origin_; }

  /// `count` rounds from `first` on, which must exist, for another thread: nothing is read or copied but pointers.
  LiveRounds share(size_t first, size_t count) const;

  /// Bytes that the trees in memory take.
  size_t memory_used() const { return used_; }

 private:
  /// The reply with this id; its first event adds it to the log. Null for a reply that was not announced with expect(),
  /// and for one after which a newer reply has begun: the rounds of each reply must stay together.
  ReplySummary* reply(uint64_t id);
  LiveRounds::InTrace restored(size_t index) const;
  void add(std::shared_ptr<const RoundRecord> record);
  void add_abridged(const RoundRecord& record);
  void keep_within_memory();

  size_t memory_;
  RoundSpill spill_;
  std::vector<ReplySummary> expected_;                   // replies requested and not begun yet
  std::deque<std::shared_ptr<const RoundRecord>> kept_;  // the newest rounds; null for an abridged one
  size_t used_ = 0;
  // One for each load of the model; only the last is used, the others stay alive for pieces handed out.
  std::vector<std::shared_ptr<const TokenTexts>> texts_;
  std::string model_, origin_;
  TraceHeader header_;

  // Rounds read from traces; they come before all others.
  struct Restored {
    size_t first_round = 0;
    std::shared_ptr<const TraceReader> trace;
  };
  std::vector<Restored> traces_;
  size_t restored_ = 0;  // rounds
  mutable RecentRounds recent_;
};

/// Bytes of memory that a record takes.
size_t memory_of(const RoundRecord& record);

}  // namespace canopy::app
