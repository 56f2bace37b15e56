#pragma once
// The speed of plain decoding: what measured it in this process, and the one value that everything compares with.

#include <cstddef>
#include <cstdint>
#include <string>

#include "app/rounds/ar_reference.h"
#include "app/rounds/plain_rounds.h"
#include "engine/client/engine_client.h"

namespace canopy::app {

struct ViewModel;

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

/// The speed of plain decoding where a round of the shown log ran, by the first of these that is known: this reply,
/// written once more without drafts; plain rounds at about the same context or the calibration, whichever is newer; the
/// engine's forecast for the round. Unknown for a round that is not there.
ArReference ar_reference(const ViewModel& view, size_t round);
/// Of the shown round.
ArReference ar_reference(const ViewModel& view);
/// Of the newest round of the engine, whatever is shown.
ArReference newest_ar_reference(const ViewModel& view);

}  // namespace canopy::app
