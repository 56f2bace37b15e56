#include "app/rounds/live_log.h"

#include <algorithm>
#include <utility>

#include "app/base/model_name.h"
#include "engine/base/error.h"

namespace canopy::app {
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

ReplySummary restored_reply(const TraceReply& old, uint64_t id, size_t first_round, double ar_tokens_per_second) {
  ReplySummary reply;
  reply.id = id;
  reply.mode = old.begin.mode;
  reply.budget = old.begin.budget;
  reply.first_round = first_round;
  if (old.prefill) reply.first_token = old.prefill->first_token;
  if (old.end) reply.reason = old.end->reason;
  reply.ar_tokens_per_second = ar_tokens_per_second;
  return reply;
}

}  // namespace

size_t memory_of(const RoundRecord& record) {
  return sizeof record + record.nodes.capacity() * sizeof(RoundNode) + record.emitted.capacity() * sizeof(uint32_t) +
         record.choice.candidates.capacity() * sizeof(WidthForecast) + record.choice.reason.capacity();
}

bool LiveLog::restore(std::span<const uint64_t> ids, double ar_tokens_per_second,
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
    replies_.push_back(restored_reply(trace->replies()[r], ids[r], rounds(), ar_tokens_per_second));
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
    if (ReplySummary* of = reply(start->reply_id)) of->first_token = start->first_token;
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
  if (!texts_.empty()) return texts_.back()->find(token);
  for (auto each = traces_.rbegin(); each != traces_.rend(); ++each)
    if (const trace::Piece* piece = each->trace->piece(token)) return *piece;
  return std::nullopt;
}

}  // namespace canopy::app
