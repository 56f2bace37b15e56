#include "app/rounds/trace_log.h"

#include <fstream>

#include "app/base/model_name.h"
#include "engine/base/error.h"

namespace canopy::app {
namespace {

void append_text(const RoundLog& log, uint32_t token, std::string& text) {
  const auto piece = log.piece(token);
  if (piece && !piece->control) text += piece->bytes;
}

}  // namespace

TraceLog::TraceLog(const std::filesystem::path& path) : reader_(TraceReader::open(path)) {
  if (reader_.rounds() == 0) {
    throw bad_input("The trace " + shown(path) + " has no whole round." +
                    (reader_.notice().empty() ? "" : " " + reader_.notice()));
  }
  with_context("The trace " + shown(path) + " cannot be read", [&] {
    for (const TraceReply& reply : reader_.replies()) take(reply);
  });
}

void TraceLog::take(const TraceReply& reply) {
  ReplySummary summary;
  summary.id = reply.begin.turn;
  summary.mode = reply.begin.mode;
  summary.budget = reply.begin.budget;
  summary.first_round = reply.first_round;
  if (reply.prefill) summary.first_token = reply.prefill->first_token;
  if (reply.end) summary.reason = reply.end->reason;
  for (const uint32_t token : reply.begin.prompt) append_text(*this, token, summary.prompt_text);
  replies_.push_back(std::move(summary));
  std::string text;
  if (const auto first = replies_.back().first_token) append_text(*this, *first, text);
  for (size_t i = reply.first_round; i < reply.first_round + reply.rounds; ++i) {
    const RoundRecord record = reader_.round(i);
    count(record);
    for (const uint32_t token : record.emitted) append_text(*this, token, text);
  }
  // The end record has the text as the user saw it, ended by a stop string for instance. A reply without one was
  // interrupted: then its text is what the tokens of its rounds make.
  replies_.back().text = reply.end ? reply.end->text : std::move(text);
}

std::shared_ptr<const RoundRecord> TraceLog::round(size_t index) const {
  if (index >= rounds()) return nullptr;
  return recent_.get(index, [&]() -> std::shared_ptr<const RoundRecord> {
    try {
      return std::make_shared<const RoundRecord>(reader_.round(index));
    } catch (const Error&) {  // the file was changed after it was opened
      return nullptr;
    }
  });
}

std::optional<trace::Piece> TraceLog::piece(uint32_t token) const {
  if (reader_.header().redacted) return std::nullopt;  // the ids of a redacted trace do not say which tokens they were
  const trace::Piece* piece = reader_.piece(token);
  return piece ? std::optional(*piece) : std::nullopt;
}

std::string TraceLog::origin() const {
  const TraceHeader& header = reader_.header();
  const TraceModel& target = header.target;
  std::string origin = model_name(target.name, target.file_name, target.quantization);
  if (header.drafter) origin += " with " + model_name(header.drafter->name, header.drafter->file_name, "");
  if (!header.device.empty()) origin += " on " + header.device;
  return header.times.empty() ? origin : origin + " (" + header.times + ")";
}

// Traces of before there was a choice of backends have the name of the device alone.
bool TraceLog::on_processor() const {
  const TraceHeader& header = reader_.header();
  return header.backend == "cpu" || header.device.find("llvmpipe") != std::string::npos;
}

bool looks_like_trace(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  // By its name alone: so a damaged trace is reported as a trace, not as some unknown file.
  if (path.extension() == trace::extension) return true;
  std::ifstream file(path, std::ios::binary);
  std::string start(trace::magic.size(), '\0');
  return file.read(start.data(), static_cast<std::streamsize>(start.size())) && start == trace::magic;
}

}  // namespace canopy::app
