// A frame that looks like the one before has the same hash, and no other has.

#include "app/platform/desktop_window.h"

#include <gtest/gtest.h>

#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

uint64_t hash_of(UiHarness& ui, ImU32 clear = 0) {
  ui.frame();
  ImGui::Render();
  return app::drawn_hash(*ImGui::GetDrawData(), clear);
}

TEST(DrawnHash, ChangesWithWhatIsDrawnAndOnlyThen) {
  UiHarness ui;
  for (int i = 0; i < 5; ++i) ui.frame();
  const uint64_t first = hash_of(ui);
  EXPECT_EQ(hash_of(ui), first);
  EXPECT_NE(hash_of(ui, 1), first) << "another background";
  ImGui::GetIO().AddMousePosEvent(3, 3);  // over nothing
  ui.frame();
  EXPECT_EQ(hash_of(ui), first);
  ui.app().run(app::SetTheme{app::ThemeKind::light});
  ui.frame();
  EXPECT_NE(hash_of(ui), first);
  ui.app().run(app::SetTheme{app::ThemeKind::dark});
  ui.frame();
  EXPECT_EQ(hash_of(ui), first);
}

}  // namespace
}  // namespace canopy::test
