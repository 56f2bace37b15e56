// Pictures of a conversation: marks show who wrote each token, in both themes, and can be hidden.
// CANOPY_PICTURES=folder keeps the pictures.

#include <gtest/gtest.h>

#include <string>

#include "app/platform/image.h"
#include "app/platform/system_fonts.h"
#include "app/run.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/pixels.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::test {
namespace {

constexpr const char* kFirst =
    "The merge step joins two lists that are **already sorted**. Look at the first item of each list, move the smaller "
    "one to the result, and repeat. When one list runs out, append what is left of the other.\n\n"
    "1. Compare `left[i]` with `right[j]`\n2. Move the smaller one\n   - on ties take the *left* one\n3. Repeat\n\n"
    "> Each comparison moves exactly one item.\n";
constexpr const char* kSecond =
    "Walk both lists with two indices and always take the smaller head, so the cost is linear.\n\n"
    "```python\ndef merge(a, b):\n    \"\"\"Merge two sorted lists.\"\"\"\n    out, i, j = [], 0, 0\n"
    "    while i < len(a) and j < len(b):\n        if a[i] <= b[j]:\n            out.append(a[i])\n```\n\n"
    "| case | cost |\n|---|--:|\n| best | n |\n| worst | n + m - 1 |\n";

/// The ends of the tokens in bytes: each token is a word with the space before it, as in most vocabularies.
std::vector<uint32_t> token_ends(const std::string& text) {
  std::vector<uint32_t> ends;
  for (size_t i = 1; i < text.size(); ++i)
    if ((text[i] == ' ' && text[i - 1] != ' ') || text[i] == '\n' || text[i] == '.')
      ends.push_back(static_cast<uint32_t>(i));
  ends.push_back(static_cast<uint32_t>(text.size()));
  return ends;
}

/// Publishes a reply in rounds of up to five tokens, the last of each being the target's own.
void publish_in_rounds(ScriptedEngine& engine, uint64_t id, const std::string& text, DecodeMode mode) {
  const std::vector<uint32_t> ends = token_ends(text);
  engine.publish(TextDelta{id, text, static_cast<uint32_t>(ends.size()), 200, 439});
  uint32_t round = 0;
  for (size_t at = 1; at < ends.size(); ++round) {
    const size_t count = std::min<size_t>(mode == DecodeMode::ar ? 1 : 2 + round * 7 % 4, ends.size() - at);
    auto record = std::make_shared<RoundRecord>();
    record->round = round;
    record->mode = mode;
    record->shape = mode == DecodeMode::adaptive ? DecodeMode::tree : mode;
    record->accepted = static_cast<uint32_t>(count - 1);
    record->emitted.assign(count, 7);
    record->width = static_cast<uint32_t>(count);
    if (mode != DecodeMode::ar) record->nodes.resize(count);
    for (uint32_t n = 1; n < record->nodes.size(); ++n) {
      record->nodes[n].node.token = 7;
      record->nodes[n].node.parent = n - 1;
      record->nodes[n].node.depth = n;
    }
    for (RoundNode& node : record->nodes) node.state = NodeState::accepted;
    engine.publish(RoundFinished{id,
                                 record,
                                 static_cast<uint32_t>(at),
                                 ends[at - 1],
                                 {ends.begin() + static_cast<long>(at), ends.begin() + static_cast<long>(at + count)}});
    at += count;
  }
  ReplyFinished finished;
  finished.reply_id = id;
  finished.mode = mode;
  finished.tau = mode == DecodeMode::ar ? 1 : 4.14;
  finished.reply_tokens = static_cast<uint32_t>(ends.size());
  finished.tokens_per_second = 439;
  finished.ar_tokens_per_second = 790;
  if (mode != DecodeMode::ar) finished.plain = {1000.0 / 790, 3, false};
  engine.publish(finished);
}

class ChatPicture : public testing::Test {
 protected:
  ChatPicture() {
    engine_.devices_ = some_devices();
    engine_.script = [this](ScriptedEngine& engine, const Command& command) {
      if (std::holds_alternative<LoadModel>(command)) engine.publish(small_model());
      if (const auto* generate = std::get_if<Generate>(&command))
        publish_in_rounds(engine, generate->reply_id, replies_++ == 0 ? kFirst : kSecond, mode_);
    };
  }

  app::Image picture(app::ThemeKind theme, bool sources, const char* name) {
    app::AppSettings settings;
    settings.theme = theme;
    settings.system_fonts = false;
    app::Headless headless(engine_, settings, 1600, 1000, false);
    headless.app().run(app::OpenModel{"/models/a.gguf"});
    headless.app().pump();
    for (const char* question : {"Explain the merge step of merge sort.", "Now write it in Python, in linear time."}) {
      headless.app().run(app::SendMessage{question});
      headless.app().pump();
    }
    headless.app().run(app::ShowTokenSources{sources});
    app::Image image = headless.settled_frame();
    keep_picture(image, name);
    return image;
  }

  ScriptedEngine engine_;
  DecodeMode mode_ = DecodeMode::tree;
  int replies_ = 0;
};

TEST_F(ChatPicture, TokensShowWhoWroteThemInBothThemes) {  // look.md, section 7
  for (const app::ThemeKind kind : {app::ThemeKind::dark, app::ThemeKind::light}) {
    replies_ = 0;
    const app::Theme& t = app::theme(kind);
    const app::Image image = picture(kind, true, kind == app::ThemeKind::dark ? "chat-dark" : "chat-light");
    EXPECT_GT(pixels_of(image, t.accepted_bg), 3000u);
    EXPECT_GT(pixels_of(image, t.accepted_strong_bg), 100u) << "the shown round";
  }
}

TEST_F(ChatPicture, SourcesAreHiddenOnRequestAndPlainRepliesHaveNone) {
  const app::Theme& t = app::theme(app::ThemeKind::dark);
  EXPECT_EQ(pixels_of(picture(app::ThemeKind::dark, false, "chat-hidden"), t.accepted_strong_bg), 0u);
  replies_ = 0;
  mode_ = DecodeMode::ar;
  EXPECT_EQ(pixels_of(picture(app::ThemeKind::dark, true, "chat-plain"), t.accepted_strong_bg), 0u);
}

/// The legend says that the big model's own text has a dotted line; in a plain pass all of it is.
TEST_F(ChatPicture, APlainReplyIsDottedThroughout) {
  const app::Theme& t = app::theme(app::ThemeKind::dark);
  mode_ = DecodeMode::ar;
  const size_t hidden = pixels_of(picture(app::ThemeKind::dark, false, "chat-plain-hidden"), t.bonus);
  replies_ = 0;
  const size_t dotted = pixels_of(picture(app::ThemeKind::dark, true, "chat-plain-dotted"), t.bonus);
  // A dot has up to four pixels and stands every four: a token alone has less than thirty of them.
  EXPECT_GT(dotted, hidden + 1000);
}

/// A chat with thinking, files and turns that are left out, in a nearly full context.
TEST_F(ChatPicture, ThinkingFilesAndAFullContextAreMarked) {
  engine_.script = [this](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) {
      ModelReady model = small_model();
      model.context = 240;
      model.thinking = {true, true, false, false, false};
      engine.publish(model);
    }
    if (const auto* count = std::get_if<CountTokens>(&command)) engine.publish(TokensCounted{count->id, 0, 1204});
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    const std::string thought = "<think>\nThe lists are sorted, so one pass does.\n</think>\n\n";
    if (replies_++ < 2) return publish_in_rounds(engine, generate->reply_id, thought + kSecond, mode_);
    engine.publish(TextDelta{generate->reply_id, thought.substr(0, 30), 9, 236, 439});
  };
  for (const app::ThemeKind kind : {app::ThemeKind::dark, app::ThemeKind::light}) {
    const bool dark = kind == app::ThemeKind::dark;
    replies_ = 0;
    app::AppSettings settings;
    settings.theme = kind;
    settings.system_fonts = false;
    app::Headless headless(engine_, settings, dark ? 1600 : 1000, dark ? 1700 : 1000, false);
    app::App& app = headless.app();
    const auto run = [&](const app::UiCommand& command) {
      app.run(command);
      app.pump();
    };
    run(app::OpenModel{"/models/a.gguf"});
    run(app::SendMessage{"Explain the merge step of merge sort."});
    for (const char* file : {"app/chat/composer.h", "README.md"})
      run(app::ChatCommand(app::AttachFile{std::string(CANOPY_SOURCE_DIR) + "/" + file}));
    run(app::SendMessage{"Now write it in Python, in linear time."});
    run(app::ChatCommand(app::DropOldestTurns{}));
    run(app::SendMessage{"And in C++?"});
    run(app::ChatCommand(app::AttachFile{std::string(CANOPY_SOURCE_DIR) + "/CMakeLists.txt"}));
    run(app::ChatCommand(app::AttachFile{std::string(CANOPY_SOURCE_DIR) + "/app"}));
    const app::Image image = headless.settled_frame();
    keep_picture(image, dark ? "chat-tools-dark" : "chat-tools-light");
    EXPECT_GT(pixels_of(image, app::theme(kind).bonus), 30u) << "the meter";
  }
}

/// The narrow chat of Watch with all that can stand below a reply.
TEST_F(ChatPicture, BelowAReplyOfWatchStandFactsAndVerdicts) {
  engine_.script = [](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) {
      ModelReady model = small_model();
      model.drafter = "SmolLM2 DFlash";
      engine.publish(model);
    }
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    engine.publish(ReplyStarted{generate->reply_id, 20, 0, 10, 7});
    publish_in_rounds(engine, generate->reply_id, kSecond, *generate->mode);
  };
  for (const app::ThemeKind kind : {app::ThemeKind::dark, app::ThemeKind::light}) {
    const bool dark = kind == app::ThemeKind::dark;
    app::AppSettings settings;
    settings.theme = kind;
    settings.system_fonts = false;
    app::Headless headless(engine_, settings, 1280, 800, false);
    app::App& app = headless.app();
    const auto run = [&](const app::UiCommand& command) {
      app.run(command);
      app.pump();
    };
    run(app::OpenModel{"/models/a.gguf"});
    run(app::SendMessage{"Write merge sort."});
    run(app::CheckCommand(app::CheckAgainstAr{app.view().last_reply()->id}));
    ASSERT_EQ(app.view().checks.check.phase, app::ArCheck::Phase::same);
    const DrawnTexts drawn;
    const app::Image image = headless.settled_frame();
    EXPECT_TRUE(drawn.any_contains("The text is the same, word for word"));
    EXPECT_TRUE(drawn.any_contains("here ")) << "what guessing made of the speed";
    EXPECT_TRUE(drawn.cut().empty());
    keep_picture(image, dark ? "watch-below-dark" : "watch-below-light");
    EXPECT_GT(pixels_of(image, app::theme(kind).accent_text), 50u) << "the words of the check";
  }
}

/// Scripts that the program's typefaces lack, with the fonts of this machine.
TEST_F(ChatPicture, OtherScriptsAndEmojiHaveTheFontsOfTheSystem) {
  if (!app::emoji_face(U'\U0001F600')) GTEST_SKIP() << "no font for it is installed: fonts-noto-color-emoji";
  engine_.script = [this](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(small_model());
    if (const auto* generate = std::get_if<Generate>(&command))
      publish_in_rounds(engine, generate->reply_id,
                        "\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645 (hello) 12.\n\n"
                        "Hebrew \u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd, Hindi "
                        "\u0928\u092e\u0938\u094d\u0924\u0947, Thai \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35, "
                        "Chinese \u4f60\u597d\u4e16\u754c.\n\nEmoji \U0001F600 \U0001F600 \U0001F600 "
                        "\U0001F468\u200d\U0001F469\u200d\U0001F467. Private \ue123.",
                        mode_);
  };
  app::AppSettings settings;
  settings.system_fonts = true;
  app::Headless headless(engine_, settings, 1280, 800, false);
  headless.app().run(app::OpenModel{"/models/a.gguf"});
  headless.app().pump();
  headless.app().run(app::SendMessage{"\u05e9\u05dc\u05d5\u05dd?"});
  headless.app().pump();
  const app::Image image = headless.settled_frame();
  keep_picture(image, "chat-scripts");
  size_t yellow = 0;
  for (size_t i = 0; i + 3 < image.pixels.size(); i += 4)
    yellow += image.pixels[i] > 230 && image.pixels[i + 1] > 170 && image.pixels[i + 2] < 100;
  EXPECT_GT(yellow, 100u) << "three faces";
}

}  // namespace
}  // namespace canopy::test
