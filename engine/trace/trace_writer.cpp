#include "engine/trace/trace_writer.h"

#include <cctype>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "engine/base/posix.h"
#include "engine/speculation/tree_builder.h"
#include "engine/text/tokenizer.h"
#include "engine/trace/trace_format.h"
#include "engine/trace/trace_reader.h"
#include "engine/trace/trace_records.h"

namespace canopy {
namespace {

using trace::Kind;

/// The end of a sentence, and what can be done about it.
std::string reason_of(int error) {
  return std::generic_category().message(error) + "." + std::string(write_advice(error));
}

std::string last_component(const std::string& path) {
  const size_t end = path.find_last_not_of("/\\");
  if (end == std::string::npos) return {};
  const size_t separator = path.find_last_of("/\\", end);
  return path.substr(separator == std::string::npos ? 0 : separator + 1, end - (separator + 1) + 1);
}

/// Device names may contain a "/", so only a text that begins like a path is treated as one.
std::string without_path(const std::string& text) {
  const bool drive = text.size() > 2 && std::isalpha(static_cast<unsigned char>(text[0])) != 0 && text[1] == ':' &&
                     (text[2] == '\\' || text[2] == '/');
  const bool path = text.starts_with('/') || text.starts_with("~/") || text.starts_with("./") ||
                    text.starts_with("../") || text.starts_with("\\\\") || drive;
  return path ? last_component(text) : text;
}

void cut_off_paths(TraceModel& model) {
  // The name too: a Hugging Face config may hold the folder that its author trained in.
  for (std::string* text : {&model.name, &model.file_name}) *text = last_component(*text);
  for (std::string* text : {&model.architecture, &model.quantization}) *text = without_path(*text);
}

void cut_off_paths(TraceHeader& header) {
  cut_off_paths(header.target);
  if (header.drafter) cut_off_paths(*header.drafter);
  for (std::string* text :
       {&header.device, &header.driver, &header.backend, &header.kv_type, &header.variants, &header.calibration}) {
    *text = without_path(*text);
  }
}

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Tokens of a draft that the trees of a re-run may show.
std::vector<uint32_t> shown_tokens(const KeptDraft& draft) {
  constexpr uint32_t widest_tree = 128;
  if (draft.block.is_by_token()) return draft.block.tokens;
  std::vector<DepthCandidates> depths;
  for (uint32_t depth = 1; depth <= draft.block.depths; ++depth) depths.push_back(draft.block.at(depth));
  TreeBuilder builder;
  builder.begin(0, depths, draft.block.candidates);
  builder.build(widest_tree - 1);
  std::vector<uint32_t> tokens;
  for (const TreeNode& node : builder.tree().nodes().subspan(1)) tokens.push_back(node.token);
  return tokens;
}

/// True for an empty file and for an earlier trace. Other files are not overwritten: they were probably chosen by
/// mistake.
bool may_be_overwritten(int descriptor, uint64_t size) {
  std::string start(trace::magic.size(), '\0');
  if (size == 0) return true;
  const ssize_t got = ::pread(descriptor, start.data(), start.size(), 0);
  return got == static_cast<ssize_t>(start.size()) && start == trace::magic;
}

}  // namespace

TracePieces trace_pieces(const Tokenizer& tokenizer) {
  return [&tokenizer](uint32_t token) {
    return trace::Piece{tokenizer.token_bytes(token), tokenizer.is_special(token)};
  };
}

TraceWriter::TraceWriter(const std::filesystem::path& path, TraceHeader header, TracePieces pieces, bool redact)
    : path_(path), pieces_(std::move(pieces)), redact_(redact) {
  try {
    open(O_CREAT);
    start(std::move(header));
  } catch (...) {
    close();
    throw;
  }
}

TraceWriter::TraceWriter(const TraceReader& trace, TracePieces pieces)
    : path_(trace.path()), pieces_(std::move(pieces)), redact_(trace.header().redacted) {
  replies_ = static_cast<uint32_t>(trace.replies().size());
  for (const auto& [token, piece] : trace.pieces()) known_.insert(token);
  try {
    open(0);
    struct stat status = {};
    size_ = trace.whole_bytes();
    if (::fstat(descriptor_, &status) != 0 || static_cast<uint64_t>(status.st_size) != size_) {
      throw bad_input("The trace " + shown(path_) +
                      " cannot be added to: its end is damaged, or it has grown since it was read.");
    }
  } catch (...) {
    close();
    throw;
  }
}

TraceWriter::~TraceWriter() {
  finish();
}

void TraceWriter::open(int flags) {
  const auto fail = [&](const std::string& why) {
    throw bad_input("The trace " + shown(path_) + " cannot be recorded: " + why);
  };
  // O_NONBLOCK: opening a named pipe must not wait for a reader.
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | flags, 0666);
  if (descriptor_ < 0) fail(reason_of(errno));
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) fail(reason_of(errno));
  if (!S_ISREG(status.st_mode)) fail("it is no ordinary file.");
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) fail("it is being recorded into already.");
  if (!may_be_overwritten(descriptor_, static_cast<uint64_t>(status.st_size))) {
    fail("the file exists and is no trace; choose another name.");
  }
  if ((flags & O_CREAT) != 0 && ::ftruncate(descriptor_, 0) != 0) fail(reason_of(errno));
}

void TraceWriter::start(TraceHeader header) {
  if (header.canopy_version.empty()) header.canopy_version = CANOPY_VERSION;
  if (header.created.empty()) header.created = utc_time();
  header.redacted = redact_;
  cut_off_paths(header);
  trace::append_prologue(pending_);
  trace::append_record(pending_, Kind::header, json_text(to_json(header)));
  write_pending();
}

void TraceWriter::begin(TraceReplyBegin begin) {
  record([&] {
    if (!begin.prompt.empty()) begin.prompt_tokens = static_cast<uint32_t>(begin.prompt.size());
    if (redact_) begin = redacted(std::move(begin));
    for (const uint32_t token : begin.prompt) learn(token);
    payload_ = json_text(to_json(begin));
    ++replies_;
    return Kind::reply_begin;
  });
}

void TraceWriter::prefilled(const TracePrefill& prefill) {
  record([&] {
    const TracePrefill kept = redact_ ? redacted(prefill) : prefill;
    if (kept.first_token) learn(*kept.first_token);
    payload_ = json_text(to_json(kept));
    return Kind::prefill;
  });
}

void TraceWriter::drafting(const TraceDrafting& drafting) {
  record([&] {
    encode(drafting, drafting.costs != nullptr && drafting.costs == costs_, payload_);
    if (drafting.costs != nullptr) costs_ = drafting.costs;
    return Kind::drafting;
  });
}

/// A record of its own: rounds stay small for who does not need it.
void TraceWriter::keep(uint32_t reply, uint32_t committed, const KeptDraft& draft) {
  if (redact_) return;  // its lists of tokens would give the text away
  for (const uint32_t token : shown_tokens(draft)) learn(token);
  std::string payload;
  ByteWriter out(payload);
  out.whole(reply);
  out.whole(committed);
  encode(draft, payload);
  trace::append_record(drafts_, Kind::draft, payload);
}

void TraceWriter::add_draft(uint32_t reply, uint32_t committed, const KeptDraft& draft) {
  if (reply >= replies_)
    throw bad_input("A draft of reply " + std::to_string(reply) + " was to be recorded, of " +
                    std::to_string(replies_) + ".");
  record([&] {
    keep(reply, committed, draft);
    return std::optional<Kind>();
  });
}

void TraceWriter::add_dense(TraceDense dense) {
  if (redact_) return;
  record([&] {
    for (std::string* text : {&dense.device, &dense.driver, &dense.variants}) *text = without_path(*text);
    if (dense.canopy_version.empty()) dense.canopy_version = CANOPY_VERSION;
    payload_ = json_text(to_json(dense));
    return Kind::dense;
  });
}

void TraceWriter::append(const RoundRecord& round) {
  const bool written = record([&] {
    validate(round);
    if (round.draft != nullptr) keep(replies_ - 1, round.context, *round.draft);
    if (redact_) {
      encode(redacted(round), payload_);
      return Kind::round;
    }
    const auto put = [&](const RoundRecord& kept) {
      for (const RoundNode& row : kept.nodes) {
        learn(row.node.token);
        if (row.target_token != RoundNode::unknown) learn(row.target_token);
      }
      for (const uint32_t token : kept.emitted) learn(token);
      encode(kept, payload_);
    };
    has_other_chats(round) ? put(without_other_chats(round)) : put(round);
    return Kind::round;
  });
  if (written) ++rounds_;
}

void TraceWriter::end(const TraceReplyEnd& end) {
  record([&] {
    payload_ = json_text(to_json(redact_ ? redacted(end) : end));
    return Kind::reply_end;
  });
}

void TraceWriter::finish() {
  if (descriptor_ < 0) return;
  if (::fsync(descriptor_) != 0 && errno != EINVAL) stop(reason_of(errno));
  close();
}

void TraceWriter::learn(uint32_t token) {
  if (!pieces_ || !known_.insert(token).second) return;
  const trace::Piece piece =
      token == trace::other_chats_token ? trace::Piece{trace::other_chats_words} : pieces_(token);
  ByteWriter out(new_pieces_);
  out.whole(token);
  out.byte(piece.control ? 1 : 0);
  out.text(piece.bytes);
  ++new_count_;
}

void TraceWriter::add_new_pieces() {
  if (new_count_ == 0) return;
  std::string payload;
  ByteWriter(payload).whole(new_count_);
  trace::append_record(pending_, Kind::pieces, payload + new_pieces_);
}

/// Calls `make` to fill payload_, then writes the texts of tokens that it uses for the first time, and the payload.
/// Returns false when that failed.
template <class F>
bool TraceWriter::record(F&& make) {
  if (descriptor_ < 0) return false;
  try {
    pending_.clear();
    payload_.clear();
    new_pieces_.clear();
    new_count_ = 0;
    drafts_.clear();
    const std::optional<Kind> kind = make();
    add_new_pieces();
    pending_ += drafts_;
    if (kind) trace::append_record(pending_, *kind, payload_);
    write_pending();
    return true;
  } catch (const Error& e) {
    stop(e.what());
    return false;
  }
}

void TraceWriter::write_pending() {
  size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t written =
        ::pwrite(descriptor_, pending_.data() + done, pending_.size() - done, static_cast<off_t>(size_ + done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      // Removes the partly written record, which a reader would report as damage. Should truncation fail too, readers
      // still stop before it.
      (void)!::ftruncate(descriptor_, static_cast<off_t>(size_));
      throw bad_input("The trace " + shown(path_) + " cannot be written: " + reason_of(error));
    }
    done += static_cast<size_t>(written);
  }
  size_ += done;
}

void TraceWriter::stop(const std::string& reason) {
  problem_ = "Recording stopped after " + std::to_string(rounds_) + " passes: " + reason;
  close();
  log_warning(problem_);
}

void TraceWriter::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace canopy
