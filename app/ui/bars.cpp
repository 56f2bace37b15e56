#include "app/ui/bars.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "app/state/chat_update.h"
#include "app/state/models.h"
#include "app/state/view_model.h"
#include "app/ui/actions.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

struct LayoutChoice {
  WindowLayout layout;
  bool pages;  // in their place the pages of comparisons
  const char *words, *tip;
};
constexpr LayoutChoice kLayouts[] = {
    {WindowLayout::watch, false, "Watch", "The tree, large, with what it means  F4"},
    {WindowLayout::what_if, false, "What if", "What other devices would make of it  F10"},
    {WindowLayout::lab, false, "Lab", "Every panel, chart and figure  F4"},
    {WindowLayout::lab, true, "Compare", "Ways to decode, side by side  F2"},
};
constexpr float kSwitchHeight = 32, kSwitchPad = 2, kChoicePad = 8, kMoreMenuWidth = 300;
constexpr const char* kMoreMenu = "More layouts menu";

bool is_on(const LayoutChoice& choice, const ViewModel& view) {
  const bool pages = view.shell.page == WindowPage::compare || view.shell.page == WindowPage::sweep;
  return choice.pages ? pages : view.shell.page == WindowPage::rounds && view.shell.layout == choice.layout;
}

float choice_width(const LayoutChoice& choice) {
  return std::ceil(text_size(Type::base_semibold, choice.words).x) + px(kChoicePad) * 2;
}

UiCommand command_of(const LayoutChoice& choice) {
  return choice.pages ? ShellCommand(ShowPage{WindowPage::compare}) : ShellCommand(SetLayout{choice.layout});
}

/// The four views as a drop-down, where there is no room for their words.
void layout_picker(const ViewModel& view, CommandSink& sink, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const auto* now = std::ranges::find_if(kLayouts, [&](const LayoutChoice& each) { return is_on(each, view); });
  if (picker("More layouts", "", now == std::end(kLayouts) ? "Models" : now->words, width)) ImGui::OpenPopup(kMoreMenu);
  tooltip("Watch, What if, Lab and Compare");
  ImGui::SetNextWindowPos({a.x, a.y + px(kSwitchHeight + 4)}, ImGuiCond_Always);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kMoreMenu)) {
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    const float room = std::min(px(kMoreMenuWidth), viewport->Pos.x + viewport->Size.x - a.x - px(24));
    for (const LayoutChoice& each : kLayouts) {
      if (!choice(each.words, each.words, each.tip, is_on(each, view), true, room)) continue;
      sink.post(command_of(each));
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

/// whole: with the words of all four beside each other.
float layout_switch_width(bool whole) {
  float width = whole ? px(kSwitchPad) * 2 : 0;
  for (const LayoutChoice& choice : kLayouts)
    width = whole ? width + choice_width(choice) : std::max(width, picker_width("", choice.words));
  return width;
}

/// Draws Watch | What if | Lab | Compare as one control, 32 px high at 100%, at the cursor.
void layout_switch(const ViewModel& view, CommandSink& sink) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos(), size = {layout_switch_width(true), px(kSwitchHeight)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, {a.x + size.x, a.y + size.y}, t.card, px(6));
  list->AddRect(a, {a.x + size.x, a.y + size.y}, t.line, px(6));
  float x = a.x + px(kSwitchPad);
  for (const LayoutChoice& choice : kLayouts) {
    const bool on = is_on(choice, view);
    const ImVec2 from = {x, a.y + px(kSwitchPad)}, room = {choice_width(choice), size.y - px(kSwitchPad) * 2};
    ImGui::SetCursorScreenPos(from);
    if (ImGui::InvisibleButton(choice.words, room, ImGuiButtonFlags_EnableNav)) sink.post(command_of(choice));
    const ImVec2 to = {from.x + room.x, from.y + room.y};
    if (on)
      list->AddRectFilled(from, to, t.accent, px(4));
    else if (ImGui::IsItemHovered())
      list->AddRectFilled(from, to, mix(t.card, t.text, kHoverMix), px(4));
    const Type type = on ? Type::base_semibold : Type::base;
    draw_text_middle(list, from.x + (room.x - text_size(type, choice.words).x) * 0.5f, from.y + room.y * 0.5f, type,
                     on ? t.on_accent : t.text2, choice.words);
    tooltip(choice.tip);
    x += room.x;
  }
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy(size);
}

constexpr float kSegmentHeight = 32, kSegmentPadding = 2, kItemPadding = 12, kSegmentGap = 6;
constexpr DecodeMode kModes[] = {DecodeMode::ar, DecodeMode::chain, DecodeMode::tree, DecodeMode::adaptive};
constexpr uint32_t kBudgets[] = {4, 8, 16, 32, 64, 128, 256, 512, 1024};
constexpr const char* kBudgetPopup = "Tree size";
constexpr const char* kGuessesOfTree = "Guesses in the tree of every pass";
constexpr const char* kModePopup = "Mode menu";

DecodeMode mode_now(const ViewModel& view) {
  return view.drafting.value_or(kUsualMode);
}

std::string about_mode(DecodeMode mode) {
  return std::string(mode_detail(mode)) + "\nThe text is the same in every mode";
}

float item_width(DecodeMode mode) {
  return std::ceil(text_size(Type::base_semibold, mode_title(mode)).x) + px(kItemPadding) * 2;
}

/// The size of trees is chosen where it is used; its place stays free in the other modes, so that choosing one moves
/// nothing.
bool shows_budget(const ViewModel& view) {
  return mode_now(view) == DecodeMode::tree;
}

float budget_picker_width(const char* caption) {
  float width = 0;
  for (const uint32_t guesses : kBudgets) width = std::max(width, picker_width(caption, std::to_string(guesses)));
  return width;
}

void draw_item(const ViewModel& view, CommandSink& sink, DecodeMode mode, ImVec2 a) {
  const Theme& t = colours();
  const bool on = mode == mode_now(view);
  const ImVec2 size = {item_width(mode), px(kSegmentHeight - 2 * kSegmentPadding)};
  ImGui::SetCursorScreenPos(a);
  if (ImGui::InvisibleButton(mode_title(mode), size, ImGuiButtonFlags_EnableNav)) sink.post(SetDrafting{mode});
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 b = {a.x + size.x, a.y + size.y};
  if (on)
    list->AddRectFilled(a, b, ImGui::GetColorU32(t.accent), px(4));
  else if (ImGui::IsItemHovered())
    list->AddRectFilled(a, b, mix(t.card, t.text, kHoverMix), px(4));
  const Type type = on ? Type::base_semibold : Type::base;
  draw_text_middle(list, a.x + (size.x - text_size(type, mode_title(mode)).x) * 0.5f, a.y + size.y * 0.5f, type,
                   on ? t.on_accent : t.text2, mode_title(mode));
  term_tooltip(mode_title(mode), about_mode(mode));
}

void draw_budget_menu(const ViewModel& view, CommandSink& sink) {
  const float width = std::min(px(260), ImGui::GetMainViewport()->Size.x - px(48));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kBudgetPopup)) {
    label(Type::secondary, colours().text2, kGuessesOfTree);
    for (const uint32_t nodes : kBudgets) {
      ImGui::PushID(static_cast<int>(nodes));
      if (choice("nodes", grouped(nodes) + " guesses", "", nodes == view.shell.tree_budget, true, width)) {
        sink.post(ShellCommand(SetTreeBudget{nodes}));
        ImGui::CloseCurrentPopup();
      }
      ImGui::PopID();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

/// The sizes of trees as buttons, broken into lines.
void draw_budget_buttons(const ViewModel& view, CommandSink& sink, float width) {
  label(Type::secondary, colours().text2, kGuessesOfTree);
  const float left = ImGui::GetCursorScreenPos().x;
  for (const uint32_t guesses : kBudgets) {
    const std::string words = grouped(guesses);
    ButtonSpec spec{words.c_str(), Icon::none, ButtonKind::line};
    spec.on = guesses == view.shell.tree_budget;
    if (guesses != kBudgets[0]) ImGui::SameLine(0, px(6));
    if (ImGui::GetCursorScreenPos().x + button_size(spec).x > left + width) ImGui::NewLine();
    if (button(spec)) sink.post(ShellCommand(SetTreeBudget{guesses}));
  }
}

void draw_mode_menu(const ViewModel& view, CommandSink& sink) {
  const float width = std::min(px(340), ImGui::GetMainViewport()->Size.x - px(48));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kModePopup)) {
    for (const DecodeMode mode : kModes) {
      if (choice(mode_title(mode), mode_title(mode), mode_detail(mode), mode == mode_now(view), true, width)) {
        sink.post(SetDrafting{mode});
        ImGui::CloseCurrentPopup();
      }
    }
    if (shows_budget(view)) draw_budget_buttons(view, sink, width);
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

float mode_segment_width(const char* caption) {
  float width = px(kSegmentPadding) * 2 + budget_picker_width(caption) + px(kSegmentGap);
  for (const DecodeMode mode : kModes) width += item_width(mode);
  return width;
}

/// Draws Plain | Chain | Tree | Adaptive as one control, before it for Tree the number of its guesses. 32 px high at
/// 100%, at the cursor.
void mode_segment(const ViewModel& view, CommandSink& sink, const char* caption) {
  const Theme& t = colours();
  const ImVec2 from = ImGui::GetCursorScreenPos(), size = {mode_segment_width(caption), px(kSegmentHeight)};
  const float budget = budget_picker_width(caption);
  if (shows_budget(view)) {
    if (picker("Tree nodes", caption, std::to_string(view.shell.tree_budget), budget)) ImGui::OpenPopup(kBudgetPopup);
    term_tooltip("Budget", "Adaptive chooses it by itself");
    ImGui::SetNextWindowPos({from.x, from.y + size.y + px(4)});
    draw_budget_menu(view, sink);
  }
  const ImVec2 a = {from.x + budget + px(kSegmentGap), from.y}, b = {from.x + size.x, from.y + size.y};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, t.card, px(5));
  list->AddRect(a, b, t.line, px(5), std::max(1.0f, px(1)));
  float x = a.x + px(kSegmentPadding);
  for (const DecodeMode mode : kModes) {
    draw_item(view, sink, mode, {x, a.y + px(kSegmentPadding)});
    x += item_width(mode);
  }
}

float mode_picker_width() {
  float width = 0;
  for (const DecodeMode mode : kModes) width = std::max(width, picker_width("", mode_title(mode)));
  return width;
}

/// The same as a drop-down, where there is no room for four words.
void mode_picker(const ViewModel& view, CommandSink& sink, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  if (picker("Mode", "", mode_title(mode_now(view)), width)) ImGui::OpenPopup(kModePopup);
  tooltip(about_mode(mode_now(view)).c_str());
  ImGui::SetNextWindowPos({a.x, a.y + px(kSegmentHeight) + px(4)});
  draw_mode_menu(view, sink);
}

constexpr float kHeight = 48, kControl = 32, kMargin = 12, kGap = 8;
constexpr float kLogo = 24, kAfterLogo = 18, kAfterSwitch = 14, kAroundMemory = 14;
constexpr float kNoQuantization = 1440, kNoCaptions = 1360;  // window widths at 100% below which these are left out

}  // namespace

/// What the bar shows; each step of the list shows a little less. What is left out is in menus: of the views in their
/// drop-down, of drafter and device in the big model's, the rest in the View menu.
struct TopBarStep {
  bool quantization, captions, word;
  float memory;  // width of the memory bar; 0: none
  bool segment, all_pickers;
  float readable;  // least width of a picker, unless its value is shorter
  bool tour = true, views = true, mode = true, logo = true;
};

namespace {

constexpr TopBarStep kSteps[] = {
    {true, true, true, 250, true, true, 240},
    {true, true, true, 150, true, true, 240},
    {true, false, true, 150, true, true, 240},
    {false, true, true, 250, true, true, 200},
    {false, true, true, 150, true, true, 200},
    {false, false, true, 250, true, true, 150},
    {false, false, true, 150, true, true, 120},
    {false, false, false, 110, true, true, 110},
    {false, false, false, 0, true, true, 100},
    {false, false, false, 0, false, true, 90},
    {false, false, false, 0, false, false, 90},
    {false, false, false, 0, false, false, 80, false},
    {false, false, false, 0, false, false, 80, false, false},
    {false, false, false, 0, false, false, 60, false, false, false},
    {false, false, false, 0, false, false, 44, false, false, false, false},
};
constexpr size_t kWithoutQuantization = 3, kWithoutCaptions = 5;  // number of steps
constexpr size_t kWholeNames = 10;  // before this step, names are shown whole if one of the steps allows it

std::string without_end(std::string text, const std::string& end) {
  if (!end.empty() && text.ends_with(" " + end)) text.resize(text.size() - end.size() - 1);
  return text;
}

/// Whether the values are those of a recording. The pages of comparisons measure with the loaded model on its device,
/// whatever recording is on show elsewhere.
bool shows_replay(const ViewModel& view) {
  return view.replaying() && view.shell.page == WindowPage::rounds;
}

// The values of the pickers: of the recording that is open, or of the loaded model.

std::string target_value(const ViewModel& view, bool replay, bool quantization) {
  if (replay) return view.replay.origin().target;
  if (view.model_state == ModelState::loading) return file_name(view.model_path);
  if (!view.model) return "none";
  const std::string title = model_title(*view.model);
  const std::string name = quantization ? title : without_end(title, view.model->quantization);
  return view.model_state == ModelState::released ? name + ", released" : name;
}

bool asks_drafter(const ViewModel& view) {
  return view.has_drafter() && (view.draft_sources & kFromDflash) != 0;
}

/// Where the guesses come from.
std::string drafter_value(const ViewModel& view, bool replay) {
  if (replay) {
    if (!view.replay.origin().drafter.empty()) return view.replay.origin().drafter;
    return view.rounds.log->statistics().has_text_drafts() ? "from the text" : "none";
  }
  if (!asks_drafter(view)) return view.model && (view.draft_sources & kFreeSources) != 0 ? "from the text" : "none";
  const std::string& name = view.model->drafter;
  return name.ends_with(".gguf") ? name.substr(0, name.size() - 5) : name;
}

std::string device_value(const ViewModel& view, bool replay) {
  if (replay) return view.replay.origin().device.empty() ? "not recorded" : view.replay.origin().device;
  if (view.model) return view.model->device;
  for (const DeviceChoice& d : view.devices)
    if (d.selector == view.device_selector && !view.device_selector.empty()) return d.name;
  for (const DeviceChoice& d : view.devices)
    if (d.preferred) return d.name;
  return "none";
}

/// The first line of a picker's tooltip while a recording is shown.
std::string replay_tooltip(const ViewModel& view) {
  const ReplayOrigin& origin = view.replay.origin();
  if (!origin.times.empty()) {
    return "Nothing was recorded there: the times are " + origin.times + ", the text and the guesses recorded" +
           (origin.recorded.empty() ? "" : ", " + origin.recorded);
  }
  return "Replayed: what " + file_name(view.rounds.trace_path) + " was recorded with" +
         (origin.recorded.empty() ? "" : ", " + origin.recorded);
}

std::string target_tooltip(const ViewModel& view) {
  if (shows_replay(view)) return replay_tooltip(view);
  if (!view.model) return "Choose a model  Ctrl+O";
  const ModelReady& model = *view.model;
  std::string words = model.file_name;
  for (const std::string* note : {&model.weights_note, &model.kernels_note}) words += note->empty() ? "" : "\n" + *note;
  if (view.model_state == ModelState::released) words += "\n" + released_words(view);
  if (view.served.settings.on) words += "\nServed: " + serving_words(view);
  return words;
}

/// How the loaded drafter guesses.
std::string drafting_words(const ModelReady& model) {
  const std::string ahead = ", up to " + std::to_string(model.block - 1) + " tokens ahead";
  if (model.drafted_by == kFromMtp) return "\nThe big model\u2019s head for further tokens, one after another" + ahead;
  if (model.drafted_by == kFromEagle) return "\nAn EAGLE-3 head, one token after another" + ahead;
  if (model.drafted_by == kFromAssistant)
    return "\nAn assistant that reads the big model\u2019s keys, one token after another" + ahead;
  if (model.drafted_by == kFromDraft) return "\nA smaller model, one token after another" + ahead;
  const std::string kind = model.drafter_kind.empty() ? "DFlash" : model.drafter_kind;
  if (kind == "DSpark" || kind == "DFlash2") return "\n" + kind + ", each token by the one before it" + ahead;
  return "\n" + kind + ", blocks of " + std::to_string(model.block);
}

std::string drafter_tooltip(const ViewModel& view) {
  if (shows_replay(view)) return replay_tooltip(view);
  if (!view.model) return "Chosen with the model";
  const bool text = (view.draft_sources & kFreeSources) != 0;
  std::string words = view.has_drafter() ? view.model->drafter : "No drafter is loaded";
  if (!view.has_drafter() && !view.model->drafter_note.empty()) words += "\n" + view.model->drafter_note;
  if (asks_drafter(view))
    words += drafting_words(*view.model);
  else if (view.has_drafter())
    words += "\nLoaded, but not asked";
  if (text) return words + "\nGuesses come from the text itself" + (asks_drafter(view) ? ", too" : "");
  return asks_drafter(view) ? words : words + "\nNothing guesses: every token is the big model\u2019s own";
}

std::string device_tooltip(const ViewModel& view, const std::string& device) {
  if (shows_replay(view)) return replay_tooltip(view) + "\n" + device;
  if (!view.model) return device;
  const std::string backend = backend_words(view.devices, view.model->backend);
  return device + ", " + view.model->driver + (backend.empty() ? "" : "\nRuns with " + backend);
}

/// What marks the values as those of a recording; times that were not recorded say so.
std::string replayed_words(const ViewModel& view) {
  std::string words = view.replay.origin().times;
  if (words.empty()) return "Replayed";
  if (words[0] >= 'a' && words[0] <= 'z') words[0] = static_cast<char>(words[0] - 'a' + 'A');
  return elided(Type::secondary, words, px(140));
}

float replayed_width(const ViewModel& view) {
  return text_size(Type::secondary, replayed_words(view)).x + px(16);
}

/// Draws a tag that marks the values of the pickers as those of a recording, not of the loaded model.
void draw_replayed(const ViewModel& view, ImVec2 at) {
  const Theme& t = colours();
  const float width = replayed_width(view), height = px(22);
  const ImVec2 a = {at.x, std::floor(at.y - height * 0.5f)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, {a.x + width, a.y + height}, t.bonus_bg, px(4));
  draw_text_middle(list, a.x + px(8), at.y, Type::secondary, t.bonus_text, replayed_words(view));
  ImGui::SetCursorScreenPos(a);
  ImGui::InvisibleButton("Replayed", {width, height});
  tooltip(replay_tooltip(view).c_str());
}

ButtonSpec view_button(bool word) {
  ButtonSpec spec{"View", Icon::panels};
  spec.show_label = word;
  spec.tooltip = "Panels, layout, scale, theme, motion, keys";
  return spec;
}

ButtonSpec tour_button() {
  ButtonSpec spec{"Tour", Icon::none};
  spec.tooltip = "What all this is, in seven steps";
  return spec;
}

/// Width of the controls at the right end. tour: with the tour and the theme; word: with "View" beside its icon.
float right_end_width(bool tour, bool word) {
  return button_size(view_button(word)).x + (tour ? button_size(tour_button()).x + px(4) + px(28) + px(4) : 0);
}

void draw_right_end(const ViewModel& view, CommandSink& sink, const std::vector<std::string>& panels, float right,
                    const TopBarStep& step) {
  const float y = ImGui::GetWindowPos().y + std::floor((px(kHeight) - px(28)) * 0.5f);
  ImGui::SetCursorScreenPos({right - right_end_width(step.tour, step.captions), y});
  if (step.tour) {
    if (button(tour_button())) sink.post(ShellCommand(ShowTour{}));
    ImGui::SameLine(0, px(4));
    ButtonSpec theme{"Theme", Icon::theme};
    theme.show_label = false;
    theme.tooltip = "Dark, light or projector  Ctrl+Shift+L";
    if (button(theme)) sink.post(SetTheme{next_theme(view.theme)});
    ImGui::SameLine(0, px(4));
  }
  if (button(view_button(step.captions))) ImGui::OpenPopup(kViewMenu);
  const bool modes = !step.mode && view.model && !shows_replay(view);
  draw_view_menu(view, sink, panels, {right, y + px(28) + px(6)}, modes);
}

}  // namespace

struct TopBarPicker {
  const char *id, *menu;
  std::string caption, value, tip;
  bool has_value = true;
  float width = 0;
};

struct TopBar::Fit {
  TopBarStep step;
  std::vector<TopBarPicker> pickers;
  float left = 0;      // of the switch of views, in the window
  float mode = 0;      // width of the mode control; 0 without a model
  float room = 0;      // for the pickers
  float wanted = 0;    // width at which the pickers show their values whole
  float readable = 0;  // least width of the pickers
};

/// Gives every picker the width it needs; if there is too little room, cuts the widest ones to the same width.
static void share(std::vector<TopBarPicker>& pickers, float room) {
  float low = 0, high = 0;
  for (const TopBarPicker& p : pickers) high = std::max(high, p.width);
  auto taken = [&](float most) {
    float sum = 0;
    for (const TopBarPicker& p : pickers) sum += std::min(p.width, most);
    return sum;
  };
  if (taken(high) <= room) return;
  for (int i = 0; i < 24; ++i) (taken((low + high) * 0.5f) <= room ? low : high) = (low + high) * 0.5f;
  for (TopBarPicker& p : pickers) p.width = std::floor(std::min(p.width, low));
}

/// As wide as the values of the recording and those of the loaded model, so that nothing moves between the views that
/// show the one and those that show the other.
static float steady_width(const std::string& caption, const std::string& value, const std::string& other) {
  return std::max(picker_width(caption, value), picker_width(caption, other));
}

static std::vector<TopBarPicker> pickers_of(const ViewModel& view, const TopBarStep& step) {
  const bool replay = shows_replay(view), other = view.replaying() ? !replay : replay;
  std::vector<TopBarPicker> pickers;
  const auto add = [&](TopBarPicker p, const std::string& elsewhere) {
    if (!step.captions) p.caption.clear();
    p.width = steady_width(p.caption, p.value, elsewhere);
    pickers.push_back(std::move(p));
  };
  add({"Model", kTargetMenu, "Big model", target_value(view, replay, step.quantization), target_tooltip(view),
       replay || view.model || view.model_state == ModelState::loading},
      target_value(view, other, step.quantization));
  if (!step.all_pickers) return pickers;
  add({"Drafter", kDrafterMenu, "Drafter", drafter_value(view, replay), drafter_tooltip(view),
       replay ? !view.replay.origin().drafter.empty() : view.model && view.draft_sources != 0},
      drafter_value(view, other));
  const std::string device = device_value(view, replay);
  add({"Device", kDeviceMenu, "Runs on", without_brackets(device), device_tooltip(view, device),
       replay || !view.devices.empty() || view.model},
      without_brackets(device_value(view, other)));
  return pickers;
}

static const char* budget_caption(const TopBarStep& step) {
  return step.captions ? "Guesses" : "";
}

/// The same in all views: what one of them leaves out, as controls of the loaded model while a recording is on show,
/// leaves its place free.
TopBar::Fit TopBar::fit_step(const ViewModel& view, float width, size_t index) const {
  Fit f;
  f.step = kSteps[index];
  f.pickers = pickers_of(view, f.step);
  if (view.model && f.step.mode)
    f.mode = f.step.segment ? mode_segment_width(budget_caption(f.step)) : mode_picker_width();
  if (!view.model || view.models.memory.budget == 0) f.step.memory = 0;
  f.left = px(kMargin);
  if (f.step.logo) f.left += px(kLogo) + px(kAfterLogo);
  if (f.step.word) f.left += px(kGap) + text_size(Type::title, "Canopy").x;
  f.room = width - px(kMargin) - f.left - layout_switch_width(f.step.views) - px(f.step.logo ? kAfterSwitch : kGap) -
           right_end_width(f.step.tour, f.step.captions);
  if (f.step.memory > 0) f.room -= px(f.step.memory) + px(kAroundMemory) * 2;
  if (f.mode > 0) f.room -= f.mode + px(kGap) * 2;
  if (view.replaying()) f.room -= replayed_width(view) + px(kGap);
  f.room -= px(kGap) * static_cast<float>(f.pickers.size());
  for (const TopBarPicker& p : f.pickers) {
    f.wanted += p.width;
    f.readable += std::min(p.width, px(f.step.readable));
  }
  share(f.pickers, std::max(f.room, px(44) * static_cast<float>(f.pickers.size())));
  return f;
}

/// The first step at which all names are shown whole; if none of the better steps allows it, the first at which the
/// names are readable.
TopBar::Fit TopBar::fit(const ViewModel& view, float width) const {
  const float at_100 = width / look().scale;
  const size_t first = at_100 < kNoCaptions ? kWithoutCaptions : at_100 < kNoQuantization ? kWithoutQuantization : 0;
  for (size_t i = first; i < kWholeNames; ++i)
    if (Fit f = fit_step(view, width, i); f.wanted <= f.room) return f;
  for (size_t i = first; i + 1 < std::size(kSteps); ++i)
    if (Fit f = fit_step(view, width, i); f.readable <= f.room) return f;
  return fit_step(view, width, std::size(kSteps) - 1);
}

void TopBar::draw(const ViewModel& view, CommandSink& sink) {
  const Fit f = fit(view, ImGui::GetWindowWidth());
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 origin = ImGui::GetWindowPos();
  const float middle = origin.y + px(kHeight) * 0.5f, top = std::floor(middle - px(kControl) * 0.5f);
  const float right = origin.x + ImGui::GetWindowWidth() - px(kMargin);
  if (f.step.logo) draw_logo(list, {origin.x + px(kMargin) + px(kLogo) * 0.5f, middle}, px(kLogo));
  if (f.step.word)
    draw_text_middle(list, origin.x + px(kMargin) + px(kLogo) + px(kGap), middle, Type::title, colours().text,
                     "Canopy");
  float x = std::floor(origin.x + f.left);
  ImGui::SetCursorScreenPos({x, top});
  if (f.step.views)
    layout_switch(view, sink);
  else
    layout_picker(view, sink, layout_switch_width(false));
  x = std::floor(x + layout_switch_width(f.step.views) + px(f.step.logo ? kAfterSwitch : kGap));
  ImGui::SetCursorScreenPos({x, top});
  draw_pickers(view, sink, f);
  for (const TopBarPicker& p : f.pickers) x += p.width + px(kGap);
  const bool replay = shows_replay(view);
  if (f.step.memory > 0) {
    ImGui::SetCursorScreenPos({x - px(kGap) + px(kAroundMemory), top});
    if (!replay) memory_bar(view, sink, px(f.step.memory));
    x += px(f.step.memory) + px(kAroundMemory) * 2 - px(kGap);
  } else if (!replay) {
    memory_bar(view, sink, 0);
  }
  if (replay) draw_replayed(view, {x, middle});
  if (f.mode > 0 && !replay) {
    ImGui::SetCursorScreenPos({right - right_end_width(f.step.tour, f.step.captions) - px(kGap) - f.mode, top});
    if (f.step.segment)
      mode_segment(view, sink, budget_caption(f.step));
    else
      mode_picker(view, sink, f.mode);
  }
  draw_right_end(view, sink, panels_, right, f.step);
}

void TopBar::draw_pickers(const ViewModel& view, CommandSink& sink, const Fit& f) {
  const float top = ImGui::GetCursorPosY();
  ImVec2 corner{};
  for (const TopBarPicker& p : f.pickers) {
    if (&p != f.pickers.data()) {
      ImGui::SameLine(0, px(kGap));
      ImGui::SetCursorPosY(top);
    }
    if (picker(p.id, p.caption, p.value, p.width, p.has_value)) ImGui::OpenPopup(p.menu);
    term_tooltip(p.id, p.tip);
    const ImVec2 below = {ImGui::GetItemRectMin().x, ImGui::GetItemRectMax().y + px(4)};
    if (p.menu == kTargetMenu) {
      corner = below;
      if (const char* next = target_menu_.draw(view, sink, below, !f.step.all_pickers)) ImGui::OpenPopup(next);
    }
    if (p.menu == kDrafterMenu) draw_drafter_menu(view, sink, below);
    if (p.menu == kDeviceMenu) draw_device_menu(view, sink, below);
  }
  if (f.step.all_pickers) return;
  if (take_press("Drafter")) ImGui::OpenPopup(kDrafterMenu);
  if (take_press("Device")) ImGui::OpenPopup(kDeviceMenu);
  draw_drafter_menu(view, sink, corner);
  draw_device_menu(view, sink, corner);
}

namespace {

struct Way {
  bool guesses;
  const char *words, *id, *tip;
};
constexpr Way kWays[] = {
    {true, "guess", "Guess", "Guesses in the next replies, as before  Ctrl+G\nThe text is the same"},
    {false, "plain", "Plain", "Writes the next replies without guesses  Ctrl+G\nThe text is the same"}};
constexpr float kWayPad = 9, kWayBorder = 2;

float way_width() {
  float words = 0;
  for (const Way& way : kWays) words = std::max(words, text_size(Type::secondary, way.words).x);
  return std::ceil(words) + px(kWayPad) * 2;
}

}  // namespace

float way_switch_width(const ViewModel& view, bool stacked) {
  if (!view.model || !view.own_chat()) return 0;
  return way_width() * (stacked ? 1.0f : 2.0f) + px(kWayBorder) * 2;
}

void draw_way_switch(const ViewModel& view, ImVec2 from, float height, bool stacked, std::string_view area,
                     CommandSink& sink) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float width = way_width(), border = px(kWayBorder);
  const ImVec2 a = {std::floor(from.x), std::floor(from.y)};
  const ImVec2 b = {a.x + way_switch_width(view, stacked), a.y + height * (stacked ? 2.0f : 1.0f) + border * 2};
  list->AddRectFilled(a, b, t.card, px(5));
  list->AddRect(a, b, t.line, px(5), std::max(1.0f, px(1)));
  ImVec2 at = {a.x + border, a.y + border};
  for (const Way& way : kWays) {
    const bool on = way.guesses == is_guessing(view);
    const ImVec2 to = {at.x + width, at.y + height};
    ImGui::SetCursorScreenPos(at);
    if (ImGui::InvisibleButton(way.id, {width, height}, ImGuiButtonFlags_EnableNav))
      sink.post(SetGuessing{way.guesses});
    focus_last_item(area);
    if (on)
      list->AddRectFilled(at, to, t.accent, px(4));
    else if (ImGui::IsItemHovered())
      list->AddRectFilled(at, to, mix(t.card, t.text, kHoverMix), px(4));
    draw_text_middle(list, at.x + (width - text_size(Type::secondary, way.words).x) * 0.5f, at.y + height * 0.5f,
                     Type::secondary, on ? t.on_accent : t.text2, way.words);
    tooltip(way.tip);
    at = stacked ? ImVec2(at.x, to.y) : ImVec2(to.x, at.y);
  }
}

namespace {

constexpr float kStatusHeight = 28;
constexpr float kStatusMargin = 14;
constexpr float kStatusGap = 24;
constexpr float kLeastStatus = 200;  // for the engine's state, before the switch has a place

/// Draws texts from left to right and leaves out those that do not fit whole.
class Row {
 public:
  Row(float left, float right, float middle) : x_(left), right_(right), middle_(middle) {}

  float room() const { return right_ - x_; }
  float x() const { return x_; }
  void advance(float width) { x_ += width; }

  void text(Type type, Colour colour, const std::string& words) {
    draw_text_middle(ImGui::GetWindowDrawList(), x_, middle_, type, colour, words);
    x_ += text_size(type, words).x;
  }
  void dot(float x, Colour colour) const { ImGui::GetWindowDrawList()->AddCircleFilled({x, middle_}, px(4), colour); }
  /// Parts of one statement, drawn only if all of them fit.
  struct Piece {
    Type type;
    Colour colour;
    std::string words;
  };
  void statement(const std::vector<Piece>& pieces) {
    float need = px(kStatusGap) - px(6);
    for (const Piece& piece : pieces) need += text_size(piece.type, piece.words).x + px(6);
    if (need > room()) return;
    x_ += px(kStatusGap) - px(6);
    for (const Piece& piece : pieces) {
      x_ += px(6);
      text(piece.type, piece.colour, piece.words);
    }
  }

 private:
  float x_, right_, middle_;
};

Colour state_colour(const ViewModel& view) {
  const Theme& t = colours();
  if (view.busy() || view.model_state == ModelState::ready) return t.accent;
  return view.model_state == ModelState::loading ? t.bonus : t.unreached;
}

/// Draws the progress bar and the Cancel button of that work.
void draw_progress(const ViewModel& view, CommandSink& sink, Row& row, ImVec2 origin) {
  const std::optional<Work> work = work_under_way(view);
  if (!work) return;
  const Theme& t = colours();
  const Progress& progress = work->progress;
  // Text that changes its width comes after the button, so that the button does not move.
  const float bar = px(120);
  if (row.room() > bar + px(kStatusGap) + px(70)) {
    row.advance(px(16));
    if (progress.total)  // without a total no bar: an empty one would look stuck
      draw_bar(ImGui::GetWindowDrawList(), {row.x(), origin.y + px(11)}, {bar, px(6)}, progress.fraction(), t.accent,
               t.line);
    row.advance(bar);
  }
  ButtonSpec cancel{"Cancel", Icon::none, ButtonKind::bare};
  cancel.height = 22;
  cancel.type = Type::secondary;
  row.advance(px(6));
  ImGui::SetCursorScreenPos({std::floor(row.x()), origin.y + px(3)});
  if (button(cancel)) sink.post(work->cancel);
  row.advance(button_size(cancel).x);
  std::vector<Row::Piece> pieces;
  if (!progress.stage.empty()) pieces.push_back({Type::secondary, t.text3, progress.stage});
  if (progress.total) pieces.push_back({Type::mono, t.text2, progress_figures(progress)});
  if (!pieces.empty()) row.statement(pieces);
}

void context_tooltip(const ModelReady& model, float x, float y, float width) {
  ImGui::SetCursorScreenPos({x, y});
  ImGui::Dummy({std::max(px(1), width), px(kStatusHeight)});
  tooltip(("Positions that the conversation fills. The cache keeps them as " + model.kv_type +
           "; the model was trained for " + grouped(model.model_context))
              .c_str());
}

std::string speed(const ViewModel& view) {
  const Message* reply = view.last_reply();
  return reply && reply->tokens_per_second > 0 ? app::speed(reply->tokens_per_second) : "";
}

/// How many rounds the shown one is behind the newest.
uint64_t rounds_behind(const RoundsState& rounds) {
  const size_t count = rounds.log->rounds();
  return rounds.playback.state == PlayState::following || count == 0 ? 0 : count - 1 - rounds.playback.shown;
}

void draw_rounds(const ViewModel& view, Row& row) {
  const Theme& t = colours();
  if (!view.rounds.trace_path.empty()) {
    row.statement(
        {{Type::secondary, t.text3, "Replaying"}, {Type::secondary, t.text2, file_name(view.rounds.trace_path)}});
    const std::string& recorded = view.replay.origin().recorded;
    if (!recorded.empty()) row.statement({{Type::secondary, t.text3, "recorded"}, {Type::mono, t.text2, recorded}});
  } else if (view.rounds.log->rounds() > 0) {
    const uint64_t behind = rounds_behind(view.rounds);
    row.statement({{Type::secondary, t.text3, "View"},
                   {Type::mono, t.text2, grouped(behind)},
                   {Type::secondary, t.text3, behind == 1 ? "pass behind" : "passes behind"}});
  }
}

void draw_recording(const ViewModel& view, Row& row) {
  const Theme& t = colours();
  const Recording& recording = view.recording.told;
  if (!recording.active) return;
  const float before = row.x();
  row.statement({{Type::secondary, t.text2, "     Recording " + recording.file_name},
                 {Type::mono, t.text3, grouped(recording.rounds)},
                 {Type::secondary, t.text3, recording.rounds == 1 ? "pass" : "passes"}});
  if (row.x() > before) row.dot(before + px(kStatusGap) + px(4), t.rejected);
}

/// The address that the model is served at, how much is asked of it, and the speed of all replies together.
void draw_serving(const ViewModel& view, Row& row) {
  const Theme& t = colours();
  const ServedState& served = view.served;
  if (!served.told.active) return;
  row.statement({{Type::secondary, t.text3, "Serving"},
                 {Type::mono, t.text2, served_address(served)},
                 {Type::secondary, t.text3, counted(served.under_way(), "request", "requests")}});
  const double tokens = served_speed(served, view.chat.now_ms);
  if (tokens > 0)
    row.statement({{Type::mono, t.text2, app::speed(tokens)}, {Type::secondary, t.text3, "tok/s served"}});
}

void draw_context(const ViewModel& view, Row& row, float top) {
  const Theme& t = colours();
  const float x = row.x();
  if (view.model->context > 0) {  // else of a server that does not tell
    const bool nearly_full = view.context_used > view.model->context / 10 * 9;
    row.statement({{Type::secondary, nearly_full ? t.bonus_text : t.text3, nearly_full ? "KV nearly full" : "KV"},
                   {Type::mono, t.text2, grouped(view.context_used) + " of " + grouped(view.model->context)}});
    if (row.x() > x) context_tooltip(*view.model, x, top, row.x() - x);
  }
  const std::string figures = speed(view);
  if (!figures.empty()) row.statement({{Type::mono, t.text2, figures}, {Type::secondary, t.text3, "tok/s"}});
}

/// The engine's state and its device, as text.
std::string engine_words(const ViewModel& view) {
  std::string words = state_words(view);
  if (!view.model || view.model_state != ModelState::ready || view.reply_state == ReplyState::reading_prompt)
    return words;
  words += " on " + view.model->device;
  if (!view.model->driver.empty()) words += ", " + view.model->driver;
  // A GPU that several backends list: which of them it is, where its driver does not say.
  const bool both = std::ranges::any_of(view.devices, [](const DeviceChoice& d) { return !d.same_gpu.empty(); });
  const std::string backend = backend_words(view.devices, view.model->backend);
  return both && words.find(backend) == std::string::npos ? words + ", " + backend : words;
}

}  // namespace

void StatusBar::draw(const ViewModel& view, CommandSink& sink) {
  const Theme& t = colours();
  const ImVec2 origin = ImGui::GetWindowPos();
  const float middle = origin.y + px(kStatusHeight) * 0.5f, width = ImGui::GetWindowWidth();
  ButtonSpec help{"F1 help", Icon::none, ButtonKind::bare}, commands{"Ctrl+K commands", Icon::none, ButtonKind::bare};
  for (ButtonSpec* each : {&help, &commands}) {
    each->height = 22;
    each->type = Type::secondary;
  }
  const float help_width = button_size(help).x, commands_width = button_size(commands).x;
  // A narrow window shows only one of the two buttons, so that the engine's state has room.
  const bool both = width > px(560);
  const float keys_width = help_width + (both ? commands_width : 0);
  float right = origin.x + width - px(kStatusMargin) - keys_width;
  const float way = view.shell.page == WindowPage::rounds ? way_switch_width(view, false) : 0;
  if (way > 0 && width > way + keys_width + px(kLeastStatus)) {
    right -= way;
    draw_way_switch(view, {right, origin.y + px(2)}, px(20), false, name(), sink);
    right -= px(kStatusMargin);
  }
  Row row(origin.x + px(kStatusMargin), right, middle);
  row.dot(row.x() + px(4), state_colour(view));
  row.advance(px(14));
  row.text(Type::secondary, t.text2, elided(Type::secondary, engine_words(view), row.room() - px(90)));
  draw_progress(view, sink, row, origin);
  // A recording's rounds, and a client's, have nothing to do with the own chat's cache and speed: these figures stay
  // out meanwhile. A released model has no cache either.
  if (view.model && view.own_chat() && view.model_state != ModelState::released) draw_context(view, row, origin.y);
  draw_serving(view, row);
  draw_rounds(view, row);
  draw_recording(view, row);
  float x = origin.x + width - px(kStatusMargin) - keys_width + px(10);
  auto key = [&](const ButtonSpec& spec) {
    ImGui::SetCursorScreenPos({x, origin.y + px(3)});
    x += button_size(spec).x;
    return button(spec);
  };
  if (key(help)) sink.post(ShellCommand(ShowRegions{!view.shell.regions_shown}));
  if (both && key(commands)) sink.post(ShellCommand(ShowPalette{true}));
}

}  // namespace canopy::app
