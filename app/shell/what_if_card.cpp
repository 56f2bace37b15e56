#include "app/shell/what_if_card.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/base/figures.h"
#include "app/look/dash.h"
#include "app/look/text_block.h"
#include "app/look/widgets.h"
#include "app/rounds/trace_log.h"

namespace canopy::app {
namespace {

constexpr float kPad = 14, kPlotHeight = 100, kMostPlotHeight = 280, kBarsHeight = 44, kShowButton = 26;
constexpr double kMostRatio = 4;  // of the chart, unless a curve goes above
constexpr uint32_t kChartWidth = 128;

const char* badge_of(TimesFrom times) {
  switch (times) {
    case TimesFrom::recorded: return "measured passes";
    case TimesFrom::measured_elsewhere: return "measured elsewhere";
    case TimesFrom::predicted: break;
  }
  return "predicted";
}

/// Solid for what was measured, dashed for what is predicted.
void draw_times_badge(ImDrawList* list, float right, float middle, TimesFrom times) {
  const Theme& t = colours();
  const char* const words = badge_of(times);
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
void draw_device_menu(const ViewModel& view, size_t place, const WhatIfThere& there, CommandSink& sink) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup("As if on")) {
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
    const float middle = y + px(10), badge = text_size(Type::caption, badge_of(there_.times)).x + px(18);
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
    ImGui::SetNextWindowPos({left_ - px(4), middle + px(14)});
    draw_device_menu(view_, place, there_, sink_);
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
    const char* const axis = "width: rows in one pass";
    if (const float room = b.x - a.x; text_size(Type::caption, axis).x < room)
      draw_text(list_, {a.x + (room - text_size(Type::caption, axis).x) / 2, b.y + px(19)}, Type::caption, t.text3,
                axis);
    draw_chosen_range(at);
    const ImVec2 plain[] = {at(1, 1), at(kChartWidth, 1)};
    add_dashed(list_, plain, {px(1), px(3)}, t.text2, px(1));
    draw_line(at);
    draw_plain_words(a, b, at(1, 1).y);
    const ImVec2 mark = at(mean_width(), there_.summary.ratio);
    list_->AddTriangleFilled({mark.x, mark.y - px(4)}, {mark.x - px(5), mark.y + px(5)},
                             {mark.x + px(5), mark.y + px(5)}, t.text);
    if (ImGui::IsMouseHoveringRect(a, b) && ImGui::IsWindowHovered())
      ImGui::SetTooltip("%s",
                        "Trees of a fixed width over plain decoding. The band: the widths it would choose, the "
                        "triangle: what it reaches with them.");
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
    const std::string widths = summary.narrowest == summary.widest
                                   ? "always " + grouped(summary.widest)
                                   : grouped(summary.narrowest) + " to " + grouped(summary.widest);
    const bool chosen = there_.run.chosen > 0;
    const char* const title = chosen ? "Width it chose" : "Width as recorded";
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
                   : !recording ? "Record the reply, with drafts behind every token, to see its trees elsewhere"
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

}  // namespace

void draw_what_if_card(const ViewModel& view, const WhatIfPlace& place, CommandSink& sink) {
  ImGui::PushID(static_cast<int>(place.there));
  DeviceCard(view, place, sink).draw();
  ImGui::PopID();
}

}  // namespace canopy::app
