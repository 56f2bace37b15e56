#include "app/export/shared_run.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include "app/state/recording.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/text.h"

namespace canopy::app {

SharedRun run_of(std::shared_ptr<const TraceLog> log) {
  SharedRun run;
  run.header = log->reader().header();
  run.notice = log->reader().notice();
  uint64_t ids = 0;
  ReplayChat chat(*log, ids);
  chat.show(log->rounds() - 1);
  std::string question;
  for (const Message& message : chat.conversation()) {
    if (message.role == Role::user) question = message.text;
    const std::optional<size_t> first = chat.first_round(message.id);
    if (!first || message.rounds == 0) continue;
    run.replies.push_back({std::exchange(question, {}), message, *first, message.rounds});
  }
  run.log = std::move(log);
  return run;
}

void ShareCallbacks::step(size_t done, size_t total) const {
  if (stop.stop_requested()) throw cancelled("The export was cancelled.");
  if (progress) progress(done, total);
}

RoundRange round_range(size_t rounds, size_t first, std::optional<size_t> count, size_t most) {
  if (first >= rounds)
    throw bad_input("There is no pass " + std::to_string(first) + ": the recording has passes 0 to " +
                    std::to_string(rounds - 1) + ".");
  const size_t left = rounds - first, wanted = count.value_or(left);
  if (wanted == 0 || wanted > left)
    throw bad_input(std::to_string(wanted) + " passes from pass " + std::to_string(first) +
                    " on were asked for; the recording has " + std::to_string(left) + " there.");
  if (wanted > most)
    throw bad_input("The recording has " + std::to_string(wanted) + " passes from pass " + std::to_string(first) +
                    " on; at most " + std::to_string(most) + " fit. Choose fewer of them.");
  return {first, wanted};
}

namespace {

/// The rounds of a reply, all of them in memory.
class ReadLog final : public RoundLog {
 public:
  ReadLog(LiveRounds rounds, const ShareCallbacks& callbacks) : rounds_(std::move(rounds)) {
    for (size_t i = 0; i < rounds_.rounds(); ++i) {
      if (callbacks.stop.stop_requested()) throw cancelled("The export was cancelled.");
      std::shared_ptr<const RoundRecord> record = rounds_.round(i);
      if (!record)
        throw bad_input("The tree of pass " + std::to_string(i + 1) +
                        " of this reply is no longer in memory, so that neither a page nor an animation can be made of "
                        "it. Record replies to keep them whole.");
      if (i == 0 || rounds_.number_of_reply(i) != rounds_.number_of_reply(i - 1)) begin_reply(rounds_.reply_of(i));
      count(*record);
      records_.push_back(std::move(record));
    }
  }

  std::shared_ptr<const RoundRecord> round(size_t index) const override {
    return index < records_.size() ? records_[index] : nullptr;
  }
  std::optional<trace::Piece> piece(uint32_t token) const override { return rounds_.piece(token); }
  bool is_live() const override { return false; }
  std::string origin() const override { return rounds_.origin(); }

 private:
  void begin_reply(ReplySummary reply) {
    reply.first_round = records_.size();
    reply.rounds = 0;
    replies_.push_back(std::move(reply));
  }

  LiveRounds rounds_;
  std::vector<std::shared_ptr<const RoundRecord>> records_;
};

}  // namespace

LiveReply live_reply(const LiveLog& log, const Conversation& chat, size_t round) {
  if (round >= log.rounds()) throw bad_input("There is no pass to share yet.");
  const ReplySummary& reply = log.replies()[log.summary(round).reply];
  const uint64_t id = reply.message != 0 ? reply.message : reply.id;
  for (const Conversation::Node& node : chat.nodes()) {
    if (node.message.id != id) continue;
    const size_t first = log.first_of_reply(round), rounds = node.message.rounds;
    if (rounds == 0 || first + rounds > log.rounds() || round >= first + rounds)
      throw bad_input("The passes of this reply do not stand together in memory, so that no page can be made of them.");
    LiveReply live{log.share(first, rounds), log.header(), {}, round - first};
    if (node.parent < chat.nodes().size()) live.reply.question = chat.nodes()[node.parent].message.text;
    live.reply.message = node.message;
    live.reply.rounds = rounds;
    return live;
  }
  throw bad_input("The chat that is open does not have the reply of this pass.");
}

SharedRun read_run(const LiveReply& reply, const ShareCallbacks& callbacks) {
  SharedRun run;
  run.header = reply.header;
  run.log = std::make_shared<const ReadLog>(reply.rounds, callbacks);
  run.replies.push_back(reply.reply);
  return run;
}

struct ShareJob::Shared {
  std::mutex mutex;
  std::function<void()> wake;
  std::optional<ShareNews> news;

  void tell(ShareNews latest) {
    std::function<void()> call;
    {
      const std::lock_guard lock(mutex);
      news = std::move(latest);
      call = wake;
    }
    if (call) call();
  }
};

ShareJob::ShareJob() : shared_(std::make_shared<Shared>()) {}

ShareJob::~ShareJob() {
  const std::lock_guard lock(shared_->mutex);
  shared_->wake = {};
}

void ShareJob::set_wake(std::function<void()> wake) {
  const std::lock_guard lock(shared_->mutex);
  shared_->wake = std::move(wake);
}

void ShareJob::start(std::filesystem::path path, Make make) {
  thread_ = {};
  take();
  thread_ =
      std::jthread([shared = shared_, path = std::move(path), make = std::move(make)](const std::stop_token& stop) {
        ShareNews end;
        end.ended = true;
        try {
          const ShareCallbacks callbacks{[&](size_t done, size_t total) {
                                           shared->tell({done, total, false, {}, {}});
                                         },
                                         stop};
          const std::string content = make(callbacks);
          callbacks.step(1, 1);
          std::error_code ignored;  // writing says why it is not possible
          if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
          write_file_atomically(path, content, PipeWithoutReader::refuse);
          end.path = path.string();
        } catch (const Error& e) {
          if (e.kind() != ErrorKind::cancelled) end.problem = printable(e.what(), 4096, LineBreaks::keep);
        } catch (...) {
          end.problem = printable(as_error(std::current_exception()).what(), 4096);
        }
        shared->tell(std::move(end));
      });
}

void ShareJob::stop() {
  thread_.request_stop();
}

std::optional<ShareNews> ShareJob::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->news, std::nullopt);
}

}  // namespace canopy::app
