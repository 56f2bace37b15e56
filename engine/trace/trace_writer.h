#pragma once
// Writer of traces. Each record is in the file when the call that wrote it returns, so a program that is killed loses
// only the round in progress.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

#include "engine/speculation/round_record.h"
#include "engine/speculation/speculation_state.h"
#include "engine/trace/trace_format.h"
#include "engine/trace/trace_records.h"

namespace canopy {

class Tokenizer;
class TraceReader;

/// The text of a token. The view must stay valid until the next call.
using TracePieces = std::function<trace::Piece(uint32_t token)>;

/// The texts of a tokenizer, which must outlive the returned function.
TracePieces trace_pieces(const Tokenizer& tokenizer);

/// Belongs to one thread.
///
///   TraceWriter trace(path, header, trace_pieces(tokenizer));
///   trace.begin({.mode = ..., .prompt = ids});     for each reply
///   trace.prefilled({.ms = ..., .first_token = id});
///   trace.drafting({...});                          where there is a drafter
///   trace.append(record);                           for each round
///   trace.end({.reason = ..., .reply_tokens = n});
///   trace.finish();                                 or the destructor
///
/// After construction, disk errors do not throw. When a record cannot be written or contradicts itself, recording
/// stops: problem() returns the reason from then on, it is logged once, and the file keeps all whole records before it.
class TraceWriter {
 public:
  /// Creates the file, or empties an earlier trace. Throws bad_input naming path and reason when it cannot be written,
  /// when another program records into it, and when it exists and is no trace. Machine paths are cut off the header's
  /// names. With `redact`, no text and no token id is written (redacted()).
  TraceWriter(const std::filesystem::path& path, TraceHeader header, TracePieces pieces, bool redact = false);
  /// Goes on with a whole trace, behind its last record; drafts alone may be added. Throws bad_input naming path and
  /// reason when it cannot be written, when another program records into it, and when its end is damaged.
  TraceWriter(const TraceReader& trace, TracePieces pieces);
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;
  ~TraceWriter();

  void begin(TraceReplyBegin begin);
  void prefilled(const TracePrefill& prefill);
  void drafting(const TraceDrafting& drafting);
  /// The round, with the draft that its record keeps, and without words of other chats (without_other_chats()).
  void append(const RoundRecord& record);
  /// A draft behind so many committed positions of a reply; nothing is written where the trace is redacted.
  void add_draft(uint32_t reply, uint32_t committed, const KeptDraft& draft);
  /// Behind the drafts of all roots of a reply.
  void add_dense(TraceDense dense);
  /// Replies that were begun here, or in the trace that this goes on with.
  uint32_t replies() const { return replies_; }
  void end(const TraceReplyEnd& end);

  /// Flushes the file to the disk and closes it. What is recorded afterwards is dropped.
  void finish();

  /// Why recording stopped, as a sentence; empty while all is well.
  const std::string& problem() const { return problem_; }
  uint64_t rounds() const { return rounds_; }
  uint64_t bytes() const { return size_; }

 private:
  void open(int flags);
  void start(TraceHeader header);
  void learn(uint32_t token);
  void add_new_pieces();
  template <class F>
  bool record(F&& make);
  void keep(uint32_t reply, uint32_t committed, const KeptDraft& draft);
  void write_pending();
  void stop(const std::string& reason);
  void close();

  std::filesystem::path path_;
  TracePieces pieces_;
  bool redact_;
  int descriptor_ = -1;
  uint64_t size_ = 0;  // of whole records
  uint64_t rounds_ = 0;
  uint32_t replies_ = 0;
  std::shared_ptr<const CostTable> costs_;  // that the file has
  std::unordered_set<uint32_t> known_;      // tokens whose text is in the file
  std::string new_pieces_;                  // of the record being made
  uint32_t new_count_ = 0;
  std::string drafts_;   // records of drafts that come before the payload's
  std::string payload_;  // kept for its memory
  std::string pending_;
  std::string problem_;
};

}  // namespace canopy
