#include "app/ui/dialogs.h"

#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "app/state/chat.h"
#include "app/state/models.h"
#include "app/state/words.h"
#include "app/ui/look.h"
#include "app/ui/widgets.h"
#include "engine/base/figures.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

constexpr float kBrowserWidth = 560, kListRow = 28, kListRows = 11, kLeastRows = 4, kAround = 200;

const char* filter_words(PathFilter filter) {
  switch (filter) {
    case PathFilter::models: return "Models and recordings";
    case PathFilter::chats: return "Chats (JSON)";
    default: return "";
  }
}

std::string facts_of(const FolderEntry& entry) {
  if (entry.folder) return entry.model ? "model" : "folder";
  return byte_figures(entry.bytes);
}

void draw_problem(const std::string& words, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_cross(list, {a.x + px(8), a.y + px(9)}, px(4), colours().rejected, px(2));
  TextBlock block;
  block.layout(words, Type::secondary, width - px(24));
  block.draw(list, {a.x + px(24), a.y}, words, Type::secondary, colours().text2, px(18));
  ImGui::Dummy({width, block.height(px(18))});
}

/// The folder to begin in, for a file or a folder that may be gone.
fs::path first_folder(const std::string& start) {
  std::error_code ignored;
  fs::path place = start;
  while (!place.empty() && !fs::is_directory(place, ignored)) {
    if (place == place.parent_path()) return typed_path("~");
    place = place.parent_path();
  }
  return place.empty() ? typed_path("~") : place;
}

}  // namespace

void PathBrowser::open(const char* title, PathFilter filter, const std::string& start) {
  title_ = title;
  opening_ = true;
  closing_ = false;
  wanted_ = filter;
  all_ = false;
  enter(first_folder(start).string());
  focus_list_ = false;
  focus_path_ = true;  // a path can be typed or pasted at once; Tab and the arrows lead to the list
}

void PathBrowser::enter(const std::string& folder) {
  list_ = list_folder(folder.empty() ? "/" : folder, all_ ? PathFilter::all : wanted_);
  path_ = list_.folder;
  problem_ = list_.problem;
  focus_list_ = true;
}

std::optional<std::string> PathBrowser::choose() {
  const fs::path path = typed_path(path_);
  std::error_code ignored;
  problem_ = path_.empty() ? "Choose a file, or type its path." : path_obstacle(path, wanted_);
  if (!problem_.empty()) return std::nullopt;
  const bool file = !fs::is_directory(path, ignored);
  if (file || wanted_ == PathFilter::folders || (wanted_ == PathFilter::models && holds_a_model(path))) {
    title_ = nullptr;
    return path.string();
  }
  enter(path.string());  // a folder that is no model: look into it
  return std::nullopt;
}

bool PathBrowser::draw_path(float width) {
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, colours().ctl);
  ImGui::PushStyleColor(ImGuiCol_FrameBg, colours().card);
  ImGui::SetNextItemWidth(width);
  if (std::exchange(focus_path_, false)) ImGui::SetKeyboardFocusHere();
  const bool entered = ImGui::InputTextWithHint("##path", "Path of a file or folder", &path_,
                                                ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_ElideLeft);
  ImGui::PopStyleColor(2);
  ImGui::PopStyleVar();
  return entered;
}

/// Draws the list. True when a file in it was opened with a double click or Enter.
bool PathBrowser::draw_entries(float width, float height) {
  bool opened = false;
  std::string next;
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGui::BeginChild("Entries", {width, height}, ImGuiChildFlags_NavFlattened);
  const float room = ImGui::GetContentRegionAvail().x;
  const bool focus = std::exchange(focus_list_, false);
  if (focus) ImGui::SetScrollY(0);
  if (!list_.parent.empty()) {
    if (focus) ImGui::SetKeyboardFocusHere();
    if (menu_row("Folder above", "\u2191  Folder above", "", false, true, room)) next = list_.parent;
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(list_.entries.size()), px(kListRow));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const FolderEntry& entry = list_.entries[static_cast<size_t>(i)];
      const bool pressed = menu_row(entry.name.c_str(), entry.folder ? entry.name + "/" : entry.name, facts_of(entry),
                                    path_ == entry.path, true, room);
      if (!pressed) continue;
      if (entry.folder && !(entry.model && wanted_ == PathFilter::models)) {
        next = entry.path;
        continue;
      }
      // The second click, or Enter, opens what the first one chose.
      opened = path_ == entry.path || !ImGui::IsMouseReleased(ImGuiMouseButton_Left);
      path_ = entry.path;
      problem_.clear();
    }
  }
  if (list_.entries.empty() && list_.problem.empty()) label(Type::secondary, colours().text3, "Nothing to choose here");
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  const bool back = !ImGui::GetIO().WantTextInput && ImGui::IsKeyPressed(ImGuiKey_Backspace, false);
  if (back && !list_.parent.empty()) next = list_.parent;
  if (!next.empty()) enter(next);
  return opened;
}

std::optional<std::string> PathBrowser::draw_contents(float width) {
  label(Type::title, colours().text, title_);
  bool asked = draw_path(width);
  const float room = ImGui::GetMainViewport()->Size.y - px(kAround) - ImGui::GetWindowPos().y;
  const float height = std::clamp(room, px(kListRow) * kLeastRows, px(kListRow) * kListRows);
  asked |= draw_entries(width, height);
  ImGui::Dummy({0, px(2)});
  if (!problem_.empty()) draw_problem(problem_, width);
  if (list_.cut) label(Type::secondary, colours().text3, "More than 2,000 entries: type the path instead");
  ButtonSpec open{wanted_ == PathFilter::folders ? "Choose" : "Open", Icon::none, ButtonKind::primary};
  ButtonSpec cancel{"Cancel", Icon::none, ButtonKind::line};
  asked |= button(open);
  ImGui::SameLine(0, px(8));
  const bool left = button(cancel) || ImGui::IsKeyPressed(ImGuiKey_Escape, false);
  if (const std::string words = filter_words(wanted_); !words.empty()) {
    ButtonSpec all{"All files", all_ ? Icon::check : Icon::none};
    all.on = all_;
    const std::string tip = "Now: " + (all_ ? std::string("all files") : words);
    all.tooltip = tip.c_str();
    ImGui::SameLine(width - button_size(all).x + ImGui::GetStyle().WindowPadding.x);
    if (button(all)) {
      all_ = !all_;
      enter(list_.folder);
    }
  }
  if (left) {
    title_ = nullptr;
    return std::nullopt;
  }
  return asked ? choose() : std::nullopt;
}

std::optional<std::string> PathBrowser::draw() {
  if (!title_) return std::nullopt;
  const char* title = title_;
  if (std::exchange(opening_, false)) ImGui::OpenPopup(title);
  const float width = place_dialog(kBrowserWidth);
  std::optional<std::string> chosen;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(16), px(14)});
  if (ImGui::BeginPopup(title)) {
    chosen = draw_contents(width - px(32));
    if (std::exchange(closing_, false)) title_ = nullptr;
    if (!title_) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
  } else {
    title_ = nullptr;  // closed by a click outside
  }
  ImGui::PopStyleVar();
  return chosen;
}

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

namespace {

constexpr const char* kSharePopup = "Share";
constexpr float kShareWidth = 500;

struct KindWords {
  const char* id;
  const char* words;
  const char* about;
};
constexpr std::array<KindWords, kShareKinds> kKinds = {{
    {"Share as PNG", "PNG", "This pass as a picture of 2560 \u00d7 1440 pixels, in the colours of the window."},
    {"Share as SVG", "SVG",
     "This pass as shapes and letters, sharp at any size. It shows its dark or its light colours, as its reader "
     "prefers."},
    {"Share as page", "Web page",
     "All passes in one file that opens in any browser: the tree, the text, scrubbing, slow motion and statistics. It "
     "needs no network."},
    {"Share as animation", "Animation",
     "Up to ten passes from this one on, as an SVG picture that moves, for a README or a web page."},
}};

std::string what_is_shared(const ViewModel& view) {
  const RoundLog& log = *view.rounds.log;
  return "Pass " + grouped(view.rounds.playback.shown + 1) + " of " + grouped(log.rounds()) +
         (view.rounds.trace_path.empty() ? ", written here" : ", of the recording that is shown");
}

}  // namespace

void ShareBox::suggest(const ViewModel& view) {
  const std::string name = share_name(view.share.kind, view.rounds.playback.shown, view.rounds.trace_path);
  const std::string suggestion = (documents_folder() / name).string();
  if (suggestion == suggested_) return;
  if (path_.empty() || path_ == suggested_) path_ = suggestion;  // else it was typed by the user
  suggested_ = suggestion;
}

void ShareBox::draw_kinds(const ViewModel& view, CommandSink& sink, float width) {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    const auto kind = static_cast<ShareKind>(i);
    ButtonSpec spec{kKinds[i].id, Icon::none, ButtonKind::line};
    spec.words = kKinds[i].words;
    spec.on = view.share.kind == kind;
    spec.enabled = !view.share.running;
    if (i > 0) ImGui::SameLine(0, px(6));
    if (button(spec)) {
      path_ = suggested_;  // its ending belongs to the other kind
      sink.post(ShareCommand(ChooseShare{kind}));
    }
  }
  // As high as the longest of the sentences, so that what is below has one place for all kinds.
  size_t lines = 0;
  for (const KindWords& each : kKinds) {
    TextBlock block;
    block.layout(each.about, Type::secondary, width);
    lines = std::max(lines, block.line_count());
  }
  const float top = ImGui::GetCursorPosY();
  paragraph(kKinds[static_cast<size_t>(view.share.kind)].about, colours().text2, width);
  ImGui::SetCursorPosY(top + px(kReportLine) * static_cast<float>(lines));
  ImGui::Dummy({width, px(2)});
}

void ShareBox::draw_saving(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ShareState& state = view.share;
  suggest(view);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, t.ctl);
  ImGui::SetNextItemWidth(width);
  const bool entered = ImGui::InputTextWithHint("##share", "Path of the file", &path_,
                                                ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_ElideLeft);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  if (state.running) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    draw_bar(ImGui::GetWindowDrawList(), at, {width, px(8)}, state.fraction(), t.accent, t.raised);
    ImGui::Dummy({width, px(12)});
    ButtonSpec cancel{"Cancel the file", Icon::none, ButtonKind::line};
    cancel.words = "Cancel";
    if (button(cancel)) sink.post(ShareCommand(StopShare{}));
    return;
  }
  const bool done = !state.saved.empty();
  ButtonSpec save{"Save the file", done ? Icon::check : Icon::none, ButtonKind::primary};
  const float wide = button_size({"Save again", Icon::check}).x, left = ImGui::GetCursorPosX();
  save.words = done ? "Save again" : "Save";
  save.enabled = !path_.empty();
  if ((button(save) || entered) && save.enabled) sink.post(ShareCommand(StartShare{state.kind, path_}));
  ImGui::SameLine(left + wide + px(8));
  ButtonSpec close{"Close", Icon::none, ButtonKind::line};
  if (button(close)) sink.post(ShareCommand(ShowShare{false}));
  paragraph(state.problem, t.rejected_text, width);
  if (done) paragraph("Written to " + state.saved, t.text2, width);
}

void ShareBox::draw(const ViewModel& view, CommandSink& sink) {
  if (!view.share.box_shown) {
    open_ = false;
    return;
  }
  if (!open_) {
    open_ = true;
    ImGui::OpenPopup(kSharePopup);
  }
  const float width = place_dialog(kShareWidth) - px(32);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(16), px(14)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, colours().card);
  if (ImGui::BeginPopup(kSharePopup)) {
    label(Type::title, colours().text, "Share");
    paragraph(what_is_shared(view), colours().text2, width);
    ImGui::Dummy({0, px(2)});
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    draw_kinds(view, sink, width);
    draw_saving(view, sink, width);
    if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) sink.post(ShareCommand(ShowShare{false}));
    ImGui::EndPopup();
  } else {
    sink.post(ShareCommand(ShowShare{false}));  // closed by a click outside
  }
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

namespace {

constexpr const char* kOwnDevicePopup = "A device of your own";
constexpr float kOwnDeviceWidth = 460, kOwnFigure = 120;

/// The number that was typed, with a point or a comma; no number where it is none.
double typed_number(std::string text) {
  std::erase(text, ' ');
  std::ranges::replace(text, ',', '.');
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? value : std::numeric_limits<double>::quiet_NaN();
}

std::string figure_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

/// A caption with a box for a figure behind it. True where Enter was pressed in it.
bool figure_box(const char* id, const char* caption, const char* hint, std::string& text, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, at.y + ImGui::GetFrameHeight() * 0.5f, Type::base, colours().text2,
                   elided(Type::base, caption, width - px(kOwnFigure + 12)));
  ImGui::SetCursorScreenPos({at.x + width - px(kOwnFigure), at.y});
  ImGui::SetNextItemWidth(px(kOwnFigure));
  return ImGui::InputTextWithHint(id, hint, &text, ImGuiInputTextFlags_EnterReturnsTrue);
}

}  // namespace

/// A line for each device that is kept: a press fills the form with its figures, the cross forgets it.
void OwnDeviceBox::draw_known(const ViewModel& view, CommandSink& sink, float width) {
  for (const predict::OwnDevice& own : view.what_if.own) {
    ImGui::PushID(own.name.c_str());
    const std::string figures = figure_text(own.gb_s) + " GB/s, " + figure_text(own.tflops) + " TFLOPS, " +
                                figure_text(own.dispatch_us) + " \u00b5s";
    if (choice("Change this device", own.name, figures, own.name == name_, true, width - px(40))) {
      name_ = own.name;
      gb_s_ = figure_text(own.gb_s);
      tflops_ = figure_text(own.tflops);
      dispatch_us_ = figure_text(own.dispatch_us);
      problem_.clear();
    }
    ImGui::SameLine(0, px(4));
    if (icon_button("Remove this device", Icon::close, "Remove this device"))
      sink.post(WhatIfCommand(DropOwnDevice{own.name}));
    ImGui::PopID();
  }
}

void OwnDeviceBox::draw_form(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, t.ctl);
  if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(width);
  bool entered =
      ImGui::InputTextWithHint("##own name", "Name of the device", &name_, ImGuiInputTextFlags_EnterReturnsTrue);
  entered |= figure_box("##own memory", "Memory, GB/s", "672", gb_s_, width);
  entered |= figure_box("##own arithmetic", "Arithmetic in f32, TFLOPS", "31", tflops_, width);
  entered |= figure_box("##own dispatch", "A dispatch, microseconds", "1.3", dispatch_us_, width);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  paragraph(problem_, t.rejected_text, width);
  ButtonSpec keep{"Keep this device", Icon::none, ButtonKind::primary};
  keep.words = "Predict for it";
  if (!button(keep) && !entered) return;
  const predict::OwnDevice device{name_, typed_number(gb_s_), typed_number(tflops_), typed_number(dispatch_us_)};
  problem_ = own_device_problem(view.what_if, device);
  if (!problem_.empty()) return;
  sink.post(WhatIfCommand(KeepOwnDevice{device}));
  sink.post(WhatIfCommand(DescribeDevice{false}));
  ImGui::CloseCurrentPopup();
}

void OwnDeviceBox::draw(const ViewModel& view, CommandSink& sink) {
  if (!view.what_if.describing) {
    open_ = false;
    return;
  }
  if (!open_) {
    open_ = true;
    problem_.clear();
    ImGui::OpenPopup(kOwnDevicePopup);
  }
  const float width = place_dialog(kOwnDeviceWidth) - px(32);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(16), px(14)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, colours().card);
  if (ImGui::BeginPopup(kOwnDevicePopup)) {
    label(Type::title, colours().text, kOwnDevicePopup);
    paragraph(
        "By its data sheet. What it does not say is taken as in the middle of GPUs, and no matrix cores are "
        "counted on: the prediction is rougher than that of a profile. A dispatch is a step that waits for the "
        "one before; 1 to 3 are usual.",
        colours().text2, width);
    draw_known(view, sink, width);
    draw_form(view, sink, width);
    if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) sink.post(WhatIfCommand(DescribeDevice{false}));
    ImGui::EndPopup();
  } else {
    sink.post(WhatIfCommand(DescribeDevice{false}));  // closed by a click outside
  }
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

namespace {

constexpr const char* kEnginePopup = "An engine elsewhere";
constexpr float kEngineWidth = 460;

}  // namespace

void EngineBox::draw(const ViewModel& view, CommandSink& sink) {
  if (!view.models.engine_box_shown) {
    open_ = false;
    return;
  }
  if (!open_) {
    open_ = true;
    key_.clear();
    if (is_server_address(view.model_path)) address_ = view.model_path;
    ImGui::OpenPopup(kEnginePopup);
  }
  const float width = place_dialog(kEngineWidth) - px(32);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(16), px(14)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, colours().card);
  if (ImGui::BeginPopup(kEnginePopup)) {
    label(Type::title, colours().text, kEnginePopup);
    paragraph(
        "Another machine writes, and this window shows every pass of it: one where \"canopy-cli serve\" runs. Another "
        "OpenAI-compatible server can be chatted with, too; its passes cannot be seen. Your messages travel "
        "unencrypted: use a network that you trust.",
        colours().text2, width);
    ImGui::Dummy({0, px(2)});
    ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
    ImGui::PushStyleColor(ImGuiCol_Border, colours().ctl);
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(width);
    bool entered = ImGui::InputTextWithHint("##engine address", "http://gpu-box:8737", &address_,
                                            ImGuiInputTextFlags_EnterReturnsTrue);
    ImGui::SetNextItemWidth(width);
    const char* hint = view.models.engine_key.empty() ? "Key, where it asks for one; kept until the window closes"
                                                      : "Key; empty: that of the settings";
    entered |= ImGui::InputTextWithHint("##engine key", hint, &key_,
                                        ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_Password);
    ImGui::PopStyleColor();
    ImGui::PopStyleVar();
    ButtonSpec open{"Open the engine", Icon::none, ButtonKind::primary};
    open.words = "Open";
    open.enabled = !engine_address(address_).empty();
    if ((button(open) || entered) && open.enabled) {
      sink.post(ModelsCommand(OpenEngine{address_, key_}));
      key_.clear();
      ImGui::CloseCurrentPopup();
    }
    if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) sink.post(ModelsCommand(ShowEngineBox{false}));
    ImGui::EndPopup();
  } else {
    sink.post(ModelsCommand(ShowEngineBox{false}));  // closed by a click outside
  }
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

namespace {

constexpr const char* kServePopup = "Serve";
constexpr float kServeWidth = 500, kServeCaption = 112;

/// A caption with a box behind it. True where Enter was pressed in it.
bool serve_field(const char* id, const char* caption, const char* hint, const char* about, std::string& text,
                 float width, ImGuiInputTextFlags flags = 0) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float left = std::min(px(kServeCaption), width * 0.4f);
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, at.y + ImGui::GetFrameHeight() * 0.5f, Type::base, colours().text2,
                   elided(Type::base, caption, left - px(8)));
  ImGui::SetCursorScreenPos({at.x + left, at.y});
  ImGui::SetNextItemWidth(width - left);
  const bool entered = ImGui::InputTextWithHint(id, hint, &text, ImGuiInputTextFlags_EnterReturnsTrue | flags);
  tooltip(about);
  return entered;
}

std::optional<uint32_t> typed_port(const std::string& text) {
  uint32_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && port <= kMostPort ? std::optional(port) : std::nullopt;
}

}  // namespace

void ServeBox::draw_on(const ViewModel& view, CommandSink& sink, float width) {
  const Serving& told = view.served.told;
  if (told.active) {
    label(Type::mono, colours().text, elided(Type::mono, told.url, width));
    paragraph(
        "Model " + told.model + (view.served.key.empty() ? ", for this machine alone" : ", for those who have the key"),
        colours().text2, width);
  }
  paragraph(serving_words(view), colours().text2, width);
  ImGui::Dummy({0, px(2)});
  ButtonSpec stop{"Stop serving", Icon::none, ButtonKind::primary};
  stop.tooltip = "Ends all requests; address and key can be changed then";
  if (button(stop)) sink.post(ServedCommand(SwitchServing{false}));
  if (!told.active) return;
  ImGui::SameLine(0, px(8));
  ButtonSpec copy{"Copy the address", Icon::none, ButtonKind::line};
  copy.tooltip = "The base URL, for a client\u2019s settings";
  if (button(copy)) sink.post(CopyText{told.url});
}

void ServeBox::draw_form(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, t.ctl);
  bool entered =
      serve_field("##serve host", "Address", "127.0.0.1",
                  "Address to listen at; with another than this machine\u2019s own a key is needed", host_, width);
  entered |= serve_field("##serve port", "Port", "8737", "0 takes one that is free", port_, width);
  entered |= serve_field("##serve key", "Key", "None: for this machine alone",
                         "That clients must name, at least 8 signs; kept in a file that only you can read", key_, width,
                         ImGuiInputTextFlags_Password);
  entered |= serve_field("##serve hosts", "Allowed hosts", "None beside localhost",
                         "Names by which clients call this machine, with commas in between", hosts_, width);
  entered |= serve_field("##serve cors", "Pages (CORS)", "None",
                         "Origins of web pages that may ask, as https://chat.example", origins_, width);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  paragraph(problem_.empty() ? view.served.told.problem : problem_, t.rejected_text, width);
  ButtonSpec serve{"Serve", Icon::none, ButtonKind::primary};
  serve.tooltip = "Also after the next start, until you switch it off";
  const bool pressed = button(serve);
  if (view.served.settings.on) {  // and was refused: the next start would try it again
    ImGui::SameLine(0, px(8));
    ButtonSpec off{"Switch off", Icon::none, ButtonKind::line};
    off.tooltip = "Does not try it again at the next start";
    if (button(off)) return sink.post(ServedCommand(SwitchServing{false}));
  }
  if (!pressed && !entered) return;
  const std::optional<uint32_t> port = typed_port(port_);
  problem_ = port ? "" : "The port is \"" + port_ + "\"; it must be 0 to 65535.";
  if (!port) return;
  ServeSettings settings = view.served.settings;
  settings.host = host_.empty() ? ServeSettings().host : host_;
  settings.port = *port;
  settings.hosts = listed_names(hosts_);
  settings.origins = listed_names(origins_);
  sink.post(ServedCommand(ChangeServing{settings, key_}));
  sink.post(ServedCommand(SwitchServing{true}));
}

void ServeBox::draw(const ViewModel& view, CommandSink& sink) {
  if (!view.served.box_shown) {
    open_ = false;
    return;
  }
  if (!open_) {
    open_ = true;
    const ServeSettings& settings = view.served.settings;
    host_ = settings.host;
    port_ = std::to_string(settings.port);
    key_ = view.served.key;
    hosts_ = joined_names(settings.hosts);
    origins_ = joined_names(settings.origins);
    problem_.clear();
    ImGui::OpenPopup(kServePopup);
  }
  const float width = place_dialog(kServeWidth) - px(32);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(16), px(14)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, colours().card);
  if (ImGui::BeginPopup(kServePopup)) {
    label(Type::title, colours().text, "Serve");
    paragraph(
        "Editors, agents and scripts that speak OpenAI\u2019s or Anthropic\u2019s interface get answers of the loaded "
        "model. Each request can be watched, below the list of chats. Your own chat goes first.",
        colours().text2, width);
    ImGui::Dummy({0, px(2)});
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    if (view.served.on())
      draw_on(view, sink, width);
    else
      draw_form(view, sink, width);
    if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) sink.post(ServedCommand(ShowServing{false}));
    ImGui::EndPopup();
  } else {
    sink.post(ServedCommand(ShowServing{false}));  // closed by a click outside
  }
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

}  // namespace canopy::app
