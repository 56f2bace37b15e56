// Sequences of one model: each is what it would be alone, whatever the others do in between.

#include "engine/model/sequence.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/model/device_under_test.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

using Tokens = std::vector<uint32_t>;

class SequenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RandomModel random;
    random.context = 96;
    const ModelFile file = ModelFile::open(folder_.write("model.gguf", random.build()));
    ModelOptions options;
    options.cache_type = cache_under_test();
    options.max_width = 16;
    model_ = Model::load(device_under_test(), file, options);
  }

  static Tokens text(uint32_t count, uint32_t seed) {
    Tokens tokens;
    for (uint32_t i = 0; i < count; ++i) tokens.push_back((i * 31 + seed * 17 + 5) % 77);
    return tokens;
  }

  /// Reads tokens into a sequence; the logits of the last.
  std::vector<float> read(Sequence& sequence, std::span<const uint32_t> tokens) {
    ForwardOutput output = model_->forward(sequence.text(tokens, HeadOutput::logits));
    sequence.append(tokens);
    const std::span<const float> logits = output.logits(static_cast<uint32_t>(tokens.size()) - 1);
    return {logits.begin(), logits.end()};
  }

  /// Keys and values of all its positions in all layers.
  std::vector<float> state(const Sequence& sequence) const {
    std::vector<float> all;
    for (uint32_t layer = 0; layer < model_->config().layers; ++layer) {
      for (const bool values : {false, true}) {
        const auto part = model_->read_kv(layer, values, 0, sequence.length(), sequence.cache());
        all.insert(all.end(), part.begin(), part.end());
      }
    }
    return all;
  }

  /// A text on its own.
  struct Alone {
    std::vector<float> logits, state;
  };
  Alone alone(const Tokens& tokens) {
    Sequence sequence(*model_);
    Alone result;
    for (size_t first = 0; first < tokens.size(); first += 8) {
      result.logits = read(sequence, std::span(tokens).subspan(first, std::min<size_t>(8, tokens.size() - first)));
    }
    result.state = state(sequence);
    return result;
  }

  static void expect_same(const std::vector<float>& a, const std::vector<float>& b) {
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
  }

  TempFolder folder_;
  std::unique_ptr<Model> model_;
};

Tokens joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(SequenceTest, TwoThatTakeTurnsAreEachWhatTheyAreAlone) {
  const Tokens a = text(13, 1), b = text(11, 2);
  const Alone alone_a = alone(a), alone_b = alone(b);
  Sequence first(*model_), second(*model_);
  EXPECT_NE(first.cache(), second.cache());
  std::vector<float> logits_a, logits_b;
  for (size_t i = 0; i < 13; ++i) {
    logits_a = read(first, std::span(a).subspan(i, 1));
    if (i < 11) logits_b = read(second, std::span(b).subspan(i, 1));
  }
  expect_same(logits_a, alone_a.logits);
  expect_same(logits_b, alone_b.logits);
  expect_same(state(first), alone_a.state);
  expect_same(state(second), alone_b.state);
}

TEST_F(SequenceTest, AForkGoesItsOwnWay) {
  const Tokens stem = text(9, 3), left = text(5, 4), right = text(7, 5);
  const Alone alone_left = alone(joined(stem, left)), alone_right = alone(joined(stem, right));
  Sequence sequence(*model_);
  read(sequence, stem);
  const std::unique_ptr<Sequence> fork = sequence.fork();
  EXPECT_EQ(fork->length(), 9u);
  const auto logits_left = read(sequence, left);
  const auto logits_right = read(*fork, right);
  expect_same(logits_left, alone_left.logits);
  expect_same(logits_right, alone_right.logits);
  expect_same(state(sequence), alone_left.state);
  expect_same(state(*fork), alone_right.state);
}

TEST_F(SequenceTest, CommitsAPathInItsOrderAndForgetsTheRest) {
  const Tokens stem = text(6, 6);
  DraftTree tree(20);
  tree.add(0, 21, 0, 0, 0);  // node 1, a wrong child
  tree.add(0, 22, 1, 0, 0);  // node 2
  tree.add(1, 23, 0, 0, 0);  // node 3, below the wrong one
  tree.add(2, 24, 0, 0, 0);  // node 4
  tree.add(4, 25, 0, 0, 0);  // node 5
  const Alone expected = alone(joined(stem, {20, 22, 24, 25, 30}));
  Sequence sequence(*model_);
  read(sequence, stem);
  AcceptedPath path;
  path.nodes = {0, 2, 4, 5};
  EXPECT_TRUE(model_->forward(sequence.tree(tree, HeadOutput::none)).completed());
  AcceptedPath wrong;
  wrong.nodes = {0, 2, 3};
  expect_error("Node 3 at depth 2", [&] { sequence.commit(tree, wrong); });
  EXPECT_EQ(sequence.length(), 6u);
  sequence.commit(tree, path);
  EXPECT_EQ(Tokens(sequence.tokens().begin(), sequence.tokens().end()), joined(stem, {20, 22, 24, 25}));
  const Tokens last = {30};
  expect_same(read(sequence, last), expected.logits);
  expect_same(state(sequence), expected.state);
}

TEST_F(SequenceTest, GoesOnBehindWhatItWasCutTo) {
  const Tokens stem = text(7, 7), gone = text(6, 8), rest = text(4, 9);
  const Alone expected = alone(joined(stem, rest));
  Sequence sequence(*model_);
  read(sequence, stem);
  read(sequence, gone);
  sequence.truncate(99);
  EXPECT_EQ(sequence.length(), 13u);
  EXPECT_EQ(sequence.shared_with(joined(stem, rest)), 7u);
  sequence.truncate(7);
  expect_same(read(sequence, rest), expected.logits);
  expect_same(state(sequence), expected.state);
  sequence.clear();
  EXPECT_EQ(sequence.length(), 0u);
}

TEST_F(SequenceTest, KeepsToItsCapacityAndGivesItsCacheBack) {
  Sequence sequence(*model_);
  EXPECT_EQ(sequence.capacity(), 96u);
  expect_error("allowed: 96 in all", [&] { sequence.append(text(97, 1)); });
  uint32_t cache = 0;
  {
    const Sequence other(*model_);
    cache = other.cache();
  }
  const Sequence next(*model_);
  EXPECT_EQ(next.cache(), cache);
  expect_error("cache 7", [&] { model_->read_kv(0, false, 0, 1, 7); });
}

}  // namespace
}  // namespace canopy::test
