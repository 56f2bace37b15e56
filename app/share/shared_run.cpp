#include "app/share/shared_run.h"

#include <algorithm>
#include <utility>

#include "app/conversation/replay_chat.h"
#include "engine/base/error.h"

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
    throw bad_input("There is no round " + std::to_string(first) + ": the recording has rounds 0 to " +
                    std::to_string(rounds - 1) + ".");
  const size_t left = rounds - first, wanted = count.value_or(left);
  if (wanted == 0 || wanted > left)
    throw bad_input(std::to_string(wanted) + " rounds from round " + std::to_string(first) +
                    " on were asked for; the recording has " + std::to_string(left) + " there.");
  if (wanted > most)
    throw bad_input("The recording has " + std::to_string(wanted) + " rounds from round " + std::to_string(first) +
                    " on; at most " + std::to_string(most) + " fit. Choose fewer of them.");
  return {first, wanted};
}

}  // namespace canopy::app
