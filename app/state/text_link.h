#pragma once
// What connects the words of the chat with the nodes of the trees: the node that wrote a token, the token of a node,
// and where in the chat a guess was found that comes from the text. Pure.

#include <cstddef>
#include <optional>
#include <string>

#include "app/state/conversation.h"
#include "app/state/rounds.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// The token that a byte belongs to; null if it is not known.
const TokenSpan* token_at(const Message& message, size_t byte);

/// The node of a token; nullopt if the shown rounds are not those of this reply.
std::optional<NodeRef> node_of(const ViewModel& view, const Message& message, const TokenSpan& span);

/// The token of a node; null if it is not in this message. The root of a round is the last token of the round before.
const TokenSpan* token_of(const ViewModel& view, const Message& message, const NodeRef& node);

/// The number in the message of a round of the log; none where the round is of something else.
std::optional<size_t> round_in_message(const ViewModel& view, const Message& message, size_t round);

/// Where the text has what a node guesses: the last place before its round at which the tokens stand that were found
/// again, and behind them the guesses up to this node. Looked for by its letters, in the reply at the borders of its
/// tokens: the ids of a prompt are not known here. None of a node that was not found in the text of this chat.
std::optional<FoundPlace> find_place(const ViewModel& view, const NodeRef& node);

/// The place of that node, where it was looked for: of the one under the mouse and of the selected one. Null: none.
const FoundPlace* place_of(const RoundsState& rounds, const std::optional<NodeRef>& node);

/// Whether the chat that is on show has the words of that place, so that they can be lit.
bool is_on_show(const Conversation& shown, const FoundPlace& place);

/// That place as a sentence for a card.
std::string place_words(const FoundPlace& place);

}  // namespace canopy::app
