// Texts of a model with recurrent layers. The numeric contract there: whatever the widths of its passes, what of it was
// read as a draft tree, and what was gone back to, a text has the logits and states, bit for bit, that it has when it
// is read token by token.

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>

#include "engine/model/sequence.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/model/all_logits.h"
#include "tests/model/device_under_test.h"
#include "tests/model/random_model.h"
#include "tests/model/same_bits.h"

namespace canopy::test {
namespace {

using Tokens = std::vector<uint32_t>;

constexpr uint32_t kVocab = 77, kText = 330, kWidest = 257;

uint32_t text_token(uint32_t position) {
  return (position * 29 + position / 7 + 3) % kVocab;
}

Tokens text_from(uint32_t first, uint32_t count) {
  Tokens tokens;
  for (uint32_t i = 0; i < count; ++i) tokens.push_back(text_token(first + i));
  return tokens;
}

/// A draft tree behind `committed` tokens of the text, some nodes of which are the tokens that come next.
struct BushyDraft {
  DraftTree tree;
  AcceptedPath on_text;

  BushyDraft(uint32_t committed, uint32_t width) : tree(text_token(committed)) {
    for (uint32_t i = 1; i < width; ++i) {
      const auto depth = static_cast<uint32_t>(on_text.nodes.size());
      const bool spell = i % 3 == 2 && depth < 12;
      const uint32_t parent = spell ? on_text.nodes.back() : (i * 2654435761u >> 7) % i;
      tree.add(parent, spell ? text_token(committed + depth) : (i * 5 + 1) % kVocab, 0, 0, 0);
      if (spell) on_text.nodes.push_back(i);
    }
  }

  /// From the root to a node.
  AcceptedPath path_to(uint32_t node) const {
    AcceptedPath path;
    path.nodes.clear();
    for (uint32_t at = node; at != TreeNode::none; at = tree[at].parent) path.nodes.insert(path.nodes.begin(), at);
    return path;
  }
};

/// A model of an architecture, or of one whose weights have a type, and the text with what each of its tokens gives
/// when it is read token by token; shared by all tests.
class RecurrentSequence : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    Shared& shared = shared_[GetParam()];
    if (!shared.model) load(shared);
  }
  static void TearDownTestSuite() { shared_.clear(); }  // before the device is closed

  struct Shared {
    TempFolder folder;
    std::unique_ptr<Model> model;
    std::vector<std::vector<float>> alone, states;
  };

  Model& model() const { return *shared_.at(GetParam()).model; }
  const std::vector<float>& alone(uint32_t position) const { return shared_.at(GetParam()).alone[position]; }
  const std::vector<float>& state_behind(uint32_t position) const { return shared_.at(GetParam()).states[position]; }

  void load(Shared& shared) {
    RandomModel random;
    random.architecture = GetParam();
    if (constexpr std::string_view quantized = "_q8_0"; random.architecture.ends_with(quantized)) {
      random.architecture.resize(random.architecture.size() - quantized.size());
      random.type = TensorType::q8_0;
    }
    random.layers = 4;
    ModelOptions options;
    options.cache_type = cache_under_test();
    options.context = 384;
    options.max_width = kWidest;
    options.tree_slots = 288;
    options.spare_pages = 12;
    options.aux_layers = {2};
    shared.model =
        Model::load(device_under_test(), ModelFile::open(shared.folder.write("model.gguf", random.build())), options);
    Sequence text(model());
    for (uint32_t position = 0; position < kText; ++position) {
      shared.alone.push_back(read(text, text_from(position, 1)));
      shared.states.push_back(state_of(text));
    }
  }

  /// The logits of all rows of a pass.
  std::vector<float> run(const ForwardInput& input, ForwardOutput& output) {
    const std::vector<uint32_t> rows = all_rows(input.batch);
    ForwardInput without_head = input;
    without_head.head = HeadOutput::none;
    without_head.head_rows.clear();
    output = model().forward(without_head);
    return output.logits(rows);
  }

  /// Reads tokens into a sequence; the logits of all of them.
  std::vector<float> read(Sequence& sequence, const Tokens& tokens) {
    ForwardOutput output;
    std::vector<float> logits = run(sequence.text(tokens), output);
    EXPECT_TRUE(sequence.append(tokens, output));
    return logits;
  }

  /// Reads the text up to a position, in chunks.
  void read_up_to(Sequence& sequence, uint32_t end, uint32_t chunk = 64) {
    while (sequence.length() < end) {
      read(sequence, text_from(sequence.length(), std::min(chunk, end - sequence.length())));
    }
  }

  /// The states of all layers behind the text.
  std::vector<float> state_of(Sequence& sequence) {
    const uint32_t place = sequence.tree(DraftTree(0), HeadOutput::none).states.from;
    std::vector<float> all;
    for (uint32_t layer = 0; layer < model().config().layers; ++layer) {
      if (!model().config().is_recurrent(layer)) continue;
      const std::vector<float> one = model().read_state(layer, place);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  void expect_row(std::span<const float> logits, size_t row, uint32_t position, const std::string& what) {
    ASSERT_TRUE(same_bits(logits.subspan(row * kVocab, kVocab), alone(position)))
        << what << ", row " << row << ", position " << position;
  }
  void expect_state(Sequence& sequence, const std::string& what) {
    ASSERT_TRUE(same_bits(state_of(sequence), state_behind(sequence.length() - 1))) << what;
  }

  static inline std::map<std::string, Shared> shared_;
};
INSTANTIATE_TEST_SUITE_P(Architectures, RecurrentSequence,
                         ::testing::Values("qwen35", "granitehybrid", "nemotron_h_moe", "lfm2", "lfm2_q8_0"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(RecurrentSequence, TokensDependOnWhatCameBefore) {
  EXPECT_FALSE(same_bits(alone(3), alone(4)));  // otherwise no comparison below could fail
  EXPECT_FALSE(same_bits(state_behind(3), state_behind(4)));
  Sequence other(model());
  read(other, {5});
  EXPECT_FALSE(same_bits(read(other, text_from(1, 1)), alone(1)));
}

TEST_P(RecurrentSequence, TextAtEveryWidth) {
  std::vector<uint32_t> widths(66);
  std::iota(widths.begin(), widths.end(), 1u);
  widths.insert(widths.end(), {127, 128, 129, 255, 256, 257});
  for (const uint32_t width : widths_under_test(widths)) {
    const std::string what = "width " + std::to_string(width);
    Sequence sequence(model());
    read_up_to(sequence, width * 7 % 60 + 1);  // some text before
    const uint32_t first = sequence.length();
    const std::vector<float> logits = read(sequence, text_from(first, width));
    for (uint32_t i = 0; i < width; ++i) expect_row(logits, i, first + i, what);
    expect_state(sequence, what);
    if (HasFatalFailure()) return;
  }
}

TEST_P(RecurrentSequence, NodesEqualTheirCommittedSelves) {
  for (const uint32_t width : widths_under_test({1, 2, 3, 5, 8, 17, 33, 64, 65, 129, 257})) {
    for (const uint32_t committed : {0u, 1u, 2u, 3u, 63u, 130u}) {
      const std::string what = "width " + std::to_string(width) + " behind " + std::to_string(committed);
      Sequence sequence(model());
      read_up_to(sequence, committed);
      const BushyDraft draft(committed, width);
      ForwardOutput output;
      const std::vector<float> logits = run(sequence.tree(draft.tree, HeadOutput::none), output);
      for (uint32_t depth = 0; depth < draft.on_text.nodes.size(); ++depth) {
        expect_row(logits, draft.on_text.nodes[depth], committed + depth, what);
      }
      if (HasFatalFailure()) return;
      // A path that differs from the text, committed from the tree and read as text.
      const AcceptedPath path = draft.path_to(width - 1);
      Tokens tokens;
      for (const uint32_t node : path.nodes) tokens.push_back(draft.tree[node].token);
      const auto plain = sequence.fork();
      sequence.commit(draft.tree, path, output);
      const std::vector<float> read_plainly = read(*plain, tokens);
      for (size_t depth = 0; depth < path.nodes.size(); ++depth) {
        const auto row = std::span(logits).subspan(path.nodes[depth] * kVocab, kVocab);
        ASSERT_TRUE(same_bits(row, std::span(read_plainly).subspan(depth * kVocab, kVocab))) << what;
      }
      ASSERT_TRUE(same_bits(state_of(sequence), state_of(*plain))) << what;
    }
  }
}

TEST_P(RecurrentSequence, RoundsLeaveTheTextThatPlainDecodingLeaves) {
  Sequence sequence(model());
  read_up_to(sequence, 20, 20);
  for (uint32_t round = 0; sequence.length() < 150; ++round) {
    const BushyDraft draft(sequence.length(), 1 + round * 7 % 40);
    ForwardOutput output;
    run(sequence.tree(draft.tree, HeadOutput::none), output);
    AcceptedPath path = draft.on_text;
    path.nodes.resize(std::min<size_t>(path.nodes.size(), 1 + round % 5));
    sequence.commit(draft.tree, path, output);
    expect_state(sequence, "round " + std::to_string(round));
    if (HasFatalFailure()) return;
  }
  const uint32_t next = sequence.length();
  expect_row(read(sequence, text_from(next, 1)), 0, next, "behind the rounds");
}

TEST_P(RecurrentSequence, GoesBackToAStateAndReadsOn) {
  Sequence sequence(model());
  read_up_to(sequence, 64);
  // The last pass over a prompt: what was before it is kept, as a reply may be written again.
  const Tokens end = text_from(64, 32);
  sequence.append(end, model().forward(sequence.text(end, HeadOutput::argmax)));
  for (uint32_t i = 0; i < 10; ++i) {
    const DraftTree root(text_token(sequence.length()));
    sequence.commit(root, {}, model().forward(sequence.tree(root, HeadOutput::argmax)));
  }
  ASSERT_EQ(sequence.length(), 106u);
  read(sequence, text_from(106, 20));  // the next turn: the end of the one before is kept
  EXPECT_EQ(sequence.reachable(1000), 126u);
  EXPECT_EQ(sequence.reachable(125), 106u);
  EXPECT_EQ(sequence.reachable(105), 64u);
  EXPECT_EQ(sequence.reachable(63), 0u);
  sequence.truncate(110);
  ASSERT_EQ(sequence.length(), 106u);
  expect_state(sequence, "cut to the end of a turn");
  sequence.truncate(95);
  ASSERT_EQ(sequence.length(), 64u);
  expect_state(sequence, "cut to before the prompt's last pass");
  const std::vector<float> logits = read(sequence, text_from(64, 40));
  for (uint32_t i = 0; i < 40; ++i) expect_row(logits, i, 64 + i, "read again");
  expect_state(sequence, "read again");
  sequence.clear();
  ASSERT_EQ(sequence.length(), 0u);
  expect_row(read(sequence, text_from(0, 1)), 0, 0, "read from the start");
}

TEST_P(RecurrentSequence, ForksGoTheirOwnWays) {
  Sequence sequence(model());
  read_up_to(sequence, 70);
  const auto fork = sequence.fork();
  read(*fork, {1, 2, 3});
  const std::vector<float> logits = read(sequence, text_from(70, 30));
  for (uint32_t i = 0; i < 30; ++i) expect_row(logits, i, 70 + i, "beside a fork");
  expect_state(sequence, "beside a fork");
  Sequence same(model());
  read_up_to(same, 70);
  read(same, {1, 2, 3});
  EXPECT_TRUE(same_bits(state_of(*fork), state_of(same)));
}

TEST_P(RecurrentSequence, APassThatIsNotCommittedChangesNothing) {
  Sequence sequence(model());
  read_up_to(sequence, 40);
  ForwardOutput output;
  run(sequence.text(Tokens{1, 2, 3, 4}), output);
  run(sequence.tree(BushyDraft(40, 30).tree, HeadOutput::none), output);
  expect_state(sequence, "after passes that are forgotten");
  expect_row(read(sequence, text_from(40, 1)), 0, 40, "after passes that are forgotten");
}

TEST_P(RecurrentSequence, CommitsOfItsLastPassOnly) {
  Sequence sequence(model()), other(model());
  read_up_to(sequence, 10);
  const BushyDraft draft(10, 9);
  ForwardOutput output;
  run(sequence.tree(draft.tree, HeadOutput::none), output);
  read(other, {1, 2});
  expect_error("allowed: of its last pass only", [&] { sequence.commit(draft.tree, draft.on_text, output); });
  EXPECT_EQ(sequence.length(), 10u);
  // A text's state was kept by its own pass.
  const Tokens next = text_from(10, 5);
  const ForwardOutput text = model().forward(sequence.text(next));
  read(other, {3});
  EXPECT_TRUE(sequence.append(next, text));
  expect_state(sequence, "committed after another pass");
}

TEST_P(RecurrentSequence, RefusesRowsThatNoStateStandsBehind) {
  RowBatch batch;
  batch.add_text(1, 5);
  expect_error("Row 0 of a pass over recurrent layers is at position 5", [&] { model().forward({batch}); });
  ForwardInput wrong{batch};
  wrong.states = {100, 5, StateUse::kNowhere};
  expect_error("A pass goes on from state 100; allowed", [&] { model().forward(wrong); });
  wrong.states = {1, 5, StatePool::kEmpty};
  expect_error("from state 1 to state 0; allowed", [&] { model().forward(wrong); });
}

}  // namespace
}  // namespace canopy::test
