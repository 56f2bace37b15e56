// The cards of failures and warnings.

#include <utility>

#include "app/state/view_model.h"

namespace canopy::app {

void add_card(ViewModel& view, Card card) {
  card.id = ++view.last_id;
  // A card with the same text replaces the old one, so that repeated failures of "Load again" do not pile up.
  std::erase_if(view.cards, [&](const Card& c) { return c.title == card.title && c.detail == card.detail; });
  view.cards.push_back(std::move(card));
}

void warn(ViewModel& view, const std::string& title, const std::string& detail) {
  add_card(view, {0, true, title, detail, Card::Action::none, false});
}

void fail(ViewModel& view, const std::string& title, const std::string& detail) {
  add_card(view, {0, false, title, detail, Card::Action::none, false});
}

}  // namespace canopy::app
