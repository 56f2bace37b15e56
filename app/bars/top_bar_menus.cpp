#include "app/bars/top_bar_menus.h"

#include <algorithm>
#include <string>
#include <vector>

#include "app/look/widgets.h"
#include "app/models/device_words.h"
#include "app/models/memory_table.h"
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
  return model.problem.empty() ? bytes_text(model.bytes) : model.problem;
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
      std::min(std::clamp(room, px(52), px(kListHeight)), static_cast<float>(targets) * (px(44) + px(8)));
  ImGui::BeginChild("Found", {width, height});
  for (const FoundModel& model : view.models.found) {
    if (!listed(view, model)) continue;
    ImGui::PushID(model.path.c_str());
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
  if (model_path_box(path_, width)) {
    sink.post(OpenModel{path_});
    ImGui::CloseCurrentPopup();
  }
  if (folded) {
    if (row("Choose drafter", "Drafter\u2026", view.model ? view.model->drafter : "", false)) next = kDrafterMenu;
    if (row("Choose device", "Device\u2026", view.model ? view.model->device : "", false)) next = kDeviceMenu;
  }
  draw_found(view, sink, width);
  draw_release_choice(view, sink, width);
  end();
  return next;
}

void draw_drafter_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner) {
  if (!begin(kDrafterMenu, corner)) return;
  const float width = menu_width();
  if (ImGui::IsWindowAppearing()) sink.post(ModelsCommand(LookForModels{}));
  auto row = [&](const char* id, std::string_view title, std::string_view detail, bool selected, bool enabled) {
    const bool pressed = choice(id, title, detail, selected, enabled, width);
    if (pressed) ImGui::CloseCurrentPopup();
    return pressed;
  };
  const ModelsState& models = view.models;
  const bool some = view.model && !view.model->drafter.empty();
  if (row("Usual", "The one that comes with Canopy", "Where it fits the model",
          models.draft && models.drafter.empty() && some, true))
    sink.post(ModelsCommand(ChooseDrafter{}));
  if (row("None", "No drafter", "Plain decoding only", !models.draft, true))
    sink.post(ModelsCommand(ChooseDrafter{"", false}));
  if (models.candidates.empty()) {
    heading(models.looking ? "Looking for drafters beside the model and in the cache"
                           : "No other drafter was found beside the model or in the cache");
  } else {
    heading("Found on this computer");
    for (const DrafterCandidate& each : models.candidates) {
      ImGui::PushID(each.path.c_str());
      if (row("drafter", each.name, each.fits ? "Fits this model" : each.reason, models.drafter == each.path,
              each.fits))
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

}  // namespace canopy::app
