#include "app/panels/error_cards.h"

#include <algorithm>

#include "app/look/text_block.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kPadding = 12;
constexpr float kTextLeft = 38;  // after the bar and the sign
constexpr float kTitlePitch = 20;
constexpr float kDetailPitch = 18;
constexpr size_t kShown = 3;  // cards; older ones are shown when these are dismissed

const char* action_label(Card::Action action) {
  switch (action) {
    case Card::Action::none: return nullptr;
    case Card::Action::choose_model: return "Choose model";
    case Card::Action::load_again: return "Load again";
    case Card::Action::run_again: return "Run again";
    case Card::Action::load_quantized: return "Quantize and load";
    case Card::Action::drop_oldest: return "Drop the oldest turns";
  }
  return nullptr;
}

UiCommand action_command(const ViewModel& view, Card::Action action) {
  switch (action) {
    case Card::Action::load_again: return OpenModel{view.model_path};
    case Card::Action::run_again: return RunAgain{};
    case Card::Action::load_quantized: return LoadQuantized{};
    case Card::Action::drop_oldest: return ChatCommand(DropOldestTurns{});
    default: return BrowseModel{};
  }
}

bool action_possible(const ViewModel& view, Card::Action action) {
  if (action == Card::Action::run_again || action == Card::Action::drop_oldest) return view.can_send();
  const bool loads = action == Card::Action::load_again || action == Card::Action::load_quantized;
  if (loads) return !view.model_path.empty() && view.model_state != ModelState::loading;
  return true;
}

void draw_sign(ImDrawList* list, const Card& card, ImVec2 centre) {
  const Theme& t = colours();
  if (card.warning)
    draw_triangle_sign(list, centre, px(16), t.bonus, t.card);
  else
    draw_cross(list, centre, px(4.5f), t.rejected, px(2));
}

void draw_card(const ViewModel& view, const Card& card, CommandSink& sink, float width) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 a = ImGui::GetCursorScreenPos();
  ButtonSpec dismiss{"Dismiss", Icon::close};
  dismiss.show_label = false;
  dismiss.tooltip = "Dismiss";
  const float text_width = width - px(kTextLeft) - px(kPadding) * 2 - px(28);
  TextBlock title, detail;
  title.layout(card.title, Type::base_semibold, text_width);
  detail.layout(card.detail, Type::base, text_width);
  const char* action = action_label(card.action);
  const float text_bottom = px(kPadding) + title.height(px(kTitlePitch)) +
                            (card.detail.empty() ? 0 : px(2) + detail.height(px(kDetailPitch)));
  const float height = text_bottom + (action ? px(10) + px(28) : 0) + px(kPadding);
  const ImVec2 b = {a.x + width, a.y + height};
  list->AddRectFilled(a, b, t.card, px(6));
  list->AddRect(a, b, t.line, px(6), px(1));
  list->AddRectFilled(a, {a.x + px(3), b.y}, card.warning ? t.bonus : t.rejected, px(6), ImDrawFlags_RoundLeft);
  draw_sign(list, card, {a.x + px(22), a.y + px(kPadding) + px(kTitlePitch) * 0.5f});
  const float x = a.x + px(kTextLeft);
  title.draw(list, {x, a.y + px(kPadding)}, card.title, Type::base_semibold, t.text, px(kTitlePitch));
  detail.draw(list, {x, a.y + px(kPadding) + title.height(px(kTitlePitch)) + px(2)}, card.detail, Type::base, t.text2,
              px(kDetailPitch));
  ImGui::SetCursorScreenPos({b.x - px(8) - px(28), a.y + px(8)});
  if (button(dismiss)) sink.post(DismissCard{card.id});
  if (action) {
    ImGui::SetCursorScreenPos({x, a.y + text_bottom + px(10)});
    ButtonSpec act{action, Icon::none, ButtonKind::line};
    act.enabled = action_possible(view, card.action);
    if (button(act)) {
      sink.post(DismissCard{card.id});
      sink.post(action_command(view, card.action));
    }
    if (card.action == Card::Action::drop_oldest) {
      ImGui::SameLine(0, px(8));
      if (button({"Stop here", Icon::none, ButtonKind::line})) sink.post(DismissCard{card.id});
    }
  }
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({width, height});
}

}  // namespace

void draw_error_cards(const ViewModel& view, CommandSink& sink, float width) {
  const size_t first = view.cards.size() > kShown ? view.cards.size() - kShown : 0;
  for (size_t i = first; i < view.cards.size(); ++i) {
    ImGui::PushID(static_cast<int>(view.cards[i].id));
    draw_card(view, view.cards[i], sink, width);
    ImGui::PopID();
  }
}

}  // namespace canopy::app
