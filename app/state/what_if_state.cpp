#include "app/state/what_if_state.h"

#include <algorithm>
#include <utility>

#include "app/rounds/trace_log.h"

namespace canopy::app {
namespace {

// Rounds of a growing reply before it is worth asking again.
constexpr size_t kLeastNews = 16, kLeastChipNews = 64;

void change(WhatIfState& state, const SetWhatIfDevice& c) {
  if (c.place < state.devices.size()) state.devices[c.place] = c.device;
}

void change(WhatIfState& state, const AddCalibration& c) {
  std::erase(state.calibrations, c.path);
  state.calibrations.push_back(c.path);
  if (state.calibrations.size() > kMostCalibrations) state.calibrations.erase(state.calibrations.begin());
}

void change(WhatIfState& state, const DropCalibration& c) {
  std::erase(state.calibrations, c.path);
}

void change(WhatIfState&, const ShowAsIf&) {}
void change(WhatIfState&, const MakeDense&) {}
void change(WhatIfState&, const StopDense&) {}

std::vector<std::string> choices_of(const WhatIfState& state) {
  std::vector<std::string> choices = state.calibrations;
  choices.insert(choices.end(), state.devices.begin(), state.devices.end());
  return choices;
}

/// The reply on show, as far as it is written; false where a tree of it has left memory. It has a first token.
bool add_live_rounds(const LiveLog& log, const ReplySummary& reply, WhatIfQuestion& question) {
  question.header = log.header();
  question.ended = reply.reason.has_value();
  question.ar_tokens_per_second = reply.ar_tokens_per_second;
  question.first_token = *reply.first_token;
  for (size_t i = reply.first_round; i < reply.first_round + reply.rounds; ++i) {
    std::shared_ptr<const RoundRecord> record = log.round(i);
    if (record == nullptr) return false;
    question.rounds.push_back(std::move(record));
  }
  return true;
}

/// A question about these devices where the last one was about something else.
std::optional<WhatIfQuestion> ask(WhatIfAsked& asked, const RoundsState& rounds,
                                  const std::vector<std::string>& choices, size_t least_news) {
  const std::shared_ptr<RoundLog>& log = rounds.log;
  if (log->rounds() == 0) return std::nullopt;
  const ReplySummary& reply = log->replies()[log->summary(std::min(rounds.playback.shown, log->rounds() - 1)).reply];
  const auto recording = std::dynamic_pointer_cast<const TraceLog>(log);
  const size_t count = recording != nullptr ? log->rounds() : reply.first_round + reply.rounds;
  const bool ended = recording != nullptr || reply.reason.has_value();
  const size_t first = recording != nullptr ? 0 : reply.first_round;
  const bool same_text = asked.log.lock() == log && asked.first_round == first;
  const bool same = same_text && asked.choices == choices;
  const bool news =
      count < asked.rounds || (ended && (!asked.ended || count != asked.rounds)) || count >= asked.rounds + least_news;
  if (same && !news) return std::nullopt;
  WhatIfQuestion question;
  bool is_whole = true;
  if (recording != nullptr) {
    question.trace = std::shared_ptr<const TraceReader>(recording, &recording->reader());
    question.header = recording->reader().header();
  } else {
    const auto live = std::dynamic_pointer_cast<const LiveLog>(log);
    if (live == nullptr || !reply.first_token || reply.rounds == 0) return std::nullopt;
    is_whole = add_live_rounds(*live, reply, question);
  }
  // Another recording or reply: what is there is about something else.
  if (!same_text) asked.answer = {};
  asked.log = log;
  asked.first_round = first;
  asked.rounds = count;
  asked.ended = ended;
  asked.choices = choices;
  question.number = ++asked.asked;  // answers to earlier ones are not taken any more
  if (is_whole) return question;
  asked.answer = {};
  asked.answer.problem = "The trees of this reply are no longer in memory. Record replies to keep them whole.";
  return std::nullopt;
}

}  // namespace

void update(WhatIfState& state, const WhatIfCommand& command) {
  std::visit([&](const auto& c) { change(state, c); }, command);
}

std::optional<WhatIfQuestion> next_question(WhatIfState& state, const RoundsState& rounds) {
  std::optional<WhatIfQuestion> question = ask(state, rounds, choices_of(state), kLeastNews);
  if (!question) return question;
  question->calibrations = state.calibrations;
  question->devices = state.devices;
  return question;
}

std::optional<WhatIfQuestion> next_chip_question(WhatIfState& state, const RoundsState& rounds,
                                                 const std::string& device) {
  // What is predicted already is not predicted from.
  if (!rounds.log->times().empty()) return std::nullopt;
  std::optional<WhatIfQuestion> question = ask(state.chip, rounds, {device}, kLeastChipNews);
  if (!question) return question;
  question->devices = {device};
  question->brief = true;
  return question;
}

void take_answer(WhatIfAsked& asked, WhatIfAnswer answer) {
  if (answer.number != asked.asked) return;
  // A growing reply: until the new answer is whole, the earlier one is shown where it has more.
  if (!answer.whole && answer.there.size() < asked.answer.there.size()) return;
  asked.answer = std::move(answer);
}

}  // namespace canopy::app
