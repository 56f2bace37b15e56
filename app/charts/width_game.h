#pragma once
// Guess the width: before the line under the tree says it, the user guesses how many guesses would have been best for
// the pass on show. Pure.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "app/charts/budget_view.h"

namespace canopy::app {

/// The answers to choose from: ranges of drafted nodes.
struct WidthAnswer {
  uint32_t least, most;
  const char* words;
};
inline constexpr std::array<WidthAnswer, 5> kWidthAnswers = {
    {{0, 0, "none"}, {1, 4, "1 to 4"}, {5, 12, "5 to 12"}, {13, 32, "13 to 32"}, {33, UINT32_MAX, "more"}}};

/// The best number of drafted nodes for a pass: in hindsight, by what the text accepted and what passes cost here,
/// plain decoding included; nullopt where the costs are not known.
std::optional<uint32_t> best_guesses(const BudgetView& budget);

class WidthGame {
 public:
  bool on() const { return on_; }
  /// Begins or ends it; the points begin anew.
  void set(bool on);
  /// Takes the pass on show: another pass asks anew.
  void show(size_t round, const BudgetView& budget);
  /// Whether the pass can be asked about and was not answered yet: then nothing may tell the answer.
  bool asking() const { return on_ && best_ && !answered_; }
  void answer(size_t index);

  /// "Right: 7 would have been best here." or "You said 13 to 32; 7 would have been best here."; empty before the
  /// answer.
  std::string verdict() const;
  /// "2 of 3 right"
  std::string points() const;

 private:
  bool on_ = false;
  size_t round_ = SIZE_MAX;
  std::optional<uint32_t> best_;
  std::optional<size_t> answered_;
  uint32_t asked_ = 0, right_ = 0;
};

}  // namespace canopy::app
