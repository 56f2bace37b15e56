// "Continue" in the window: the limit in the settings, the row under a reply that reached it, and the words of the new
// part, which know their rounds.

#include <gtest/gtest.h>

#include <string>

#include "app/chat/reply.h"
#include "app/state/text_link.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

using namespace app;  // NOLINT: the whole file is about it

constexpr uint64_t kVocabulary = 9;

/// An engine that writes tokens of five letters, numbered from 0 on, one a round, until the limit is reached.
void count_up(ScriptedEngine& engine, const Command& command) {
  if (std::holds_alternative<LoadModel>(command)) {
    ModelReady model = small_model();
    model.vocabulary = kVocabulary;
    engine.publish(model);
  }
  const auto* asked = std::get_if<Generate>(&command);
  if (!asked) return;
  const auto begun = static_cast<uint32_t>(asked->begun.ids.size());
  const auto word = [](uint32_t n) { return "w" + std::to_string(1000 + n).substr(1) + " "; };
  engine.publish(PrefillProgress{asked->reply_id, 20, 20});
  engine.publish(ReplyStarted{asked->reply_id, 20, 0, 10, begun, 5 * begun});
  engine.publish(TextDelta{asked->reply_id, word(begun), begun + 1, 20 + begun, 50});
  ReplyFinished finished;
  finished.reply_id = asked->reply_id;
  finished.reason = FinishReason::max_tokens;
  finished.mode = DecodeMode::tree;
  finished.tau = 1;
  finished.tokens = asked->begun;
  finished.tokens.vocabulary = kVocabulary;
  finished.tokens.ids.push_back(begun);
  for (uint32_t n = begun + 1; n < begun + asked->max_tokens; ++n) {
    auto record = std::make_shared<RoundRecord>();
    record->mode = record->shape = DecodeMode::tree;
    record->width = 2;
    record->nodes.resize(2);  // the root, and a guess that was wrong
    record->nodes[0].state = NodeState::accepted;
    record->nodes[0].target_token = n;
    record->nodes[1].node.token = 1;
    record->nodes[1].node.parent = 0;
    record->nodes[1].node.depth = 1;
    record->nodes[1].state = NodeState::rejected;
    record->round = n - begun - 1;
    record->emitted = {n};
    engine.publish(TextDelta{asked->reply_id, word(n), n + 1, 20 + n, 50});
    engine.publish(RoundFinished{asked->reply_id, record, n, 5 * n, {5 * n + 5}, false});
    finished.tokens.ids.push_back(n);
  }
  finished.reply_tokens = static_cast<uint32_t>(finished.tokens.ids.size());
  finished.decode_ms = 20.0 * finished.reply_tokens;
  engine.publish(finished);
}

TEST(ContinueUi, AReplyAtItsLimitGoesOnByAButton) {
  UiHarness ui;
  ui.engine().script = count_up;
  DrawnTexts texts;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(OpenModel{"/models/a.gguf"});
    ctx->Yield(3);
    ctx->ItemClick("//Chat/Sampling");
    ctx->ItemInputValue("//$FOCUSED/##limit", 4);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK_EQ(ui.view().max_tokens, 4u);
    ui.app().run(SendMessage{"Count"});
    ctx->Yield(4);
    IM_CHECK_EQ(ui.engine().last<Generate>().max_tokens, 4u);
    texts.clear();
    ctx->Yield(2);
    IM_CHECK(texts.any_contains("imit of 4 tokens"));
    ctx->ItemClick("//Chat/**/Continue");
    ctx->Yield(4);
    const Generate more = ui.engine().last<Generate>();
    IM_CHECK_EQ(more.begun.ids.size(), 4u);
    IM_CHECK_EQ(ui.view().messages.size(), 2u);
    const Message& reply = ui.view().messages[1];
    IM_CHECK_STR_EQ(reply.text.c_str(), "w000 w001 w002 w003 w004 w005 w006 w007 ");
    texts.clear();
    ctx->Yield(2);
    IM_CHECK(texts.any_contains("imit of 8 tokens"));
    // Three rounds of the first part, three of the second: each word leads to its own.
    IM_CHECK_EQ(ui.view().rounds.log->rounds(), 6u);
    for (const uint32_t word : {1u, 3u, 5u, 7u}) {
      const TokenSpan* token = token_at(reply, 5 * word + 1);
      IM_CHECK(token != nullptr);
      const auto node = node_of(ui.view(), reply, *token);
      IM_CHECK(node.has_value());
      IM_CHECK_EQ(ui.view().rounds.log->round(node->round)->emitted[0], word);
      IM_CHECK(token_of(ui.view(), reply, *node) == token);
    }
    // The tokens that came out of a prompt's pass belong to the root of the round behind them.
    IM_CHECK_EQ(node_of(ui.view(), reply, *token_at(reply, 21))->round, 3u);
    IM_CHECK_EQ(node_of(ui.view(), reply, *token_at(reply, 21))->node, 0u);
  }));
}

TEST(ContinueUi, ThePaletteHasItWhereThereIsSomethingToContinue) {
  UiHarness ui;
  ui.engine().script = count_up;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(OpenModel{"/models/a.gguf"});
    ctx->Yield(3);
    ui.app().run(SetMaxTokens{3});
    for (const size_t asked : {size_t{0}, size_t{2}}) {
      ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
      ctx->Yield(3);
      ctx->KeyCharsAppend("continue the reply");
      ctx->Yield(2);
      ctx->KeyPress(ImGuiKey_Enter);
      ctx->Yield(4);
      IM_CHECK_EQ(ui.engine().count<Generate>(), asked);
      if (asked > 0) break;
      ctx->KeyPress(ImGuiKey_Escape);
      ui.app().run(SendMessage{"Count"});
      ctx->Yield(4);
    }
    IM_CHECK_EQ(ui.view().messages.back().result->reply_tokens, 6u);
  }));
}

TEST(ContinueUi, ItIsThereInANarrowWindowAndSaysWhyItCannotBeUsed) {
  UiHarness ui({}, 900, 600);
  ui.engine().script = count_up;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(OpenModel{"/models/a.gguf"});
    ctx->Yield(3);
    ui.app().run(SetMaxTokens{3});
    ui.app().run(SendMessage{"Count"});
    ctx->Yield(4);
    IM_CHECK(ctx->ItemExists("//Chat/**/Continue"));
    IM_CHECK_EQ(ctx->ItemInfo("//Chat/**/Continue").ItemFlags & ImGuiItemFlags_Disabled, 0);
    // The same button is dead while another model loads; nothing is sent.
    ui.engine().script = nullptr;
    ui.app().run(OpenModel{"/models/b.gguf"});
    ctx->Yield(3);
    IM_CHECK(ctx->ItemInfo("//Chat/**/Continue").ItemFlags & ImGuiItemFlags_Disabled);
    IM_CHECK_EQ(ui.engine().count<Generate>(), 1u);
  }));
}

}  // namespace
}  // namespace canopy::test
