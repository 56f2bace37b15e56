// Where in the chat a guess was found that comes from the text: in the reply, in what was said before, or nowhere to
// see.

#include "app/state/text_link.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>

#include "tests/app/support/scripted_engine.h"

namespace canopy::app {
namespace {

using Where = FoundPlace::Where;

/// Words by their ids, each with the blank in front of it.
class Words final : public TokenTexts {
 public:
  std::optional<trace::Piece> find(uint32_t token) const override {
    const auto word = words_.find(token);
    if (word == words_.end()) return std::nullopt;
    return trace::Piece{word->second, token == 99};
  }

 private:
  std::map<uint32_t, std::string> words_ = {{1, " the"}, {2, " cat"},   {3, " sat"}, {4, " on"},     {5, " a"},
                                            {6, " mat"}, {7, " there"}, {8, "re"},   {99, "<|end|>"}};
};

class FoundPlaces : public testing::Test {
 protected:
  FoundPlaces() {
    view.chat.now_ms = 1'700'000'000'000;
    ModelReady model = test::small_model();
    model.texts = words_;
    update(view, UiCommand(OpenModel{"/models/a.gguf"}));
    update(view, Event(model));
  }

  void ask(const std::string& question) {
    update(view, UiCommand(SendMessage{question}));
    written_.clear();
    first_ = true;
    rounds_ = 0;
  }

  /// A round in plain decoding for each token.
  void write(const std::vector<uint32_t>& tokens) {
    for (const uint32_t token : tokens) {
      RoundRecord round;
      round.emitted = {token};
      commit(round);
    }
  }

  /// A round whose tree is one path of guesses, none of them right; `token` is written instead.
  NodeRef guess(const std::vector<uint32_t>& path, uint32_t match, uint32_t token, DraftSources sources = kFromSuffix) {
    RoundRecord round;
    round.mode = round.shape = DecodeMode::chain;
    round.width = static_cast<uint32_t>(path.size()) + 1;
    round.match = match;
    round.nodes.resize(round.width);
    round.nodes[0].state = NodeState::accepted;
    for (uint32_t i = 1; i < round.width; ++i)
      round.nodes[i].node = {path[i - 1], i - 1, i, 0, -0.5, -0.5 * i, sources};
    round.emitted = {token};
    commit(round);
    return {view.rounds.log->rounds() - 1, round.width - 1};
  }

  void finish() {
    ReplyFinished end;
    end.reply_id = view.reply_id;
    update(view, Event(end));
  }

  std::string text_of(const FoundPlace& place) const {
    const Conversation& chat = view.conversation();
    const std::string& text = chat[chat.find(place.message)].text;
    return text.substr(place.begin, place.followed - place.begin) + "|" +
           text.substr(place.followed, place.end - place.followed);
  }

  ViewModel view;

 private:
  void commit(RoundRecord round) {
    if (std::exchange(first_, false)) {  // the token that came out of the prompt's pass
      written_ = words_->find(1)->bytes;
      update(view, Event(ReplyStarted{view.reply_id, 10, 0, 1, 1, 0}));
      update(view, Event(TextDelta{view.reply_id, written_, 1, 11, 10}));
    }
    round.round = rounds_++;
    const auto begin = static_cast<uint32_t>(written_.size());
    const std::string more(words_->find(round.emitted[0])->bytes);
    written_ += more;
    update(view, Event(TextDelta{view.reply_id, more, 2, 12, 10}));
    const auto end = static_cast<uint32_t>(written_.size());
    update(view, Event(RoundFinished{
                     view.reply_id, std::make_shared<const RoundRecord>(std::move(round)), 1, begin, {end}, false}));
  }

  std::shared_ptr<const Words> words_ = std::make_shared<const Words>();
  std::string written_;
  bool first_ = true;
  uint32_t rounds_ = 0;  // of the reply
};

TEST_F(FoundPlaces, AreTheLastOnesBeforeTheRound) {
  ask("Say something.");
  write({2, 3, 1, 2, 4, 5, 6, 1, 2});  // the cat sat the cat on a mat the cat
  const NodeRef node = guess({4, 5}, 2, 3);
  const auto place = find_place(view, node);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->where, Where::reply);
  EXPECT_EQ(text_of(*place), " the cat| on a");
  EXPECT_EQ(place->tokens_back, 5u);
  EXPECT_EQ(place_words(*place), "Lit in the chat, 5 tokens back.");
  EXPECT_TRUE(is_on_show(view.conversation(), *place));
  // What came after the round is not looked at.
  write({1, 2, 4, 5});
  EXPECT_EQ(find_place(view, node)->begin, place->begin);
  EXPECT_EQ(text_of(*find_place(view, {node.round, 1})), " the cat| on");
}

TEST_F(FoundPlaces, BeginAndEndWithTokens) {
  ask("Say something.");
  write({2, 7, 1, 3, 1});  // the cat there the sat the
  const auto place = find_place(view, guess({3}, 1, 1));
  ASSERT_TRUE(place);
  EXPECT_EQ(text_of(*place), " the| sat");
  const auto cut = find_place(view, guess({8}, 1, 6));
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->where, Where::hidden) << "\"there\" is one token, not \"the\" and \"re\"";
}

TEST_F(FoundPlaces, AreInWhatWasSaidBefore) {
  ask("Why does the cat sat on a mat?");
  write({4});
  const auto in_question = find_place(view, guess({5, 6}, 1, 2));
  ASSERT_TRUE(in_question);
  EXPECT_EQ(in_question->where, Where::question);
  EXPECT_EQ(text_of(*in_question), " on| a mat");
  finish();
  ask("And again?");
  write({4});
  const auto in_reply = find_place(view, guess({2}, 1, 3));
  ASSERT_TRUE(in_reply);
  EXPECT_EQ(in_reply->where, Where::earlier_reply);
  EXPECT_EQ(text_of(*in_reply), " on| cat");
  EXPECT_EQ(in_reply->message, view.messages[1].id);
}

TEST_F(FoundPlaces, WhereRepliesBeginIsWhereAnotherOneBegan) {
  ask("One?");
  write({2, 4, 6});
  finish();
  ask("Two?");
  write({2});
  const auto place = find_place(view, guess({4}, 9, 5));  // the end of the prompt is a part of the match
  ASSERT_TRUE(place);
  EXPECT_EQ(place->where, Where::earlier_reply);
  EXPECT_EQ(text_of(*place), " the cat| on");
  EXPECT_EQ(place->begin, 0u);
}

TEST_F(FoundPlaces, ThatTheChatDoesNotShowAreSaid) {
  view.messages.system_prompt = "You sat on a mat.";
  ask("One?");
  write({3, 4});
  const auto in_system = find_place(view, guess({5}, 1, 2));
  ASSERT_TRUE(in_system);
  EXPECT_EQ(in_system->where, Where::system_prompt);
  EXPECT_FALSE(is_on_show(view.conversation(), *in_system));
  EXPECT_NE(place_words(*in_system).find("system prompt"), std::string::npos);
  const auto hidden = find_place(view, guess({6, 6}, 1, 3));
  ASSERT_TRUE(hidden);
  EXPECT_EQ(hidden->where, Where::hidden);
}

TEST_F(FoundPlaces, AreOfGuessesFromThisTextAlone) {
  ask("the cat sat on a mat");
  write({2});
  EXPECT_FALSE(find_place(view, guess({3}, 2, 4, kFromDflash)));
  EXPECT_FALSE(find_place(view, guess({3}, 2, 4, kFromEarlier)));
  EXPECT_FALSE(find_place(view, guess({3}, 2, 4, kFromRecycling)));
  const NodeRef node = guess({3}, 1, 4);
  EXPECT_FALSE(find_place(view, {node.round, 0})) << "the root was not guessed";
  EXPECT_FALSE(find_place(view, {node.round, 2})) << "nor was the bonus";
  EXPECT_FALSE(find_place(view, {node.round + 1, 1}));
}

TEST_F(FoundPlaces, AreKnownOfTheHoveredAndTheSelectedNode) {
  ask("Say something.");
  write({2, 3, 1, 2});
  const NodeRef node = guess({3}, 2, 4), other = guess({3}, 1, 4, kFromDflash);
  EXPECT_FALSE(place_of(view.rounds, node));
  update(view, UiCommand(RoundsCommand(HoverNode{node})));
  ASSERT_TRUE(place_of(view.rounds, node));
  EXPECT_EQ(text_of(*place_of(view.rounds, node)), " the cat| sat");
  update(view, UiCommand(RoundsCommand(HoverNode{other})));
  EXPECT_FALSE(place_of(view.rounds, node));
  update(view, UiCommand(RoundsCommand(SelectNode{node})));
  EXPECT_TRUE(place_of(view.rounds, node));
  EXPECT_FALSE(place_of(view.rounds, std::nullopt));
}

}  // namespace
}  // namespace canopy::app
