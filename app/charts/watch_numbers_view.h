#pragma once
// The three numbers of Watch, in the order of their meaning, and the line about the size of the tree. Words are those
// of Watch: pass, guess, plain, big model. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "app/charts/budget_view.h"
#include "app/charts/elsewhere.h"
#include "app/charts/statistics_trail.h"
#include "app/rounds/ar_reference.h"
#include "app/state/drafting.h"

namespace canopy::app {

/// A number with what stands beside it.
struct WatchNumber {
  bool shown = false;
  std::string value;     // "5.5"
  std::string unit;      // "ms"; may be empty
  std::string title;     // "tokens per pass"
  std::string subtitle;  // "plain decoding gets 1"
  std::string badge;     // "measured", "replayed" or "predicted"
  std::string why;       // "why this?": the formula in words, with the values of this round
};

struct WatchNumbers {
  WatchNumber tokens;     // of the reply up to the shown pass
  WatchNumber cost;       // of the shown pass, here
  WatchNumber elsewhere;  // as if on another device; not shown below 1, and where next to nothing was guessed

  double tokens_per_pass = 0;
  uint64_t passes = 0;
  double pass_ms = 0;            // of the shown pass, its guessing included
  uint32_t guesses = 0;          // of the shown pass
  double plain_tokens = 0;       // its time in times of a plain token here; 0 where that is not known
  double ratio = 0;              // on the other device
  std::string device;            // its name
  uint32_t least = 0, most = 0;  // guesses it would choose
};

struct WatchQuestion {
  const TrailPoint* reply = nullptr;   // never null: the reply up to the shown round
  const RoundRecord* shown = nullptr;  // null before the first
  const ArReference* plain = nullptr;  // never null: what plain decoding takes here
  const Elsewhere* elsewhere = nullptr;
  bool live = true;     // else replayed
  std::string times;    // where they come from if they were not recorded: "predicted"; else empty
  bool on_cpu = false;  // the rounds were computed by a processor
  int64_t now_ms = 0;   // since 1970, UTC
};

WatchNumbers watch_numbers(const WatchQuestion& question);

/// The line under the tree: why it has its size.
struct BudgetLine {
  struct Point {
    float x = 0, y = 0;  // 0 ... 1: N over the largest one shown, speed over the highest one shown
  };
  std::string question;         // "Why 40 guesses?"
  std::string sentence;         // "You set them. Best here: none"
  std::string badge;            // of the sentence: "predicted"; empty where it only says who set them
  std::string elsewhere;        // "best on an RTX 4090: 15", always predicted; may be empty
  std::string elsewhere_brief;  // "RTX 4090: 15"
  std::vector<Point> curve;     // S(N), ascending; empty where nothing was forecast
  float plain = -1;             // height of plain decoding; negative where it is not known
  Point own;                    // of this pass; only with a curve
};

BudgetLine budget_line(const RoundRecord& record, const BudgetView& budget, TreeSetBy set_by,
                       const Elsewhere* elsewhere);

}  // namespace canopy::app
