#include "app/charts/timeline_panel.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "app/charts/transport.h"
#include "app/ui/shapes.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

constexpr double kBarGap = 5;    // between bars at kRoundPitch
constexpr double kSmallGap = 1;  // between the narrowest bars
constexpr double kLeastPitch = 1e-4;

double fitting_pitch(size_t rounds, double width) {
  return std::clamp(width / static_cast<double>(std::max<size_t>(rounds, 1)), kLeastPitch, kRoundPitch);
}

/// The width of a bar. The gap shrinks with the pitch, so that a bar is never thinner than 2 pixels.
double bar_width(double pitch) {
  const double gap = std::clamp(pitch / kRoundPitch * kBarGap, kSmallGap, kBarGap);
  return std::max(2.0, pitch - gap);
}

/// N, the drafted nodes of a round.
uint32_t drafted_of(const RoundSummary& round) {
  return round.width - std::min(round.width, 1u);
}

TimelineColumn column_of(const RoundLog& log, size_t first, size_t rounds) {
  TimelineColumn column;
  column.first = first;
  column.rounds = rounds;
  uint64_t emitted = 0, accepted = 0;
  for (size_t i = first; i < first + rounds; ++i) {
    const RoundSummary& round = log.summary(i);
    emitted += round.emitted;
    accepted += std::min(round.accepted, round.emitted);
    column.from_text += round.sources == kFromSuffix ? 1 : 0;
    if (round.emitted > column.most_emitted) {
      column.most_emitted = round.emitted;
      column.most_accepted = round.accepted;
    }
    column.most_drafted = std::max(column.most_drafted, drafted_of(round));
  }
  column.mean_emitted = static_cast<double>(emitted) / static_cast<double>(rounds);
  column.mean_accepted = static_cast<double>(accepted) / static_cast<double>(rounds);
  return column;
}

}  // namespace

TimelineView timeline_view(const TimelineZoom& zoom, size_t rounds, size_t shown, double width) {
  TimelineView view;
  view.pitch = zoom.pitch.value_or(fitting_pitch(rounds, width));
  const double seen = width / view.pitch;  // number of rounds that fit
  double first = zoom.pitch ? zoom.first : 0;
  const auto at = static_cast<double>(shown);
  if (at < first) first = at;
  if (at + 1 > first + seen) first = at + 1 - seen;
  view.first = std::clamp(first, 0.0, std::max(0.0, static_cast<double>(rounds) - seen));
  return view;
}

TimelineZoom zoomed(const TimelineView& view, double factor, double x, size_t rounds, double width) {
  const double least = fitting_pitch(rounds, width);
  const double pitch = std::clamp(view.pitch * factor, least, kWidestPitch);
  if (factor < 1 && pitch <= least) return {};
  const double under = view.first + x / view.pitch;
  return {pitch, under - x / pitch};
}

TimelineZoom moved(const TimelineView& view, double pixels) {
  return {view.pitch, view.first + pixels / view.pitch};
}

size_t round_at(const TimelineView& view, double x, size_t rounds) {
  const double round = std::floor(view.first + x / view.pitch);
  return static_cast<size_t>(std::clamp(round, 0.0, static_cast<double>(rounds - 1)));
}

std::vector<TimelineColumn> timeline_columns(const RoundLog& log, const TimelineView& view, double width) {
  std::vector<TimelineColumn> columns;
  if (log.rounds() == 0) return columns;
  const auto each = static_cast<size_t>(std::max(1.0, std::ceil(kNarrowestPitch / view.pitch - 1e-9)));
  const double pitch = view.pitch * static_cast<double>(each);
  const size_t from = static_cast<size_t>(std::max(0.0, view.first)) / each * each;
  for (size_t first = from; first < log.rounds(); first += each) {
    const double x = view.x_of(first);
    if (x >= width) break;
    columns.push_back(column_of(log, first, std::min(each, log.rounds() - first)));
    columns.back().x = x;
    columns.back().width = bar_width(pitch);
  }
  return columns;
}

void TimelineScale::include(const RoundSummary& round) {
  emitted = std::max(emitted, round.emitted);
  drafted = std::max(drafted, drafted_of(round));
}

namespace {

constexpr float kMargin = 12, kTop = 14;
constexpr float kRecordingTop = 62;  // top of the third row of controls
constexpr float kTicks = 22;         // room for figures left of the bars
constexpr float kNames = 66;         // room for text right of them
constexpr float kAbove = 42;         // height of the highest bar over the axis
constexpr float kBelow = 20;         // height of the largest N below the axis
constexpr float kTextTick = 25;      // from the axis to the lines below rounds whose guesses are from the text alone
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
  const float tick = plot.axis + px(kTextTick) * plot.scale;
  if (column.is_from_text()) plot.list->AddRectFilled({a, tick - px(1)}, {b, tick + px(1)}, t.text2);
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
  std::string words = "Pass " + grouped(index - reply.first_round + 1) + " of reply " + grouped(round.reply + 1) +
                      ", " + (log.is_live() ? "measured" : "replayed") + "\n" + grouped(round.accepted) +
                      " accepted, " + grouped(round.emitted) + " emitted, of " +
                      counted(round.width - 1, "guess", "guesses") + ", " + milliseconds(round.ms.total());
  if (round.cut) words += "\nThe reply ended inside this tree: how far it was right is not known.";
  if (round.sources == kFromSuffix)
    words += "\nGuessed from the text alone: its last " +
             (round.match == 1 ? "token" : grouped(round.match) + " tokens") + (round.match == 1 ? " was" : " were") +
             " written before.";
  if (round.sources == kUsualSources) words += "\nGuessed by the drafter and from the text.";
  return words;
}

/// Whether some bars have the line that marks guesses from the text alone.
bool has_ticks(const RoundLog& log) {
  return log.statistics().rounds_by(kFromSuffix) > 0;
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
                {room.x - indent - px(kMargin), height}, false);
    return;
  }
  ImGui::SetCursorScreenPos({pos.x + px(kMargin), pos.y + px(kTop + kRecordingTop)});
  draw_recording_row(view, sink, controls);
  draw_plot(rounds, sink, {std::floor(pos.x + left), pos.y + px(8)}, {width, px(kHeight)}, true);
}

void TimelinePanel::draw_plot(const RoundsState& rounds, CommandSink& sink, ImVec2 pos, ImVec2 size, bool named) {
  const Theme& t = colours();
  const RoundLog& log = *rounds.log;
  const float scale = size.y / px(kHeight);
  Plot plot{ImGui::GetWindowDrawList(), pos, size, std::floor(pos.y + px(kAxis - 8) * scale), 0, 0, scale};
  plot.emitted = px(kAbove) * scale / static_cast<float>(scale_.emitted + 1);
  plot.drafted = px(kBelow) * plot.scale / static_cast<float>(scale_.drafted);
  draw_grid(plot, scale_.emitted);
  if (named) {
    draw_text_middle(plot.list, pos.x + size.x + px(8), plot.axis - px(14), Type::caption, t.text3, "tokens");
    draw_text_middle(plot.list, pos.x + size.x + px(8), plot.axis + px(11), Type::caption, t.text3, "guesses");
    if (has_ticks(log))
      draw_text_middle(plot.list, pos.x + size.x + px(8), plot.axis + px(kTextTick), Type::caption, t.text3,
                       "text alone");
  }
  const double inner = size.x / px(1);
  if (log.rounds() == 0) {
    draw_text_middle(plot.list, pos.x + px(8), plot.axis - px(20), Type::secondary, t.text3, "No pass yet");
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

namespace {

constexpr float kStripMargin = 12, kControlsWidth = 288, kTwoRows = 70, kLeastBars = 160, kStripKey = 168;

bool round_button(const char* label, Icon icon, bool enabled, const char* what, ButtonKind kind = ButtonKind::line) {
  ButtonSpec spec{label, icon, kind};
  spec.show_label = false;
  spec.enabled = enabled;
  spec.tooltip = what;
  const bool pressed = button(spec);
  ImGui::SameLine(0, px(6));
  return pressed;
}

void draw_strip_buttons(const RoundsState& rounds, CommandSink& sink) {
  const auto post = [&](RoundsCommand command) { sink.post(UiCommand(std::move(command))); };
  const Playback& play = rounds.playback;
  const bool any = rounds.log->rounds() > 0, paused = play.state == PlayState::paused;
  if (round_button("First pass", Icon::first, any, "First pass  Home")) post(ShowRound{0});
  if (round_button("Previous pass", Icon::previous, any, "Previous pass  F7")) post(StepRound{-1});
  if (round_button("Pause or go on", paused ? Icon::play : Icon::pause, any,
                   paused ? "Go on  F6" : "Pause the view; the model goes on  F6", ButtonKind::primary))
    post(TogglePause{});
  if (round_button("Next pass", Icon::next, any, "Next pass  F8")) post(StepRound{1});
  ButtonSpec slow{"Slow motion", play.slow_motion ? Icon::check : Icon::none};
  slow.on = play.slow_motion;
  slow.enabled = any;
  slow.tooltip = "Each pass in six steps, with a sentence for each  F9";
  if (button(slow)) post(SetSlowMotion{!play.slow_motion});
}

/// Whether rounds of more than one reply are there, so that a pass belongs to one of them.
bool has_several(const RoundLog& log) {
  return std::ranges::count_if(log.replies(), [](const ReplySummary& reply) { return reply.rounds > 0; }) > 1;
}

std::string pass_words(const RoundsState& rounds) {
  if (rounds.log->rounds() == 0) return "No pass yet";
  const size_t shown = rounds.playback.shown;
  const ReplySummary& reply = rounds.log->replies()[rounds.log->summary(shown).reply];
  std::string words = "pass " + grouped(shown - reply.first_round + 1) + " of " + grouped(reply.rounds);
  if (has_several(*rounds.log)) words = "reply " + grouped(rounds.log->summary(shown).reply + 1) + ", " + words;
  if (is_live(rounds)) return words + " \u00b7 live";
  if (rounds.playback.state == PlayState::following) return words;  // the newest pass of a reply that has ended
  char speed[32];
  std::snprintf(speed, sizeof speed,
                rounds.playback.speed < 0.995 ? " \u00b7 speed \u00d7%.2f" : " \u00b7 speed \u00d7%.1f",
                rounds.playback.speed);
  return words + speed;
}

std::string bar_words(const RoundLog& log, size_t index) {
  const RoundSummary& round = log.summary(index);
  const std::string reply = has_several(log) ? " of reply " + grouped(round.reply + 1) : "";
  const size_t pass = index - log.replies()[round.reply].first_round + 1;
  return "Pass " + grouped(pass) + reply + ": " + grouped(round.emitted) + (round.emitted == 1 ? " token" : " tokens") +
         ", " + grouped(round.accepted) + " of them guessed" +
         (round.sources == kFromSuffix ? " from the text alone" : "");
}

void draw_strip_key(ImDrawList* list, float x, float y, bool ticks) {
  const Theme& t = colours();
  list->AddCircleFilled({x + px(6), y + px(20)}, px(5), t.accepted);
  draw_text_middle(list, x + px(18), y + px(20), Type::secondary, t.text2, "guessed, confirmed");
  list->AddRectFilled({x + px(1), y + px(39)}, {x + px(11), y + px(42)}, t.bonus);
  draw_text_middle(list, x + px(18), y + px(41), Type::secondary, t.text2, "added by the big model");
  if (!ticks) return;
  list->AddRectFilled({x + px(1), y + px(61)}, {x + px(11), y + px(63)}, t.text2);
  draw_text_middle(list, x + px(18), y + px(62), Type::secondary, t.text2, "from the text alone");
}

}  // namespace

void WatchStrip::draw(const ViewModel& view, CommandSink& sink) {
  const RoundsState& rounds = view.rounds;
  if (log_.lock() != rounds.log) {
    log_ = rounds.log;
    scale_ = {};
    counted_ = 0;
  }
  for (; counted_ < rounds.log->rounds(); ++counted_) scale_.include(rounds.log->summary(counted_));
  handle_transport_keys(rounds, sink);
  const ImVec2 pos = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  const bool two_rows = size.y >= px(kTwoRows);
  const float row = two_rows ? pos.y + px(10) : pos.y + std::floor((size.y - px(28)) * 0.5f);
  ImGui::SetCursorScreenPos({pos.x + px(kStripMargin), row});
  draw_strip_buttons(rounds, sink);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const std::string words = pass_words(rounds);
  float left = pos.x + px(kControlsWidth);
  if (two_rows) {
    draw_text_middle(list, pos.x + px(kStripMargin + 2), row + px(44), Type::secondary, colours().text2, words);
  } else {
    const float room = pos.x + size.x - px(kStripMargin) - left, wide = text_size(Type::secondary, words).x;
    if (wide <= room) draw_text_middle(list, left, row + px(14), Type::secondary, colours().text2, words);
    left += wide;
  }
  left += px(16);
  const bool key = two_rows && size.x > px(900);
  const float right = pos.x + size.x - px(kStripMargin) - (key ? px(kStripKey) : 0);
  if (right - left < px(kLeastBars)) return;
  draw_bars(rounds, sink, {std::floor(left), pos.y}, {std::floor(right - left), size.y});
  if (key) draw_strip_key(list, right + px(16), pos.y + px(4), has_ticks(*rounds.log) && size.y >= px(76));
}

void WatchStrip::draw_bars(const RoundsState& rounds, CommandSink& sink, ImVec2 pos, ImVec2 size) {
  const Theme& t = colours();
  const RoundLog& log = *rounds.log;
  if (log.rounds() == 0) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const double inner = size.x / px(1);
  const size_t shown = rounds.playback.shown;
  const TimelineView at = timeline_view({}, log.rounds(), shown, inner);
  const bool marked = size.y >= px(kTwoRows) && has_several(log);  // with room for the names of replies above the bars
  const float base = pos.y + size.y - px(size.y >= px(kTwoRows) ? 18 : 6), top = pos.y + px(marked ? 20 : 8);
  const float token = (base - top) / static_cast<float>(scale_.emitted + 1);
  // In slow motion the pass on show has its bar when its tokens are in the text.
  const bool pending = !rounds.playback.told();
  // With room for the frame around the first bar and the last.
  list->PushClipRect({pos.x - px(5), pos.y}, {pos.x + size.x + px(8), pos.y + size.y}, true);
  list->AddLine({pos.x, base + 0.5f}, {pos.x + size.x, base + 0.5f}, t.line);
  if (marked) draw_replies({list, pos, size, base, 0, 0, 0}, log, at);
  for (const TimelineColumn& column : timeline_columns(log, at, inner)) {
    const float a = std::floor(pos.x + px(1) * static_cast<float>(column.x));
    const float b = std::max(a + 1, std::floor(pos.x + px(1) * static_cast<float>(column.x + column.width)));
    const bool past = column.first <= shown, now = column.first <= shown && shown < column.first + column.rounds;
    if (now && pending && column.rounds == 1) continue;
    const float strength = past ? 1.0f : 0.4f;
    const float emitted = static_cast<float>(column.rounds == 1 ? column.most_emitted : column.mean_emitted);
    const float accepted = std::min(emitted, static_cast<float>(column.most_accepted));
    const float guessed = column.rounds == 1 ? accepted : std::max(0.0f, emitted - 1);
    list->AddRectFilled({a, base - guessed * token}, {b, base}, with_alpha(t.accepted, strength));
    if (emitted > guessed)
      list->AddRectFilled({a, base - guessed * token - std::max(px(2), px(3))}, {b, base - guessed * token - px(1)},
                          with_alpha(t.bonus, strength));
    if (column.is_from_text()) list->AddRectFilled({a, base + px(4)}, {b, base + px(6)}, with_alpha(t.text2, strength));
  }
  const float x = pos.x + px(1) * static_cast<float>(at.x_of(shown)), wide = px(1) * static_cast<float>(at.pitch);
  list->AddRect({x - px(3), top - px(4)}, {x + std::max(px(4), wide * 0.7f) + px(3), base + px(3)}, t.text, px(3),
                px(1.5f));
  list->PopClipRect();
  ImGui::SetCursorScreenPos(pos);
  ImGui::InvisibleButton("Passes", size, ImGuiButtonFlags_EnableNav);
  const double under_x = (ImGui::GetIO().MousePos.x - pos.x) / px(1);
  const size_t under = round_at(at, under_x, log.rounds());
  if (ImGui::IsItemActive() && ImGui::IsMouseDown(ImGuiMouseButton_Left) && under != shown)
    sink.post(RoundsCommand(ShowRound{under}));
  if (ImGui::IsItemHovered()) tooltip(bar_words(log, under).c_str());
}

}  // namespace canopy::app
