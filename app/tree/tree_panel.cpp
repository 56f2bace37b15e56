#include "app/tree/tree_panel.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "app/tree/tree_model.h"
#include "app/tree/tree_overlays.h"
#include "app/ui/look.h"
#include "app/ui/widgets.h"
#include "engine/trace/round_statistics.h"

namespace canopy::app {
namespace {

constexpr float kHeader = 44, kFooter = 32, kMargin = 14, kTools = 28 * 2 + 4;

/// Draws texts and figures in a line from left to right; leaves out what does not fit.
class Line {
 public:
  Line(ImDrawList* list, ImVec2 pos, float right) : list_(list), x_(pos.x), y_(pos.y), right_(right) {}

  struct Part {
    Type type;
    Colour colour;
    std::string words;
  };
  bool put(float gap, std::initializer_list<Part> parts) {
    float width = gap;
    for (const Part& part : parts) width += text_size(part.type, part.words).x + px(5);
    if (full_ || x_ + width > right_) {
      full_ = true;
      return false;
    }
    x_ += gap;
    for (const Part& part : parts) {
      draw_text_middle(list_, x_, y_, part.type, part.colour, part.words);
      x_ += text_size(part.type, part.words).x + px(5);
    }
    return true;
  }
  void badge(const char* words, bool on) {
    const Theme& t = colours();
    const float width = text_size(Type::secondary, words).x + px(14);
    if (full_ || x_ + px(12) + width > right_) return;
    x_ += px(10);
    list_->AddRectFilled({x_, y_ - px(10)}, {x_ + width, y_ + px(10)}, on ? t.accent_bg : t.raised, px(4));
    draw_text_middle(list_, x_ + px(7), y_, Type::secondary, on ? t.accent_text : t.text2, words);
    x_ += width;
  }
  void skip(float width) { x_ += width; }
  float x() const { return x_; }

 private:
  ImDrawList* list_;
  float x_, y_, right_;
  bool full_ = false;
};

/// Where the shown round comes from, so that measured and replayed numbers can be told apart.
const char* origin_words(const RoundsState& rounds) {
  if (!rounds.log->is_live()) return "replayed";
  return is_live(rounds) ? "live" : "measured";
}

std::string chain_words(const ChainEstimate& chain) {
  return std::string("a chain would have emitted ") + (chain.at_least ? "at least " : "") +
         std::to_string(chain.emitted);
}

struct Count {
  NodeFate fate;
  const char* words;
};
constexpr Count kCounts[] = {{NodeFate::accepted, "Accepted"},
                             {NodeFate::rejected, "Rejected at the frontier"},
                             {NodeFate::not_reached, "Not reached"},
                             {NodeFate::bonus, "Bonus"}};

constexpr const char* kFoundWords = "found in the text";

/// What the filled corners and the square ones say; empty where there are none.
std::string found_sentence(const TreeModel& tree) {
  if (tree.found == 0) return "";
  if (tree.asked_text_alone()) return "\nAll of them stood behind the same words before: no drafter was asked.";
  const auto both = std::ranges::count(tree.nodes, kUsualSources, &TreeNodeView::sources);
  return "\nA filled corner: it stood behind the same words before, as " + grouped(tree.found) +
         " of them did. The drafter guessed " + grouped(static_cast<uint64_t>(both)) +
         " of these too; the others have square corners.";
}

}  // namespace

void TreePanel::draw(const ViewModel& view, CommandSink& sink) {
  const RoundsState& rounds = view.rounds;
  const ImVec2 pos = ImGui::GetCursorScreenPos(), size = ImGui::GetContentRegionAvail();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool strip = rounds.playback.slow_motion && rounds.shown() != nullptr;
  const float above = px(kHeader) + (strip ? px(kPhaseStrip) : 0), below = px(kFooter);
  const ImVec2 canvas = {pos.x, pos.y + above}, room = {size.x, std::max(px(1), size.y - above - below)};
  list->AddRectFilled(canvas, {canvas.x + room.x, canvas.y + room.y}, colours().canvas);
  canvas_.draw(rounds, canvas, room, sink);
  if (!rounds.shown()) {
    draw_empty(view, canvas, room, sink);
    return;
  }
  draw_header(rounds, pos, size.x);
  draw_tools({pos.x + size.x - px(kMargin) - px(kTools), pos.y + px(8)}, size.x);
  if (strip)
    draw_phases(list, {pos.x + px(kMargin), pos.y + px(kHeader) + px(2)}, size.x - px(kMargin) * 2,
                rounds.playback.phase, rounds.playback.progress, canvas_.shown());
  draw_footer({pos.x, pos.y + size.y - below}, size.x);
  ImGui::SetCursorScreenPos(pos);
  ImGui::Dummy(size);
}

void TreePanel::draw_header(const RoundsState& rounds, ImVec2 pos, float width) {
  const Theme& t = colours();
  const ShownTree& shown = canvas_.shown();
  const RoundRecord& record = *shown.record;
  const uint32_t accepted = shown.model.counted(NodeFate::accepted);
  Line line(ImGui::GetWindowDrawList(), {pos.x + px(kMargin), pos.y + px(kHeader) * 0.5f},
            pos.x + width - px(kMargin) - px(kTools) - px(12));
  line.put(0, {{Type::title, t.text, "Pass " + grouped(shown.round + 1)}});
  line.badge(origin_words(rounds), is_live(rounds));
  const float gap = px(10);
  line.put(gap, {{Type::mono_semibold, t.text, grouped(record.width - 1)},
                 {Type::base, t.text2, record.width == 2 ? "guess" : "guesses"}});
  line.put(gap, {{Type::mono_semibold, t.accepted_text, std::to_string(accepted)}, {Type::base, t.text2, "accepted"}});
  line.put(gap,
           {{Type::mono_semibold, t.text, std::to_string(record.emitted.size())}, {Type::base, t.text2, "emitted"}});
  line.put(gap, {{Type::mono, t.text2, milliseconds(record.ms.total())}});
  if (!shown.model.bonus && record.width > 1) line.put(gap, {{Type::base, t.text3, "the reply ended inside the tree"}});
  if (shown.model.asked_text_alone()) line.put(gap, {{Type::base, t.text3, "from the text, no drafter asked"}});
  if (const auto chain = chain_estimate(record, shown.model))
    line.put(gap, {{Type::base, t.text3, chain_words(*chain)}});
  if (record.width == 1) line.put(gap, {{Type::base, t.text3, "plain decoding"}});
  if (record.shape == DecodeMode::chain) line.put(gap, {{Type::base, t.text3, "guessed as a chain"}});
}

void TreePanel::draw_tools(ImVec2 pos, float) {
  ButtonSpec find{"Find accepted", Icon::find}, whole{"Fit", Icon::fit};
  for (ButtonSpec* spec : {&find, &whole}) spec->show_label = false;
  find.tooltip = letters_are_typed() ? "Find the accepted path  Alt+A" : "Find the accepted path  A";
  whole.tooltip = letters_are_typed() ? "All of the tree  Alt+F" : "All of the tree  F";
  ImGui::SetCursorScreenPos(pos);
  if (button(find)) canvas_.find_accepted();
  ImGui::SameLine(0, px(4));
  if (button(whole)) canvas_.fit();
}

void TreePanel::draw_footer(ImVec2 pos, float width) const {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = pos.y + px(kFooter) * 0.5f;
  Line line(list, {pos.x + px(kMargin), middle}, pos.x + width - px(kMargin));
  const bool plain = canvas_.shown().model.is_plain();
  for (Count each : kCounts) {
    if (plain && each.fate != NodeFate::bonus) continue;
    if (plain) each.words = "Big model\u2019s own";
    const std::string count = grouped(canvas_.shown().model.counted(each.fate));
    const float badge_x = line.x() + px(6);
    line.skip(px(17));
    const bool drawn = line.put(0, {{Type::secondary, t.text2, each.words}, {Type::mono, t.text, count}});
    if (drawn) draw_fate_badge(list, each.fate, {badge_x, middle}, px(each.fate == NodeFate::bonus ? 5 : 6), t.panel);
    line.skip(px(13));
  }
  const TreeModel& tree = canvas_.shown().model;
  if (tree.found > 0) {
    const ImVec2 sign = {line.x() + px(6), middle};
    line.skip(px(17));
    if (line.put(0, {{Type::secondary, t.text2, kFoundWords}, {Type::mono, t.text, grouped(tree.found)}}))
      draw_found_sign(list, sign, px(6), t.text2);
    line.skip(px(13));
  }
  const std::string key = thickness_words(tree.sources);
  const float key_x = pos.x + width - px(kMargin) - text_size(Type::caption, key).x;
  if (key_x > line.x() + px(8)) draw_text_middle(list, key_x, middle, Type::caption, t.text3, key);
  ImGui::SetCursorScreenPos({pos.x + px(kMargin), pos.y});
  ImGui::InvisibleButton("States", {std::max(px(1), line.x() - pos.x - px(kMargin)), px(kFooter)});
  if (plain) return tooltip("Nothing was guessed: plain decoding takes one token from each pass.");
  const uint32_t drafted = canvas_.shown().record->width - 1;
  const std::string sum = grouped(tree.counted(NodeFate::accepted)) + " + " +
                          grouped(tree.counted(NodeFate::rejected)) + " + " +
                          grouped(tree.counted(NodeFate::not_reached)) + " = " + grouped(drafted) +
                          " guesses, N in papers. The bonus is the big model's own token, no guess.";
  tooltip((sum + found_sentence(tree)).c_str());
}

void TreePanel::draw_empty(const ViewModel& view, ImVec2 pos, ImVec2 size, CommandSink& sink) const {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool none = view.rounds.log->rounds() == 0;
  const std::string words =
      none ? "No pass yet. Send a message or watch the demo." : "The tree of this pass was let go for memory.";
  const ImVec2 centre = {pos.x + size.x * 0.5f, pos.y + size.y * 0.5f};
  draw_icon(list, Icon::branch, {centre.x, centre.y - px(44)}, px(32), t.text3);
  const float width = text_size(Type::base, words).x;
  draw_text_middle(list, centre.x - width * 0.5f, centre.y - px(8), Type::base, t.text2, words);
  if (!none) return;
  ButtonSpec demo{"Watch demo", Icon::none, ButtonKind::line};
  const ImVec2 wanted = button_size(demo);
  ImGui::SetCursorScreenPos({std::floor(centre.x - wanted.x * 0.5f), std::floor(centre.y + px(12))});
  if (button(demo)) sink.post(RoundsCommand(WatchDemo{}));
}

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

/// In plain decoding the big model's token is no addition to anything.
constexpr const char* kOwnWords = "big model\u2019s own";

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

/// ", 57.3 ms": what this one pass took, its guessing included; empty where that is not known.
std::string pass_time_words(const RoundRecord& record, std::string_view times) {
  if (record.ms.total() <= 0) return "";
  return ", " + milliseconds(record.ms.total()) + (times.empty() ? "" : " " + std::string(times));
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
  if (take_press("Fit")) canvas_.fit();
  if (take_press("Find accepted")) canvas_.find_accepted();
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
  if (right - left > px(kRoomForNumber)) {
    const std::string pass = "pass " + grouped(canvas_.shown().round + 1);
    const std::string took = pass_time_words(*canvas_.shown().record, rounds.log->times());
    right -= text_size(Type::mono, pass + took).x + px(12);  // also before its time is told, so that nothing moves
    draw_text_middle(ImGui::GetWindowDrawList(), right, middle, Type::mono, t.text3,
                     play.checked() ? pass + took : pass);
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
  draw_text_middle(list, caption.x + px(30), middle, Type::title, t.text, phase_name(phase, canvas_.shown().model));
  const float beside = caption.x + px(30) + title + px(14), below_width = canvas.z - px(kCaptionMargin) * 2;
  const auto lines_at = [&](Type type, float width) {
    size_t most = 0;
    for (size_t i = 0; i < kPhases; ++i) {
      TextBlock block;
      block.layout(phase_sentence(static_cast<Phase>(i), emitted, canvas_.shown().model), type, width);
      most = std::max(most, block.line_count());
    }
    return most;
  };
  const std::string words = phase_sentence(phase, emitted, canvas_.shown().model);
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
  const bool is_plain = canvas_.shown().record && canvas_.shown().record->shape == DecodeMode::ar;
  const TreeReveal now =
      reveal(tree, play.slow_motion ? play.phase : Phase::commit, play.slow_motion ? play.progress : 1);
  const auto count = told(tree, now);
  const float middle = pos.y + size.y * 0.5f;
  float x = pos.x + px(kCaptionMargin);
  for (LegendEntry entry : kLegend) {
    if (entry.fate == NodeFate::bonus && is_plain) entry.words = kOwnWords;
    const std::string figure = grouped(count[static_cast<size_t>(entry.fate)]);
    const float words = text_size(Type::secondary, entry.words).x, number = text_size(Type::mono, figure).x;
    if (x + px(18) + words + px(6) + number > pos.x + size.x) return;
    draw_fate_badge(list, entry.fate, {x + px(6), middle}, px(entry.fate == NodeFate::bonus ? 5 : 6), t.canvas);
    draw_text_middle(list, x + px(18), middle, Type::secondary, t.text2, entry.words);
    term_area(entry.words, {x + px(18), middle - px(9)}, {x + px(18) + words, middle + px(9)});
    draw_text_middle(list, x + px(18) + words + px(6), middle, Type::mono, t.text, figure);
    x += px(18) + words + px(6) + number + px(18);
  }
  if (tree.found > 0) {
    uint32_t found = 0;  // of those that are there by now
    for (uint32_t i = 0; i < tree.size(); ++i) found += is_found(tree.nodes[i]) && now.nodes[i].shown > 0 ? 1 : 0;
    const std::string figure = grouped(found);
    const float words = text_size(Type::secondary, kFoundWords).x, number = text_size(Type::mono, figure).x;
    if (x + px(18) + words + px(6) + number > pos.x + size.x) return;
    draw_found_sign(list, {x + px(6), middle}, px(6), t.text2);
    draw_text_middle(list, x + px(18), middle, Type::secondary, t.text2, kFoundWords);
    term_area(kFoundWords, {x + px(18), middle - px(9)}, {x + px(18) + words, middle + px(9)});
    draw_text_middle(list, x + px(18) + words + px(6), middle, Type::mono, t.text, figure);
    x += px(18) + words + px(6) + number + px(18);
  }
  const bool tufts = !canvas_.geometry().tufts.empty();
  const std::string shorter = thickness_words(tree.sources);
  const std::string key = shorter + (tufts ? " \u00b7 tufts: more guesses, hover to unfold" : "");
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
