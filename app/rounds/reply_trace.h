#pragma once
// The rounds of a chat's replies on the disk: a folder beside the chat's file with one trace for each reply, so that a
// damaged file costs the rounds of one reply and nothing has to be appended to an old trace.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "app/rounds/live_log.h"
#include "engine/trace/trace_reader.h"

namespace canopy::app {

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
