#include "app/shell/what_if_layout.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "app/charts/chart_frame.h"
#include "app/state/round_log.h"
#include "app/state/words.h"
#include "app/ui/look.h"
#include "app/ui/shapes.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

constexpr float kWaiting = 0.35f;      // strength of passes that are still to come
constexpr double kFastestSeconds = 4;  // in which the fastest is done
constexpr float kRaceNames = 150, kRaceRight = 92, kRaceHead = 46, kRaceFoot = 24;

const char* words_of(TimesFrom times) {
  switch (times) {
    case TimesFrom::recorded: return "measured passes";
    case TimesFrom::measured_elsewhere: return "measured elsewhere";
    case TimesFrom::predicted: break;
  }
  return "predicted";
}

void draw_key(ImDrawList* list, float right, float middle) {
  const Theme& t = colours();
  const char* const plain = "plain, one token a pass";
  float x = right - text_size(Type::secondary, plain).x;
  draw_text_middle(list, x, middle, Type::secondary, t.text2, plain);
  const ImVec2 dots[] = {{x - px(28), middle}, {x - px(8), middle}};
  add_dashed(list, dots, {px(2), px(2)}, t.bonus, px(1.5f));
  const char* const added = "added by the big model";
  x -= px(44) + text_size(Type::secondary, added).x;
  draw_text_middle(list, x, middle, Type::secondary, t.text2, added);
  list->AddRectFilled({x - px(18), middle - px(1.5f)}, {x - px(8), middle + px(1.5f)}, t.bonus);
  const char* const guessed = "guessed";
  x -= px(34) + text_size(Type::secondary, guessed).x;
  draw_text_middle(list, x, middle, Type::secondary, t.text2, guessed);
  list->AddRectFilled({x - px(18), middle - px(5)}, {x - px(8), middle + px(5)}, t.accepted);
}

}  // namespace

void RaceView::take(const ViewModel& view) {
  const WhatIfAnswer& answer = view.what_if.answer;
  if (number_ == answer.number && lanes_ == answer.there.size()) return;
  const bool begins = number_ != answer.number;
  number_ = answer.number;
  lanes_ = answer.there.size();
  race_ = race_of(answer);
  // Another race opens at its first frame; one that got a further lane may end earlier.
  now_ms_ = begins ? 0 : std::min(now_ms_, race_.axis_ms);
  if (begins) running_ = false;
}

void RaceView::draw_controls(ImVec2 pos, ImVec2 size) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = pos.y + px(kRaceHead) * 0.5f;
  const auto control = [&](const char* id, Icon icon, const char* about, ButtonKind kind) {
    ButtonSpec spec{id, icon, kind};
    spec.show_label = false;
    spec.tooltip = about;
    spec.enabled = !race_.empty();
    const bool pressed = button(spec);
    ImGui::SameLine(0, px(8));
    return pressed;
  };
  ImGui::SetCursorScreenPos({pos.x + px(14), middle - px(14)});
  if (control("Begin the race", Icon::first, "From the beginning", ButtonKind::line)) {
    now_ms_ = 0;
    running_ = true;
  }
  if (control("Run the race", running_ ? Icon::pause : Icon::play, running_ ? "Pause" : "Run it on one clock",
              ButtonKind::primary)) {
    running_ = !running_;
    if (running_ && now_ms_ >= race_.axis_ms) now_ms_ = 0;
  }
  if (race_.empty()) return;
  const float x = ImGui::GetCursorScreenPos().x + px(6);
  const std::string clock = milliseconds(std::min(now_ms_, race_.axis_ms));
  draw_text_middle(list, x, middle, Type::figure, t.text, clock);
  const double slower = 1 / race_speed(race_, kFastestSeconds);
  const std::string tokens = counted(race_.lanes.front().tokens, "token", "tokens") + " on one clock";
  const std::string rate = slower >= 1.5 ? ", slowed " + grouped(static_cast<uint64_t>(std::lround(slower))) + " times"
                           : slower < 0.67
                               ? ", " + grouped(static_cast<uint64_t>(std::lround(1 / slower))) + " times as fast"
                               : "";
  const float words = x + text_size(Type::figure, clock).x + px(12), key = px(470);
  const float right = pos.x + size.x - px(14);
  const bool with_key = words + text_size(Type::secondary, tokens + rate).x + key < right;
  draw_text_middle(list, words, middle, Type::secondary, t.text2,
                   first_fitting(Type::secondary, {tokens + rate, tokens}, right - words - (with_key ? key : 0)));
  if (with_key) draw_key(list, right, middle);
}

void RaceView::draw_lane(const ViewModel& view, const RaceLane& lane, ImVec2 pos, ImVec2 size, float left,
                         float right) const {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const WhatIfThere& there = *view.what_if.answer.there[lane.there];
  const float height = size.y, base = pos.y + height * 0.66f;
  const std::string count = grouped(lane.tokens_at(now_ms_));
  const float count_x = left - px(10) - text_size(Type::mono, count).x;
  draw_text_middle(list, pos.x, pos.y + height * 0.38f, Type::base_medium, t.text,
                   elided(Type::base_medium, there.name, px(kRaceNames) - px(62)));
  if (height >= px(34))
    draw_text_middle(list, pos.x, pos.y + height * 0.78f, Type::caption, t.text3, words_of(there.times));
  draw_text_middle(list, count_x, pos.y + height * 0.38f, Type::mono, now_ms_ >= lane.ms ? t.accent_text : t.text2,
                   count);
  const auto x_of = [&](double ms) {
    return left + static_cast<float>(std::min(1.0, ms / race_.axis_ms)) * (right - left);
  };
  const float token = (base - pos.y - px(3)) / static_cast<float>(race_.most_tokens);
  double begin = 0;
  for (const RacePass& pass : lane.passes) {
    const float x0 = x_of(begin),
                x1 = std::max(x0 + 1, x_of(pass.end_ms) - (x_of(pass.end_ms) - x0 > px(4) ? px(1) : 0));
    const bool waits = pass.end_ms > now_ms_;
    const auto ink = [&](Colour colour) { return waits ? mix(t.panel, colour, kWaiting) : colour; };
    const float top = base - token * static_cast<float>(pass.guessed);
    list->AddRectFilled({x0, top}, {x1, base}, ink(t.accepted));
    if (pass.added > 0)
      list->AddRectFilled({x0, std::max(pos.y, top - std::max(px(1.5f), std::min(token, px(3))))}, {x1, top},
                          ink(t.bonus));
    begin = pass.end_ms;
    if (begin > race_.axis_ms) break;
  }
  if (lane.plain_ms > 0) {
    const ImVec2 dots[] = {{left, base + px(5)}, {x_of(lane.plain_ms), base + px(5)}};
    add_dashed(list, dots, {px(2), px(3)}, t.bonus, px(1));
  }
  const std::string end = milliseconds(lane.ms);
  const float end_x = std::min(x_of(lane.ms) + px(6), right + px(6));
  draw_text_middle(list, end_x, pos.y + height * 0.36f, Type::mono, now_ms_ >= lane.ms ? t.accent_text : t.text2, end);
  if (lane.plain_ms <= 0 || lane.plain_ms > race_.axis_ms || height < px(34)) return;
  const std::string plain = "plain " + milliseconds(lane.plain_ms);
  const float plain_x = x_of(lane.plain_ms) + px(6);
  if (plain_x + text_size(Type::caption, plain).x < pos.x + size.x)
    draw_text_middle(list, plain_x, base + px(5), Type::caption, t.text3, plain);
}

void RaceView::draw(const ViewModel& view, ImVec2 pos, ImVec2 size) {
  take(view);
  const Theme& t = colours();
  if (running_) {
    now_ms_ += ImGui::GetIO().DeltaTime * 1000 * race_speed(race_, kFastestSeconds);
    if (view.rounds.reduced_motion) now_ms_ = race_.axis_ms;
    running_ = now_ms_ < race_.axis_ms;
    if (running_) keep_drawing(0.1);
  }
  draw_controls(pos, size);
  if (race_.empty()) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float left = pos.x + px(kRaceNames), right = pos.x + size.x - px(kRaceRight);
  const float top = pos.y + px(kRaceHead), bottom = pos.y + size.y - px(kRaceFoot);
  if (right - left < px(120) || bottom - top < px(20)) return;
  const Ticks ticks = ticks_to(race_.axis_ms, 6, false);
  for (size_t i = 0; i < ticks.at.size(); ++i) {
    if (ticks.at[i] > race_.axis_ms * 1.001) break;
    const float x = std::floor(left + static_cast<float>(ticks.at[i] / race_.axis_ms) * (right - left)) + 0.5f;
    list->AddLine({x, top}, {x, bottom}, t.grid);
    draw_text_middle(list, x - text_size(Type::caption, ticks.labels[i]).x * 0.5f, bottom + px(11), Type::caption,
                     t.text3, ticks.labels[i]);
  }
  draw_text_middle(list, right + px(20), bottom + px(11), Type::caption, t.text3, "milliseconds");
  const float lane = std::min((bottom - top) / static_cast<float>(race_.lanes.size()), px(48));
  for (size_t i = 0; i < race_.lanes.size(); ++i) {
    draw_lane(view, race_.lanes[i], {pos.x + px(14), top + lane * static_cast<float>(i)}, {size.x - px(28), lane}, left,
              right);
  }
  if (now_ms_ <= 0 || now_ms_ >= race_.axis_ms) return;
  const float x = left + static_cast<float>(now_ms_ / race_.axis_ms) * (right - left);
  list->AddLine({x, top}, {x, bottom}, t.text, px(1.5f));
  list->AddTriangleFilled({x, top}, {x - px(6), top - px(7)}, {x + px(6), top - px(7)}, t.text);
}

namespace {

// One device of "What if": its speed against plain decoding, its verdict, and the widths it would choose.

struct WhatIfPlace {
  size_t there = 0;  // in the answer
  ImVec2 pos, size;  // pixels
};

constexpr float kPad = 14, kPlotHeight = 100, kMostPlotHeight = 280, kBarsHeight = 44, kShowButton = 26;
constexpr double kMostRatio = 4;  // of the chart, unless a curve goes above
constexpr uint32_t kChartWidth = 128;

/// Solid for what was measured, dashed for what is predicted.
void draw_times_badge(ImDrawList* list, float right, float middle, TimesFrom times) {
  const Theme& t = colours();
  const char* const words = words_of(times);
  const float width = text_size(Type::caption, words).x + px(10);
  const ImVec2 a = {right - width, middle - px(9)}, b = {right, middle + px(9)};
  if (times == TimesFrom::predicted) {
    add_dashed_rect(list, a, b, px(3), {px(3), px(2)}, t.text3, px(1));
  } else {
    list->AddRectFilled(a, b, t.accent_bg, px(3));
  }
  draw_text_middle(list, a.x + px(5), middle, Type::caption, times == TimesFrom::predicted ? t.text2 : t.accent_text,
                   words);
}

/// Lines of a paragraph; returns the y below the last.
float draw_paragraph(ImDrawList* list, ImVec2 pos, float width, Type type, Colour colour, const std::string& text,
                     size_t most_lines) {
  TextBlock block;
  block.layout(text, type, width);
  const float pitch = px(17);
  const float height = pitch * static_cast<float>(std::min(block.line_count(), most_lines));
  list->PushClipRect(pos, {pos.x + width, pos.y + height}, true);
  block.draw(list, pos, text, type, colour, pitch);
  list->PopClipRect();
  return pos.y + height;
}

/// The menu with which a predicted device becomes another one.
void draw_device_menu(const ViewModel& view, size_t place, const WhatIfThere& there, ImVec2 at, CommandSink& sink) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float below = viewport->Pos.y + viewport->Size.y - px(8) - at.y;
  ImGui::SetNextWindowPos(at);
  ImGui::SetNextWindowSizeConstraints({0, 0}, {viewport->Size.x, std::max(px(120), below)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup("As if on")) {
    if (choice("A device of your own", "A device of your own \u2026", "Name, GB/s, TFLOPS", false, true, px(260))) {
      sink.post(WhatIfCommand(DescribeDevice{}));
      ImGui::CloseCurrentPopup();
    }
    label(Type::secondary, colours().text2, "Predicted from a profile of the device");
    for (const WhatIfDevice& each : view.what_if.known) {
      if (!choice(each.choice.c_str(), each.name, each.detail, there.choice == each.choice, true, px(260))) continue;
      sink.post(WhatIfCommand(SetWhatIfDevice{place, each.choice}));
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

class DeviceCard {
 public:
  DeviceCard(const ViewModel& view, const WhatIfPlace& place, CommandSink& sink)
      : view_(view),
        place_(place),
        there_(*view.what_if.answer.there[place.there]),
        sink_(sink),
        list_(ImGui::GetWindowDrawList()),
        left_(place.pos.x + px(kPad)),
        right_(place.pos.x + place.size.x - px(kPad)),
        bottom_(place.pos.y + place.size.y) {}

  void draw() {
    const Theme& t = colours();
    const ImVec2 end = {place_.pos.x + place_.size.x, bottom_};
    list_->AddRectFilled(place_.pos, end, t.panel, px(6));
    if (is_fastest()) list_->AddLine(place_.pos, {end.x, place_.pos.y}, t.accent, px(2));
    float y = draw_name(place_.pos.y + px(12));
    if (!there_.problem.empty()) {
      draw_paragraph(list_, {left_, y + px(10)}, right_ - left_, Type::secondary, t.text2, there_.problem, 12);
      return;
    }
    y = draw_figures(y + px(8));
    y = draw_paragraph(list_, {left_, y + px(4)}, right_ - left_, Type::secondary, t.text2, there_.summary.verdict, 3);
    draw_lower_part(place_.pos.y + px(146));
  }

 private:
  bool is_fastest() const {
    const auto& all = view_.what_if.answer.there;
    return all.size() > 1 && there_.problem.empty() && std::ranges::all_of(all, [&](const auto& each) {
             return !each->problem.empty() || each->run.tokens_per_second() <= there_.run.tokens_per_second();
           });
  }

  /// Which of the chosen devices this is; nothing for this machine and calibrations.
  std::optional<size_t> chosen() const {
    const auto& devices = view_.what_if.devices;
    const size_t before = 1 + view_.what_if.calibrations.size();
    if (there_.choice.empty() || place_.there < before) return std::nullopt;
    const size_t place = place_.there - before;
    return place < devices.size() && devices[place] == there_.choice ? std::optional(place) : std::nullopt;
  }

  float draw_name(float y) {
    const Theme& t = colours();
    const float middle = y + px(10), badge = text_size(Type::caption, words_of(there_.times)).x + px(18);
    draw_times_badge(list_, right_, middle, there_.times);
    const std::optional<size_t> place = chosen();
    const bool drops = there_.times == TimesFrom::measured_elsewhere;
    const float room = right_ - badge - left_ - (place || drops ? px(20) : 0);
    const std::string name = elided(Type::title, there_.name, room);
    draw_text_middle(list_, left_, middle, Type::title, t.text, name);
    float x = left_ + text_size(Type::title, name).x;
    const float detail = text_size(Type::secondary, there_.detail).x;
    if (x + px(6) + detail <= left_ + room) {
      draw_text_middle(list_, x + px(6), middle, Type::secondary, t.text3, there_.detail);
      x += px(6) + detail;
    }
    if (drops) draw_drop_button(x, middle);
    if (place) draw_name_menu(*place, x, middle);
    return y + px(20);
  }

  void draw_drop_button(float x, float middle) {
    ImGui::SetCursorScreenPos({x + px(2), middle - px(9)});
    if (ImGui::InvisibleButton("Remove calibration", {px(18), px(18)}, ImGuiButtonFlags_EnableNav))
      sink_.post(WhatIfCommand(DropCalibration{there_.choice}));
    tooltip("Take this calibration out");
    draw_icon(list_, Icon::close, {x + px(11), middle}, px(12), colours().text3);
  }

  void draw_name_menu(size_t place, float x, float middle) {
    ImGui::SetCursorScreenPos({left_ - px(4), middle - px(12)});
    if (ImGui::InvisibleButton("Another device", {x - left_ + px(24), px(24)}, ImGuiButtonFlags_EnableNav))
      ImGui::OpenPopup("As if on");
    tooltip((there_.from.empty() ? "As if on another device" : there_.from).c_str());
    draw_icon(list_, Icon::chevron, {x + px(12), middle}, px(12), colours().text3);
    draw_device_menu(view_, place, there_, {left_ - px(4), middle + px(14)}, sink_);
  }

  float draw_figures(float y) {
    const Theme& t = colours();
    const WhatIf& run = there_.run;
    const std::string ratio = there_.summary.ratio > 0 ? times(there_.summary.ratio) : "\u2013";
    const bool pays = there_.summary.payoff == Payoff::pays;
    draw_text(list_, {left_, y}, Type::key_figure, pays ? t.accent_text : t.text, ratio);
    const float x = left_ + text_size(Type::key_figure, ratio).x + px(14),
                middle = y + text_height(Type::key_figure) / 2;
    const std::string tokens = speed(run.tokens_per_second());
    draw_text_middle(list_, x, middle - px(9), Type::mono_semibold, t.text, tokens);
    draw_text_middle(list_, x + text_size(Type::mono_semibold, tokens).x + px(4), middle - px(9), Type::secondary,
                     t.text2, "tok/s");
    draw_text_middle(list_, x, middle + px(9), Type::secondary, t.text2,
                     elided(Type::secondary, fixed(run.tokens_a_round(), 1) + " tokens a pass", right_ - x));
    return y + text_height(Type::key_figure);
  }

  /// Chart, widths, costs and the button, as far as there is room, the chart first.
  void draw_lower_part(float y) {
    const float costs = px(30), button = px(kShowButton) + px(10);
    float room = bottom_ - px(8) - y;
    const bool with_button = room > px(kPlotHeight + 40) + button;
    if (with_button) room -= button;
    const bool with_bars = room > px(kPlotHeight + 40) + px(kBarsHeight + 34);
    const bool with_costs = with_bars && room > px(kPlotHeight + 40) + px(kBarsHeight + 34) + costs;
    float plot = room - px(40) - (with_bars ? px(kBarsHeight + 34) : 0) - (with_costs ? costs : 0);
    plot = std::min(plot, px(kMostPlotHeight));
    if (plot < px(48)) return;
    draw_curve({left_ + px(22), y}, {right_, y + plot});
    y += plot + px(40);
    if (with_bars) {
      draw_widths(y);
      y += px(kBarsHeight + 34);
    }
    if (with_costs) draw_costs(y);
    if (with_button) draw_show_button(bottom_ - px(8) - px(kShowButton));
  }

  void draw_curve(ImVec2 a, ImVec2 b) {
    const Theme& t = colours();
    double highest = kMostRatio;
    for (const WidthRatio& each : there_.curve) highest = std::max(highest, std::ceil(each.ratio));
    highest = std::max(highest, std::ceil(there_.summary.ratio));
    const auto at = [&](double width, double ratio) {
      const double x = std::log2(std::clamp(width, 1.0, double{kChartWidth})) / std::log2(kChartWidth);
      return ImVec2(a.x + static_cast<float>(x) * (b.x - a.x),
                    b.y - static_cast<float>(std::min(ratio, highest) / highest) * (b.y - a.y));
    };
    const int step = highest > 8 ? 4 : highest > 4 ? 2 : 1;
    for (int ratio = 0; ratio <= highest; ratio += step) {
      const float y = std::floor(at(1, ratio).y) + 0.5f;
      list_->AddLine({a.x, y}, {b.x, y}, t.grid);
      const std::string words = "\u00d7" + std::to_string(ratio);
      draw_text_middle(list_, a.x - px(4) - text_size(Type::caption, words).x, y, Type::caption, t.text3, words);
    }
    for (uint32_t width = 1; width <= kChartWidth; width *= 2) {
      const std::string words = std::to_string(width);
      const float x = at(width, 0).x - text_size(Type::caption, words).x * (width == kChartWidth ? 1.0f : 0.5f);
      draw_text(list_, {x, b.y + px(4)}, Type::caption, t.text3, words);
    }
    const char* const axis = "rows in one pass: guesses + 1";
    if (const float room = b.x - a.x; text_size(Type::caption, axis).x < room)
      draw_text(list_, {a.x + (room - text_size(Type::caption, axis).x) / 2, b.y + px(19)}, Type::caption, t.text3,
                axis);
    draw_chosen_range(at);
    const ImVec2 plain[] = {at(1, 1), at(kChartWidth, 1)};
    add_dashed(list_, plain, {px(1), px(3)}, t.text2, px(1));
    draw_line(at);
    draw_plain_words(a, b, at(1, 1).y);
    if (there_.summary.ratio > 0) {
      const ImVec2 mark = at(mean_width(), there_.summary.ratio);
      list_->AddTriangleFilled({mark.x, mark.y - px(4)}, {mark.x - px(5), mark.y + px(5)},
                               {mark.x + px(5), mark.y + px(5)}, t.text);
    }
    if (ImGui::IsMouseHoveringRect(a, b) && ImGui::IsWindowHovered())
      show_tooltip(
          "Trees of a fixed width over plain decoding. The band: the widths it would choose, the triangle: what it "
          "reaches with them.");
  }

  template <class At>
  void draw_chosen_range(const At& at) {
    if (there_.summary.widest < 1) return;
    const ImVec2 from = at(there_.summary.narrowest, 0), to = at(there_.summary.widest, 0);
    const ImVec2 top = at(1, 1e9);
    list_->AddRectFilled({from.x - px(1), top.y}, {to.x + px(1), from.y}, with_alpha(colours().accent, 0.16f));
  }

  template <class At>
  void draw_line(const At& at) {
    std::vector<ImVec2> points;
    for (const WidthRatio& each : there_.curve) points.push_back(at(each.width, each.ratio));
    if (points.size() < 2) return;
    if (there_.times == TimesFrom::predicted) {
      add_dashed(list_, points, {px(5), px(4)}, colours().text2, px(1.5f));
    } else {
      for (const ImVec2& point : points) list_->PathLineTo(point);
      list_->PathStroke(colours().accent, px(1.5f));
    }
  }

  void draw_plain_words(ImVec2 a, ImVec2 b, float y) {
    const std::string speed_words = speed(there_.run.ar_tokens_per_second()) + " tok/s";
    const std::string words =
        first_fitting(Type::caption, {"one token at a time, " + speed_words, "plain, " + speed_words}, b.x - a.x);
    const float x = b.x - text_size(Type::caption, words).x;
    // On the side where neither the curve nor the mark is.
    const bool above = there_.summary.ratio < 1 || (!there_.curve.empty() && there_.curve.back().ratio < 1);
    draw_text_middle(list_, x, y + (above ? -px(9) : px(9)), Type::caption, colours().text2, words);
  }

  static uint32_t guesses_of(uint32_t rows) { return rows - std::min(rows, 1u); }

  double mean_width() const {
    double rows = 0, rounds = 0;
    for (const auto& [width, count] : there_.summary.widths) {
      rows += double{static_cast<double>(width)} * static_cast<double>(count);
      rounds += static_cast<double>(count);
    }
    return rounds > 0 ? rows / rounds : 1;
  }

  void draw_widths(float y) {
    const Theme& t = colours();
    const WhatIfSummary& summary = there_.summary;
    const std::string passes = counted(there_.run.rounds.size(), "pass", "passes");
    const std::string widths = summary.narrowest == summary.widest ? "always " + grouped(guesses_of(summary.widest))
                                                                   : grouped(guesses_of(summary.narrowest)) + " to " +
                                                                         grouped(guesses_of(summary.widest));
    const bool chosen = there_.run.chosen > 0;
    const char* const title = chosen ? "Guesses it chose" : "Guesses as recorded";
    draw_text_middle(list_, left_, y + px(8), Type::secondary_semibold, t.text, title);
    const float room = right_ - left_ - text_size(Type::secondary_semibold, title).x - px(8);
    const std::string words = first_fitting(Type::secondary, {widths + ", " + passes, widths}, room);
    draw_text_middle(list_, right_ - text_size(Type::secondary, words).x, y + px(8), Type::secondary, t.text2, words);
    const float base = y + px(20 + kBarsHeight), width = right_ - left_;
    const auto count = static_cast<float>(there_.run.rounds.size());
    const double most = std::log2(std::max(2.0, 1.0 + most_width()));
    list_->AddLine({left_, base}, {right_, base}, t.line);
    for (size_t i = 0; i < there_.run.rounds.size(); ++i) {
      const auto place = static_cast<float>(i);
      const float x0 = left_ + width * place / count, x1 = left_ + width * (place + 1) / count;
      const double share = std::log2(1.0 + there_.run.rounds[i].record.width) / most;
      const float top = base - std::max(px(2), static_cast<float>(share) * px(kBarsHeight - 4));
      const float right = std::max(x0 + 1, x1 - (x1 - x0 > px(4) ? px(1) : 0));
      if (there_.times == TimesFrom::predicted && x1 - x0 > px(4)) {
        list_->AddRect({x0, top}, {right, base}, t.accent);
      } else {
        list_->AddRectFilled({x0, top}, {right, base}, t.accent);
      }
    }
  }

  /// Over all cards, so that their bars can be compared.
  uint32_t most_width() const {
    uint32_t most = 1;
    for (const auto& each : view_.what_if.answer.there) most = std::max(most, each->summary.widest);
    return most;
  }

  void draw_costs(float y) {
    const Theme& t = colours();
    if (there_.ms_of_one <= 0) return;
    const auto pair = [&](float x, const std::string& words, double ms, bool from_right) {
      const std::string value = milliseconds(ms);
      const float width = text_size(Type::secondary, words).x + px(4) + text_size(Type::mono, value).x;
      if (from_right) x -= width;
      draw_text_middle(list_, x, y + px(10), Type::secondary, t.text2, words);
      draw_text_middle(list_, x + width - text_size(Type::mono, value).x, y + px(10), Type::mono, t.text, value);
      return width;
    };
    const float used = pair(left_, "a pass of 1 row", there_.ms_of_one, false);
    const std::string many = "of " + std::to_string(kManyRows) + " rows";
    const float need =
        text_size(Type::secondary, many).x + px(4) + text_size(Type::mono, milliseconds(there_.ms_of_many)).x;
    if (used + need + px(12) < right_ - left_) pair(right_, many, there_.ms_of_many, true);
  }

  void draw_show_button(float y) {
    const bool recorded = there_.times == TimesFrom::recorded;
    const bool recording = !view_.rounds.log->is_live();
    const bool possible = !recorded && recording && there_.run.exact;
    const bool writing = view_.what_if.writing;
    ButtonSpec spec{writing ? "Making its trees" : "Show its trees", Icon::branch, ButtonKind::line};
    spec.enabled = possible && !writing;
    spec.height = kShowButton;
    spec.type = Type::secondary;
    spec.tooltip = recorded     ? "These are the trees on show"
                   : !recording ? view_.has_drafter()
                                      ? "Record the reply, with guesses behind every token, to see its trees elsewhere"
                                      : "Record the reply to see its trees elsewhere"
                   : possible   ? "Opens what it would be there as a recording, its times marked as such"
                                : "Passes elsewhere end where nothing was recorded: make the recording dense first "
                                  "(canopy-cli trace densify)";
    ImGui::SetCursorScreenPos({left_, y});
    if (button(spec)) sink_.post(WhatIfCommand(ShowAsIf{place_.there}));
  }

  const ViewModel& view_;
  const WhatIfPlace& place_;
  const WhatIfThere& there_;
  CommandSink& sink_;
  ImDrawList* list_;
  float left_, right_, bottom_;
};

/// Draws the card. The menu of its name chooses another device; a button shows its trees.
void draw_what_if_card(const ViewModel& view, const WhatIfPlace& place, CommandSink& sink) {
  ImGui::PushID(static_cast<int>(place.there));
  DeviceCard(view, place, sink).draw();
  ImGui::PopID();
}

constexpr float kWhatIfGap = 4, kWhatIfHead = 60, kBetweenCards = 8, kLeastCard = 268, kLeastCards = 300,
                kRaceHeight = 224, kLeastRaceHeight = 120, kFewestCards = 264, kLeastLane = 20;

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
  spec.tooltip = "Has the loaded drafter guess behind every token of this recording, and keeps the guesses in its file";
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
  // Every lane has a line of its own; for that the cards may give a little.
  const float lanes = static_cast<float>(view.what_if.answer.there.size());
  const float least_race = std::max(px(kLeastRaceHeight), px(kRaceHead + kRaceFoot) + lanes * px(kLeastLane));
  const float rest = height - head - gap * 3;
  if (rest - race < px(kLeastCards))
    race = std::max(rest - px(kLeastCards), std::min(least_race, rest - px(kFewestCards)));
  const bool with_race = race >= least_race;
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
