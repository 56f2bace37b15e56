#include "app/shell/watch_layout.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "app/state/chat_update.h"
#include "app/tree/tree_geometry.h"
#include "app/tree/tree_look.h"
#include "app/tree/tree_overlays.h"
#include "app/ui/bars.h"
#include "app/ui/shapes.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

constexpr float kGap = 4, kTreeShare = 0.6f;
constexpr float kWhole = 1000;      // narrower windows need all of their height for the chat beside the tree
constexpr float kSideBySide = 480;  // narrower windows have the chat below the tree
constexpr float kLeastChat = 120, kChatShare = 0.55f;
constexpr float kLeastTree = 60;  // with less left for it, there is only the chat
constexpr float kListWidth = 232;

/// Heights of the parts above and below the tree, each step with less.
struct Step {
  float numbers, caption, legend, budget, strip;
  bool subtitles;
};
constexpr Step kSteps[] = {
    {70, 40, 26, 36, 82, true}, {48, 36, 24, 32, 56, false}, {44, 34, 22, 0, 36, false}, {44, 34, 0, 0, 36, false},
    {40, 32, 0, 0, 32, false},  {0, 32, 0, 0, 32, false},    {0, 30, 0, 0, 0, false},
};
constexpr Step kTreeAlone = {0, 0, 0, 0, 0, false};

/// What a step leaves of a height for the tree.
float tree_height(const Step& step, float height) {
  float rest = height - step.caption;
  for (const float part : {step.numbers, step.strip})
    if (part > 0) rest -= part + kGap;
  return rest - step.legend - (step.budget > 0 ? step.budget + kGap : 0);
}

/// The first step that leaves the tree `share` of the height, or the last one.
const Step* step_for(float height, float share) {
  const Step* step = kSteps;
  while (step != std::end(kSteps) - 1 && tree_height(*step, height) < share) ++step;
  return step;
}

/// Places all but the chat in a rectangle. strip_left: where the strip begins.
void place_tree(WatchPlaces& at, const WatchRect& room, const Step& step, float strip_left) {
  at.subtitles = step.subtitles;
  float y = room.y;
  if (step.numbers > 0) at.numbers = {room.x, y, room.width, step.numbers};
  if (step.numbers > 0) y += step.numbers + kGap;
  at.caption = {room.x, y, room.width, step.caption};
  y += step.caption;
  at.tree = {room.x, y, room.width, std::max(1.0f, tree_height(step, room.height))};
  y += at.tree.height;
  if (step.legend > 0) at.legend = {room.x, y, room.width, step.legend};
  y += step.legend;
  if (step.budget > 0) at.budget = {room.x, y + kGap, room.width, step.budget};
  const float bottom = room.y + room.height;
  if (step.strip > 0) at.strip = {strip_left, bottom - step.strip, room.x + room.width - strip_left, step.strip};
}

}  // namespace

WatchPlaces watch_places(float width, float height, float bar, bool tour, const WatchSides& sides) {
  WatchPlaces at;
  const float top = bar + kGap, rest = height - top;
  if (width >= kSideBySide) {
    const float begin = sides.list && width >= kRoomForChatList ? kListWidth + kGap : 0;
    if (begin > 0) at.list = {0, top, kListWidth, rest};
    const float chat = chat_width(sides.chat, width - begin), left = begin + chat + kGap;
    const Step& step = *step_for(rest, kTreeShare * height);
    place_tree(at, {left, top, width - left, rest}, step, width < kWhole ? left : begin);
    const float end = width >= kWhole && at.strip.shown() ? at.strip.y - kGap : height;
    at.chat = {begin, top, chat, end - top};
    at.edge = {left - kGap, top, kGap, end - top};
    return at;
  }
  if (tour) {
    place_tree(at, {0, top, width, rest}, *step_for(rest, kTreeShare * height), 0);
    return at;
  }
  float chat = std::max(kLeastChat, std::floor(rest * kChatShare));
  if (const float room = rest - chat - kGap; room >= kLeastTree) {
    const Step* step = step_for(room, kTreeShare * room);
    place_tree(at, {0, top, width, room}, tree_height(*step, room) < kLeastTree ? kTreeAlone : *step, 0);
  } else {
    chat = std::max(1.0f, rest);
  }
  at.chat = {0, height - chat, width, chat};
  return at;
}

namespace {

constexpr float kNumbersMargin = 16, kBetween = 18, kChipPad = 14;
constexpr const char* kDeviceMenuOfWatch = "Other devices";

void hover_area(const char* id, ImVec2 a, ImVec2 b, const std::string& why) {
  if (b.x <= a.x || b.y <= a.y) return;
  ImGui::SetCursorScreenPos(a);
  ImGui::InvisibleButton(id, {b.x - a.x, b.y - a.y}, ImGuiButtonFlags_EnableNav);
  focus_last_item(kNumbersArea);
  term_tooltip(id, why);
}

/// The figure with its unit, and the gap before its words.
float figure_width(const WatchNumber& number, float em) {
  const float scale = text_height(Type::key_figure, em) / text_height(Type::key_figure);
  const float unit = number.unit.empty() ? 0 : px(6) + text_size(Type::figure, number.unit).x;
  return text_size(Type::key_figure, number.value).x * scale + unit + px(12);
}

/// The least width of a number with whole words.
float least_width(const WatchNumber& number, float em) {
  if (!number.shown) return 0;
  const std::string& title = number.brief.empty() ? number.title : number.brief;
  return figure_width(number, em) + text_size(Type::base_semibold, title).x;
}

/// Draws a number with its title and subtitle at its right; returns the right edge, or `x` if there is no room.
float draw_number(const char* id, const WatchNumber& number, float x, float right, ImVec2 pos, ImVec2 size, float em,
                  bool subtitles) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = pos.y + size.y * 0.5f, height = text_height(Type::key_figure, em);
  const float words_x = x + figure_width(number, em), room = right - words_x;
  const bool second = subtitles && !number.subtitle.empty();
  const std::string title =
      number.brief.empty() ? number.title : first_fitting(Type::base_semibold, {number.title, number.brief}, room);
  if (std::min(text_size(Type::base_semibold, title).x, px(60)) > room) return x;
  list->AddText(font_of(Type::key_figure), height, {x, std::floor(middle - height * 0.5f)}, t.text, number.value.data(),
                number.value.data() + number.value.size());
  if (!number.unit.empty()) {
    const float unit = text_size(Type::figure, number.unit).x;
    draw_text_middle(list, words_x - px(12) - unit, middle + px(3), Type::figure, t.text3, number.unit);
  }
  const std::string words = elided(Type::base_semibold, title, room);
  draw_text_middle(list, words_x, middle - (second ? px(9) : 0), Type::base_semibold, t.text, words);
  float end = words_x + text_size(Type::base_semibold, words).x;
  draw_term_line(list, words_x, end, middle - (second ? px(9) : 0) + px(9));
  if (second) {
    const std::string brief = number.subtitle.substr(0, number.subtitle.find(": "));
    const std::string below =
        elided(Type::secondary, first_fitting(Type::secondary, {number.subtitle, brief}, room), room);
    draw_text_middle(list, words_x, middle + px(9), Type::secondary, t.text3, below);
    end = std::max(end, words_x + text_size(Type::secondary, below).x);
  }
  hover_area(id, {x, pos.y + px(4)}, {end, pos.y + size.y - px(4)}, number.why);
  return end;
}

void draw_divider(float x, ImVec2 pos, ImVec2 size) {
  ImGui::GetWindowDrawList()->AddLine({std::floor(x) + 0.5f, pos.y + px(12)},
                                      {std::floor(x) + 0.5f, pos.y + size.y - px(12)}, colours().line);
}

void draw_dashed_badge(ImDrawList* list, float x, float middle, const std::string& words) {
  const Theme& t = colours();
  const float width = text_size(Type::caption, words).x + px(10);
  add_dashed_rect(list, {x, middle - px(9)}, {x + width, middle + px(9)}, px(3), {px(3), px(2)}, t.text3, px(1));
  draw_text_middle(list, x + px(5), middle, Type::caption, t.text2, words);
}

void draw_device_choices(const ViewModel& view, ImVec2 corner, CommandSink& sink) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float below = viewport->Pos.y + viewport->Size.y - px(8) - corner.y;
  ImGui::SetNextWindowPos(corner, ImGuiCond_Always, {1, 0});
  ImGui::SetNextWindowSizeConstraints({0, 0}, {viewport->Size.x, std::max(px(120), below)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kDeviceMenuOfWatch)) {
    label(Type::secondary, colours().text2, "Predicted from a profile of the device");
    for (const WhatIfDevice& each : view.what_if.known) {
      const bool chosen = as_if_device(view.shell) == each.choice;
      if (!choice(each.choice.c_str(), each.name, each.detail, chosen, true, px(280))) continue;
      sink.post(ShellCommand(SetAsIfOn{each.choice}));
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

/// The parts of the chip, and all of it.
struct ChipWidths {
  float caption, figure, badge, all;
};
ChipWidths chip_widths(const WatchNumber& number, const std::string& name) {
  ChipWidths w{};
  w.caption = std::max(text_size(Type::caption, "as if on").x, text_size(Type::base_medium, name).x);
  w.figure = text_size(Type::ratio, number.value).x;
  w.badge = std::max(text_size(Type::caption, number.badge).x + px(10), text_size(Type::caption, "over plain").x);
  w.all = px(kChipPad) * 2 + w.caption + px(14) + w.figure + px(12) + w.badge + px(22);
  return w;
}

/// Draws the chip up to `right`.
void draw_chip(const ViewModel& view, const WatchNumber& number, const std::string& name, float right, ImVec2 pos,
               ImVec2 size, bool subtitles, CommandSink& sink) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = pos.y + size.y * 0.5f, half = std::min(px(23), size.y * 0.5f - px(5));
  const auto [caption, figure, badge, width] = chip_widths(number, name);
  const float left = right - width;
  ImGui::SetCursorScreenPos({left, middle - half});
  if (ImGui::InvisibleButton("As if on", {width, half * 2}, ImGuiButtonFlags_EnableNav) || take_press("As if on"))
    ImGui::OpenPopup(kDeviceMenuOfWatch);
  focus_last_item(kNumbersArea);
  if (ImGui::IsItemHovered()) list->AddRectFilled({left, middle - half}, {right, middle + half}, t.card, px(6));
  tooltip(number.why.c_str());
  add_dashed_rect(list, {left, middle - half}, {right, middle + half}, px(6), {px(4), px(3)}, t.ctl, px(1));
  float x = left + px(kChipPad);
  const bool two = subtitles && half > px(16);
  if (two) draw_text_middle(list, x, middle - px(9), Type::caption, t.text2, "as if on");
  draw_text_middle(list, x, middle + (two ? px(8) : 0), Type::base_medium, t.text, name);
  x += caption + px(14);
  draw_text_middle(list, x, middle, Type::ratio, number.shown ? t.accent_text : t.text3, number.value);
  x += figure + px(12);
  draw_dashed_badge(list, x, middle - (two ? px(9) : 0), number.badge);
  if (two) draw_text_middle(list, x, middle + px(10), Type::caption, t.text2, "over plain");
  draw_icon(list, Icon::chevron, {right - px(16), middle}, px(14), t.text2);
  draw_device_choices(view, {right, middle + half + px(4)}, sink);
}

constexpr float kWayHeight = 22;

void draw_sparkline(ImDrawList* list, const BudgetLine& line, ImVec2 a, ImVec2 b) {
  const Theme& t = colours();
  const auto at = [&](float x, float y) { return ImVec2(a.x + (b.x - a.x) * x, b.y - (b.y - a.y) * y); };
  if (line.plain >= 0) {
    const ImVec2 level[] = {at(0, line.plain), at(1, line.plain)};
    add_dashed(list, level, {px(1), px(3)}, t.text3, px(1));
  }
  for (const BudgetLine::Point& point : line.curve) list->PathLineTo(at(point.x, point.y));
  list->PathStroke(t.accent, px(1.5f));
  const ImVec2 own = at(line.own.x, line.own.y);
  list->AddCircleFilled(own, px(3), t.text, 12);
}

}  // namespace

void draw_watch_numbers(const ViewModel& view, const WatchNumbers& numbers, ImVec2 pos, ImVec2 size, bool subtitles,
                        CommandSink& sink) {
  const float margin = px(kNumbersMargin), gap = px(kBetween);
  const float tokens_em = subtitles ? 40.0f : 28.0f, cost_em = subtitles ? 24.0f : 20.0f;
  float x = pos.x + margin, right = pos.x + size.x - margin;
  const float price = least_width(numbers.cost, cost_em);
  float words = least_width(numbers.tokens, tokens_em);
  if (price > 0) words += gap * 2 + price;
  if (const float width = way_switch_width(view, true); width > 0 && x + words + gap + width <= right) {
    const float height = std::floor(std::min(px(kWayHeight), (size.y - px(8)) * 0.5f));
    draw_way_switch(view, {right - width, pos.y + size.y * 0.5f - height - px(2)}, height, true, kNumbersArea, sink);
    right -= width + gap;
  }
  bool chip = false;
  if (numbers.elsewhere.shown && price > 0) {
    const float width = chip_widths(numbers.elsewhere, numbers.device).all;
    chip = x + words + gap + width <= right;
    if (chip) {
      draw_chip(view, numbers.elsewhere, numbers.device, right, pos, size, subtitles, sink);
      right -= width + gap;
    }
  }
  if (!chip) {  // the choice is there by its name
    if (take_press("As if on")) ImGui::OpenPopup(kDeviceMenuOfWatch);
    draw_device_choices(view, {right, pos.y + size.y}, sink);
  }
  if (numbers.tokens.shown) {
    const float end = price > 0 ? right - gap * 2 - price : right;
    const float drawn = draw_number("Tokens per pass", numbers.tokens, x, end, pos, size, tokens_em, subtitles);
    if (drawn > x && price > 0) draw_divider(drawn + gap, pos, size);
    if (drawn > x) x = drawn + gap * 2;
  }
  if (numbers.cost.shown) draw_number("Cost of a pass", numbers.cost, x, right, pos, size, cost_em, subtitles);
}

/// Draws the question of the game with its answers.
static void draw_question(ImVec2 pos, ImVec2 size, float right, WidthGame& game) {
  const float middle = pos.y + size.y * 0.5f, x = pos.x + px(kNumbersMargin);
  float answers = 0;
  for (const WidthAnswer& answer : kWidthAnswers) {
    ButtonSpec spec{answer.words, Icon::none, ButtonKind::line};
    spec.height = 24;
    answers += button_size(spec).x + px(6);
  }
  const std::string question =
      first_fitting(Type::base_semibold, {"How many guesses were best afterwards?", "Best afterwards?", "Best?"},
                    right - x - answers - px(12));
  draw_text_middle(ImGui::GetWindowDrawList(), x, middle, Type::base_semibold, colours().text, question);
  float at = x + text_size(Type::base_semibold, question).x + px(12);
  for (size_t i = 0; i < kWidthAnswers.size(); ++i) {
    ButtonSpec spec{kWidthAnswers[i].words, Icon::none, ButtonKind::line};
    spec.height = 24;
    ImGui::SetCursorScreenPos({at, std::floor(middle - px(12))});
    if (button(spec)) game.answer(i);
    at += button_size(spec).x + px(6);
  }
}

/// Draws words as far as they fit before `right`; returns where they end, or `x` if there is no room.
static float put(float x, float right, float middle, Type type, Colour colour, const std::string& words) {
  if (words.empty() || x + px(24) > right) return x;
  const std::string fits = elided(type, words, right - x);
  draw_text_middle(ImGui::GetWindowDrawList(), x, middle, type, colour, fits);
  return x + text_size(type, fits).x;
}

static float badge_width(const std::string& badge) {
  return badge.empty() ? 0 : px(18) + text_size(Type::caption, badge).x;
}

/// The width of the question and its answer with their badge.
static float said_width(const BudgetLine& line) {
  return text_size(Type::base_semibold, line.question).x + px(12) + text_size(Type::base, line.sentence).x +
         badge_width(line.badge);
}

/// Draws the question and its answer, then what another device would do. Nothing that is predicted stands there without
/// its badge: the answer is cut before it, and the other device is left out.
static void draw_said(const BudgetLine& line, float x, float middle, float right) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float answer = px(12) + put(x, right, middle, Type::base_semibold, t.text, line.question);
  x = put(answer, right - badge_width(line.badge), middle, Type::base, t.text2, line.sentence);
  if (x == answer) return;
  if (!line.badge.empty()) draw_dashed_badge(list, x + px(8), middle, line.badge);
  x += badge_width(line.badge) + px(14);
  for (const std::string* words : {&line.elsewhere, &line.elsewhere_brief}) {
    if (words->empty() || x + text_size(Type::base, *words).x + badge_width("predicted") > right) continue;
    x = put(x, right, middle, Type::base, t.text2, *words);
    draw_dashed_badge(list, x + px(8), middle, "predicted");
    return;
  }
}

bool draw_budget_line(const BudgetLine& line, ImVec2 pos, ImVec2 size, bool unfolded, WidthGame& game) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = pos.y + size.y * 0.5f;
  ButtonSpec unfold{"Unfold", Icon::none};
  unfold.words = unfolded ? "Fold" : "Unfold";
  unfold.on = unfolded;
  unfold.tooltip = "The whole curve: speed for every number of guesses";
  const ImVec2 wanted = button_size(unfold);
  float right = pos.x + size.x - px(8) - wanted.x;
  ImGui::SetCursorScreenPos({right, std::floor(middle - wanted.y * 0.5f)});
  const bool pressed = button(unfold);
  ButtonSpec play{"Guess it", Icon::none};
  play.words = game.on() ? "End the game" : "Guess it";
  play.on = game.on();
  play.tooltip = "For each pass, guess how many guesses were best afterwards, before it is said";
  right -= button_size(play).x + px(4);
  ImGui::SetCursorScreenPos({right, std::floor(middle - wanted.y * 0.5f)});
  if (button(play)) game.set(!game.on());
  if (game.asking()) {
    draw_question(pos, size, right - px(8), game);
    return pressed;
  }
  if (!line.curve.empty() && pos.x + px(kNumbersMargin) + said_width(line) < right - px(160 + 16)) {
    draw_sparkline(list, line, {right - px(160), pos.y + px(7)}, {right - px(16), pos.y + size.y - px(7)});
    right -= px(160);
  }
  right -= px(16);
  const float x = pos.x + px(kNumbersMargin);
  if (game.verdict().empty()) {
    draw_said(line, x, middle, right);
    return pressed;
  }
  const float end = put(x, right, middle, Type::base_semibold, t.text, game.verdict());
  put(end + px(12), right, middle, Type::base, t.text2, game.points());
  return pressed;
}

namespace {

constexpr double kSlideSeconds = 0.16;
constexpr float kUnfoldedHeight = 300, kMostOfTree = 0.65f;

}  // namespace

/// What the chart of the budget takes of the tree's height, which the tree is then fitted without, at 100%.
float WatchLayout::unfolded_height(float tree) const {
  const float share = ease_out(static_cast<float>((ImGui::GetTime() - unfolded_at_) / kSlideSeconds));
  const float whole = std::min(kUnfoldedHeight, tree * kMostOfTree);
  return std::floor(whole * (unfolded_ ? share : 1 - share));
}

void WatchLayout::draw_numbers(const ViewModel& view, CommandSink& sink, const WatchTree::Parts& parts,
                               bool with_chart) {
  source_.update(view);
  if (!source_.done()) keep_drawing(kSlideSeconds);
  const ImVec2 origin = ImGui::GetWindowPos();
  const auto pos = [&](const ImVec4& part) { return ImVec2(origin.x + part.x, origin.y + part.y); };
  if (parts.numbers.w > 0)
    draw_watch_numbers(view, source_.numbers(), pos(parts.numbers), {parts.numbers.z, parts.numbers.w}, parts.subtitles,
                       sink);
  const BudgetLine* line = source_.line();
  if (parts.budget.w <= 0 || !line) {
    // In slow motion the line comes with the end of each pass; the chart over the tree stays as the user left it.
    if (parts.budget.w <= 0 || !view.rounds.playback.slow_motion) unfolded_ = false;
    return;
  }
  if (const auto round = source_.round()) game_.show(*round, source_.budget());
  if (game_.asking()) unfolded_ = false;  // the chart would tell
  if (draw_budget_line(*line, pos(parts.budget), {parts.budget.z, parts.budget.w}, unfolded_, game_)) {
    unfolded_ = !unfolded_;
    unfolded_at_ = view.rounds.reduced_motion ? -1 : ImGui::GetTime();
    keep_drawing(kSlideSeconds);
  }
  if (!with_chart) return;
  const ImVec4& above = parts.legend.w > 0 ? parts.legend : parts.tree;
  const float top = above.y + above.w;
  draw_unfolded(view, sink, {pos(parts.budget).x, pos(above).y + above.w}, {parts.tree.z, parts.budget.y - top});
}

/// Draws the chart of the budget between the tree and the line about it.
void WatchLayout::draw_unfolded(const ViewModel& view, CommandSink& sink, ImVec2 pos, ImVec2 size) {
  ImGui::SetCursorScreenPos(pos);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  if (ImGui::BeginChild("Unfolded", size, ImGuiChildFlags_None, ImGuiWindowFlags_NoScrollbar)) budget_.draw(view, sink);
  ImGui::EndChild();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

namespace {

constexpr float kGrabWidth = 8, kDrawerWidth = 300;
constexpr const char* kDrawer = "Chats over the chat";
constexpr ImGuiWindowFlags kEdgeFlags = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                        ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                                        ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoNav |
                                        ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_NoBackground;

}  // namespace

/// Draws the list of chats in its place, or without one over the chat while it is wanted there.
void WatchLayout::draw_list(const ViewModel& view, CommandSink& sink, const WatchRect& place, float bar) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const auto corner = [&](float x, float y) { return ImVec2(viewport->Pos.x + px(x), viewport->Pos.y + px(y)); };
  if (place.shown()) {
    const ImVec2 pos = corner(place.x, place.y), end = corner(place.x + place.width, place.y + place.height);
    draw_fixed("Watch chats", pos, {end.x - pos.x, end.y - pos.y}, colours().panel,
               [&] { list_.draw(view, sink, ChatList::Place::column); });
  } else if (listed_) {
    ImGui::SetWindowFocus("Watch chat");  // which the list may have had
  }
  listed_ = place.shown();
  const bool narrow = viewport->Size.x / look().scale < kRoomForChatList;
  if (!narrow && view.shell.chat_list_over) sink.post(ShellCommand(ShowChatList{false, true}));
  const bool wanted = narrow && view.shell.chat_list_over;
  if (!wanted && !drawer_) return;
  if (!drawer_) ImGui::OpenPopup(kDrawer);
  drawer_ = wanted;
  const float top = bar + px(kGap);
  ImGui::SetNextWindowPos({viewport->Pos.x, viewport->Pos.y + top});
  ImGui::SetNextWindowSize({std::min(px(kDrawerWidth), viewport->Size.x * 0.85f), viewport->Size.y - top});
  ImGui::PushStyleColor(ImGuiCol_PopupBg, colours().panel);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_PopupRounding, 0);
  const bool open = ImGui::BeginPopup(
      kDrawer, ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
  if (open && wanted) list_.draw(view, sink, ChatList::Place::drawer);
  if (open && !wanted) ImGui::CloseCurrentPopup();
  if (open) ImGui::EndPopup();
  if (wanted && !open) sink.post(ShellCommand(ShowChatList{false, true}));  // closed by Esc or a click beside it
  if (!wanted) ImGui::SetWindowFocus("Watch chat");
}

/// Draws the edge between chat and tree: dragged it makes the chat wider, a double click gives the usual width.
void WatchLayout::draw_edge(const ViewModel& view, CommandSink& sink, const WatchPlaces& at) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float scale = look().scale, x = viewport->Pos.x + px(at.edge.x), y = viewport->Pos.y + px(at.edge.y);
  ImGui::SetNextWindowPos({x - px(1), y});
  ImGui::SetNextWindowSize({px(kGrabWidth), px(at.edge.height)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, {1, 1});
  ImGui::Begin("Watch edge", nullptr, kEdgeFlags);
  ImGui::PopStyleVar(2);
  // It lies over a pixel of the chat and a little of the tree.
  if (ImGui::IsWindowAppearing()) ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
  ImGui::InvisibleButton("Width of the chat", ImGui::GetWindowSize());
  const bool held = ImGui::IsItemActive();
  if (held || ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
    ImGui::GetWindowDrawList()->AddRectFilled({x, y}, {x + px(at.edge.width), y + px(at.edge.height)},
                                              held ? colours().accent : colours().ctl);
  }
  const float mouse = ImGui::GetIO().MousePos.x;
  if (ImGui::IsItemActivated()) grabbed_ = mouse - x;
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
    sink.post(ShellCommand(SetChatWidth{}));
  } else if (held && ImGui::IsMouseDragging(ImGuiMouseButton_Left, px(2))) {
    const float room = viewport->Size.x / scale - at.chat.x;
    const float wanted = (mouse - grabbed_ - viewport->Pos.x) / scale - at.chat.x;
    const float width = chat_width(std::max(wanted, kLeastChatWidth), room);
    if (width != view.shell.chat_width) sink.post(ShellCommand(SetChatWidth{width}));
  }
  if (ImGui::IsItemDeactivated()) ImGui::SetWindowFocus("Watch chat");
  ImGui::End();
}

void WatchLayout::draw(const ViewModel& view, CommandSink& sink, float bar, std::vector<ScreenRegion>& regions) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float scale = look().scale;
  const float width = viewport->Size.x / scale;
  WatchPlaces at = watch_places(width, viewport->Size.y / scale, bar / scale, view.shell.tour.shown,
                                {chat_list_shown(view.shell, width), view.shell.chat_width});
  const float chart = at.budget.shown() && at.tree.shown() ? unfolded_height(at.tree.height) : 0;
  at.tree.height -= chart;
  if (at.legend.shown()) at.legend.y -= chart;
  const auto place = [&](const WatchRect& part) {
    const ImVec2 pos = {viewport->Pos.x + px(part.x), viewport->Pos.y + px(part.y)};
    return std::pair(pos, ImVec2{px(part.x + part.width) - px(part.x), px(part.y + part.height) - px(part.y)});
  };
  const std::pair<std::string_view, const WatchRect*> named[] = {
      {"Watch chats", &at.list}, {"Watch chat", &at.chat}, {"Numbers", &at.numbers},    {"Caption", &at.caption},
      {"Tree", &at.tree},        {"Legend", &at.legend},   {"Budget line", &at.budget}, {strip_.name(), &at.strip}};
  for (const auto& [name, part] : named)
    if (part->shown()) regions.push_back({name, place(*part).first, place(*part).second});
  if (at.edge.shown()) draw_edge(view, sink, at);
  draw_list(view, sink, at.list, bar);
  if (at.chat.shown()) {
    const auto [pos, size] = place(at.chat);
    draw_fixed("Watch chat", pos, size, colours().panel, [&] { chat_.draw(view, sink); });
  }
  // Numbers, caption, tree, legend and budget are one window, so that the keys of the tree work on all of them.
  const float top = at.numbers.shown() ? at.numbers.y : at.caption.y;
  const WatchRect& last = at.budget.shown() ? at.budget : at.legend.shown() ? at.legend : at.tree;
  const auto [pos, size] = place({at.tree.x, top, at.tree.width, last.y + last.height - top});
  const auto part_of = [&](const WatchRect& part) {
    return part.shown() ? ImVec4(0, px(part.y) - px(top), px(part.width), px(part.height)) : ImVec4(0, 0, 0, 0);
  };
  const WatchTree::Parts parts = {part_of(at.numbers), part_of(at.caption), part_of(at.tree),
                                  part_of(at.legend),  part_of(at.budget),  at.subtitles};
  if (at.tree.shown())
    draw_fixed(tree_.name(), pos, size, colours().back, [&] {
      tree_.draw(view, sink, parts);
      draw_numbers(view, sink, parts, chart > 0);
    });
  if (const auto end =
          at.chat.shown() && at.tree.shown() && !view.rounds.reduced_motion ? chat_.text_end(view) : std::nullopt)
    draw_flying_words(ImGui::GetForegroundDrawList(), tree_.canvas(), view.rounds.playback, *end);
  if (at.strip.shown()) {
    const auto [strip_pos, strip_size] = place(at.strip);
    draw_fixed(strip_.name(), strip_pos, strip_size, colours().panel, [&] { strip_.draw(view, sink); });
  }
  if (!view.shell.tour.shown) return;
  const auto corners = [&](const WatchRect& part) {
    const auto [from, room] = place(part);
    return part.shown() ? ImVec4(from.x, from.y, from.x + room.x, from.y + room.y) : ImVec4(0, 0, 0, 0);
  };
  draw_tour(view, sink, {corners(at.chat), corners(at.tree), corners(at.numbers), {}, {}, {}});
}

/// Finishes the places with those of the tree: of the accepted path and of all its words.
void WatchLayout::draw_tour(const ViewModel& view, CommandSink& sink, TourPlaces places) {
  const TreeCanvas& tree = tree_.canvas();
  if (tree.shown().record && !tree.geometry().nodes.empty()) {
    const TreeModel& model = tree.shown().model;
    const TreeGeometry& geometry = tree.geometry();
    places.path = tree.on_screen(path_places(model, geometry, look().scale));
    places.pills = tree.on_screen(path_pills(model, geometry, look().scale));
    places.words = tree.on_screen(other_words(model, geometry, look().scale));
  }
  tour_.draw(view, sink, places, tour_facts());
}

TourFacts WatchLayout::tour_facts() const {
  const ShownTree& shown = tree_.canvas().shown();
  TourFacts facts;
  if (!shown.record) return facts;
  const TreeModel& tree = shown.model;
  facts.guesses = tree.size() - 1 - (tree.bonus ? 1 : 0);
  facts.right = tree.counted(NodeFate::accepted);
  facts.emitted = static_cast<uint32_t>(shown.record->emitted.size());
  facts.sources = tree.sources;
  facts.match = tree.match;
  if (tree.bonus) facts.own = shown.labels[*tree.bonus];
  for (const uint32_t node : tree.path) {
    const auto children = tree.children(node);
    const uint32_t taken = tree.next_on_path(node);
    if (children.empty() || taken == TreeNode::none || taken == tree.bonus || tree.on_path(children.front())) continue;
    facts.favourite = shown.labels[children.front()];
    facts.taken = shown.labels[taken];
    break;
  }
  if (const auto chain = chain_estimate(*shown.record, tree)) {
    facts.chain = chain->emitted;
    facts.chain_at_least = chain->at_least;
  }
  const WatchNumbers& numbers = source_.numbers();
  if (numbers.tokens.shown) facts.tokens_per_pass = numbers.tokens.value;
  if (numbers.cost.shown && numbers.plain_tokens > 0) {
    char words[32];
    std::snprintf(words, sizeof words, numbers.plain_tokens < 9.95 ? "%.1f" : "%.0f", numbers.plain_tokens);
    facts.plain_tokens = words;
    facts.slower = numbers.plain_tokens > numbers.tokens_per_pass;
  }
  return facts;
}

}  // namespace canopy::app
