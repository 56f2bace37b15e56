#pragma once
// A prompt of tokens back into the turns of a conversation. Chat templates differ, but nearly all put a control token
// around each turn and name the role in plain words at its start.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/text/chat_turn.h"
#include "engine/trace/trace_format.h"

namespace canopy::app {

using PieceOf = std::function<std::optional<trace::Piece>(uint32_t token)>;

/// The turns of a prompt, roles "system", "user" and "assistant". A prompt in which no role is named is one question;
/// the empty turn that the reply was to fill is left out.
std::vector<ChatTurn> prompt_turns(std::span<const uint32_t> tokens, const PieceOf& piece);

}  // namespace canopy::app
