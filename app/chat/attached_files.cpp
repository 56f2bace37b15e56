#include "app/chat/attached_files.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/look/text_block.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kFileLine = 24, kFileIcon = 20;
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

TextBlock problem_block(const ViewModel& view, float width) {
  TextBlock block;
  block.layout(view.chat.attach_problem, Type::secondary, width - px(24 + kChipClose));
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

float chips_height(const ViewModel& view, float width) {
  const float chips = lay_out_chips(view, {0, 0}, width, [](size_t, ImVec2, float) {});
  if (view.chat.attach_problem.empty()) return chips;
  return chips + problem_block(view, width).height(px(kProblemLine)) + px(kChipGap);
}

void draw_chips(const ViewModel& view, CommandSink& sink, ImVec2 at, float width) {
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
  if (view.chat.attach_problem.empty()) return;
  const float y = at.y + chips;
  draw_cross(list, {at.x + px(8), y + px(kProblemLine * 0.5f)}, px(4), t.rejected, px(2));
  ImGui::SetCursorScreenPos({at.x + width - px(kChipClose), y - px(3)});
  ButtonSpec dismiss{"Dismiss file problem", Icon::close};
  dismiss.show_label = false;
  dismiss.height = 24;
  dismiss.tooltip = "Dismiss";
  if (button(dismiss)) sink.post(ChatCommand(RemoveAttachment{view.chat.attachments.size()}));
  problem_block(view, width)
      .draw(list, {at.x + px(22), y}, view.chat.attach_problem, Type::secondary, t.text2, px(kProblemLine));
}

}  // namespace canopy::app
