#include "engine/session/reply_publisher.h"

#include <memory>
#include <utility>

namespace canopy {
namespace {

constexpr std::chrono::milliseconds kTextInterval{33};  // a window shows at most 30 new texts a second

}  // namespace

ReplyPublisher::ReplyPublisher(uint64_t reply_id, uint32_t prompt_tokens, uint32_t begun, Publish publish)
    : publish_(std::move(publish)), prompt_tokens_(prompt_tokens), begun_(begun), tokens_(begun) {
  pending_.reply_id = reply_id;
}

ReplyCallbacks ReplyPublisher::callbacks(bool rounds, std::stop_token stop) {
  ReplyCallbacks callbacks;
  callbacks.stop = std::move(stop);
  callbacks.prefill = [this](uint32_t done, uint32_t total) {
    publish_(PrefillProgress{pending_.reply_id, done, total}, true);
  };
  callbacks.started = [this](const ReplyStart& start) {
    publish_(ReplyStarted{pending_.reply_id, prompt_tokens_, start.reused_tokens, start.prefill_ms, start.first_token,
                          start.begun_bytes},
             true);
  };
  callbacks.token = [this](const ReplyProgress& progress) { token(progress); };
  if (rounds) callbacks.round = [this](const RoundRecord& record) { round(record); };
  return callbacks;
}

void ReplyPublisher::token(const ReplyProgress& progress) {
  if (progress.reply_tokens == begun_ + 1 && tokens_ == begun_) {
    text_begin_ = progress.text_end;  // the first new token belongs to the prompt's pass and to no round
  } else if (progress.reply_tokens > tokens_) {
    text_ends_.push_back(progress.text_end);
  }
  tokens_ = progress.reply_tokens;
  pending_.text += progress.text;
  pending_.reply_tokens = progress.reply_tokens;
  pending_.context_used = progress.context_used;
  pending_.tokens_per_second = progress.tokens_per_second;
  pending_.thought = progress.thought;
  has_pending_ = true;
  if (is_due()) publish_text(true);
}

void ReplyPublisher::round(const RoundRecord& record) {
  if (has_pending_) publish_text(false);
  RoundFinished finished;
  finished.reply_id = pending_.reply_id;
  finished.round = std::make_shared<const RoundRecord>(record);
  finished.first_index = tokens_ - static_cast<uint32_t>(text_ends_.size());
  finished.text_begin = text_begin_;
  text_begin_ = text_ends_.back();
  finished.text_ends = std::exchange(text_ends_, {});
  publish_(std::move(finished), is_due());
}

void ReplyPublisher::flush() {
  if (has_pending_) publish_text(true);
}

bool ReplyPublisher::is_due() {
  const auto now = std::chrono::steady_clock::now();
  if (now - woken_ < kTextInterval) return false;
  woken_ = now;
  return true;
}

void ReplyPublisher::publish_text(bool wake) {
  publish_(pending_, wake);
  pending_.text.clear();
  has_pending_ = false;
}

}  // namespace canopy
