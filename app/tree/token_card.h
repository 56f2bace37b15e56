#pragma once
// The card of one token: everything the record has of it. The same in the tree and on a token of the chat.

#include <span>

#include <imgui.h>

#include "app/tree/token_facts.h"

namespace canopy::app {

/// What it takes, in pixels.
ImVec2 token_card_size(const TokenFacts& facts);
void draw_token_card(ImDrawList* list, ImVec2 pos, const TokenFacts& facts, bool pinned);

/// Where a card of this size goes beside an item: below right if that stays within the area and keeps clear of the item
/// and of `avoid`; else the first other corner that does, else the one that covers least.
ImVec2 place_card(ImVec2 size, ImVec2 item_min, ImVec2 item_max, ImVec2 area_min, ImVec2 area_max,
                  std::span<const ImVec4> avoid);

}  // namespace canopy::app
