#include "app/chat/token_marks.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kDot = 2, kDotPitch = 4;

/// Draws a dotted line from x to end, its upper edge at height y.
void draw_dots(ImDrawList* list, float x, float end, float y, Colour colour) {
  for (; x < end; x += px(kDotPitch)) list->AddRectFilled({x, y}, {std::min(x + px(kDot), end), y + px(kDot)}, colour);
}

/// The index in the log of the first round of this reply.
std::optional<size_t> first_round(const ViewModel& view, const Message& message) {
  if (view.replaying()) return view.replay.first_round(message.id);
  if (!view.rounds.log) return std::nullopt;
  const auto& replies = view.rounds.log->replies();
  for (auto reply = replies.rbegin(); reply != replies.rend(); ++reply)
    if (reply->id == message.id) return reply->first_round;
  return std::nullopt;
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

const TokenSpan* token_at(const Message& message, size_t byte) {
  const auto& spans = message.spans;
  const auto found =
      std::partition_point(spans.begin(), spans.end(), [&](const TokenSpan& span) { return span.end <= byte; });
  return found != spans.end() && found->begin <= byte ? &*found : nullptr;
}

std::optional<NodeRef> node_of(const ViewModel& view, const Message& message, const TokenSpan& span) {
  const auto first = first_round(view, message);
  return first ? std::optional(NodeRef{*first + span.round, span.node}) : std::nullopt;
}

const TokenSpan* token_of(const ViewModel& view, const Message& message, const NodeRef& node) {
  const auto first = first_round(view, message);
  if (!first || node.round < *first) return nullptr;
  const size_t round = node.round - *first;
  const TokenSpan* before = nullptr;  // the last token before the round
  for (const TokenSpan& span : message.spans) {
    if (span.round > round) break;
    if (span.round == round && span.node == node.node) return &span;
    if (span.round < round) before = &span;
  }
  return node.node == 0 ? before : nullptr;
}

void draw_token_marks(ImDrawList* list, const ViewModel& view, const Message& message, const MessageBody& body,
                      ImVec2 pos) {
  const Theme& t = colours();
  const auto [from, to] = body.visible(pos, list->GetClipRectMin().y, list->GetClipRectMax().y);
  const auto first = first_round(view, message);
  const auto& spans = message.spans;
  auto span = std::partition_point(spans.begin(), spans.end(), [at = from](const TokenSpan& s) { return s.end <= at; });
  for (; view.chat.sources_shown && span != spans.end() && span->begin < to; ++span) {
    const size_t begin = std::min<size_t>(span->begin, message.text.size()),
                 end = std::min<size_t>(span->end, message.text.size());
    const std::string_view text = std::string_view(message.text).substr(begin, end - begin);
    if (span->source == TokenSource::ar || is_blank(text)) continue;
    const bool shown = first && view.rounds.playback.told() && view.rounds.playback.shown == *first + span->round;
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
  for (const auto& node : {view.rounds.selected, view.rounds.hovered}) {
    if (!node) continue;
    if (const TokenSpan* token = token_of(view, message, *node)) draw_ring(list, body, pos, *token);
  }
}

void draw_token_legend(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float height = px(24), middle = a.y + height * 0.5f;
  const bool on = view.chat.sources_shown;
  const char* words[] = {"drafted, accepted", "big model's own", "Token sources are hidden"};
  const float sample = px(22), gap = px(6), space = px(18);
  const float second = sample + gap + text_size(Type::secondary, words[0]).x + space;
  const float needed =
      on ? second + sample + gap + text_size(Type::secondary, words[1]).x : text_size(Type::secondary, words[2]).x;
  const float used = std::min(needed + px(4), width);
  if (ImGui::InvisibleButton("Token sources", {used, height}, ImGuiButtonFlags_EnableNav))
    sink.post(ShowTokenSources{!on});
  const bool hovered = ImGui::IsItemHovered();
  tooltip(on ? "Hide who wrote each token" : "Show who wrote each token");
  const Colour colour = hovered ? t.text2 : t.text3;
  if (!on) {
    draw_text_middle(list, a.x, middle, Type::secondary, colour, words[2]);
    return;
  }
  list->AddRectFilled({a.x, middle - px(7)}, {a.x + sample, middle + px(7)}, t.accepted_bg);
  draw_text_middle(list, a.x + sample + gap, middle, Type::secondary, colour, words[0]);
  if (second + sample > width) return;
  draw_dots(list, a.x + second, a.x + second + sample, std::floor(middle + px(3)), t.bonus);
  draw_text_middle(list, a.x + second + sample + gap, middle, Type::secondary, colour, words[1]);
}

}  // namespace canopy::app
