#include "app/compare/compare_panel.h"

#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/charts/chart_frame.h"
#include "app/compare/compare_figures.h"
#include "app/ui/look.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

using RunPhase = ComparisonState::Phase;
constexpr float kButtonHeight = 32, kProgressBar = 140;

ButtonSpec close_button() {
  ButtonSpec spec{"Close the page", Icon::close};
  spec.show_label = false;
  spec.height = kButtonHeight;
  spec.tooltip = "Back to the chat; what is being measured goes on  Esc";
  return spec;
}

std::string progress_words(const ComparisonState& state) {
  const ComparisonProgress& p = state.progress;
  if (state.phase == RunPhase::waiting) return "Waiting for the engine";
  if (state.phase == RunPhase::cancelling) return "Stopping";
  if (p.stage != "Measuring" && p.stage != "Paused") return p.stage;
  const std::string figures = progress_figures({"", p.done, p.total, false, p.paused ? -1 : p.seconds_left});
  return p.paused ? "Paused, " + figures : figures;
}

}  // namespace

float draw_page_names(const ViewModel& view, CommandSink& sink, ImVec2 pos) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const struct {
    WindowPage page;
    const char* words;
    const char* tip;
  } pages[] = {{WindowPage::compare, "Compare", "A few ways to decode, beside each other  F2"},
               {WindowPage::sweep, "Sweep", "Many prompts, widths and repeats  F3"}};
  float x = pos.x;
  for (const auto& each : pages) {
    const ImVec2 size = {text_size(Type::title, each.words).x, px(kButtonHeight)};
    const bool on = view.shell.page == each.page;
    ImGui::SetCursorScreenPos({x, pos.y});
    if (ImGui::InvisibleButton(each.words, size, ImGuiButtonFlags_EnableNav))
      sink.post(ShellCommand(ShowPage{each.page}));
    tooltip(each.tip);
    const bool hovered = ImGui::IsItemHovered();
    draw_text_middle(list, x, pos.y + size.y * 0.5f, Type::title,
                     on        ? t.text
                     : hovered ? t.text2
                               : t.text3,
                     each.words);
    if (on) list->AddRectFilled({x, pos.y + size.y - px(3)}, {x + size.x, pos.y + size.y - px(1)}, t.accent);
    x += size.x + px(18);
  }
  return x;
}

float draw_measuring(const ViewModel& view, CommandSink& sink, SweepKind kind, const ComparisonCommand& start,
                     const char* start_words, const std::string& obstacle, float left, float right, float y) {
  const Theme& t = colours();
  const ComparisonState& state = view.comparison;
  const float top = std::floor(y - px(kButtonHeight) * 0.5f);
  float x = right;
  const auto put = [&](ButtonSpec spec) {
    spec.height = kButtonHeight;
    x -= button_size(spec).x;
    ImGui::SetCursorScreenPos({std::floor(x), top});
    const bool pressed = button(spec);
    x -= px(8);
    return pressed;
  };
  if (put(close_button())) sink.post(ShellCommand(ShowPage{WindowPage::rounds}));
  if (!state.busy()) {
    ButtonSpec spec{"Start measuring", Icon::play, ButtonKind::primary};
    spec.words = start_words;
    spec.enabled = obstacle.empty();
    if (!obstacle.empty()) spec.tooltip = obstacle.c_str();
    if (put(spec)) sink.post(start);
    return x;
  }
  ButtonSpec stop{"Cancel measuring", Icon::none, ButtonKind::line};
  stop.words = "Cancel";
  stop.enabled = state.phase != RunPhase::cancelling;
  stop.tooltip = "All whole replies are kept";
  if (put(stop)) sink.post(ComparisonCommand(StopMeasuring{}));
  const bool paused = state.progress.paused;
  ButtonSpec pause{"Pause measuring", paused ? Icon::play : Icon::pause, ButtonKind::line};
  pause.words = paused ? "Go on" : "Pause";
  pause.enabled = state.phase == RunPhase::running;
  pause.tooltip = "Before the next reply";
  if (put(pause)) sink.post(ComparisonCommand(PauseMeasuring{!paused}));
  if (!state.measures(kind)) {
    const std::string other = kind == SweepKind::sweep ? "A comparison is being measured" : "A sweep is being measured";
    const std::string words = first_fitting(Type::secondary, {other, ""}, x - left);
    x -= text_size(Type::secondary, words).x;
    draw_text_middle(ImGui::GetWindowDrawList(), x, y, Type::secondary, t.text2, words);
    return x - px(8);
  }
  const float bar = std::min(px(kProgressBar), x - left);
  const ComparisonProgress& p = state.progress;
  if (bar > px(40) && p.total > 0) {
    x -= bar;
    const float share = static_cast<float>(static_cast<double>(p.done) / static_cast<double>(p.total));
    draw_bar(ImGui::GetWindowDrawList(), {x, y - px(3)}, {bar, px(6)}, share, t.accent, t.raised);
    x -= px(12);
  }
  const std::string words = elided(Type::secondary, progress_words(state), std::max(0.0f, x - left));
  x -= text_size(Type::secondary, words).x;
  if (!words.empty()) draw_text_middle(ImGui::GetWindowDrawList(), x, y, Type::secondary, t.text2, words);
  return x - px(8);
}

float stepper_width(const char* caption, const std::string& widest) {
  return text_size(Type::secondary, caption).x + px(8) + px(28) * 2 +
         std::max(px(36), text_size(Type::mono, widest).x + px(8));
}

uint32_t stepper(const char* id, const char* caption, uint32_t value, std::span<const uint32_t> steps, bool enabled) {
  const Theme& t = colours();
  ImGui::PushID(id);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = px(28), caption_width = text_size(Type::secondary, caption).x + px(8);
  const std::string figure = value == 0 ? "all" : grouped(value);
  const float room = std::max(px(36), text_size(Type::mono, figure).x + px(8));
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text_middle(list, at.x, at.y + height * 0.5f, Type::secondary, t.text2, caption);
  const auto above = std::upper_bound(steps.begin(), steps.end(), value);
  const auto below = std::lower_bound(steps.begin(), steps.end(), value);
  ImGui::SetCursorScreenPos({at.x + caption_width, at.y});
  uint32_t next = value;
  if (icon_button("Fewer", Icon::minus, "Fewer", enabled && below != steps.begin())) next = *(below - 1);
  const float x = at.x + caption_width + height;
  draw_text_middle(list, x + (room - text_size(Type::mono, figure).x) * 0.5f, at.y + height * 0.5f, Type::mono, t.text,
                   figure);
  ImGui::SetCursorScreenPos({x + room, at.y});
  if (icon_button("More", Icon::plus, "More", enabled && above != steps.end())) next = *above;
  ImGui::PopID();
  return next;
}

std::string measuring_obstacle(const ViewModel& view, bool needs_model) {
  if (view.comparison.busy()) return "Something is being measured already";
  if (view.model_state == ModelState::loading) return "A model is being loaded";
  if (needs_model && view.model_state == ModelState::none) return "Open a model first";
  return {};
}

// The lanes of Compare: all columns on one clock, a bar for each round, as wide as its time and as high as its tokens.

namespace {

constexpr float kRaceHead = 44, kLane = 30, kAxis = 28, kLaneBar = 20;
constexpr float kNames = 132, kEnds = 76, kRaceInset = 16;
constexpr float kFutureAlpha = 0.35f;
constexpr float kOwnCap = 2.5f;

std::string seconds_words(double ms) {
  const double s = ms / 1000;
  return fixed(s, s < 1 ? 3 : s < 100 ? 2 : 1) + " s";
}

/// Where the clock is in the lanes.
struct RaceScale {
  float left = 0, right = 0;
  double end_ms = 1;

  float x(double ms) const { return left + (right - left) * static_cast<float>(ms / end_ms); }
  double ms(float x) const { return std::clamp(double{x - left} / double{right - left}, 0.0, 1.0) * end_ms; }
};

void draw_race_head(const ComparisonState& state, ImVec2 pos, float width, CommandSink& sink) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool there = state.can_race();
  const float top = pos.y + px(8), middle = top + px(14);
  ImGui::SetCursorScreenPos({pos.x + px(kRaceInset), top});
  if (icon_button("To the start", Icon::first, "To the start", there)) sink.post(ComparisonCommand(SeekRace{0.0}));
  ImGui::SameLine(0, px(4));
  const bool playing = state.race.playing;
  if (icon_button("Play the race", playing ? Icon::pause : Icon::play, playing ? "Pause" : "Play from here", there))
    sink.post(ComparisonCommand(PlayRace{!playing}));
  ImGui::SameLine(0, px(4));
  if (icon_button("To the end", Icon::next, "To the end", there)) sink.post(ComparisonCommand(SeekRace{}));
  float x = ImGui::GetItemRectMax().x + px(14);
  const std::string clock = seconds_words(state.race_now());
  draw_text_middle(list, x, middle, Type::mono, t.text, clock);
  x += text_size(Type::mono, clock).x + px(10);
  const double slower = race_slowdown(state.race_end());
  const std::string pace = slower > 1 ? "one clock for all, played " + fixed(slower, 0) + " times slower"
                                      : std::string("one clock for all, played as it was");
  // The legend at the right, as far as there is room.
  float right = pos.x + width - px(kRaceInset);
  const struct {
    const char* words;
    bool own;
  } marks[] = {{"big model's own", true}, {"guessed, confirmed", false}};
  for (const auto& mark : marks) {
    const float wide = text_size(Type::secondary, mark.words).x + px(18);
    if (right - wide < x + px(180)) break;
    right -= wide;
    if (mark.own)
      list->AddRectFilled({right, middle - px(1)}, {right + px(11), middle + px(2)}, t.bonus);
    else
      list->AddRectFilled({right, middle - px(5)}, {right + px(10), middle + px(5)}, t.accepted);
    draw_text_middle(list, right + px(18), middle, Type::secondary, t.text2, mark.words);
    right -= px(18);
  }
  draw_text_middle(list, x, middle, Type::secondary, t.text3,
                   first_fitting(Type::secondary, {pace, "one clock for all", ""}, right - x));
}

void draw_lane(const ComparedReply& reply, const RaceScale& scale, double now_ms, uint32_t most, float base) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const double pixels_per_ms = double{scale.right - scale.left} / scale.end_ms;
  if (reply.rounds.empty()) {  // a server tells no rounds
    const float to = scale.x(reply.decode_ms), now = std::clamp(scale.x(now_ms), scale.left, to);
    list->AddRectFilled({scale.left, base - px(8)}, {now, base}, t.rest);
    list->AddRectFilled({now, base - px(8)}, {to, base}, faded(t.rest, kFutureAlpha));
    return;
  }
  for (const LaneBar& bar : lane_bars(reply.rounds, pixels_per_ms, px(2))) {
    const float a = scale.x(bar.begin_ms), b = scale.x(bar.end_ms);
    const float wide = std::max(1.0f, b - a - (b - a > px(4) ? px(1) : 0));
    const float unit = px(kLaneBar) / static_cast<float>(std::max(most, 1u));
    const float height = std::max(px(kOwnCap), unit * static_cast<float>(bar.emitted));
    const float cap = bar.own > 0 ? std::min(height, px(kOwnCap)) : 0;
    const float strength = bar.end_ms <= now_ms ? 1 : kFutureAlpha;
    if (height > cap) list->AddRectFilled({a, base - height + cap}, {a + wide, base}, faded(t.accepted, strength));
    if (cap > 0) list->AddRectFilled({a, base - height}, {a + wide, base - height + cap}, faded(t.bonus, strength));
  }
}

void draw_time_axis(const RaceScale& scale, float top, float bottom) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Ticks ticks = ticks_to(scale.end_ms / 1000, 8, false);
  for (size_t i = 0; i < ticks.at.size(); ++i) {
    const float x = std::floor(scale.x(ticks.at[i] * 1000)) + 0.5f;
    if (x > scale.right + 1) break;
    list->AddLine({x, top}, {x, bottom}, t.grid);
    const std::string& words = ticks.labels[i];
    draw_text(list, {x - text_size(Type::mono_caption, words).x * 0.5f, bottom + px(5)}, Type::mono_caption, t.text3,
              words);
  }
  draw_text(list, {scale.right + px(kEnds) - text_size(Type::caption, "seconds").x - px(8), bottom + px(5)},
            Type::caption, t.text3, "seconds");
}

void draw_clock(const ComparisonState& state, const RaceScale& scale, float top, float bottom) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float x = std::floor(scale.x(std::min(state.race_now(), scale.end_ms))) + 0.5f;
  list->AddLine({x, top}, {x, bottom}, colours().text, px(1.5f));
  list->AddTriangleFilled({x - px(5), top - px(7)}, {x + px(5), top - px(7)}, {x, top}, colours().text);
}

uint32_t most_emitted(const ComparisonState& state) {
  uint32_t most = 4;
  for (const auto& [key, reply] : state.replies)
    for (const RaceRound& round : reply.rounds) most = std::max(most, round.emitted);
  return most;
}

/// The height at 100% that so many lanes need.
float race_height(size_t lanes) {
  return kRaceHead + kLane * static_cast<float>(lanes) + kAxis + 12;
}

/// Draws the controls of the clock and the lanes into the rectangle; a press in the lanes moves the clock.
void draw_race(const ComparisonState& state, const CompareFigures& figures, ImVec2 pos, ImVec2 size,
               CommandSink& sink) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(pos, {pos.x + size.x, pos.y + size.y}, t.panel);
  draw_race_head(state, pos, size.x, sink);
  const float left = pos.x + px(kRaceInset);
  RaceScale scale{left + px(kNames), pos.x + size.x - px(kEnds), std::max(1.0, state.race_end())};
  const float top = pos.y + px(kRaceHead + 6), bottom = top + px(kLane) * static_cast<float>(figures.columns.size());
  if (state.race_end() > 0) draw_time_axis(scale, top, bottom);
  const uint32_t most = most_emitted(state);
  const double now = state.race_now();
  for (uint32_t i = 0; i < figures.columns.size(); ++i) {
    const float base = std::floor(top + px(kLane) * static_cast<float>(i + 1) - px(4));
    const ColumnFigures& column = figures.columns[i];
    draw_text_middle(list, left, base - px(8), Type::secondary_semibold, t.text,
                     elided(Type::secondary_semibold, column.name, px(kNames - 56)));
    list->AddLine({scale.left, base + 0.5f}, {scale.right, base + 0.5f}, t.line);
    const ComparedReply* reply = state.reply(state.shown_prompt, i);
    if (reply == nullptr) continue;
    const std::string tokens = grouped(reply->tokens_at(now));
    draw_text_middle(list, scale.left - px(12) - text_size(Type::mono, tokens).x, base - px(8), Type::mono, t.text2,
                     tokens);
    draw_lane(*reply, scale, now, most, base);
    if (!reply->ended) continue;
    // Behind the lane's end, and behind the clock where that is about to stand on it.
    const std::string words = seconds_words(reply->decode_ms);
    float x = scale.x(reply->decode_ms) + px(8);
    const float clock = scale.x(now);
    if (clock > x - px(8) && clock < x + text_size(Type::mono_caption, words).x + px(4)) x = std::max(x, clock + px(8));
    draw_text_middle(list, x, base - px(8), Type::mono_caption, column.fastest ? t.accent_text : t.text2, words);
  }
  if (state.race_end() <= 0) return;
  draw_clock(state, scale, top, bottom);
  ImGui::SetCursorScreenPos({scale.left, top - px(8)});
  ImGui::InvisibleButton("Race", {scale.right - scale.left, bottom - top + px(8)});
  if (ImGui::IsItemActive() && !state.writing)
    sink.post(ComparisonCommand(SeekRace{scale.ms(ImGui::GetIO().MousePos.x)}));
}

constexpr float kCompareHeader = 92, kHeaderRow = 40, kEdgeInset = 16, kCompareGap = 4;
constexpr float kCountsRow = 36, kLeastPrompt = 80, kLeastColumn = 128;
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
  const bool drafter_alone = std::ranges::any_of(setup.columns, [](const ComparisonColumn& each) {
    return each.is_loaded() && each.way.mode != DecodeMode::ar && each.way.sources == kFromDflash;
  });
  if (drafter_alone && view.model && !view.has_drafter())
    return "A column asks the drafter alone, and the loaded model has none";
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

float counts_width() {
  return stepper_width("Tokens", "4,096") + stepper_width("Repeats", "50") + px(12);
}

/// Whether a page of this width has no room for repeats and tokens beside the prompt: then they stand below it.
bool counts_below(float width) {
  const float prompt = text_size(Type::secondary, "Prompt").x + px(10 + kLeastPrompt);
  return width - px(kEdgeInset) * 2 < prompt + px(16) + counts_width();
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

void ComparePanel::draw_counts(const ViewModel& view, CommandSink& sink, float left, float right, float y) {
  const ComparisonState& state = view.comparison;
  CompareSetup setup = state.compare_setup;
  const bool enabled = !state.busy();
  const float tokens = stepper_width("Tokens", "4,096"), repeats = stepper_width("Repeats", "50");
  // In the narrowest window they begin at its edge, and have the room of their figures alone.
  const float first = std::max(left, right - tokens - px(12) - repeats);
  const float shown = stepper_width("Repeats", grouped(setup.repeats));
  ImGui::SetCursorScreenPos({std::max(right - tokens, first + shown + px(8)), y});
  setup.max_tokens = stepper("tokens", "Tokens", setup.max_tokens, kTokenSteps, enabled);
  ImGui::SetCursorScreenPos({first, y});
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
    std::string about;
    if (sentence == figures_.verdict)
      for (const std::string& each : figures_.about) about += "\n" + each;
    tooltip((sentence + "." + about + file).c_str());
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
  const bool below = counts_below(size.x);
  draw_counts(view, sink, left, right, row + (below ? px(kCountsRow) : 0));
  draw_text_middle(list, left, row + px(14), Type::secondary, t.text3, "Prompt");
  const float prompt_x = left + text_size(Type::secondary, "Prompt").x + px(10);
  draw_prompt(view, sink, {prompt_x, row}, right - (below ? 0 : counts_width() + px(16)) - prompt_x);
}

void ComparePanel::draw_columns(const ViewModel& view, ImVec2 pos, ImVec2 size) {
  const ComparisonState& state = view.comparison;
  const auto count = static_cast<uint32_t>(figures_.columns.size());
  const float gaps = px(kCompareGap) * static_cast<float>(count - 1);
  const float least = px(kLeastColumn) * static_cast<float>(count) + gaps;
  // Where they have no room beside each other, they scroll sideways.
  const bool scrolls = least > size.x;
  if (scrolls) {
    ImGui::SetCursorScreenPos(pos);
    ImGui::BeginChild("Columns", size, ImGuiChildFlags_NavFlattened, ImGuiWindowFlags_HorizontalScrollbar);
    pos.x = ImGui::GetCursorScreenPos().x;
    size = {least, size.y - ImGui::GetStyle().ScrollbarSize};
  }
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
  if (scrolls) {
    ImGui::SetCursorScreenPos(pos);
    ImGui::Dummy({least, 1});
    ImGui::EndChild();
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
  const float header = px(kCompareHeader + (counts_below(size.x) ? kCountsRow : 0));
  draw_header(view, sink, {origin.x, y}, {size.x, header});
  y += header + px(kCompareGap);
  const float left_over = origin.y + size.y - y;
  const bool raced = size.y >= px(kLeastForRace);
  const float lanes = raced ? std::floor(px(race_height(figures_.columns.size()))) : 0;
  draw_columns(view, {origin.x, y}, {size.x, left_over - lanes - (raced ? px(kCompareGap) : 0)});
  if (raced) draw_race(view.comparison, figures_, {origin.x, origin.y + size.y - lanes}, {size.x, lanes}, sink);
  menu_.draw(view, sink);
}

}  // namespace canopy::app
