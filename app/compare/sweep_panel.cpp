#include "app/compare/sweep_panel.h"

#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>

#include "app/charts/chart_frame.h"
#include "app/compare/compare_panel.h"
#include "app/state/words.h"
#include "app/ui/look.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

constexpr double kRoomForNames = 1.28;  // end of the axis, in largest sizes

/// A curve's colour: the shown sweep has the accent, others the greys of what is compared with.
Colour curve_colour(size_t index) {
  const Theme& t = colours();
  return index == 0 ? t.accent : index % 2 == 1 ? t.text2 : t.text3;
}

void draw_errors(const SweepCurve& curve, Colour colour) {
  ImDrawList* list = ImPlot::GetPlotDrawList();
  ImPlot::PushPlotClipRect();
  for (size_t i = 0; i < curve.budget.size(); ++i) {
    const ImVec2 at = ImPlot::PlotToPixels(curve.budget[i], curve.value[i]);
    const ImVec2 low = ImPlot::PlotToPixels(curve.budget[i], curve.value[i] - curve.error[i]);
    const ImVec2 high = ImPlot::PlotToPixels(curve.budget[i], curve.value[i] + curve.error[i]);
    if (low.y - high.y > px(2)) {
      list->AddLine(low, high, colour, px(1));
      list->AddLine({at.x - px(3), low.y}, {at.x + px(3), low.y}, colour, px(1));
      list->AddLine({at.x - px(3), high.y}, {at.x + px(3), high.y}, colour, px(1));
    }
    list->AddCircleFilled(at, px(3), colour);
  }
  ImPlot::PopPlotClipRect();
}

void draw_curve(const SweepCurve& curve, size_t index) {
  const Colour colour = curve_colour(index);
  ImPlotSpec spec = measured_spec();
  spec.LineColor = ImGui::ColorConvertU32ToFloat4(colour);
  if (curve.budget.size() > 1)
    ImPlot::PlotLine(curve.name.c_str(), curve.budget.data(), curve.value.data(), static_cast<int>(curve.budget.size()),
                     spec);
  draw_errors(curve, colour);
}

/// Names the curves at their ends and the levels of the shown sweep at the right, none over another.
void draw_names(const std::vector<SweepCurve>& curves, double end) {
  std::vector<LabelWish> wishes;
  std::vector<std::string> words;
  std::vector<Colour> inks;
  std::vector<Spot> points;
  const auto wish = [&](double x, double y, const std::string& name, Colour ink) {
    const ImVec2 at = ImPlot::PlotToPixels(x, y);
    words.push_back(name);
    inks.push_back(ink);
    wishes.push_back({{at.x, at.y}, px(6), text_size(Type::caption, name).x + px(4), px(15)});
  };
  for (size_t i = 0; i < curves.size(); ++i) {
    const SweepCurve& curve = curves[i];
    for (size_t k = 0; k < curve.budget.size(); ++k) {
      const ImVec2 at = ImPlot::PlotToPixels(curve.budget[k], curve.value[k]);
      points.push_back({at.x, at.y});
    }
    if (!curve.budget.empty())
      wish(curve.budget.back(), curve.value.back(), i == 0 ? "trees" : "trees, " + curve.name,
           i == 0 ? colours().accent_text : curve_colour(i));
    if (i > 0) continue;
    for (const SweepCurve::Level& level : curve.levels) wish(end, level.value, level.name, colours().text2);
  }
  const std::vector<Box> places = place_labels(wishes, plot_room(), {}, points);
  ImDrawList* list = ImPlot::GetPlotDrawList();
  for (size_t i = 0; i < places.size(); ++i) {
    clear_behind(list, places[i]);
    draw_text_middle(list, places[i].left + px(2), (places[i].top + places[i].bottom) * 0.5f, Type::caption, inks[i],
                     words[i]);
  }
}

/// Draws the curves over the size of trees, with their errors; the first one is the shown sweep's. `ratios`: they are
/// ratios to the baseline, not tokens a second.
void draw_sweep_chart(const std::vector<SweepCurve>& curves, bool ratios, ImVec2 size) {
  double widest = 16, highest = ratios ? 1 : 0;
  for (const SweepCurve& curve : curves) {
    for (size_t i = 0; i < curve.budget.size(); ++i) {
      widest = std::max(widest, curve.budget[i]);
      highest = std::max(highest, curve.value[i] + curve.error[i]);
    }
    for (const SweepCurve::Level& level : curve.levels) highest = std::max(highest, level.value);
  }
  Axes axes;
  axes.x = budget_ticks(widest);
  axes.x.top = widest * kRoomForNames;
  axes.y = ticks_to(std::max(highest, 1e-3), 4, false);
  const Chart chart("Speed by width", size, axes,
                    ratios ? "Ratio to the baseline over repeats that were measured in turns, with its standard error"
                           : "Mean of the repeats, each over all prompts, with their standard deviation");
  if (!chart) return;
  if (curves.empty() || highest <= 0) return chart.say("after the first prompt");
  for (const SweepCurve::Level& level : curves.front().levels) plot_reference(level.value);
  for (size_t i = curves.size(); i-- > 0;) draw_curve(curves[i], i);
  draw_names(curves, widest * 1.06);
}

constexpr float kSweepHeader = 52, kSetup = 292, kSweepGap = 4, kSweepInset = 16;
constexpr float kNarrow = 760;   // width of the page below which the set-up lies above the result
constexpr float kNoResult = 56;  // height of the place of the result while there is none
constexpr float kRow = 24, kLine = 18, kLeastChart = 220;
constexpr uint32_t kSizes[] = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024};
constexpr uint32_t kPromptSteps[] = {1, 2, 3, 5, 10};

void heading(const char* words) {
  ImGui::Dummy({0, px(6)});
  label(Type::secondary_semibold, colours().text, words);
  ImGui::Dummy({0, px(2)});
}

/// A small switch; they flow in lines. True when pressed.
bool chip(const char* id, const char* words, bool on, bool enabled, float left, float width) {
  ButtonSpec spec{id, Icon::none, ButtonKind::line};
  spec.words = words;
  spec.on = on;
  spec.enabled = enabled;
  spec.height = 24;
  spec.type = Type::secondary;
  const float wide = button_size(spec).x;
  const float after = ImGui::GetItemRectMax().x + px(6);
  if (after + wide <= left + width && ImGui::GetItemRectMax().x > left + 1) ImGui::SameLine(0, px(6));
  return button(spec);
}

std::string sweep_obstacle(const ViewModel& view) {
  if (std::string obstacle = measuring_obstacle(view, true); !obstacle.empty()) return obstacle;
  const ComparisonState& state = view.comparison;
  if (state.bundled.empty()) return "The prompts that come with Canopy are not there";
  if (columns_of(state.sweep_setup).empty()) return "Choose something to measure";
  return {};
}

/// The term that the heading of a column stands for; a ratio to the baseline is headed by the baseline's name.
std::string_view heading_term(std::string_view words) {
  return !find_term(words) && words.starts_with("\u00d7 ") ? "Ratio" : words;
}

/// Draws a table; the row `marked` stands out. Returns the row that was pressed.
std::optional<size_t> draw_table(const char* id, const TextTable& table, std::optional<size_t> marked, float width) {
  const Theme& t = colours();
  std::optional<size_t> pressed;
  constexpr ImGuiTableFlags flags =
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_ScrollX | ImGuiTableFlags_PadOuterX;
  const float height = px(kRow) * static_cast<float>(table.rows.size() + 1) + ImGui::GetStyle().ScrollbarSize;
  if (!ImGui::BeginTable(id, static_cast<int>(table.columns.size()), flags, {width, height})) return pressed;
  for (size_t column = 0; column < table.columns.size(); ++column) {
    ImGui::TableSetupColumn(table.columns[column].c_str());
  }
  const auto cell = [&](std::string_view words, Type type, Colour colour, bool right) {
    const float room = ImGui::GetContentRegionAvail().x, wide = text_size(type, words).x;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    draw_text_middle(ImGui::GetWindowDrawList(), at.x + (right ? std::max(0.0f, room - wide) : 0),
                     at.y + px(kRow) * 0.5f - px(2), type, colour, words);
    ImGui::Dummy({wide, px(kRow) - px(4)});
  };
  ImGui::TableNextRow(0, px(kRow));
  for (size_t column = 0; column < table.columns.size(); ++column) {
    ImGui::TableSetColumnIndex(static_cast<int>(column));
    const std::string& words = table.columns[column];
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float wide = text_size(Type::caption, words).x, room = ImGui::GetContentRegionAvail().x;
    const float from = at.x + (column > 0 ? std::max(0.0f, room - wide) : 0);
    ImGui::PushID(static_cast<int>(column));
    term_area(heading_term(words), {from, at.y}, {from + wide, at.y + px(kRow) - px(5)});
    ImGui::PopID();
    cell(words, Type::caption, t.text3, column > 0);
  }
  for (size_t row = 0; row < table.rows.size(); ++row) {
    ImGui::TableNextRow(0, px(kRow));
    for (size_t column = 0; column < table.rows[row].size(); ++column) {
      ImGui::TableSetColumnIndex(static_cast<int>(column));
      if (column == 0) {
        const ImVec2 at = ImGui::GetCursorPos();
        ImGui::PushID(static_cast<int>(row));
        if (ImGui::Selectable("##row", marked == row, ImGuiSelectableFlags_SpanAllColumns, {0, px(kRow) - px(4)}))
          pressed = row;
        ImGui::PopID();
        ImGui::SetCursorPos(at);
      }
      const std::string& words = table.rows[row][column];
      const bool wrong = words.starts_with("WRONG");
      cell(words, column == 0 ? Type::base : Type::mono,
           wrong         ? t.rejected_text
           : column == 0 ? t.text
                         : t.text2,
           column > 0);
    }
  }
  ImGui::EndTable();
  return pressed;
}

/// A line for each file: a press opens it, the button behind it lays it over the shown one.
void draw_kept(const ComparisonState& state, const std::vector<KeptSweep>& sweeps, CommandSink& sink, float width) {
  ButtonSpec lay{"Lay over", Icon::plus};
  lay.show_label = false;
  lay.height = 24;
  lay.tooltip = "Lay it over the shown one, to compare";
  for (const KeptSweep& kept : sweeps) {
    const std::string path = kept.file.string(), name = kept.file.stem().string();
    ImGui::PushID(path.c_str());
    const bool on = state.sweep && state.sweep->file == path;
    const float room = width - px(32);
    const std::string words = elided(Type::base, kept.finished ? name : name + ", not finished", room - px(32));
    if (menu_row(name.c_str(), words, "", on, !state.measures(SweepKind::sweep), room))
      sink.post(ComparisonCommand(OpenSweep{path}));
    tooltip(path.c_str());
    ImGui::SameLine(0, px(4));
    if (button(lay)) sink.post(ComparisonCommand(AddOverlay{path}));
    ImGui::PopID();
  }
}

}  // namespace

void SweepPanel::refresh(const ComparisonState& state) {
  if (!state.sweep) {
    made_.reset();
    shown_ = {};
    return;
  }
  Made now;
  now.plan = &*state.sweep;
  now.id = state.sweep->id;
  now.changes = state.sweep->changes;
  now.file = state.sweep->file;
  now.baseline = state.baseline;
  for (const SweepLayer& layer : state.files.layers) now.layers.push_back(layer.sweep.get());
  if (made_ == now) return;
  made_ = now;
  shown_ = sweep_view(state.sweep->sweep, state.baseline, state.files.layers);
}

void SweepPanel::draw_header(const ViewModel& view, CommandSink& sink, ImVec2 pos, ImVec2 size) {
  ImGui::GetWindowDrawList()->AddRectFilled(pos, {pos.x + size.x, pos.y + size.y}, colours().panel);
  const float left = pos.x + px(kSweepInset), right = pos.x + size.x - px(kSweepInset);
  const float names_end = draw_page_names(view, sink, {left, pos.y + px(10)});
  draw_measuring(view, sink, SweepKind::sweep, StartSweep{}, "Measure", sweep_obstacle(view), names_end + px(8), right,
                 pos.y + px(26));
}

void SweepPanel::draw_setup(const ViewModel& view, CommandSink& sink, float width) {
  const ComparisonState& state = view.comparison;
  SweepSetup setup = state.sweep_setup;
  const bool enabled = !state.busy();
  const float left = ImGui::GetCursorScreenPos().x;
  bool changed = false;
  heading("Ways to decode");
  const auto mode = [&](const char* id, bool& on) {
    if (!chip(id, id, on, enabled, left, width)) return;
    on = !on;
    changed = true;
  };
  ImGui::Dummy({0, 0});
  mode("Plain", setup.ar);
  mode("Chain", setup.chain);
  mode("Adaptive", setup.adaptive);
  heading("Trees, guesses");
  ImGui::Dummy({0, 0});
  for (const uint32_t budget : kSizes) {
    const auto at = std::ranges::find(setup.budgets, budget);
    const std::string words = grouped(budget);
    if (!chip(words.c_str(), words.c_str(), at != setup.budgets.end(), enabled, left, width)) continue;
    if (at != setup.budgets.end())
      setup.budgets.erase(at);
    else
      setup.budgets.push_back(budget);
    changed = true;
  }
  heading("How often");
  const SweepSetup before = setup;
  setup.prompts = stepper("prompts", "Prompts of each category", setup.prompts, kPromptSteps, enabled);
  ImGui::SetCursorScreenPos({left, ImGui::GetItemRectMax().y + px(2)});
  setup.repeats = stepper("repeats", "Repeats", setup.repeats, kRepeatSteps, enabled);
  ImGui::SetCursorScreenPos({left, ImGui::GetItemRectMax().y + px(2)});
  setup.max_tokens = stepper("tokens", "Tokens of a reply, at most", setup.max_tokens, kTokenSteps, enabled);
  ImGui::SetCursorScreenPos({left, ImGui::GetItemRectMax().y + px(6)});
  changed = changed || setup.prompts != before.prompts || setup.repeats != before.repeats ||
            setup.max_tokens != before.max_tokens;
  if (changed) sink.post(ComparisonCommand(SetSweepSetup{setup}));
  const size_t prompts = prompts_of(setup, state.bundled).size(), columns = columns_of(setup).size();
  paragraph(grouped(prompts * columns * setup.repeats) + " replies: " + counted(columns, "way", "ways") + ", " +
                counted(prompts, "prompt", "prompts") + ", " + counted(setup.repeats, "repeat", "repeats") +
                ". Who writes first is drawn anew for each prompt.",
            colours().text2, width, kLine);
  paragraph(state.note, colours().rejected_text, width, kLine);
  paragraph(state.prompts_problem, colours().rejected_text, width, kLine);
}

void SweepPanel::draw_files(const ViewModel& view, CommandSink& sink, float width) {
  const ComparisonState& state = view.comparison;
  heading("Sweeps on this computer");
  if (state.files.kept.empty()) paragraph("None yet.", colours().text3, width, kLine);
  draw_kept(state, state.files.kept, sink, width);
  if (!state.files.recorded.empty()) heading("Recorded, on software devices");
  draw_kept(state, state.files.recorded, sink, width);
  ImGui::Dummy({0, px(4)});
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, colours().ctl);
  ImGui::SetNextItemWidth(width);
  const bool entered = ImGui::InputTextWithHint("##sweep", "Path of a sweep (.json)", &path_,
                                                ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_ElideLeft);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ButtonSpec open{"Open the sweep", Icon::none, ButtonKind::line},
      over{"Lay the sweep over", Icon::none, ButtonKind::line};
  open.words = "Open";
  over.words = "Lay over";
  open.enabled = !path_.empty() && !state.measures(SweepKind::sweep);
  over.enabled = !path_.empty();
  if (button(open)) sink.post(ComparisonCommand(OpenSweep{path_}));
  ImGui::SameLine(0, px(8));
  if (button(over) || (entered && over.enabled)) sink.post(ComparisonCommand(AddOverlay{path_}));
  if (state.files.reading) paragraph("Reading \u2026", colours().text3, width, kLine);
  paragraph(state.files.problem, colours().rejected_text, width, kLine);
}

/// What was measured, what it found, and what a reader must know of it.
void SweepPanel::draw_head(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ComparisonState& state = view.comparison;
  const MeasuredPlan& plan = *state.sweep;
  const std::string file = plan.file.empty() ? "" : file_part(plan.file);
  label(Type::title, t.text, elided(Type::title, file.empty() ? "Sweep under way" : file, width));
  paragraph(shown_.headline, t.text2, width, kLine);
  if (!shown_.verdict.empty()) paragraph(shown_.verdict + ".", t.text, width, kLine);
  paragraph(plan.problem, t.rejected_text, width, kLine);
  for (const std::string& remark : shown_.remarks) paragraph(remark, t.bonus_text, width, kLine);
  if (!plan.sweep.complete() && !state.measures(SweepKind::sweep)) {
    ButtonSpec go{"Go on with this sweep", Icon::play, ButtonKind::line};
    const std::string words = "Go on: " + grouped(plan.sweep.runs.size()) + " of " +
                              grouped(plan.sweep.counts().total()) + " replies are there";
    go.words = words.c_str();
    const std::string obstacle = go_on_obstacle(plan);
    go.enabled = !state.busy() && obstacle.empty() && measuring_obstacle(view, true).empty();
    if (button(go)) sink.post(ComparisonCommand(GoOnWithSweep{}));
    if (go.enabled) tooltip("With this sweep's own ways, prompts and repeats, whatever is chosen for the next one");
    paragraph(obstacle, t.text2, width, kLine);
  }
}

void SweepPanel::draw_result(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ComparisonState& state = view.comparison;
  if (!state.sweep) {
    empty_panel("No sweep yet. Measure one, or open a file.");
    return;
  }
  const MeasuredPlan& plan = *state.sweep;
  draw_head(view, sink, width);
  ImGui::Dummy({0, px(4)});
  const float left = ImGui::GetCursorScreenPos().x;
  ImGui::Dummy({0, 0});
  if (chip("Tokens a second", "tok/s", !ratios_, true, left, width)) ratios_ = false;
  const std::string base = "\u00d7 " + in_plain_words(plan.sweep.contestants[state.baseline].way.name());
  if (chip("Ratio to the baseline", base.c_str(), ratios_, true, left, width)) ratios_ = true;
  for (size_t i = 0; i < state.files.layers.size() && i < shown_.overlays.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    const std::string words = shown_.overlays[i].name + "  \u00d7";
    if (chip("Drop overlay", words.c_str(), false, true, left, width)) sink.post(ComparisonCommand(DropOverlay{i}));
    tooltip("Take this one away");
    ImGui::PopID();
  }
  const float chart = std::max(px(kLeastChart), std::floor(ImGui::GetWindowHeight() * 0.36f));
  draw_sweep_chart(ratios_ ? shown_.ratio : shown_.speed, ratios_, {width, chart});
  axis_caption("guesses of a tree");
  ImGui::Dummy({0, px(18)});
  label(Type::secondary_semibold, t.text, "All prompts together");
  std::optional<size_t> marked;
  for (size_t row = 0; row < shown_.row_column.size(); ++row)
    if (shown_.row_column[row] == state.baseline) marked = row;
  if (const auto row = draw_table("Sweep table", shown_.table, marked, width))
    sink.post(ComparisonCommand(SetBaseline{shown_.row_column[*row]}));
  label(Type::caption, t.text3,
        elided(Type::caption,
               "Press a row to make it the baseline. \u00d7 plain: times as fast as plain decoding there.", width));
  for (size_t i = 0; i < shown_.overlays.size(); ++i) {
    const SweepOverlayView& overlay = shown_.overlays[i];
    heading(("Beside " + overlay.name).c_str());
    for (const std::string& note : overlay.notes) paragraph(note, t.bonus_text, width, kLine);
    ImGui::PushID(static_cast<int>(i));
    draw_table("Overlay table", overlay.table, std::nullopt, width);
    ImGui::PopID();
  }
}

void SweepPanel::draw(const ViewModel& view, CommandSink& sink) {
  refresh(view.comparison);
  const ImVec2 origin = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  float y = origin.y;
  if (!view.cards.empty()) {
    ImGui::SetCursorScreenPos({origin.x + px(kSweepInset), y + px(8)});
    ImGui::BeginGroup();
    draw_error_cards(view, sink, size.x - px(kSweepInset) * 2);
    ImGui::EndGroup();
    y = std::floor(ImGui::GetItemRectMax().y + px(8));
  }
  draw_header(view, sink, {origin.x, y}, {size.x, px(kSweepHeader)});
  y += px(kSweepHeader + kSweepGap);
  const bool beside = size.x >= px(kNarrow);
  const float height = origin.y + size.y - y, setup = beside ? px(kSetup) : size.x;
  // Below each other, what there is to choose has the room until there is something to show.
  const bool result = view.comparison.sweep || view.comparison.measures(SweepKind::sweep);
  const float below = result ? height * 0.55f : std::min(height * 0.55f, px(kNoResult));
  const float setup_height = beside ? height : std::floor(height - below);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(kSweepInset), px(8)});
  const auto part = [&](const char* id, ImVec2 pos, ImVec2 room, auto&& contents) {
    ImGui::SetCursorScreenPos(pos);
    if (ImGui::BeginChild(id, room, ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened))
      contents(std::floor(ImGui::GetContentRegionAvail().x));
    ImGui::EndChild();
  };
  part("Sweep set-up", {origin.x, y}, {setup, setup_height}, [&](float width) {
    draw_setup(view, sink, width);
    draw_files(view, sink, width);
  });
  const ImVec2 at =
      beside ? ImVec2(origin.x + setup + px(kSweepGap), y) : ImVec2(origin.x, y + setup_height + px(kSweepGap));
  part("Sweep result", at, {origin.x + size.x - at.x, origin.y + size.y - at.y},
       [&](float width) { draw_result(view, sink, width); });
  ImGui::PopStyleVar(3);
  ImGui::PopStyleColor();
}

}  // namespace canopy::app
