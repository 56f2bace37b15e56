#include "app/shell/what_if_layout.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "app/base/figures.h"
#include "app/look/widgets.h"
#include "app/shell/fixed_window.h"
#include "app/shell/what_if_card.h"
#include "app/state/work_under_way.h"

namespace canopy::app {
namespace {

constexpr float kWhatIfGap = 4, kWhatIfHead = 60, kBetweenCards = 8, kLeastCard = 268, kLeastCards = 300,
                kRaceHeight = 224, kLeastRaceHeight = 120;

/// Why totals are what they are, in one sentence.
std::string exactness(const WhatIfState& state) {
  const WhatIfAnswer& answer = state.answer;
  const WhatIf* doubtful = nullptr;
  bool any = false;
  for (const auto& each : answer.there) {
    if (!each->problem.empty()) continue;
    any = true;
    if (!each->run.exact && doubtful == nullptr && !each->run.why_not.empty()) doubtful = &each->run;
  }
  if (!any) return "";
  if (doubtful != nullptr) return doubtful->why_not;
  return "Each pass begins where the one before it ended: exact but for the times.";
}

/// What is done with the recording, with its progress and its end, at the right end; returns its width.
float draw_work(const Work& work, CommandSink& sink, ImVec2 pos, ImVec2 size) {
  constexpr float bar_width = 120;
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  ButtonSpec cancel{"Cancel", Icon::none, ButtonKind::line};
  const ImVec2 button_room = button_size(cancel);
  const float middle = pos.y + size.y * 0.5f;
  float x = pos.x + size.x - button_room.x - px(12);
  ImGui::SetCursorScreenPos({x, std::floor(middle - button_room.y * 0.5f)});
  if (button(cancel)) sink.post(work.cancel);
  x -= px(bar_width + 12);
  const std::string done = work.progress.total ? ", " + percent(work.progress.fraction(), 0) : " ...";
  const std::string words = work.progress.stage + done;
  x = std::min(x, x + px(bar_width) - text_size(Type::secondary, words).x);
  draw_text_middle(list, x, middle - px(9), Type::secondary, t.text2, words);
  draw_bar(list, {x, middle + px(5)}, {pos.x + size.x - button_room.x - px(24) - x, px(6)},
           std::max(0.0f, work.progress.fraction()), t.accent, t.line);
  return pos.x + size.x - x + px(8);
}

/// A button that makes a recording exact, or the progress of that, at the right end; returns its width.
float draw_make_dense(const ViewModel& view, CommandSink& sink, ImVec2 pos, ImVec2 size) {
  if (const std::optional<Work> work = recording_work(view)) return draw_work(*work, sink, pos, size);
  const auto& there = view.what_if.answer.there;
  const bool doubtful = std::ranges::any_of(there, [](const auto& each) { return !each->run.exact; });
  if (!doubtful || !can_make_dense(view)) return 0;
  ButtonSpec spec{"Make it exact", Icon::none, ButtonKind::line};
  spec.tooltip = "Has the loaded drafter draft behind every token of this recording, and keeps the drafts in its file";
  const ImVec2 room = button_size(spec);
  ImGui::SetCursorScreenPos({pos.x + size.x - room.x - px(12), pos.y + std::floor((size.y - room.y) * 0.5f)});
  if (button(spec)) sink.post(WhatIfCommand(MakeDense{}));
  return room.x + px(20);
}

/// Buttons that bring other devices on show, at the right end; returns their width.
float draw_turning(size_t& first, size_t hidden, ImVec2 pos, ImVec2 size) {
  if (hidden == 0) return 0;
  const float width = px(76);
  ImGui::SetCursorScreenPos({pos.x + size.x - width, pos.y + px(8)});
  if (icon_button("Devices to the left", Icon::left, "Other devices", first > 0)) --first;
  ImGui::SameLine(0, px(4));
  if (icon_button("Devices to the right", Icon::right, "Other devices", first < hidden)) ++first;
  return width;
}

void draw_heading(const ViewModel& view, ImVec2 pos, ImVec2 size) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float x = pos.x + px(14), room = size.x - px(28);
  const std::string title = elided(Type::title, "What if it had run elsewhere?", room);
  draw_text_middle(list, x, pos.y + px(20), Type::title, t.text, title);
  const float after = x + text_size(Type::title, title).x + px(8);
  const std::string words =
      "The guesses and the answers are recorded; only the clock of each device is put under them.";
  if (after + text_size(Type::base, words).x < x + room)
    draw_text_middle(list, after, pos.y + px(20), Type::base, t.text2, words);
  std::string below = exactness(view.what_if);
  const std::string key = "Solid: from measured passes. Dashed: predicted from a profile of the device.";
  if (below.empty()) below = "Other devices are computed once there is a reply or a recording.";
  draw_text_middle(list, x, pos.y + px(42), Type::secondary, t.text3,
                   first_fitting(Type::secondary, {below + " " + key, below}, room));
}

/// What stands where there is no card yet.
std::string waiting_words(const ViewModel& view) {
  if (!view.what_if.answer.problem.empty()) return view.what_if.answer.problem;
  if (view.rounds.log->rounds() == 0)
    return "Write a message, or open a recording: this shows what other devices would make of it.";
  return "Computing what other devices would make of it ...";
}

}  // namespace

void WhatIfLayout::draw_cards(const ViewModel& view, CommandSink& sink, ImVec2 pos, ImVec2 size) {
  const auto& there = view.what_if.answer.there;
  if (there.empty()) {
    const std::string words = elided(Type::lead, waiting_words(view), size.x - px(28));
    draw_text_middle(ImGui::GetWindowDrawList(), pos.x + (size.x - text_size(Type::lead, words).x) * 0.5f,
                     pos.y + size.y * 0.5f, Type::lead, colours().text2, words);
    return;
  }
  const float scale = look().scale;
  const auto fits =
      static_cast<size_t>(std::max(1.0f, (size.x + px(kBetweenCards)) / ((kLeastCard + kBetweenCards) * scale)));
  const size_t places = 1 + view.what_if.calibrations.size() + view.what_if.devices.size();
  const size_t shown = std::min(fits, places);
  first_ = std::min(first_, places - shown);
  const float width = (size.x - px(kBetweenCards) * static_cast<float>(shown + 1)) / static_cast<float>(shown);
  for (size_t i = 0; i < shown; ++i) {
    // This machine stays; the others move where not all have room.
    const size_t index = i == 0 ? 0 : i + first_;
    if (index >= there.size()) break;
    const float x = pos.x + px(kBetweenCards) + (width + px(kBetweenCards)) * static_cast<float>(i);
    draw_what_if_card(
        view, {index, {std::floor(x), pos.y + px(kBetweenCards)}, {std::floor(width), size.y - px(kBetweenCards) * 2}},
        sink);
  }
  hidden_ = shown < 2 ? 0 : places - shown;
}

void WhatIfLayout::draw(const ViewModel& view, CommandSink& sink, float bar, std::vector<ScreenRegion>& regions) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const Theme& t = colours();
  const float width = viewport->Size.x, height = viewport->Size.y - bar;
  const float head = px(kWhatIfHead), gap = px(kWhatIfGap);
  float race = std::min(px(kRaceHeight), height * 0.34f);
  if (height - head - race - gap * 3 < px(kLeastCards)) race = height - head - px(kLeastCards) - gap * 3;
  const bool with_race = race >= px(kLeastRaceHeight);
  const float cards = height - head - gap * 2 - (with_race ? race + gap : 0);
  const ImVec2 origin = {viewport->Pos.x, viewport->Pos.y + bar + gap};
  draw_fixed("What if", origin, {width, head}, t.panel, [&] {
    float taken = draw_turning(first_, hidden_, origin, {width, head});
    taken += draw_make_dense(view, sink, origin, {width - taken, head});
    draw_heading(view, origin, {width - taken, head});
  });
  const ImVec2 cards_pos = {origin.x, origin.y + head};
  draw_fixed("Devices", cards_pos, {width, cards}, t.back, [&] { draw_cards(view, sink, cards_pos, {width, cards}); });
  regions.push_back({"What if", origin, {width, head}});
  regions.push_back({"Devices", cards_pos, {width, cards}});
  if (!with_race) return;
  const ImVec2 race_pos = {origin.x, cards_pos.y + cards + gap};
  draw_fixed("Race", race_pos, {width, race}, t.panel, [&] { race_.draw(view, race_pos, {width, race}); });
  regions.push_back({"Race", race_pos, {width, race}});
}

}  // namespace canopy::app
