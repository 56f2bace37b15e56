#include "engine/serve/reply_queue.h"

#include <utility>

#include "engine/session/engine.h"

namespace canopy {

QueuedReply::QueuedReply(ServedRequest request, std::function<void()> wake)
    : request_(std::move(request)), wake_(std::move(wake)) {
  if (request_.wants_rounds)
    publisher_.emplace(0, static_cast<uint32_t>(request_.prompt.size()),
                       static_cast<uint32_t>(request_.settings.begun.size()),
                       [this](Event event, bool) { tell(std::move(event)); });
}

void QueuedReply::cancel() {
  stop_.request_stop();
  if (wake_) wake_();
}

void QueuedReply::pause(bool paused) {
  paused_ = paused;
  if (wake_) wake_();
}

ReplyNews QueuedReply::take(std::chrono::milliseconds most, std::chrono::steady_clock::time_point together) {
  std::unique_lock lock(mutex_);
  const auto has_some = [this] {
    return news_.over || !news_.text.empty() || !news_.thinking.empty() || !news_.events.empty();
  };
  ready_.wait_until(lock, together, [this] { return news_.over; });
  is_awaited_ = true;
  ready_.wait_for(lock, most, has_some);
  is_awaited_ = false;
  waiting_rounds_ = 0;
  ReplyNews rest;
  rest.told_apart = news_.told_apart;
  rest.problem = news_.problem;  // of a reply that is to end by it: told with its end
  return std::exchange(news_, std::move(rest));
}

void QueuedReply::tell(const ReplyProgress& progress) {
  bool is_awaited = false;
  {
    const std::lock_guard lock(mutex_);
    is_awaited = is_awaited_;
    news_.told_apart = progress.thought.told_apart;
    if (progress.logprobs != nullptr) news_.tokens.push_back({*progress.logprobs, progress.text_end});
    if (progress.thought.told_apart) {
      news_.thinking += progress.thought_text();
      news_.text += progress.answer_text();
    } else {
      news_.text += progress.text;
    }
  }
  if (is_awaited) ready_.notify_one();
}

/// Waits to be taken with what comes next.
void QueuedReply::tell(const TokenLogprobs& prompt_token) {
  const std::lock_guard lock(mutex_);
  news_.prompt_logprobs.push_back(prompt_token);
}

void QueuedReply::tell(Event event) {
  const auto* round = std::get_if<RoundFinished>(&event);
  bool is_awaited = false;
  {
    const std::lock_guard lock(mutex_);
    is_awaited = is_awaited_;
    if (round != nullptr) waiting_rounds_ += sizeof(RoundRecord) + bulk_of(*round->round);
    if (waiting_rounds_ > kMostWaitingRounds) {
      news_.problem = Error(ErrorKind::cancelled, "The passes of the reply were not read fast enough.");
      stop_.request_stop();
      return;
    }
    news_.events.push_back(std::move(event));
  }
  if (is_awaited) ready_.notify_one();
}

ReplyCallbacks QueuedReply::callbacks() {
  ReplyCallbacks callbacks;
  if (publisher_) callbacks = publisher_->callbacks(true, {});
  callbacks.stop = stop_.get_token();
  callbacks.prompt_token = [this](const TokenLogprobs& token) { tell(token); };
  callbacks.token = [this, also = std::move(callbacks.token)](const ReplyProgress& progress) {
    if (also) also(progress);
    tell(progress);
  };
  return callbacks;
}

void QueuedReply::end(const Engine& engine, const Reply* reply, const std::optional<Error>& problem) {
  if (publisher_) {
    publisher_->flush();
    if (reply != nullptr) tell(Event(engine.finished(0, *reply, request_.settings.mode)));
  }
  {
    const std::lock_guard lock(mutex_);
    news_.over = true;
    if (problem && !news_.problem) news_.problem = problem;
    if (reply != nullptr) {
      news_.reason = reply->reason;
      news_.stop_string = reply->stop_string;
      news_.calls = reply->calls;
      news_.prompt_tokens = reply->prompt_tokens;
      news_.reused_tokens = reply->reused_tokens;
      news_.reply_tokens = static_cast<uint32_t>(reply->ids.size());
    }
  }
  ready_.notify_one();
}

}  // namespace canopy
