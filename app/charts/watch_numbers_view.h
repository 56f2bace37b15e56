#pragma once
// The numbers of Watch: those of the shown pass and of another device, the line about the size of the tree, and the
// game of guessing that size.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/charts/budget_panel.h"
#include "app/charts/statistics_view.h"
#include "app/state/chat_update.h"
#include "app/state/plain_decoding.h"
#include "app/state/view_model.h"
#include "app/state/what_if.h"

namespace canopy::app {

// What Watch says of another device: the passes that What if computes for it, as far as the shown place of the text, in
// a few numbers. The computation is that of What if alone (app/state/what_if.h). Pure.

struct Elsewhere {
  std::string device;               // "RTX 4090"; empty: nothing is known
  std::string detail;               // "1,008 GB/s"
  std::string from;                 // a sentence on where its times come from
  uint64_t rounds = 0;              // passes there
  double tokens = 0;                // of a pass
  double plain_tokens = 0;          // time of a pass, its guessing included, in times of a plain token there
  double ratio = 0;                 // speed over plain decoding on the same device; 0 without passes
  uint32_t least = 0, most = 0;     // guesses of its passes
  std::optional<uint32_t> guesses;  // of the pass that reads the shown place
  bool at_most = false;             // no more guesses than were recorded could be chosen
};

/// Of the passes there that begin in this reply behind at most `context` positions. reply: among those that were
/// re-run.
Elsewhere elsewhere_up_to(const WhatIfThere& there, size_t reply, uint32_t context);

// The three numbers of Watch, in the order of their meaning, and the line about the size of the tree. The first two are
// means over the same passes, those of the reply up to the shown one, so that their quotient is the reply's speed.
// Words are those of Watch: pass, guess, plain, big model. Pure.

/// A number with what stands beside it.
struct WatchNumber {
  bool shown = false;
  std::string value;     // "5.5"
  std::string unit;      // "ms"; may be empty
  std::string title;     // "tokens per pass"
  std::string brief;     // the title where there is little room; may be empty
  std::string subtitle;  // "plain decoding gets 1"; where there is little room, as far as its colon
  std::string badge;     // "measured", "replayed" or "predicted"
  std::string why;       // "why this?": the formula in words, with the values of this reply
};

struct WatchNumbers {
  WatchNumber tokens;     // of a pass
  WatchNumber cost;       // of a pass, where it ran
  WatchNumber elsewhere;  // as if on another device; not shown below 1, and where next to nothing was guessed

  double tokens_per_pass = 0;
  uint64_t passes = 0;
  double pass_ms = 0;            // their guessing included
  double guesses = 0;            // of a pass
  double plain_tokens = 0;       // its time in times of a plain token there; 0 where that is not known
  double tokens_per_second = 0;  // of these passes: the speed that the chat shows
  double ratio = 0;              // on the other device
  std::string device;            // its name
  uint32_t least = 0, most = 0;  // guesses it would choose
};

struct WatchQuestion {
  const TrailPoint* reply = nullptr;   // never null: the reply up to the shown round
  const RoundRecord* shown = nullptr;  // null before the first
  const ArReference* plain = nullptr;  // never null: what plain decoding takes there
  const Elsewhere* elsewhere = nullptr;
  bool live = true;         // else replayed
  std::string recorded_on;  // the device of what is replayed; empty where that is not known
  std::string times;        // where they come from if they were not recorded: "predicted"; else empty
  bool on_cpu = false;      // the rounds were computed by a processor
  int64_t now_ms = 0;       // since 1970, UTC
};

WatchNumbers watch_numbers(const WatchQuestion& question);

/// The line under the tree: why it has its size.
struct BudgetLine {
  struct Point {
    float x = 0, y = 0;  // 0 ... 1: N over the largest one shown, speed over the highest one shown
  };
  std::string question;         // "Why 40 guesses?"
  std::string sentence;         // "You set them. Expected best: plain"
  std::string badge;            // of the sentence: "predicted"; empty where it only says who set them
  std::string elsewhere;        // "best on an RTX 4090: 15", always predicted; may be empty
  std::string elsewhere_brief;  // "RTX 4090: 15"
  std::vector<Point> curve;     // S(N), ascending; empty where nothing was forecast
  float plain = -1;             // height of plain decoding; negative where it is not known
  Point own;                    // of this pass; only with a curve
};

BudgetLine budget_line(const RoundRecord& record, const BudgetView& budget, TreeSetBy set_by,
                       const Elsewhere* elsewhere);

// The numbers of Watch and its budget line for what the window shows, kept up to date from frame to frame.

class WatchSource {
 public:
  /// Call in each frame before the others. Of another device it has what was computed for view.what_if.chip.
  void update(const ViewModel& view);

  const WatchNumbers& numbers() const { return numbers_; }
  /// Null before the first round, where its tree was let go for memory, and in slow motion until the pass is told.
  const BudgetLine* line() const { return line_ ? &*line_ : nullptr; }
  /// The newest round of the shown reply whose tokens are in the text; nullopt before the first. What its widths
  /// promised and would have brought.
  std::optional<size_t> round() const { return round_; }
  const BudgetView& budget() const { return budget_; }
  /// Whether all rounds were read; else draw another frame soon.
  bool done() const { return trail_.done(); }

 private:
  StatisticsTrail trail_;
  WatchNumbers numbers_;
  std::optional<BudgetLine> line_;
  std::optional<size_t> round_;
  BudgetView budget_;
};

// Guess the width: before the line under the tree says it, the user guesses how many guesses were best afterwards for
// the pass on show. Pure.

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

  /// "Right: 7 was best afterwards." or "You said 13 to 32; 7 was best afterwards."; empty before the
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
