#include "app/share/live_run.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace canopy::app {
namespace {

/// The rounds of a reply, all of them in memory.
class ReadLog final : public RoundLog {
 public:
  ReadLog(LiveRounds rounds, const ShareCallbacks& callbacks) : rounds_(std::move(rounds)) {
    for (size_t i = 0; i < rounds_.rounds(); ++i) {
      if (callbacks.stop.stop_requested()) throw cancelled("The export was cancelled.");
      std::shared_ptr<const RoundRecord> record = rounds_.round(i);
      if (!record)
        throw bad_input("The tree of round " + std::to_string(i + 1) +
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
  if (round >= log.rounds()) throw bad_input("There is no round to share yet.");
  const ReplySummary& reply = log.replies()[log.summary(round).reply];
  const uint64_t id = reply.message != 0 ? reply.message : reply.id;
  for (const Conversation::Node& node : chat.nodes()) {
    if (node.message.id != id) continue;
    const size_t first = log.first_of_reply(round), rounds = node.message.rounds;
    if (rounds == 0 || first + rounds > log.rounds() || round >= first + rounds)
      throw bad_input("The rounds of this reply do not stand together in memory, so that no page can be made of them.");
    LiveReply live{log.share(first, rounds), log.header(), {}, round - first};
    if (node.parent < chat.nodes().size()) live.reply.question = chat.nodes()[node.parent].message.text;
    live.reply.message = node.message;
    live.reply.rounds = rounds;
    return live;
  }
  throw bad_input("The chat that is open does not have the reply of this round.");
}

SharedRun read_run(const LiveReply& reply, const ShareCallbacks& callbacks) {
  SharedRun run;
  run.header = reply.header;
  run.log = std::make_shared<const ReadLog>(reply.rounds, callbacks);
  run.replies.push_back(reply.reply);
  return run;
}

}  // namespace canopy::app
