#pragma once
// The card of one token, with everything that the record has of it. Used in the tree and in the chat.

#include <span>

#include <imgui.h>

#include "app/tree/token_facts.h"

namespace canopy::app {

/// Size of the card in pixels.
ImVec2 token_card_size(const TokenFacts& facts);
void draw_token_card(ImDrawList* list, ImVec2 pos, const TokenFacts& facts, bool pinned);

/// The upper left corner for a card beside an item: at the item's lower right corner if the card stays within the area
/// there and does not overlap the item or `avoid`; else at the first other corner where that holds, else at the one
/// with the least overlap.
ImVec2 place_card(ImVec2 size, ImVec2 item_min, ImVec2 item_max, ImVec2 area_min, ImVec2 area_max,
                  std::span<const ImVec4> avoid);

}  // namespace canopy::app
