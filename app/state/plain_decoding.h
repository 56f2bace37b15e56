#pragma once
// Plain decoding, which drafting is compared with: its speed by whatever measured it, and the check that a reply has
// the text that plain decoding writes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "app/state/round_log.h"
#include "app/state/settings.h"
#include "engine/session/engine_client.h"
#include "engine/trace/round_statistics.h"

namespace canopy::app {

struct Message;
struct ViewModel;

// How fast plain decoding is, for everything that compares with it: one value that says what it was measured by, when,
// and for which model and device. Pure.

enum class ArSource : uint8_t {
  none,          // not known
  beside,        // plain passes in the minutes of the reply, of it or right behind it
  same_text,     // the reply was written once more without drafts, to compare its text
  plain_rounds,  // rounds without a draft
  calibration,   // passes of one row, measured when the device was calibrated
  forecast,      // the engine's forecast for a round; nothing was measured
};

/// The speed of plain decoding on one device with one model and its weights, at a context of about a certain length.
struct ArReference {
  double tokens_per_second = 0;  // 0: not known
  ArSource source = ArSource::none;
  uint64_t rounds = 0;    // plain rounds or passes that it is made of; 0 for other sources
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

/// What it was measured by and how long ago, for a tooltip: "measured over 64 plain passes, 2 min ago". now_ms: since
/// 1970, UTC. Empty where nothing is known.
std::string ar_origin(const ArReference& reference, int64_t now_ms);

/// The same in two or three words: "measured 2 min ago", "predicted".
std::string ar_age(const ArReference& reference, int64_t now_ms);

/// "just now", "2 min ago", "3 h ago", "4 days ago"; empty for a time that is not known.
std::string age_words(int64_t at_ms, int64_t now_ms);

/// Whether enough was drafted among some rounds for a speed-up to mean drafting: a few rounds, and not next to none of
/// them.
bool enough_drafted(const RoundStatistics& rounds);

// The speed of plain decoding: what measured it in this process, and the one value that everything compares with.

/// What was measured on the loaded model and device. Begun anew when another model, other weights or another device are
/// loaded; the drafter does not matter.
struct ArState {
  std::string key;               // of the target, its weights and the device
  std::string where;             // the same for the user
  size_t first_round = 0;        // in the live log: older rounds ran on something else
  PlainRounds plain;             // of all replies, also of checks, which are in no log
  PlainRounds check;             // of the newest check alone
  uint64_t checked_message = 0;  // the reply that it checked
  int64_t calibrated_ms = 0;     // when the costs of passes were measured; 0: before this launch, or never
};

/// Applies an event of the engine. Call after the rounds and the checks have taken it.
void note_ar(ViewModel& view, const Event& event);

/// The speed of plain decoding where a round of the shown log ran, by the first of these that is known: plain passes in
/// the minutes of this reply, once it has ended; this reply, written once more without drafts; plain rounds at about
/// the same context or the calibration, whichever is newer; the engine's forecast for the round. Unknown for a round
/// that is not there.
ArReference ar_reference(const ViewModel& view, size_t round);
/// Of the shown round.
ArReference ar_reference(const ViewModel& view);
/// Of the newest round of the engine, whatever is shown.
ArReference newest_ar_reference(const ViewModel& view);

// The verdict on a reply: what guessing made of its speed. Both speeds are of the same minutes, load and text; where
// plain decoding was not measured then, nothing is said.

struct PlainVerdict {
  double ratio = 0;                // speed over plain decoding; 0: there is nothing to say
  std::vector<std::string> words;  // from the longest wording on: "here 31 tok/s, plain 25: 1.2× faster"
  std::string why;                 // what both are, as sentences
  bool known() const { return ratio > 0; }
  bool slower() const { return known() && ratio < 1; }
};

/// device: that it was recorded on; empty for a reply of this computer. Nothing of a reply that was written plainly.
PlainVerdict plain_verdict(const ReplyFinished& reply, const std::string& device = {});

// The check "Same text as plain decoding": a reply that was written with drafts is written once more in mode `ar`, and
// their token ids are compared. It needs the tokens of the reply, of this process or saved with it. It runs only when
// the user asks for it and is no part of the chat.

struct ArCheck {
  enum class Phase { none, running, same, different, cancelled, failed };

  Phase phase = Phase::none;
  uint64_t message = 0;                  // the reply that is checked
  uint64_t reply_id = 0;                 // of the AR reply
  std::vector<uint32_t> expected;        // tokens of the checked reply
  std::vector<uint32_t> plain;           // tokens of the AR reply so far
  bool open_end = false;                 // the checked reply was stopped, so the AR reply may go on after it
  std::optional<size_t> difference;      // index of the first token that differs
  uint32_t prompt_done = 0, prompt = 0;  // tokens, while the prompt is read
  std::string problem;                   // why the check failed

  bool running() const { return phase == Phase::running; }
};

struct CheckState {
  ArCheck check;  // the newest check
  std::unordered_map<uint64_t, std::vector<uint32_t>>
      tokens;         // of replies written in this process, by message id; other replies have theirs saved with them
  bool stop = false;  // the result is known, so the engine can stop writing
};

struct CheckAgainstAr {
  uint64_t message = 0;
};
struct CancelCheck {};
struct DismissCheck {};

using CheckCommand = std::variant<CheckAgainstAr, CancelCheck, DismissCheck>;

/// Applies an event of the engine.
void update(CheckState& state, const Event& event);

/// Applies a command of the user. Returns the commands for the engine.
std::vector<Command> update_check(ViewModel& view, const CheckCommand& command);

/// Cancels a running check, because the user asks something else of the engine. True when the engine must be told to
/// stop.
bool give_way(CheckState& state);

/// Why a reply cannot be checked now, as a sentence; empty when it can.
std::string check_obstacle(const ViewModel& view, const Message& reply);

/// The state of a check for the user: "Same text as plain decoding: 128 of 128 tokens", in Watch "The text is the same,
/// word for word, as without guessing."
std::string check_words(const ArCheck& check, WindowLayout layout = WindowLayout::lab);

}  // namespace canopy::app
