// Several sequences of one model: each computes what it would compute alone, whatever the others do in between.

#include "engine/model/sequence.h"

#include <gtest/gtest.h>

#include <cstring>
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
    random.context = 96;
    const ModelFile file = ModelFile::open(folder_.write("model.gguf", random.build()));
    ModelOptions options;
    options.cache_type = cache_under_test();
    options.max_width = 16;
    const RandomDrafter drafter;
    options.aux_layers = drafter.aux_layers;
    model_ = Model::load(device_under_test(), file, options);
    drafter.write(folder_, file.config());
    drafter_ = Drafter::load(DrafterFile::open(folder_.path()), *model_, {cache_under_test(), {}});
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
        const auto part = model_->read_kv(layer, values, 0, sequence.length(), sequence.cache());
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

TEST_F(SequenceTest, KeepsToItsCapacityAndGivesItsCacheBack) {
  Sequence sequence(*model_);
  EXPECT_EQ(sequence.capacity(), 96u);
  expect_error("allowed: 96 in all", [&] { sequence.append(text(97, 1), {}); });
  uint32_t cache = 0;
  {
    const Sequence other(*model_);
    cache = other.cache();
  }
  const Sequence next(*model_);
  EXPECT_EQ(next.cache(), cache);
  expect_error("cache 7", [&] { model_->read_kv(0, false, 0, 1, 7); });
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
  const Sequence first(*model, drafter.get());
  const uint64_t before = device.memory().available;
  device.available = 1000;
  const auto refusal = [&](Drafter* with) -> std::string {
    try {
      const Sequence second(*model, with);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
      return e.what();
    }
    return "nothing was refused";
  };
  EXPECT_NE(refusal(nullptr).find("The K/V cache of another text needs 1 MiB"), std::string::npos) << refusal(nullptr);
  EXPECT_NE(refusal(drafter.get()).find("What a drafter keeps of another text needs 1 MiB on the device, but only"),
            std::string::npos)
      << refusal(drafter.get());
  device.available.reset();
  EXPECT_EQ(device.memory().available, before);
  { const Sequence second(*model, drafter.get()); }
  EXPECT_LT(device.memory().available, before) << "it stays the model's";
  device.available = 1000;
  const Sequence again(*model, drafter.get());
}

}  // namespace
}  // namespace canopy::test
