#include "app/chat/reply_facts.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "app/base/local_time.h"
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

constexpr float kFactRow = 28, kBar = 56;

std::string spelt(const ViewModel& view, const std::vector<uint32_t>& tokens, size_t index) {
  if (index >= tokens.size()) return "nothing: it had ended";
  const auto piece =
      view.model && view.model->texts ? view.model->texts->find(tokens[index]) : std::optional<trace::Piece>();
  std::string words = "token id " + std::to_string(tokens[index]);
  if (piece && !piece->bytes.empty()) words += " \"" + std::string(piece->bytes) + "\"";
  return words;
}

std::string details(const ViewModel& view, const ArCheck& check) {
  switch (check.phase) {
    case ArCheck::Phase::same:
      return std::string(
                 "The same request was answered once more without drafts, with the same settings and seed, and "
                 "gave the same tokens.") +
             (check.open_end ? "\nThe reply had been stopped: compared up to there." : "");
    case ArCheck::Phase::different:
      return "This reply: " + spelt(view, check.expected, *check.difference) +
             "\nPlain decoding: " + spelt(view, check.plain, *check.difference) +
             "\nCounted from 1. On one device both should be equal.";
    case ArCheck::Phase::failed: return check.problem;
    default: return "Answers the same request once more without drafts. It is no part of the chat.";
  }
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

float draw_end(const ArCheck& check, CommandSink& sink, float right, float top) {
  ButtonSpec spec{check.running() ? "Cancel check" : "Dismiss check", check.running() ? Icon::none : Icon::close};
  spec.words = "Cancel";
  spec.show_label = check.running();
  spec.type = Type::secondary;
  spec.tooltip = check.running() ? "Leave the check" : "Dismiss";
  const float width = button_size(spec).x;
  ImGui::SetCursorScreenPos({right - width, top});
  if (button(spec)) sink.post(check.running() ? CheckCommand(CancelCheck{}) : CheckCommand(DismissCheck{}));
  return width;
}

}  // namespace

std::vector<std::string> reply_facts(const Message& message) {
  const ReplyFinished& r = *message.result;
  std::vector<std::string> facts;
  if (r.tokens_per_second > 0) facts.push_back(speed(r.tokens_per_second) + " tok/s");
  const bool drafted = r.tau > 0 && r.mode != DecodeMode::ar;
  if (drafted) facts.push_back("\u03c4 " + figures(r.tau, "%.2f"));
  if (const std::string end = ending(r.reason); !end.empty()) facts.push_back(end);
  // Of a reply whose program was killed it may not be known how many tokens it has.
  const bool unknown = r.reply_tokens == 0 && !message.text.empty();
  if (drafted && message.rounds > 0)
    facts.push_back(amount(message.rounds, "round", "rounds"));
  else if (!unknown)
    facts.push_back(amount(r.reply_tokens, "token", "tokens"));
  return facts;
}

std::string reply_details(const Message& message) {
  const ReplyFinished& r = *message.result;
  const ReplyParameters& p = message.parameters;
  std::string out;
  if (!p.model.empty()) out += p.model + (p.device.empty() ? "" : " on " + p.device) + "\n";
  if (message.created_ms > 0) out += local_time(message.created_ms) + "\n";
  out += "Drawn: " + sampling_of(message) + "\n";
  if (r.reply_tokens > 0)
    out += "Reply: " + amount(r.reply_tokens, "token", "tokens") + " in " + figures(r.decode_ms, "%.0f ms") + "\n";
  if (const std::string end = ending(r.reason); !end.empty()) out += "Ended: " + end + "\n";
  if (message.rounds > 0) out += "Rounds: " + grouped(message.rounds) + "\n";
  if (r.tau > 0) out += "\u03c4: tokens emitted by rounds / rounds = " + figures(r.tau, "%.2f") + "\n";
  out += "Prompt: " + amount(r.prompt_tokens, "token", "tokens") + " in " + figures(r.prefill_ms, "%.0f ms") + ", " +
         grouped(r.reused_tokens) + " of them reused\nAll measured";
  return out;
}

bool has_check_row(const ViewModel& view, const Message& reply) {
  const ArCheck& check = view.checks.check;
  return check.phase != ArCheck::Phase::none && check.message == reply.id && !view.replaying();
}

void draw_check_row(const ViewModel& view, const Message&, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ArCheck& check = view.checks.check;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  float x = at.x;
  if (check.running()) {
    const float done = check.expected.empty()
                           ? 0.0f
                           : static_cast<float>(check.plain.size()) / static_cast<float>(check.expected.size());
    draw_bar(ImGui::GetWindowDrawList(), {x, at.y + px(kFactRow * 0.5f - 3)}, {px(kBar), px(6)}, std::min(done, 1.0f),
             t.accent, t.line);
    x += px(kBar + 8);
  } else {
    draw_sign(check, at);
    x += px(20);
  }
  const float room = at.x + width - x - draw_end(check, sink, at.x + width, at.y) - px(6);
  const Colour colour = check.phase == ArCheck::Phase::same        ? t.accent_text
                        : check.phase == ArCheck::Phase::different ? t.rejected_text
                                                                   : t.text2;
  draw_text_middle(ImGui::GetWindowDrawList(), x, at.y + px(kFactRow) * 0.5f, Type::secondary, colour,
                   elided(Type::secondary, check_words(check), room));
  ImGui::SetCursorScreenPos({x, at.y});
  ImGui::Dummy({std::max(1.0f, room), px(kFactRow)});
  tooltip(details(view, check).c_str());
}

}  // namespace canopy::app
