#include "tests/app/support/drawn_texts.h"

#include <algorithm>
#include <cmath>

namespace canopy::test {
namespace {

constexpr float kSlack = 0.75f;  // pixels: positions are rounded when they are drawn

bool visible(const app::DrawnText& t) {
  return t.max.x > t.clip_min.x && t.min.x < t.clip_max.x && t.max.y > t.clip_min.y && t.min.y < t.clip_max.y &&
         t.max.x > t.min.x;
}

/// Whether it is the same text at the same place, drawn in another frame.
bool same(const app::DrawnText& a, const app::DrawnText& b) {
  return a.text == b.text && std::abs(a.min.x - b.min.x) < 1 && std::abs(a.min.y - b.min.y) < 1;
}

/// Whether texts overlap, apart from the edges of their lines, where no letter reaches.
bool overlap(const app::DrawnText& a, const app::DrawnText& b) {
  const float shrink_a = (a.max.y - a.min.y) * 0.2f, shrink_b = (b.max.y - b.min.y) * 0.2f;
  return a.min.x + kSlack < b.max.x && b.min.x + kSlack < a.max.x && a.min.y + shrink_a < b.max.y - shrink_b &&
         b.min.y + shrink_b < a.max.y - shrink_a;
}

}  // namespace

bool DrawnTexts::has(const std::string& text) const {
  return std::ranges::any_of(texts_, [&](const app::DrawnText& t) { return t.text == text; });
}

bool DrawnTexts::any_contains(const std::string& part) const {
  return std::ranges::any_of(texts_, [&](const app::DrawnText& t) { return t.text.find(part) != std::string::npos; });
}

std::vector<std::string> DrawnTexts::cut() const {
  std::vector<std::string> found;
  for (const app::DrawnText& t : texts_)
    if (visible(t) && (t.max.x > t.clip_max.x + kSlack || t.min.x < t.clip_min.x - kSlack)) found.push_back(t.text);
  return found;
}

std::vector<std::string> DrawnTexts::overlapping() const {
  std::vector<std::string> found;
  for (size_t i = 0; i < texts_.size(); ++i)
    for (size_t k = i + 1; k < texts_.size(); ++k)
      if (visible(texts_[i]) && visible(texts_[k]) && !same(texts_[i], texts_[k]) && overlap(texts_[i], texts_[k]))
        found.push_back(texts_[i].text + " | " + texts_[k].text);
  return found;
}

std::vector<std::string> DrawnTexts::leaving(ImVec2 min, ImVec2 max) const {
  std::vector<std::string> found;
  for (const app::DrawnText& t : texts_) {
    const bool begins = t.min.x >= min.x && t.min.x < max.x && t.min.y >= min.y - kSlack && t.min.y < max.y;
    if (begins && (t.max.x > max.x + kSlack || t.max.y > max.y + kSlack)) found.push_back(t.text);
  }
  return found;
}

std::vector<std::string> DrawnTexts::shortened() const {
  std::vector<std::string> found;
  for (const app::DrawnText& t : texts_)
    if (t.text.ends_with("\u2026")) found.push_back(t.text);
  return found;
}

}  // namespace canopy::test
