// What the window makes of the loaded model as a server: the switch and its settings, and what clients ask for as chats
// with their rounds, which can be watched, paused, recorded, stopped and kept.

#include "app/state/served.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/state/recording.h"
#include "app/state/view_model.h"
#include "tests/app/support/chat_window.h"
#include "tests/app/support/scripted_engine.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"

namespace canopy::app {
namespace {

constexpr uint64_t kServedId = kFirstServedReply + 7;

Serving told_of(const std::string& url = "http://127.0.0.1:8737/v1", uint32_t waiting = 0) {
  return {true, url, "tiny", waiting, {}};
}

ServedBegun asked_by_client(uint64_t id, const std::string& text = "What is a canopy?") {
  ServedBegun begun;
  begun.asked.reply_id = id;
  begun.asked.turns = {{"system", "Be brief."}, {"user", text}};
  begun.asked.mode = DecodeMode::tree;
  begun.asked.sampling.temperature = 0;
  begun.client = "127.0.0.1";
  begun.path = "/v1/chat/completions";
  return begun;
}

ReplyFinished served_ending(uint64_t id, FinishReason reason = FinishReason::stop_token) {
  ReplyFinished finished;
  finished.reply_id = id;
  finished.reason = reason;
  finished.reply_tokens = 40;
  finished.tokens_per_second = 31;
  finished.mode = DecodeMode::tree;
  return finished;
}

class ServedStateTest : public testing::Test {
 protected:
  ServedStateTest() {
    view_.chat.now_ms = 1'700'000'000'000;
    view_.model_state = ModelState::ready;
    tell(test::small_model());
  }

  void tell(const Event& event) { update(view_, event); }
  std::vector<Command> run(const ServedCommand& command) { return update(view_, UiCommand(command)).engine; }
  template <class T>
  T only(const std::vector<Command>& commands) {
    EXPECT_EQ(commands.size(), 1u);
    const T* found = commands.size() == 1 ? std::get_if<T>(&commands[0]) : nullptr;
    EXPECT_NE(found, nullptr);
    return found != nullptr ? *found : T{};
  }
  /// A client asks, and the reply has some words and a round.
  void begin(uint64_t id, const std::string& text = "What is a canopy?") {
    tell(asked_by_client(id, text));
    tell(PrefillProgress{id, 12, 12});
    ReplyStarted started;
    started.reply_id = id;
    tell(started);
    builder_.begin(DecodeMode::tree);
    const auto round = std::make_shared<const RoundRecord>(builder_.tree(8));
    const auto tokens = static_cast<uint32_t>(round->emitted.size()) + 1;
    tell(TextDelta{id, "A roof", tokens, 12 + tokens, 31.0});
    tell(RoundFinished{id, round, 1, 0, std::vector<uint32_t>(round->emitted.size(), 6), false});
  }
  const ServedReply& served(size_t i = 0) const { return view_.served.replies.at(i); }

  ViewModel view_;
  test::TraceBuilder builder_;
};

TEST_F(ServedStateTest, TheSwitchAsksTheEngineAndItsSettingsAreThoseOfTheCommand) {
  EXPECT_FALSE(view_.served.on());
  EXPECT_EQ(serving_words(view_), "Off");
  EXPECT_TRUE(begin_serving(view_.served).empty());
  run(ChangeServing{{false, "0.0.0.0", 9000, {"box.local"}, {"https://chat.example"}}, "a-key-for-tests"});
  const Serve wish = only<Serve>(run(SwitchServing{true}));
  EXPECT_EQ(wish.host, "0.0.0.0");
  EXPECT_EQ(wish.port, 9000);
  EXPECT_EQ(wish.key, "a-key-for-tests");
  EXPECT_EQ(wish.hosts, std::vector<std::string>{"box.local"});
  EXPECT_EQ(wish.origins, std::vector<std::string>{"https://chat.example"});
  EXPECT_TRUE(run(SwitchServing{true}).empty()) << "it is on";
  EXPECT_EQ(serving_words(view_), "Begins when a model is loaded");
  run(ChangeServing{{}, ""});
  EXPECT_EQ(view_.served.settings.port, 9000u) << "not while it is on";
  EXPECT_EQ(begin_serving(view_.served).size(), 1u) << "at the next start, too";
  tell(told_of("http://0.0.0.0:9000/v1"));
  EXPECT_EQ(served_address(view_.served), "0.0.0.0:9000");
  only<StopServing>(run(SwitchServing{false}));
  tell(Serving{});
  EXPECT_EQ(serving_words(view_), "Off");
}

TEST_F(ServedStateTest, ARefusalIsASentenceAndLeavesItOff) {
  run(SwitchServing{true});
  tell(Serving{false, "", "", 0, "The port 8737 is in use."});
  EXPECT_FALSE(view_.served.on());
  EXPECT_EQ(serving_words(view_), "The port 8737 is in use.");
  ASSERT_EQ(view_.cards.size(), 1u);
  EXPECT_EQ(view_.cards[0].detail, "The port 8737 is in use.");
  only<Serve>(run(SwitchServing{true}));  // once more
  EXPECT_TRUE(view_.served.told.problem.empty());
  // Where the box is open it says it, and a card would say it twice.
  view_.cards.clear();
  run(ShowServing{true});
  tell(Serving{false, "", "", 0, "The key must have at least 8 signs."});
  EXPECT_TRUE(view_.cards.empty());
  // It is tried again at the next start, until it is switched off.
  EXPECT_TRUE(view_.served.settings.on);
  only<StopServing>(run(SwitchServing{false}));
  EXPECT_FALSE(view_.served.settings.on);
  EXPECT_EQ(serving_words(view_), "Off");
  EXPECT_TRUE(run(SwitchServing{false}).empty()) << "it is off";
}

TEST_F(ServedStateTest, ARequestIsAChatWithItsRoundsBesideTheOwnOne) {
  update(view_, UiCommand(SendMessage{"Mine"}));
  const Conversation before = view_.messages;
  begin(kServedId);
  ASSERT_EQ(view_.served.replies.size(), 1u);
  EXPECT_EQ(served_title(served()), "What is a canopy?");
  EXPECT_EQ(served().chat.system_prompt, "Be brief.");
  ASSERT_EQ(served().chat.size(), 2u);
  EXPECT_EQ(served().reply().text, "A roof");
  EXPECT_TRUE(served().reply().writing);
  EXPECT_EQ(served().log->rounds(), 1u);
  EXPECT_EQ(view_.messages.size(), before.size());
  EXPECT_EQ(view_.messages.back().text, "") << "its words are none of the own reply's";
  EXPECT_EQ(view_.rounds.live->rounds(), 0u);
  EXPECT_TRUE(view_.own_chat());
  tell(served_ending(kServedId));
  EXPECT_TRUE(served().over);
  EXPECT_EQ(served_words(served()), "40 tokens, 31 tok/s");
  EXPECT_TRUE(view_.busy()) << "the own reply goes on";
}

TEST_F(ServedStateTest, WatchingShowsItLiveAndTheOwnChatIsAsItWas) {
  begin(kServedId);
  run(WatchServed{kServedId});
  EXPECT_FALSE(view_.own_chat());
  EXPECT_EQ(view_.watched(), &served());
  EXPECT_EQ(view_.conversation().back().text, "A roof");
  EXPECT_EQ(view_.rounds.log, served().log);
  EXPECT_TRUE(is_live(view_.rounds));
  const size_t shown = view_.rounds.playback.shown;
  const auto next = std::make_shared<const RoundRecord>(builder_.tree(8));
  tell(TextDelta{kServedId, " of leaves", 9, 21, 31.0});
  tell(RoundFinished{kServedId, next, 2, 6, std::vector<uint32_t>(next->emitted.size(), 16), false});
  EXPECT_EQ(view_.conversation().back().text, "A roof of leaves");
  EXPECT_EQ(view_.rounds.playback.shown, shown + 1) << "the newest pass is followed";
  run(WatchServed{});
  EXPECT_TRUE(view_.own_chat());
  EXPECT_EQ(view_.rounds.log, view_.rounds.live);
  // What belongs to the own chat leads back to it.
  run(WatchServed{kServedId});
  update(view_, UiCommand(SendMessage{"Mine"}));
  EXPECT_TRUE(view_.own_chat());
  EXPECT_EQ(view_.messages.front().text, "Mine");
  run(WatchServed{kServedId + 1});
  EXPECT_TRUE(view_.own_chat()) << "there is none of that id";
}

TEST_F(ServedStateTest, PausesStopsAndRecordsByItsId) {
  begin(kServedId);
  const PauseServed paused = only<PauseServed>(run(HoldServed{kServedId, true}));
  EXPECT_EQ(paused.reply_id, kServedId);
  EXPECT_TRUE(paused.paused);
  EXPECT_TRUE(run(HoldServed{kServedId, true}).empty());
  EXPECT_TRUE(served_words(served()).starts_with("paused"));
  EXPECT_FALSE(only<PauseServed>(run(HoldServed{kServedId, false})).paused);

  EXPECT_TRUE(run(TapeServed{kServedId}).empty()) << "without a folder";
  EXPECT_EQ(view_.cards.size(), 1u);
  view_.recording.suggested = "/traces/canopy-2026-11-22-140512.canopytrace";
  const RecordServed record = only<RecordServed>(run(TapeServed{kServedId}));
  EXPECT_EQ(record.path, "/traces/canopy-2026-11-22-140512-served-7.canopytrace");
  EXPECT_TRUE(run(TapeServed{kServedId}).empty()) << "it was asked for";

  EXPECT_EQ(only<StopServed>(run(EndServed{kServedId})).reply_id, kServedId);
  EXPECT_TRUE(run(EndServed{kServedId}).empty());
  EXPECT_EQ(served_words(served()), "stopping");
  tell(served_ending(kServedId, FinishReason::cancelled));
  EXPECT_EQ(served_words(served()), "ended after 40 tokens");
  tell(ServedRecorded{kServedId, record.path, ""});
  EXPECT_TRUE(served().recorded);
  EXPECT_EQ(view_.chat.note, "Recorded canopy-2026-11-22-140512-served-7.canopytrace");
  EXPECT_TRUE(run(HoldServed{kServedId, true}).empty()) << "it is over";
  EXPECT_TRUE(run(EndServed{kServedId + 5}).empty()) << "there is none of that id";
}

TEST_F(ServedStateTest, ARecordingThatFailsIsSaidAndCanBeAskedForAgain) {
  view_.recording.suggested = "/traces/canopy.canopytrace";
  begin(kServedId);
  run(TapeServed{kServedId});
  tell(ServedRecorded{kServedId, "/traces/canopy-served-7.canopytrace", "The disk is full."});
  EXPECT_FALSE(served().recorded);
  ASSERT_EQ(view_.cards.size(), 1u);
  EXPECT_EQ(view_.cards[0].detail, "The disk is full.");
  only<RecordServed>(run(TapeServed{kServedId}));
}

TEST_F(ServedStateTest, AnotherModelEndsWhatIsServedAndNothingOfItStays) {
  begin(kServedId);
  EXPECT_TRUE(view_.served.busy());
  tell(Serving{});
  EXPECT_TRUE(served().over);
  EXPECT_EQ(served_words(served()), "failed");
  EXPECT_EQ(served().problem, "The model is no longer served.");
  EXPECT_FALSE(is_live(view_.rounds));
  EXPECT_FALSE(view_.served.busy());
  const std::string text = served().reply().text;
  tell(TextDelta{kServedId, "late", 9, 9, 1});
  EXPECT_EQ(served().reply().text, text);
  ModelReady other = test::small_model();
  other.file_name = "another.gguf";
  tell(other);
  EXPECT_TRUE(served().earlier_model);
}

TEST_F(ServedStateTest, AFailureIsOfThatRequestAloneAndOneThatWasStoppedIsNoFailure) {
  begin(kServedId);
  tell(Failure{ErrorKind::out_of_memory, "A served reply failed", "There is no memory.", kServedId});
  EXPECT_TRUE(view_.cards.empty()) << "it is the client's";
  EXPECT_EQ(served().problem, "There is no memory.");
  EXPECT_EQ(served_words(served()), "failed");
  begin(kServedId + 1);
  tell(Failure{ErrorKind::cancelled, "A served reply failed", "The reply was stopped.", kServedId + 1});
  EXPECT_EQ(served().problem, "");
  EXPECT_TRUE(served_words(served()).starts_with("ended after"));
}

TEST_F(ServedStateTest, TheListIsBoundedAndKeepsWhatIsOnShowAndUnderWay) {
  begin(kServedId);
  begin(kServedId + 1);
  tell(served_ending(kServedId + 1));
  run(WatchServed{kServedId + 1});
  for (uint64_t i = 2; i < kMostServed + 10; ++i) {
    begin(kServedId + i);
    tell(served_ending(kServedId + i));
  }
  EXPECT_EQ(view_.served.replies.size(), kMostServed);
  EXPECT_NE(view_.served.find(kServedId), nullptr) << "it is being written";
  EXPECT_NE(view_.watched(), nullptr);
  EXPECT_EQ(view_.served.find(kServedId + 2), nullptr);
  run(DropServed{kServedId});
  EXPECT_NE(view_.served.find(kServedId), nullptr) << "only once it is over";
  run(DropServed{kServedId + 1});
  EXPECT_EQ(view_.served.find(kServedId + 1), nullptr);
  EXPECT_TRUE(view_.own_chat()) << "what was on show is gone";
}

TEST_F(ServedStateTest, TheBarHasAddressRequestsAndSpeed) {
  run(SwitchServing{true});
  tell(told_of());
  EXPECT_EQ(serving_words(view_), "127.0.0.1:8737, 0 requests");
  begin(kServedId);
  tell(told_of("http://127.0.0.1:8737/v1", 2));
  EXPECT_EQ(serving_words(view_), "127.0.0.1:8737, 3 requests") << "one is written and two wait";
  const uint32_t tokens = served().reply().tokens;
  view_.chat.now_ms += 2000;
  tell(TextDelta{kServedId, " more", tokens + 50, 80, 30.0});
  EXPECT_EQ(served_speed(view_.served, view_.chat.now_ms), 25);
  EXPECT_EQ(serving_words(view_), "127.0.0.1:8737, 3 requests, 25 tok/s");
  EXPECT_EQ(state_words(view_), "Serving");
  view_.chat.now_ms += 2 * kServedSpeedMs;
  EXPECT_EQ(served_speed(view_.served, view_.chat.now_ms), 0) << "nothing came for a while";
  tell(served_ending(kServedId));
  EXPECT_EQ(served_speed(view_.served, view_.chat.now_ms), 0);
}

TEST_F(ServedStateTest, AServedModelIsNotReleased) {
  update(view_, UiCommand(ModelsCommand(ReleaseWhenIdle{15})));
  EXPECT_TRUE(release_due_ms(view_).has_value());
  tell(told_of());
  EXPECT_FALSE(release_due_ms(view_).has_value());
  tell(Serving{});
  EXPECT_TRUE(release_due_ms(view_).has_value());
}

TEST_F(ServedStateTest, AReleasedModelComesBackToBeServed) {
  view_.model_state = ModelState::released;
  view_.idle.opened = LoadModel{};
  view_.idle.opened->path = "/models/a.gguf";
  const std::vector<Command> commands = run(SwitchServing{true});
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<Serve>(commands[0]));
  EXPECT_EQ(std::get<LoadModel>(commands[1]).path, "/models/a.gguf");
  EXPECT_EQ(view_.model_state, ModelState::loading);
}

TEST_F(ServedStateTest, ARecordingTakesThePlaceOfWhatIsWatched) {
  begin(kServedId);
  test::TempFolder folder;
  const auto path = folder.path() / "run.canopytrace";
  {
    test::TraceBuilder builder;
    TraceWriter writer(path, builder.header(), builder.pieces());
    writer.begin(builder.begin(DecodeMode::tree));
    writer.prefilled(builder.prefill());
    writer.append(builder.tree(8));
    writer.end(builder.end());
  }
  run(WatchServed{kServedId});
  open_trace(view_, path.string());
  EXPECT_TRUE(view_.replaying());
  EXPECT_EQ(view_.watched(), nullptr);
  run(WatchServed{kServedId});
  EXPECT_FALSE(view_.replaying());
  EXPECT_EQ(view_.watched(), &served());
}

TEST_F(ServedStateTest, OtherRolesAndCallsOfToolsAreReadable) {
  ServedBegun begun = asked_by_client(kServedId);
  begun.asked.turns = {{"user", "Weather?"}, {"assistant", ""}, {"tool", "12 degrees"}, {"developer", "In Celsius."}};
  begun.asked.turns[1].fields = R"({"tool_calls": [{"name": "weather"}]})";
  tell(begun);
  const Conversation& chat = served().chat;
  ASSERT_EQ(chat.size(), 4u);
  EXPECT_EQ(chat[1].text, R"({"tool_calls": [{"name": "weather"}]})");
  EXPECT_EQ(chat[2].text, "tool: 12 degrees");
  EXPECT_EQ(chat.system_prompt, "In Celsius.");
  ServedBegun raw;
  raw.asked.reply_id = kServedId + 1;
  raw.asked.raw_prompt = "def main():\n";
  tell(raw);
  EXPECT_EQ(served_title(served()), "def main():");
}

TEST_F(ServedStateTest, NamesComeWithBlanksOrCommasInBetween) {
  EXPECT_EQ(listed_names(" a.local,b.local ;c  "), (std::vector<std::string>{"a.local", "b.local", "c"}));
  EXPECT_TRUE(listed_names(" , ").empty());
  EXPECT_EQ(joined_names({"a", "b"}), "a, b");
}

TEST(ServedChat, KeptBecomesAChatOfTheUsersOwnWithItsRounds) {
  test::TempFolder folder;
  test::ChatWindow window(folder.path());
  window.run(SendMessage{"Mine"});
  ReplyFinished own;
  own.reply_id = window.view.reply_id;
  window.event(own);
  window.event(asked_by_client(kServedId));
  test::TraceBuilder builder;
  builder.begin(DecodeMode::tree);
  const auto round = std::make_shared<const RoundRecord>(builder.tree(8));
  const auto tokens = static_cast<uint32_t>(round->emitted.size()) + 1;
  window.event(TextDelta{kServedId, "A roof", tokens, 20, 31.0});
  window.event(RoundFinished{kServedId, round, 1, 0, std::vector<uint32_t>(round->emitted.size(), 6), false});
  window.run(ServedCommand(KeepServed{kServedId}));
  EXPECT_EQ(window.view.messages.front().text, "Mine") << "only once it is over";
  window.event(served_ending(kServedId));
  window.run(ServedCommand(WatchServed{kServedId}));
  window.run(ServedCommand(KeepServed{kServedId}));
  EXPECT_TRUE(window.view.served.replies.empty());
  EXPECT_TRUE(window.view.own_chat());
  EXPECT_EQ(window.view.messages.front().text, "What is a canopy?");
  EXPECT_EQ(window.view.messages.back().text, "A roof");
  EXPECT_FALSE(window.view.messages.id.empty()) << "it is saved";
  EXPECT_EQ(window.view.rounds.log->rounds(), 1u);
  EXPECT_EQ(window.view.chat.listings.size(), 2u);
  EXPECT_TRUE(window.view.cards.empty());
}

}  // namespace
}  // namespace canopy::app
