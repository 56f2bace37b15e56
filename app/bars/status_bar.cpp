#include "app/bars/status_bar.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "app/look/widgets.h"
#include "app/state/view_model.h"
#include "app/state/work_under_way.h"

namespace canopy::app {
namespace {

constexpr float kStatusHeight = 28;
constexpr float kStatusMargin = 14;
constexpr float kStatusGap = 24;

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
                   {Type::secondary, t.text3, behind == 1 ? "round behind" : "rounds behind"}});
  }
}

void draw_recording(const ViewModel& view, Row& row) {
  const Theme& t = colours();
  const Recording& recording = view.recording.told;
  if (!recording.active) return;
  const float before = row.x();
  row.statement({{Type::secondary, t.text2, "     Recording " + recording.file_name},
                 {Type::mono, t.text3, grouped(recording.rounds)},
                 {Type::secondary, t.text3, recording.rounds == 1 ? "round" : "rounds"}});
  if (row.x() > before) row.dot(before + px(kStatusGap) + px(4), t.rejected);
}

void draw_context(const ViewModel& view, Row& row, float top) {
  const Theme& t = colours();
  const float x = row.x();
  const bool nearly_full = view.context_used > view.model->context / 10 * 9;
  row.statement({{Type::secondary, nearly_full ? t.bonus_text : t.text3, nearly_full ? "KV nearly full" : "KV"},
                 {Type::mono, t.text2, grouped(view.context_used) + " of " + grouped(view.model->context)}});
  if (row.x() > x) context_tooltip(*view.model, x, top, row.x() - x);
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
  Row row(origin.x + px(kStatusMargin), origin.x + width - px(kStatusMargin) - keys_width, middle);
  row.dot(row.x() + px(4), state_colour(view));
  row.advance(px(14));
  row.text(Type::secondary, t.text2, elided(Type::secondary, engine_words(view), row.room() - px(90)));
  draw_progress(view, sink, row, origin);
  // A recording's rounds have nothing to do with the engine's cache and speed: its figures stay out meanwhile.
  // A released model has no cache either.
  if (view.model && !view.replaying() && view.model_state != ModelState::released) draw_context(view, row, origin.y);
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
