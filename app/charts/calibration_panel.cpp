#include "app/charts/calibration_panel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "app/charts/chart_frame.h"
#include "app/look/widgets.h"
#include "app/panels/panel.h"

namespace canopy::app {
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
  if (view.model->drafter.empty()) return "Without a drafter there is nothing to calibrate";
  return nullptr;
}

void draw_calibration(const ViewModel& view, CommandSink& sink) {
  const Theme& t = colours();
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
  if (!state.note.empty()) {
    push_type(Type::secondary);
    ImGui::PushStyleColor(ImGuiCol_Text, t.text2);
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(state.note.c_str());
    ImGui::PopTextWrapPos();
    ImGui::PopStyleColor();
    ImGui::PopFont();
  }
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
    return std::string(name) + ": " + grouped(bin.hits) + " of " + grouped(bin.nodes) + " nodes came, promised " +
           fixed(bin.predicted(), 3);
  };
  ImGui::SetTooltip("%s\n%s", words("drafter", tally.raw()[place]).c_str(),
                    words("calibrated", tally.calibrated()[place]).c_str());
}

void draw_reliability(const ReliabilityTally& tally, uint64_t rounds) {
  const Theme& t = colours();
  chart_title(
      "Path probabilities", counted(tally.nodes(), "node", "nodes") + " of " + counted(rounds, "round", "rounds"),
      "Verified nodes by the probability that their path was given, against the share of them that the text came "
      "through. On the dotted line promises are kept. A round that ended inside its tree is left out.");
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
    if (rounds < kEnoughRounds || tally.nodes() == 0) return chart.say("after 8 rounds with drafts");
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
            "Mean distance of promised from observed over " + counted(tally.nodes(), "node", "nodes") + ".");
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
    pair_line("Learnt from", counted(learnt->drafts, "draft", "drafts"),
              "Drafts, in all replies, that the calibration of this drafter has learnt from.");
}

}  // namespace canopy::app
