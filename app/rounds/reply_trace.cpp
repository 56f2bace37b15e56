#include "app/rounds/reply_trace.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/trace/trace_writer.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

struct StoredTrace {
  uint32_t number = 0;
  uint64_t bytes = 0;
  fs::path path;
};

/// The traces of a folder, the oldest reply first. Files with other names are left out.
std::vector<StoredTrace> stored_traces(const fs::path& folder) {
  std::vector<StoredTrace> found;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    if (i->path().extension() != trace::extension) continue;
    const std::string stem = i->path().stem().string();
    StoredTrace each{0, 0, i->path()};
    const auto read = std::from_chars(stem.data(), stem.data() + stem.size(), each.number);
    std::error_code unread;
    each.bytes = i->file_size(unread);
    if (read.ec == std::errc() && read.ptr == stem.data() + stem.size() && !unread) found.push_back(std::move(each));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return found;
}

/// A reply whose first rounds were dropped, or came without their trees, would be another reply when read again.
bool has_all_rounds(const LiveLog& log, std::span<const ReplyToKeep> parts) {
  size_t rounds = 0;
  for (const ReplyToKeep& part : parts) {
    rounds += part.reply->rounds;
    for (size_t i = 0; i < part.reply->rounds; ++i)
      if (!log.round(part.reply->first_round + i)) return false;
  }
  return rounds > 0;
}

void write_part(TraceWriter& writer, uint32_t number, const LiveLog& log, const ReplyToKeep& part) {
  const ReplySummary& reply = *part.reply;
  TraceReplyBegin begin;
  begin.turn = number;
  begin.mode = reply.mode;
  begin.budget = reply.budget;
  writer.begin(std::move(begin));
  writer.prefilled({.first_token = reply.first_token});
  for (size_t i = 0; i < reply.rounds; ++i) writer.append(*log.round(reply.first_round + i));
  writer.end(part.end);
}

/// Whether a trace is of a message with this number, text and number of parts: it may lack the last of them.
bool is_of(const TraceReader& reader, uint32_t number, std::string_view text, size_t parts) {
  if (reader.replies().empty() || reader.replies().size() > parts) return false;
  for (const TraceReply& reply : reader.replies()) {
    if (!reply.end || reply.begin.turn != number || !text.starts_with(reply.end->text)) return false;
    text.remove_prefix(reply.end->text.size());
  }
  return true;
}

}  // namespace

fs::path reply_trace(const fs::path& folder, uint32_t number) {
  return folder / (std::to_string(number) + std::string(trace::extension));
}

std::string write_reply_trace(const fs::path& folder, uint32_t number, const LiveLog& log,
                              std::span<const ReplyToKeep> parts) {
  if (!has_all_rounds(log, parts)) return "";
  const fs::path path = reply_trace(folder, number);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return "The folder " + shown(folder) + " cannot be made: " + error.message() + ".";
  // The log may still read the trace that this one replaces.
  fs::path fresh = path;
  fresh += ".new";
  fs::remove(fresh, error);
  std::string problem;
  try {
    TraceWriter writer(fresh, log.header(), [&](uint32_t token) { return log.piece(token).value_or(trace::Piece{}); });
    for (const ReplyToKeep& part : parts) write_part(writer, number, log, part);
    writer.finish();
    problem = writer.problem();
  } catch (const Error& e) {
    problem = e.what();
  }
  if (problem.empty()) {
    fs::rename(fresh, path, error);
    if (!error) return "";
    problem = "The trace " + shown(path) + " cannot be written: " + error.message() + ".";
  }
  // Half a trace says less than none: the next opening would call it damaged.
  fs::remove(fresh, error);
  return problem;
}

void limit_reply_traces(const fs::path& folder, uint64_t bytes) {
  const std::vector<StoredTrace> stored = stored_traces(folder);
  uint64_t total = 0;
  for (const StoredTrace& each : stored) total += each.bytes;
  for (size_t i = 0; i + 1 < stored.size() && total > bytes; ++i) {
    std::error_code error;
    if (fs::remove(stored[i].path, error)) total -= stored[i].bytes;
  }
}

std::shared_ptr<const TraceReader> open_reply_trace(const fs::path& folder, uint32_t number, const std::string& text,
                                                    size_t parts) {
  const fs::path path = reply_trace(folder, number);
  std::error_code error;
  if (!fs::exists(path, error)) return nullptr;
  auto reader = std::make_shared<const TraceReader>(TraceReader::open(path));
  if (!reader->notice().empty()) throw bad_input("The trace " + shown(path) + " is damaged. " + reader->notice());
  if (!is_of(*reader, number, text, parts)) throw bad_input("The trace " + shown(path) + " is of another reply.");
  return reader;
}

}  // namespace canopy::app
