#include "app/tree/tuft_card.h"

#include <algorithm>
#include <cmath>

#include "app/layout/tree_transition.h"

namespace canopy::app {
namespace {

constexpr double kHoverSeconds = 0.12, kOpenSeconds = 0.16;
constexpr size_t kListed = 6;
constexpr float kTuftRow = 17, kTuftHead = 24, kTuftPad = 10, kBranches = 46, kShare = 44;

std::string together(const Tuft& tuft) {
  return std::to_string(tuft.nodes) + (tuft.nodes == 1 ? " guess, " : " guesses, ") + percentage(tuft.mass) +
         (tuft.nodes == 1 ? "" : " together");
}

size_t listed(const Tuft& tuft) {
  return std::min(kListed, tuft.heads.size());
}

uint32_t others(const Tuft& tuft) {
  return tuft.nodes - static_cast<uint32_t>(listed(tuft));
}

TreeRect card_of(const TreePaint& paint, uint32_t index) {
  const Tuft& tuft = paint.geometry.words.tufts[index];
  const TuftBox& box = paint.geometry.tufts[index];
  float words = 0;
  for (size_t i = 0; i < listed(tuft); ++i)
    words = std::max(words, text_size(Type::mono, paint.labels[tuft.heads[i]]).x);
  const float wide = std::max(px(kBranches) + words + px(kShare) + px(kTuftPad) * 2,
                              text_size(Type::caption_semibold, together(tuft)).x + px(kTuftPad) * 2);
  const float rows = static_cast<float>(listed(tuft) + (others(tuft) > 0 ? 1 : 0));
  const float high = px(kTuftHead) + rows * px(kTuftRow) + px(8);
  const float room_x = std::max(px(4), paint.size.x - wide - px(4)),
              room_y = std::max(px(4), paint.size.y - high - px(4));
  const float x = std::clamp(box.x - px(10), px(4), room_x), y = std::clamp(box.y - high * 0.5f, px(4), room_y);
  return {x, y, x + wide, y + high};
}

}  // namespace

bool OpenTuft::close() {
  const bool was = open.has_value();
  open.reset();
  pinned = false;
  return was;
}

void OpenTuft::point(const TreePaint& paint, std::optional<TreePoint> at, double now, bool reduced_motion) {
  const auto tufts = static_cast<uint32_t>(paint.geometry.tufts.size());
  if (open && *open >= tufts) close();
  if (open) card_ = card_of(paint, *open);
  if (pinned || (at && covers(*at))) return;
  const std::optional<uint32_t> over = at ? tuft_at(paint.geometry, *at) : std::nullopt;
  if (over != pointed_) {
    pointed_ = over;
    since_ = now;
    if (over) keep_drawing(kHoverSeconds + kOpenSeconds + 0.05);
  }
  if (open && over != open) close();
  if (!over || open || now - since_ < kHoverSeconds) return;
  open = over;
  opened_ = now;
  at_once_ = reduced_motion;
  card_ = card_of(paint, *open);
}

bool OpenTuft::click(const TreeGeometry& geometry, TreePoint at) {
  if (pinned) {
    const bool on = covers(at);
    if (!on) close();
    return on;
  }
  if (open && covers(at)) return pinned = true;
  const std::optional<uint32_t> over = tuft_at(geometry, at);
  if (!over) return false;
  open = over;
  opened_ = 0;
  at_once_ = true;
  return pinned = true;
}

void OpenTuft::draw(ImDrawList* list, const TreePaint& paint, double now) const {
  if (!open || *open >= paint.geometry.tufts.size()) return;
  const Theme& t = colours();
  const Tuft& tuft = paint.geometry.words.tufts[*open];
  const float grown = at_once_ ? 1 : ease_out(static_cast<float>((now - opened_) / kOpenSeconds));
  const TreeRect whole = card_of(paint, *open);
  const float middle = (whole.y0 + whole.y1) * 0.5f, half = (whole.y1 - whole.y0) * 0.5f * (0.4f + 0.6f * grown);
  const ImVec2 a = paint.at(whole.x0, middle - half), b = paint.at(whole.x1, middle + half);
  list->AddRectFilled(a, b, t.raised, px(6));
  list->AddRect(a, b, t.text, px(6), pinned ? units(2) : units(1.5f));
  list->PushClipRect(a, b, true);
  draw_text_middle(list, a.x + px(kTuftPad), a.y + px(kTuftHead) * 0.5f + px(1), Type::caption_semibold, t.text,
                   together(tuft));
  const ImVec2 fork = {a.x + px(kTuftPad), (a.y + b.y) * 0.5f + px(6)};
  const NodeLook look = paint.look_of(tuft);
  for (size_t i = 0; i < listed(tuft); ++i) {
    const uint32_t head = tuft.heads[i];
    const float y = a.y + px(kTuftHead) + (static_cast<float>(i) + 0.5f) * px(kTuftRow),
                x = a.x + px(kTuftPad) + px(kBranches);
    const float thick = std::max(1.0f, units(limb_thickness(paint.tree.nodes[head].path, 22)));
    fill_ribbon(list, {fork.x, {fork.x, fork.y}, {x - px(8), y}, thick, thick}, mix(t.limb, t.text3, 0.2f));
    list->AddCircleFilled({x - px(7), y}, units(2), look == NodeLook::rejected ? t.rejected : t.text3, 8);
    draw_word(list, {x, y}, Type::mono, text_height(Type::mono), t.text, paint.labels[head], b.x - x - px(kShare));
    const std::string share = percentage(paint.tree.nodes[head].path);
    draw_text_middle(list, b.x - px(kTuftPad) - text_size(Type::mono_caption, share).x, y, Type::mono_caption, t.text2,
                     share);
  }
  if (others(tuft) > 0) {
    const float y = a.y + px(kTuftHead) + (static_cast<float>(listed(tuft)) + 0.5f) * px(kTuftRow);
    draw_text_middle(list, a.x + px(kTuftPad) + px(kBranches), y, Type::caption, t.text3,
                     "and " + std::to_string(others(tuft)) + " more");
  }
  list->PopClipRect();
}

}  // namespace canopy::app
