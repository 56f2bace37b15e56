#include "app/tree/watch_tree.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "app/look/widgets.h"
#include "app/panels/term_words.h"
#include "app/tree/tree_caption.h"

namespace canopy::app {
namespace {

constexpr float kCaptionMargin = 16, kRoomForNumber = 480;

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

/// The part of a text that fits into `width`, cut after a word.
std::string_view first_line(Type type, std::string_view words, float width) {
  if (text_size(type, words).x <= width) return words;
  size_t end = 0;
  for (size_t space = words.find(' '); space != std::string_view::npos; space = words.find(' ', space + 1)) {
    if (text_size(type, words.substr(0, space)).x > width) break;
    end = space;
  }
  return end == 0 ? words : words.substr(0, end);
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
  draw_caption(rounds, sink, pos(parts.caption), size(parts.caption));
  if (parts.legend.w > 0) draw_legend(rounds, pos(parts.legend), size(parts.legend));
}

/// Draws the sentence of the round, or in slow motion that of its phase, and the button for slow motion.
void WatchTree::draw_caption(const RoundsState& rounds, CommandSink& sink, ImVec2 pos, ImVec2 size) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Playback& play = rounds.playback;
  const ShownTree& shown = canvas_.shown();
  ButtonSpec slowly{"Show slowly", play.slow_motion ? Icon::close : Icon::play, ButtonKind::line};
  slowly.words = play.slow_motion ? "Whole pass" : "Show slowly";
  slowly.tooltip = play.slow_motion ? "Show the whole pass at once  F9" : "This pass in six steps  F9";
  const ImVec2 wanted = button_size(slowly);
  float right = pos.x + size.x - px(kCaptionMargin) - wanted.x;
  const float middle = pos.y + size.y * 0.5f;
  ImGui::SetCursorScreenPos({right, std::floor(middle - wanted.y * 0.5f)});
  if (button(slowly)) sink.post(RoundsCommand(SetSlowMotion{!play.slow_motion}));
  const float left = pos.x + px(kCaptionMargin);
  if (const std::string pass = "pass " + grouped(shown.round + 1); right - left > px(kRoomForNumber)) {
    right -= text_size(Type::mono, pass).x + px(12);
    draw_text_middle(list, right, middle, Type::mono, t.text3, pass);
  }
  const float room = right - px(12) - left;
  if (!play.slow_motion) {
    const size_t emitted = shown.record->emitted.size();
    const std::vector<CaptionPart> whole = tree_caption(shown.model, shown.labels, emitted);
    draw_parts(list, {left, middle}, room, parts_width(whole) <= room ? whole : brief_caption(shown.model, emitted));
    return;
  }
  const auto phase = static_cast<size_t>(play.phase);
  const std::string number = std::to_string(phase + 1), title(phase_texts()[phase].name);
  list->AddCircleFilled({left + px(11), middle}, px(11), t.accent_bg);
  draw_text_middle(list, left + px(11) - text_size(Type::mono_semibold, number).x * 0.5f, middle, Type::mono_semibold,
                   t.accent_text, number);
  draw_text_middle(list, left + px(30), middle, Type::title, t.text, title);
  const float x = left + px(30) + text_size(Type::title, title).x + px(14);
  const std::string words = phase_sentence(play.phase, shown.record->emitted.size());
  const float line_room = right - px(12) - x;
  const std::string_view first = first_line(Type::base, words, line_room);
  if (first.size() == words.size() || size.y < px(36)) {
    draw_text_middle(list, x, middle, Type::base, t.text2, elided(Type::base, words, line_room));
    return;
  }
  draw_text_middle(list, x, middle - px(9), Type::base, t.text2, first);
  draw_text_middle(list, x, middle + px(8), Type::base, t.text2,
                   elided(Type::base, std::string_view(words).substr(first.size() + 1), line_room));
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
