#include "app/charts/cost_panels.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "app/charts/chart_frame.h"
#include "app/state/models.h"
#include "app/ui/widgets.h"
#include "engine/base/figures.h"
#include "engine/trace/round_statistics.h"

namespace canopy::app {
namespace {

constexpr uint32_t kCurvePoints = 64;

void add_curve(const Roofline& fitted, ContextCosts& costs) {
  const double from = costs.width.front(), to = costs.width.back();
  for (uint32_t i = 0; i <= kCurvePoints; ++i) {
    const double width = std::round(from + (to - from) * i / kCurvePoints);
    if (!costs.curve_width.empty() && costs.curve_width.back() == width) continue;
    costs.curve_width.push_back(width);
    costs.curve_ms.push_back(1000 * fitted.seconds(static_cast<uint32_t>(width), costs.context));
  }
}

}  // namespace

CostView cost_view(const CostSnapshot& costs) {
  CostView view;
  view.fit_error = costs.fit_error;
  view.passes = costs.passes.size();
  for (const MeasuredPass& pass : costs.passes) {
    if (view.contexts.empty() || view.contexts.back().context != pass.context)
      view.contexts.push_back(
          {.context = pass.context, .width = {}, .ms = {}, .residual = {}, .curve_width = {}, .curve_ms = {}});
    ContextCosts& here = view.contexts.back();
    here.width.push_back(pass.width);
    here.ms.push_back(pass.ms);
    here.residual.push_back(pass.residual());
    view.widest = std::max(view.widest, pass.width);
    view.slowest_ms = std::max(view.slowest_ms, pass.ms);
    view.worst_error = std::max(view.worst_error, std::abs(pass.residual()));
  }
  for (ContextCosts& each : view.contexts) add_curve(costs.fitted, each);
  return view;
}

namespace {

constexpr float kHeader = 30;
constexpr float kCaption = 18;
constexpr const char* kWidths = "width, rows of one pass: its guesses and the root";

struct Legend {
  LegendMark mark;
  Colour colour;
  const char* word;
};

void draw_header(const char* title, const std::string& note, const char* about, std::initializer_list<Legend> legend) {
  const Theme& t = colours();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x, middle = at.y + px(kHeader) * 0.5f;
  ImGui::InvisibleButton(title, {std::max(1.0f, room), px(kHeader)});
  tooltip(about);
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text_middle(list, at.x, middle, Type::secondary_semibold, t.text, title);
  const float note_width = text_size(Type::caption, note).x;
  draw_text_middle(list, at.x + room - note_width, middle, Type::caption, t.text3, note);
  float x = at.x + text_size(Type::secondary_semibold, title).x + px(24);
  for (const Legend& each : legend) {
    if (x + legend_width(each.word) > at.x + room - note_width - px(12)) break;
    x = legend_mark({x, middle}, each.mark, each.colour, each.word) + px(16);
  }
}

ImVec2 chart_size() {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  return {room.x, std::max(px(120), room.y - px(kCaption))};
}

constexpr double kEdge = 1.03;  // end of a width axis, in largest widths: dots at the largest one are drawn whole

Axes width_axes(double widest) {
  Axes axes;
  axes.x = width_ticks(std::max(16.0, widest));
  axes.x.top *= kEdge;
  axes.x_from = 0;
  axes.x_lines = true;
  return axes;
}

/// Axes for prediction errors: passes up to `widest` rows, and errors around 0 in steps of 5% to 500%, so that an error
/// of `largest` fits where possible.
Axes share_axes(double widest, double largest) {
  Axes axes = width_axes(widest);
  double step = 0.05;
  for (const double each : {0.1, 0.25, 0.5, 1.0, 2.5, 5.0})
    if (largest > step * 2) step = each;
  const double end = step * 2;
  for (int i = -2; i <= 2; ++i) {
    axes.y.at.push_back(step * i);
    axes.y.labels.push_back(i == 0 ? "0%" : (i > 0 ? "+" : "\u2212") + fixed(100 * step * std::abs(i), 0) + "%");
  }
  axes.y_from = -end * 1.1;
  axes.y.top = end * 1.1;
  return axes;
}

ImPlotSpec marks(Colour colour, bool filled) {
  ImPlotSpec spec;
  spec.Marker = ImPlotMarker_Circle;
  spec.MarkerSize = 2.6f * look().scale;
  spec.LineWeight = 1.2f * look().scale;
  const ImVec4 line = ImGui::ColorConvertU32ToFloat4(colour);
  spec.LineColor = spec.MarkerLineColor = line;
  spec.MarkerFillColor = filled ? line : ImGui::ColorConvertU32ToFloat4(with_alpha(colour, 0));
  return spec;
}

std::string context_name(const ContextCosts& costs) {
  return "context " + grouped(costs.context);
}

/// Lengthens the axis of widths in a chart of this width, so that the names of the contexts fit behind the curves.
void leave_room_for_names(const CostView& costs, float width, Axes& axes) {
  float widest = 0;
  for (const ContextCosts& each : costs.contexts)
    widest = std::max(widest, text_size(Type::caption, context_name(each)).x + px(16));
  axes.x.top /= 1 - std::min(0.4f, widest / std::max(px(1), width - px(48)));
}

/// Names the context of each curve at its end, clear of the points and of the other names.
void draw_context_labels(const CostView& costs) {
  std::vector<LabelWish> wishes;
  std::vector<std::string> words;
  std::vector<Spot> points;
  for (const ContextCosts& each : costs.contexts) {
    for (size_t i = 0; i < each.width.size(); ++i) {
      const ImVec2 at = ImPlot::PlotToPixels(each.width[i], each.ms[i]);
      points.push_back({at.x, at.y});
    }
    words.push_back(context_name(each));
    wishes.push_back({points.back(), px(4), text_size(Type::caption, words.back()).x + px(4), px(15)});
  }
  const std::vector<Box> places = place_labels(wishes, plot_room(), {}, points);
  ImDrawList* list = ImPlot::GetPlotDrawList();
  for (size_t i = 0; i < places.size(); ++i) {
    clear_behind(list, places[i]);
    draw_text_middle(list, places[i].left + px(2), (places[i].top + places[i].bottom) * 0.5f, Type::caption,
                     colours().text2, words[i]);
  }
}

/// Draws the points of each context with the curve fitted to them. Long contexts are drawn stronger, as passes cost
/// most there.
void draw_passes(const CostView& costs) {
  const Theme& t = colours();
  const size_t contexts = costs.contexts.size();
  for (size_t i = 0; i < contexts; ++i) {
    const ContextCosts& each = costs.contexts[i];
    const float strength = contexts > 1 ? 0.45f + 0.55f * static_cast<float>(i) / static_cast<float>(contexts - 1) : 1;
    plot_predicted(each.curve_width, each.curve_ms);
    ImPlot::PlotScatter("passes", each.width.data(), each.ms.data(), static_cast<int>(each.width.size()),
                        marks(mix(t.panel, t.accent, strength), true));
  }
  draw_context_labels(costs);
}

}  // namespace

const CostView* ShownCosts::of(const ViewModel& view) {
  const auto& costs = view.calibration.costs;
  if (!costs || costs->passes.empty() || !view.rounds.log->is_live()) return nullptr;
  if (costs != costs_) {
    costs_ = costs;
    view_ = cost_view(*costs);
  }
  return &view_;
}

void ResidualsPanel::draw(const ViewModel& view, CommandSink&) {
  const Theme& t = colours();
  const CostView* costs = costs_.of(view);
  const RoundLog& log = *view.rounds.log;
  const size_t shown = view.rounds.playback.shown;
  std::vector<RoundResidual> rounds;
  if (shown < log.rounds()) rounds = round_residuals(log, log.first_of_reply(shown), shown);
  const PanelBody body("Residuals body", 14, 4);
  double mean = 0, largest = costs ? costs->worst_error : 0, widest = costs ? costs->widest : 0;
  for (const RoundResidual& each : rounds) {
    mean += std::abs(each.error) / static_cast<double>(rounds.size());
    widest = std::max(widest, each.width);
  }
  largest = std::max(largest, mean * 3);
  const Axes axes = share_axes(widest, largest);
  std::vector<double> width, error;
  size_t beyond = 0;  // rounds whose error is not on the axis: they are drawn at its end
  for (const RoundResidual& each : rounds) {
    const double within = std::clamp(each.error, axes.y.at.front(), axes.y.at.back());
    beyond += within == each.error ? 0 : 1;
    width.push_back(each.width);
    error.push_back(within);
  }
  std::string note =
      rounds.empty() ? "" : counted(rounds.size(), "pass", "passes") + ", off by " + percent(mean) + " in the mean";
  if (beyond > 0) note += "; " + grouped(beyond) + " beyond the axis";
  if (rounds.empty() && costs)
    note = counted(costs->passes, "pass", "passes") + ", off by " + percent(costs->fit_error);
  draw_header(
      "Time to check, measured over predicted", note,
      "Above the line the pass took longer than predicted. Passes: against what the table and its corrections "
      "said before the pass. Calibration: single measured passes against the roofline fitted to them.",
      {{LegendMark::dot, t.accent, "passes"}, {LegendMark::ring, t.text2, "calibration, against the roofline"}});
  if (const Chart chart("Residuals chart", chart_size(), axes); chart) {
    plot_reference(0);
    if (costs)
      for (const ContextCosts& each : costs->contexts)
        ImPlot::PlotScatter("passes", each.width.data(), each.residual.data(), static_cast<int>(each.width.size()),
                            marks(t.text2, false));
    if (!width.empty())
      ImPlot::PlotScatter("own passes", width.data(), error.data(), static_cast<int>(width.size()),
                          marks(t.accent, true));
    if (!costs && rounds.empty()) chart.say("after the first predicted pass, or a calibration");
  }
  axis_caption(kWidths);
}

void RooflinePanel::draw(const ViewModel& view, CommandSink&) {
  const Theme& t = colours();
  const CostView* costs = costs_.of(view);
  const PanelBody body("Roofline body", 14, 4);
  const std::string note =
      costs ? counted(costs->passes, "pass", "passes") + ", roofline off by " + percent(costs->fit_error)
            : std::string();
  draw_header(
      "Time to check by width, ms", note,
      "Points: single passes of the big model, measured by the calibration. Dashed: the roofline "
      "max(\u03b1m\u00b7Tmem + \u03b2m, \u03b1c\u00b7Tcomp + \u03b2c) fitted to them. One colour strength a context.",
      {{LegendMark::dot, t.accent, "measured"}, {LegendMark::dashed, t.text2, "fitted roofline"}});
  Axes axes = width_axes(costs ? costs->widest : 128);
  axes.y = ticks_to(costs ? costs->slowest_ms : 10, 4, false);
  if (costs) leave_room_for_names(*costs, ImGui::GetContentRegionAvail().x, axes);
  if (const Chart chart("Roofline chart", chart_size(), axes); chart) {
    if (costs)
      draw_passes(*costs);
    else
      chart.say("Nothing was measured yet: Calibrate, in the panel Calibration, takes about 90 s");
  }
  axis_caption(kWidths);
}

namespace {

constexpr uint64_t kLeastNodes = 5;  // points of fewer nodes are left out, as they are too uncertain

std::string progress_words(const CalibrationState& state) {
  switch (state.phase) {
    case CalibrationState::Phase::waiting: return "Waiting for the engine";
    case CalibrationState::Phase::cancelling: return "Cancelling";
    default: break;
  }
  std::string words = "Pass " + grouped(state.progress.done) + " of " + grouped(state.progress.total);
  if (state.progress.seconds_left > 0) words += ", " + fixed(std::ceil(state.progress.seconds_left), 0) + " s left";
  return words;
}

void draw_running(const CalibrationState& state, CommandSink& sink) {
  const Theme& t = colours();
  label(Type::mono, t.text2, progress_words(state));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x;
  draw_bar(ImGui::GetWindowDrawList(), at, {room, px(8)}, state.fraction(), t.accent, t.raised);
  ImGui::Dummy({room, px(12)});
  ButtonSpec cancel{"Cancel calibration", Icon::none, ButtonKind::line};
  cancel.words = "Cancel";
  cancel.enabled = state.phase != CalibrationState::Phase::cancelling;
  cancel.tooltip = "What was measured before stays in use";
  if (button(cancel)) sink.post(CalibrationCommand(StopCalibration{}));
}

const char* why_not(const ViewModel& view) {
  if (view.model_state == ModelState::released) return "The model is released; your next message loads it again";
  if (!view.model || view.model_state != ModelState::ready) return "Open a model first";
  return nullptr;
}

void wrapped_note(const std::string& words) {
  push_type(Type::secondary);
  ImGui::PushStyleColor(ImGuiCol_Text, colours().text2);
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(words.c_str());
  ImGui::PopTextWrapPos();
  ImGui::PopStyleColor();
  ImGui::PopFont();
}

void draw_calibration(const ViewModel& view, CommandSink& sink) {
  const CalibrationState& state = view.calibration;
  const std::string note =
      state.costs ? counted(state.costs->passes.size(), "pass", "passes") + " measured" : "not measured";
  chart_title("Costs of passes", note,
              "What passes of the loaded pair cost on this device: every width to 64 rows, wider "
              "ones by tiles, at several contexts. Kept between launches.");
  if (state.busy()) return draw_running(state, sink);
  const char* refusal = why_not(view);
  ButtonSpec start{"Calibrate", Icon::none, state.costs ? ButtonKind::line : ButtonKind::primary};
  start.enabled = refusal == nullptr;
  start.tooltip = refusal ? refusal : "Measures for up to 90 s; a reply under way is finished first";
  if (button(start)) sink.post(CalibrationCommand(StartCalibration{}));
  if (!state.note.empty()) wrapped_note(state.note);
  if (const std::string stale = stale_words(state); !stale.empty()) wrapped_note(stale);
  if (state.costs)
    pair_line("Roofline off by", percent(state.costs->fit_error),
              "Mean distance of the roofline, fitted to the measured passes, from them.");
}

struct Points {
  std::vector<double> predicted, observed;
};

Points points_of(const std::array<ReliabilityTally::Bin, ReliabilityTally::kBins>& bins) {
  Points points;
  for (const ReliabilityTally::Bin& bin : bins) {
    if (bin.nodes < kLeastNodes) continue;
    points.predicted.push_back(bin.predicted());
    points.observed.push_back(bin.observed());
  }
  return points;
}

Axes share_axes() {
  Axes axes;
  axes.x.at = axes.y.at = {0, 0.25, 0.5, 0.75, 1};
  axes.x.labels = axes.y.labels = {"0", "0.25", "0.50", "0.75", "1"};
  axes.x.top = axes.y.top = 1.04;
  axes.x_lines = true;
  return axes;
}

/// The tooltip with the numbers of the bin under the mouse.
void reliability_tooltip(const ReliabilityTally& tally) {
  const auto place = static_cast<size_t>(std::clamp(ImPlot::GetPlotMousePos().x, 0.0, 0.999) * ReliabilityTally::kBins);
  const auto words = [&](const char* name, const ReliabilityTally::Bin& bin) {
    return std::string(name) + ": " + grouped(bin.hits) + " of " + grouped(bin.nodes) + " guesses came, promised " +
           fixed(bin.predicted(), 3);
  };
  show_tooltip(words("drafter", tally.raw()[place]) + "\n" + words("calibrated", tally.calibrated()[place]));
}

void draw_reliability(const ReliabilityTally& tally, uint64_t rounds) {
  const Theme& t = colours();
  chart_title(
      "Path probabilities", counted(tally.nodes(), "guess", "guesses") + " of " + counted(rounds, "pass", "passes"),
      "Checked guesses by the probability that their path was given, against the share of them that the text came "
      "through. On the dotted line promises are kept. A pass that ended inside its tree is left out.");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float next = legend_mark({at.x, at.y + px(8)}, LegendMark::ring, t.text2, "drafter");
  legend_mark({next + px(14), at.y + px(8)}, LegendMark::dot, t.accepted, "calibrated");
  ImGui::Dummy({0, px(18)});
  const float side = ImGui::GetContentRegionAvail().x;
  {
    const Chart chart("Reliability chart", {side, px(240)}, share_axes());
    if (!chart) return;
    const double diagonal[] = {0, 1};
    plot_dashed(diagonal, diagonal, reference_spec(), reference_dash());
    if (rounds < kEnoughRounds || tally.nodes() == 0) return chart.say("after 8 passes with guesses");
    ImPlotSpec raw = accepted_spec(), calibrated = accepted_spec();
    raw.LineColor = raw.MarkerLineColor = ImGui::ColorConvertU32ToFloat4(t.text2);
    raw.MarkerFillColor = ImGui::ColorConvertU32ToFloat4(t.panel);
    raw.LineWeight = 1.2f * look().scale;
    const Points before = points_of(tally.raw()), after = points_of(tally.calibrated());
    ImPlot::PlotLine("drafter", before.predicted.data(), before.observed.data(),
                     static_cast<int>(before.predicted.size()), raw);
    ImPlot::PlotLine("calibrated", after.predicted.data(), after.observed.data(),
                     static_cast<int>(after.predicted.size()), calibrated);
    if (chart.hovered()) reliability_tooltip(tally);
  }
  axis_caption("across: promised, up: share that came");
  ImGui::Dummy({0, px(14)});
  pair_line("Drafter off by", percent(ReliabilityTally::error(tally.raw())),
            "Mean distance of promised from observed over " + counted(tally.nodes(), "guess", "guesses") + ".");
  pair_line(
      "Calibrated off by", percent(ReliabilityTally::error(tally.calibrated())),
      "The same for the probabilities that the tree was ordered by. Equal where nothing was calibrated: in mode Tree.");
}

}  // namespace

void CalibrationPanel::draw(const ViewModel& view, CommandSink& sink) {
  const TrailPoint& point = trail_.up_to(view.rounds.log, view.rounds.playback.shown, StatisticsTrail::kRoundsAFrame);
  if (!trail_.done()) keep_drawing(0.1);
  const PanelBody body("Calibration body");
  draw_calibration(view, sink);
  ImGui::Dummy({0, px(8)});
  draw_reliability(point.reliability, point.rounds.rounds());
  if (const auto& learnt = view.calibration.learnt)
    pair_line("Learnt from", counted(learnt->drafts, "pass", "passes"),
              "Passes with guesses, in all replies, that the calibration of this drafter has learnt from.");
}

CacheView cache_view(const RoundRecord* shown, const ModelReady* model, uint64_t context_used) {
  CacheView view;
  if (model != nullptr) {
    view.capacity = model->memory.context > 0 ? model->memory.context : model->context;
    view.slots = model->memory.rows;
    view.cache_bytes = model->memory.cache;
    view.tree_bytes = model->memory.tree;
    view.state_bytes = model->memory.states;
  }
  if (shown == nullptr) {
    view.committed = context_used;
    return view;
  }
  view.committed = shown->context;
  view.kept = std::min<uint64_t>(shown->width, uint64_t{drafted_part(*shown).tokens} + 1);
  view.dropped = shown->width - view.kept;
  return view;
}

namespace {

constexpr uint64_t kMostCells = 256;

/// Draws how much of the context is in use.
void draw_context_bar(const CacheView& cache) {
  const Theme& t = colours();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x;
  ImGui::InvisibleButton("Context bar", {std::max(1.0f, room), px(16)});
  const std::string words = grouped(cache.used()) + " of " + grouped(cache.capacity) + " positions after this pass.";
  tooltip(words.c_str());
  draw_bar(ImGui::GetWindowDrawList(), at, {room, px(16)},
           static_cast<float>(cache.used()) / static_cast<float>(std::max<uint64_t>(1, cache.capacity)), t.verify,
           t.card);
}

/// Draws one cell for each row of the tree, filled where its K/V was kept.
void draw_slots(const CacheView& cache) {
  const Theme& t = colours();
  const uint64_t rows = cache.kept + cache.dropped, cells = std::min(rows, kMostCells);
  const float pitch = px(12), size = px(10), room = ImGui::GetContentRegionAvail().x;
  const auto columns = std::max<uint64_t>(1, static_cast<uint64_t>(room / pitch));
  const uint64_t lines = (cells + columns - 1) / columns;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton("Tree slots", {std::max(1.0f, room), std::max(1.0f, pitch * static_cast<float>(lines))});
  tooltip(
      "One cell a row of the shown pass. Filled: moved behind the text. Outlined: dropped, free for the next "
      "one.");
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (uint64_t i = 0; i < cells; ++i) {
    const ImVec2 a = {at.x + pitch * static_cast<float>(i % columns), at.y + pitch * static_cast<float>(i / columns)};
    const ImVec2 b = {a.x + size, a.y + size};
    if (i < cache.kept)
      list->AddRectFilled(a, b, t.accepted, px(2));
    else
      list->AddRect({a.x + 0.5f, a.y + 0.5f}, {b.x - 0.5f, b.y - 0.5f}, t.unreached, px(2), px(1));
  }
  if (rows > cells) label(Type::caption, t.text3, "and " + grouped(rows - cells) + " more");
}

}  // namespace

void KvPanel::draw(const ViewModel& view, CommandSink&) {
  const PanelBody body("KV body");
  const RoundsState& rounds = view.rounds;
  const auto shown = rounds.shown();
  const bool live = rounds.log->is_live();
  const ModelReady* model = live && view.model ? &*view.model : nullptr;
  if (!shown && !model) return empty_panel("No cache yet. Open a model, or watch the demo.");
  const CacheView cache = cache_view(shown.get(), model, view.context_used);
  chart_title("Context, positions", live ? "measured, after this pass" : "replayed, after this pass");
  if (cache.capacity > 0) {
    draw_context_bar(cache);
    pair_line("Used", grouped(cache.used()) + " of " + grouped(cache.capacity), "Positions of the K/V cache.");
  } else {
    pair_line("Used", grouped(cache.used()), "Positions of the K/V cache; the trace does not say how many there are.");
  }
  pair_line("Confirmed before", grouped(cache.committed), "Positions of prompt and reply before the pass.");
  ImGui::Dummy({0, px(8)});
  chart_title("Rows of the pass", shown ? "pass " + grouped(rounds.playback.shown + 1) : "after the first pass");
  if (shown) {
    draw_slots(cache);
    pair_line("Kept", grouped(cache.kept) + " of " + grouped(cache.kept + cache.dropped),
              "The root and the accepted guesses: their K/V moved behind the text.");
    pair_line("Dropped", grouped(cache.dropped), "Guesses off the path; their slots are free for the next pass.");
  }
  if (cache.slots > 0)
    pair_line("Tree slots", grouped(cache.slots), "Rows that the largest pass and its tree may have on this device.");
  if (cache.cache_bytes == 0 || view.model_state == ModelState::released) return;
  ImGui::Dummy({0, px(8)});
  chart_title("Memory", "on the device");
  pair_line("Text", byte_figures(cache.cache_bytes), "Keys and values of all positions, " + view.model->kv_type + ".");
  pair_line("Tree", byte_figures(cache.tree_bytes), "Keys and values of the tree's rows.");
  if (cache.state_bytes > 0)
    pair_line(
        "States", byte_figures(cache.state_bytes),
        "Of recurrent layers, for the points that the text can be gone back to. They do not grow with the context.");
}

}  // namespace canopy::app
