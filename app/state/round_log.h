#pragma once
// The list of rounds that the window shows, and that of a recorded trace, which reads each round when it is shown and
// can be written as JSON.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/session/engine_client.h"
#include "engine/speculation/round_record.h"
#include "engine/trace/round_statistics.h"
#include "engine/trace/trace_format.h"
#include "engine/trace/trace_reader.h"

namespace canopy::app {

// The speed of plain decoding as rounds without a draft measured it. Pure.

/// Mean speed of some plain rounds.
struct PlainSpeed {
  double tokens_per_second = 0;
  uint64_t rounds = 0;
  int64_t newest_ms = 0;  // when the newest was measured; 0 where that is not known
};

/// The newest plain rounds, from which the speed at a context is taken. Memory is bounded.
class PlainRounds {
 public:
  static constexpr size_t kMost = 4096;  // rounds that are kept
  static constexpr size_t kEnough = 8;   // least number of rounds for a speed
  static constexpr size_t kMean = 64;    // rounds that a speed is the mean of, at most

  /// Counts the round if it is plain: without a draft, so that nothing but the target's pass is in its time. at_ms:
  /// when it ended, since 1970; 0 where that is not known.
  void add(const RoundRecord& round, int64_t at_ms);
  void clear() { rounds_.clear(); }

  /// The speed of the newest rounds whose context was at most twice as long or as short: a token costs more the more
  /// text is before it. nullopt with fewer than kEnough of them.
  std::optional<PlainSpeed> near(uint32_t context) const;

 private:
  struct Round {
    uint32_t context = 0;
    double ms = 0;
    int64_t at_ms = 0;
  };
  std::deque<Round> rounds_;  // the newest last
};

// A small cache of the rounds that were read last: panels ask for the same round in every frame.

class RecentRounds {
 public:
  using Round = std::shared_ptr<const RoundRecord>;

  /// The round of this index, from the cache or else from read(), which returns a Round. A null result is not cached.
  template <class Read>
  Round get(size_t index, Read&& read) {
    const auto end = rounds_.begin() + static_cast<std::ptrdiff_t>(size_);
    const auto found = std::find_if(rounds_.begin(), end, [&](const auto& each) { return each.first == index; });
    if (found != end) {
      std::rotate(rounds_.begin(), found, found + 1);
      return rounds_.front().second;
    }
    Round round = read();
    if (!round) return nullptr;
    size_ = std::min(size_ + 1, rounds_.size());
    std::move_backward(rounds_.begin(), rounds_.begin() + static_cast<std::ptrdiff_t>(size_) - 1,
                       rounds_.begin() + static_cast<std::ptrdiff_t>(size_));
    rounds_.front() = {index, round};
    return round;
  }

 private:
  std::array<std::pair<size_t, Round>, 16> rounds_;
  size_t size_ = 0;
};

// The list of rounds that the window shows, of the running engine or of a trace. Panels only read it.

/// The record, or a copy without words of other chats where it has any (without_other_chats()); null for none.
std::shared_ptr<const RoundRecord> to_share(std::shared_ptr<const RoundRecord> record);

/// What charts and the timeline need of a round. Kept for every round, also when its tree has left memory.
struct RoundSummary {
  uint32_t reply = 0;  // index in RoundLog::replies()
  uint32_t context = 0;
  DecodeMode shape = DecodeMode::ar;
  uint32_t width = 1;
  uint32_t accepted = 0;  // drafted tokens that became text
  uint32_t emitted = 0;
  uint32_t match = 0;          // tokens of the text's end that were found in it before
  DraftSources sources = 0;    // who guessed (guessed_by)
  float distinct_experts = 0;  // of a layer, that its pass went through; 0: the model has none
  bool cut = false;  // the text ended inside the tree, so it is not known how many more drafted tokens were right
  RoundTimes ms;
  RoundTimes predicted;
};

RoundSummary summarize(const RoundRecord& record, uint32_t reply);

struct ReplySummary {
  uint64_t id = 0;       // for a live reply Generate::reply_id
  uint64_t message = 0;  // for a live reply the id of the chat's message; that has several replies once continued
  DecodeMode mode = DecodeMode::ar;
  uint32_t budget = 0;
  size_t first_round = 0;  // index in the log
  size_t rounds = 0;
  std::optional<uint32_t> first_token;  // the root of its first round; computed by the pass over the prompt
  std::optional<FinishReason> reason;   // set once the reply has ended
  double ar_tokens_per_second = 0;      // measured speed of plain decoding; 0 where it was not measured
  PlainBeside plain;                    // measured in the minutes of the reply
  std::shared_ptr<const std::vector<uint32_t>> before;  // ids that first_token follows; null: not known
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
  /// The same for what others will see: without wrong guesses that are words of other chats.
  std::shared_ptr<const RoundRecord> round_to_share(size_t index) const;
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

// The rounds of a recorded trace, each read from the file when it is shown.

class TraceLog final : public RoundLog {
 public:
  /// Throws bad_input naming the path for a file that TraceReader::open refuses, for a trace without a whole round, and
  /// for a round whose values contradict each other.
  explicit TraceLog(const std::filesystem::path& path);

  std::shared_ptr<const RoundRecord> round(size_t index) const override;
  std::optional<trace::Piece> piece(uint32_t token) const override;
  bool is_live() const override { return false; }
  std::string_view times() const override { return reader_.header().times; }
  std::string origin() const override;
  bool on_processor() const override;

  const TraceReader& reader() const { return reader_; }

 private:
  void take(const TraceReply& reply);

  TraceReader reader_;
  mutable RecentRounds recent_;
};

/// Whether the file has the ending of a trace or begins with its magic bytes. False for a file that cannot be read.
bool looks_like_trace(const std::filesystem::path& path);

// Writes a trace as JSON, with the values that the window would show. Needs no device and no model.

/// Writes one JSON object: {"trace", "notice", "header", "rounds", "replies", "statistics"}. With `round`, counted from
/// 0 over all replies, it also writes that whole round under "round". Throws bad_input for a file that TraceLog refuses
/// and for a round that the trace does not have.
void dump_trace(const std::string& path, std::optional<uint64_t> round, std::ostream& out);

/// Throws bad_input, naming the allowed range, unless `round` < `rounds`.
void check_round(uint64_t round, size_t rounds);

}  // namespace canopy::app
