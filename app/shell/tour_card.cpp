#include "app/shell/tour_card.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>

namespace canopy::app {
namespace {

constexpr float kCardEdge = 12, kCardBeside = 20;  // to the window's edge and to a hole beside
constexpr float kCardHoleAir = 8, kCardPillAir = 4;
constexpr float kCardStep = 32, kMostCardSteps = 40;  // of the grid of places that are tried

ImVec4 card_rect(const TourCard& card) {
  return {card.pos.x, card.pos.y, card.pos.x + card.size.x, card.pos.y + card.size.y};
}

ImVec4 with_air(const ImVec4& r, float air) {
  return {r.x - air, r.y - air, r.z + air, r.w + air};
}

/// How bad a place is, the weightiest first.
using TourCardCost = std::tuple<bool, float, bool, uint32_t, float, size_t, float>;

class CardSearch {
 public:
  CardSearch(const std::vector<TourCardForm>& forms, ImVec2 window, const TourClear& clear, float scale)
      : forms_(forms), window_(window), clear_(clear), scale_(scale) {}

  TourCard run() {
    for (size_t i = 0; i < forms_.size(); ++i) {
      for (const ImVec4& hole : clear_.holes) beside(i, hole);
      grid(i);
      touching(i);
    }
    return best_;
  }

 private:
  void beside(size_t form, const ImVec4& hole) {
    const ImVec2 card = forms_[form].size;
    const float gap = kCardBeside * scale_, x = (hole.x + hole.z - card.x) * 0.5f,
                y = (hole.y + hole.w - card.y) * 0.5f;
    try_at(form, {hole.z + gap, y});
    try_at(form, {hole.x - gap - card.x, y});
    try_at(form, {x, hole.w + gap});
    try_at(form, {x, hole.y - gap - card.y});
  }

  void grid(size_t form) {
    const ImVec2 card = forms_[form].size;
    const float step = std::max({kCardStep * scale_, window_.x / kMostCardSteps, window_.y / kMostCardSteps});
    // Beyond the last places, which try_at() moves to the window's edge.
    for (float y = 0; y < window_.y - card.y + step; y += step)
      for (float x = 0; x < window_.x - card.x + step; x += step) try_at(form, {x, y});
  }

  /// A card in free room can be moved left or right, and up or down, until it touches something: so one of these places
  /// is free if any is.
  void touching(size_t form) {
    const ImVec2 card = forms_[form].size;
    std::vector<float> xs = {0}, ys = {0};
    const auto add = [&](const ImVec4& r) {
      xs.insert(xs.end(), {r.z, r.x - card.x});
      ys.insert(ys.end(), {r.w, r.y - card.y});
    };
    for (const ImVec4& hole : clear_.holes) add(with_air(hole, kCardHoleAir * scale_ + 1));
    for (const ImVec4& pill : clear_.path) add(with_air(pill, kCardPillAir * scale_ + 1));
    for (const float x : xs)
      for (const float y : ys) try_at(form, {x, y});
  }

  void try_at(size_t form, ImVec2 pos) {
    const float edge = kCardEdge * scale_;
    TourCard card{pos, forms_[form].size, form};
    card.pos.x = std::floor(std::clamp(pos.x, edge, std::max(edge, window_.x - card.size.x - edge)));
    card.pos.y = std::floor(std::clamp(pos.y, edge, std::max(edge, window_.y - card.size.y - edge)));
    const TourCardCost cost = cost_of(card);
    if (cost >= least_) return;
    least_ = cost;
    best_ = card;
  }

  TourCardCost cost_of(const TourCard& card) const {
    const ImVec4 rect = card_rect(card);
    const ImVec4 roomy = with_air(rect, kCardHoleAir * scale_), pills = with_air(rect, kCardPillAir * scale_);
    float near = 0, path = 0, hole_area = 0;
    for (const ImVec4& hole : clear_.holes) {
      near += overlap_of(roomy, hole);
      hole_area += overlap_of(rect, hole);
    }
    for (const ImVec4& pill : clear_.path) path += overlap_of(pills, pill);
    uint32_t words = 0;
    if (near > 0)
      for (const ImVec4& word : clear_.words) words += overlap_of(rect, word) > 0;
    return {near > 0, path, forms_[card.form].brief, words, hole_area, card.form, distance(rect)};
  }

  /// From the middle of the card to that of the nearest hole; without holes to that of the window.
  float distance(const ImVec4& card) const {
    const auto middle = [](const ImVec4& r) { return ImVec2((r.x + r.z) * 0.5f, (r.y + r.w) * 0.5f); };
    const ImVec2 at = middle(card);
    const auto to = [&](ImVec2 p) { return std::hypot(p.x - at.x, p.y - at.y); };
    if (clear_.holes.empty()) return to({window_.x * 0.5f, window_.y * 0.5f});
    float least = std::numeric_limits<float>::max();
    for (const ImVec4& hole : clear_.holes) least = std::min(least, to(middle(hole)));
    return least;
  }

  const std::vector<TourCardForm>& forms_;
  ImVec2 window_;
  const TourClear& clear_;
  float scale_;
  TourCard best_;
  TourCardCost least_{true, std::numeric_limits<float>::max(), true, ~0u, 0, 0, 0};
};

}  // namespace

float overlap_of(const ImVec4& a, const ImVec4& b) {
  const float w = std::min(a.z, b.z) - std::max(a.x, b.x), h = std::min(a.w, b.w) - std::max(a.y, b.y);
  return w > 0 && h > 0 ? w * h : 0;
}

TourCard place_tour_card(const std::vector<TourCardForm>& forms, ImVec2 window, const TourClear& clear, float scale) {
  return CardSearch(forms, window, clear, scale).run();
}

}  // namespace canopy::app
