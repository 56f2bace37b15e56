#pragma once
// How replies are drafted, as the user sees it: what is chosen, and what that does with the model at hand.

#include <optional>
#include <string>

#include "engine/client/engine_client.h"

namespace canopy::app {

/// The mode a reply is written in. What the user chose; else the fastest, but on a device that computes on the CPU,
/// where autoregressive decoding usually is, small trees: there is something to see then, and a line that says what it
/// costs.
DecodeMode mode_for(const std::optional<DecodeMode>& chosen, const ModelReady& model);

/// "Adaptive", "Tree", ...
const char* mode_title(DecodeMode mode);
/// One line about it.
const char* mode_detail(DecodeMode mode);

/// "Autoregressive decoding is about 1.8× faster on this device." when a reply was drafted that would have been clearly
/// faster without, and the user did not ask for that; else empty.
std::string ar_verdict(const std::optional<DecodeMode>& chosen, const ReplyFinished& reply);

/// The same in a few words: "AR is 1.8× faster here".
std::string short_ar_verdict(const ReplyFinished& reply);

}  // namespace canopy::app
