#include "app/share/live_run.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace canopy::app {
namespace {

/// Some rounds of a log, with the texts of their tokens.
class CopiedLog final : public RoundLog {
 public:
  CopiedLog(const RoundLog& log, size_t first, size_t count) : origin_(log.origin()) {
    for (size_t i = first; i < first + count; ++i) {
      const std::shared_ptr<const RoundRecord> record = log.round(i);
      if (!record)
        throw bad_input("The tree of round " + std::to_string(i - first + 1) +
                        " of this reply is no longer in memory, so that no page can be made of it. Record replies to "
                        "keep them whole.");
      begin_reply(log, i);
      this->count(*record);
      for (const RoundNode& node : record->nodes) keep(log, node.node.token);
      for (const uint32_t token : record->emitted) keep(log, token);
      records_.push_back(record);
    }
  }

  std::shared_ptr<const RoundRecord> round(size_t index) const override {
    return index < records_.size() ? records_[index] : nullptr;
  }
  std::optional<trace::Piece> piece(uint32_t token) const override {
    const auto found = pieces_.find(token);
    if (found == pieces_.end()) return std::nullopt;
    return trace::Piece{found->second.first, found->second.second};
  }
  bool is_live() const override { return false; }
  std::string origin() const override { return origin_; }

 private:
  void begin_reply(const RoundLog& log, size_t round) {
    const uint32_t number = log.summary(round).reply;
    if (!replies_.empty() && number == last_reply_) return;
    last_reply_ = number;
    ReplySummary reply = log.replies()[number];
    reply.first_round = records_.size();
    reply.rounds = 0;
    replies_.push_back(std::move(reply));
  }

  void keep(const RoundLog& log, uint32_t token) {
    if (pieces_.contains(token)) return;
    if (const auto piece = log.piece(token))
      pieces_.emplace(token, std::pair(std::string(piece->bytes), piece->control));
  }

  std::string origin_;
  uint32_t last_reply_ = 0;
  std::vector<std::shared_ptr<const RoundRecord>> records_;
  std::unordered_map<uint32_t, std::pair<std::string, bool>> pieces_;
};

}  // namespace

size_t round_in_copy(const LiveLog& log, size_t round) {
  return round - log.first_of_reply(round);
}

SharedRun copied_run(const LiveLog& log, const Conversation& chat, size_t round) {
  if (round >= log.rounds()) throw bad_input("There is no round to share yet.");
  const ReplySummary& reply = log.replies()[log.summary(round).reply];
  const uint64_t id = reply.message != 0 ? reply.message : reply.id;
  for (const Conversation::Node& node : chat.nodes()) {
    if (node.message.id != id) continue;
    SharedReply shared;
    shared.message = node.message;
    const size_t first = log.first_of_reply(round);
    shared.rounds = node.message.rounds;
    if (shared.rounds == 0 || first + shared.rounds > log.rounds() || round >= first + shared.rounds)
      throw bad_input("The rounds of this reply do not stand together in memory, so that no page can be made of them.");
    if (node.parent < chat.nodes().size()) shared.question = chat.nodes()[node.parent].message.text;
    SharedRun run;
    run.header = log.header();
    run.log = std::make_shared<const CopiedLog>(log, first, shared.rounds);
    run.replies.push_back(std::move(shared));
    return run;
  }
  throw bad_input("The chat that is open does not have the reply of this round.");
}

}  // namespace canopy::app
