#include "app/tree/tree_panel.h"

#include <algorithm>
#include <cmath>

#include "app/look/widgets.h"
#include "app/tree/tree_overlays.h"
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
                rounds.playback.phase, rounds.playback.progress, canvas_.shown().record->emitted.size());
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
  line.put(0, {{Type::title, t.text, "Round " + grouped(shown.round + 1)}});
  line.badge(origin_words(rounds), is_live(rounds));
  const float gap = px(10);
  line.put(gap, {{Type::mono, t.text2, "N"}, {Type::mono_semibold, t.text, grouped(record.width - 1)}});
  line.put(gap, {{Type::mono_semibold, t.accepted_text, std::to_string(accepted)}, {Type::base, t.text2, "accepted"}});
  line.put(gap,
           {{Type::mono_semibold, t.text, std::to_string(record.emitted.size())}, {Type::base, t.text2, "emitted"}});
  line.put(gap, {{Type::mono, t.text2, milliseconds(record.ms.total())}});
  if (!shown.model.bonus && record.width > 1) line.put(gap, {{Type::base, t.text3, "the reply ended inside the tree"}});
  if (const auto chain = chain_estimate(record, shown.model))
    line.put(gap, {{Type::base, t.text3, chain_words(*chain)}});
  if (record.width == 1) line.put(gap, {{Type::base, t.text3, "nothing drafted: plain decoding"}});
  if (record.shape == DecodeMode::chain) line.put(gap, {{Type::base, t.text3, "drafted as a chain"}});
}

void TreePanel::draw_tools(ImVec2 pos, float) {
  ButtonSpec find{"Find accepted", Icon::find}, whole{"Fit", Icon::fit};
  for (ButtonSpec* spec : {&find, &whole}) spec->show_label = false;
  find.tooltip = "Find the accepted path  A";
  whole.tooltip = "All of the tree  F";
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
  for (const Count& each : kCounts) {
    const std::string count = grouped(canvas_.shown().model.counted(each.fate));
    const float badge_x = line.x() + px(6);
    line.skip(px(17));
    const bool drawn = line.put(0, {{Type::secondary, t.text2, each.words}, {Type::mono, t.text, count}});
    if (drawn) draw_fate_badge(list, each.fate, {badge_x, middle}, px(each.fate == NodeFate::bonus ? 5 : 6), t.panel);
    line.skip(px(13));
  }
  const std::string key = "branch thickness: how sure the drafter was";
  const float key_x = pos.x + width - px(kMargin) - text_size(Type::caption, key).x;
  if (key_x > line.x() + px(8)) draw_text_middle(list, key_x, middle, Type::caption, t.text3, key);
  ImGui::SetCursorScreenPos({pos.x + px(kMargin), pos.y});
  ImGui::InvisibleButton("States", {std::max(px(1), line.x() - pos.x - px(kMargin)), px(kFooter)});
  const TreeModel& tree = canvas_.shown().model;
  const uint32_t drafted = canvas_.shown().record->width - 1;
  const std::string sum = grouped(tree.counted(NodeFate::accepted)) + " + " +
                          grouped(tree.counted(NodeFate::rejected)) + " + " +
                          grouped(tree.counted(NodeFate::not_reached)) + " = " + grouped(drafted) +
                          " drafted, which is N. The bonus is the target's own token and was not drafted.";
  tooltip(sum.c_str());
}

void TreePanel::draw_empty(const ViewModel& view, ImVec2 pos, ImVec2 size, CommandSink& sink) const {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool none = view.rounds.log->rounds() == 0;
  const std::string words =
      none ? "No round yet. Send a message or watch the demo." : "The tree of this round was let go for memory.";
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

}  // namespace canopy::app
