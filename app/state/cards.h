#pragma once
// The cards of failures and warnings; warn() and fail() (view_model.h) add those that did not come from the engine.

#include "app/state/view_model.h"

namespace canopy::app {

/// Adds a card, in place of one with the same text.
void add_card(ViewModel& view, Card card);

}  // namespace canopy::app
