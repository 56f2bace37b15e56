#include "app/tree/token_card.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "app/layout/token_label.h"
#include "app/look/icons.h"
#include "app/tree/tree_paint.h"

namespace canopy::app {
namespace {

constexpr float kWidth = 300, kPad = 12, kHead = 24, kRow = 18, kColumnGap = 20;

struct Row {
  const char* name;
  std::string value;
};

struct Rows {
  std::vector<Row> left, right, wide;
};

/// What is not known has no row; the note of the card says why.
Rows rows_of(const TokenFacts& f) {
  Rows rows;
  const auto put = [](std::vector<Row>& column, const char* name, const std::string& value) {
    if (!value.empty()) column.push_back({name, value});
  };
  put(rows.left, "Depth, rank", f.rank.empty() ? f.depth : f.depth + ", " + f.rank);
  put(rows.left, "Position", f.position);
  put(rows.left, "Row", f.row);
  put(rows.right, "Target p", f.p);
  put(rows.right, "Draft q", f.q);
  put(rows.right, "Path score", f.path);
  if (!f.log_p.empty() && !f.log_q.empty()) {
    put(rows.wide, "log p, log q", f.log_p + ", " + f.log_q);
  } else {
    put(rows.wide, "log q", f.log_q);
  }
  put(rows.wide, "Bytes", f.bytes);
  if (!f.choice.empty()) put(rows.wide, "After it, the target writes", f.choice + "  id " + f.choice_id);
  return rows;
}

Type type_of(FactWords::Kind kind) {
  return kind == FactWords::Kind::plain ? Type::secondary : Type::mono;
}

/// Draws text in a column, broken at spaces, and returns its height. With list == null it only measures.
float flow_sentence(ImDrawList* list, ImVec2 at, float width, const std::vector<FactWords>& sentence) {
  const float pitch = px(16);
  float x = at.x, y = at.y;
  const auto put = [&](std::string_view word, const FactWords& from) {
    const Type type = type_of(from.kind);
    const float advance = text_size(type, word).x;
    std::string_view shown = word;
    if (x + text_size(type, word.substr(0, word.find_last_not_of(' ') + 1)).x > at.x + width && x > at.x) {
      x = at.x;
      y += pitch;
    }
    if (x == at.x && !shown.empty() && shown.front() == ' ') return;
    const Theme& t = colours();
    const Colour colour = from.kind == FactWords::Kind::token    ? t.accepted_text
                          : from.kind == FactWords::Kind::figure ? t.text
                                                                 : t.text2;
    if (list) draw_text_middle(list, x, y + pitch * 0.5f, type, colour, shown);
    x += advance;
  };
  for (const FactWords& words : sentence) {
    std::string_view rest = words.text;
    while (!rest.empty()) {
      size_t end = words.kind == FactWords::Kind::plain ? rest.find(' ') : std::string_view::npos;
      end = end == std::string_view::npos ? rest.size() : end + 1;
      put(rest.substr(0, end), words);
      rest.remove_prefix(end);
    }
  }
  return y + pitch - at.y;
}

void draw_row(ImDrawList* list, float left, float right, float middle, const Row& row) {
  const Theme& t = colours();
  draw_text_middle(list, left, middle, Type::secondary, t.text2, row.name);
  const float room = right - left - text_size(Type::secondary, row.name).x - px(8);
  const std::string value = elided(Type::mono, row.value, room);
  draw_text_middle(list, right - text_size(Type::mono, value).x, middle, Type::mono, t.text, value);
}

float rows_height(const Rows& rows) {
  return px(kRow) * static_cast<float>(std::max(rows.left.size(), rows.right.size()) + rows.wide.size());
}

std::vector<FactWords> note_of(const TokenFacts& facts) {
  return {{FactWords::Kind::plain, facts.note}};
}

}  // namespace

ImVec2 token_card_size(const TokenFacts& facts) {
  const float inner = px(kWidth) - px(kPad) * 2;
  float words = flow_sentence(nullptr, {0, 0}, inner, facts.sentence);
  if (!facts.note.empty()) words += px(4) + flow_sentence(nullptr, {0, 0}, inner, note_of(facts));
  return {px(kWidth), px(kPad) + px(kHead) + px(4) + rows_height(rows_of(facts)) + px(15) + words + px(kPad)};
}

void draw_token_card(ImDrawList* list, ImVec2 pos, const TokenFacts& facts, bool pinned) {
  const Theme& t = colours();
  const ImVec2 size = token_card_size(facts), end = {pos.x + size.x, pos.y + size.y};
  list->AddRectFilled(pos, end, t.raised, px(6));
  list->AddRect(pos, end, pinned ? t.accent : t.ctl, px(6), pinned ? px(1.5f) : px(1));
  const float left = pos.x + px(kPad), right = end.x - px(kPad);
  float y = pos.y + px(kPad);
  const float head = y + px(kHead) * 0.5f - px(2);
  if (facts.fate != NodeFate::root) draw_fate_badge(list, facts.fate, {left + px(6), head}, px(6.5f), t.raised);
  float x = left + (facts.fate == NodeFate::root ? 0 : px(20));
  const std::string id = facts.id.empty() ? "" : "id " + facts.id;
  const float id_x = right - text_size(Type::mono_caption, id).x;
  draw_text_middle(list, id_x, head, Type::mono_caption, t.text2, id);
  const std::string label =
      elided(Type::mono_semibold, facts.label, id_x - x - px(16) - text_size(Type::base_medium, facts.state).x);
  draw_text_middle(list, x, head, Type::mono_semibold, t.text, label);
  x += text_size(Type::mono_semibold, label).x + px(8);
  draw_text_middle(list, x, head, Type::base_medium, fate_text_colour(colours(), facts.fate), facts.state);
  y += px(kHead) + px(4);
  const Rows rows = rows_of(facts);
  const float column = (right - left - px(kColumnGap)) * 0.5f;
  for (size_t i = 0; i < std::max(rows.left.size(), rows.right.size()); ++i, y += px(kRow)) {
    if (i < rows.left.size()) draw_row(list, left, left + column, y + px(kRow) * 0.5f, rows.left[i]);
    if (i < rows.right.size()) draw_row(list, right - column, right, y + px(kRow) * 0.5f, rows.right[i]);
  }
  for (const Row& row : rows.wide) {
    draw_row(list, left, right, y + px(kRow) * 0.5f, row);
    y += px(kRow);
  }
  y += px(7);
  list->AddRectFilled({left, y}, {right, y + std::max(1.0f, px(1))}, t.ctl);
  y += px(8);
  y += flow_sentence(list, {left, y}, right - left, facts.sentence);
  if (!facts.note.empty()) flow_sentence(list, {left, y + px(4)}, right - left, note_of(facts));
}

ImVec2 place_card(ImVec2 size, ImVec2 item_min, ImVec2 item_max, ImVec2 area_min, ImVec2 area_max,
                  std::span<const ImVec4> avoid) {
  const float gap = px(12);
  const float right = item_max.x - px(4), left = item_min.x + px(4) - size.x;
  const float below = item_max.y + gap, above = item_min.y - gap - size.y;
  const std::array<ImVec2, 4> corners = {ImVec2{right, below}, {right, above}, {left, below}, {left, above}};
  ImVec2 best = corners[0];
  float least = std::numeric_limits<float>::max();
  for (ImVec2 p : corners) {
    p.x = std::clamp(p.x, area_min.x + px(4), std::max(area_min.x + px(4), area_max.x - size.x - px(4)));
    p.y = std::clamp(p.y, area_min.y + px(4), std::max(area_min.y + px(4), area_max.y - size.y - px(4)));
    const auto covered = [&](float x0, float y0, float x1, float y1) {
      const float w = std::min(p.x + size.x, x1) - std::max(p.x, x0),
                  h = std::min(p.y + size.y, y1) - std::max(p.y, y0);
      return w > 0 && h > 0 ? w * h : 0.0f;
    };
    float cost = 100 * covered(item_min.x - gap, item_min.y - gap * 0.5f, item_max.x + gap, item_max.y + gap * 0.5f);
    for (const ImVec4& rect : avoid) cost += covered(rect.x, rect.y, rect.z, rect.w);
    if (cost < least) {
      least = cost;
      best = p;
    }
  }
  return best;
}

}  // namespace canopy::app
