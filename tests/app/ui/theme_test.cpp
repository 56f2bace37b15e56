#include "app/state/theme.h"

#include <gtest/gtest.h>
#include <imgui.h>

#include <initializer_list>
#include <utility>

#include "app/platform/desktop_window.h"
#include "app/ui/look.h"
#include "tests/app/ui/colour_math.h"

namespace canopy::app {
namespace {

using test::contrast;
using test::difference;
using test::Vision;

class ThemeTest : public testing::TestWithParam<ThemeKind> {
 protected:
  const Theme& t = theme(GetParam());
};

// After input an idle window draws one more frame. A tooltip must be due by then, or it would never be shown.
TEST(Style, TooltipsAreDueBeforeTheLastFrameAfterInput) {
  ImGuiStyle style;
  apply_style(style, theme(ThemeKind::dark), 1);
  EXPECT_LT(static_cast<double>(style.HoverStationaryDelay + style.HoverDelayNormal), FramePacer::kRest);
}

TEST(ColourMath, AgreesWithPublishedValues) {
  // Black on white is 21 by definition; the second pair is the familiar darkest grey that passes AA on white.
  EXPECT_NEAR(contrast(0xFF000000, 0xFFFFFFFF), 21.0, 1e-9);
  EXPECT_NEAR(contrast(0xFF767676, 0xFFFFFFFF), 4.54, 0.01);
  EXPECT_NEAR(difference(0xFF000000, 0xFFFFFFFF, Vision::normal), 100.0, 0.01);
  EXPECT_NEAR(difference(0xFF0000FF, 0xFF0000FF, Vision::normal), 0.0, 1e-9);
}

TEST_P(ThemeTest, TextIsReadableOnEverySurface) {
  for (Colour surface : {t.back, t.canvas, t.panel, t.card, t.raised})
    for (Colour text : {t.text, t.text2, t.text3}) EXPECT_GE(contrast(text, surface), 4.5);
}

TEST_P(ThemeTest, AccentsAreReadable) {
  for (Colour surface : {t.back, t.canvas, t.panel, t.card, t.raised}) EXPECT_GE(contrast(t.accent_text, surface), 4.5);
  EXPECT_GE(contrast(t.on_accent, t.accent), 4.5);
  EXPECT_GE(contrast(t.text, t.accent_bg), 4.5);
}

TEST_P(ThemeTest, WordsInStateColoursAreReadableWhereTheyStand) {
  for (Colour surface : {t.canvas, t.panel, t.card})
    for (Colour text : {t.accepted_text, t.rejected_text, t.bonus_text}) EXPECT_GE(contrast(text, surface), 4.5);
  for (auto [text, ground] : {std::pair{t.accepted_text, t.accepted_bg}, std::pair{t.rejected_text, t.rejected_bg}})
    EXPECT_GE(contrast(text, ground), 4.5);
}

TEST_P(ThemeTest, BordersAndStatesAreVisible) {
  for (Colour surface : {t.canvas, t.panel, t.card, t.raised}) EXPECT_GE(contrast(t.ctl, surface), 3.0);
  for (Colour state : {t.accepted, t.rejected, t.unreached, t.bonus}) EXPECT_GE(contrast(state, t.canvas), 3.0);
}

TEST_P(ThemeTest, StagesAreVisibleAndDifferForEveryVision) {
  const Colour stages[] = {t.draft, t.verify, t.rest};
  for (Colour surface : {t.canvas, t.panel, t.card})
    for (Colour stage : stages) EXPECT_GE(contrast(stage, surface), 3.0);
  for (Vision vision : {Vision::normal, Vision::deutan, Vision::protan, Vision::tritan})
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < i; ++j)
        EXPECT_GE(difference(stages[i], stages[j], vision), 15.0) << i << " and " << j << ", vision " << int(vision);
}

// gui.md, criterion 24, with TextIsReadableOnEverySurface
TEST_P(ThemeTest, StatesDifferForEveryVision) {
  const Colour states[] = {t.accepted, t.rejected, t.unreached, t.bonus};
  for (Vision vision : {Vision::normal, Vision::deutan, Vision::protan, Vision::tritan})
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < i; ++j)
        EXPECT_GE(difference(states[i], states[j], vision), 15.0) << i << " and " << j << ", vision " << int(vision);
}

TEST(Theme, MixKeepsAlphaAndEnds) {
  EXPECT_EQ(mix(0x80112233, 0xFF445566, 0), 0x80112233u);
  EXPECT_EQ(mix(0x80112233, 0xFF445566, 1), 0x80445566u);
}

INSTANTIATE_TEST_SUITE_P(Themes, ThemeTest, testing::Values(ThemeKind::dark, ThemeKind::light, ThemeKind::projector));

}  // namespace
}  // namespace canopy::app
