#include "app/bars/report_box.h"

#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>

#include "app/conversation/export_path.h"
#include "app/look/text_block.h"
#include "app/look/widgets.h"
#include "app/models/device_words.h"

namespace canopy::app {
namespace {

using BoxPhase = ReportState::Phase;

constexpr const char* kReportPopup = "Report this device";
constexpr float kReportWidth = 500, kReportLine = 19, kCell = 58;

std::string measured_with(const ViewModel& view) {
  const bool loaded = view.model && view.model_state == ModelState::ready;
  return loaded ? "the loaded model" : "a small model of random weights";
}

std::string report_step_words(const ReportState& state) {
  if (state.phase == BoxPhase::waiting) return "Waiting for the engine";
  if (state.phase == BoxPhase::cancelling) return "Cancelling";
  const Progress progress{"", state.step.done, state.step.total, state.step.in_bytes, state.step.seconds_left};
  const std::string figures = progress_figures(progress);
  return figures.empty() ? state.step.stage : state.step.stage + ", " + figures;
}

/// One row of the table of passes: a caption and a cell for each width, as many as there is room for.
void cells(const char* caption, const std::vector<std::string>& words, Type type, Colour colour, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = at.y + px(kReportLine) * 0.5f;
  draw_text_middle(list, at.x, middle, Type::secondary, colours().text3, caption);
  const float first = at.x + px(kCell);
  const auto room = static_cast<size_t>(std::max(0.0f, (width - px(kCell)) / px(kCell - 6)));
  for (size_t i = 0; i < std::min(words.size(), room); ++i) {
    const float right = first + px(kCell - 6) * static_cast<float>(i + 1);
    draw_text_middle(list, right - text_size(type, words[i]).x, middle, type, colour, words[i]);
  }
  ImGui::Dummy({width, px(kReportLine)});
}

/// What passes take, and how many passes of one row that is: the number that decides how wide a tree may be.
void draw_passes(const DeviceReported& report, float width) {
  std::vector<std::string> rows, times, ratios;
  for (const auto& [pass_rows, ms] : report.passes) {
    rows.push_back(grouped(pass_rows));
    times.push_back(fixed(ms, ms < 10 ? 2 : ms < 100 ? 1 : 0));
    ratios.push_back(fixed(ms / report.passes.front().second, 2));
  }
  cells("Rows", rows, Type::mono, colours().text2, width);
  cells("ms", times, Type::mono, colours().text, width);
  cells("\u00d7 one row", ratios, Type::mono, colours().text2, width);
}

std::string read_rate(const DeviceReported& report) {
  if (report.weights_gb_s <= 0) return "";
  const int digits = report.peak_gb_s < 100 ? 1 : 0;
  return "A pass of one row reads weights at " + fixed(report.weights_gb_s, digits) + " GB/s; this device reads at " +
         fixed(report.peak_gb_s, digits) + " GB/s at most.";
}

void paragraph(const std::string& words, Colour colour, float width) {
  if (words.empty()) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  TextBlock block;
  block.layout(words, Type::secondary, width);
  block.draw(ImGui::GetWindowDrawList(), at, words, Type::secondary, colour, px(kReportLine));
  ImGui::Dummy({width, block.height(px(kReportLine))});
}

}  // namespace

void ReportBox::suggest(const ViewModel& view) {
  const std::string name = report_name(view.report.report->device, view.chat.now_ms);
  if (!path_.empty() && path_ != suggested_) return;  // typed by the user
  path_ = suggested_ = (documents_folder() / name).string();
}

void ReportBox::draw_measuring(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ReportState& state = view.report;
  label(Type::secondary, t.text2, report_step_words(state));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_bar(ImGui::GetWindowDrawList(), at, {width, px(8)}, state.fraction(), t.accent, t.raised);
  ImGui::Dummy({width, px(12)});
  ButtonSpec cancel{"Cancel the report", Icon::none, ButtonKind::line};
  cancel.words = "Cancel";
  cancel.enabled = state.phase != BoxPhase::cancelling;
  if (button(cancel)) sink.post(ReportCommand(StopReport{}));
}

void ReportBox::draw_start(const ViewModel& view, CommandSink& sink, float width) {
  const std::string obstacle = report_obstacle(view);
  ButtonSpec start{"Measure", Icon::none, view.report.report ? ButtonKind::line : ButtonKind::primary};
  if (view.report.report) start.words = "Measure again";
  start.enabled = obstacle.empty();
  if (view.busy()) start.tooltip = "The reply under way is finished first";
  if (!obstacle.empty()) start.tooltip = obstacle.c_str();
  if (button(start)) sink.post(ReportCommand(StartReport{}));
  paragraph(view.report.note, colours().text2, width);
}

void ReportBox::draw_saving(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ReportState& state = view.report;
  const DeviceReported& report = *state.report;
  const std::string backend = backend_words(view.devices, report.backend);
  label(Type::base_semibold, t.text, without_brackets(report.device) + (backend.empty() ? "" : ", " + backend));
  label(Type::mono, t.text2, report.shape + ", kernels " + report.kernels);
  paragraph(report.problem, t.text2, width);
  if (!report.passes.empty()) draw_passes(report, width);
  paragraph(read_rate(report), t.text2, width);
  paragraph(report.self_test, t.text2, width);
  ImGui::Dummy({0, px(2)});
  suggest(view);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, t.ctl);
  ImGui::SetNextItemWidth(width);
  const bool entered = ImGui::InputTextWithHint("##report", "Path of the file", &path_,
                                                ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_ElideLeft);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  const bool done = !state.saved.empty();
  ButtonSpec save{"Save the report", done ? Icon::check : Icon::none, done ? ButtonKind::line : ButtonKind::primary};
  save.words = done ? "Saved" : "Save";
  save.enabled = !path_.empty();
  if ((button(save) || entered) && save.enabled) sink.post(ReportCommand(SaveReport{path_}));
  ImGui::SameLine(0, px(8));
  ButtonSpec copy{"Copy the report", Icon::none, ButtonKind::line};
  copy.words = "Copy";
  copy.tooltip = "The file's text, to paste into a message";
  if (button(copy)) sink.post(CopyText{*report.json});
  ImGui::SameLine(0, px(8));
  draw_start(view, sink, width);
  if (!state.problem.empty()) paragraph(state.problem, t.rejected, width);
  if (done) paragraph("Written to " + state.saved, t.text2, width);
}

void ReportBox::draw(const ViewModel& view, CommandSink& sink) {
  if (!view.report.box_shown) {
    open_ = false;
    return;
  }
  if (!open_) {
    open_ = true;
    ImGui::OpenPopup(kReportPopup);
  }
  const float width = place_dialog(kReportWidth) - px(32);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(16), px(14)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, colours().card);
  if (ImGui::BeginPopup(kReportPopup)) {
    label(Type::title, colours().text, "Report this device");
    paragraph("Measures it with " + measured_with(view) +
                  " for about a minute and makes one file to send: what device and driver are, whether results are "
                  "exact, and what passes take. It holds no paths, no names of files and none of your texts.",
              colours().text2, width);
    ImGui::Dummy({0, px(2)});
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    if (view.report.busy())
      draw_measuring(view, sink, width);
    else if (view.report.report)
      draw_saving(view, sink, width);
    else
      draw_start(view, sink, width);
    if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) sink.post(ReportCommand(ShowReport{false}));
    ImGui::EndPopup();
  } else {
    sink.post(ReportCommand(ShowReport{false}));  // closed by a click outside
  }
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

}  // namespace canopy::app
