#include "app/compare/compare_panel.h"

#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>

#include "app/compare/measuring_bar.h"
#include "app/compare/race_lanes.h"
#include "app/look/text_block.h"
#include "app/look/widgets.h"
#include "app/panels/error_cards.h"

namespace canopy::app {
namespace {

constexpr float kCompareHeader = 92, kHeaderRow = 40, kEdgeInset = 16, kCompareGap = 4;
constexpr float kLeastForRace = 430;  // height of the page below which the lanes leave their room to the columns

bool uses_loaded(const std::vector<ComparisonColumn>& columns) {
  // A column with another model still uses the loaded one's device where it names none.
  return std::ranges::any_of(columns, [](const ComparisonColumn& each) { return each.server.empty(); });
}

std::string compare_obstacle(const ViewModel& view) {
  const CompareSetup& setup = view.comparison.compare_setup;
  if (std::string obstacle = measuring_obstacle(view, uses_loaded(setup.columns)); !obstacle.empty()) return obstacle;
  if (setup.bundled && view.comparison.bundled.empty()) return "The prompts that come with Canopy are not there";
  if (!setup.bundled && setup.prompt.empty()) return "Write a prompt first";
  const bool drafts = std::ranges::any_of(
      setup.columns, [](const ComparisonColumn& each) { return each.is_loaded() && each.way.mode != DecodeMode::ar; });
  if (drafts && view.model && view.model->drafter.empty())
    return "The loaded model has no drafter: all columns must be AR";
  return {};
}

std::string empty_words(const ViewModel& view, uint32_t column) {
  const ComparisonState& state = view.comparison;
  if (!state.measures(SweepKind::comparison)) return "Nothing yet";
  if (state.progress.stage == "Warming up") return "Warming up";
  return state.writing && state.writing->contestant == column ? "Reading the prompt" : "Its turn comes";
}

/// The prompts of the set, one after the other.
void draw_prompt_of_set(const ComparisonState& state, CommandSink& sink, ImVec2 pos, float box) {
  const Theme& t = colours();
  ImGui::SetCursorScreenPos(pos);
  const uint32_t shown = state.shown_prompt;
  if (icon_button("Previous prompt", Icon::left, "Previous prompt", shown > 0))
    sink.post(ComparisonCommand(ShowComparedPrompt{shown - 1}));
  ImGui::SameLine(0, px(2));
  if (icon_button("Next prompt", Icon::right, "Next prompt", shown + 1 < state.prompts.size()))
    sink.post(ComparisonCommand(ShowComparedPrompt{shown + 1}));
  const ComparisonPrompt& prompt = state.prompts[shown];
  const std::string head = grouped(shown + 1) + " of " + grouped(state.prompts.size());
  const float x = pos.x + px(28) * 2 + px(12), middle = pos.y + px(14);
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text_middle(list, x, middle, Type::mono, t.text3, head);
  const float from = x + text_size(Type::mono, head).x + px(12);
  std::string text = prompt.turns.empty() ? "" : prompt.turns.back().content;
  std::ranges::replace(text, '\n', ' ');
  draw_text_middle(list, from, middle, Type::base, t.text, elided(Type::base, text, pos.x + box - from));
}

}  // namespace

void ComparePanel::refresh(const ComparisonState& state) {
  Made now;
  now.plan = state.comparison ? state.comparison->id : 0;
  now.changes = state.comparison ? state.comparison->changes : 0;
  now.prompt = state.shown_prompt;
  now.columns = state.compare_setup.columns;
  if (made_ == now) return;
  made_ = now;
  figures_ = compare_figures(state);
  const std::optional<uint32_t> before = marked_;
  marked_.reset();
  for (const ColumnFigures& column : figures_.columns)
    if (column.differs_at) marked_ = std::min(marked_.value_or(*column.differs_at), *column.differs_at);
  if (marked_ && marked_ != before) scroll_frames_ = 3;  // the differing token is shown by itself, once
}

void ComparePanel::draw_counts(const ViewModel& view, CommandSink& sink, float right, float y) {
  const ComparisonState& state = view.comparison;
  CompareSetup setup = state.compare_setup;
  const bool enabled = !state.busy();
  const float tokens = stepper_width("Tokens", "4,096"), repeats = stepper_width("Repeats", "50");
  ImGui::SetCursorScreenPos({right - tokens, y});
  setup.max_tokens = stepper("tokens", "Tokens", setup.max_tokens, kTokenSteps, enabled);
  ImGui::SetCursorScreenPos({right - tokens - px(12) - repeats, y});
  setup.repeats = stepper("repeats", "Repeats", setup.repeats, kRepeatSteps, enabled);
  if (setup.max_tokens != state.compare_setup.max_tokens || setup.repeats != state.compare_setup.repeats)
    sink.post(ComparisonCommand(SetCompareSetup{setup}));
}

void ComparePanel::draw_prompt(const ViewModel& view, CommandSink& sink, ImVec2 pos, float width) {
  const Theme& t = colours();
  const ComparisonState& state = view.comparison;
  CompareSetup setup = state.compare_setup;
  ButtonSpec set{"Prompts that come with Canopy", Icon::none, ButtonKind::line};
  set.words = "Bundled set";
  set.on = setup.bundled;
  set.enabled = !state.busy();
  set.tooltip = "One prompt of each category, instead of this one";
  const float set_width = button_size(set).x;
  const bool switches = width > px(320);
  const float box = width - (switches ? set_width + px(8) : 0);
  if (switches) {
    ImGui::SetCursorScreenPos({pos.x + box + px(8), pos.y});
    if (button(set)) {
      setup.bundled = !setup.bundled;
      sink.post(ComparisonCommand(SetCompareSetup{setup}));
    }
  }
  if (state.prompts.size() > 1 && (setup.bundled || state.busy())) return draw_prompt_of_set(state, sink, pos, box);
  if (setup.bundled) {
    draw_text_middle(
        ImGui::GetWindowDrawList(), pos.x, pos.y + px(14), Type::base, t.text2,
        elided(Type::base, state.bundled.empty() ? state.prompts_problem : "One prompt of each category", box));
    return;
  }
  if (!typing_) prompt_ = setup.prompt;
  ImGui::SetCursorScreenPos(pos);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, t.ctl);
  ImGui::SetNextItemWidth(box);
  ImGui::BeginDisabled(state.busy());
  ImGui::InputTextWithHint("##prompt", "Prompt", &prompt_);
  ImGui::EndDisabled();
  typing_ = ImGui::IsItemActive();
  if (ImGui::IsItemEdited() || ImGui::IsItemDeactivatedAfterEdit()) {
    setup.prompt = prompt_;
    sink.post(ComparisonCommand(SetCompareSetup{setup}));
  }
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

/// What the comparison found, as a sentence, and whether texts are the same; from x `left` to `end`.
void ComparePanel::draw_verdict(const ComparisonState& state, float left, float end, float middle) const {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  float x = left;
  if (!figures_.agreement_words.empty() && !state.busy()) {
    const bool bad = figures_.agreement == Agreement::must_not, same = figures_.agreement == Agreement::same;
    const std::string words = first_fitting(Type::secondary_semibold, {figures_.agreement_words, ""}, end - x - px(40));
    const float width = text_size(Type::secondary_semibold, words).x + px(36);
    if (!words.empty()) {
      list->AddRectFilled({x, middle - px(13)}, {x + width, middle + px(13)},
                          same  ? t.accent_bg
                          : bad ? t.rejected_bg
                                : t.bonus_bg,
                          px(5));
      if (same)
        draw_check_disc(list, {x + px(16), middle}, px(7), t.accent, t.on_accent);
      else if (bad)
        draw_cross(list, {x + px(16), middle}, px(5), t.rejected_text, px(2));
      else
        draw_triangle_sign(list, {x + px(16), middle}, px(13), t.bonus, t.on_state);
      draw_text_middle(list, x + px(28), middle, Type::secondary_semibold,
                       same  ? t.accent_text
                       : bad ? t.rejected_text
                             : t.bonus_text,
                       words);
      x += width + px(12);
    }
  }
  std::string sentence = state.note.empty() ? figures_.verdict : state.note;
  if (state.comparison && !state.comparison->problem.empty()) sentence = state.comparison->problem;
  if (state.busy()) sentence.clear();
  if (end - x > px(120) && !sentence.empty()) {
    const std::string shown = elided(Type::base, sentence, end - x);
    draw_text_middle(list, x, middle, Type::base, t.text, shown);
    ImGui::SetCursorScreenPos({x, middle - px(10)});
    ImGui::InvisibleButton("Verdict", {std::max(1.0f, text_size(Type::base, shown).x), px(20)});
    const std::string file =
        state.comparison && !state.comparison->file.empty() ? "\nSaved as " + file_part(state.comparison->file) : "";
    tooltip((sentence + "." + file).c_str());
  }
}

void ComparePanel::draw_header(const ViewModel& view, CommandSink& sink, ImVec2 pos, ImVec2 size) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(pos, {pos.x + size.x, pos.y + size.y}, t.panel);
  const float left = pos.x + px(kEdgeInset), right = pos.x + size.x - px(kEdgeInset);
  const float names_end = draw_page_names(view, sink, {left, pos.y + px(8)});
  const std::string obstacle = compare_obstacle(view);
  const bool again = view.comparison.comparison.has_value();
  const float end = draw_measuring(view, sink, SweepKind::comparison, StartComparison{}, again ? "Run again" : "Run",
                                   obstacle, names_end + px(8), right, pos.y + px(kHeaderRow) * 0.5f + px(4));
  draw_verdict(view.comparison, names_end + px(8), end, pos.y + px(24));
  const float row = pos.y + px(52);
  const float counts = stepper_width("Tokens", "4,096") + stepper_width("Repeats", "50") + px(12);
  draw_counts(view, sink, right, row);
  draw_text_middle(list, left, row + px(14), Type::secondary, t.text3, "Prompt");
  const float prompt_x = left + text_size(Type::secondary, "Prompt").x + px(10);
  draw_prompt(view, sink, {prompt_x, row}, std::max(px(80), right - counts - px(16) - prompt_x));
}

void ComparePanel::draw_columns(const ViewModel& view, ImVec2 pos, ImVec2 size) {
  const ComparisonState& state = view.comparison;
  const auto count = static_cast<uint32_t>(figures_.columns.size());
  const float gaps = px(kCompareGap) * static_cast<float>(count - 1);
  const float width = (size.x - gaps) / static_cast<float>(count);
  for (uint32_t i = 0; i < count; ++i) {
    ColumnScene scene;
    scene.reply = state.reply(state.shown_prompt, i);
    scene.now_ms = state.race_now();
    scene.writing = state.writing && state.writing->prompt == state.shown_prompt && state.writing->contestant == i;
    scene.longest_round = figures_.longest_round;
    scene.marked = marked_;
    scene.scroll = scroll_frames_ > 0;
    const std::string words = empty_words(view, i);
    scene.empty_words = words.c_str();
    const float x = std::floor(pos.x + (width + px(kCompareGap)) * static_cast<float>(i));
    const float end =
        i + 1 == count ? pos.x + size.x : std::floor(pos.x + (width + px(kCompareGap)) * static_cast<float>(i) + width);
    if (columns_[i].draw(static_cast<int>(i), figures_.columns[i], scene, {x, pos.y}, {end - x, size.y}))
      scroll_frames_ = 3;
    if (columns_[i].asks_for_menu() && !state.busy())
      menu_.open(view, i, {columns_[i].title_min().x, columns_[i].title_min().y + px(28)});
  }
  if (scroll_frames_ > 0) {
    --scroll_frames_;
    keep_drawing(0.05);
  }
}

void ComparePanel::draw(const ViewModel& view, CommandSink& sink) {
  refresh(view.comparison);
  const ImVec2 origin = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  float y = origin.y;
  if (!view.cards.empty()) {
    ImGui::SetCursorScreenPos({origin.x + px(kEdgeInset), y + px(8)});
    ImGui::BeginGroup();
    draw_error_cards(view, sink, size.x - px(kEdgeInset) * 2);
    ImGui::EndGroup();
    y = std::floor(ImGui::GetItemRectMax().y + px(8));
  }
  draw_header(view, sink, {origin.x, y}, {size.x, px(kCompareHeader)});
  y += px(kCompareHeader + kCompareGap);
  const float left_over = origin.y + size.y - y;
  const bool raced = size.y >= px(kLeastForRace);
  const float lanes = raced ? std::floor(px(race_height(figures_.columns.size()))) : 0;
  draw_columns(view, {origin.x, y}, {size.x, left_over - lanes - (raced ? px(kCompareGap) : 0)});
  if (raced) draw_race(view.comparison, figures_, {origin.x, origin.y + size.y - lanes}, {size.x, lanes}, sink);
  menu_.draw(view, sink);
}

}  // namespace canopy::app
