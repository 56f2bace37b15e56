#pragma once
// One reply as events: what ReplyCallbacks tell, for a front end.

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "engine/client/engine_client.h"
#include "engine/session/reply.h"

namespace canopy {

class ReplyPublisher {
 public:
  /// `wake` false: the event may wait until the front end looks by itself.
  using Publish = std::function<void(Event event, bool wake)>;

  /// begun: tokens that the reply has already (Generate::begun).
  ReplyPublisher(uint64_t reply_id, uint32_t prompt_tokens, uint32_t begun, Publish publish);

  /// Valid as long as this stays where it is. `rounds`: publish them, too.
  ReplyCallbacks callbacks(bool rounds, std::stop_token stop);

  /// Publishes text that waits. To be called when the reply ended, however it did.
  void flush();

 private:
  void token(const ReplyProgress& progress);
  void round(const RoundRecord& record);
  bool is_due();
  void publish_text(bool wake);

  Publish publish_;
  uint32_t prompt_tokens_, begun_;
  TextDelta pending_;
  bool has_pending_ = false;
  std::vector<uint32_t> text_ends_;  // of the tokens that belong to no published round yet
  uint32_t text_begin_ = 0;          // where the first of them begins
  uint32_t tokens_ = 0;              // of the reply
  std::chrono::steady_clock::time_point woken_;
};

}  // namespace canopy
