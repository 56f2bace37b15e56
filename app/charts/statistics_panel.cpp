#include "app/charts/statistics_panel.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/charts/chart_frame.h"
#include "app/charts/live_charts.h"
#include "app/charts/plain_speed.h"
#include "app/look/widgets.h"
#include "app/panels/panel_body.h"

namespace canopy::app {
namespace {

constexpr size_t kRoundsAFrame = 512;  // read of a long reply; a few milliseconds
constexpr float kBoxHeight = 52;

/// A figure in a box of its own, with its name above it.
void draw_box(const char* id, const char* name, const Figure& figure, float width) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + px(kBoxHeight)};
  ImGui::InvisibleButton(id, {std::max(1.0f, width), px(kBoxHeight)});
  tooltip(figure.denominator.empty() ? "after the first round" : figure.denominator.c_str());
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, t.card, px(6));
  list->AddRect(a, b, t.line, px(6), px(1));
  draw_text_middle(list, a.x + px(10), a.y + px(15), Type::caption, t.text3,
                   elided(Type::caption, name, width - px(14)));
  draw_text_middle(list, a.x + px(10), a.y + px(34), Type::figure, t.text,
                   figure.text.empty() ? "\u2013" : figure.text);
}

void draw_key_figure(const StatisticsView& view) {
  const Theme& t = colours();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x, height = px(44);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const std::string rate = view.rounds > 0 ? view.speed.text : "\u2013";
  const float wide = text_size(Type::key_figure, rate).x;
  ImGui::InvisibleButton("Speed figure", {std::max(1.0f, std::min(room, wide + px(52))), height});
  tooltip(view.rounds > 0 ? view.speed.denominator.c_str() : "after the first round");
  draw_text_middle(list, at.x, at.y + height * 0.5f, Type::key_figure, t.text, rate);
  const float base = at.y + height - px(14);
  draw_text_middle(list, at.x + wide + px(8), base, Type::base, t.text2, "tok/s");
  if (view.ratio <= 0) return;
  const std::string plain = speed(view.plain_tokens_per_second), over = "over AR ";
  const float over_width = text_size(Type::base, over).x + text_size(Type::mono, plain).x;
  const float ratio_width = text_size(Type::ratio, view.over_plain.text).x;
  const float x = at.x + room - over_width - px(8) - ratio_width;
  if (x < at.x + wide + px(52)) return;
  ImGui::SameLine(0, 0);
  ImGui::SetCursorScreenPos({x, at.y});
  ImGui::InvisibleButton("Ratio figure", {at.x + room - x, height});
  tooltip(view.over_plain.denominator.c_str());
  draw_text_middle(list, x, base - px(3), Type::ratio, view.ratio >= 1 ? t.accent_text : t.bonus_text,
                   view.over_plain.text);
  draw_text_middle(list, x + ratio_width + px(8), base, Type::base, t.text2, over);
  draw_text_middle(list, x + ratio_width + px(8) + text_size(Type::base, over).x, base, Type::mono, t.text2, plain);
}

struct BoxSpec {
  const char *id, *name;
  const Figure* figure;
  float width = 0;  // that it needs
};

/// In one row where all fit, else in several; each row fills the room.
void draw_boxes(const StatisticsView& view) {
  const float room = ImGui::GetContentRegionAvail().x, gap = px(8);
  std::vector<BoxSpec> boxes = {{"Tau", "\u03c4, emitted per round", &view.tau},
                                {"Node use", "Node use", &view.node_use},
                                {"Round time mean", "Round time", &view.round_time}};
  for (BoxSpec& box : boxes)
    box.width = std::max(text_size(Type::caption, box.name).x, text_size(Type::figure, box.figure->text).x) + px(20);
  for (size_t first = 0, end = 0; first < boxes.size(); first = end) {
    float taken = 0;
    for (end = first; end < boxes.size(); ++end) {
      const float more = boxes[end].width + (end > first ? gap : 0);
      if (end > first && taken + more > room) break;
      taken += more;
    }
    const float spare = std::max(0.0f, room - taken) / static_cast<float>(end - first);
    for (size_t i = first; i < end; ++i) {
      if (i > first) ImGui::SameLine(0, gap);
      draw_box(boxes[i].id, boxes[i].name, *boxes[i].figure, std::floor(std::min(room, boxes[i].width + spare)));
    }
    if (end < boxes.size()) ImGui::Dummy({0, gap});
  }
}

void draw_verdict(const StatisticsView& view) {
  if (view.verdict == VerdictKind::none) return;
  const Theme& t = colours();
  const Colour bar = view.verdict == VerdictKind::loses  ? t.bonus
                     : view.verdict == VerdictKind::pays ? t.accent
                                                         : t.ctl;
  std::string more = view.cut;
  if (!view.missing.empty()) more += (more.empty() ? "" : " ") + view.missing;
  bar_card("Verdict", ImGui::GetContentRegionAvail().x, bar, view.verdict_title, view.verdict_detail, more);
}

/// Whether plain decoding writes the same text, once its user has had that checked of the reply that is shown.
void draw_plain_check(const ViewModel& view) {
  const PlainCheck& check = view.checks.check;
  const bool same = check.phase == PlainCheck::Phase::same;
  if ((!same && check.phase != PlainCheck::Phase::different) || view.replaying()) return;
  const RoundLog& log = *view.rounds.log;
  const size_t shown = view.rounds.playback.shown;
  if (shown >= log.rounds() || log.replies()[log.summary(shown).reply].id != check.message) return;
  ImGui::Dummy({0, px(8)});
  bar_card("Plain check", ImGui::GetContentRegionAvail().x, same ? colours().accent : colours().rejected,
           same ? "Same text as AR" : "Not the text of AR", check_words(check) + ".", "");
}

}  // namespace

void StatisticsPanel::update(const ViewModel& view) {
  const RoundsState& rounds = view.rounds;
  const size_t shown = rounds.playback.shown;
  const TrailPoint& point = trail_.up_to(rounds.log, shown, kRoundsAFrame);
  if (!trail_.done()) keep_drawing(0.1);
  const auto record = rounds.shown();
  DecodeMode mode = DecodeMode::ar;
  PlainSpeed plain;
  if (shown < rounds.log->rounds()) {
    mode = rounds.log->replies()[rounds.log->summary(shown).reply].mode;
    plain =
        plain_speed(*rounds.log, shown, record.get(), rounds.log->is_live() ? view.calibration.costs.get() : nullptr);
  }
  view_ = statistics_view(point, record.get(), mode, plain);
  speed_ = point.rounds.rounds() == 0 ? SpeedSeries{} : speed_series(*rounds.log, trail_.first(), shown);
}

void StatisticsPanel::refresh_figures(const ViewModel& view) {
  const double now = ImGui::GetTime();
  const bool streams = view.busy() && view.rounds.playback.state == PlayState::following;
  if (streams && refreshed_ >= 0 && now - refreshed_ < kFigureInterval && now >= refreshed_) return;
  figures_ = view_;
  refreshed_ = now;
  ++refreshes_;
}

void StatisticsPanel::draw(const ViewModel& view, CommandSink&) {
  update(view);
  refresh_figures(view);
  const PanelBody body("Live body");
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  const auto gap = [](float height) { ImGui::Dummy({0, px(height)}); };
  draw_key_figure(figures_);
  gap(8);
  draw_boxes(figures_);
  gap(10);
  draw_speed(speed_, view_);
  gap(10);
  draw_histogram(view_);
  gap(10);
  draw_depths(view_);
  gap(10);
  draw_stages(view_);
  gap(10);
  if (!view_.oracle.text.empty()) {
    pair_line("Best widths in hindsight", view_.oracle.text, view_.oracle.denominator);
    gap(8);
  }
  draw_verdict(view_);
  draw_plain_check(view);
  ImGui::PopStyleVar();
}

}  // namespace canopy::app
