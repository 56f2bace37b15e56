// Using the tree's panel with mouse and keys.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <cmath>
#include <string>

#include "app/tree/tree_overlays.h"
#include "app/tree/tree_panel.h"
#include "tests/app/support/panel_harness.h"
#include "tests/app/support/sample_log.h"
#include "tests/app/tree/tree_samples.h"

namespace canopy::test {
namespace {

using app::NodeFate;

/// A panel that shows rounds given by a test.
class TreeUi : public testing::Test {
 protected:
  TreeUi() : ui_(panel_), log_(std::make_shared<SampleLog>()) { ui_.view().rounds.log = log_; }

  const app::TreeCanvas& canvas() const { return panel_.canvas(); }
  app::RoundsState& rounds() { return ui_.view().rounds; }
  ImVec2 at(uint32_t node) const { return canvas().screen_of(node); }
  void show(size_t round) {
    rounds().playback.shown = round;
    rounds().playback.state = app::PlayState::paused;
    ui_.frames(2);
  }
  template <class T>
  size_t posted() {
    size_t count = 0;
    for (const app::UiCommand& command : ui_.context().posted)
      if (const auto* each = std::get_if<app::RoundsCommand>(&command)) count += std::holds_alternative<T>(*each);
    return count;
  }
  void add_random(uint32_t width, uint32_t seed = 2) {
    std::mt19937 random(seed);
    log_->add(random_round(random, width, 0.6));
  }

  app::TreePanel panel_;
  PanelHarness ui_;
  std::shared_ptr<SampleLog> log_;
};

// gui.md, criterion 8: pointing at each visible node's middle reports it, and the card says what the record has
TEST_F(TreeUi, PointingAtEachNodeShowsItsCard) {
  add_random(40);
  ui_.frames(2);
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    const app::ShownTree& shown = canvas().shown();
    for (uint32_t node = 0; node < shown.model.size(); ++node) {
      if (!canvas().geometry().nodes[node].named) continue;
      ctx->MouseTeleportToPos(at(node));
      ctx->Yield(2);
      IM_CHECK(rounds().hovered.has_value());
      IM_CHECK_EQ(rounds().hovered->node, node);
      IM_CHECK(canvas().card().has_value());
      const app::TokenFacts expected = shown.facts(node);
      IM_CHECK_STR_EQ(canvas().card()->id.c_str(), expected.id.c_str());
      IM_CHECK_STR_EQ(canvas().card()->position.c_str(), expected.position.c_str());
      IM_CHECK_STR_EQ(canvas().card()->log_p.c_str(), expected.log_p.c_str());
      IM_CHECK(canvas().card()->fate == shown.model.nodes[node].fate);
    }
    ctx->MouseTeleportToPos({20, 20});
    ctx->Yield(2);
    IM_CHECK(!rounds().hovered.has_value());
    IM_CHECK(!canvas().card().has_value());
  }));
}

TEST_F(TreeUi, AClickPinsTheCardAndEscapeClosesIt) {
  log_->add(small_round());
  ui_.frames(2);
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    ctx->MouseTeleportToPos(at(4));
    ctx->MouseClick();
    ctx->Yield(2);
    IM_CHECK(rounds().selected == (app::NodeRef{0, 4}));
    ctx->MouseTeleportToPos({20, 20});
    ctx->Yield(2);
    IM_CHECK(canvas().card().has_value());
    IM_CHECK(canvas().card()->fate == NodeFate::rejected);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(2);
    IM_CHECK(!rounds().selected.has_value());
    IM_CHECK(!canvas().card().has_value());
  }));
}

TEST_F(TreeUi, AClickBesideTheTreeLetsTheCardGo) {
  log_->add(small_round());
  ui_.frames(2);
  rounds().selected = app::NodeRef{0, 3};
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    ctx->MouseTeleportToPos({at(0).x, 480});
    ctx->MouseClick();
    ctx->Yield(2);
    IM_CHECK(!rounds().selected.has_value());
  }));
}

// The token hovered in the chat has a ring in the tree, but no second card.
TEST_F(TreeUi, ATokenOfTheChatIsFoundInTheTree) {
  log_->add(small_round());
  ui_.frames(2);
  const size_t before = ui_.vertices();
  rounds().hovered = app::NodeRef{0, 3};
  ui_.frames(2);
  EXPECT_GT(ui_.vertices(), before) << "a ring is drawn";
  EXPECT_FALSE(canvas().card());
  EXPECT_EQ(rounds().hovered, (app::NodeRef{0, 3})) << "and stays the chat's";
  rounds().selected = app::NodeRef{0, 8};  // the bonus: the number after the last node
  ui_.frames(2);
  ASSERT_TRUE(canvas().card());
  EXPECT_EQ(canvas().card()->fate, NodeFate::bonus);
}

TEST_F(TreeUi, ArrowsWalkTheTree) {
  log_->add(small_round());
  ui_.frames(2);
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    ctx->MouseTeleportToPos({at(0).x, 480});
    ctx->MouseClick();
    const auto press = [&](ImGuiKey key, uint32_t expected) {
      ctx->KeyPress(key);
      ctx->Yield(2);
      IM_CHECK(rounds().selected.has_value());
      IM_CHECK_EQ(rounds().selected->node, expected);
    };
    press(ImGuiKey_RightArrow, 0);
    press(ImGuiKey_RightArrow, 3);  // along the accepted path
    press(ImGuiKey_RightArrow, 6);
    press(ImGuiKey_UpArrow, 4);
    press(ImGuiKey_RightArrow, 5);
    press(ImGuiKey_LeftArrow, 4);
    press(ImGuiKey_LeftArrow, 3);
    press(ImGuiKey_UpArrow, 1);
    press(ImGuiKey_UpArrow, 7);
    press(ImGuiKey_LeftArrow, 0);
  }));
}

TEST_F(TreeUi, TheWheelZoomsAtThePointerAndFitShowsAll) {
  add_random(64);
  ui_.frames(2);
  rounds().reduced_motion = true;  // without motion nodes are in their places at once
  ui_.frames(2);
  EXPECT_FALSE(canvas().minimap_shown());
  const float before = canvas().geometry().factor;
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    const uint32_t node = canvas().shown().model.path.back();
    const ImVec2 there = at(node);
    ctx->MouseTeleportToPos(there);
    ctx->MouseWheelY(3);
    ctx->Yield(3);
    IM_CHECK_GT(canvas().geometry().factor, before * 1.3f);
    IM_CHECK_LT(std::abs(at(node).y - there.y), 2.0f);
    IM_CHECK(canvas().minimap_shown());
    ctx->MouseTeleportToPos({300, 15});
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->ItemClick("//Tree/Fit");
    ctx->Yield(2);
    IM_CHECK(canvas().zoom().fit);
    IM_CHECK(!canvas().minimap_shown());
  }));
}

TEST_F(TreeUi, KeysFitAndFind) {
  add_random(300);
  ui_.frames(2);
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    ctx->MouseTeleportToPos({430, 300});
    ctx->MouseClick();
    ctx->KeyPress(ImGuiKey_A);
    ctx->Yield(2);
    IM_CHECK(!canvas().zoom().fit);
    IM_CHECK_GE(canvas().geometry().factor, 2.0f);
    const app::ShownTree& shown = canvas().shown();
    ctx->Yield(20);
    const ImVec2 middle = at(shown.model.path[shown.model.path.size() / 2]);
    IM_CHECK_LT(std::abs(middle.x - 434), 40.0f);
    ctx->KeyPress(ImGuiKey_F);
    ctx->Yield(2);
    IM_CHECK(canvas().zoom().fit);
  }));
}

TEST_F(TreeUi, DraggingMovesTheTreeAndPinsNothing) {
  add_random(64);
  rounds().reduced_motion = true;
  ui_.frames(2);
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    const ImVec2 before = at(0);
    ctx->MouseTeleportToPos(before);
    ctx->MouseDown();
    ctx->MouseMoveToPos({before.x + 120, before.y - 60});
    ctx->MouseUp();
    ctx->Yield(2);
    IM_CHECK_LT(std::abs(at(0).x - before.x - 120), 6.0f);
    IM_CHECK_LT(std::abs(at(0).y - before.y + 60), 6.0f);
    IM_CHECK(!rounds().selected.has_value());
  }));
}

// gui.md, criterion 13: the zoom stays through pausing, stepping and going on
TEST_F(TreeUi, TheZoomStaysFromRoundToRound) {
  add_random(64, 2);
  add_random(48, 3);
  rounds().reduced_motion = true;
  show(0);
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    ctx->MouseTeleportToPos({400, 300});
    ctx->MouseWheelY(4);
    ctx->Yield(2);
  }));
  const float zoomed = canvas().geometry().factor;
  const ImVec2 root = at(0);
  show(1);
  EXPECT_FLOAT_EQ(canvas().geometry().factor, zoomed);
  EXPECT_NEAR(at(0).y, root.y, 1);
  show(0);
  EXPECT_FLOAT_EQ(canvas().geometry().factor, zoomed);
}

// A tuft unfolds under the mouse, a click keeps it open, Escape folds it again.
TEST_F(TreeUi, TuftsUnfold) {
  add_random(400);
  rounds().reduced_motion = true;
  ui_.frames(2);
  ASSERT_FALSE(canvas().geometry().tufts.empty());
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    const app::TuftBox& tuft = canvas().geometry().tufts.front();
    const ImVec2 origin = {at(0).x - app::centre_of(canvas().geometry(), 0).x,
                           at(0).y - app::centre_of(canvas().geometry(), 0).y};
    const ImVec2 there = {origin.x + tuft.x + tuft.length * 0.4f, origin.y + tuft.y};
    ctx->MouseTeleportToPos(there);
    ctx->SleepNoSkip(0.2f, 1.0f / 60);
    IM_CHECK(canvas().open_tuft() == std::optional<uint32_t>(0));
    ctx->MouseTeleportToPos({20, 20});
    ctx->Yield(3);
    IM_CHECK(!canvas().open_tuft());
    ctx->MouseTeleportToPos(there);
    ctx->MouseClick();
    ctx->MouseTeleportToPos({20, 20});
    ctx->Yield(3);
    IM_CHECK(canvas().open_tuft() == std::optional<uint32_t>(0));
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(2);
    IM_CHECK(!canvas().open_tuft());
    IM_CHECK(!rounds().selected.has_value());
  }));
}

// After a step nodes move for 200 ms and then no more frames are needed; while following there is no motion.
TEST_F(TreeUi, StepsMoveAndLiveRoundsDoNot) {
  log_->add(small_round());
  RoundRecord next = sample_round({{0, 50, 0, .6}, {0, 51, 1, .3}}, {50, 7});
  next.nodes[0].node.token = 99;  // the bonus of the round before
  next.context = 503;
  log_->add(next);
  show(0);
  const float bonus_x = at(8).x;
  rounds().playback.shown = 1;
  ui_.frame();
  EXPECT_GT(at(0).x, bonus_x - 60) << "the new root starts where it was the bonus";
  EXPECT_GT(ui_.context().look().drawing_until, ImGui::GetTime());
  ui_.frames(20);
  EXPECT_LT(at(0).x, 120);
  EXPECT_LT(ui_.context().look().drawing_until, ImGui::GetTime()) << "nothing keeps drawing";
  rounds().playback.state = app::PlayState::following;
  rounds().playback.shown = 0;
  ui_.frame();
  EXPECT_LT(at(0).x, 120) << "live rounds do not move";
}

// gui.md, criterion 14, the drawing: what is not there yet cannot be pointed at
TEST_F(TreeUi, SlowMotionShowsOnePhaseAfterTheOther) {
  log_->add(small_round());
  show(0);
  rounds().playback.slow_motion = true;
  const auto hovered_in = [&](app::Phase phase, float progress, uint32_t node) {
    rounds().playback.phase = phase;
    rounds().playback.progress = progress;
    rounds().hovered.reset();
    ui_.frames(2);
    ImGui::GetIO().AddMousePosEvent(at(node).x, at(node).y);
    ui_.frames(3);
    return rounds().hovered.has_value();
  };
  EXPECT_FALSE(hovered_in(app::Phase::fill, 0.5f, 3));
  EXPECT_FALSE(hovered_in(app::Phase::insert, 0.3f, 6));
  EXPECT_TRUE(hovered_in(app::Phase::insert, 0.3f, 1));
  EXPECT_TRUE(hovered_in(app::Phase::verify, 0.5f, 6));
  EXPECT_FALSE(hovered_in(app::Phase::walk, 1, 8)) << "the bonus comes later";
  EXPECT_TRUE(hovered_in(app::Phase::bonus, 1, 8));
}

TEST_F(TreeUi, TheEmptyPanelOffersTheDemo) {
  ui_.frames(2);
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Tree/Watch demo");
    ctx->Yield(2);
  }));
  EXPECT_EQ(posted<app::WatchDemo>(), 1u);
}

TEST_F(TreeUi, DrawsPlainRoundsChainsAndTreesThatWereLetGo) {
  RoundRecord plain;
  plain.emitted = {7};
  log_->add(plain);
  RoundRecord chain = sample_round({{0, 10, 0, .9}, {1, 20, 0, .8}, {2, 30, 0, .7}}, {10, 20, 9});
  chain.shape = DecodeMode::chain;
  log_->add(chain);
  add_random(20);
  log_->forget(2);
  show(0);
  EXPECT_EQ(canvas().shown().model.size(), 2u);
  show(1);
  EXPECT_EQ(canvas().shown().model.counted(NodeFate::rejected), 1u);
  show(2);
  EXPECT_EQ(canvas().shown().record, nullptr);
  show(1);
  EXPECT_NE(canvas().shown().record, nullptr);
}

// A redacted trace has no texts: labels are numbers.
TEST_F(TreeUi, LabelsAreNumbersWhereThereAreNoTexts) {
  log_->add(small_round());
  ui_.frames(2);
  EXPECT_EQ(canvas().shown().labels[1], "#10");
  EXPECT_EQ(canvas().shown().labels[8], "#99");
}

TEST_F(TreeUi, JumpToLiveCoversNoWord) {
  for (uint32_t seed = 1; seed <= 12; ++seed) add_random(8 * seed, seed);
  size_t offered = 0;
  for (size_t round = 0; round + 1 < log_->rounds(); ++round) {
    show(round);
    ASSERT_TRUE(rounds().behind_live());
    EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
      ctx->Yield(2);
      if (!ctx->ItemExists("//Tree/Jump to live")) return;  // no room: the strip of passes leads back, too
      ++offered;
      const ImRect button = ctx->ItemInfo("//Tree/Jump to live").RectFull;
      const float scale = app::look().scale;
      std::vector<app::TreeRect> words = app::path_pills(canvas().shown().model, canvas().geometry(), scale);
      for (const app::TreeRect& each : app::other_words(canvas().shown().model, canvas().geometry(), scale))
        words.push_back(each);
      for (const ImVec4& word : canvas().on_screen(words))
        IM_CHECK_SILENT(!button.Overlaps(ImRect(word.x, word.y, word.z, word.w)));
    })) << "pass "
        << round + 1;
  }
  EXPECT_GT(offered, 0u);
}

}  // namespace
}  // namespace canopy::test
