#pragma once
// How fast plain decoding is, for everything that compares with it: one value that says what it was measured by, when,
// and for which model and device. Pure.

#include <cstdint>
#include <string>

#include "engine/trace/round_statistics.h"

namespace canopy::app {

enum class ArSource : uint8_t {
  none,          // not known
  same_text,     // the reply was written once more without drafts, to compare its text
  plain_rounds,  // rounds without a draft
  calibration,   // passes of one row, measured when the device was calibrated
  forecast,      // the engine's forecast for a round; nothing was measured
};

/// The speed of plain decoding on one device with one model and its weights, at a context of about a certain length.
struct ArReference {
  double tokens_per_second = 0;  // 0: not known
  ArSource source = ArSource::none;
  uint64_t rounds = 0;    // plain rounds that it is the mean of; 0 for other sources
  int64_t at_ms = 0;      // when the newest of them was measured: since 1970, UTC; 0 where that is not known
  bool recorded = false;  // of a recording: at its time and on its device
  std::string where;      // the model and the device: "SmolLM2-135M-Instruct Q4_1 on llvmpipe"

  bool known() const { return tokens_per_second > 0; }
  bool measured() const { return known() && source != ArSource::forecast; }
  /// Of one token; 0 where it is not known.
  double ms() const { return known() ? 1000 / tokens_per_second : 0; }
};

/// "measured" or "predicted"; empty where nothing is known.
const char* badge_of(const ArReference& reference);

/// What it was measured by and how long ago, for a tooltip: "measured over 64 plain rounds, 2 min ago". now_ms: since
/// 1970, UTC. Empty where nothing is known.
std::string ar_origin(const ArReference& reference, int64_t now_ms);

/// The same in two or three words: "measured 2 min ago", "predicted".
std::string ar_age(const ArReference& reference, int64_t now_ms);

/// "just now", "2 min ago", "3 h ago", "4 days ago"; empty for a time that is not known.
std::string age_words(int64_t at_ms, int64_t now_ms);

/// Whether enough was drafted among some rounds for a speed-up to mean drafting: a few rounds, and not next to none of
/// them.
bool enough_drafted(const RoundStatistics& rounds);

}  // namespace canopy::app
