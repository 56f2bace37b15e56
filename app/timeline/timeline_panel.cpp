#include "app/timeline/timeline_panel.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "app/look/dash.h"
#include "app/look/widgets.h"
#include "app/timeline/record_box.h"
#include "app/timeline/transport.h"

namespace canopy::app {
namespace {

constexpr float kMargin = 12, kTop = 14;
constexpr float kRecordingTop = 62;  // top of the third row of controls
constexpr float kTicks = 22;         // room for figures left of the bars
constexpr float kNames = 66;         // room for text right of them
constexpr float kAbove = 42;         // height of the highest bar over the axis
constexpr float kBelow = 20;         // height of the largest N below the axis
constexpr float kAxis = 66;          // from the top of the panel to the axis
constexpr float kBonusCap = 2.5f;
constexpr float kWheelStep = 1.25f;
constexpr float kLeastPlot = 120;
constexpr float kHeight = 92;  // of the strip
constexpr float kLeastHeight = 36;
constexpr float kButtons = 50;  // from the top of the panel to the strip that is under the buttons

/// The drawing area in pixels and the scale of each axis.
struct Plot {
  ImDrawList* list;
  ImVec2 pos, size;
  float axis;     // y of the line between emitted tokens and widths
  float emitted;  // pixels per token
  float drafted;  // pixels per drafted node
  float scale;    // height, in heights of the strip
  float x(double at) const { return pos.x + px(1) * static_cast<float>(at); }
};

void draw_grid(const Plot& plot, uint32_t most) {
  const Theme& t = colours();
  const uint32_t step = most <= 16 ? 8 : (most + 15) / 16 * 8;
  for (uint32_t value = step; value <= 2 * step; value += step) {
    const float y = std::floor(plot.axis - static_cast<float>(value) * plot.emitted) + 0.5f;
    plot.list->AddLine({plot.pos.x, y}, {plot.pos.x + plot.size.x, y}, t.grid);
    const std::string words = std::to_string(value);
    draw_text_middle(plot.list, plot.pos.x - px(6) - text_size(Type::mono_caption, words).x, y, Type::mono_caption,
                     t.text3, words);
  }
  const float y = std::floor(plot.axis) + 0.5f;
  plot.list->AddLine({plot.pos.x, y}, {plot.pos.x + plot.size.x, y}, t.line);
}

void draw_column(const Plot& plot, const TimelineColumn& column) {
  const Theme& t = colours();
  const float a = std::floor(plot.x(column.x)), b = std::max(a + 1, std::floor(plot.x(column.x + column.width)));
  const auto up = [&](double tokens) { return plot.axis - plot.emitted * static_cast<float>(tokens); };
  const float cap = std::min(px(kBonusCap), plot.emitted);
  const auto own = static_cast<double>(column.most_emitted - std::min(column.most_accepted, column.most_emitted));
  if (column.rounds == 1) {
    const float top = up(column.most_emitted - own);
    plot.list->AddRectFilled({a, top}, {b, plot.axis}, t.accepted);
    if (own > 0) plot.list->AddRectFilled({a, top - px(0.5f) - cap}, {b, top - px(0.5f)}, t.bonus);
  } else {
    // The means as a filled bar, accepted below the target's own; behind it the round that emitted the most, paler.
    const float most = up(column.most_accepted), mean = up(column.mean_accepted);
    plot.list->AddRectFilled({a, most}, {b, plot.axis}, with_alpha(t.accepted, 0.35f));
    plot.list->AddRectFilled({a, up(column.most_emitted)}, {b, most}, with_alpha(t.bonus, 0.35f));
    plot.list->AddRectFilled({a, mean}, {b, plot.axis}, t.accepted);
    plot.list->AddRectFilled({a, std::min(mean - 1, up(column.mean_emitted))}, {b, mean}, t.bonus);
  }
  const float below = plot.axis + px(3);
  plot.list->AddRectFilled({a, below}, {b, below + plot.drafted * static_cast<float>(column.most_drafted)}, t.rest);
}

/// Draws a dotted line before each reply, and its number if there is room.
void draw_replies(const Plot& plot, const RoundLog& log, const TimelineView& at) {
  const Theme& t = colours();
  float free_from = plot.pos.x;
  for (size_t i = 0; i < log.replies().size(); ++i) {
    const ReplySummary& reply = log.replies()[i];
    if (reply.rounds == 0) continue;
    const float x = std::floor(plot.x(at.x_of(reply.first_round)) - px(3)) + 0.5f;
    if (x > plot.pos.x + plot.size.x) break;
    if (x < plot.pos.x - px(4)) continue;
    const ImVec2 line[] = {{x, plot.pos.y + px(4)}, {x, plot.axis + px(26) * plot.scale}};
    if (x >= free_from || i == 0) add_dashed(plot.list, line, {px(2), px(3)}, t.ctl, px(1));
    const std::string words = "reply " + std::to_string(i + 1);
    const float width = text_size(Type::caption, words).x;
    if (x < free_from || x + px(4) + width > plot.pos.x + plot.size.x) continue;
    draw_text_middle(plot.list, x + px(4), plot.pos.y + px(8), Type::caption, t.text3, words);
    free_from = x + px(8) + width;
  }
}

void draw_shown(const Plot& plot, const TimelineView& at, size_t shown) {
  const float a = plot.x(at.x_of(shown)), b = a + std::max(px(2), px(1) * static_cast<float>(at.pitch));
  const float gap = std::clamp(px(1) * static_cast<float>(at.pitch) / 3, px(1), px(5));
  plot.list->AddRect({a - px(2.5f), plot.pos.y + px(16) * plot.scale},
                     {b - gap + px(2.5f), plot.axis + px(27) * plot.scale}, colours().text, px(2), px(1.5f));
}

std::string words_of(const RoundLog& log, size_t index) {
  const RoundSummary& round = log.summary(index);
  const ReplySummary& reply = log.replies()[round.reply];
  std::string words = "Round " + grouped(index - reply.first_round + 1) + " of reply " + grouped(round.reply + 1) +
                      ", " + (log.is_live() ? "measured" : "replayed") + "\n" + grouped(round.accepted) +
                      " accepted, " + grouped(round.emitted) + " emitted, N " + grouped(round.width - 1) + ", " +
                      milliseconds(round.ms.total());
  if (round.cut) words += "\nThe reply ended inside this tree: how far it was right is not known.";
  return words;
}

}  // namespace

void TimelinePanel::catch_up(const RoundsState& rounds) {
  if (log_.lock() != rounds.log) {
    log_ = rounds.log;
    scale_ = {};
    counted_ = 0;
    zoom_ = {};
  }
  for (; counted_ < rounds.log->rounds(); ++counted_) scale_.include(rounds.log->summary(counted_));
}

void TimelinePanel::draw(const ViewModel& view, CommandSink& sink) {
  const RoundsState& rounds = view.rounds;
  catch_up(rounds);
  handle_transport_keys(rounds, sink);
  const ImVec2 pos = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  ImGui::SetCursorScreenPos({pos.x + px(kMargin), pos.y + px(kTop)});
  const float controls = std::min(px(kTransportWidth), room.x - 2 * px(kMargin));
  const float left = px(kMargin + kTransportWidth + 16 + kTicks), width = room.x - left - px(kNames);
  const bool beside = width >= px(kLeastPlot);
  draw_transport(rounds, sink, controls, !beside);
  if (!beside) {
    // Too narrow for both: the strip is what the panel is for, so of the controls only the buttons stay, above it.
    const float indent = px(kMargin + kTicks), height = std::min(px(kHeight), room.y - px(kButtons) - px(4));
    if (height >= px(kLeastHeight) && room.x > indent + px(kMargin + 40))
      draw_plot(rounds, sink, {std::floor(pos.x + indent), pos.y + px(kButtons)},
                {room.x - indent - px(kMargin), height});
    return;
  }
  ImGui::SetCursorScreenPos({pos.x + px(kMargin), pos.y + px(kTop + kRecordingTop)});
  draw_recording_row(view, sink, controls);
  draw_plot(rounds, sink, {std::floor(pos.x + left), pos.y + px(8)}, {width, px(kHeight)});
}

void TimelinePanel::draw_plot(const RoundsState& rounds, CommandSink& sink, ImVec2 pos, ImVec2 size) {
  const Theme& t = colours();
  const RoundLog& log = *rounds.log;
  const float scale = size.y / px(kHeight);
  Plot plot{ImGui::GetWindowDrawList(), pos, size, std::floor(pos.y + px(kAxis - 8) * scale), 0, 0, scale};
  plot.emitted = px(kAbove) * scale / static_cast<float>(scale_.emitted + 1);
  plot.drafted = px(kBelow) * plot.scale / static_cast<float>(scale_.drafted);
  draw_grid(plot, scale_.emitted);
  if (scale == 1) {  // a smaller strip has no room right of it
    draw_text_middle(plot.list, pos.x + size.x + px(8), plot.axis - px(14), Type::caption, t.text3, "tokens");
    draw_text_middle(plot.list, pos.x + size.x + px(8), plot.axis + px(11), Type::caption, t.text3, "N drafted");
  }
  const double inner = size.x / px(1);
  if (log.rounds() == 0) {
    draw_text_middle(plot.list, pos.x + px(8), plot.axis - px(20), Type::secondary, t.text3, "No round yet");
    return;
  }
  const TimelineView at = timeline_view(zoom_, log.rounds(), rounds.playback.shown, inner);
  if (zoom_.pitch) zoom_.first = at.first;
  plot.list->PushClipRect({pos.x - px(4), pos.y}, {pos.x + size.x + px(4), pos.y + size.y}, true);
  draw_replies(plot, log, at);
  for (const TimelineColumn& column : timeline_columns(log, at, inner)) draw_column(plot, column);
  draw_shown(plot, at, rounds.playback.shown);
  plot.list->PopClipRect();
  take_mouse(rounds, at, sink, pos, size);
}

void TimelinePanel::take_mouse(const RoundsState& rounds, const TimelineView& at, CommandSink& sink, ImVec2 pos,
                               ImVec2 size) {
  ImGui::SetCursorScreenPos(pos);
  ImGui::InvisibleButton("Rounds", size, ImGuiButtonFlags_EnableNav);
  ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);
  const double x = (ImGui::GetIO().MousePos.x - pos.x) / px(1), inner = size.x / px(1);
  const size_t count = rounds.log->rounds(), under = round_at(at, x, count);
  const bool by_mouse = ImGui::IsItemActive() && ImGui::IsMouseDown(ImGuiMouseButton_Left);
  if (by_mouse && (under != rounds.playback.shown || rounds.playback.state != PlayState::paused))
    sink.post(RoundsCommand(ShowRound{under}));
  if (!ImGui::IsItemHovered()) return;
  const ImGuiIO& io = ImGui::GetIO();
  if (io.MouseWheel != 0 && io.KeyShift) zoom_ = moved(at, -60.0 * io.MouseWheel);
  if (io.MouseWheel != 0 && !io.KeyShift) zoom_ = zoomed(at, std::pow(kWheelStep, io.MouseWheel), x, count, inner);
  if (io.MouseWheelH != 0) zoom_ = moved(at, -60.0 * io.MouseWheelH);
  if (x >= 0 && x < (static_cast<double>(count) - at.first) * at.pitch) tooltip(words_of(*rounds.log, under).c_str());
}

}  // namespace canopy::app
