#include "app/charts/budget_panel.h"

#include <algorithm>
#include <cmath>

#include "app/charts/budget_chart.h"
#include "app/charts/chart_frame.h"
#include "app/look/widgets.h"
#include "app/panels/panel_body.h"

namespace canopy::app {
namespace {

constexpr float kSide = 290;        // the column of words
constexpr float kTwoColumns = 560;  // below, all is one column
constexpr float kLeastChart = 150;  // height
constexpr float kHeader = 30;
constexpr float kRow = 18;

void draw_header(float width) {
  const Theme& t = colours();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton("S(N) title", {std::max(1.0f, width), px(kHeader)});
  tooltip(
      "Tokens a second of a round by its width N. Predicted: expected tokens over predicted time, before the pass. "
      "Measured: the tokens this tree cut at N would have brought; the time of widths that did not run is the "
      "predicted one, corrected by this round's error.");
  const float middle = at.y + px(kHeader) * 0.5f;
  const std::string title = "S(N), tok/s by width N";
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, middle, Type::secondary_semibold, t.text, title);
  const char *first = "predicted", *second = "measured, this tree cut at N";
  const float wide = legend_width(first) + px(16) + legend_width(second);
  const float left = text_size(Type::secondary_semibold, title).x + px(24);
  if (left + wide > width) second = "measured";
  if (left + legend_width(first) + px(16) + legend_width(second) > width) return;
  const float x = std::max(at.x + left, std::min(at.x + px(196), at.x + width - wide));
  const float next = legend_mark({x, middle}, LegendMark::dashed, t.text2, first);
  legend_mark({next + px(16), middle}, LegendMark::solid, t.accent, second);
}

void draw_cells(ImVec2 at, float width, const std::string (&cells)[4], Type type, Colour colour) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float ends[] = {0, width * 0.47f, width * 0.745f, width - px(8)};
  const float middle = at.y + px(kRow) * 0.5f;
  draw_text_middle(list, at.x + px(8), middle, type, colour, cells[0]);
  for (int i = 1; i < 4; ++i)
    draw_text_middle(list, at.x + ends[i] - text_size(type, cells[i]).x, middle, type, colour, cells[i]);
}

void draw_rows(const BudgetView& view, float width) {
  if (view.rows.empty()) return;
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_cells(ImGui::GetCursorScreenPos(), width, {"N", "expected", "ms", "tok/s"}, Type::caption, t.text3);
  ImGui::Dummy({width, px(kRow)});
  for (const BudgetRow& row : view.rows) {
    const ImVec2 a = ImGui::GetCursorScreenPos();
    if (row.chosen) list->AddRectFilled(a, {a.x + width, a.y + px(kRow)}, t.accent_bg);
    const std::string name = row.plain ? "AR" : grouped(row.speed.width);
    draw_cells(a, width,
               {name, fixed(row.speed.expected, 2), fixed(row.speed.ms, 2), speed(row.speed.tokens_per_second())},
               row.chosen ? Type::mono_semibold : Type::mono, t.text);
    ImGui::InvisibleButton(("row " + name).c_str(), {std::max(1.0f, width), px(kRow)});
    std::string words = row.chosen ? "What the round had." : row.best ? "The highest S(N) shown." : "";
    words += std::string(words.empty() ? "" : " ") + "Expected tokens and time are predicted.";
    tooltip(words.c_str());
  }
}

void draw_outcome(const BudgetView& view, float width) {
  const std::string tokens = counted(static_cast<uint64_t>(view.realised.expected), "token", "tokens");
  pair_line(
      width, "Realised", tokens + " in " + milliseconds(view.realised.ms),
      "Measured: what the round emitted, over its wall time. " + speed(view.realised.tokens_per_second()) + " tok/s.");
  pair_line(width, "Time error", view.time_error ? signed_percent(*view.time_error) : "\u2013",
            view.time_error ? "Measured over predicted time of this round, less 1." : "No time was predicted.");
  if (view.limits.empty()) return;
  std::string all = "What bounds the width and the depth of this round's tree:";
  for (const std::string& each : view.limits) all += "\n" + each;
  pair_line(width, "Limits", view.limits.size() > 1 ? view.limits[0] + ", " + view.limits[1] : view.limits[0], all);
}

/// The verdict, and why the width was chosen.
void draw_why(const BudgetView& view, float width) {
  const Theme& t = colours();
  const bool against = view.loses;
  const std::string headline = verdict(view);
  const std::string title = against ? headline : view.title;
  const std::string words = view.reason.empty() ? "The width was set, not chosen." : view.reason;
  bar_card("Why", width, against ? t.bonus : t.accent, title, words, view.not_argmax);
  std::string more = view.is_argmax ? "It has the highest S(N) shown within the limits, plain decoding included." : "";
  if (!view.next_row.empty()) more += (more.empty() ? "" : " ") + view.next_row;
  if (!view.recorded && !view.predicted.empty()) more += " S(N) is worked out from the tree and the cost table.";
  if (!more.empty()) tooltip(more.c_str());
}

void draw_figures(const BudgetView& view, float width) {
  draw_rows(view, width);
  if (!view.rows.empty()) ImGui::Dummy({width, px(6)});
  ImGui::Indent(px(8));
  draw_outcome(view, width - px(16));
  ImGui::Unindent(px(8));
}

/// Words beside the chart.
void draw_side(const BudgetView& view, ImVec2 size) {
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  ImGui::BeginChild("Budget words", size, ImGuiChildFlags_NavFlattened);
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  draw_why(view, width);
  ImGui::Dummy({width, px(6)});
  draw_figures(view, width);
  ImGui::PopStyleVar();
  ImGui::EndChild();
  ImGui::PopStyleColor();
}

}  // namespace

const BudgetView* BudgetPanel::shown(const ViewModel& view) {
  const std::shared_ptr<const RoundRecord> round = view.rounds.shown();
  // A trace comes from another device, or another day: the costs of the loaded pair are not its.
  const std::shared_ptr<const CostSnapshot> costs = view.rounds.log->is_live() ? view.calibration.costs : nullptr;
  if (!round) {
    round_.reset();
    return nullptr;
  }
  if (round != round_ || costs != costs_) {
    round_ = round;
    costs_ = costs;
    view_ = budget_view(*round, costs.get());
  }
  return &view_;
}

void BudgetPanel::draw(const ViewModel& view, CommandSink&) {
  const BudgetView* shown_view = shown(view);
  const PanelBody body("Budget body", 14, 4);
  const ImVec2 room = ImGui::GetContentRegionAvail(), origin = ImGui::GetCursorScreenPos();
  if (room.x >= px(kTwoColumns)) {
    const float words = std::min(px(kSide), room.x * 0.4f), chart = room.x - words - px(24);
    draw_header(chart);
    draw_budget_chart(shown_view, {chart, std::max(px(kLeastChart), room.y - px(kHeader) - px(12))});
    if (!shown_view) return;
    ImGui::SetCursorScreenPos({origin.x + room.x - words, origin.y + px(4)});
    return draw_side(*shown_view, {words, room.y - px(4)});
  }
  // One column: the answer first, the chart in what is left of the view, the figures where one scrolls to.
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  if (shown_view) {
    draw_why(*shown_view, room.x);
    ImGui::Dummy({room.x, px(8)});
  }
  draw_header(room.x);
  const float left = origin.y + room.y - ImGui::GetCursorScreenPos().y;
  draw_budget_chart(shown_view, {room.x, std::max(px(kLeastChart), left - px(12))});
  if (shown_view) {
    ImGui::Dummy({room.x, px(8)});
    draw_figures(*shown_view, room.x);
  }
  ImGui::PopStyleVar();
}

}  // namespace canopy::app
