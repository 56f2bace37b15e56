// Several sequences of one model: each computes what it would compute alone, whatever the others do in between.

#include "engine/model/sequence.h"
#include "engine/model/drafter.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <optional>

#include "engine/base/error.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/compute/forwarding_device.h"
#include "tests/model/device_under_test.h"
#include "tests/model/random_drafter.h"
#include "tests/model/random_model.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

using Tokens = std::vector<uint32_t>;

class SequenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RandomModel random;
    random.context = 300;
    folder_.write("model.gguf", random.build());
    model_ = load();
    const RandomDrafter drafter;
    drafter.write(folder_, model_->config());
    drafter_ = Drafter::load(DrafterFile::open(folder_.path()), *model_, {cache_under_test(), {}});
  }

  std::unique_ptr<Model> load() const {
    ModelOptions options;
    options.cache_type = cache_under_test();
    options.max_width = 16;
    options.spare_pages = 5;
    options.aux_layers = RandomDrafter().aux_layers;
    return Model::load(device_under_test(), ModelFile::open(folder_.path() / "model.gguf"), options);
  }

  static Tokens text(uint32_t count, uint32_t seed) {
    Tokens tokens;
    for (uint32_t i = 0; i < count; ++i) tokens.push_back((i * 31 + seed * 17 + 5) % 77);
    return tokens;
  }

  /// Reads tokens into a sequence; returns the logits of the last.
  std::vector<float> read(Sequence& sequence, std::span<const uint32_t> tokens) {
    ForwardInput input = sequence.text(tokens, HeadOutput::logits);
    input.aux_hidden_states = sequence.drafter() != nullptr;
    ForwardOutput output = model_->forward(input);
    EXPECT_TRUE(sequence.append(tokens, output));
    const std::span<const float> logits = output.logits(static_cast<uint32_t>(tokens.size()) - 1);
    return {logits.begin(), logits.end()};
  }

  /// Keys and values of all positions of a sequence, in all layers.
  std::vector<float> state(const Sequence& sequence) const {
    std::vector<float> all;
    for (uint32_t layer = 0; layer < model_->config().layers; ++layer) {
      for (const bool values : {false, true}) {
        const auto part = sequence.read_kv(layer, values);
        all.insert(all.end(), part.begin(), part.end());
      }
    }
    return all;
  }

  /// Results of a text read alone.
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

  /// Reads as many tokens as there are; returns the logits of the last.
  std::vector<float> read_long(Sequence& sequence, const Tokens& tokens) {
    std::vector<float> logits;
    for (size_t first = 0; first < tokens.size(); first += 16) {
      logits = read(sequence, std::span(tokens).subspan(first, std::min<size_t>(16, tokens.size() - first)));
    }
    return logits;
  }

  /// The same as alone(), computed by another model while this one's pages are taken.
  Alone alone_beside(const Tokens& tokens, const Sequence& taken) {
    EXPECT_GT(taken.pages(), 0u);
    if (!other_) other_ = load();
    std::swap(model_, other_);
    const Alone result = alone(tokens);
    std::swap(model_, other_);
    return result;
  }

  static void expect_same(const std::vector<float>& a, const std::vector<float>& b) {
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
  }

  /// Writes `rounds` rounds behind what a sequence has: a chain of what was drafted, of which as many nodes are
  /// accepted as the round's number says. Every draft of them.
  std::vector<Draft> write(Sequence& sequence, uint32_t rounds) {
    std::vector<Draft> drafts;
    for (uint32_t round = 0; round < rounds; ++round) drafts.push_back(write_round(sequence, round));
    return drafts;
  }
  Draft write_round(Sequence& sequence, uint32_t round) {
    const uint32_t root = (round * 7 + 3) % 77;
    Draft draft = sequence.draft(root, 4).value();
    DraftTree tree(root);
    AcceptedPath path;
    path.nodes = {0};
    for (uint32_t depth = 0; depth < round % 4; ++depth) {
      tree.add(depth, draft.tokens[size_t{depth} * draft.candidates], 0, 0, 0);
      if (depth < 2) path.nodes.push_back(depth + 1);
    }
    ForwardInput input = sequence.tree(tree, HeadOutput::argmax);
    input.aux_hidden_states = true;
    sequence.commit(tree, path, model_->forward(input));
    return draft;
  }

  static void expect_same(const Draft& a, const Draft& b) {
    EXPECT_EQ(a.tokens, b.tokens);
    expect_same(a.logits, b.logits);
    expect_same(a.log_sum_exp, b.log_sum_exp);
  }

  TempFolder folder_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Model> other_;  // of the same file
  std::unique_ptr<Drafter> drafter_;
};

Tokens joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(SequenceTest, TwoThatTakeTurnsAreEachWhatTheyAreAlone) {
  const Tokens a = text(13, 1), b = text(11, 2);
  const Alone alone_a = alone(a), alone_b = alone(b);
  Sequence first(*model_), second(*model_);
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
  const ForwardOutput pass = model_->forward(sequence.tree(tree, HeadOutput::none));
  EXPECT_TRUE(pass.completed());
  AcceptedPath wrong;
  wrong.nodes = {0, 2, 3};
  expect_error("Node 3 at depth 2", [&] { sequence.commit(tree, wrong, pass); });
  EXPECT_EQ(sequence.length(), 6u);
  sequence.commit(tree, path, pass);
  EXPECT_EQ(Tokens(sequence.tokens().begin(), sequence.tokens().end()), joined(stem, {20, 22, 24, 25}));
  const Tokens last = {30};
  expect_same(read(sequence, last), expected.logits);
  expect_same(state(sequence), expected.state);
}

TEST_F(SequenceTest, CommitsOnlyWhatItsOwnPassGave) {
  Sequence sequence(*model_), other(*model_);
  const Tokens stem = text(6, 6), more = text(3, 7);
  const ForwardOutput pass = model_->forward(sequence.text(stem));
  expect_error("not of a pass over it", [&] { other.append(stem, pass); });   // of another sequence
  expect_error("a pass over 3 rows", [&] { sequence.append(more, pass); });   // of another length
  expect_error("not of a pass over it", [&] { sequence.append(stem, {}); });  // of a pass that was stopped
  EXPECT_EQ(sequence.length() + other.length(), 0u);
  EXPECT_TRUE(sequence.append(stem, pass));
  expect_error("the first at position 6", [&] { sequence.append(stem, pass); });  // a second time
  const DraftTree root(20);
  AcceptedPath path;
  path.nodes = {0};
  expect_error("a pass over 1 rows", [&] { sequence.commit(root, path, pass); });
  EXPECT_EQ(sequence.length(), 6u);
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

TEST_F(SequenceTest, KeepsToItsCapacityAndGivesItsPagesBack) {
  const uint32_t pages = model_->pages().pages();
  EXPECT_EQ(pages, 5u + 5u);
  {
    Sequence sequence(*model_);
    EXPECT_EQ(sequence.capacity(), 300u);
    expect_error("allowed: 300 in all", [&] { sequence.append(text(301, 1), {}); });
    EXPECT_EQ(sequence.pages(), 0u);
    read_long(sequence, text(130, 1));
    EXPECT_EQ(sequence.pages(), 3u);
    EXPECT_EQ(model_->pages().free(), pages - 3);
    const auto fork = sequence.fork();
    EXPECT_EQ(model_->pages().free(), pages - 3) << "pages are shared";
    sequence.truncate(128);
    EXPECT_EQ(sequence.pages(), 2u);
    EXPECT_EQ(model_->pages().free(), pages - 3) << "the fork has the third";
  }
  EXPECT_EQ(model_->pages().free(), pages);
}

TEST_F(SequenceTest, ForksOfForksShareWhatTheyHaveInCommon) {
  const Tokens stem = text(140, 1), a = text(70, 2), b = text(9, 3), c = text(60, 4), d = text(3, 5);
  const Alone alone_a = alone(joined(stem, a)), alone_ab = alone(joined(joined(stem, a), b)),
              alone_c = alone(joined(stem, c)), alone_d = alone(joined(Tokens(stem.begin(), stem.begin() + 77), d));
  Sequence first(*model_);
  read_long(first, stem);
  const auto second = first.fork();
  EXPECT_EQ(model_->pages().free(), 10u - 3);
  const auto logits_a = read_long(first, a);  // its third page and one more
  EXPECT_EQ(model_->pages().free(), 10u - 5);
  const auto third = first.fork();
  const auto fourth = third->fork();
  const auto logits_b = read_long(*third, b);
  const auto logits_c = read_long(*second, c);
  fourth->truncate(77);
  const auto logits_d = read_long(*fourth, d);
  expect_same(logits_a, alone_a.logits);
  expect_same(logits_b, alone_ab.logits);
  expect_same(logits_c, alone_c.logits);
  expect_same(logits_d, alone_d.logits);
  expect_same(state(first), alone_a.state);
  expect_same(state(*third), alone_ab.state);
  expect_same(state(*second), alone_c.state);
  expect_same(state(*fourth), alone_d.state);
}

TEST_F(SequenceTest, GoesOnBehindACutAtAnyPlaceOfAPage) {
  const Tokens stem = text(135, 1), rest = text(70, 2);
  for (const uint32_t length : {1u, 63u, 64u, 65u, 127u, 128u, 129u}) {
    SCOPED_TRACE(length);
    const Alone expected = alone(joined(Tokens(stem.begin(), stem.begin() + length), rest));
    Sequence sequence(*model_);
    read_long(sequence, stem);
    const auto fork = sequence.fork();
    const std::vector<float> before = state(*fork);
    sequence.truncate(length);
    expect_same(read_long(sequence, rest), expected.logits);
    expect_same(state(sequence), expected.state);
    expect_same(state(*fork), before);
  }
}

// Pages of several texts alternate.
TEST_F(SequenceTest, TextsGrowInTurnsThroughManyPages) {
  const Tokens a = text(290, 6), b = text(280, 7);
  const Alone alone_a = alone(a), alone_b = alone(b);
  Sequence first(*model_), second(*model_);
  std::vector<float> logits_a, logits_b;
  for (size_t i = 0; i < 290; i += 10) {
    logits_a = read(first, std::span(a).subspan(i, 10));
    if (i < 280) logits_b = read(second, std::span(b).subspan(i, 10));
  }
  EXPECT_EQ(model_->pages().free(), 0u);
  expect_same(logits_a, alone_a.logits);
  expect_same(logits_b, alone_b.logits);
  expect_same(state(first), alone_a.state);
  expect_same(state(second), alone_b.state);
}

TEST_F(SequenceTest, IsRefusedPagesThatAreNotThereAndLeavesAllAsTheyWere) {
  Sequence first(*model_), second(*model_);
  read_long(first, text(300, 1));
  read_long(second, text(200, 2));
  const auto third = first.fork();
  const std::vector<float> state_first = state(first), state_second = state(second);
  third->truncate(256);
  third->truncate(130);
  read_long(second, text(60, 3));  // the tenth page
  const auto refusal = [&](const std::function<void()>& wish) -> std::string {
    try {
      wish();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
      return e.what();
    }
    return "nothing was refused";
  };
  const Tokens more = text(9, 4);
  EXPECT_NE(
      refusal([&] { third->text(more); }).find("needs 1 more pages of 64 positions of the K/V cache, but only 0 of 10"),
      std::string::npos);
  DraftTree chain(1);
  for (uint32_t i = 0; i < 8; ++i) chain.add(i, 2 + i, 0, 0, 0);
  EXPECT_NE(refusal([&] { third->tree(chain, HeadOutput::argmax); }).find("needs 1 more"), std::string::npos);
  EXPECT_EQ(third->length(), 130u);
  expect_same(state(first), state_first);
  second.truncate(200);
  expect_same(state(second), state_second);
  EXPECT_EQ(model_->pages().free(), 1u);
  const Alone expected = alone_beside(joined(text(130, 1), more), *third);
  expect_same(read(*third, more), expected.logits);
  expect_same(state(first), state_first);
}

// The likeliest chain is verified in the text's own places.
// All nodes together have more ancestors than a pass over one of them has room for.
TEST_F(SequenceTest, ReadsTheNodesOfALongChainOneByOne) {
  const Tokens stem = text(20, 4);
  DraftTree tree(stem.back());
  Tokens all = stem;
  Sequence sequence(*model_);
  read_long(sequence, stem);
  for (uint32_t depth = 1; depth <= 15; ++depth) {
    all.push_back(20 + depth);
    tree.add(depth - 1, all.back(), 0, 0, 0);
    const ForwardInput input = sequence.branches(tree, depth, HeadOutput::logits);
    EXPECT_EQ(input.batch.width(), 1u);
    EXPECT_EQ(input.batch.ancestors.size(), depth + 1);
    ForwardOutput output = model_->forward(input);
    const std::span<const float> logits = output.logits(0);
    expect_same({logits.begin(), logits.end()}, alone_beside(all, sequence).logits);
  }
}

TEST_F(SequenceTest, MovesNothingOfAnAcceptedLikeliestChain) {
  const Tokens stem = text(61, 6);
  DraftTree tree(20);
  tree.add(0, 21, 0, 0, 0);  // node 1
  tree.add(0, 22, 1, 0, 0);  // node 2, another child
  tree.add(1, 23, 0, 0, 0);  // node 3
  tree.add(3, 24, 0, 0, 0);  // node 4
  tree.add(2, 25, 0, 0, 0);  // node 5
  tree.add(4, 26, 0, 0, 0);  // node 6, in the next page
  const auto committed = [&](const std::vector<uint32_t>& path) {
    Sequence sequence(*model_);
    read_long(sequence, stem);
    const ForwardInput input = sequence.tree(tree, HeadOutput::argmax);
    for (const uint32_t node : {0u, 1u, 3u, 4u, 6u}) {
      EXPECT_EQ(input.batch.rows[node].slot, input.batch.slot_of(61 + tree[node].depth)) << node;
    }
    for (const uint32_t node : {2u, 5u}) EXPECT_GE(input.batch.rows[node].slot, model_->limits().first_tree_slot());
    AcceptedPath accepted;
    accepted.nodes = path;
    sequence.commit(tree, accepted, model_->forward(input));
    Tokens all = stem;
    for (const uint32_t node : path) all.push_back(tree[node].token);
    all.push_back(30);
    const Alone expected = alone_beside(all, sequence);
    const Tokens last = {30};
    expect_same(read(sequence, last), expected.logits);
    expect_same(state(sequence), expected.state);
  };
  committed({0});
  committed({0, 1, 3});
  committed({0, 1, 3, 4, 6});
  committed({0, 2});     // moved to where node 1 was
  committed({0, 2, 5});  // and to where node 3 was
}

TEST_F(SequenceTest, TwoThatDraftInTurnsAreEachWhatTheyAreAlone) {
  const Tokens a = text(13, 1), b = text(9, 2);
  const auto alone = [&](const Tokens& tokens) {
    Sequence sequence(*model_, drafter_.get());
    read(sequence, std::span(tokens).first(8));
    if (tokens.size() > 8) read(sequence, std::span(tokens).subspan(8));
    return write(sequence, 6);
  };
  const std::vector<Draft> alone_a = alone(a), alone_b = alone(b);
  EXPECT_NE(alone_a[0].tokens, alone_b[0].tokens);
  Sequence first(*model_, drafter_.get()), second(*model_, drafter_.get());
  read(first, a);
  read(second, b);
  EXPECT_EQ(first.backlog(), 13u);
  for (uint32_t round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    expect_same(write_round(first, round), alone_a[round]);
    expect_same(write_round(second, round), alone_b[round]);
  }
  EXPECT_EQ(first.feature_length(), first.length());
}

TEST_F(SequenceTest, AForkOfADraftingSequenceDraftsOnItsOwn) {
  const Tokens stem = text(10, 3), left = text(3, 4), right = text(4, 5);
  const auto alone = [&](const Tokens& end) {
    Sequence sequence(*model_, drafter_.get());
    read(sequence, stem);
    write(sequence, 2);  // some features are injected, some wait
    read(sequence, end);
    return write(sequence, 3);
  };
  const std::vector<Draft> alone_left = alone(left), alone_right = alone(right);
  Sequence sequence(*model_, drafter_.get());
  read(sequence, stem);
  write(sequence, 2);
  EXPECT_GT(sequence.backlog(), 0u);
  EXPECT_LT(sequence.backlog(), sequence.length());
  const std::unique_ptr<Sequence> fork = sequence.fork();
  EXPECT_EQ(fork->feature_length(), sequence.length());
  read(sequence, left);
  read(*fork, right);
  for (uint32_t round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    expect_same(write_round(*fork, round), alone_right[round]);
    expect_same(write_round(sequence, round), alone_left[round]);
  }
}

TEST_F(SequenceTest, KnowsHowFarFeaturesAreKept) {
  const Tokens stem = text(7, 6), rest = text(5, 7);
  Sequence sequence(*model_, drafter_.get());
  read(sequence, stem);
  EXPECT_TRUE(sequence.append(rest, model_->forward(sequence.text(rest))));  // without aux hidden states
  EXPECT_EQ(sequence.length(), 12u);
  EXPECT_EQ(sequence.feature_length(), 7u);
  expect_error("the features of only 7", [&] { sequence.draft(1, 4); });
  read(sequence, text(2, 8));
  EXPECT_EQ(sequence.feature_length(), 7u) << "none behind a gap";
  sequence.truncate(7);
  read(sequence, rest);
  EXPECT_EQ(sequence.feature_length(), 12u);
  Sequence whole(*model_, drafter_.get());
  read(whole, joined(stem, rest));
  expect_same(sequence.draft(1, 4).value(), whole.draft(1, 4).value());
  Sequence without(*model_);
  EXPECT_EQ(without.feature_length(), 0u);
  expect_error("made without a drafter", [&] { without.draft(1, 4); });
}

TEST(SequenceMemory, AnotherThatDoesNotFitIsRefusedBeforeItIsAllocated) {
  struct TightDevice : ForwardingDevice {
    using ForwardingDevice::ForwardingDevice;
    MemoryInfo memory() const override {
      MemoryInfo info = ForwardingDevice::memory();
      if (available) info.available = *available;
      return info;
    }
    std::optional<uint64_t> available;
  };
  TightDevice device(make_reference_device());
  const TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("model.gguf", RandomModel{}.build()));
  const RandomDrafter random;
  ModelOptions options;
  options.aux_layers = random.aux_layers;
  random.write(folder, file.config());
  const auto model = Model::load(device, file, options);
  const auto drafter = Drafter::load(DrafterFile::open(folder.path()), *model, {});
  const Tokens tokens = {1, 2, 3};
  const auto read = [&](Sequence& sequence) -> std::string {
    ForwardInput input = sequence.text(tokens);
    input.aux_hidden_states = sequence.drafter() != nullptr;
    try {
      sequence.append(tokens, model->forward(input));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
      return e.what();
    }
    return "nothing was refused";
  };
  Sequence first(*model, drafter.get()), second(*model, drafter.get()), without(*model);
  EXPECT_EQ(read(first), "nothing was refused");
  const uint64_t before = device.memory().available;
  device.available = 1000;
  EXPECT_EQ(read(without), "nothing was refused");
  const std::string refusal = read(second);
  EXPECT_NE(refusal.find("What waits of another text for its drafter needs 65.5 kB on the device, but only 1.0 kB"),
            std::string::npos)
      << refusal;
  EXPECT_EQ(second.length(), 3u) << "what was read is there";
  EXPECT_EQ(second.feature_length(), 0u);
  EXPECT_THROW(first.fork(), Error);
  first.inject();
  EXPECT_EQ(first.feature_length(), 3u);
  EXPECT_EQ(first.backlog(), 0u);
  EXPECT_EQ(first.fork()->feature_length(), 3u) << "nothing waits twice";
  second.clear();
  EXPECT_EQ(read(second), "nothing was refused") << "the memory of the first is free by now";
  device.available.reset();
  EXPECT_EQ(device.memory().available, before);
  second.fork();
  EXPECT_LT(device.memory().available, before) << "it stays the model's";
  device.available = 1000;
  EXPECT_EQ(read(first), "nothing was refused");
}

// Where the copy of a shared page fails, the text says that it ends before it.
TEST(SequenceFaults, ACopyThatFailsEndsTheTextBeforeThePage) {
  struct FailingDevice : ForwardingDevice {
    using ForwardingDevice::ForwardingDevice;
    bool run(Commands& commands, const std::stop_token& stop) override {
      if (runs_left-- <= 0) throw out_of_memory("The device ran out of memory.");
      return ForwardingDevice::run(commands, stop);
    }
    int runs_left = 1'000'000;
  };
  FailingDevice device(make_reference_device());
  const TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("model.gguf", RandomModel{}.build()));
  const RandomDrafter random;
  ModelOptions options;
  options.aux_layers = random.aux_layers;
  options.spare_pages = 4;
  random.write(folder, file.config());
  const auto model = Model::load(device, file, options);
  const auto drafter = Drafter::load(DrafterFile::open(folder.path()), *model, {});
  Sequence sequence(*model, drafter.get());
  Tokens tokens(70);
  for (uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = (i * 7 + 3) % 77;
  ForwardInput input = sequence.text(tokens);
  input.aux_hidden_states = true;
  sequence.append(tokens, model->forward(input));
  sequence.inject();
  const Draft expected = sequence.draft(1, 2).value();
  for (const bool of_drafter : {false, true}) {
    const auto fork = sequence.fork();
    device.runs_left = of_drafter ? 1 : 0;
    EXPECT_THROW(fork->own_last_page(), Error);
    device.runs_left = 1'000'000;
    EXPECT_EQ(fork->length(), of_drafter ? 70u : 64u);
    EXPECT_EQ(fork->feature_length(), 64u);
    EXPECT_EQ(sequence.feature_length(), 70u);
    fork->truncate(64);
    const Tokens rest(tokens.begin() + 64, tokens.end());
    input = fork->text(rest);
    input.aux_hidden_states = true;
    fork->append(rest, model->forward(input));
    for (const bool values : {false, true}) EXPECT_EQ(fork->read_kv(0, values), sequence.read_kv(0, values));
    EXPECT_EQ(fork->draft(1, 2).value().logits, expected.logits);
    EXPECT_EQ(sequence.draft(1, 2).value().logits, expected.logits);
  }
}

}  // namespace
}  // namespace canopy::test
