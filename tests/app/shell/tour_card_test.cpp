// The tour's card at every size and scale of a window, over the pass that the tour shows.

#include "app/shell/tour.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "app/shell/watch_layout.h"
#include "app/state/round_log.h"
#include "app/state/shell.h"
#include "app/tree/tree_geometry.h"
#include "app/tree/tree_model.h"

namespace canopy::test {
namespace {

using app::TourCard;
using app::TourClear;
using app::TreeRect;

constexpr float kTopOfTour = 48;

float area_in_common(const TourCard& card, const ImVec4& r) {
  const float w = std::min(card.pos.x + card.size.x, r.z) - std::max(card.pos.x, r.x);
  const float h = std::min(card.pos.y + card.size.y, r.w) - std::max(card.pos.y, r.y);
  return w > 0 && h > 0 ? w * h : 0;
}

size_t covered(const TourCard& card, const std::vector<ImVec4>& rects) {
  return static_cast<size_t>(
      std::ranges::count_if(rects, [&](const ImVec4& r) { return area_in_common(card, r) > 0; }));
}

/// Watch in a window of this size in pixels, with the tour's pass in it.
struct TourWindow {
  TourWindow(float width, float height, float scale) : size(width, height), scale(scale) {
    static const app::TraceLog log(CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace");
    const auto record = log.round(app::telling_round(log));
    const app::TreeModel tree = app::tree_model(*record, std::nullopt);
    at = app::watch_places(width / scale, height / scale, kTopOfTour, true);
    std::vector<float> labels;
    for (const app::TreeNodeView& node : tree.nodes)
      labels.push_back(7.2f * scale *
                       static_cast<float>(app::characters(
                           app::tree_label(node.token ? log.piece(*node.token) : std::nullopt, node.token))));
    const app::TreeGeometry g =
        app::arrange({tree, labels, {at.tree.width * scale, at.tree.height * scale, scale}, true}, {});
    path = on_screen(app::path_places(tree, g, scale));
    clear.path = on_screen(app::path_pills(tree, g, scale));
    clear.words = on_screen(app::other_words(tree, g, scale));
  }

  std::vector<ImVec4> on_screen(const std::vector<TreeRect>& rects) const {
    const float x = at.tree.x * scale, y = at.tree.y * scale;
    std::vector<ImVec4> out;
    for (const TreeRect& r : rects) out.emplace_back(x + r.x0, y + r.y0, x + r.x1, y + r.y1);
    return out;
  }
  ImVec4 hole(const app::WatchRect& r) const {
    return {r.x * scale, r.y * scale, (r.x + r.width) * scale, (r.y + r.height) * scale};
  }
  /// As the words of the fourth step need, which has a figure.
  std::vector<app::TourCardForm> forms() const {
    std::vector<app::TourCardForm> all;
    for (const bool brief : {false, true})
      for (const auto& [w, h] : {std::pair(388.0f, 278.0f), std::pair(520.0f, 257.0f), std::pair(680.0f, 236.0f)})
        all.push_back({{std::min(w * scale, size.x - 24 * scale), (h - (brief ? 94.0f : 0)) * scale}, brief});
    return all;
  }
  TourCard card(std::vector<ImVec4> holes) {
    clear.holes = std::move(holes);
    return app::place_tour_card(forms(), size, clear, scale);
  }
  /// Whether a card has any place clear of the holes, and of the path. Tried pixel for pixel in every direction.
  bool has_clear_place(bool with_path) const {
    std::vector<ImVec4> taken = clear.holes;
    for (ImVec4& r : taken) r = {r.x - 10 * scale, r.y - 10 * scale, r.z + 10 * scale, r.w + 10 * scale};
    if (with_path)
      for (const ImVec4& r : clear.path)
        taken.emplace_back(r.x - 6 * scale, r.y - 6 * scale, r.z + 6 * scale, r.w + 6 * scale);
    const float edge = 12 * scale;
    for (const app::TourCardForm& form : forms())
      for (float y = edge; y <= size.y - form.size.y - edge; y += 3)
        for (float x = edge; x <= size.x - form.size.x - edge; x += 3)
          if (covered({{x, y}, form.size, 0}, taken) == 0) return true;
    return false;
  }

  ImVec2 size;
  float scale;
  app::WatchPlaces at;
  std::vector<ImVec4> path;
  TourClear clear;
};

struct Size {
  float width, height, scale;
  std::string words() const {
    return std::to_string(static_cast<int>(width)) + " x " + std::to_string(static_cast<int>(height)) + " at " +
           std::to_string(static_cast<int>(scale * 100)) + " %";
  }
  /// Whether the window has room for the card beside the parts: in units of the design.
  bool roomy() const { return width / scale >= 800 && height / scale >= 500; }
};

std::vector<Size> sizes() {
  std::vector<Size> all;
  for (const auto& [w, h] :
       {std::pair(900.0f, 600.0f), std::pair(1024.0f, 768.0f), std::pair(1280.0f, 720.0f), std::pair(1280.0f, 800.0f),
        std::pair(1600.0f, 1000.0f), std::pair(1920.0f, 1080.0f), std::pair(2560.0f, 1440.0f)})
    for (const float scale : {0.75f, 1.0f, 1.25f, 1.5f, 2.0f}) all.push_back({w, h, scale});
  return all;
}

TEST(TourCard, IsInsideTheWindow) {
  for (const Size& size : sizes()) {
    TourWindow window(size.width, size.height, size.scale);
    for (const auto& holes : {window.path, std::vector{window.hole(window.at.tree)}, std::vector<ImVec4>{}}) {
      const TourCard card = window.card(holes);
      EXPECT_GE(card.pos.x, 0) << size.words();
      EXPECT_GE(card.pos.y, 0) << size.words();
      EXPECT_LE(card.pos.x + card.size.x, size.width) << size.words();
      EXPECT_LE(card.pos.y + card.size.y, size.height) << size.words();
    }
  }
}

// The accepted path is what the fourth step speaks of: nothing of it is under the card.
TEST(TourCard, LeavesThePathFree) {
  for (const Size& size : sizes()) {
    TourWindow window(size.width, size.height, size.scale);
    ASSERT_FALSE(window.path.empty());
    const TourCard card = window.card(window.path);
    EXPECT_EQ(covered(card, window.path), 0u) << size.words();
    EXPECT_EQ(covered(card, window.clear.path), 0u) << size.words();
  }
}

TEST(TourCard, StandsBesideTheOtherParts) {
  for (const Size& size : sizes()) {
    TourWindow window(size.width, size.height, size.scale);
    for (const app::WatchRect* part : {&window.at.chat, &window.at.numbers, &window.at.caption, &window.at.budget}) {
      if (!part->shown()) continue;
      const TourCard card = window.card({window.hole(*part)});
      if (size.roomy() || window.has_clear_place(false)) {
        EXPECT_EQ(covered(card, window.clear.holes), 0u) << size.words();
      }
      if (window.has_clear_place(true)) {
        EXPECT_EQ(covered(card, window.clear.path), 0u) << size.words();
      }
    }
  }
}

// Where the whole tree is spoken of, the card covers none of the path and as few words as it can.
TEST(TourCard, CoversFewWordsOfTheTree) {
  for (const Size& size : sizes()) {
    TourWindow window(size.width, size.height, size.scale);
    const TourCard card = window.card({window.hole(window.at.tree)});
    const size_t hidden = covered(card, window.clear.words);
    EXPECT_EQ(covered(card, window.clear.path), 0u) << size.words();
    EXPECT_LE(hidden, size.roomy() ? 4u : window.clear.words.size() / 2) << size.words();
  }
}

}  // namespace
}  // namespace canopy::test
