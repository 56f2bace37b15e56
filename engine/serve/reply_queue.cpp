#include "engine/serve/reply_queue.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace canopy {

ReplyNews QueuedReply::take(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  const auto has_some = [this] {
    return news_.over || !news_.text.empty() || !news_.thinking.empty() || !news_.rounds.empty();
  };
  ready_.wait_for(lock, most, has_some);
  waiting_rounds_ = 0;
  ReplyNews rest;
  rest.told_apart = news_.told_apart;
  return std::exchange(news_, std::move(rest));
}

void QueuedReply::tell(const ReplyProgress& progress) {
  {
    const std::lock_guard lock(mutex_);
    news_.told_apart = progress.thought.told_apart;
    if (progress.thought.told_apart) {
      news_.thinking += progress.thought_text();
      news_.text += progress.answer_text();
    } else {
      news_.text += progress.text;
    }
  }
  ready_.notify_one();
}

void QueuedReply::tell(const RoundRecord& round) {
  if (!wants_rounds_) return;
  auto copy = std::make_shared<const RoundRecord>(round);
  {
    const std::lock_guard lock(mutex_);
    waiting_rounds_ += sizeof(RoundRecord) + bulk_of(*copy);
    if (waiting_rounds_ > kMostWaitingRounds) {
      news_.problem = Error(ErrorKind::cancelled, "The rounds of the reply were not read fast enough.");
      stop_.request_stop();
      return;
    }
    news_.rounds.push_back(std::move(copy));
  }
  ready_.notify_one();
}

void QueuedReply::end(const Reply* reply, const std::optional<Error>& problem) {
  {
    const std::lock_guard lock(mutex_);
    news_.over = true;
    if (problem && !news_.problem) news_.problem = problem;
    if (reply != nullptr) {
      news_.reason = reply->reason;
      news_.calls = reply->calls;
      news_.prompt_tokens = reply->prompt_tokens;
      news_.reused_tokens = reply->reused_tokens;
      news_.reply_tokens = static_cast<uint32_t>(reply->ids.size());
    }
  }
  ready_.notify_one();
}

std::shared_ptr<QueuedReply> ReplyQueue::put(std::vector<uint32_t> prompt, ReplySettings settings, bool rounds) {
  auto reply = std::make_shared<QueuedReply>(std::move(prompt), std::move(settings), rounds);
  {
    const std::lock_guard lock(mutex_);
    // Those whose clients have gone take no place.
    std::erase_if(waiting_, [](const auto& each) { return each->stop_.stop_requested(); });
    if (waiting_.size() >= most_waiting_) return nullptr;
    waiting_.push_back(reply);
  }
  filled_.notify_one();
  return reply;
}

void ReplyQueue::run(const Engine& engine, const std::stop_token& stop) {
  for (;;) {
    std::shared_ptr<QueuedReply> next;
    {
      std::unique_lock lock(mutex_);
      if (!filled_.wait(lock, stop, [this] { return !waiting_.empty(); }) || stop.stop_requested()) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
      if (next->stop_.stop_requested()) continue;
      writing_ = true;
    }
    ReplyCallbacks callbacks;
    callbacks.stop = next->stop_.get_token();
    callbacks.token = [&](const ReplyProgress& progress) { next->tell(progress); };
    callbacks.round = [&](const RoundRecord& round) { next->tell(round); };
    const std::stop_callback ends(stop, [&] { next->cancel(); });
    std::optional<Reply> reply;
    std::optional<Error> problem;
    try {
      reply = engine.reply(next->prompt_, next->settings_, callbacks);
    } catch (...) {
      problem = as_error(std::current_exception());
    }
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
      const bool cancelled = reply && reply->reason == FinishReason::cancelled;
      ++(!reply ? counts_.failed : cancelled ? counts_.cancelled : counts_.done);
      if (reply) {
        counts_.prompt_tokens += reply->prompt_tokens;
        counts_.reused_tokens += reply->reused_tokens;
        counts_.reply_tokens += reply->ids.size();
        counts_.prefill_ms += reply->prefill_ms;
        counts_.decode_ms += reply->decode_ms;
        for (const RoundRecord& round : reply->rounds) counts_.rounds.add(round);
      }
    }
    next->end(reply ? &*reply : nullptr, problem);
    if (problem && problem->kind() == ErrorKind::device_lost) throw *problem;
  }
}

ServedCounts ReplyQueue::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

uint32_t ReplyQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(waiting_.size());
}

bool ReplyQueue::writing() const {
  const std::lock_guard lock(mutex_);
  return writing_;
}

}  // namespace canopy
