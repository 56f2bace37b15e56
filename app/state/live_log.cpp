#include "app/state/live_log.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/state/words.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/posix.h"
#include "engine/trace/trace_writer.h"

namespace canopy::app {
namespace {

bool write_all(int descriptor, const std::string& bytes, uint64_t offset) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = pwrite(descriptor, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

bool read_all(int descriptor, std::string& bytes, uint64_t offset) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = pread(descriptor, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

std::shared_ptr<const int> shared_descriptor(int descriptor) {
  return {new int(descriptor), [](const int* file) {
            close(*file);
            delete file;
          }};
}

}  // namespace

std::shared_ptr<const RoundRecord> SpilledRound::read() const {
  if (!file_) return nullptr;
  std::string bytes(end_ - begin_, '\0');
  if (!read_all(*file_, bytes, begin_)) return nullptr;
  try {
    Reader reader(std::as_bytes(std::span(bytes)));
    return std::make_shared<const RoundRecord>(decode_round_record(reader));
  } catch (const Error&) {
    return nullptr;
  }
}

bool RoundSpill::open() {
  if (file_ || failed_) return !failed_;
  try {
    if (folder_.empty()) folder_ = cache_dir();
    const NewFile file = make_private_file(folder_, "rounds", "");
    if (file.descriptor >= 0) {
      ::unlink(file.path.c_str());
      file_ = shared_descriptor(file.descriptor);
    }
  } catch (const Error&) {  // the cache folder cannot be written to
  }
  failed_ = !file_;
  return !failed_;
}

void RoundSpill::append(const RoundRecord& record) {
  if (!open()) return;
  const uint64_t offset = ends_.empty() ? 0 : ends_.back();
  bytes_.clear();
  encode(record, bytes_);
  if (write_all(*file_, bytes_, offset)) {
    ends_.push_back(offset + bytes_.size());
  } else {
    failed_ = true;
  }
}

void RoundSpill::skip() {
  if (!failed_) ends_.push_back(ends_.empty() ? 0 : ends_.back());
}

std::shared_ptr<const RoundRecord> RoundSpill::read(size_t index) const {
  if (index >= ends_.size()) return nullptr;
  return recent_.get(index, [&] { return find(index).read(); });
}

SpilledRound RoundSpill::find(size_t index) const {
  SpilledRound round;
  if (index >= ends_.size()) return round;
  round.begin_ = index == 0 ? 0 : ends_[index - 1];
  round.end_ = ends_[index];
  if (round.begin_ < round.end_) round.file_ = file_;
  return round;
}

std::shared_ptr<const RoundRecord> LiveRounds::round(size_t index) const {
  return index < places_.size() ? to_share(read(index)) : nullptr;
}

std::shared_ptr<const RoundRecord> LiveRounds::read(size_t index) const {
  const Place& place = places_[index];
  if (const auto* record = std::get_if<std::shared_ptr<const RoundRecord>>(&place)) return *record;
  if (const auto* spilled = std::get_if<SpilledRound>(&place)) return spilled->read();
  const InTrace& in = std::get<InTrace>(place);
  try {
    return std::make_shared<const RoundRecord>(in.trace->round(in.round));
  } catch (const Error&) {  // the file was changed after it was opened
    return nullptr;
  }
}

std::optional<trace::Piece> LiveRounds::piece(uint32_t token) const {
  if (token == trace::other_chats_token) return trace::Piece{trace::other_chats_words};
  if (texts_) return texts_->find(token);
  for (auto each = traces_.rbegin(); each != traces_.rend(); ++each)
    if (const trace::Piece* piece = (*each)->piece(token)) return *piece;
  return std::nullopt;
}

namespace {

std::string origin_of(const ModelReady& model) {
  std::string origin = model_name(model.name, model.file_name, model.quantization);
  if (!model.drafter.empty()) origin += " with " + model.drafter;
  return origin + " on " + model.device;
}

std::string origin_of(const TraceHeader& header) {
  std::string origin = header.target.name;
  if (header.drafter) origin += " with " + header.drafter->name;
  return header.device.empty() ? origin : origin + " on " + header.device;
}

TraceHeader header_of(const ModelReady& model) {
  TraceHeader header;
  header.target = {model.name, model.file_name, model.architecture, model.quantization, model.quantized_to};
  if (!model.drafter.empty()) header.drafter = TraceModel{model.drafter, model.drafter, "", ""};
  header.device = model.device;
  header.driver = model.driver;
  header.backend = model.backend;
  header.kv_type = model.kv_type;
  header.context = model.context;
  return header;
}

ReplySummary restored_reply(const TraceReply& old, uint64_t id, size_t first_round, const ReplyFinished& ended) {
  ReplySummary reply;
  reply.id = id;
  reply.mode = old.begin.mode;
  reply.budget = old.begin.budget;
  reply.first_round = first_round;
  if (old.prefill) reply.first_token = old.prefill->first_token;
  if (old.end) reply.reason = old.end->reason;
  reply.ar_tokens_per_second = ended.ar_tokens_per_second;
  reply.plain = ended.plain;
  return reply;
}

}  // namespace

size_t memory_of(const RoundRecord& record) {
  return sizeof record + record.nodes.capacity() * sizeof(RoundNode) + record.emitted.capacity() * sizeof(uint32_t) +
         record.choice.candidates.capacity() * sizeof(WidthForecast) + record.choice.reason.capacity();
}

bool LiveLog::restore(std::span<const uint64_t> ids, const ReplyFinished& ended,
                      std::shared_ptr<const TraceReader> trace) {
  const std::string& model = trace->header().target.file_name;
  if (restored_ != rounds() || (!model_.empty() && model_ != model)) return false;
  const size_t count_of_replies = std::min(ids.size(), trace->replies().size());
  std::vector<std::vector<RoundRecord>> records(count_of_replies);
  for (size_t r = 0; r < count_of_replies; ++r) {
    const TraceReply& old = trace->replies()[r];
    for (size_t i = 0; i < old.rounds; ++i) records[r].push_back(trace->round(old.first_round + i));
  }
  if (model_.empty()) {
    model_ = model;
    header_ = trace->header();
    origin_ = origin_of(header_);
  }
  traces_.push_back({rounds(), trace});
  for (size_t r = 0; r < count_of_replies; ++r) {
    replies_.push_back(restored_reply(trace->replies()[r], ids[r], rounds(), ended));
    replies_.back().message = ids[0];
    for (const RoundRecord& record : records[r]) count(record);
  }
  restored_ = rounds();
  return true;
}

void LiveLog::expect(const Generate& request, uint64_t message) {
  ReplySummary asked;
  asked.id = request.reply_id;
  asked.message = message ? message : request.reply_id;
  asked.mode = request.mode.value_or(DecodeMode::adaptive);
  asked.budget = request.budget;
  expected_.push_back(std::move(asked));
}

ReplySummary* LiveLog::reply(uint64_t id) {
  if (!replies_.empty() && replies_.back().id == id) return &replies_.back();
  const auto asked =
      std::find_if(expected_.begin(), expected_.end(), [&](const ReplySummary& each) { return each.id == id; });
  if (asked == expected_.end()) return nullptr;
  ReplySummary begun = *asked;
  begun.first_round = rounds();
  // The engine answers requests in their order: an earlier one that has not begun by now never will.
  expected_.erase(expected_.begin(), asked + 1);
  replies_.push_back(std::move(begun));
  return &replies_.back();
}

void LiveLog::take(const Event& event) {
  if (const auto* ready = std::get_if<ModelReady>(&event)) {
    model_ = ready->file_name;
    origin_ = origin_of(*ready);
    header_ = header_of(*ready);
    if (ready->texts) texts_.push_back(ready->texts);
  } else if (const auto* prompt = std::get_if<PrefillProgress>(&event)) {
    reply(prompt->reply_id);
  } else if (const auto* start = std::get_if<ReplyStarted>(&event)) {
    if (ReplySummary* of = reply(start->reply_id)) {
      of->first_token = start->first_token;
      of->before = start->before;
      if (replies_.size() > kPromptsKept) replies_[replies_.size() - kPromptsKept - 1].before.reset();
    }
  } else if (const auto* finished = std::get_if<RoundFinished>(&event)) {
    ReplySummary* of = finished->round ? reply(finished->reply_id) : nullptr;
    if (!of) return;
    of->mode = finished->round->mode;
    if (finished->abridged) {
      add_abridged(*finished->round);
    } else {
      add(finished->round);
    }
  } else if (const auto* end = std::get_if<ReplyFinished>(&event)) {
    ReplySummary* of = reply(end->reply_id);
    if (!of) return;
    of->reason = end->reason;
    of->mode = end->mode;
    of->ar_tokens_per_second = end->ar_tokens_per_second;
    of->plain = end->plain;
  }
}

void LiveLog::add(std::shared_ptr<const RoundRecord> record) {
  count(*record);
  used_ += memory_of(*record);
  kept_.push_back(std::move(record));
  keep_within_memory();
}

void LiveLog::add_abridged(const RoundRecord& record) {
  count_abridged(record);
  kept_.push_back(nullptr);
}

void LiveLog::keep_within_memory() {
  while (used_ > memory_ && kept_.size() > 1) {  // the newest round stays: it is being shown
    if (const auto& oldest = kept_.front()) {
      used_ -= memory_of(*oldest);
      spill_.append(*oldest);
    } else {
      spill_.skip();
    }
    kept_.pop_front();
  }
}

LiveRounds::InTrace LiveLog::restored(size_t index) const {
  const auto after = std::upper_bound(traces_.begin(), traces_.end(), index,
                                      [](size_t i, const Restored& each) { return i < each.first_round; });
  const Restored& from = *(after - 1);
  return {from.trace, from.trace->replies().at(0).first_round + index - from.first_round};
}

std::shared_ptr<const RoundRecord> LiveLog::round(size_t index) const {
  if (index >= rounds()) return nullptr;
  if (index < restored_) {
    return recent_.get(index, [&]() -> std::shared_ptr<const RoundRecord> {
      const LiveRounds::InTrace from = restored(index);
      try {
        return std::make_shared<const RoundRecord>(from.trace->round(from.round));
      } catch (const Error&) {  // the file was changed after it was opened
        return nullptr;
      }
    });
  }
  const size_t first_kept = rounds() - kept_.size();
  return index >= first_kept ? kept_[index - first_kept] : spill_.read(index - restored_);
}

LiveRounds LiveLog::share(size_t first, size_t count) const {
  LiveRounds shared;
  const size_t first_kept = rounds() - kept_.size();
  for (size_t i = first; i < first + count; ++i) {
    const uint32_t of = summary(i).reply;
    if (shared.reply_.empty() || shared.reply_.back() != of) shared.replies_.push_back(replies_[of]);
    shared.reply_.push_back(of);
    if (i < restored_) {
      shared.places_.emplace_back(restored(i));
    } else if (i < first_kept) {
      shared.places_.emplace_back(spill_.find(i - restored_));
    } else {
      shared.places_.emplace_back(kept_[i - first_kept]);
    }
  }
  if (!texts_.empty()) shared.texts_ = texts_.back();
  for (const Restored& each : traces_) shared.traces_.push_back(each.trace);
  shared.origin_ = origin_;
  return shared;
}

std::optional<trace::Piece> LiveLog::piece(uint32_t token) const {
  if (token == trace::other_chats_token) return trace::Piece{trace::other_chats_words};
  if (!texts_.empty()) return texts_.back()->find(token);
  for (auto each = traces_.rbegin(); each != traces_.rend(); ++each)
    if (const trace::Piece* piece = each->trace->piece(token)) return *piece;
  return std::nullopt;
}

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
