#pragma once
// The rounds of the running engine, collected from its events: in memory, the oldest trees in a file, those of a saved
// chat in traces beside it.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "app/state/round_log.h"
#include "engine/speculation/round_record.h"
#include "engine/trace/trace_format.h"
#include "engine/trace/trace_reader.h"

namespace canopy::app {

// A file for rounds that left memory. It has no name in the folder, so the system removes it when the program ends,
// even if the program is killed.

/// A round in the file. Stays readable as long as it lives, by any thread, also when the spill goes on or has ended.
class SpilledRound {
 public:
  /// Null where the round cannot be read.
  std::shared_ptr<const RoundRecord> read() const;

 private:
  friend class RoundSpill;
  std::shared_ptr<const int> file_;  // its descriptor; null: the round was skipped or dropped
  uint64_t begin_ = 0, end_ = 0;     // offsets
};

class RoundSpill {
 public:
  /// folder: where the file is made when the first round is stored; empty: the user's cache folder.
  explicit RoundSpill(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}
  RoundSpill(RoundSpill&& other) noexcept = default;
  RoundSpill& operator=(RoundSpill&&) = delete;

  /// Stores the next round. If the disk is full or cannot be written, this round and all later ones are dropped.
  void append(const RoundRecord& record);
  /// Takes the place of a round that has no record, so that the numbers of later rounds stay right.
  void skip();
  /// The round that was appended as number `index`, from 0; null where it was skipped or dropped, or cannot be read.
  std::shared_ptr<const RoundRecord> read(size_t index) const;
  /// The same without reading it yet.
  SpilledRound find(size_t index) const;

 private:
  bool open();

  std::filesystem::path folder_;
  std::shared_ptr<const int> file_;  // its descriptor, closed with the last owner
  bool failed_ = false;
  std::vector<uint64_t> ends_;  // for each stored round: the offset in the file where it ends
  std::string bytes_;           // buffer, kept to be reused
  mutable RecentRounds recent_;
};

// Rounds of the running engine as they stand at a moment, for a thread beside the window.

/// Shares the log's memory and files, so that making it (LiveLog::share) takes no time to speak of; what left memory is
/// read when it is asked for. Any thread may read it, also when the log goes on or has ended.
class LiveRounds {
 public:
  size_t rounds() const { return places_.size(); }
  /// Null where its tree was dropped to save memory, or cannot be read any more. As others may see it (to_share()).
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
  std::shared_ptr<const RoundRecord> read(size_t index) const;

  std::vector<Place> places_;
  std::vector<uint32_t> reply_;        // of each round: its reply in the log
  std::vector<ReplySummary> replies_;  // those of the rounds
  std::shared_ptr<const TokenTexts> texts_;
  std::vector<std::shared_ptr<const TraceReader>> traces_;  // the oldest first; asked where there are no texts
  std::string origin_;
};

// The rounds of the running engine, collected from its events. Memory is bounded: the oldest trees move to a file.

/// Bytes of memory for the trees of live rounds; beyond it the oldest trees go to the file.
inline constexpr size_t kRoundMemory = size_t{256} << 20;
/// Replies, the newest, whose prompts' ids are kept: what-ifs look in these texts for guesses again.
inline constexpr size_t kPromptsKept = 16;

class LiveLog final : public RoundLog {
 public:
  explicit LiveLog(size_t memory = kRoundMemory, RoundSpill spill = RoundSpill())
      : memory_(memory), spill_(std::move(spill)) {}

  /// Whether rounds of this model can be added to this log: the log is empty, or it has rounds of the same model. The
  /// token ids of another model would mean other texts.
  bool fits(const ModelReady& model) const { return model_.empty() || model_ == model.file_name; }

  /// Adds the rounds of an earlier message, read from its trace. `ids` are those of the replies that it was written in;
  /// the trace has the first or more of them; `ended` has what was measured beside them. Call before any live round is
  /// added. False where they are of another model than those in the log, and after live rounds. Throws bad_input for a
  /// round whose values contradict each other; the log is unchanged then.
  bool restore(std::span<const uint64_t> ids, const ReplyFinished& ended, std::shared_ptr<const TraceReader> trace);
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

// The rounds of a chat's replies on the disk: a folder beside the chat's file with one trace for each reply, so that a
// damaged file costs the rounds of one reply and nothing has to be appended to an old trace.

/// Bytes on the disk for the rounds of one chat. Beyond it the traces of the oldest replies are removed first; the
/// newest one stays whatever its size.
inline constexpr uint64_t kRoundsOfChat = uint64_t{256} << 20;

/// The trace of a reply in a chat's folder of rounds. `number` is the reply's place in the chat's file, from 0.
std::filesystem::path reply_trace(const std::filesystem::path& folder, uint32_t number);

/// A reply of the log, and its end as the chat has it.
struct ReplyToKeep {
  const ReplySummary* reply = nullptr;
  TraceReplyEnd end;
};

/// Writes the rounds of a message: of its reply in the log, or of the several that it was written in (Continuation).
/// Makes the folder; an earlier trace is replaced at the end, so that who reads it may go on. Returns why it could not
/// be written, as a sentence; empty: it was, or the log does not have all rounds of the message any more.
std::string write_reply_trace(const std::filesystem::path& folder, uint32_t number, const LiveLog& log,
                              std::span<const ReplyToKeep> parts);

/// Removes the traces of the oldest replies until the folder takes at most `bytes`; the newest stays.
void limit_reply_traces(const std::filesystem::path& folder, uint64_t bytes = kRoundsOfChat);

/// Opens the trace of a message of that text, written in so many parts; the trace has the first or more of them. Null
/// where there is none. Throws bad_input naming the file where it cannot be read or is of another reply.
std::shared_ptr<const TraceReader> open_reply_trace(const std::filesystem::path& folder, uint32_t number,
                                                    const std::string& text, size_t parts = 1);

}  // namespace canopy::app
