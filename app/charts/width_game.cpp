#include "app/charts/width_game.h"

#include "app/base/figures.h"

namespace canopy::app {
namespace {

bool holds(const WidthAnswer& answer, uint32_t guesses) {
  return guesses >= answer.least && guesses <= answer.most;
}

}  // namespace

std::optional<uint32_t> best_guesses(const BudgetView& budget) {
  if (!budget.hindsight) return std::nullopt;
  if (budget.ar_tokens_per_second >= budget.hindsight->tokens_per_second()) return 0;
  return budget.hindsight->budget();
}

void WidthGame::set(bool on) {
  on_ = on;
  round_ = SIZE_MAX;
  answered_.reset();
  asked_ = right_ = 0;
}

void WidthGame::show(size_t round, const BudgetView& budget) {
  if (!on_ || round == round_) return;
  round_ = round;
  best_ = best_guesses(budget);
  answered_.reset();
}

void WidthGame::answer(size_t index) {
  if (!asking() || index >= kWidthAnswers.size()) return;
  answered_ = index;
  ++asked_;
  if (holds(kWidthAnswers[index], *best_)) ++right_;
}

std::string WidthGame::verdict() const {
  if (!answered_ || !best_) return "";
  const std::string best =
      *best_ == 0 ? "none would have been best here: plain decoding" : grouped(*best_) + " would have been best here";
  const WidthAnswer& said = kWidthAnswers[*answered_];
  return holds(said, *best_) ? "Right: " + best + "." : "You said " + std::string(said.words) + "; " + best + ".";
}

std::string WidthGame::points() const {
  return std::to_string(right_) + " of " + std::to_string(asked_) + " right";
}

}  // namespace canopy::app
