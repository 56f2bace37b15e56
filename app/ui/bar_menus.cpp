#include "app/ui/bar_menus.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <optional>
#include <utility>

#include "app/state/chat_update.h"
#include "app/state/models.h"
#include "app/ui/actions.h"
#include "app/ui/widgets.h"
#include "engine/base/figures.h"
#include "engine/base/machine.h"

namespace canopy::app {
namespace {

constexpr float kMenuWidth = 400, kListHeight = 300, kReleaseRow = 64;
constexpr uint32_t kIdleMinutes[] = {0, 5, 15, 30, 60};

float menu_width() {
  return std::min(px(kMenuWidth), ImGui::GetMainViewport()->Size.x - px(48));
}

bool begin(const char* name, ImVec2 corner) {
  ImGui::SetNextWindowPos(corner);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  const bool open = ImGui::BeginPopup(name);
  if (!open) ImGui::PopStyleVar();
  return open;
}

void end() {
  ImGui::EndPopup();
  ImGui::PopStyleVar();
}

void heading(const char* words) {
  ImGui::Dummy({0, px(2)});
  label(Type::secondary, colours().text3, words);
}

std::string size_words(const FoundModel& model) {
  if (!model.problem.empty()) return model.problem;
  return byte_figures(model.bytes) + (model.source.empty() ? "" : ", " + model.source);
}

/// Whether a found model has a row in the list: no drafter, and not the one whose row stands above the list.
bool listed(const ViewModel& view, const FoundModel& model) {
  const bool above = !view.default_model.empty() && (model.standard || model.path == view.default_model);
  return !model.drafter && !above;
}

void draw_found(const ViewModel& view, CommandSink& sink, float width) {
  if (!view.models.look_problem.empty()) heading(view.models.look_problem.c_str());
  const auto targets = std::ranges::count_if(view.models.found, [&](const FoundModel& f) { return listed(view, f); });
  if (targets == 0) {
    if (view.models.looking) heading("Looking for models on this computer");
    return;
  }
  heading("On this computer");
  ImGui::PushStyleColor(ImGuiCol_ChildBg, with_alpha(colours().raised, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  // In a low window the list is shorter, so that what is below it stays within reach.
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float room = viewport->Pos.y + viewport->Size.y - ImGui::GetCursorScreenPos().y - px(kReleaseRow + 24);
  const float height =
      std::min(std::clamp(room, px(24), px(kListHeight)), static_cast<float>(targets) * (px(44) + px(8)));
  ImGui::BeginChild("Found", {width, height});
  for (const FoundModel& model : view.models.found) {
    if (!listed(view, model)) continue;
    ImGui::PushID((model.path.empty() ? model.source + model.name : model.path).c_str());
    if (choice("model", model.name, size_words(model), model.path == view.model_path, model.problem.empty(),
               ImGui::GetContentRegionAvail().x)) {
      sink.post(OpenModel{model.path});
      ImGui::CloseCurrentPopup();
    }
    ImGui::PopID();
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

}  // namespace

/// Draws the choice of the idle minutes. A number from the settings file that is none of the usual ones is offered too.
static void draw_release_choice(const ViewModel& view, CommandSink& sink, float width) {
  const uint32_t chosen = view.models.idle_minutes;
  heading("Release the model when idle");
  std::vector<uint32_t> offered(std::begin(kIdleMinutes), std::end(kIdleMinutes));
  if (std::ranges::find(offered, chosen) == offered.end()) offered.push_back(chosen);
  std::ranges::sort(offered);
  const float left = ImGui::GetCursorScreenPos().x;
  for (const uint32_t minutes : offered) {
    const std::string words = minutes == 0 ? "Never" : grouped(minutes) + " min";
    ButtonSpec spec{words.c_str(), Icon::none, ButtonKind::line};
    spec.on = minutes == chosen;
    spec.tooltip = minutes == 0 ? "The model stays in memory"
                                : "Gives the model's memory back when nothing was asked for so long\n"
                                  "The chat stays; the next message loads the model again";
    if (minutes != offered.front()) ImGui::SameLine(0, px(6));
    if (ImGui::GetCursorScreenPos().x + button_size(spec).x > left + width) ImGui::NewLine();
    if (button(spec)) sink.post(ModelsCommand(ReleaseWhenIdle{minutes}));
  }
}

const char* TargetMenu::draw(const ViewModel& view, CommandSink& sink, ImVec2 corner, bool folded) {
  if (!begin(kTargetMenu, corner)) return nullptr;
  const char* next = nullptr;
  const float width = menu_width();
  if (ImGui::IsWindowAppearing()) sink.post(ModelsCommand(LookForModels{}));
  auto row = [&](const char* id, std::string_view title, std::string_view detail, bool selected) {
    const bool pressed = choice(id, title, detail, selected, true, width);
    if (pressed) ImGui::CloseCurrentPopup();
    return pressed;
  };
  if (row("Open model", "Open model\u2026", "A GGUF file or a Hugging Face folder", false)) sink.post(BrowseModel{});
  if (!view.default_model.empty()) {
    const bool selected = view.model && view.model->file_name == file_name(view.default_model);
    if (row("Default model", "SmolLM2 135M", file_name(view.default_model), selected))
      sink.post(OpenModel{view.default_model});
  }
  if (menu_row("Get models", "Get models\u2026", "Ctrl+Shift+O", false, true, width)) {
    sink.post(ShellCommand(ShowPage{WindowPage::models}));
    ImGui::CloseCurrentPopup();
  }
  tooltip("From a hub, with drafters that fit");
  if (menu_row("Engine elsewhere", "An engine elsewhere\u2026", "Ctrl+Shift+E", false, true, width)) {
    sink.post(ModelsCommand(ShowEngineBox{}));
    ImGui::CloseCurrentPopup();
  }
  tooltip("A Canopy that serves on another machine");
  for (const std::string& path : view.models.recent) {
    if (!is_server_address(path)) continue;
    if (row(path.c_str(), file_name(path), "An engine elsewhere", path == view.model_path)) sink.post(OpenModel{path});
  }
  if (model_path_box(path_, width)) {
    sink.post(OpenModel{typed_path(path_).string()});
    ImGui::CloseCurrentPopup();
  }
  if (menu_row("Serve", "Serve it to other programs\u2026", "F11", view.served.on(), true, width)) {
    sink.post(ServedCommand(ShowServing{}));
    ImGui::CloseCurrentPopup();
  }
  tooltip(serving_words(view).c_str());
  if (folded) {
    const std::string drafter = view.has_drafter() ? view.model->drafter : view.model ? "None is loaded" : "";
    if (row("Choose drafter", "Drafter\u2026", drafter, false)) next = kDrafterMenu;
    if (row("Choose device", "Device\u2026", view.model ? view.model->device : "", false)) next = kDeviceMenu;
  }
  draw_found(view, sink, width);
  draw_release_choice(view, sink, width);
  end();
  return next;
}

/// Draws which sources of guesses later replies ask. The menu stays open, so that both can be switched.
static void draw_source_rows(const ViewModel& view, CommandSink& sink, float width) {
  heading(kSourcesHeading);
  const auto row = [&](const SourceRow& of, const std::string& detail, bool possible, const char* more) {
    const bool asked = possible && (view.draft_sources & of.source) != 0;
    if (choice(of.id, of.title, detail, asked, possible, width)) sink.post(AskSource{of.source, !asked});
    term_tooltip(of.term, more);
    return asked;
  };
  const bool drafter = view.has_drafter();
  row(kFromDrafterRow, drafter ? view.model->drafter : "None is loaded", drafter,
      drafter ? "" : "Choose one below; until then guesses come from the text alone");
  row(kFromTextRow, "What followed the same words earlier in the chat", true, "");
  const bool earlier = row(kEarlierRow, "Kept on this computer; wrong guesses show their words", true, "");
  if (earlier &&
      choice("Forget", "Forget earlier replies", "Of all chats; a deleted chat's go with it", false, true, width))
    sink.post(ForgetEarlierReplies{});
  row(kRecycledRow, "Words it held likely after the same one; may pay on GPUs", true, "");
}

void draw_drafter_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner) {
  if (!begin(kDrafterMenu, corner)) return;
  const float width = menu_width();
  if (ImGui::IsWindowAppearing()) sink.post(ModelsCommand(LookForModels{}));
  draw_source_rows(view, sink, width);
  heading("Drafter");
  if (view.model && !view.model->server.empty()) {
    const std::string of_server = "That of " + view.model->server + ", which chooses it";
    heading(of_server.c_str());
    return end();
  }
  auto row = [&](const char* id, std::string_view title, std::string_view detail, bool selected, bool enabled) {
    const bool pressed = choice(id, title, detail, selected, enabled, width);
    if (pressed) ImGui::CloseCurrentPopup();
    return pressed;
  };
  const ModelsState& models = view.models;
  const std::string note = view.model ? view.model->drafter_note : "";  // why it was left out
  if (row("Usual", "The usual one", note.empty() ? "The model\u2019s own head, or what comes with Canopy" : note,
          models.draft && models.drafter.empty() && view.has_drafter(), true))
    sink.post(ModelsCommand(ChooseDrafter{}));
  if (!note.empty()) tooltip(note.c_str());
  if (row("None", "No drafter", "Guesses come from the text alone", !models.draft, true))
    sink.post(ModelsCommand(ChooseDrafter{"", false}));
  if (models.candidates.empty()) {
    heading(models.looking ? "Looking for drafters and smaller models" : "No other drafter or model was found");
  } else {
    heading("Found on this computer");
    for (const DrafterCandidate& each : models.candidates) {
      ImGui::PushID(each.path.c_str());
      if (row("drafter", each.name, each.fits ? each.note : each.reason, models.drafter == each.path, each.fits))
        sink.post(ModelsCommand(ChooseDrafter{each.path}));
      if (!each.fits) tooltip(each.reason.c_str());
      ImGui::PopID();
    }
  }
  end();
}

/// Draws the choice of the processor's threads: all, or fewer, for the sake of other programs.
static void draw_threads_choice(const ViewModel& view, CommandSink& sink, float width) {
  heading("Threads of the processor");
  const uint32_t chosen = view.models.threads;
  std::vector<uint32_t> offered = {0};
  for (uint32_t count = 1; count < usable_cores(); count *= 2) offered.push_back(count);
  if (std::ranges::find(offered, chosen) == offered.end()) offered.push_back(chosen);
  std::ranges::sort(offered);
  const float left = ImGui::GetCursorScreenPos().x;
  for (const uint32_t count : offered) {
    const std::string words = count == 0 ? "All cores" : grouped(count);
    ButtonSpec spec{words.c_str(), Icon::none, ButtonKind::line};
    spec.on = count == chosen;
    spec.tooltip = count == 0 ? "One thread for each core, or as many as --threads named"
                              : "Leaves the other cores to other programs, and writes the same text more slowly";
    if (count != offered.front()) ImGui::SameLine(0, px(6));
    if (ImGui::GetCursorScreenPos().x + button_size(spec).x > left + width) ImGui::NewLine();
    if (button(spec)) {
      sink.post(ModelsCommand(ChooseThreads{count}));
      ImGui::CloseCurrentPopup();
    }
  }
}

void draw_device_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner) {
  if (!begin(kDeviceMenu, corner)) return;
  if (view.model && !view.model->server.empty()) {
    heading(view.model->device.c_str());
    heading("These are for models of this computer:");
  }
  if (view.devices.empty()) label(Type::secondary, colours().text2, "No device was found");
  for (const DeviceChoice& device : view.devices) {
    ImGui::PushID(device.selector.c_str());
    const bool selected = view.model && view.model->device == device.name && view.model->backend == device.backend;
    const std::string detail = device.usable ? device_words(device) : device.reason;
    if (choice("device", device.name, detail, selected, device.usable, menu_width())) {
      sink.post(ChooseDevice{device.selector});
      ImGui::CloseCurrentPopup();
    }
    ImGui::PopID();
  }
  if (view.model && view.model->backend == "cpu") draw_threads_choice(view, sink, menu_width());
  ImGui::Dummy({0, px(2)});
  if (choice("Report device", "Report this device\u2026", "What it is and what passes take, as a file to send", false,
             !view.devices.empty(), menu_width())) {
    sink.post(ReportCommand(ShowReport{}));
    ImGui::CloseCurrentPopup();
  }
  end();
}

namespace {

constexpr float kViewMenuWidth = 280;
constexpr float kScaleButton = 28;

void section_heading(const char* words) {
  ImGui::Dummy({0, px(4)});
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text(ImGui::GetWindowDrawList(), {at.x + px(8), at.y}, Type::caption_semibold, colours().text3, words);
  ImGui::Dummy({0, px(18)});
}

void rule(float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float y = std::floor(at.y + px(4)) + 0.5f;
  ImGui::GetWindowDrawList()->AddLine({at.x, y}, {at.x + width, y}, colours().line);
  ImGui::Dummy({width, px(8)});
}

void draw_panel_rows(const ViewModel& view, CommandSink& sink, const std::vector<std::string>& panels, float width) {
  section_heading("Panels");
  for (const std::string& name : panels) {
    const bool shown = !view.shell.closed.contains(name);
    if (menu_row(name.c_str(), name, "", shown, true, width)) sink.post(ShellCommand(ShowPanel{name, !shown}));
  }
  if (menu_row("Reset layout", "Reset layout", "", false, true, width)) sink.post(ShellCommand(ResetLayout{}));
}

/// Draws a button that makes the interface one step smaller (-1) or larger (+1).
void draw_scale_button(const ViewModel& view, CommandSink& sink, int step) {
  const bool larger = step > 0;
  ButtonSpec spec{larger ? "Larger" : "Smaller", larger ? Icon::plus : Icon::minus};
  spec.show_label = false;
  spec.tooltip = larger ? "Larger interface  Ctrl++" : "Smaller interface  Ctrl+-";
  spec.enabled = larger ? view.user_scale < kMaxScale : view.user_scale > kMinScale;
  if (button(spec)) sink.post(SetScale{next_scale(view.user_scale, step)});
}

/// The interface's scale between two buttons that change it by a step.
void draw_scale_row(const ViewModel& view, CommandSink& sink, float width) {
  constexpr float kFigure = 44;
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const float side = px(kScaleButton), left = a.x + width - side * 2 - px(kFigure);
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text_middle(list, a.x + px(32), a.y + side * 0.5f, Type::base, colours().text, "Scale");
  ImGui::SetCursorScreenPos({left, a.y});
  draw_scale_button(view, sink, -1);
  const std::string percents = whole(static_cast<double>(view.user_scale * 100)) + "%";
  draw_text_middle(list, left + side + (px(kFigure) - text_size(Type::mono, percents).x) * 0.5f, a.y + side * 0.5f,
                   Type::mono, colours().text2, percents);
  ImGui::SetCursorScreenPos({left + side + px(kFigure), a.y});
  draw_scale_button(view, sink, 1);
  ImGui::SetCursorScreenPos({a.x, a.y + side});
}

void draw_mode_rows(const ViewModel& view, CommandSink& sink, float width) {
  constexpr std::pair<DecodeMode, const char*> kRows[] = {{DecodeMode::ar, "Ctrl+1"},
                                                          {DecodeMode::chain, "Ctrl+2"},
                                                          {DecodeMode::tree, "Ctrl+3"},
                                                          {DecodeMode::adaptive, "Ctrl+4"}};
  const DecodeMode now = view.drafting.value_or(kUsualMode);
  section_heading("Mode");
  for (const auto& [mode, keys] : kRows) {
    if (menu_row(mode_title(mode), mode_title(mode), keys, mode == now, true, width)) sink.post(SetDrafting{mode});
    tooltip(mode_detail(mode));
  }
}

void draw_look_rows(const ViewModel& view, CommandSink& sink, float width) {
  section_heading("Look");
  draw_scale_row(view, sink, width);
  if (menu_row("Actual size", "Actual size", "Ctrl+0", view.user_scale == 1.0f, true, width)) sink.post(SetScale{1.0f});
  constexpr std::pair<ThemeKind, const char*> kThemes[] = {
      {ThemeKind::dark, "Dark theme"}, {ThemeKind::light, "Light theme"}, {ThemeKind::projector, "Projector theme"}};
  for (const auto& [kind, words] : kThemes) {
    const char* keys = kind == next_theme(view.theme) ? "Ctrl+Shift+L" : "";
    if (menu_row(words, words, keys, view.theme == kind, true, width)) sink.post(SetTheme{kind});
  }
  const bool still = view.rounds.reduced_motion;
  if (menu_row("Reduced motion", "Reduced motion", "", still, true, width))
    sink.post(RoundsCommand(SetReducedMotion{!still}));
  tooltip("Nothing moves by itself; slow motion goes on by a key");
}

}  // namespace

/// What can be done with the recording on show, and the end of what is done; returns the command that was chosen.
static std::optional<UiCommand> draw_recording_rows(const ViewModel& view, float width) {
  if (const std::optional<Work> work = recording_work(view)) {
    const std::string words = "Cancel: " + work->progress.stage;
    const std::string figures = work->progress.total ? percent(work->progress.fraction(), 0) : "";
    return menu_row("Cancel the work", words, figures, false, true, width) ? std::optional(work->cancel) : std::nullopt;
  }
  const std::string obstacle = verify_obstacle(view);
  const bool pressed = menu_row("Check the recording", "Check the recording here", "", false, obstacle.empty(), width);
  tooltip(obstacle.empty()
              ? "Writes its replies again, plainly, with this model on this device, and compares the tokens"
              : obstacle.c_str());
  return pressed ? std::optional<UiCommand>(VerifyCommand(VerifyShown{})) : std::nullopt;
}

void draw_view_menu(const ViewModel& view, CommandSink& sink, const std::vector<std::string>& panels, ImVec2 corner,
                    bool modes) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = std::min(px(kViewMenuWidth), viewport->Size.x - px(48));
  ImGui::SetNextWindowPos(corner, ImGuiCond_Always, {1, 0});
  ImGui::SetNextWindowSizeConstraints(
      {0, 0}, {FLT_MAX, std::max(px(80), viewport->Pos.y + viewport->Size.y - corner.y - px(8))});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kViewMenu)) {
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    if (modes) {
      draw_mode_rows(view, sink, width);
      rule(width);
    }
    draw_panel_rows(view, sink, panels, width);
    rule(width);
    draw_look_rows(view, sink, width);
    rule(width);
    auto close_with = [&](UiCommand command) {
      sink.post(std::move(command));
      ImGui::CloseCurrentPopup();
    };
    if (menu_row("Share", "Share\u2026", "Ctrl+Shift+S", false, view.rounds.log->rounds() > 0, width))
      close_with(ShareCommand(ShowShare{}));
    tooltip("A picture of this pass, or a web page of all of them, for others");
    if (const std::optional<UiCommand> wanted = draw_recording_rows(view, width)) close_with(*wanted);
    if (menu_row("Tour", "Tour", "", false, true, width)) close_with(ShellCommand(ShowTour{}));
    if (menu_row("Commands", "Commands", "Ctrl+K", false, true, width)) close_with(ShellCommand(ShowPalette{}));
    if (menu_row("What am I looking at", "What am I looking at", "F1", false, true, width))
      close_with(ShellCommand(ShowRegions{}));
    if (menu_row("Keyboard shortcuts", "Keyboard shortcuts", "Shift+F1", false, true, width)) close_with(ShowHelp{});
    ImGui::PopStyleVar();
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

namespace {

constexpr const char* kMemoryPopup = "Memory menu";
constexpr float kMemoryBarHeight = 32, kBarTop = 17, kBarHeight = 10;
constexpr uint32_t kContexts[] = {2048, 4096, 8192, 16384, 32768, 65536, 131072};

Colour colour_of(MemoryPart part) {
  const Theme& t = colours();
  switch (part) {
    case MemoryPart::target: return t.verify;
    case MemoryPart::drafter: return t.draft;
    case MemoryPart::cache: return t.text2;
    case MemoryPart::states: return mix(t.text2, t.verify, 0.5f);
    case MemoryPart::tree: return t.text3;
    case MemoryPart::other_apps: return t.rest;
  }
  return t.rest;
}

Colour word_colour(MemoryFit fit) {
  const Theme& t = colours();
  switch (fit) {
    case MemoryFit::fits: return t.accent_text;
    case MemoryFit::tight: return t.bonus_text;
    case MemoryFit::wont_fit: return t.rejected_text;
  }
  return t.text2;
}

void draw_parts(const MemoryTable& table, ImVec2 a, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float top = a.y + px(kBarTop), bottom = top + px(kBarHeight);
  list->AddRectFilled({a.x, top}, {a.x + width, bottom}, colours().raised, px(2));
  const double whole = static_cast<double>(std::max<uint64_t>(1, std::max(table.budget, table.used)));
  float x = a.x;
  for (const MemoryRow& row : table.rows) {
    const float length = static_cast<float>(static_cast<double>(row.bytes) / whole) * width;
    const float shown = std::max(px(2), length - px(1));
    list->AddRectFilled({x, top}, {std::min(x + shown, a.x + width), bottom}, colour_of(row.part));
    x += length;
  }
}

void draw_table_row(const char* words, uint64_t bytes, float width, const Colour* swatch) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const float middle = a.y + px(11);
  if (swatch) list->AddRectFilled({a.x, middle - px(5)}, {a.x + px(10), middle + px(5)}, *swatch, px(2));
  draw_text_middle(list, a.x + px(20), middle, Type::base, t.text2, words);
  const std::string figure = byte_figures(bytes);
  draw_text_middle(list, a.x + width - text_size(Type::mono, figure).x, middle, Type::mono, t.text, figure);
  ImGui::Dummy({width, px(22)});
}

void draw_table(const MemoryTable& table, bool released, float width) {
  label(Type::base_semibold, colours().text,
        released ? "Memory of the device, the model released" : "Memory of the device, measured");
  for (const MemoryRow& row : table.rows) {
    const Colour swatch = colour_of(row.part);
    draw_table_row(to_string(row.part), row.bytes, width, &swatch);
  }
  draw_table_row("Together", table.used, width, nullptr);
  draw_table_row("The device allows", table.budget, width, nullptr);
}

/// Draws the choice of contexts, each with the memory it needs. One that does not fit can be chosen all the same.
void draw_contexts(const ViewModel& view, CommandSink& sink, float width) {
  const uint32_t most = view.model->model_context;
  label(Type::base_semibold, colours().text, "Context");
  auto offer = [&](uint32_t positions, const std::string& title, const std::string& detail, bool too_much) {
    ImGui::PushID(static_cast<int>(positions));
    if (choice("context", title, detail, view.models.context == positions, !view.busy(), width)) {
      sink.post(ModelsCommand(ChooseContext{positions, too_much}));
      ImGui::CloseCurrentPopup();
    }
    ImGui::PopID();
  };
  const char* when = view.model_state == ModelState::released ? " positions before" : " positions now";
  offer(0, "Automatic", grouped(view.model->context) + when, false);
  for (const uint32_t positions : kContexts) {
    if (positions > most) break;
    const MemoryTable table = memory_table_at(view.models.memory, positions, true);
    std::string detail = std::string(to_string(table.fit)) + ", " + share_of_bytes(table.used, table.budget);
    if (table.overridden) detail += "; load anyway";
    offer(positions, grouped(positions) + " positions", detail, table.overridden);
  }
}

void draw_popup(const ViewModel& view, CommandSink& sink, const MemoryTable& table) {
  const float width = std::min(px(340), ImGui::GetMainViewport()->Size.x - px(48));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(12), px(12)});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(8), px(2)});
  if (ImGui::BeginPopup(kMemoryPopup)) {
    draw_table(table, view.model_state == ModelState::released, width);
    ImGui::Dummy({0, px(6)});
    draw_contexts(view, sink, width);
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar(2);
}

}  // namespace

void memory_bar(const ViewModel& view, CommandSink& sink, float width) {
  if (!view.model || view.models.memory.budget == 0) return;
  const Theme& t = colours();
  const bool released = view.model_state == ModelState::released;
  const MemoryTable table = released ? memory_table(after_release(view.models.memory))
                                     : memory_table(view.models.memory, view.models.override_memory);
  const ImVec2 a = ImGui::GetCursorScreenPos();
  if (width <= 0) {  // without room for the bar, what it opens is reached by its name alone
    if (take_press("Memory")) ImGui::OpenPopup(kMemoryPopup);
    ImGui::SetNextWindowPos({a.x, a.y + px(kMemoryBarHeight) + px(4)});
    return draw_popup(view, sink, table);
  }
  if (ImGui::InvisibleButton("Memory", {width, px(kMemoryBarHeight)}, ImGuiButtonFlags_EnableNav) ||
      take_press("Memory"))
    ImGui::OpenPopup(kMemoryPopup);
  tooltip(released ? "The model is released and takes no memory; your next message loads it again"
                   : "What the models take of the device's memory; press for the parts and the context");
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float words_y = a.y + px(7);
  float x = a.x;
  const std::string figures = share_of_bytes(table.used, table.budget);
  const float figures_width = text_size(Type::mono_caption, figures).x;
  const char* verdict = released ? "Released" : to_string(table.fit);
  if (text_size(Type::caption, "Memory ").x + text_size(Type::caption, verdict).x + figures_width + px(20) <= width) {
    draw_text_middle(list, x, words_y, Type::caption, t.text3, "Memory");
    x += text_size(Type::caption, "Memory").x + px(6);
  }
  draw_text_middle(list, x, words_y, Type::caption, released ? t.text2 : word_colour(table.fit), verdict);
  if (x - a.x + text_size(Type::caption, verdict).x + figures_width + px(8) <= width)
    draw_text_middle(list, a.x + width - figures_width, words_y, Type::mono_caption, t.text2, figures);
  draw_parts(table, a, width);
  ImGui::SetNextWindowPos({a.x, a.y + px(kMemoryBarHeight) + px(4)});
  draw_popup(view, sink, table);
}

}  // namespace canopy::app
