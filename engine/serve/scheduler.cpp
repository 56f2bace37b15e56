#include "engine/serve/scheduler.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <utility>

#include "engine/base/error.h"
#include "engine/model/page_table.h"
#include "engine/session/reply_writer.h"

namespace canopy {
namespace {

/// Pages of a text of so many tokens, which ends with the context.
uint32_t pages_of(uint64_t tokens, uint32_t context) {
  return pages_for(static_cast<uint32_t>(std::min<uint64_t>(tokens, context)));
}

std::string name_of(const ServedClient& client) {
  return std::to_string(client.key) + " " + client.address;
}

template <class... T>
std::function<void(T...)> also(std::function<void(T...)> first, std::function<void(T...)> then) {
  if (!first || !then) return first ? first : then;
  return [first = std::move(first), then = std::move(then)](T... told) {
    first(told...);
    then(told...);
  };
}

/// Who asked, and who watches.
ReplyCallbacks told_to_both(ReplyCallbacks asker, ReplyCallbacks watcher) {
  return {.prefill = also(std::move(asker.prefill), std::move(watcher.prefill)),
          .prompt_token = also(std::move(asker.prompt_token), std::move(watcher.prompt_token)),
          .started = also(std::move(asker.started), std::move(watcher.started)),
          .drafting = also(std::move(asker.drafting), std::move(watcher.drafting)),
          .token = also(std::move(asker.token), std::move(watcher.token)),
          .round = also(std::move(asker.round), std::move(watcher.round)),
          .stop = std::move(asker.stop)};
}

}  // namespace

// What was learnt of the replies to a key.

std::shared_ptr<DraftMemory> KeyMemories::of(size_t key) {
  const uint64_t owner = uint64_t{key} + 1;  // 0 is whoever has the engine
  const auto known = std::ranges::find(memories_, owner, [](const auto& each) { return each->owner; });
  if (known != memories_.end()) {
    memories_.splice(memories_.begin(), memories_, known);
  } else {
    memories_.push_front(engine_.new_memory(owner));
  }
  return memories_.front();
}

void KeyMemories::bound() {
  uint64_t bytes = 0;
  uint32_t keys = 0;
  std::erase_if(memories_, [&](const std::shared_ptr<DraftMemory>& each) {
    bytes += each->memory_bytes();
    return ++keys > 1 && (keys > most_keys_ || bytes > most_bytes_);
  });
}

// A reply that is being written.

struct Scheduler::Running {
  Running(const Engine& engine, std::shared_ptr<QueuedReply> whose, std::shared_ptr<DraftMemory> learns,
          ReplyCallbacks told)
      : reply(std::move(whose)), memory(std::move(learns)), callbacks(std::move(told)), engine(engine) {}

  const ServedRequest& request() const { return reply->request(); }
  uint32_t tokens() const { return writer ? writer->tokens() : static_cast<uint32_t>(request().prompt.size()); }
  bool is_cancelled() const { return reply->is_cancelled(); }
  bool is_paused() const { return reply->paused_; }
  /// Where it throws, the reply has failed.
  bool step() {
    if (!writer && reply->is_cancelled()) throw cancelled("The reply was stopped.");
    if (!writer) writer = engine.begin_reply(request().prompt, request().settings, callbacks, *memory);
    return writer->step();
  }

  const std::shared_ptr<QueuedReply> reply;
  const std::shared_ptr<DraftMemory> memory;
  const ReplyCallbacks callbacks;
  const Engine& engine;
  std::unique_ptr<ReplyWriter> writer;  // from its first turn on
};

Scheduler::Scheduler(const Engine& engine, const SchedulerLimits& limits, ServedObserver* observer,
                     std::function<void()> wake)
    : engine_(engine),
      limits_(limits),
      observer_(observer),
      wake_(std::move(wake)),
      memories_(engine, limits.most_keys, limits.key_bytes) {}

Scheduler::~Scheduler() {
  end_all();
}

void Scheduler::wake() {
  {
    const std::lock_guard lock(mutex_);
    is_new_ = true;
  }
  changed_.notify_one();
  if (wake_) wake_();
}

std::shared_ptr<QueuedReply> Scheduler::put(ServedRequest request) {
  const std::string client = name_of(request.client);
  const int priority = request.priority;
  std::shared_ptr<QueuedReply> reply;
  drop_cancelled();  // they take no place
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || waiting_.size() >= limits_.most_waiting) return nullptr;
    request.id = ++last_id_;
    reply = std::make_shared<QueuedReply>(std::move(request), [this] { wake(); });
    waiting_.push(client, priority, reply);
  }
  wake();
  return reply;
}

void Scheduler::stop(uint64_t id) {
  if (const std::shared_ptr<QueuedReply> reply = find(id)) reply->cancel();
}

void Scheduler::pause(uint64_t id, bool paused) {
  if (const std::shared_ptr<QueuedReply> reply = find(id)) reply->pause(paused);
}

/// Null where it is over, or was never put.
std::shared_ptr<QueuedReply> Scheduler::find(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto is_it = [id](const std::shared_ptr<QueuedReply>& reply) { return reply->request().id == id; };
  const auto written = std::ranges::find_if(written_, is_it);
  if (written != written_.end()) return *written;
  const std::shared_ptr<QueuedReply>* const waits = waiting_.find_if(is_it);
  return waits != nullptr ? *waits : nullptr;
}

ServedCounts Scheduler::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

uint32_t Scheduler::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(waiting_.size());
}

uint32_t Scheduler::running() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(written_.size());
}

/// Whether it fits into the caches beside all that are being written; one alone always does.
bool Scheduler::has_room_for(const ServedRequest& request) const {
  if (running_.empty()) return true;
  if (running_.size() >= limits_.parallel) return false;
  const Model& model = *engine_.model;
  if (const uint32_t places = model.states().places(); places > 0 && (running_.size() + 1) * kStatesOfText >= places)
    return false;
  const uint32_t context = model.limits().context;
  const uint64_t wanted = std::min(request.settings.max_tokens, limits_.room_to_begin);
  uint64_t pages = pages_of(request.prompt.size() + wanted, context);
  for (const Running& each : running_) pages += pages_of(uint64_t{each.tokens()} + limits_.room_to_go_on, context);
  return pages <= model.pages().pages();
}

/// Ends those that wait and are waited for no more.
void Scheduler::drop_cancelled() {
  std::vector<std::shared_ptr<QueuedReply>> gone;
  {
    const std::lock_guard lock(mutex_);
    waiting_.erase_if([&](const std::shared_ptr<QueuedReply>& each) {
      if (each->is_cancelled()) gone.push_back(each);
      return each->is_cancelled();
    });
    counts_.cancelled += gone.size();
  }
  for (const auto& each : gone) each->end(engine_, nullptr, cancelled("The reply was stopped."));
}

/// Begins those whose turn has come.
void Scheduler::admit() {
  drop_cancelled();
  for (;;) {
    std::shared_ptr<QueuedReply> next;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty() || !has_room_for((*waiting_.next())->request())) return;
      next = waiting_.pop();
      written_.push_back(next);
    }
    ReplyCallbacks callbacks;
    if (observer_ != nullptr) callbacks = observer_->begin(next->request());
    running_.emplace_back(engine_, next, memories_.of(next->request().client.key),
                          told_to_both(next->callbacks(), std::move(callbacks)));
  }
}

/// The reply that is to run a pass, or to end; none where all are paused. Those that began last wait while the caches
/// have too few pages for all: else each would take what the others have just read.
std::list<Scheduler::Running>::iterator Scheduler::next_turn() {
  const auto ends = std::ranges::find_if(running_, &Running::is_cancelled);
  if (ends != running_.end()) return ends;
  const uint32_t context = engine_.model->limits().context;
  std::vector<std::list<Running>::iterator> by_age;
  for (auto each = running_.begin(); each != running_.end(); ++each) by_age.push_back(each);
  std::ranges::sort(by_age, {},
                    [](const auto& each) { return std::pair(-each->request().priority, each->request().id); });
  uint64_t pages = 0;
  std::optional<int> priority;
  std::vector<uint64_t> may;  // ids
  for (const auto& each : by_age) {
    if (each->is_paused() || (priority && each->request().priority < *priority)) continue;
    pages += pages_of(uint64_t{each->tokens()} + limits_.room_to_go_on, context);
    if (priority && pages > engine_.model->pages().pages()) break;
    priority = each->request().priority;
    may.push_back(each->request().id);
  }
  return std::ranges::find_if(
      running_, [&](const Running& each) { return std::ranges::find(may, each.request().id) != may.end(); });
}

bool Scheduler::step() {
  if (has_ended()) return false;
  admit();
  const auto turn = next_turn();
  if (turn == running_.end()) return false;
  std::optional<Reply> reply;
  std::optional<Error> problem;
  try {
    if (turn->step()) {
      running_.splice(running_.end(), running_, turn);
      return true;
    }
    reply = turn->writer->take();
  } catch (...) {
    problem = as_error(std::current_exception());
  }
  finish(turn, reply ? &*reply : nullptr, problem);
  if (problem && problem->kind() == ErrorKind::device_lost) throw *problem;
  return true;
}

void Scheduler::finish(std::list<Running>::iterator which, const Reply* reply, const std::optional<Error>& problem) {
  const std::shared_ptr<QueuedReply> whose = which->reply;
  const bool is_cancelled =
      reply != nullptr ? reply->reason == FinishReason::cancelled : problem && problem->kind() == ErrorKind::cancelled;
  if (reply != nullptr) engine_.end_reply(*which->memory, *reply);
  running_.erase(which);
  memories_.bound();
  {
    const std::lock_guard lock(mutex_);
    std::erase(written_, whose);
    ++(is_cancelled ? counts_.cancelled : reply == nullptr ? counts_.failed : counts_.done);
    if (reply != nullptr) {
      counts_.prompt_tokens += reply->prompt_tokens;
      counts_.reused_tokens += reply->reused_tokens;
      counts_.reply_tokens += reply->ids.size();
      counts_.prefill_ms += reply->prefill_ms;
      counts_.decode_ms += reply->decode_ms;
      for (const RoundRecord& round : reply->rounds) counts_.rounds.add(round);
    }
  }
  if (observer_ != nullptr) observer_->end(whose->request().id, reply, problem);
  whose->end(engine_, reply, problem);
}

bool Scheduler::has_ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void Scheduler::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (step()) continue;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [this] { return is_new_ || ended_; });
    is_new_ = false;
    if (ended_) break;
  }
  end_all();
}

void Scheduler::end_all() {
  std::vector<std::shared_ptr<QueuedReply>> waiting;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    while (!waiting_.empty()) waiting.push_back(waiting_.pop());
  }
  const Error ended = cancelled("The server has ended.");
  while (!running_.empty()) finish(running_.begin(), nullptr, ended);
  for (const auto& reply : waiting) reply->end(engine_, nullptr, ended);
}

namespace {

// Prometheus' text.

void add_metric(std::string& text, const char* name, const char* type, const char* help) {
  text += std::string("# HELP canopy_") + name + " " + help + "\n# TYPE canopy_" + name + " " + type + "\n";
}

void add_value(std::string& text, const char* name, const std::string& labels, double value) {
  char number[40];
  std::snprintf(number, sizeof number, "%.17g", value);
  text += std::string("canopy_") + name + labels + " " + number + "\n";
}

void add_counter(std::string& text, const char* name, const char* help, double value, const char* type = "counter") {
  add_metric(text, name, type, help);
  add_value(text, name, "", value);
}

}  // namespace

std::string metrics_text(const ServedCounts& counts, uint32_t waiting, uint32_t running) {
  std::string text;
  add_metric(text, "replies_total", "counter", "Replies by how they ended.");
  add_value(text, "replies_total", "{ended=\"done\"}", static_cast<double>(counts.done));
  add_value(text, "replies_total", "{ended=\"cancelled\"}", static_cast<double>(counts.cancelled));
  add_value(text, "replies_total", "{ended=\"failed\"}", static_cast<double>(counts.failed));
  add_counter(text, "replies_waiting", "Replies that wait for their turn.", waiting, "gauge");
  add_counter(text, "replies_running", "Replies that are being written.", running, "gauge");
  add_counter(text, "prompt_tokens_total", "Tokens of prompts.", static_cast<double>(counts.prompt_tokens));
  add_counter(text, "prompt_tokens_reused_total", "Of these, those that were in the cache.",
              static_cast<double>(counts.reused_tokens));
  add_counter(text, "reply_tokens_total", "Tokens of replies.", static_cast<double>(counts.reply_tokens));
  add_counter(text, "prefill_seconds_total", "Time of reading prompts.", counts.prefill_ms / 1000);
  add_counter(text, "decode_seconds_total", "Time of the passes that wrote replies.", counts.decode_ms / 1000);
  const RoundStatistics& rounds = counts.rounds;
  add_counter(text, "passes_total", "Passes that wrote replies.", static_cast<double>(rounds.rounds()));
  add_counter(text, "pass_tokens_total", "Tokens that these passes brought.", static_cast<double>(rounds.emitted()));
  add_counter(text, "tokens_per_pass", "Mean tokens of a pass.", rounds.tau(), "gauge");
  add_counter(text, "drafted_tokens_total", "Guessed tokens that passes checked.",
              static_cast<double>(rounds.drafted()));
  add_counter(text, "accepted_tokens_total", "Of these, those that became text.",
              static_cast<double>(rounds.accepted()));
  add_metric(text, "offered_by_depth_total", "counter", "Passes with a guess at this depth, those before it right.");
  for (size_t i = 0; i < rounds.by_depth().size(); ++i)
    add_value(text, "offered_by_depth_total", "{depth=\"" + std::to_string(i + 1) + "\"}",
              static_cast<double>(rounds.by_depth()[i].offered));
  add_metric(text, "accepted_by_depth_total", "counter", "Of these, those with a right guess there.");
  for (size_t i = 0; i < rounds.by_depth().size(); ++i)
    add_value(text, "accepted_by_depth_total", "{depth=\"" + std::to_string(i + 1) + "\"}",
              static_cast<double>(rounds.by_depth()[i].accepted));
  constexpr std::array<std::pair<DraftSources, const char*>, 3> sources = {
      {{kFromDflash, "drafter"}, {kFromSuffix, "text"}, {kUsualSources, "both"}}};
  add_metric(text, "offered_by_source_total", "counter", "Guesses that the model decided on, by who made them.");
  for (const auto& [source, name] : sources)
    add_value(text, "offered_by_source_total", std::string("{source=\"") + name + "\"}",
              static_cast<double>(rounds.by_source(source).offered));
  add_metric(text, "accepted_by_source_total", "counter", "Of these, those that became text.");
  for (const auto& [source, name] : sources)
    add_value(text, "accepted_by_source_total", std::string("{source=\"") + name + "\"}",
              static_cast<double>(rounds.by_source(source).accepted));
  return text;
}

}  // namespace canopy
