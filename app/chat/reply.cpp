#include "app/chat/reply.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "app/state/chat_update.h"
#include "app/state/models.h"
#include "app/state/plain_decoding.h"
#include "app/state/text_link.h"
#include "app/state/words.h"
#include "app/ui/look.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

constexpr float kDot = 2, kDotPitch = 4;
constexpr float kLegendLine = 24, kLegendPitch = 18, kLegendGap = 2;  // heights at 100%
constexpr float kLegendSample = 22, kLegendSampleGap = 6, kLegendSpace = 18;
constexpr const char* kSourcesHidden = "Token sources are hidden";

/// What the two marks mean.
struct LegendWords {
  const char *accepted, *own;
};

float entry_width(const char* words) {
  return px(kLegendSample + kLegendSampleGap) + text_size(Type::secondary, words).x;
}

/// The longest wording whose entries each fit a line of this width. Watch says it in whole words where there is room.
LegendWords legend_words(const ViewModel& view, float width) {
  constexpr LegendWords kWordings[] = {{"guessed by the drafter, confirmed", "the big model's own"},
                                       {"guessed, confirmed", "the big model's own"},
                                       {"guessed, confirmed", "big model's own"},
                                       {"guessed", "its own"}};
  size_t first = 2;
  if (view.shell.layout == WindowLayout::watch) first = view.rounds.log->statistics().has_text_drafts() ? 1 : 0;
  for (; first + 1 < std::size(kWordings); ++first)
    if (std::max(entry_width(kWordings[first].accepted), entry_width(kWordings[first].own)) <= width) break;
  return kWordings[first];
}

/// Whether both entries fit side by side. The same while they are hidden, so that nothing moves when they are.
bool legend_fits_a_line(const ViewModel& view, float width) {
  const LegendWords words = legend_words(view, width);
  return entry_width(words.accepted) + px(kLegendSpace) + entry_width(words.own) <= width;
}

/// Draws a dotted line from x to end, its upper edge at height y.
void draw_dots(ImDrawList* list, float x, float end, float y, Colour colour) {
  for (; x < end; x += px(kDotPitch)) list->AddRectFilled({x, y}, {std::min(x + px(kDot), end), y + px(kDot)}, colour);
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

void draw_ring(ImDrawList* list, const MessageBody& body, ImVec2 pos, const TokenSpan& span) {
  body.rects(pos, span.begin, span.end, [&](ImVec2 a, ImVec2 b) {
    list->AddRect({a.x - px(1), a.y + px(1)}, {b.x + px(1), b.y}, colours().text, px(3), px(1.5f));
  });
}

}  // namespace

void draw_source_marks(ImDrawList* list, const Message& message, const MessageBody& body, ImVec2 pos,
                       std::optional<size_t> shown_round) {
  const Theme& t = colours();
  const auto [from, to] = body.visible(pos, list->GetClipRectMin().y, list->GetClipRectMax().y);
  const auto& spans = message.spans;
  auto span = std::partition_point(spans.begin(), spans.end(), [at = from](const TokenSpan& s) { return s.end <= at; });
  for (; span != spans.end() && span->begin < to; ++span) {
    const size_t begin = std::min<size_t>(span->begin, message.text.size()),
                 end = std::min<size_t>(span->end, message.text.size());
    const std::string_view text = std::string_view(message.text).substr(begin, end - begin);
    if (is_blank(text)) continue;
    const bool shown = shown_round == span->round;
    if (span->source == TokenSource::accepted) {
      body.rects(pos, begin, end, [&](ImVec2 a, ImVec2 b) {
        list->AddRectFilled({a.x, a.y + px(2)}, {std::max(a.x + 1, b.x - px(1)), b.y - px(1)},
                            shown ? t.accepted_strong_bg : t.accepted_bg);
      });
    } else {
      const size_t word = begin + text.find_first_not_of(" \t\r\n");
      const size_t word_end = begin + text.find_last_not_of(" \t\r\n") + 1;
      body.rects(pos, word, word_end, [&](ImVec2 a, ImVec2 b) {
        if (shown) list->AddRectFilled({a.x, a.y + px(2)}, {b.x - px(1), b.y - px(1)}, t.bonus_bg);
        draw_dots(list, std::floor(a.x), b.x - px(1), std::floor(b.y - px(3)), t.bonus);
      });
    }
  }
}

void draw_found_place(ImDrawList* list, const ViewModel& view, const Message& message, const MessageBody& body,
                      ImVec2 pos) {
  const RoundsState& rounds = view.rounds;
  // The card of a selected node is shown with its round alone.
  const bool pinned = rounds.selected && rounds.selected->round == rounds.playback.shown;
  const FoundPlace* place = place_of(rounds, rounds.hovered);
  if (!rounds.hovered && pinned) place = place_of(rounds, rounds.selected);
  if (!place || place->message != message.id || place->end > message.text.size()) return;
  const Theme& t = colours();
  const Colour band = found_behind(t);
  body.rects(pos, place->begin, place->end, [&](ImVec2 a, ImVec2 b) {
    list->AddRectFilled({a.x - px(1), a.y + px(1)}, {b.x + px(1), b.y}, band, px(2));
  });
  body.rects(pos, place->followed, place->end, [&](ImVec2 a, ImVec2 b) {
    list->AddRectFilled({a.x, b.y - px(2)}, {b.x, b.y}, t.draft);
  });
}

void draw_token_marks(ImDrawList* list, const ViewModel& view, const Message& message, const MessageBody& body,
                      ImVec2 pos) {
  const auto shown_round = view.rounds.playback.told() ? round_in_message(view, message, view.rounds.playback.shown)
                                                       : std::optional<size_t>();
  if (view.chat.sources_shown) draw_source_marks(list, message, body, pos, shown_round);
  for (const auto& node : {view.rounds.selected, view.rounds.hovered}) {
    if (!node) continue;
    if (const TokenSpan* token = token_of(view, message, *node)) draw_ring(list, body, pos, *token);
  }
}

float token_legend_height(const ViewModel& view, float width) {
  return px(kLegendLine) + (legend_fits_a_line(view, width) ? 0 : px(kLegendPitch)) + px(kLegendGap);
}

void draw_token_legend(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  const LegendWords words = legend_words(view, width);
  const ImVec2 a = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float height = token_legend_height(view, width) - px(kLegendGap), middle = a.y + px(kLegendLine * 0.5f);
  const bool on = view.chat.sources_shown, one_line = legend_fits_a_line(view, width);
  const float needed = !on        ? text_size(Type::secondary, kSourcesHidden).x
                       : one_line ? entry_width(words.accepted) + px(kLegendSpace) + entry_width(words.own)
                                  : std::max(entry_width(words.accepted), entry_width(words.own));
  if (ImGui::InvisibleButton("Token sources", {std::min(needed + px(4), width), height}, ImGuiButtonFlags_EnableNav))
    sink.post(ShowTokenSources{!on});
  const Colour colour = ImGui::IsItemHovered() ? t.text2 : t.text3;
  tooltip(on ? "Hide who wrote each token" : "Show who wrote each token");
  if (!on) {
    draw_text_middle(list, a.x, middle, Type::secondary, colour, kSourcesHidden);
    return;
  }
  const float sample = px(kLegendSample), gap = px(kLegendSampleGap);
  const auto put = [&](ImVec2 at, const char* text) {
    const float left = at.x + sample + gap;
    draw_text_middle(list, left, at.y, Type::secondary, colour, elided(Type::secondary, text, a.x + width - left));
  };
  list->AddRectFilled({a.x, middle - px(7)}, {a.x + sample, middle + px(7)}, t.accepted_bg);
  put({a.x, middle}, words.accepted);
  const ImVec2 own = one_line ? ImVec2(a.x + entry_width(words.accepted) + px(kLegendSpace), middle)
                              : ImVec2(a.x, middle + px(kLegendPitch));
  draw_dots(list, own.x, own.x + sample, std::floor(own.y + px(3)), t.bonus);
  put(own, words.own);
}

namespace {

std::string figures(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string ending(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop_token: return "";
    case FinishReason::max_tokens: return "token limit";
    case FinishReason::context_full: return "context full";
    case FinishReason::cancelled: return "stopped";
    case FinishReason::failed: return "failed";
    case FinishReason::repeats: return "repeats itself";
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
  const std::string without = "without guessing";
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

std::vector<std::string> reply_facts(const Message& message) {
  const ReplyFinished& r = *message.result;
  std::vector<std::string> facts;
  if (r.tokens_per_second > 0) facts.push_back(speed(r.tokens_per_second) + " tok/s");
  const bool drafted = r.tau > 0 && r.mode != DecodeMode::ar;
  if (drafted) facts.push_back(figures(r.tau, "%.2f") + " a pass");
  if (const std::string end = ending(r.reason); !end.empty()) facts.push_back(end);
  // Of a reply whose program was killed it may not be known how many tokens it has.
  const bool unknown = r.reply_tokens == 0 && !message.text.empty();
  if (drafted && message.rounds > 0)
    facts.push_back(counted(message.rounds, "pass", "passes"));
  else if (!unknown)
    facts.push_back(counted(r.reply_tokens, "token", "tokens"));
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
    out += "Reply: " + counted(r.reply_tokens, "token", "tokens") + " in " + figures(r.decode_ms, "%.0f ms") + "\n";
  if (const std::string end = ending(r.reason); !end.empty()) out += "Ended: " + end + "\n";
  if (message.rounds > 0) out += "Passes: " + grouped(message.rounds) + "\n";
  if (r.tau > 0)
    out += "Tokens per pass (\u03c4): tokens that passes brought / passes = " + figures(r.tau, "%.2f") + "\n";
  out += "Prompt: " + counted(r.prompt_tokens, "token", "tokens") + " in " + figures(r.prefill_ms, "%.0f ms") + ", " +
         grouped(r.reused_tokens) + " of them reused\nAll measured";
  return out;
}

float check_row_height(const ViewModel& view, const Message& reply, float width) {
  const ArCheck& check = view.checks.check;
  if (check.phase == ArCheck::Phase::none || check.message != reply.id || !view.own_chat()) return 0;
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

namespace {

/// What guessing made of the speed of reply i.
PlainVerdict verdict_of(const ViewModel& view, size_t i) {
  const Message& message = view.conversation()[i];
  if (!message.result) return {};
  if (!view.replaying()) return plain_verdict(*message.result);
  const std::string device = without_brackets(view.replay.origin().device);
  return plain_verdict(*message.result, device.empty() ? "its device" : device);
}

/// What Copy takes of a reply: its answer, or what was thought where it came to none.
std::string body_text(const Message& message) {
  const std::string answer = answer_of(message);
  return answer.empty() ? thought_of(message) : answer;
}

/// Draws the label "replayed" before the figures of a recorded reply. Returns its width in pixels.
float draw_replayed(ImVec2 at) {
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, at.y + px(kReplyRow) * 0.5f, Type::secondary, colours().text2,
                   "replayed");
  return text_size(Type::secondary, "replayed").x + px(10);
}

void draw_check_button(const ViewModel& view, const Message& message, CommandSink& sink) {
  const std::string obstacle = check_obstacle(view, message);
  const std::string about =
      "Check against plain decoding" +
      (obstacle.empty() ? ": writes the reply once more without guesses and compares every token" : "\n" + obstacle);
  if (icon_button("Check against plain decoding", Icon::check, about.c_str(), obstacle.empty()))
    sink.post(CheckCommand(CheckAgainstAr{message.id}));
}

/// Draws the figures of a reply and its buttons.
void draw_footer(const ViewModel& view, size_t i, CommandSink& sink, float width) {
  const Message& message = view.conversation()[i];
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const bool own = view.own_chat();
  const bool checkable = own && message.result->mode != DecodeMode::ar;
  const float buttons = px(kReplyRow) * (own ? 3.0f + (checkable ? 1.0f : 0.0f) : 1.0f);
  float x = a.x;
  if (view.replaying()) x += draw_replayed({x, a.y});
  if (view.conversation().place(i).count > 1) x += draw_versions(view, i, sink, {a.x - px(6), a.y});
  const float room = a.x + width - buttons - px(4) - x;
  // The chat of Watch is narrow, and in the narrower type more of its figures fit.
  const Type type = view.shell.layout == WindowLayout::watch ? Type::secondary : Type::mono;
  draw_text_middle(ImGui::GetWindowDrawList(), x, a.y + px(kReplyRow) * 0.5f, type, colours().text3,
                   fitting(type, reply_facts(message), room));
  ImGui::SetCursorScreenPos({x, a.y});
  ImGui::Dummy({std::max(px(1), room), px(kReplyRow)});
  tooltip((reply_details(message) + (view.replaying() ? ", when it was recorded" : "")).c_str());
  ImGui::SetCursorScreenPos({a.x + width - buttons, a.y});
  if (icon_button("Copy", Icon::copy, "Copy the text")) sink.post(CopyText{body_text(message)});
  if (!own) return;  // the messages of a recording or of a client cannot be edited
  ImGui::SameLine(0, 0);
  if (checkable) {
    draw_check_button(view, message, sink);
    ImGui::SameLine(0, 0);
  }
  if (icon_button("Run again", Icon::redo, "Answer again; this answer stays as a version", view.can_send()))
    sink.post(AnswerAgain{message.id});
  ImGui::SameLine(0, 0);
  if (icon_button("Continue in a new chat", Icon::branch, "Continue from here in a new chat", !view.busy()))
    sink.post(ContinueInNewChat{message.id});
}

/// How the reply ended, in as many words as fit.
std::string ending(const ReplyFinished& reply, float room) {
  const std::string tokens = counted(reply.reply_tokens, "token", "tokens");
  if (reply.reason == FinishReason::max_tokens)
    return first_fitting(Type::secondary, {"Ended at its limit of " + tokens, "Limit of " + tokens, "At its limit"},
                         room);
  if (reply.reason == FinishReason::repeats)
    return first_fitting(Type::secondary,
                         {"Ended because it repeats itself", "Ended: it repeats itself", "It repeats itself"}, room);
  return first_fitting(Type::secondary, {"You stopped it after " + tokens, "Stopped after " + tokens, "Stopped"}, room);
}

/// Draws how the reply ended, and the button that goes on with it.
void draw_continue_row(const ViewModel& view, size_t i, CommandSink& sink, float width) {
  const Message& message = view.messages[i];
  const std::string obstacle = continue_obstacle(view, message);
  const std::string about = obstacle.empty() ? "Writes up to " + counted(view.max_tokens, "token", "tokens") +
                                                   " more, just as with a larger limit"
                                             : obstacle;
  ButtonSpec more{"Continue", Icon::none, ButtonKind::line};
  more.type = Type::secondary;
  more.height = 24;
  more.enabled = obstacle.empty();
  more.tooltip = about.c_str();
  const ImVec2 at = ImGui::GetCursorScreenPos(), size = button_size(more);
  const float room = width - size.x - px(10);
  const std::string words = ending(*message.result, room);
  const float middle = at.y + px(14);
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, middle, Type::secondary, colours().text2, words);
  ImGui::SetCursorScreenPos({at.x + text_size(Type::secondary, words).x + px(10), middle - size.y * 0.5f});
  if (button(more)) sink.post(ChatCommand(ContinueReply{message.id}));
}

void draw_verdict(const PlainVerdict& verdict, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  std::string words = verdict.words.back();
  for (const std::string& each : verdict.words) {
    if (text_size(Type::secondary, each).x > width) continue;
    words = each;
    break;
  }
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, at.y + px(kReplyRow) * 0.5f, Type::secondary, colours().text2,
                   elided(Type::secondary, words, width));
  ImGui::Dummy({std::max(px(1), width), px(kReplyRow)});
  tooltip(verdict.why.c_str());
}

}  // namespace

static std::string version_words(const Conversation::Place& place) {
  return std::to_string(place.index + 1) + " / " + std::to_string(place.count);
}

float versions_width(const ViewModel& view, size_t i) {
  return px(kReplyRow) * 2 + text_size(Type::mono, version_words(view.conversation().place(i))).x + px(8);
}

float draw_versions(const ViewModel& view, size_t i, CommandSink& sink, ImVec2 pos) {
  const Conversation::Place place = view.conversation().place(i);
  const uint64_t id = view.conversation()[i].id;
  const std::string words = version_words(place);
  const float room = text_size(Type::mono, words).x + px(8);
  ImGui::SetCursorScreenPos(pos);
  if (icon_button("Previous version", Icon::left, "Previous version", place.index > 0 && !view.busy()))
    sink.post(ShowAlternative{id, -1});
  draw_text_middle(ImGui::GetWindowDrawList(), pos.x + px(kReplyRow) + px(4), pos.y + px(kReplyRow) * 0.5f, Type::mono,
                   colours().text2, words);
  ImGui::SetCursorScreenPos({pos.x + px(kReplyRow) + room, pos.y});
  if (icon_button("Next version", Icon::right, "Next version", place.index + 1 < place.count && !view.busy()))
    sink.post(ShowAlternative{id, 1});
  return versions_width(view, i);
}

float reply_end_height(const ViewModel& view, size_t i, float width) {
  return px(kReplyRow) + (is_unfinished(view, i) ? px(kReplyRow) : 0) +
         check_row_height(view, view.conversation()[i], width) + (verdict_of(view, i).known() ? px(kReplyRow) : 0);
}

void draw_reply_end(const ViewModel& view, size_t i, CommandSink& sink, float width) {
  const Message& message = view.conversation()[i];
  ImVec2 at = ImGui::GetCursorScreenPos();
  draw_footer(view, i, sink, width);
  at.y += px(kReplyRow);
  if (is_unfinished(view, i)) {
    ImGui::SetCursorScreenPos(at);
    draw_continue_row(view, i, sink, width);
    at.y += px(kReplyRow);
  }
  if (const float check = check_row_height(view, message, width); check > 0) {
    ImGui::SetCursorScreenPos(at);
    draw_check_row(view, message, sink, width);
    at.y += check;
  }
  const PlainVerdict verdict = verdict_of(view, i);
  if (!verdict.known()) return;
  ImGui::SetCursorScreenPos(at);
  draw_verdict(verdict, width);
}

}  // namespace canopy::app
