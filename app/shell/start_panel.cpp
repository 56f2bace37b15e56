#include "app/shell/start_panel.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "app/shell/models_page.h"
#include "app/state/models.h"
#include "app/state/view_model.h"
#include "app/ui/look.h"
#include "app/ui/shapes.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

// The drawings on the cards of the start page.

constexpr float kPictureHeight = 196;

enum class Tip { root, accepted, rejected, unreached, bonus };

/// A node of the drawn tree: column, row, and parent.
struct TreeSpot {
  float column, row;
  int parent;
  Tip tip;
};
constexpr TreeSpot kTree[] = {
    {0, 0, -1, Tip::root},       {1, 0, 0, Tip::accepted},    {2, 0, 1, Tip::accepted},    {3, 0, 2, Tip::accepted},
    {4, 0, 3, Tip::accepted},    {5, 0, 4, Tip::accepted},    {6, 0, 5, Tip::accepted},    {7, 0, 6, Tip::bonus},
    {1, 2, 0, Tip::rejected},    {2, 2, 8, Tip::unreached},   {3, -2, 2, Tip::rejected},   {4, -2, 10, Tip::unreached},
    {5, -2, 11, Tip::unreached}, {6, -2, 12, Tip::unreached}, {7, -2, 13, Tip::unreached}, {8, -2, 14, Tip::unreached},
    {9, -2, 15, Tip::unreached}, {3, 1, 2, Tip::rejected},    {4, 1, 17, Tip::unreached},  {5, 1, 18, Tip::unreached},
    {6, 1, 19, Tip::unreached},  {7, 1, 20, Tip::unreached},  {7, -1, 6, Tip::rejected},   {8, -1, 22, Tip::unreached},
    {9, -1, 23, Tip::unreached},
};

Colour colour_of(Tip tip) {
  const Theme& t = colours();
  switch (tip) {
    case Tip::root: return t.text;
    case Tip::accepted: return t.accepted;
    case Tip::rejected: return t.rejected;
    case Tip::unreached: return t.unreached;
    case Tip::bonus: return t.bonus;
  }
  return t.text;
}

void draw_edge(ImDrawList* list, ImVec2 from, ImVec2 to, Tip tip) {
  const float half = (to.x - from.x) * 0.5f;
  const ImVec2 b = {from.x + half, from.y}, c = {to.x - half, to.y};
  const Colour colour = colour_of(tip);
  if (tip == Tip::rejected)
    add_dashed_bezier(list, from, b, c, to, {px(4), px(3)}, colour, px(1.4f));
  else if (tip == Tip::bonus)
    add_dashed_bezier(list, from, b, c, to, {px(2), px(2.4f)}, colour, px(2));
  else
    list->AddBezierCubic(from, b, c, to, colour, px(tip == Tip::accepted ? 4.0f : 1.4f));
}

void draw_spot(ImDrawList* list, ImVec2 at, Tip tip) {
  const Theme& t = colours();
  switch (tip) {
    case Tip::root: list->AddCircleFilled(at, px(7), t.text); break;
    case Tip::accepted: draw_check_disc(list, at, px(7), t.accepted, t.on_state); break;
    case Tip::rejected:
      list->AddCircleFilled(at, px(6), t.canvas);
      draw_cross(list, at, px(4), t.rejected, px(2.2f));
      break;
    case Tip::unreached: list->AddCircleFilled(at, px(3), t.unreached); break;
    case Tip::bonus:
      list->AddCircleFilled(at, px(9), t.canvas);
      draw_star(list, at, px(10), t.bonus);
      break;
  }
}

void centred(float x, float y, Type type, Colour colour, std::string_view words) {
  draw_text(ImGui::GetWindowDrawList(), {x - text_size(type, words).x * 0.5f, y}, type, colour, words);
}

/// Draws a small tree after a round: accepted nodes, rejected ones and the bonus token.
void draw_tree_picture(ImVec2 a, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float left = a.x + std::floor((width - px(34) * 9) * 0.5f), middle = a.y + px(98);
  auto at = [&](const TreeSpot& s) { return ImVec2(left + px(34) * s.column, middle + px(21) * s.row); };
  for (const Tip drawn : {Tip::unreached, Tip::rejected, Tip::bonus, Tip::accepted})
    for (const TreeSpot& s : kTree)
      if (s.tip == drawn) draw_edge(list, at(kTree[s.parent]), at(s), s.tip);
  for (const TreeSpot& s : kTree) draw_spot(list, at(s), s.tip);
}

/// Draws the layers of a target that a drafter reads, in a dashed outline; of a model without a drafter, its layers.
void draw_models_picture(ImVec2 a, float width, bool with_drafter) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float inset = px(24), left = a.x + std::floor((width - px(with_drafter ? 252.0f : 116.0f)) * 0.5f);
  add_dashed_rect(list, {a.x + inset, a.y + px(22)}, {a.x + width - inset, a.y + px(174)}, px(8), {px(6), px(5)}, t.ctl,
                  px(1.5f));
  constexpr int kLayers = 9, kAuxLayers = 4;
  const float drafter = left + px(178);
  for (int i = 0; i < kLayers; ++i) {
    const float y = a.y + px(38) + px(12) * static_cast<float>(i);
    list->AddRectFilled({left, y}, {left + px(116), y + px(8.5f)}, i % 2 ? t.verify : t.raised, px(2));
  }
  centred(left + px(58), a.y + px(150), Type::secondary, t.text2, "big model");
  if (!with_drafter) return;
  for (int i = 0; i < kAuxLayers; ++i) {
    const float y = a.y + px(60) + px(16) * static_cast<float>(i);
    list->AddRectFilled({drafter, y}, {drafter + px(74), y + px(11)}, t.draft, px(2));
    const ImVec2 from = {left + px(116), a.y + px(42.3f) + px(12) * static_cast<float>(2 * i + 1)};
    const ImVec2 to = {drafter, y + px(5.5f)};
    list->AddBezierCubic(from, {from.x + px(30), from.y}, {to.x - px(30), to.y}, to, t.verify, px(1.6f));
  }
  centred(drafter + px(37), a.y + px(130), Type::secondary, t.text2, "drafter");
}

constexpr float kColumn = 1248;
constexpr float kMostCard = 500;
constexpr float kCardGap = 24;
constexpr float kCardPadding = 24;
constexpr float kMinCard = 300;
constexpr float kCardHeight = 414;
constexpr const char* kHeadline = "See every guess a model makes";
constexpr const char* kLead =
    "Canopy writes several tokens per pass and shows which ones were guessed, accepted and rejected.";
constexpr float kDevicePitch = 32;

void draw_card_back(ImVec2 a, ImVec2 size, Colour border) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 b = {a.x + size.x, a.y + size.y};
  list->AddRectFilled(a, b, t.panel, px(8));
  list->AddRectFilled(a, {b.x, a.y + px(kPictureHeight)}, t.canvas, px(8), ImDrawFlags_RoundTop);
  list->AddLine({a.x, a.y + px(kPictureHeight)}, {b.x, a.y + px(kPictureHeight)}, t.line, px(1));
  list->AddRect(a, b, border, px(8), px(1));
}

struct CardWords {
  const char* title;
  const char* body;
  std::string note;
  Icon note_icon;
  bool first = false;
};

/// Draws the text of a card; returns the place for its buttons.
ImVec2 draw_words(ImVec2 a, float width, const CardWords& words) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float x = a.x + px(kCardPadding), room = width - px(kCardPadding) * 2;
  float y = a.y + px(kPictureHeight) + px(20);
  draw_text(list, {x, y}, Type::card_title, t.text, words.title);
  y += px(34);
  TextBlock body;
  body.layout(words.body, Type::chat, room);
  body.draw(list, {x, y}, words.body, Type::chat, t.text2, px(21));
  y += std::max(px(42), body.height(px(21))) + px(14);
  draw_icon(list, words.note_icon, {x + px(7), y + px(8)}, px(14), words.first ? t.accent_text : t.text3);
  draw_text_middle(list, x + px(22), y + px(8), Type::secondary, t.text2,
                   elided(Type::secondary, words.note, room - px(22)));
  return {x, y + px(36)};
}

void draw_load_progress(const ViewModel& view, CommandSink& sink, ImVec2 a, float width) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 b = {a.x + width, a.y + px(116)};
  list->AddRectFilled(a, b, t.panel, px(8));
  list->AddRect(a, b, t.line, px(8), px(1));
  const float x = a.x + px(kCardPadding), room = width - px(kCardPadding) * 2;
  const std::string figures = progress_figures(view.loading);
  const float figures_width = text_size(Type::mono, figures).x;
  draw_text(list, {x, a.y + px(20)}, Type::chat_semibold, t.text,
            elided(Type::chat_semibold, "Loading " + file_name(view.model_path), room));
  draw_text(list, {x, a.y + px(44)}, Type::secondary, t.text2,
            elided(Type::secondary, view.loading.stage, room - figures_width - px(12)));
  draw_text(list, {x + room - figures_width, a.y + px(44)}, Type::mono, t.text2, figures);
  const ButtonSpec cancel{"Cancel", Icon::none, ButtonKind::line};
  const float buttons = button_size(cancel).x;
  if (view.loading.total)  // without a total no bar: an empty one would look stuck
    draw_bar(list, {x, a.y + px(80)}, {room - buttons - px(16), px(8)}, view.loading.fraction(), t.accent, t.raised);
  ImGui::SetCursorScreenPos({x + room - buttons, a.y + px(70)});
  if (button(cancel)) sink.post(CancelLoading{});
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({width, b.y - a.y});
}

/// Draws the "in use" mark at the end of a device's row.
void draw_in_use(ImVec2 right_middle) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float width = text_size(Type::caption, "in use").x + px(12), half = px(11);
  const ImVec2 a = {right_middle.x - width, right_middle.y - half};
  list->AddRectFilled(a, {right_middle.x, right_middle.y + half}, t.accent_bg, px(4));
  draw_text_middle(list, a.x + px(6), right_middle.y, Type::caption, t.accent_text, "in use");
}

/// Where the columns begin, as shares of the width; in a narrow list the later ones are joined.
struct DeviceColumns {
  float memory, driver, test;
};
constexpr DeviceColumns kColumns = {0.30f, 0.43f, 0.635f};
constexpr float kWideList = 860;

void draw_device_sign(const DeviceChoice& device, const DeviceTest* test, bool in_use, ImVec2 centre) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (!device.usable)
    draw_cross(list, centre, px(4), t.rejected, px(2));
  else if (test && !test->passed)
    draw_triangle_sign(list, centre, px(14), t.bonus, t.panel);
  else if (in_use)
    draw_check_disc(list, centre, px(7), t.accent, t.on_accent);
  else
    list->AddCircleFilled(centre, px(3), t.unreached);
}

/// Draws the facts about a device in columns, from x to right.
void draw_device_facts(const ModelsState& models, const DeviceChoice& device, float x, float right, float middle,
                       float width) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto cell = [&](float from, float to, Type type, Colour colour, const std::string& words) {
    draw_text_middle(list, from, middle, type, colour, elided(type, words, to - from - px(12)));
  };
  const Colour name = device.usable ? t.text : t.text3;
  if (width < px(kWideList)) {
    const float about = x + std::floor((right - x) * 0.42f);
    cell(x + px(26), about, Type::base_medium, name, device.name);
    cell(about, right, Type::base, t.text2, device.usable ? device_words(device) : device.reason);
    return;
  }
  const auto at = [&](float share) { return std::floor(x + width * share); };
  cell(x + px(26), at(kColumns.memory), Type::base_medium, name, device.name);
  if (!device.usable) return cell(at(kColumns.memory), right, Type::base, t.text2, device.reason);
  cell(at(kColumns.memory), at(kColumns.driver), Type::mono, t.text2, memory_words(device));
  cell(at(kColumns.driver), at(kColumns.test), Type::base, t.text2, device.words);
  cell(at(kColumns.test), right, Type::base, t.text2, self_test_words(models, device));
}

void draw_device_row(const ModelsState& models, const DeviceChoice& device, bool in_use, CommandSink& sink, ImVec2 a,
                     float width) {
  const float middle = a.y + px(kDevicePitch) * 0.5f;
  draw_device_sign(device, test_of(models, device), in_use, {a.x + px(8), middle});
  ButtonSpec use{"Use", Icon::none, ButtonKind::line};
  use.height = 24;
  use.type = Type::secondary;
  const float end = std::max(button_size(use).x, text_size(Type::caption, "in use").x + px(12));
  const float right = a.x + width - (device.usable ? end + px(4) : 0);
  draw_device_facts(models, device, a.x, right, middle, width);
  ImGui::SetCursorScreenPos(a);
  ImGui::InvisibleButton("About device", {std::max(1.0f, right - a.x - px(4)), px(kDevicePitch)});
  tooltip(device_details(models, device).c_str());
  if (in_use) draw_in_use({a.x + width, middle});
  if (in_use || !device.usable) return;
  ImGui::SetCursorScreenPos({a.x + width - button_size(use).x, middle - px(12)});
  if (button(use)) sink.post(ChooseDevice{device.selector});
}

/// Index of the device that a load would use: the chosen one, or the one that is taken by itself.
size_t device_in_use(const ViewModel& view) {
  size_t preferred = view.devices.size();
  for (size_t i = 0; i < view.devices.size(); ++i) {
    if (!view.device_selector.empty() && view.devices[i].selector == view.device_selector) return i;
    if (view.devices[i].preferred) preferred = i;
  }
  return preferred;
}

void draw_devices(const ViewModel& view, CommandSink& sink, ImVec2 a, float width) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float rows = static_cast<float>(std::max<size_t>(1, view.devices.size()));
  const ImVec2 b = {a.x + width, a.y + px(16 + 20 + 10 + 12) + px(kDevicePitch) * rows};
  list->AddRectFilled(a, b, t.panel, px(8));
  list->AddRect(a, b, t.line, px(8), px(1));
  const float x = a.x + px(kCardPadding), room = width - px(kCardPadding) * 2;
  draw_text(list, {x, a.y + px(16)}, Type::chat_semibold, t.text, "Devices on this computer");
  const std::string_view promise = "Nothing leaves this computer";
  if (room > px(420))
    draw_text(list, {x + room - text_size(Type::secondary, promise).x, a.y + px(18)}, Type::secondary, t.text3,
              promise);
  float y = a.y + px(16 + 20 + 10);
  if (view.devices.empty())
    draw_text_middle(list, x, y + px(kDevicePitch) * 0.5f, Type::base, t.text2, "No device was found");
  const size_t in_use = device_in_use(view);
  for (size_t i = 0; i < view.devices.size(); ++i, y += px(kDevicePitch)) {
    ImGui::PushID(static_cast<int>(i));
    draw_device_row(view.models, view.devices[i], i == in_use, sink, {x, y}, room);
    ImGui::PopID();
  }
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({width, b.y - a.y});
}

}  // namespace

bool StartPanel::wanted(const ViewModel& view) {
  return (!view.model || view.shell.welcome) && view.messages.empty() && view.own_chat() &&
         view.chat.attachments.empty() && view.chat.attach_problem.empty();
}

void StartPanel::draw(const ViewModel& view, CommandSink& sink) {
  // Who begins to write is chatting.
  if (view.model && take_typed_ahead()) sink.post(ShellCommand(LeaveStart{}));
  const Theme& t = colours();
  ImGui::PushStyleColor(ImGuiCol_ChildBg, t.back);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0);
  ImGui::SetCursorPos({0, 0});
  ImGui::BeginChild("Start page", ImGui::GetWindowSize(), ImGuiChildFlags_NavFlattened);
  const float room = ImGui::GetContentRegionAvail().x;
  const float width = std::floor(std::min(px(kColumn), room - px(32)));
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float left = std::floor(origin.x + (room - width) * 0.5f), centre = origin.x + room * 0.5f;
  const float y = origin.y + std::clamp((ImGui::GetWindowHeight() - px(774)) * 0.5f, px(16), px(76));
  const Type headline = text_size(Type::headline, kHeadline).x <= width ? Type::headline : Type::card_title;
  centred(centre, y, headline, t.text, elided(headline, kHeadline, width));
  centred(centre, y + px(52), Type::lead, t.text2, elided(Type::lead, kLead, width));
  ImGui::SetCursorScreenPos({left, y + px(128)});
  ImGui::BeginGroup();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(8), px(28)});
  draw_error_cards(view, sink, width);
  if (view.model_state == ModelState::loading) draw_load_progress(view, sink, ImGui::GetCursorScreenPos(), width);
  draw_cards(view, sink, width);
  if (view.shell.welcome && view.default_model.empty() && !view.model) draw_first_models(view, sink, width);
  draw_devices(view, sink, ImGui::GetCursorScreenPos(), width);
  ImGui::Dummy({width, px(8)});
  ImGui::PopStyleVar();
  ImGui::EndGroup();
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
}

/// Side by side if there is room, else below each other.
void StartPanel::draw_cards(const ViewModel& view, CommandSink& sink, float width) {
  const bool row = width >= px(kMinCard) * 2 + px(kCardGap);
  const float card = row ? std::floor(std::min(px(kMostCard), (width - px(kCardGap)) / 2)) : width;
  const ImVec2 size = {card, px(kCardHeight)};
  const ImVec2 step = row ? ImVec2(size.x + px(kCardGap), 0) : ImVec2(0, size.y + px(kCardGap));
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const float inset = row ? std::floor((width - card * 2 - px(kCardGap)) * 0.5f) : 0;
  auto at = [&](float i) { return ImVec2(a.x + inset + step.x * i, a.y + step.y * i); };
  draw_demo_card(sink, at(0), size);
  if (view.model)
    draw_chat_card(view, sink, at(1), size);
  else
    draw_open_card(view, sink, at(1), size);
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({width, at(1).y + size.y - a.y});
}

void StartPanel::draw_demo_card(CommandSink& sink, ImVec2 a, ImVec2 size) {
  draw_card_back(a, size, colours().accent);
  draw_tree_picture(a, size.x);
  ImGui::SetCursorScreenPos(
      draw_words(a, size.x,
                 {"Watch the demo", "Replay a recorded chat at any speed, pause on a pass and step through its phases.",
                  "No GPU and no model needed", Icon::check, true}));
  ButtonSpec watch{"Watch demo", Icon::play, ButtonKind::primary};
  watch.height = 38;
  watch.type = Type::chat_semibold;
  watch.tooltip = "Watch the demo  Ctrl+D";
  if (button(watch)) sink.post(RoundsCommand(WatchDemo{}));
}

/// Takes the place of the card that opens a model once one is there.
void StartPanel::draw_chat_card(const ViewModel& view, CommandSink& sink, ImVec2 a, ImVec2 size) {
  draw_card_back(a, size, colours().line);
  draw_models_picture(a, size.x, view.has_drafter());
  const bool released = view.model_state == ModelState::released;
  const std::string note = model_title(*view.model) + (released ? " is released until you write" : " is ready");
  ImGui::SetCursorScreenPos(draw_words(
      a, size.x,
      {"Ask your own model",
       view.has_drafter() ? "Write a message and watch how the drafter guesses and the model checks, pass by pass."
                          : "Write a message and watch how guesses from the text itself are checked, pass by pass.",
       note, Icon::check}));
  ButtonSpec chat{"Start chatting", Icon::none, ButtonKind::line};
  chat.height = 38;
  chat.type = Type::chat;
  if (button(chat)) sink.post(ShellCommand(LeaveStart{}));
}

void StartPanel::draw_open_card(const ViewModel& view, CommandSink& sink, ImVec2 a, ImVec2 size) {
  draw_card_back(a, size, colours().line);
  draw_models_picture(a, size.x, true);
  const ImVec2 at =
      draw_words(a, size.x,
                 {"Open a model",
                  "Choose a GGUF file or a Hugging Face folder, or drop it here. Canopy looks for a matching drafter.",
                  "About 4 GB for a 4B model with drafter", Icon::folder});
  ImGui::SetCursorScreenPos(at);
  ButtonSpec open{"Open model", Icon::folder, ButtonKind::line};
  open.height = 38;
  open.type = Type::chat;
  open.tooltip = "Open model  Ctrl+O";
  if (button(open)) sink.post(BrowseModel{});
  if (!view.default_model.empty()) {
    ButtonSpec use{"Use SmolLM2 135M"};
    use.height = 38;
    use.type = Type::chat;
    use.tooltip = "A small chat model with its drafter, which came with the set-up; it runs on any device";
    if (at.x + button_size(open).x + button_size(use).x + px(8) <= a.x + size.x - px(8)) {
      ImGui::SameLine(0, px(8));
    } else {
      ImGui::SetCursorScreenPos({at.x, at.y - px(36)});  // covers the note, which says less
    }
    if (button(use)) sink.post(OpenModel{view.default_model});
  }
}

}  // namespace canopy::app
