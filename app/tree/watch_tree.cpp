#include "app/tree/watch_tree.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "app/layout/tree_caption.h"
#include "app/look/text_block.h"
#include "app/look/widgets.h"
#include "app/panels/term_words.h"

namespace canopy::app {
namespace {

constexpr float kCaptionMargin = 16, kRoomForNumber = 480, kLeastSentence = 160;

struct LegendEntry {
  NodeFate fate;
  const char* words;
};
constexpr LegendEntry kLegend[] = {{NodeFate::accepted, "accepted"},
                                   {NodeFate::rejected, "rejected"},
                                   {NodeFate::not_reached, "not reached"},
                                   {NodeFate::bonus, "bonus"}};

/// The nodes of each fate that may be told: in slow motion only those that the walk has come to.
std::array<uint32_t, kFates> told(const TreeModel& tree, const TreeReveal& reveal) {
  std::array<uint32_t, kFates> count{};
  for (uint32_t i = 0; i < tree.size(); ++i) {
    const NodeReveal& node = reveal.nodes[i];
    const bool bonus = tree.nodes[i].fate == NodeFate::bonus;
    const bool lit = tree.nodes[i].fate != NodeFate::accepted || node.lit >= 1;
    if (node.judged && lit && (!bonus || node.shown > 0)) ++count[static_cast<size_t>(tree.nodes[i].fate)];
  }
  return count;
}

Type type_of(CaptionPart::Kind kind) {
  switch (kind) {
    case CaptionPart::Kind::accepted: return Type::title;
    case CaptionPart::Kind::token: return Type::mono_semibold;
    default: return Type::chat;
  }
}

Colour colour_of(CaptionPart::Kind kind) {
  const Theme& t = colours();
  switch (kind) {
    case CaptionPart::Kind::accepted: return t.accepted_text;
    case CaptionPart::Kind::token: return t.bonus_text;
    case CaptionPart::Kind::aside: return t.text3;
    default: return t.text;
  }
}

/// Without the aside, which is left out where there is no room.
float parts_width(const std::vector<CaptionPart>& parts) {
  float width = 0;
  for (const CaptionPart& part : parts)
    if (part.kind != CaptionPart::Kind::aside)
      width += text_size(type_of(part.kind), part.text).x * (part.kind == CaptionPart::Kind::token ? 14.0f / 12 : 1);
  return width;
}

void draw_parts(ImDrawList* list, ImVec2 at, float room, const std::vector<CaptionPart>& parts) {
  float x = at.x;
  for (const CaptionPart& part : parts) {
    const Type type = type_of(part.kind);
    const float left = at.x + room - x;
    if (part.kind == CaptionPart::Kind::aside && text_size(type, part.text).x > left) break;
    if (left < px(12)) break;
    if (part.kind == CaptionPart::Kind::token) {
      const float size = text_height(type, 14);
      draw_word(list, {x, at.y}, type, size, colour_of(part.kind), part.text, left);
      x += text_size(type, part.text).x * size / text_height(type);
      continue;
    }
    const std::string words = elided(type, part.text, left);
    draw_text_middle(list, x, at.y, type, colour_of(part.kind), words);
    x += text_size(type, words).x;
  }
}

}  // namespace

void WatchTree::draw(const ViewModel& view, CommandSink& sink, const Parts& parts) {
  const RoundsState& rounds = view.rounds;
  const ImVec2 origin = ImGui::GetWindowPos();
  const auto pos = [&](const ImVec4& part) { return ImVec2(origin.x + part.x, origin.y + part.y); };
  const auto size = [](const ImVec4& part) { return ImVec2(part.z, part.w); };
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto ground = [&](const ImVec4& part, Colour colour) {
    if (part.w > 0) list->AddRectFilled(pos(part), {pos(part).x + part.z, pos(part).y + part.w}, colour);
  };
  ground(parts.numbers, colours().panel);
  ground(parts.caption, colours().panel);
  ground(parts.tree, colours().canvas);
  ground(parts.legend, colours().canvas);
  ground(parts.budget, colours().panel);
  canvas_.draw(rounds, pos(parts.tree), size(parts.tree), sink);
  if (!rounds.shown()) {
    draw_nothing(view, pos(parts.tree), size(parts.tree), sink);
    return;
  }
  if (parts.caption.w > 0) draw_caption(rounds, sink, parts);
  if (parts.legend.w > 0) draw_legend(rounds, pos(parts.legend), size(parts.legend));
}

/// Draws the sentence of the round, or in slow motion that of its phase, and the button for slow motion.
void WatchTree::draw_caption(const RoundsState& rounds, CommandSink& sink, const Parts& parts) {
  const ImVec2 origin = ImGui::GetWindowPos(), size = {parts.caption.z, parts.caption.w};
  const ImVec2 pos = {origin.x + parts.caption.x, origin.y + parts.caption.y};
  const Theme& t = colours();
  const Playback& play = rounds.playback;
  ButtonSpec slowly{"Show slowly", play.slow_motion ? Icon::close : Icon::play, ButtonKind::line};
  slowly.words = play.slow_motion ? "Whole pass" : "Show slowly";
  slowly.tooltip = play.slow_motion ? "Show the whole pass at once  F9" : "This pass in six steps  F9";
  const ImVec2 wanted = button_size(slowly);
  float right = pos.x + size.x - px(kCaptionMargin) - wanted.x;
  const float middle = pos.y + size.y * 0.5f;
  ImGui::SetCursorScreenPos({right, std::floor(middle - wanted.y * 0.5f)});
  if (button(slowly)) sink.post(RoundsCommand(SetSlowMotion{!play.slow_motion}));
  const float left = pos.x + px(kCaptionMargin);
  if (const std::string pass = "pass " + grouped(canvas_.shown().round + 1); right - left > px(kRoomForNumber)) {
    right -= text_size(Type::mono, pass).x + px(12);
    draw_text_middle(ImGui::GetWindowDrawList(), right, middle, Type::mono, t.text3, pass);
  }
  const float room = right - px(12) - left;
  const ImVec4 canvas = {origin.x + parts.tree.x, origin.y + parts.tree.y, parts.tree.z, parts.tree.w};
  if (play.slow_motion)
    draw_phase(play.phase, {left, pos.y, room, size.y}, canvas);
  else
    draw_sentence({left, middle}, room);
}

/// Draws the longest wording of the round's sentence that fits.
void WatchTree::draw_sentence(ImVec2 left_middle, float room) const {
  const ShownTree& shown = canvas_.shown();
  const size_t emitted = shown.record->emitted.size();
  std::vector<CaptionPart> parts = tree_caption(shown.model, shown.labels, emitted);
  if (parts_width(parts) > room) parts = brief_caption(shown.model, emitted);
  if (parts_width(parts) > room) parts = briefest_caption(emitted);
  draw_parts(ImGui::GetWindowDrawList(), left_middle, room, parts);
}

/// Draws number, title and sentence of a phase. caption: x, y, width, height of the room beside the button; canvas: of
/// the tree below. The sentences of all phases stand at the same place: in the caption, in at most two lines; or where
/// one of them would not fit, over the line of depths, in as many as they need.
void WatchTree::draw_phase(Phase phase, const ImVec4& caption, const ImVec4& canvas) const {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const size_t emitted = canvas_.shown().record->emitted.size();
  const float middle = caption.y + caption.w * 0.5f;
  const std::string number = std::to_string(static_cast<size_t>(phase) + 1);
  float title = 0;
  for (const PhaseText& each : phase_texts()) title = std::max(title, text_size(Type::title, each.name).x);
  list->AddCircleFilled({caption.x + px(11), middle}, px(11), t.accent_bg);
  draw_text_middle(list, caption.x + px(11) - text_size(Type::mono_semibold, number).x * 0.5f, middle,
                   Type::mono_semibold, t.accent_text, number);
  draw_text_middle(list, caption.x + px(30), middle, Type::title, t.text,
                   phase_texts()[static_cast<size_t>(phase)].name);
  const float beside = caption.x + px(30) + title + px(14), below_width = canvas.z - px(kCaptionMargin) * 2;
  const auto lines_at = [&](Type type, float width) {
    size_t most = 0;
    for (size_t i = 0; i < kPhases; ++i) {
      TextBlock block;
      block.layout(phase_sentence(static_cast<Phase>(i), emitted), type, width);
      most = std::max(most, block.line_count());
    }
    return most;
  };
  const std::string words = phase_sentence(phase, emitted);
  TextBlock block;
  const auto draw_at = [&](ImVec2 pos, float width, float height, Type type, float pitch) {
    block.layout(words, type, width);
    block.draw(list, {pos.x, std::floor(pos.y + (height - block.height(pitch)) * 0.5f)}, words, type, t.text2, pitch);
  };
  const float width = caption.x + caption.z - beside;
  for (const auto& [type, pitch] : {std::pair(Type::base, px(17)), std::pair(Type::secondary, px(15))}) {
    if (width < px(kLeastSentence) || static_cast<float>(lines_at(type, width)) * pitch > caption.w) continue;
    draw_at({beside, caption.y}, width, caption.w, type, pitch);
    return;
  }
  const float pitch = px(14), height = static_cast<float>(lines_at(Type::secondary, below_width)) * pitch + px(2);
  list->AddRectFilled({canvas.x, canvas.y}, {canvas.x + canvas.z, canvas.y + height}, t.panel);
  draw_at({canvas.x + px(kCaptionMargin), canvas.y}, below_width, height - px(2), Type::secondary, pitch);
}

void WatchTree::draw_legend(const RoundsState& rounds, ImVec2 pos, ImVec2 size) const {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Playback& play = rounds.playback;
  const TreeModel& tree = canvas_.shown().model;
  const TreeReveal now =
      reveal(tree, play.slow_motion ? play.phase : Phase::commit, play.slow_motion ? play.progress : 1);
  const auto count = told(tree, now);
  const float middle = pos.y + size.y * 0.5f;
  float x = pos.x + px(kCaptionMargin);
  for (const LegendEntry& entry : kLegend) {
    const std::string figure = grouped(count[static_cast<size_t>(entry.fate)]);
    const float words = text_size(Type::secondary, entry.words).x, number = text_size(Type::mono, figure).x;
    if (x + px(18) + words + px(6) + number > pos.x + size.x) return;
    draw_fate_badge(list, entry.fate, {x + px(6), middle}, px(entry.fate == NodeFate::bonus ? 5 : 6), t.canvas);
    draw_text_middle(list, x + px(18), middle, Type::secondary, t.text2, entry.words);
    term_area(entry.words, {x + px(18), middle - px(9)}, {x + px(18) + words, middle + px(9)});
    draw_text_middle(list, x + px(18) + words + px(6), middle, Type::mono, t.text, figure);
    x += px(18) + words + px(6) + number + px(18);
  }
  const bool tufts = !canvas_.geometry().tufts.empty();
  const std::string key = tufts
                              ? "branch thickness: how sure the drafter was \u00b7 tufts: more guesses, hover to unfold"
                              : "branch thickness: how sure the drafter was";
  const std::string shorter = "branch thickness: how sure the drafter was";
  for (const std::string& words : {key, shorter}) {
    const float key_x = pos.x + size.x - px(kCaptionMargin) - text_size(Type::secondary, words).x;
    if (key_x < x + px(8)) continue;
    draw_text_middle(list, key_x, middle, Type::secondary, t.text3, words);
    return;
  }
}

void WatchTree::draw_nothing(const ViewModel& view, ImVec2 pos, ImVec2 size, CommandSink& sink) const {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool none = view.rounds.log->rounds() == 0;
  const std::string words =
      none ? "Write a message, and watch how it is answered." : "The tree of this pass was let go for memory.";
  const ImVec2 centre = {pos.x + size.x * 0.5f, pos.y + size.y * 0.5f};
  draw_icon(list, Icon::branch, {centre.x, centre.y - px(44)}, px(32), t.text3);
  draw_text_middle(list, centre.x - text_size(Type::chat, words).x * 0.5f, centre.y - px(8), Type::chat, t.text2,
                   words);
  if (!none) return;
  ButtonSpec demo{"Watch demo", Icon::none, ButtonKind::line};
  const ImVec2 wanted = button_size(demo);
  ImGui::SetCursorScreenPos({std::floor(centre.x - wanted.x * 0.5f), std::floor(centre.y + px(14))});
  if (button(demo)) sink.post(RoundsCommand(WatchDemo{}));
}

}  // namespace canopy::app
