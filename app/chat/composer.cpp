#include "app/chat/composer.h"

#include <imgui_internal.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <utility>
#include <vector>

#include "app/platform/text_order.h"
#include "app/state/chat_update.h"
#include "app/ui/look.h"
#include "app/ui/widgets.h"
#include "engine/base/text.h"

namespace canopy::app {
namespace {

constexpr float kFileLine = 24, kFileIcon = 20;
constexpr float kReadingHead = 16, kReadingLine = 22;
constexpr float kChip = 26, kChipGap = 6, kChipClose = 24, kProblemLine = 18;

std::string chip_words(const ViewModel& view, const Attachment& attachment) {
  if (attachment.tokens > 0) return attached_words(attachment);
  const bool counts = attachment.id != 0 && view.model_state == ModelState::ready;
  return attachment.name + (counts ? ", counting" : "");
}

float chip_width(const ViewModel& view, const Attachment& attachment, float room) {
  return std::min(room, text_size(Type::secondary, chip_words(view, attachment)).x + px(kFileIcon + 10 + kChipClose));
}

/// Calls f(index, upper left corner, width) for each chip, in rows. Returns the height of all in pixels.
template <class F>
float lay_out_chips(const ViewModel& view, ImVec2 at, float width, const F& f) {
  float x = at.x, y = at.y;
  for (size_t i = 0; i < view.chat.attachments.size(); ++i) {
    const float chip = chip_width(view, view.chat.attachments[i], width);
    if (x > at.x && x + chip > at.x + width) x = at.x, y += px(kChip + kChipGap);
    f(i, ImVec2{x, y}, chip);
    x += chip + px(kChipGap);
  }
  return view.chat.attachments.empty() ? 0 : y - at.y + px(kChip + kChipGap);
}

TextBlock problem_block(const std::string& problem, float width) {
  TextBlock block;
  block.layout(problem, Type::secondary, width - px(24 + kChipClose));
  return block;
}

}  // namespace

std::string attached_words(const Attachment& attachment) {
  return attachment.tokens == 0 ? attachment.name
                                : attachment.name + ", " + counted(attachment.tokens, "token", "tokens");
}

float attached_height(const Message& message) {
  return px(kFileLine) * static_cast<float>(message.attachments.size());
}

float attached_width(const Message& message, float room) {
  float widest = 0;
  for (const Attachment& each : message.attachments)
    widest = std::max(widest, text_size(Type::secondary, attached_words(each)).x + px(kFileIcon));
  return std::min(room, widest);
}

void draw_attached(const Message& message, ImVec2 at, float room) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (const Attachment& each : message.attachments) {
    draw_icon(list, Icon::clip, {at.x + px(7), at.y + px(10)}, px(14), t.text2);
    draw_text_middle(list, at.x + px(kFileIcon), at.y + px(10), Type::secondary, t.text2,
                     elided(Type::secondary, attached_words(each), room - px(kFileIcon)));
    at.y += px(kFileLine);
  }
}

float chips_height(const ViewModel& view, float width, const std::string& problem) {
  const float chips = lay_out_chips(view, {0, 0}, width, [](size_t, ImVec2, float) {});
  if (problem.empty()) return chips;
  return chips + problem_block(problem, width).height(px(kProblemLine)) + px(kChipGap);
}

void draw_chips(const ViewModel& view, CommandSink& sink, ImVec2 at, float width, const std::string& problem) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float chips = lay_out_chips(view, at, width, [&](size_t i, ImVec2 a, float chip) {
    const Attachment& file = view.chat.attachments[i];
    list->AddRectFilled(a, {a.x + chip, a.y + px(kChip)}, t.raised, px(5));
    draw_icon(list, Icon::clip, {a.x + px(13), a.y + px(kChip * 0.5f)}, px(14), t.text2);
    draw_text_middle(list, a.x + px(kFileIcon + 4), a.y + px(kChip * 0.5f), Type::secondary, t.text,
                     elided(Type::secondary, chip_words(view, file), chip - px(kFileIcon + 6 + kChipClose)));
    ImGui::PushID(static_cast<int>(i));
    ImGui::SetCursorScreenPos({a.x + chip - px(kChipClose), a.y + px(1)});
    ButtonSpec remove{"Remove file", Icon::close};
    remove.show_label = false;
    remove.height = 24;
    remove.tooltip = "Do not send this file";
    if (button(remove)) sink.post(ChatCommand(RemoveAttachment{i}));
    ImGui::PopID();
  });
  if (problem.empty()) return;
  const float y = at.y + chips;
  draw_cross(list, {at.x + px(8), y + px(kProblemLine * 0.5f)}, px(4), t.rejected, px(2));
  problem_block(problem, width).draw(list, {at.x + px(22), y}, problem, Type::secondary, t.text2, px(kProblemLine));
  if (view.chat.attach_problem.empty()) return;
  ImGui::SetCursorScreenPos({at.x + width - px(kChipClose), y - px(3)});
  ButtonSpec dismiss{"Dismiss file problem", Icon::close};
  dismiss.show_label = false;
  dismiss.height = 24;
  dismiss.tooltip = "Dismiss";
  if (button(dismiss)) sink.post(ChatCommand(RemoveAttachment{view.chat.attachments.size()}));
}

namespace {

constexpr float kPromptLabel = 130, kPromptText = 66;

bool blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

bool keeps(const ViewModel& view, const std::string& name) {
  const auto& all = view.chat.prompts;
  return std::any_of(all.begin(), all.end(), [&](const NamedPrompt& p) { return p.name == name; });
}

}  // namespace

void PromptMenu::draw(const ViewModel& view, CommandSink& sink, float width) {
  draw_choice(view, sink, width);
  std::string text = view.messages.system_prompt;
  push_type(Type::base);
  const bool changed =
      ImGui::InputTextMultiline("##system prompt", &text, {width, px(kPromptText)}, ImGuiInputTextFlags_WordWrap);
  // Esc closes the menu. Dear ImGui would also undo what was typed; ignore that change.
  if (changed && !ImGui::IsKeyPressed(ImGuiKey_Escape, false)) sink.post(SetSystemPrompt{text});
  ImGui::PopFont();
  draw_keeping(view, sink, width);
}

void PromptMenu::draw_choice(const ViewModel& view, CommandSink& sink, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  draw_text_middle(ImGui::GetWindowDrawList(), a.x, a.y + px(14), Type::base, colours().text2, "System prompt");
  const std::string& text = view.messages.system_prompt;
  const std::string name = name_of_prompt(view.chat.prompts, text);
  if (name != known_) name_ = known_ = name;
  ImGui::SetCursorScreenPos({a.x + px(kPromptLabel), a.y});
  ImGui::SetNextItemWidth(width - px(kPromptLabel));
  push_type(Type::base);
  const std::string shown = text.empty() ? "None" : name.empty() ? "Not kept under a name" : name;
  if (ImGui::BeginCombo("##kept prompts", shown.c_str())) {
    if (ImGui::Selectable("None", text.empty())) sink.post(ChatCommand(SetSystemPrompt{""}));
    for (const NamedPrompt& prompt : view.chat.prompts) {
      ImGui::PushID(prompt.name.c_str());
      if (ImGui::Selectable(prompt.name.c_str(), prompt.name == name))
        sink.post(ChatCommand(SetSystemPrompt{prompt.text}));
      tooltip(prompt.text.c_str());
      ImGui::PopID();
    }
    ImGui::EndCombo();
  } else {
    tooltip("The prompts that you keep; each chat has its own choice");
  }
  ImGui::PopFont();
  ImGui::SetCursorScreenPos({a.x, a.y + px(34)});
}

/// The name under which the text is kept, with what can be done: keep it, give it that name, delete it.
void PromptMenu::draw_keeping(const ViewModel& view, CommandSink& sink, float width) {
  const bool has_text = !blank(view.messages.system_prompt);
  const std::string kept = name_of_prompt(view.chat.prompts, view.messages.system_prompt);
  ButtonSpec save{"Save prompt", Icon::none, ButtonKind::line}, remove{"Delete prompt", Icon::trash};
  const bool renames = !kept.empty() && name_ != kept;
  save.words = renames ? "Rename" : "Save";
  save.enabled = has_text && !blank(name_) && (kept.empty() || renames) && !(renames && keeps(view, name_));
  save.tooltip = renames              ? "Give this system prompt the name on the left"
                 : keeps(view, name_) ? "Replace the text that is kept under this name"
                                      : "Keep this text under the name on the left, for every chat";
  remove.show_label = false;
  remove.enabled = !kept.empty();
  remove.tooltip = "Delete this prompt from those that are kept; the chat keeps its text";
  const float buttons = button_size(save).x + px(28) + px(12);
  ImGui::SetNextItemWidth(width - buttons);
  push_type(Type::base);
  ImGui::InputTextWithHint("##prompt name", "Name, to keep it", &name_);
  ImGui::PopFont();
  ImGui::SameLine(0, px(8));
  if (button(save)) {
    if (renames)
      sink.post(ChatCommand(RenamePrompt{kept, name_}));
    else
      sink.post(ChatCommand(SavePrompt{name_, view.messages.system_prompt}));
  }
  ImGui::SameLine(0, px(4));
  if (button(remove)) sink.post(ChatCommand(DeletePrompt{kept}));
}

namespace {

constexpr float kMeter = 28, kMeterRing = 6.5f;

std::string share_words(const ContextUse& use, bool room) {
  return room && use.nearly_full() ? percent(std::min(1.0f, use.share()), 0) : "";
}

/// Width of the meter in pixels: a ring, and the share in figures when little is left and there is room for them.
float context_meter_width(const ContextUse& use, bool room) {
  if (use.planned == 0) return 0;
  const std::string words = share_words(use, room);
  return px(kMeter) + (words.empty() ? 0 : text_size(Type::mono_caption, words).x + px(6));
}

/// Draws how much of the model's context the chat takes, in a row 28 px high. Nothing without a model.
void draw_context_meter(const ContextUse& use, ImVec2 at, bool room) {
  if (use.planned == 0) return;
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 centre = {at.x + px(kMeter * 0.5f), at.y + px(kMeter * 0.5f)};
  const float share = std::clamp(use.share(), 0.0f, 1.0f), top = -std::numbers::pi_v<float> * 0.5f;
  const Colour colour = use.nearly_full() ? t.bonus : t.text2;
  list->AddCircle(centre, px(kMeterRing), ImGui::GetColorU32(t.line), 0, px(3));
  if (share > 0) {
    list->PathArcTo(centre, px(kMeterRing), top, top + share * 2 * std::numbers::pi_v<float>);
    list->PathStroke(ImGui::GetColorU32(colour), px(3));
  }
  const std::string words = share_words(use, room);
  if (!words.empty()) draw_text_middle(list, at.x + px(kMeter), centre.y, Type::mono_caption, t.bonus_text, words);
  ImGui::SetCursorScreenPos(at);
  ImGui::InvisibleButton("Context", {context_meter_width(use, room), px(kMeter)});
  tooltip(context_words(use).c_str());
}

constexpr float kMenuWidth = 320;
constexpr float kLabelWidth = 130;
constexpr float kRowPitch = 36;

/// Begins a row of the menu: its name at the left; sets the cursor for its control.
void begin_row(const char* name, const char* about) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, at.y + px(14), Type::base, colours().text2, name);
  ImGui::Dummy({px(kLabelWidth), px(28)});
  tooltip(about);
  ImGui::SetCursorScreenPos({at.x + px(kLabelWidth), at.y});
  ImGui::SetNextItemWidth(px(kMenuWidth - kLabelWidth));
}

void end_row(float top) {
  ImGui::SetCursorPosY(top + px(kRowPitch));
}

bool slider(const char* name, const char* about, float& value, float low, float high) {
  const float top = ImGui::GetCursorPosY();
  begin_row(name, about);
  ImGui::PushID(name);
  const bool changed = ImGui::SliderFloat("##value", &value, low, high, "%.2f", ImGuiSliderFlags_AlwaysClamp);
  ImGui::PopID();
  end_row(top);
  return changed;
}

/// The row for the seed of the next reply. True when it changed.
bool seed_row(const ViewModel& view, SamplingSettings& s) {
  const float top = ImGui::GetCursorPosY();
  begin_row("Next seed", "The same seed, settings and messages give the same text. Each reply takes the next one");
  int seed = static_cast<int>(view.sampling.seed + view.replies_drawn);
  const bool changed = ImGui::InputInt("##seed", &seed, 1, 100);
  if (changed) s.seed = static_cast<uint64_t>(std::clamp(seed, 0, static_cast<int>(kMaxSeed)));
  end_row(top);
  return changed;
}

/// The row for the longest reply.
void limit_row(const ViewModel& view, CommandSink& sink) {
  const float top = ImGui::GetCursorPosY();
  begin_row("Longest reply", "Tokens after which a reply waits: a button under it continues it");
  int tokens = static_cast<int>(view.max_tokens);
  if (ImGui::InputInt("##limit", &tokens, 64, 512))
    sink.post(SetMaxTokens{static_cast<uint32_t>(std::clamp(tokens, 1, static_cast<int>(kMostMaxTokens)))});
  end_row(top);
}

constexpr float kInputPadding = 10;
constexpr size_t kMinLines = 2;
// Window height below which the composer has only one line, to leave room for messages.
constexpr float kLowWindow = 320;
constexpr size_t kMaxLines = 8;
constexpr float kTextShare = 0.25f, kAboveShare = 0.2f;  // of the window's height, at most
constexpr size_t kMostMeasured = 8192;  // bytes that have kMaxLines in any case: text may be pasted by the megabyte
constexpr float kTinyWindow = 180;      // below it, one line and the button beside it
constexpr float kTinyButton = 36;       // width of the icon of the button and a gap

const char* hint(const ViewModel& view) {
  if (view.model_state == ModelState::loading) return "Write a message while the model loads";
  if (view.model_state == ModelState::released) return "Write a message; the model loads again";
  return "Write a message";
}

/// The settings of the next reply, in as much text as fits: "Temperature 0.5, seed 0, system prompt off".
std::string sampling_words(const ViewModel& view, float room) {
  const char* prompt = view.messages.system_prompt.empty() ? "system prompt off" : "system prompt on";
  if (view.sampling.temperature == 0) return std::string("Greedy, ") + prompt;
  char seed[32], heat[32];
  std::snprintf(seed, sizeof seed, ", seed %llu",
                static_cast<unsigned long long>(view.sampling.seed + view.replies_drawn));
  std::snprintf(heat, sizeof heat, "%.2g", static_cast<double>(view.sampling.temperature));
  // The longest one that fits, or the shortest if none does.
  std::string words;
  for (const std::string& each :
       {std::string("Temperature ") + heat + seed + ", " + prompt, std::string("Temperature ") + heat + ", " + prompt,
        std::string("Temp ") + heat + ", " + prompt, std::string("Temp ") + heat}) {
    words = each;
    if (text_size(Type::secondary, words).x <= room) break;
  }
  return words;
}

bool can_switch_thinking(const ViewModel& view) {
  return view.model && view.model->thinking.switchable;
}

/// Draws the switch for thinking at the cursor. Returns its width in pixels.
float draw_thinking_switch(const ViewModel& view, CommandSink& sink) {
  const bool on = thinking_on(view);
  ButtonSpec think{"Think", Icon::none, ButtonKind::line};
  think.on = on;
  think.type = Type::secondary;
  think.tooltip = on ? "Replies begin with thinking, which is shown folded\nClick for answers without it"
                     : "Replies come without thinking\nClick to let the model think before it answers";
  if (button(think)) sink.post(ChatCommand(SetThinking{!on}));
  return button_size(think).x;
}

/// The row for thinking: also here, as a narrow chat has no room for its switch.
void thinking_row(const ViewModel& view, CommandSink& sink) {
  if (!can_switch_thinking(view)) return;
  const float top = ImGui::GetCursorPosY();
  begin_row("Thinking", "Whether the model thinks before it answers");
  draw_thinking_switch(view, sink);
  end_row(top);
}

/// The row for replies that turn in circles.
void loops_row(const ViewModel& view, CommandSink& sink) {
  const float top = ImGui::GetCursorPosY();
  begin_row("Loops", "What becomes of a reply that says the same eight times in a row");
  ButtonSpec stop{"Stop loops", Icon::none, ButtonKind::line};
  stop.words = "End there";
  stop.on = view.stop_loops;
  stop.type = Type::secondary;
  stop.tooltip = view.stop_loops ? "Replies end where they repeat themselves; Continue goes on\nClick to let them go on"
                                 : "Replies go on to their limit, whatever they say\nClick to end them where they "
                                   "repeat themselves";
  if (button(stop)) sink.post(ChatCommand(StopLoops{!view.stop_loops}));
  end_row(top);
}

constexpr float kRoomForTools =
    300;  // width of the row of buttons, below which those that can be elsewhere are not in it
constexpr float kRoomBesideSend = 100;  // of the other buttons as icons, and a gap
constexpr const char* kSamplingMenu = "Sampling menu";
constexpr const char* kAttachMenu = "Attach menu";

/// Draws the popup with the settings, its lower left corner at `corner`.
void draw_sampling_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner, PromptMenu& prompts) {
  const Theme& t = colours();
  ImGui::SetNextWindowPos(corner, ImGuiCond_Always, {0, 1});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(16), px(14)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, t.card);
  ImGui::PushStyleColor(ImGuiCol_Button, t.card);
  if (ImGui::BeginPopup(kSamplingMenu)) {
    push_type(Type::mono);
    SamplingSettings s = view.sampling;
    bool changed =
        slider("Temperature", "0 takes the likeliest token; more is more varied", s.temperature, 0, kMaxTemperature);
    changed |=
        slider("Top-p", "Draw from the likeliest tokens of this total probability; 1 is off", s.top_p, kMinTopP, 1);
    changed |=
        slider("Min-p", "Leave out tokens below this share of the likeliest one; 0 is off", s.min_p, 0, kMaxMinP);
    changed |= slider("Repetition", "Makes what was written less likely; 1 is off", s.repetition_penalty, kMinPenalty,
                      kMaxPenalty);
    const bool seeded = seed_row(view, s);
    limit_row(view, sink);
    loops_row(view, sink);
    ButtonSpec usual{"Usual", Icon::none, ButtonKind::line}, greedy{"Greedy", Icon::none, ButtonKind::line};
    usual.tooltip = "The settings that Canopy starts with";
    greedy.tooltip = "Always the likeliest token: what the command line does by default";
    const uint64_t seed = s.seed;
    thinking_row(view, sink);
    prompts.draw(view, sink, px(kMenuWidth));
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(4));
    if (button(usual)) s = chat_sampling(), s.seed = seed, changed = true;
    ImGui::SameLine(0, px(8));
    if (button(greedy)) s = SamplingSettings{}, s.seed = seed, changed = true;
    ImGui::PopFont();
    if (changed || seeded) sink.post(SetSampling{s, seeded});
    ImGui::EndPopup();
  }
  ImGui::PopStyleColor(2);
  ImGui::PopStyleVar();
}

}  // namespace

bool Composer::tiny() const {
  return ImGui::GetWindowHeight() < px(kTinyWindow);
}

float Composer::text_height_for(float width) const {
  const float height = ImGui::GetWindowHeight(), line = text_height(Type::chat);
  const size_t least = height < px(kLowWindow) ? 1 : kMinLines;
  const auto fitting = static_cast<size_t>(std::max(0.0f, height * kTextShare / line));
  const size_t most = tiny() ? 1 : std::clamp(fitting, least, kMaxLines);
  TextBlock block;
  block.layout(std::string_view(text_).substr(0, kMostMeasured), Type::chat, width - px(kInputPadding) * 2 - px(14));
  const size_t lines = std::clamp(block.line_count(), least, most);
  // Two pixels of padding at each end and two for rounding.
  return line * static_cast<float>(lines) + px(6);
}

std::string Composer::problem(const ViewModel& view) const {
  if (view.chat.attach_problem.empty()) return too_long_alone(context_use(view, text_));
  if (!refused_) return view.chat.attach_problem;
  return "Not sent. " + view.chat.attach_problem + " Close this note to send the message without it.";
}

/// The last line of what is typed, where the box cannot show it as it is read; else nothing.
std::string_view Composer::reading() const {
  const size_t last = text_.rfind('\n');
  const std::string_view line = std::string_view(text_).substr(last == std::string::npos ? 0 : last + 1);
  const std::string_view shown = line.substr(0, kMostMeasured);
  return !tiny() && reads_unlike_typed(shown) ? shown : std::string_view();
}

float Composer::reading_height(float width) const {
  const std::string_view words = reading();
  if (words.empty()) return 0;
  TextBlock block;
  block.layout(words, Type::chat, width);
  return px(kReadingHead) + block.height(px(kReadingLine)) + px(kChipGap);
}

float Composer::whole_above(const ViewModel& view, float width) const {
  const bool prompt = !blank(view.messages.system_prompt) && !tiny();
  return (prompt ? px(kChip + kChipGap) : 0) + chips_height(view, width, problem(view)) + reading_height(width);
}

float Composer::above_height(const ViewModel& view, float width) const {
  return std::min(whole_above(view, width), std::max(px(kChip), ImGui::GetWindowHeight() * kAboveShare));
}

float Composer::height(const ViewModel& view, float width) const {
  return px(kInputPadding) * 2 + above_height(view, width - px(kInputPadding) * 2) + text_height_for(width) +
         (tiny() ? 0 : px(8) + px(28));
}

void Composer::draw(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  if (view.chat.attach_problem.empty()) refused_ = false;
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + height(view, width)};
  top_ = a.y;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, t.card, px(6));
  ImVec2 at = {a.x + px(kInputPadding), a.y + px(kInputPadding)};
  const float inner = width - px(kInputPadding) * 2, above = above_height(view, inner);
  if (above > 0) draw_above(view, sink, at, inner);
  at.y += above;
  const float text_height = text_height_for(width);
  const bool only_button = tiny();
  draw_input(at, {inner - (only_button ? px(kTinyButton) : 0), text_height});
  list->AddRect(a, b, active_ ? t.accent : t.ctl, px(6), px(active_ ? 2 : 1));
  if (text_.empty())
    draw_text(list, {at.x + px(2), at.y + px(2)}, Type::chat, t.text3, elided(Type::chat, hint(view), inner - px(4)));
  const float row = at.y + (only_button ? std::floor((text_height - px(28)) * 0.5f) : text_height + px(8));
  draw_row(view, sink, {at.x, row}, inner, only_button);
  if (entered_) send(view, sink);
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({width, b.y - a.y});
}

/// Draws what the chat has beside the text: its system prompt, the files of the next question, what is wrong with it.
void Composer::draw_above(const ViewModel& view, CommandSink& sink, ImVec2 at, float width) {
  const float whole = whole_above(view, width), room = above_height(view, width);
  const std::string wrong = problem(view);
  const auto draw_all = [&](ImVec2 from, float wide) {
    if (!blank(view.messages.system_prompt) && !tiny()) {
      draw_prompt_chip(view, from, wide);
      from.y += px(kChip + kChipGap);
    }
    draw_chips(view, sink, from, wide, wrong);
    const std::string_view words = reading();
    if (words.empty()) return;
    from.y += chips_height(view, wide, wrong);
    ImDrawList* list = ImGui::GetWindowDrawList();
    draw_text(
        list, from, Type::caption, colours().text3,
        first_fitting(Type::caption, {"As it reads; the box shows it in the order of typing", "As it reads"}, wide));
    TextBlock block;
    block.layout(words, Type::chat, wide);
    block.draw(list, {from.x, from.y + px(kReadingHead)}, words, Type::chat, colours().text2, px(kReadingLine));
  };
  if (room >= whole) return draw_all(at, width);
  ImGui::SetCursorScreenPos(at);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, with_alpha(colours().card, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  if (ImGui::BeginChild("Above the text", {width, room})) {
    const ImVec2 from = ImGui::GetCursorScreenPos();
    draw_all(from, width - ImGui::GetStyle().ScrollbarSize);
    ImGui::SetCursorScreenPos(from);
    ImGui::Dummy({1, whole_above(view, width - ImGui::GetStyle().ScrollbarSize)});
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

/// Draws the chip that says that the chat has a system prompt, by the name under which it is kept, or its beginning.
void Composer::draw_prompt_chip(const ViewModel& view, ImVec2 at, float width) {
  const std::string& prompt = view.messages.system_prompt;
  const std::string name = name_of_prompt(view.chat.prompts, prompt);
  const std::string text = "System prompt: " + (name.empty() ? prompt.substr(0, prompt.find('\n')) : name);
  const std::string words = elided(Type::secondary, text, width - px(kFileIcon + 14));
  ButtonSpec chip{"System prompt chip", Icon::edit, ButtonKind::line};
  chip.words = words.c_str();
  chip.type = Type::secondary;
  chip.height = kChip;
  const std::string tip = prompt.substr(0, kMostMeasured) + "\n\nClick to change it, or to take it away";
  chip.tooltip = tip.c_str();
  ImGui::SetCursorScreenPos(at);
  if (button(chip)) menu_next_ = true;
}

/// Takes what was typed while nothing else had the keyboard, and asks for it: none of it is lost in the frames until
/// the box has it. A blank alone belongs to the panel that has the focus.
void Composer::take_letters(bool popup) {
  ImGuiIO& io = ImGui::GetIO();
  if (!look().typed_ahead.empty()) {
    text_ += std::exchange(look().typed_ahead, "");
    focus_next_ = true;
  }
  if (active_ || popup || ImGui::IsAnyItemActive()) return;
  look().letters_taken = ImGui::GetFrameCount();
  if (io.InputQueueCharacters.empty() || (io.KeyCtrl && !io.KeyAlt)) return;
  std::string typed;
  for (const ImWchar c : io.InputQueueCharacters)
    if (c >= ' ' && c != 0x7F) append_utf8(typed, static_cast<uint32_t>(c));
  if (typed.empty() || (typed.front() == ' ' && !focus_next_ && !taking_)) return;
  text_ += typed;
  io.InputQueueCharacters.resize(0);
  taking_ = focus_next_ = true;
}

void Composer::draw_input(ImVec2 pos, ImVec2 size) {
  ImGui::SetCursorScreenPos(pos);
  // An open menu or box would close when the focus leaves it; it may have been opened after the focus was asked for.
  const bool popup = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  take_letters(popup);
  if (take_focus(kComposerArea)) focus_next_ = true;
  if (focus_next_ && !popup) {
    ImGui::SetKeyboardFocusHere();
    focus_next_ = false;
  }
  push_type(Type::chat);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {0, px(2)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, with_alpha(colours().card, 0));
  // No focus ring around the text, as the border of the composer already shows the focus.
  ImGui::PushStyleColor(ImGuiCol_NavCursor, with_alpha(colours().accent, 0));
  const bool escaped = active_ && ImGui::IsKeyPressed(ImGuiKey_Escape, false);
  const std::string before = escaped ? text_ : "";
  entered_ = ImGui::InputTextMultiline("##message", &text_, size,
                                       ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CtrlEnterForNewLine |
                                           ImGuiInputTextFlags_WordWrap | ImGuiInputTextFlags_NoHorizontalScroll);
  active_ = ImGui::IsItemActive();
  if (active_) taking_ = false, look().letters_taken = ImGui::GetFrameCount();
  ImGuiInputTextState* state = ImGui::GetInputTextState(ImGui::GetItemID());
  // Esc stops the reply. Dear ImGui also undoes the typed text and drops the focus: restore both.
  if (escaped) {
    text_ = before;
    focus_next_ = true;
  }
  // When the box got the focus without a click, put the cursor at the end of the text. ReloadUserBufAndMoveToEnd would
  // do so in the next frame only, and leave the cursor beyond the text where the box has lost the focus by then.
  if (ImGui::IsItemActivated() && state && !ImGui::IsMouseDown(ImGuiMouseButton_Left))
    state->SetSelection(state->TextLen, state->TextLen);
  has_selection_ = active_ && state && state->HasSelection();
  ImGui::PopStyleColor(2);
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

float Composer::draw_sampling(const ViewModel& view, CommandSink& sink, ImVec2 pos, float room) {
  const std::string words = sampling_words(view, room - px(40));
  ButtonSpec settings{"Sampling", Icon::sliders};
  settings.type = Type::secondary;
  settings.words = words.c_str();
  settings.tooltip = "How tokens are drawn, and the system prompt";
  if (button_size(settings).x > room) settings.show_label = false;
  // Aligns the icon with the text above, not the invisible edge of its button.
  ImGui::SetCursorScreenPos({pos.x - px(settings.show_label ? 12 : 8), pos.y});
  if (button(settings) || std::exchange(menu_next_, false)) ImGui::OpenPopup(kSamplingMenu);
  draw_sampling_menu(view, sink, {pos.x - px(kInputPadding), top_ - px(8)}, prompts_);
  return button_size(settings).x - px(12);
}

bool Composer::can_send_now(const ViewModel& view) const {
  return view.can_send() && (text_.find_first_not_of(" \t\r\n") != std::string::npos || !view.chat.attachments.empty());
}

float Composer::draw_tools(const ViewModel& view, CommandSink& sink, ImVec2 pos, float width) {
  const bool room = width >= px(kRoomForTools);
  float x = pos.x - px(8);  // aligns the icon with the text above, not the invisible edge of its button
  ButtonSpec attach{"Attach a file", Icon::clip};
  attach.show_label = false;
  attach.tooltip = "Attach a text or code file; or drop one on the window";
  ImGui::SetCursorScreenPos({x, pos.y});
  if (button(attach)) {
    if (view.file_dialog_available)
      sink.post(ChatCommand(BrowseAttachment{}));
    else
      ImGui::OpenPopup(kAttachMenu);
  }
  draw_attach_menu(sink, {pos.x - px(kInputPadding), top_ - px(8)});
  x += button_size(attach).x;
  const ContextUse use = context_use(view, text_);
  draw_context_meter(use, {x, pos.y}, room);
  x += context_meter_width(use, room);
  if (room && can_switch_thinking(view)) {
    ImGui::SetCursorScreenPos({x + px(4), pos.y});
    x += draw_thinking_switch(view, sink) + px(8);
  }
  return x - pos.x + px(8);
}

/// A box for the path of a file, where the system has no file dialog.
void Composer::draw_attach_menu(CommandSink& sink, ImVec2 corner) {
  ImGui::SetNextWindowPos(corner, ImGuiCond_Always, {0, 1});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(16), px(14)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, colours().card);
  if (ImGui::BeginPopup(kAttachMenu)) {
    label(Type::base, colours().text2, "Path of a text or code file");
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(px(kMenuWidth - 120));
    const bool entered = ImGui::InputText("##attach path", &attach_path_, ImGuiInputTextFlags_EnterReturnsTrue);
    ImGui::SameLine(0, px(8));
    ButtonSpec browse{"Browse files", Icon::folder, ButtonKind::line};
    browse.show_label = false;
    browse.tooltip = browse.label;
    if (button(browse)) browser_.open("Choose a text or code file", PathFilter::all, typed_path(attach_path_).string());
    if (auto chosen = browser_.draw()) attach_path_ = *std::move(chosen);
    ImGui::SameLine(0, px(8));
    ButtonSpec attach{"Attach", Icon::none, ButtonKind::primary};
    attach.enabled = !attach_path_.empty();
    if ((button(attach) || entered) && !attach_path_.empty()) {
      sink.post(ChatCommand(AttachFile{typed_path(std::exchange(attach_path_, {})).string()}));
      ImGui::CloseCurrentPopup();
      focus_next_ = true;
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

void Composer::draw_row(const ViewModel& view, CommandSink& sink, ImVec2 pos, float width, bool only_button) {
  ButtonSpec stop{"Stop", Icon::stop, ButtonKind::line}, go{"Send", Icon::send, ButtonKind::primary};
  go.type = Type::base_semibold;
  go.enabled = can_send_now(view);
  go.tooltip = view.comparison.busy()                     ? "Something is being measured: wait, or cancel it below"
               : view.model_state == ModelState::ready    ? "Send  Enter"
               : view.model_state == ModelState::released ? "Load the model again and send  Enter"
                                                          : "Needs a model";
  stop.enabled = view.reply_state != ReplyState::stopping;
  stop.tooltip = "Stop and keep the text  Esc";
  ButtonSpec& shown = view.busy() ? stop : go;
  shown.show_label = !only_button && button_size(shown).x + px(kRoomBesideSend) <= width;
  const ImVec2 size = button_size(shown);
  if (!only_button) {
    const float tools = draw_tools(view, sink, pos, width);
    const float right = pos.x + width - size.x - px(8), x = pos.x + tools;
    const float keys_x = x + draw_sampling(view, sink, {x, pos.y}, right - x) + px(16);
    const char* keys = "Enter sends, Shift+Enter starts a line";
    if (keys_x + text_size(Type::secondary, keys).x + px(12) <= pos.x + width - size.x)
      draw_text_middle(ImGui::GetWindowDrawList(), keys_x, pos.y + px(14), Type::secondary, colours().text3, keys);
  }
  ImGui::SetCursorScreenPos({pos.x + width - size.x, pos.y});
  if (!button(shown)) return;
  if (view.busy())
    sink.post(StopWriting{});
  else
    send(view, sink);
}

void Composer::send(const ViewModel& view, CommandSink& sink) {
  entered_ = false;
  focus_next_ = true;
  if (!can_send_now(view)) return;
  if (!view.chat.attach_problem.empty()) {  // the file would be missing without a word
    refused_ = true;
    return;
  }
  sink.post(SendMessage{std::exchange(text_, {})});
}

}  // namespace canopy::app
