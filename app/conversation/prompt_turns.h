#pragma once
// Cuts a tokenized prompt back into the turns of a conversation. This works for most chat templates: nearly all put a
// control token around each turn and begin it with the name of the role.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/text/chat_turn.h"
#include "engine/trace/trace_format.h"

namespace canopy::app {

using PieceOf = std::function<std::optional<trace::Piece>(uint32_t token)>;

/// The turns of a prompt, with roles "system", "user" and "assistant". A prompt in which no role is named becomes one
/// question. The empty turn at the end, which the reply fills, is left out.
std::vector<ChatTurn> prompt_turns(std::span<const uint32_t> tokens, const PieceOf& piece);

}  // namespace canopy::app
