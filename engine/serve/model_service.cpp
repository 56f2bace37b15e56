#include "engine/serve/model_service.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/serve/model_server.h"
#include "engine/session/reply_trace.h"
#include "engine/text/unicode.h"

namespace canopy {
namespace {

// Of replies that are over, so that they can be recorded still.
constexpr size_t kMostKeptReplies = 32, kMostKeptReplyBytes = size_t{64} << 20;

ServeOptions serve_options_of(const Serve& wish, const Engine& engine) {
  ServeOptions options;
  options.address = {wish.host, wish.port};
  if (!wish.key.empty()) options.keys.push_back({wish.key, {}});
  options.hosts = wish.hosts;
  options.origins = wish.origins;
  options.api.most_budget = engine.model->limits().max_width - 1;
  return options;
}

/// A reply that was asked for, with what a recording has of it beside the reply.
struct WatchedReply {
  ServedRequest request;
  std::optional<ReplyStart> started;
  std::optional<TraceDrafting> drafting;
  std::optional<ReplyPublisher> publisher;  // while it is written
  std::string record_path;                  // that it is recorded to at its end; empty: it is not
  Reply reply;                              // once it is over
  size_t bytes = 0;                         // of its rounds
};

size_t bytes_of_rounds(const Reply& reply) {
  size_t bytes = 0;
  for (const RoundRecord& round : reply.rounds) bytes += sizeof(RoundRecord) + bulk_of(round);
  return bytes;
}

class WatchedServer final : public ModelService, public ServedObserver {
 public:
  WatchedServer(Engine& engine, const Serve& wish, ServiceCallbacks callbacks)
      : engine_(engine),
        publish_(std::move(callbacks.publish)),
        first_id_(next_first_id()),
        server_(std::make_unique<ModelServer>(engine, serve_options_of(wish, engine), this, callbacks.wake)) {
    tell_serving(0);
  }
  ~WatchedServer() override { server_.reset(); }  // which tells of the replies that it ends
  WatchedServer(const WatchedServer&) = delete;
  WatchedServer& operator=(const WatchedServer&) = delete;

  bool step() override {
    const bool more = server_->step();
    if (const uint32_t waiting = server_->scheduler().waiting(); waiting != waiting_) tell_serving(waiting);
    return more;
  }

  void stop(uint64_t reply_id) override {
    if (reply_id >= first_id_) server_->scheduler().stop(reply_id - first_id_);
  }

  void pause(uint64_t reply_id, bool paused) override {
    if (reply_id >= first_id_) server_->scheduler().pause(reply_id - first_id_, paused);
  }

  void record(const RecordServed& wish) override {
    if (const auto found = written_.find(wish.reply_id); found != written_.end()) {
      found->second->record_path = wish.path;
      return;
    }
    const auto is_asked = [&](const auto& each) { return reply_id_of(each->request) == wish.reply_id; };
    if (const auto kept = std::ranges::find_if(kept_, is_asked); kept != kept_.end()) {
      record_into(**kept, wish.path);
      return;
    }
    publish_(ServedRecorded{wish.reply_id, wish.path, "Its passes are not kept any more."}, true);
  }

 private:
  /// Ids of replies are never the same twice, whatever was served before.
  static uint64_t next_first_id() {
    static std::atomic<uint64_t> servers{0};
    return kFirstServedReply + (servers++ << 32);
  }
  uint64_t reply_id_of(const ServedRequest& request) const { return first_id_ + request.id; }

  void tell_serving(uint32_t waiting) {
    waiting_ = waiting;
    publish_(Serving{true, server_->url(), server_->model(), waiting, {}}, true);
  }

  Generate asked_for(const ServedRequest& request) const {
    Generate asked;
    asked.reply_id = reply_id_of(request);
    asked.turns = request.turns;
    if (asked.turns.empty())
      asked.raw_prompt = to_valid_utf8(engine_.text.tokenizer->decode(request.prompt, /*skip_special=*/false));
    asked.sampling = request.settings.sampling;
    asked.max_tokens = request.settings.max_tokens;
    asked.mode = request.settings.mode;
    asked.budget = request.settings.budget;
    asked.sources = request.settings.sources;
    asked.thinking = request.thinking;
    asked.begun = {request.settings.begun, {}, engine_.text.tokenizer->identity()};
    asked.stop_loops = request.settings.stop_loops;
    asked.rounds = true;
    return asked;
  }

  ReplyCallbacks begin(const ServedRequest& request) override {
    const uint64_t id = reply_id_of(request);
    publish_(ServedBegun{asked_for(request), printable(request.client.address), printable(request.kind)}, true);
    auto reply = std::make_unique<WatchedReply>();
    WatchedReply& of = *reply;
    of.request = request;
    of.publisher.emplace(id, static_cast<uint32_t>(request.prompt.size()),
                         static_cast<uint32_t>(request.settings.begun.size()), publish_);
    ReplyCallbacks callbacks = of.publisher->callbacks(true, {});
    callbacks.started = [this, &of, then = std::move(callbacks.started)](const ReplyStart& start) {
      of.started = start;
      then(start);
      tell_begun(of.request);
    };
    callbacks.drafting = [&of](const TraceDrafting& drafting) { of.drafting = drafting; };
    written_.insert_or_assign(id, std::move(reply));
    return callbacks;
  }

  void end(uint64_t id, const Reply* reply, const std::optional<Error>& problem) override {
    const auto found = written_.find(first_id_ + id);
    if (found == written_.end()) return;
    std::unique_ptr<WatchedReply> of = std::move(found->second);
    written_.erase(found);
    of->publisher->flush();
    of->publisher.reset();
    if (reply == nullptr) {
      const Error error = problem.value_or(cancelled("The reply was ended."));
      if (!of->record_path.empty())
        publish_(ServedRecorded{first_id_ + id, of->record_path, "The reply failed: " + std::string(error.what())},
                 true);
      publish_(Failure{error.kind(), "A served reply failed", printable(error.what(), 4096, LineBreaks::keep),
                       first_id_ + id},
               true);
      return;
    }
    publish_(engine_.finished(first_id_ + id, *reply, of->request.settings.mode), true);
    publish_(engine_.memory_use(), true);
    engine_.keep_what_was_learnt();
    keep(std::move(of), *reply);
  }

  /// What stood before the tokens that are asked for, where the reply goes on with some.
  void tell_begun(const ServedRequest& request) const {
    const std::vector<uint32_t>& begun = request.settings.begun;
    if (begun.empty()) return;
    ReplyText text(*engine_.text.tokenizer, request.settings.stop_strings, request.prompt);
    for (const uint32_t id : begun) text.push(id);
    TextDelta told;
    told.reply_id = reply_id_of(request);
    told.text = text.text();
    told.reply_tokens = static_cast<uint32_t>(begun.size());
    told.context_used = static_cast<uint32_t>(request.prompt.size() + begun.size());
    told.thought = text.thought();
    publish_(std::move(told), true);
  }

  void keep(std::unique_ptr<WatchedReply> of, const Reply& reply) {
    of->bytes = bytes_of_rounds(reply);
    const std::string path = std::exchange(of->record_path, {});
    if (path.empty() && of->bytes > kMostKeptReplyBytes) return;
    of->reply = reply;
    if (!path.empty()) record_into(*of, path);
    if (of->bytes > kMostKeptReplyBytes) return;
    kept_bytes_ += of->bytes;
    kept_.push_back(std::move(of));
    while (kept_.size() > kMostKeptReplies || kept_bytes_ > kMostKeptReplyBytes) {
      kept_bytes_ -= kept_.front()->bytes;
      kept_.pop_front();
    }
  }

  void record_into(const WatchedReply& of, const std::string& path) {
    ServedRecorded told{reply_id_of(of.request), path, {}};
    try {
      ReplyTrace trace(path, engine_);
      trace.add(of.request.prompt, of.request.settings, of.started, of.drafting, of.reply);
      trace.finish();
      told.problem = trace.problem();
    } catch (...) {
      told.problem = printable(as_error(std::current_exception()).what(), 4096, LineBreaks::keep);
    }
    publish_(std::move(told), true);
  }

  Engine& engine_;
  const ReplyPublisher::Publish publish_;
  const uint64_t first_id_;
  uint32_t waiting_ = 0;                                       // as it was told last
  std::map<uint64_t, std::unique_ptr<WatchedReply>> written_;  // by the reply's id
  std::deque<std::unique_ptr<WatchedReply>> kept_;             // that are over, the newest last
  size_t kept_bytes_ = 0;
  std::unique_ptr<ModelServer> server_;  // last: it tells this of its replies
};

}  // namespace

std::unique_ptr<ModelService> make_model_service(Engine& engine, const Serve& wish, ServiceCallbacks callbacks) {
  return std::make_unique<WatchedServer>(engine, wish, std::move(callbacks));
}

}  // namespace canopy
