#include "app/chat/token_marks.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kDot = 2, kDotPitch = 4;
constexpr float kLegendLine = 24, kLegendPitch = 18, kLegendGap = 2;  // heights at 100%
constexpr float kLegendSample = 22, kLegendSampleGap = 6, kLegendSpace = 18;
constexpr const char* kSourcesHidden = "Token sources are hidden";

/// What the two marks mean, in the words of the layout.
struct LegendWords {
  const char *accepted, *own;
};
LegendWords legend_words(const ViewModel& view) {
  if (view.shell.layout == WindowLayout::watch) return {"guessed by the drafter, confirmed", "the big model's own"};
  return {"drafted, accepted", "big model's own"};
}

float entry_width(const char* words) {
  return px(kLegendSample + kLegendSampleGap) + text_size(Type::secondary, words).x;
}

/// Whether both entries fit side by side. The same while they are hidden, so that nothing moves when they are.
bool legend_fits_a_line(const ViewModel& view, float width) {
  const LegendWords words = legend_words(view);
  return entry_width(words.accepted) + px(kLegendSpace) + entry_width(words.own) <= width;
}

/// Draws a dotted line from x to end, its upper edge at height y.
void draw_dots(ImDrawList* list, float x, float end, float y, Colour colour) {
  for (; x < end; x += px(kDotPitch)) list->AddRectFilled({x, y}, {std::min(x + px(kDot), end), y + px(kDot)}, colour);
}

const ReplySummary* find_reply(const ViewModel& view, uint64_t id) {
  if (!view.rounds.log) return nullptr;
  const auto& replies = view.rounds.log->replies();
  for (auto reply = replies.rbegin(); reply != replies.rend(); ++reply)
    if (reply->id == id) return &*reply;
  return nullptr;
}

/// The index in the log of a message's round; none where the log does not have it.
std::optional<size_t> in_log(const ViewModel& view, const Message& message, uint32_t round) {
  if (view.replaying()) {
    const auto first = view.replay.first_round(message.id);
    return first ? std::optional(*first + round) : std::nullopt;
  }
  const ReplyPart part = part_of_round(message, round);
  const ReplySummary* reply = find_reply(view, part.reply_id);
  if (!reply || round - part.first_round >= reply->rounds) return std::nullopt;
  return reply->first_round + round - part.first_round;
}

/// The number in the message of a round of the log; none where the round is of something else.
std::optional<size_t> in_message(const ViewModel& view, const Message& message, size_t round) {
  if (view.replaying()) {
    const auto first = view.replay.first_round(message.id);
    return first && round >= *first ? std::optional(round - *first) : std::nullopt;
  }
  for (const ReplyPart& part : parts_of(message)) {
    const ReplySummary* reply = find_reply(view, part.reply_id);
    if (reply && round >= reply->first_round && round < reply->first_round + reply->rounds)
      return part.first_round + round - reply->first_round;
  }
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
  const auto round = in_log(view, message, span.round);
  return round ? std::optional(NodeRef{*round, span.node}) : std::nullopt;
}

const TokenSpan* token_of(const ViewModel& view, const Message& message, const NodeRef& node) {
  const auto found = in_message(view, message, node.round);
  if (!found) return nullptr;
  const size_t round = *found;
  const TokenSpan* before = nullptr;  // the last token before the round
  for (const TokenSpan& span : message.spans) {
    if (span.round > round) break;
    if (span.round == round && span.node == node.node) return &span;
    if (span.round < round) before = &span;
  }
  return node.node == 0 ? before : nullptr;
}

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
    if (span->source == TokenSource::ar || is_blank(text)) continue;
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

void draw_token_marks(ImDrawList* list, const ViewModel& view, const Message& message, const MessageBody& body,
                      ImVec2 pos) {
  const auto shown_round =
      view.rounds.playback.told() ? in_message(view, message, view.rounds.playback.shown) : std::optional<size_t>();
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
  const LegendWords words = legend_words(view);
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

}  // namespace canopy::app
