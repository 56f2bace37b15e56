#include "engine/trace/trace_reader.h"

#include <utility>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/trace/trace_format.h"

namespace canopy {

using trace::Kind;
using trace::Record;

TraceReader TraceReader::open(const std::filesystem::path& path) {
  TraceReader trace;
  trace.file_ = MappedFile::open(path);
  with_context("The trace " + shown(path) + " cannot be opened", [&] { trace.index(); });
  return trace;
}

void TraceReader::index() {
  Reader reader(file_.bytes());
  trace::check_prologue(reader);
  const auto header = trace::next_record(reader);
  if (!header || header->kind != Kind::header) throw bad_input("Its header is cut off or damaged.");
  header_ = parse_trace_header(header->text());
  whole_bytes_ = reader.offset();
  std::string why = "The file is cut off or damaged";
  try {
    while (reader.remaining() > 0) {
      const uint64_t offset = reader.offset();
      const auto record = trace::next_record(reader);
      if (!record) break;
      take(*record, offset);
      whole_bytes_ = reader.offset();
    }
  } catch (const Error& e) {
    why = std::string("A record is wrong: ") + e.what() + " It lies";
  }
  if (whole_bytes_ == file_.bytes().size()) return;
  notice_ = why + " at byte " + std::to_string(whole_bytes_) + " of " + std::to_string(file_.bytes().size()) +
            "; what was recorded before, " + std::to_string(rounds_.size()) +
            (rounds_.size() == 1 ? " whole pass, can be read." : " whole passes, can be read.");
}

void TraceReader::take(const Record& record, uint64_t offset) {
  switch (record.kind) {
    case Kind::header: throw bad_input("There is a second header.");
    case Kind::pieces: take_pieces(record); return;
    case Kind::reply_begin: {
      TraceReply reply;
      reply.begin = parse_trace_reply_begin(record.text());
      reply.first_round = rounds_.size();
      replies_.push_back(std::move(reply));
      drafts_.emplace_back();
      return;
    }
    case Kind::prefill: {
      TraceReply& reply = open_reply();
      reply.prefill = parse_trace_prefill(record.text());
      return;
    }
    case Kind::round:
      ++open_reply().rounds;
      rounds_.push_back({offset, static_cast<uint32_t>(replies_.size() - 1)});
      return;
    case Kind::reply_end: {
      TraceReply& reply = open_reply();
      reply.end = parse_trace_reply_end(record.text());
      return;
    }
    case Kind::drafting: {
      TraceReply& reply = open_reply();
      reply.drafting = decode_trace_drafting(record.text(), costs_);
      if (reply.drafting->costs != nullptr) costs_ = reply.drafting->costs;
      return;
    }
    case Kind::draft: take_draft(record, offset); return;
    case Kind::dense: take_dense(record); return;
  }
  ++unknown_;
}

TraceReply& TraceReader::open_reply() {
  if (replies_.empty() || replies_.back().end) throw bad_input("It belongs to no reply.");
  return replies_.back();
}

void TraceReader::take_pieces(const Record& record) {
  Reader reader(record.payload);
  const uint32_t count = read_count(reader, 3, "the number of texts");
  for (uint32_t i = 0; i < count; ++i) {
    const auto token = read_whole(reader, "the token of a text");
    const bool control = (reader.read<uint8_t>("the flags of a text") & 1) != 0;
    pieces_.insert_or_assign(token, trace::Piece{read_text(reader, "the text of a token"), control});
  }
}

void TraceReader::take_draft(const Record& record, uint64_t offset) {
  Reader reader(record.payload);
  const auto reply = read_whole(reader, "the reply of a draft");
  const auto committed = read_whole(reader, "the place of a draft");
  if (reply >= replies_.size()) throw bad_input("A draft belongs to no reply.");
  drafts_[reply].try_emplace(committed, offset);  // the draft of a round stands, whatever is drafted there later
}

void TraceReader::take_dense(const Record& record) {
  TraceDense dense = parse_trace_dense(record.text());
  if (dense.reply >= replies_.size()) throw bad_input("A note on drafts belongs to no reply.");
  const uint32_t reply = dense.reply;
  replies_[reply].dense = std::move(dense);
}

std::shared_ptr<const KeptDraft> TraceReader::draft(size_t reply, uint32_t committed) const {
  if (reply >= replies_.size()) return nullptr;
  const auto found = drafts_[reply].find(committed);
  if (found == drafts_[reply].end()) return nullptr;
  return with_context("The draft behind position " + std::to_string(committed) + " of the trace " + shown(file_.path()),
                      [&] {
                        Reader reader(file_.bytes().subspan(found->second));
                        const auto record = trace::next_record(reader);
                        if (!record || record->kind != Kind::draft) {
                          throw bad_input("The file was changed or lost while it was open.");
                        }
                        Reader payload(record->payload);
                        read_whole(payload, "the reply of a draft");
                        read_whole(payload, "the place of a draft");
                        return std::make_shared<const KeptDraft>(decode_kept_draft(payload));
                      });
}

RoundRecord TraceReader::round(size_t index) const {
  if (index >= rounds_.size()) {
    throw bad_input("The trace " + shown(file_.path()) + " has no pass " + std::to_string(index) + "; it has " +
                    std::to_string(rounds_.size()) + ", counted from 0.");
  }
  return with_context("Pass " + std::to_string(index) + " of the trace " + shown(file_.path()), [&] {
    Reader reader(file_.bytes().subspan(rounds_[index].offset));
    const auto record = trace::next_record(reader);
    if (!record || record->kind != Kind::round) throw bad_input("The file was changed or lost while it was open.");
    Reader payload(record->payload);
    return decode_round_record(payload);
  });
}

const trace::Piece* TraceReader::piece(uint32_t token) const {
  static constexpr trace::Piece other_chats = {trace::other_chats_words};
  if (token == trace::other_chats_token) return &other_chats;  // which files of before lack
  const auto found = pieces_.find(token);
  return found == pieces_.end() ? nullptr : &found->second;
}

}  // namespace canopy
