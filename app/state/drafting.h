#pragma once
// How replies are drafted: the mode that is used for what the user chose, and texts about it.

#include <optional>
#include <string>

#include "app/base/choices.h"
#include "engine/client/engine_client.h"

namespace canopy::app {

struct ViewModel;

/// The mode in which a reply is written: what the user chose, else the adaptive mode, which is the fastest. On a device
/// that computes on the CPU, where plain decoding is usually fastest, the default is small trees: then there is
/// something to see, and a line of text says what it costs.
DecodeMode mode_for(const std::optional<DecodeMode>& chosen, const ModelReady& model);

/// Who or what settled how many guesses a pass has.
enum class TreeSetBy {
  controller,  // Canopy, anew for each pass
  user,        // by the mode, or by the size of its trees
  recording,   // it was settled when the rounds were recorded; by whom, they do not say
  fallback,    // nobody: what mode_for() takes on a device that computes on the CPU, and where there is no drafter
};

/// Whether the user chose this mode of the next reply, or the size of its trees; else mode_for() did.
bool is_chosen(const ViewModel& view, DecodeMode mode);

/// Who settled it for a round of the shown log. reply: the index of its reply in the log.
TreeSetBy tree_set_by(const ViewModel& view, const RoundRecord& round, size_t reply);

/// "Adaptive", "Tree", ...
const char* mode_title(DecodeMode mode);
/// One line that explains the mode.
const char* mode_detail(DecodeMode mode);

/// "Plain decoding is about 1.8× faster on this device." when a reply was drafted although plain decoding would have
/// been clearly faster, and the user did not choose the mode; else empty.
std::string ar_verdict(const std::optional<DecodeMode>& chosen, const ReplyFinished& reply);

/// The same in a few words: "AR is 1.8× faster here", in Watch "Plain is 1.8× faster here".
std::string short_ar_verdict(const ReplyFinished& reply, WindowLayout layout);

}  // namespace canopy::app
