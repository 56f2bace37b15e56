#include "app/chat/reply_facts.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "app/base/local_time.h"
#include "app/look/text_block.h"
#include "app/look/widgets.h"
#include "app/state/view_model.h"

namespace canopy::app {
namespace {

std::string figures(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string amount(uint64_t count, const char* one, const char* many) {
  return grouped(count) + " " + (count == 1 ? one : many);
}

std::string ending(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop_token: return "";
    case FinishReason::max_tokens: return "token limit";
    case FinishReason::context_full: return "context full";
    case FinishReason::cancelled: return "stopped";
    case FinishReason::failed: return "failed";
  }
  return "";
}

std::string sampling_of(const Message& message) {
  const SamplingSettings& s = message.parameters.sampling;
  if (s.temperature == 0) return "greedy";
  std::string out = "temperature " + figures(static_cast<double>(s.temperature), "%.3g");
  out += ", top-p " + figures(static_cast<double>(s.top_p), "%.3g");
  out += ", min-p " + figures(static_cast<double>(s.min_p), "%.3g");
  if (message.seed) out += ", seed " + std::to_string(*message.seed);
  return out;
}

constexpr float kFactRow = 28, kFactPitch = 18, kBar = 56;

std::string spelt(const ViewModel& view, const std::vector<uint32_t>& tokens, size_t index) {
  if (index >= tokens.size()) return "nothing: it had ended";
  const auto piece =
      view.model && view.model->texts ? view.model->texts->find(tokens[index]) : std::optional<trace::Piece>();
  std::string words = "token id " + std::to_string(tokens[index]);
  if (piece && !piece->bytes.empty()) words += " \"" + std::string(piece->bytes) + "\"";
  return words;
}

ButtonSpec end_button(const ArCheck& check) {
  ButtonSpec spec{check.running() ? "Cancel check" : "Dismiss check", check.running() ? Icon::none : Icon::close};
  spec.words = "Cancel";
  spec.show_label = check.running();
  spec.type = Type::secondary;
  spec.tooltip = check.running() ? "Leave the check" : "Dismiss";
  return spec;
}

std::string details(const ViewModel& view, const ArCheck& check) {
  const std::string without = view.shell.layout == WindowLayout::watch ? "without guessing" : "without drafts";
  switch (check.phase) {
    case ArCheck::Phase::same:
      return "The same request was answered once more " + without + ", with the same settings and seed, and gave the " +
             "same " + counted(check.expected.size(), "token", "tokens") + "." +
             (check.open_end ? "\nThe reply had been stopped: compared up to there." : "");
    case ArCheck::Phase::different:
      return "This reply: " + spelt(view, check.expected, *check.difference) +
             "\nPlain decoding: " + spelt(view, check.plain, *check.difference) +
             "\nCounted from 1. On one device both should be equal.";
    case ArCheck::Phase::failed: return check.problem;
    default: return "Answers the same request once more " + without + ". It is no part of the chat.";
  }
}

/// The room that the words of the row have in a row of this width: that beside its sign or bar, and its button.
struct CheckRow {
  float left = 0, room = 0;  // in pixels, from the row's left edge
};
CheckRow check_row(const ArCheck& check, float width) {
  const float left = px(check.running() ? kBar + 8 : 20);
  return {left, width - left - button_size(end_button(check)).x - px(6)};
}

void draw_sign(const ArCheck& check, ImVec2 at) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 centre = {at.x + px(7), at.y + px(kFactRow) * 0.5f};
  switch (check.phase) {
    case ArCheck::Phase::same: draw_check_disc(list, centre, px(6.5f), t.accent, t.panel); break;
    case ArCheck::Phase::different: draw_cross(list, centre, px(4.5f), t.rejected, px(2)); break;
    case ArCheck::Phase::failed: draw_triangle_sign(list, centre, px(14), t.bonus, t.panel); break;
    default: list->AddCircle(centre, px(5), t.text3, 0, px(1.5f)); break;
  }
}

void draw_end(const ArCheck& check, CommandSink& sink, float right, float top) {
  const ButtonSpec spec = end_button(check);
  ImGui::SetCursorScreenPos({right - button_size(spec).x, top});
  if (button(spec)) sink.post(check.running() ? CheckCommand(CancelCheck{}) : CheckCommand(DismissCheck{}));
}

/// The words of the row in as many lines as they need.
TextBlock check_block(const std::string& words, float room) {
  TextBlock block;
  block.layout(words, Type::secondary, room);
  return block;
}

}  // namespace

std::vector<std::string> reply_facts(const Message& message, WindowLayout layout) {
  const ReplyFinished& r = *message.result;
  const bool watch = layout == WindowLayout::watch;
  std::vector<std::string> facts;
  if (r.tokens_per_second > 0) facts.push_back(speed(r.tokens_per_second) + " tok/s");
  const bool drafted = r.tau > 0 && r.mode != DecodeMode::ar;
  if (drafted) facts.push_back(watch ? figures(r.tau, "%.2f") + " a pass" : "\u03c4 " + figures(r.tau, "%.2f"));
  if (const std::string end = ending(r.reason); !end.empty()) facts.push_back(end);
  // Of a reply whose program was killed it may not be known how many tokens it has.
  const bool unknown = r.reply_tokens == 0 && !message.text.empty();
  if (drafted && message.rounds > 0)
    facts.push_back(watch ? amount(message.rounds, "pass", "passes") : amount(message.rounds, "round", "rounds"));
  else if (!unknown)
    facts.push_back(amount(r.reply_tokens, "token", "tokens"));
  return facts;
}

std::string reply_details(const Message& message, WindowLayout layout) {
  const ReplyFinished& r = *message.result;
  const ReplyParameters& p = message.parameters;
  std::string out;
  if (!p.model.empty()) out += p.model + (p.device.empty() ? "" : " on " + p.device) + "\n";
  if (message.created_ms > 0) out += local_time(message.created_ms) + "\n";
  out += "Drawn: " + sampling_of(message) + "\n";
  if (r.reply_tokens > 0)
    out += "Reply: " + amount(r.reply_tokens, "token", "tokens") + " in " + figures(r.decode_ms, "%.0f ms") + "\n";
  if (const std::string end = ending(r.reason); !end.empty()) out += "Ended: " + end + "\n";
  const bool watch = layout == WindowLayout::watch;
  if (message.rounds > 0) out += (watch ? "Passes: " : "Rounds: ") + grouped(message.rounds) + "\n";
  if (r.tau > 0)
    out += (watch ? "Tokens per pass: tokens that passes brought / passes = "
                  : "\u03c4: tokens emitted by rounds / rounds = ") +
           figures(r.tau, "%.2f") + "\n";
  out += "Prompt: " + amount(r.prompt_tokens, "token", "tokens") + " in " + figures(r.prefill_ms, "%.0f ms") + ", " +
         grouped(r.reused_tokens) + " of them reused\nAll measured";
  return out;
}

float check_row_height(const ViewModel& view, const Message& reply, float width) {
  const ArCheck& check = view.checks.check;
  if (check.phase == ArCheck::Phase::none || check.message != reply.id || view.replaying()) return 0;
  const std::string words = check_words(check, view.shell.layout);
  const size_t lines = check_block(words, check_row(check, width).room).line_count();
  return px(kFactRow) + px(kFactPitch) * static_cast<float>(std::max<size_t>(lines, 1) - 1);
}

void draw_check_row(const ViewModel& view, const Message& reply, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ArCheck& check = view.checks.check;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const CheckRow row = check_row(check, width);
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (check.running()) {
    const float done = check.expected.empty()
                           ? 0.0f
                           : static_cast<float>(check.plain.size()) / static_cast<float>(check.expected.size());
    draw_bar(list, {at.x, at.y + px(kFactRow * 0.5f - 3)}, {px(kBar), px(6)}, std::min(done, 1.0f), t.accent, t.line);
  } else {
    draw_sign(check, at);
  }
  draw_end(check, sink, at.x + width, at.y);
  const Colour colour = check.phase == ArCheck::Phase::same        ? t.accent_text
                        : check.phase == ArCheck::Phase::different ? t.rejected_text
                                                                   : t.text2;
  const std::string words = check_words(check, view.shell.layout);
  const float x = at.x + row.left, above = (px(kFactRow) - text_height(Type::secondary)) * 0.5f;
  check_block(words, row.room)
      .draw(list, {x, std::floor(at.y + above)}, words, Type::secondary, colour, px(kFactPitch));
  ImGui::SetCursorScreenPos({x, at.y});
  ImGui::Dummy({std::max(1.0f, row.room), check_row_height(view, reply, width)});
  tooltip(details(view, check).c_str());
}

}  // namespace canopy::app
