#include "app/state/round_log.h"

#include <fstream>
#include <ostream>

#include "app/state/words.h"
#include "engine/base/error.h"
#include "engine/trace/trace_export.h"
#include "engine/trace/trace_records.h"

namespace canopy::app {
namespace {

// Below this many positions the context hardly changes what a pass costs.
constexpr uint32_t kShortContext = 256;

bool is_near(uint32_t a, uint32_t b) {
  const uint64_t low = std::max(kShortContext, std::min(a, b)), high = std::max(kShortContext, std::max(a, b));
  return high <= 2 * low;
}

}  // namespace

void PlainRounds::add(const RoundRecord& round, int64_t at_ms) {
  const double ms = round.ms.total();
  // One may draft on the side, to see whether drafting would pay.
  if (!is_plain(round)) return;
  rounds_.push_back({round.context, ms, at_ms});
  if (rounds_.size() > kMost) rounds_.pop_front();
}

std::optional<PlainSpeed> PlainRounds::near(uint32_t context) const {
  PlainSpeed speed;
  double ms = 0;
  for (auto round = rounds_.rbegin(); round != rounds_.rend() && speed.rounds < kMean; ++round) {
    if (!is_near(round->context, context)) continue;
    if (speed.rounds++ == 0) speed.newest_ms = round->at_ms;
    ms += round->ms;
  }
  if (speed.rounds < kEnough) return std::nullopt;
  speed.tokens_per_second = 1000 * static_cast<double>(speed.rounds) / ms;
  return speed;
}

std::shared_ptr<const RoundRecord> to_share(std::shared_ptr<const RoundRecord> record) {
  if (!record || !has_other_chats(*record)) return record;
  return std::make_shared<const RoundRecord>(without_other_chats(*record));
}

std::shared_ptr<const RoundRecord> RoundLog::round_to_share(size_t index) const {
  return to_share(round(index));
}

RoundSummary summarize(const RoundRecord& record, uint32_t reply) {
  const DraftedPart part = drafted_part(record);
  RoundSummary summary;
  summary.reply = reply;
  summary.context = record.context;
  summary.shape = record.shape;
  summary.width = record.width;
  summary.accepted = part.tokens;
  summary.emitted = static_cast<uint32_t>(record.emitted.size());
  summary.match = record.match;
  summary.sources = guessed_by(record);
  summary.distinct_experts = record.distinct_experts;
  summary.cut = part.cut;
  summary.ms = record.ms;
  summary.predicted = record.predicted;
  return summary;
}

size_t RoundLog::first_of_reply(size_t round) const {
  size_t reply = summaries_[round].reply;
  const uint64_t message = replies_[reply].message;
  while (message != 0 && reply > 0 && replies_[reply - 1].message == message) --reply;
  return replies_[reply].first_round;
}

void RoundLog::count_abridged(const RoundRecord& record) {
  summaries_.push_back(summarize(record, static_cast<uint32_t>(replies_.size() - 1)));
  summaries_.back().accepted = record.accepted;
  ++replies_.back().rounds;
}

void RoundLog::count(const RoundRecord& record) {
  ReplySummary& reply = replies_.back();
  summaries_.push_back(summarize(record, static_cast<uint32_t>(replies_.size() - 1)));
  statistics_.add(record);
  plain_.add(record, 0);
  if (reply.rounds++ == 0 && !record.nodes.empty() && !reply.first_token)
    reply.first_token = record.nodes.front().node.token;
}

namespace {

void append_text(const RoundLog& log, uint32_t token, std::string& text) {
  const auto piece = log.piece(token);
  if (piece && !piece->control) text += piece->bytes;
}

}  // namespace

TraceLog::TraceLog(const std::filesystem::path& path) : reader_(TraceReader::open(path)) {
  if (reader_.rounds() == 0) {
    throw bad_input("The trace " + shown(path) + " has no whole pass." +
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
  std::vector<double> plain_ms;
  if (const auto first = replies_.back().first_token) append_text(*this, *first, text);
  for (size_t i = reply.first_round; i < reply.first_round + reply.rounds; ++i) {
    const RoundRecord record = reader_.round(i);
    count(record);
    if (is_plain(record)) plain_ms.push_back(record.ms.total());
    for (const uint32_t token : record.emitted) append_text(*this, token, text);
  }
  // What only is predicted of another device was not measured beside the reply.
  if (plain_ms.size() >= kEnoughPlain && times().empty())
    replies_.back().plain = median_pass(std::move(plain_ms), true);
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

namespace {

using Json = nlohmann::ordered_json;

Json replies_of(const TraceLog& log) {
  Json replies = Json::array();
  for (const ReplySummary& reply : log.replies()) {
    Json json{{"mode", to_string(reply.mode)},
              {"budget", reply.budget},
              {"first_round", reply.first_round},
              {"rounds", reply.rounds}};
    json["reason"] = reply.reason ? Json(json_name(*reply.reason)) : Json();
    json["text"] = reply.text;
    replies.push_back(std::move(json));
  }
  return replies;
}

}  // namespace

void check_round(uint64_t round, size_t rounds) {
  if (round < rounds) return;
  throw bad_input("There is no pass " + std::to_string(round) + ": the trace has passes 0 to " +
                  std::to_string(rounds - 1) + ".");
}

void dump_trace(const std::string& path, std::optional<uint64_t> round, std::ostream& out) {
  const TraceLog log(path);
  if (round) check_round(*round, log.rounds());
  Json json;
  json["trace"] = std::filesystem::path(path).filename().string();
  json["notice"] = log.reader().notice();
  json["header"] = to_json(log.reader().header());
  json["rounds"] = log.rounds();
  json["replies"] = replies_of(log);
  json["statistics"] = to_json(log.statistics());
  if (round) json["round"] = round_to_json(log.reader().round(*round), log.reader());
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace canopy::app
