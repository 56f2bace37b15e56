#pragma once
// Reader of a recorded trace; needs no device, model or tokenizer.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/mapped_file.h"
#include "engine/speculation/round_record.h"
#include "engine/speculation/speculation_state.h"
#include "engine/trace/trace_format.h"
#include "engine/trace/trace_records.h"

namespace canopy {

struct TraceReply {
  TraceReplyBegin begin;
  std::optional<TracePrefill> prefill;    // none where recording ended before
  std::optional<TraceReplyEnd> end;       // likewise
  std::optional<TraceDrafting> drafting;  // none in a trace of version 1.0
  std::optional<TraceDense> dense;        // where drafts were made behind every root
  size_t first_round = 0;                 // in the whole trace
  size_t rounds = 0;
};

class TraceReader {
 public:
  /// Opens a trace and checks every record's checksum. A file that is cut off or damaged opens up to its last whole
  /// record, and notice() says so. Throws bad_input naming the path when the file is not a trace, has a newer major
  /// version, or has no whole header.
  static TraceReader open(const std::filesystem::path& path);

  const TraceHeader& header() const { return header_; }
  const std::vector<TraceReply>& replies() const { return replies_; }

  /// Rounds of all replies.
  size_t rounds() const { return rounds_.size(); }
  /// The reply that a round belongs to; the round must exist.
  size_t reply_of(size_t round) const { return rounds_[round].reply; }

  /// Reads one round. Throws bad_input when there is no such round, when its bytes changed since open(), and when the
  /// record contradicts itself.
  RoundRecord round(size_t index) const;

  /// How many roots of a reply have a draft.
  size_t drafts(size_t reply) const { return drafts_[reply].size(); }
  /// Whether the root behind so many committed positions of a reply has one.
  bool has_draft(size_t reply, uint32_t committed) const { return drafts_[reply].contains(committed); }
  /// Reads it; null where there is none. Throws bad_input as round().
  std::shared_ptr<const KeptDraft> draft(size_t reply, uint32_t committed) const;

  /// The text of a token; null where the trace has none.
  const trace::Piece* piece(uint32_t token) const;

  /// The texts of all tokens that it has.
  const std::unordered_map<uint32_t, trace::Piece>& pieces() const { return pieces_; }
  const std::filesystem::path& path() const { return file_.path(); }

  /// One sentence about damage in the file; empty for an intact file.
  const std::string& notice() const { return notice_; }
  /// Records of kinds that a later version added.
  uint64_t unknown_records() const { return unknown_; }
  /// Bytes that hold whole records.
  uint64_t whole_bytes() const { return whole_bytes_; }

 private:
  struct Place {
    uint64_t offset = 0;
    uint32_t reply = 0;
  };

  TraceReader() = default;
  void index();
  void take(const trace::Record& record, uint64_t offset);
  void take_pieces(const trace::Record& record);
  void take_draft(const trace::Record& record, uint64_t offset);
  void take_dense(const trace::Record& record);
  TraceReply& open_reply();

  MappedFile file_;
  TraceHeader header_;
  std::vector<TraceReply> replies_;
  std::vector<Place> rounds_;
  std::vector<std::unordered_map<uint32_t, uint64_t>> drafts_;  // [replies] offsets, by committed positions
  std::shared_ptr<const CostTable> costs_;                      // of the last drafting record that had some
  std::unordered_map<uint32_t, trace::Piece> pieces_;           // bytes lie in the mapped file
  uint64_t unknown_ = 0;
  uint64_t whole_bytes_ = 0;
  std::string notice_;
};

}  // namespace canopy
