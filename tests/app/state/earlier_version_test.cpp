// Settings and chats of an earlier version (tests/app/earlier) open as they were left, and what came since is as usual.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/state/chat_journal.h"
#include "app/state/settings.h"
#include "engine/base/mapped_file.h"

namespace canopy::app {
namespace {

const std::string kEarlier = CANOPY_SOURCE_DIR "/tests/app/earlier/";

TEST(EarlierVersion, ItsSettingsHoldAndTheNewerOnesAreUsual) {
  const SettingsRead read = read_settings(kEarlier + "settings.json");
  EXPECT_EQ(read.note, "");
  SavedSettings expected;
  expected.theme = ThemeKind::light;
  expected.layout = WindowLayout::lab;
  expected.scale = 1.25f;
  expected.width = 1400;
  expected.height = 900;
  expected.sampling.temperature = 0.9f;
  expected.sampling.top_p = 0.85f;
  expected.sampling.min_p = 0;
  expected.sampling.repetition_penalty = 1;
  expected.max_tokens = 700;
  expected.drafting = DecodeMode::chain;
  expected.tree_budget = 64;
  expected.as_if_on = "rtx4090";  // by the name of its profile since
  expected.recent = {"/models/a.gguf", "/models/b"};
  expected.reduced_motion = true;
  expected.tour_seen = true;
  expected.tour_step = 3;
  expected.idle_minutes = 15;
  expected.device_tests = {{"Radeon RX 7900 XTX", "RADV 25.2", true, "Exactness checked."}};
  EXPECT_TRUE(read.settings == expected);
}

TEST(EarlierVersion, ItsChatHasAllBranchesMarksAndFigures) {
  uint64_t last_id = 0;
  const JournalRead read = read_journal(read_small_file(kEarlier + "chat.jsonl", 1 << 20), last_id);
  EXPECT_EQ(read.problem, "");
  EXPECT_FALSE(read.torn);
  const Conversation& chat = read.conversation;
  EXPECT_EQ(chat.title, "Otters and beavers");
  EXPECT_EQ(chat.system_prompt, "Be brief.");
  EXPECT_FALSE(chat.pinned);
  ASSERT_EQ(chat.nodes().size(), 4u);
  ASSERT_EQ(chat.size(), 2u) << "the branch that was left";
  EXPECT_EQ(chat[0].text, "What do otters eat?");
  ASSERT_EQ(chat[0].attachments.size(), 1u);
  EXPECT_EQ(chat[0].attachments[0].text, "River.");
  const Message& reply = chat[1];
  EXPECT_EQ(reply.text, "Fish and crabs.");
  EXPECT_EQ(reply.parameters.mode, DecodeMode::tree);
  EXPECT_EQ(reply.parameters.sampling.seed, 7u);
  const std::vector<TokenSpan> spans = {{0, 4, 0, 0, TokenSource::own},
                                        {4, 8, 1, 1, TokenSource::accepted},
                                        {8, 9, 1, 2, TokenSource::own},
                                        {9, 15, 2, 0, TokenSource::ar}};
  EXPECT_EQ(reply.spans, spans);
  ASSERT_EQ(reply.continued.size(), 1u);
  EXPECT_EQ(reply.continued[0].text_begin, 9u);
  ASSERT_TRUE(reply.result.has_value());
  EXPECT_EQ(reply.result->reason, FinishReason::stop_token);
  EXPECT_EQ(reply.tokens, 4u);
  EXPECT_EQ(chat.nodes()[3].message.text, "Bark.");
  EXPECT_EQ(chat.nodes()[3].message.result->reason, FinishReason::cancelled);
}

}  // namespace
}  // namespace canopy::app
