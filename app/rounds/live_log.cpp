#include "app/rounds/live_log.h"

#include <algorithm>
#include <utility>

#include "app/base/model_name.h"

namespace canopy::app {
namespace {

std::string origin_of(const ModelReady& model) {
  std::string origin = model_name(model.name, model.file_name, model.quantization);
  if (!model.drafter.empty()) origin += " with " + model.drafter;
  return origin + " on " + model.device;
}

}  // namespace

size_t memory_of(const RoundRecord& record) {
  return sizeof record + record.nodes.capacity() * sizeof(RoundNode) + record.emitted.capacity() * sizeof(uint32_t) +
         record.choice.candidates.capacity() * sizeof(WidthForecast) + record.choice.reason.capacity();
}

void LiveLog::expect(const Generate& request) {
  Generate light;
  light.reply_id = request.reply_id;
  light.mode = request.mode;
  light.budget = request.budget;
  expected_.push_back(std::move(light));
}

ReplySummary* LiveLog::reply(uint64_t id) {
  if (!replies_.empty() && replies_.back().id == id) return &replies_.back();
  const auto asked =
      std::find_if(expected_.begin(), expected_.end(), [&](const Generate& g) { return g.reply_id == id; });
  if (asked == expected_.end()) return nullptr;
  ReplySummary begun;
  begun.id = id;
  begun.mode = asked->mode.value_or(DecodeMode::adaptive);
  begun.budget = asked->budget;
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

std::shared_ptr<const RoundRecord> LiveLog::round(size_t index) const {
  if (index >= rounds()) return nullptr;
  const size_t first_kept = rounds() - kept_.size();
  return index >= first_kept ? kept_[index - first_kept] : spill_.read(index);
}

std::optional<trace::Piece> LiveLog::piece(uint32_t token) const {
  return texts_.empty() ? std::nullopt : texts_.back()->find(token);
}

}  // namespace canopy::app
