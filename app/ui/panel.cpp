#include "app/ui/panel.h"

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

#include "app/state/words.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

constexpr float kLinePitch = 17;

}  // namespace

bool in_front(const char* panel) {
  const ImGuiWindow* window = ImGui::FindWindowByName(panel);
  return window != nullptr && window->WasActive && (window->DockNode == nullptr || window->DockTabIsVisible);
}

PanelBody::PanelBody(const char* id, float padding_x, float padding_y) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(padding_x), px(padding_y)});
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  ImGui::BeginChild(id, {0, 0}, ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);
}

PanelBody::~PanelBody() {
  ImGui::EndChild();
}

void empty_panel(std::string_view sentence) {
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  TextBlock block;
  block.layout(sentence, Type::base, std::max(px(80), std::min(room.x, px(320))));
  const float pitch = px(20);
  const ImVec2 pos = {std::floor(at.x + (room.x - block.widest()) * 0.5f),
                      std::floor(at.y + std::max(0.0f, (room.y - block.height(pitch)) * 0.4f))};
  block.draw(ImGui::GetWindowDrawList(), pos, sentence, Type::base, colours().text3, pitch);
}

float bar_card(const char* id, float width, Colour bar, std::string_view title, const std::string& words,
               const std::string& more) {
  const Theme& t = colours();
  const float room = width - px(12 + 3 + 12), pitch = px(kLinePitch);
  TextBlock first, second;
  first.layout(words, Type::secondary, room);
  second.layout(more, Type::secondary, room);
  const float first_height = words.empty() ? 0 : first.height(pitch),
              second_height = more.empty() ? 0 : second.height(pitch);
  const float height = std::ceil(px(10 + 18 + 9) + first_height + second_height);
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + height};
  ImGui::InvisibleButton(id, {std::max(1.0f, width), height});
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, t.card, px(6));
  list->AddRect(a, b, t.line, px(6), px(1));
  list->AddRectFilled(a, {a.x + px(3), b.y}, bar, px(6), ImDrawFlags_RoundLeft);
  const float x = a.x + px(15);
  float y = a.y + px(9);
  draw_text(list, {x, y}, Type::secondary_semibold, t.text, elided(Type::secondary_semibold, title, room));
  y += px(19);
  if (!words.empty()) first.draw(list, {x, y}, words, Type::secondary, t.text2, pitch);
  if (!more.empty()) second.draw(list, {x, y + first_height}, more, Type::secondary, t.text2, pitch);
  return height;
}

void pair_line(std::string_view left, std::string_view right, const std::string& tooltip_text) {
  pair_line(ImGui::GetContentRegionAvail().x, left, right, tooltip_text);
}

void pair_line(float room, std::string_view left, std::string_view right, const std::string& tooltip_text) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = px(kLinePitch);
  ImGui::PushID(left.data(), left.data() + left.size());
  ImGui::InvisibleButton("pair", {std::max(1.0f, room), height});
  ImGui::PopID();
  term_tooltip(left, tooltip_text);
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text_middle(list, at.x, at.y + height * 0.5f, Type::secondary, colours().text2, left);
  if (find_term(left))
    draw_term_line(list, at.x, at.x + text_size(Type::secondary, left).x, at.y + height * 0.5f + px(8));
  draw_text_middle(list, at.x + room - text_size(Type::mono, right).x, at.y + height * 0.5f, Type::mono, colours().text,
                   right);
}

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
  ButtonSpec act{action ? action : "", Icon::none, ButtonKind::line}, stop{"Stop here", Icon::none, ButtonKind::line};
  const bool stops = card.action == Card::Action::drop_oldest;
  const bool beside = button_size(act).x + px(8) + button_size(stop).x <= width - px(kTextLeft) - px(kPadding);
  const float rows = stops && !beside ? px(28) * 2 + px(8) : px(28);
  const float height = text_bottom + (action ? px(10) + rows : 0) + px(kPadding);
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
    act.enabled = action_possible(view, card.action);
    if (button(act)) {
      sink.post(DismissCard{card.id});
      sink.post(action_command(view, card.action));
    }
    if (stops) {
      const float below = text_bottom + px(10) + px(28) + px(8);
      if (beside)
        ImGui::SameLine(0, px(8));
      else
        ImGui::SetCursorScreenPos({x, a.y + below});
      if (button(stop)) sink.post(DismissCard{card.id});
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

namespace {

/// The colour is only an addition: the level is also written as a word.
Colour colour_of(LogLevel level) {
  const Theme& t = colours();
  switch (level) {
    case LogLevel::error: return t.rejected_text;
    case LogLevel::warning: return t.bonus_text;
    case LogLevel::info:
    case LogLevel::debug: break;
  }
  return t.text3;
}

}  // namespace

void LogPanel::draw(const ViewModel&, CommandSink& sink) {
  if (const uint64_t count = log_->count(); count != read_) {
    read_ = count;
    messages_ = log_->messages();
  }
  const PanelBody body("Log body");
  if (messages_.empty()) return empty_panel("No messages. Warnings and errors of the engine come here.");
  ButtonSpec copy{"Copy all", Icon::copy, ButtonKind::line};
  if (button(copy)) sink.post(CopyText{as_text(messages_)});
  draw_messages();
}

void LogPanel::draw_messages() {
  const bool at_end = ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - 1;
  push_type(Type::mono_caption);
  ImGui::PushTextWrapPos(0);
  for (const MessageLog::Message& each : messages_) {
    ImGui::PushStyleColor(ImGuiCol_Text, colour_of(each.level));
    ImGui::TextUnformatted((fixed(each.seconds, 2) + " s  " + std::string(to_string(each.level))).c_str());
    ImGui::PopStyleColor();
    ImGui::PushStyleColor(ImGuiCol_Text, colours().text);
    ImGui::TextUnformatted(each.text.c_str(), each.text.c_str() + each.text.size());
    ImGui::PopStyleColor();
  }
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
  if (at_end) ImGui::SetScrollHereY(1);
}

}  // namespace canopy::app
