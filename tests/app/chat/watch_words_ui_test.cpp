// The words of Watch around the chat: what its marks mean, the facts and verdicts below a reply, and when a pass is
// live. Lab keeps its own.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/chat/reply.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

using namespace app;  // NOLINT: the whole file is about it

constexpr uint32_t kPasses = 9, kPerPass = 3;

app::AppSettings in_layout(WindowLayout layout) {
  app::AppSettings settings;
  settings.layout = layout;
  return settings;
}

/// The application with an engine that drafts trees. A reply has a first token and nine
/// passes of three; it ends when finish() is called, and a check of it at once.
class DraftedChat {
 public:
  explicit DraftedChat(WindowLayout layout, float width = 1280, float height = 800)
      : ui(in_layout(layout), width, height) {
    ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
      if (std::holds_alternative<LoadModel>(command)) {
        ModelReady model = small_model();
        model.drafter = "drafter.gguf";
        engine.publish(model);
      }
      const auto* generate = std::get_if<Generate>(&command);
      if (!generate) return;
      write(engine, *generate);
      if (generate->mode == DecodeMode::ar) finish(engine, *generate);
    };
    ui.app().run(OpenModel{"/models/a.gguf"});
    ui.app().pump();
    ui.app().run(SetDrafting{DecodeMode::tree});
    ui.app().run(SendMessage{"Hello"});
    ui.app().pump();
    frames(4);
  }

  void frames(int count) {
    for (int i = 0; i < count; ++i) ui.frame();
  }
  void finish() {
    finish(ui.engine(), ui.engine().last<Generate>());
    ui.app().pump();
    frames(4);
  }

  UiHarness ui;

 private:
  static void write(ScriptedEngine& engine, const Generate& generate) {
    const bool plain = generate.mode == DecodeMode::ar;
    const uint32_t count = plain ? 1 : kPerPass, tokens = kPasses * kPerPass;
    engine.publish(PrefillProgress{generate.reply_id, 20, 20});
    engine.publish(ReplyStarted{generate.reply_id, 20, 0, 10, 100});
    for (uint32_t at = 1; at <= tokens; at += count) {
      auto record = std::make_shared<RoundRecord>();
      record->mode = record->shape = plain ? DecodeMode::ar : DecodeMode::tree;
      record->round = (at - 1) / count;
      record->ms.verify = 10;
      record->width = count;
      record->accepted = count - 1;
      if (!plain) record->nodes.resize(count);
      for (uint32_t n = 1; n < record->nodes.size(); ++n)
        record->nodes[n] = {{100 + at + n - 1, n - 1, n}, NodeState::accepted};
      if (!plain) record->nodes[0].state = NodeState::accepted;
      std::vector<uint32_t> ends;
      for (uint32_t i = 0; i < count; ++i) {
        record->emitted.push_back(100 + at + i);
        ends.push_back(5 * (at + i));
      }
      std::string text;
      for (uint32_t i = 0; i < count; ++i) text += "word ";
      engine.publish(TextDelta{generate.reply_id, text, at + count, 20 + at, 10});
      engine.publish(RoundFinished{generate.reply_id, record, at, 5 * (at - 1), ends, false});
    }
  }
  static void finish(ScriptedEngine& engine, const Generate& generate) {
    ReplyFinished finished;
    finished.reply_id = generate.reply_id;
    finished.reply_tokens = kPasses * kPerPass + 1;
    finished.mode = *generate.mode;
    finished.tau = kPerPass;
    finished.tokens_per_second = 10;
    finished.plain = {1000.0 / 18, 3, false};
    engine.publish(finished);
  }
};

/// The texts of one frame.
std::vector<std::string> texts_of(DraftedChat& chat) {
  const DrawnTexts drawn;
  chat.frames(1);
  EXPECT_EQ(drawn.cut(), std::vector<std::string>{});
  std::vector<std::string> texts;
  for (const DrawnText& each : drawn.all()) texts.push_back(each.text);
  return texts;
}

bool has(const std::vector<std::string>& texts, const std::string& text) {
  return std::ranges::find(texts, text) != texts.end();
}

bool any_contains(const std::vector<std::string>& texts, const std::string& part) {
  return std::ranges::any_of(texts, [&](const std::string& each) { return each.find(part) != std::string::npos; });
}

TEST(WatchWords, TheLegendOfTheChatIsWhole) {
  for (const auto& [width, height] : {std::pair(1280.0f, 800.0f), std::pair(2560.0f, 1440.0f)}) {
    DraftedChat chat(WindowLayout::watch, width, height);
    const auto texts = texts_of(chat);
    EXPECT_TRUE(has(texts, "guessed, confirmed")) << width;
    EXPECT_TRUE(has(texts, "the big model's own")) << width;
  }
  DraftedChat lab(WindowLayout::lab);
  const auto texts = texts_of(lab);
  EXPECT_TRUE(has(texts, "guessed, confirmed"));
  EXPECT_TRUE(has(texts, "big model's own"));
}

// Where the whole words have no room it says it in fewer, at every size and scale.
TEST(WatchWords, TheLegendOfTheChatIsCutNowhere) {
  for (const auto& [width, height] :
       {std::pair(640.0f, 480.0f), std::pair(960.0f, 600.0f), std::pair(1280.0f, 800.0f), std::pair(1920.0f, 1080.0f)})
    for (const float scale : {1.0f, 1.5f, 2.0f, 3.0f}) {
      UiHarness ui(in_layout(WindowLayout::watch), width, height);
      ui.app().run(OpenModel{CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace"});
      ui.app().run(app::RoundsCommand(app::ShowRound{7}));
      ui.app().run(app::SetScale{scale});
      for (int i = 0; i < 5; ++i) ui.frame();
      const DrawnTexts drawn;
      ui.frame();
      for (const std::string& text : drawn.shortened())
        EXPECT_FALSE(text.starts_with("guessed") || text.starts_with("the big") || text.starts_with("big model's") ||
                     text.starts_with("its own"))
            << text << ", " << width << " x " << height << " at " << scale;
      const bool roomy = width >= 1280 && scale < 3;
      EXPECT_TRUE(!roomy || scale > 1 || drawn.has("guessed by the drafter, confirmed")) << width;
      EXPECT_TRUE(!roomy || drawn.any_contains("guessed")) << width << " at " << scale;
    }
}

// In the narrow chat it has two lines, and hiding the marks moves nothing.
TEST(WatchWords, TheLegendKeepsItsHeight) {
  DraftedChat chat(WindowLayout::watch);
  EXPECT_TRUE(chat.ui.run([&](ImGuiTestContext* ctx) {
    const ImRect shown = ctx->ItemInfo("//Watch chat/**/Token sources").RectFull;
    IM_CHECK_GT(shown.GetHeight(), 30.0f);
    ctx->ItemClick("//Watch chat/**/Token sources");
    ctx->Yield(2);
    IM_CHECK(!chat.ui.view().chat.sources_shown);
    const ImRect hidden = ctx->ItemInfo("//Watch chat/**/Token sources").RectFull;
    IM_CHECK_EQ(hidden.Min.y, shown.Min.y);
    IM_CHECK_EQ(hidden.Max.y, shown.Max.y);
  }));
}

TEST(WatchWords, AReplyIsLiveUntilItEnds) {
  DraftedChat chat(WindowLayout::watch);
  EXPECT_TRUE(has(texts_of(chat), "pass 9 of 9 \u00b7 live"));
  chat.finish();
  const auto texts = texts_of(chat);
  EXPECT_TRUE(has(texts, "pass 9 of 9"));
  EXPECT_FALSE(any_contains(texts, "live"));
}

TEST(WatchWords, FactsOfAReply) {
  DraftedChat chat(WindowLayout::watch);
  chat.finish();
  const Message& reply = *chat.ui.view().last_reply();
  using Facts = std::vector<std::string>;
  EXPECT_EQ(reply_facts(reply), (Facts{"10 tok/s", "3.00 a pass", "9 passes"}));
  const std::string details = reply_details(reply);
  EXPECT_NE(details.find("Tokens per pass (\u03c4): tokens that passes brought / passes = 3.00"), std::string::npos)
      << details;
  EXPECT_EQ(details.find("ound"), std::string::npos) << details;
  EXPECT_TRUE(any_contains(texts_of(chat), "3.00 a pass"));
}

TEST(WatchWords, BelowAReplyStandsItsSpeedBesideThatOfPlainDecoding) {
  for (const WindowLayout layout : {WindowLayout::watch, WindowLayout::lab}) {
    DraftedChat chat(layout, 1600, 1000);
    EXPECT_FALSE(any_contains(texts_of(chat), "slower"));
    chat.finish();
    EXPECT_TRUE(has(texts_of(chat), "here 10 tok/s, plain 18: 1.8\u00d7 slower"));
  }
  DraftedChat narrow(WindowLayout::watch);  // in the words that fit
  narrow.finish();
  EXPECT_TRUE(any_contains(texts_of(narrow), "1.8\u00d7 slower"));
}

TEST(WatchWords, TheVerdictOfTheCheckIsWholeInANarrowChat) {
  DraftedChat chat(WindowLayout::watch);
  chat.finish();
  chat.ui.app().run(CheckCommand(CheckAgainstAr{chat.ui.view().last_reply()->id}));
  chat.ui.app().pump();
  chat.frames(4);
  ASSERT_EQ(chat.ui.view().checks.check.phase, ArCheck::Phase::same);
  std::string words;
  for (const std::string& text : texts_of(chat)) words += text + " ";
  EXPECT_NE(words.find("The text is the same, word for word, as without guessing."), std::string::npos) << words;
}

TEST(WatchWords, CostsThatWereMeasuredUnderLoadCanBeMeasuredAgain) {
  DraftedChat chat(WindowLayout::watch);
  chat.finish();
  CostTable table;
  for (uint32_t width = 1; width <= 64; width *= 2) table.set_verify(width, 512, 10);
  table.set_under({0, 0.42});
  const ModelShape shape{
      .layers = 30, .hidden = 576, .query_heads = 9, .kv_heads = 3, .head_dim = 64, .ffn = 1536, .vocab = 49152};
  chat.ui.engine().publish(
      Calibrated{std::make_shared<const CostSnapshot>(cost_snapshot(table, Roofline(shape, {2e12, 3e10})))});
  chat.ui.app().pump();
  chat.frames(2);
  DrawnTexts texts;
  chat.frames(1);
  EXPECT_TRUE(texts.any_contains("Measure again"));
  EXPECT_TRUE(chat.ui.run([&](ImGuiTestContext* ctx) { ctx->ItemClick("//Watch chat/**/Measure again"); }));
  EXPECT_EQ(chat.ui.engine().count<Calibrate>(), 1u);
  EXPECT_FALSE(chat.ui.engine().last<Calibrate>().when_idle);
}

}  // namespace
}  // namespace canopy::test
