#include "app/charts/watch_source.h"

namespace canopy::app {
namespace {

/// What is known of the other device for the reply that holds this round; null where nothing is.
const WhatIfThere* there_of(const ViewModel& view, size_t round, size_t& reply) {
  const WhatIfAsked& chip = view.what_if.chip;
  const RoundLog& log = *view.rounds.log;
  if (chip.log.lock() != view.rounds.log || chip.answer.there.empty()) return nullptr;
  const size_t shown = log.summary(round).reply;
  reply = 0;
  if (log.is_live()) return log.replies()[shown].first_round == chip.first_round ? chip.answer.there[0].get() : nullptr;
  // Replies without a text are not re-run.
  for (size_t i = 0; i < shown; ++i) reply += log.replies()[i].first_token && log.replies()[i].rounds > 0 ? 1 : 0;
  return chip.answer.there[0].get();
}

/// The passes there up to the place of this round.
Elsewhere elsewhere_at(const ViewModel& view, std::optional<size_t> round, const RoundRecord* record) {
  // What is predicted already is not predicted from.
  if (!round || record == nullptr || !view.rounds.log->times().empty()) return {};
  size_t reply = 0;
  const WhatIfThere* there = there_of(view, *round, reply);
  return there != nullptr ? elsewhere_up_to(*there, reply, record->context) : Elsewhere();
}

/// The newest round that may be spoken of: the one on show, or the one before it; nullopt before the first.
std::optional<size_t> newest_with(const Playback& play, bool shown_too) {
  if (shown_too) return play.shown;
  return play.shown > 0 ? std::optional(play.shown - 1) : std::nullopt;
}

std::shared_ptr<const RoundRecord> record_of(const RoundLog& log, std::optional<size_t> round) {
  return round && *round < log.rounds() ? log.round(*round) : nullptr;
}

}  // namespace

void WatchSource::update(const ViewModel& view) {
  const std::shared_ptr<RoundLog>& log = view.rounds.log;
  const Playback& play = view.rounds.playback;
  // In slow motion tokens count when they have arrived in the text, and a pass has its price when it has been checked:
  // until then the figures are those of the passes before it. The tour is about one pass, and its figures stand still.
  const bool still = view.shell.tour.shown;
  const std::optional<size_t> counted = newest_with(play, still || play.told()),
                              priced = newest_with(play, still || play.checked());
  const TrailPoint nothing;
  const std::shared_ptr<const RoundRecord> pass = record_of(*log, priced);
  const ArReference plain = priced ? ar_reference(view, *priced) : ArReference();
  const std::shared_ptr<const RoundRecord> told = record_of(*log, counted);
  const Elsewhere elsewhere = elsewhere_at(view, counted, told.get());
  WatchQuestion question;
  question.reply = counted ? &trail_.up_to(log, *counted, StatisticsTrail::kRoundsAFrame) : &nothing;
  question.shown = pass.get();
  question.plain = &plain;
  question.elsewhere = &elsewhere;
  question.live = log->is_live();
  question.times = std::string(log->times());
  question.on_cpu = question.live ? view.model && view.model->on_processor() : log->on_processor();
  question.now_ms = view.chat.now_ms;
  numbers_ = watch_numbers(question);
  // The costs of the loaded pair hold for its own rounds alone.
  const CostSnapshot* costs = question.live ? view.calibration.costs.get() : nullptr;
  round_ = counted;
  budget_ = {};
  if (told) budget_ = budget_view(*told, costs, ar_reference(view, *counted));
  line_.reset();
  if (!pass) return;
  const Elsewhere there = elsewhere_at(view, priced, pass.get());
  line_ = budget_line(*pass, counted == priced ? budget_ : budget_view(*pass, costs, plain),
                      tree_set_by(view, *pass, log->summary(*priced).reply), &there);
}

}  // namespace canopy::app
