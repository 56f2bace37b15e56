// The numeric contract (docs/architecture.md): what a row leaves behind - logits, K/V, tap features - has the same bits
// whatever else is in its pass, wherever it stands there, and whether its ancestors sit in the committed cache or in
// the same pass. Every comparison below is of bits, with the row computed alone.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>

#include "engine/model/model.h"
#include "tests/base/temp_folder.h"
#include "tests/model/device_under_test.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

constexpr uint32_t kText = 330;     // positions of the text every test speaks of
constexpr uint32_t kContext = 384;  // of the cache; tree slots follow
constexpr uint32_t kWidest = 257;
constexpr uint32_t kTreeSlots = 288;
// Around the ends of attention's chunks of 64, and of its "old" chunks, 64 positions further.
constexpr uint32_t kContexts[] = {0, 1, 62, 63, 64, 65, 66, 127, 128, 129, 130, 191, 192, 193, 257};

uint32_t token_at(uint32_t position) {
  return (position * 29 + position / 7 + 3) % 77;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

struct Case {
  std::string name;
  RandomModel model;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

RandomModel with(const char* architecture, TensorType type) {
  RandomModel random;
  random.architecture = architecture;
  random.type = type;
  return random;
}

std::vector<Case> cases() {
  std::vector<Case> result;
  result.push_back({"llama_f32", with("llama", TensorType::f32)});
  result.push_back({"qwen3_bf16", with("qwen3", TensorType::bf16)});
  result.push_back({"llama_f16", with("llama", TensorType::f16)});
  result.push_back({"llama_q8_0", with("llama", TensorType::q8_0)});
  Case q4{"qwen3_q4_1", with("qwen3", TensorType::q4_1)};
  // SmolLM2's shape in small: three queries share a key, the head is wider than a workgroup, dimensions are odd
  // multiples.
  q4.model.heads = 9;
  q4.model.kv_heads = 3;
  q4.model.head_dim = 32;
  q4.model.hidden = 96;
  q4.model.ffn = 160;
  result.push_back(q4);
  Case mixed{"llama_q4_k_m", with("llama", TensorType::q4_k)};
  mixed.model.finer = TensorType::q6_k;
  mixed.model.hidden = 256;
  mixed.model.head_dim = 64;
  mixed.model.ffn = 256;
  result.push_back(mixed);
  return result;
}

/// What a row leaves behind.
struct RowResult {
  std::vector<float> logits, taps, kv;
};

/// One loaded model and the results of every position of the text, each computed alone; shared by the tests.
class Rig {
 public:
  explicit Rig(const RandomModel& random) : file_(ModelFile::open(folder_.write("model.gguf", random.build()))) {
    ModelOptions options;
    options.cache_type = cache_under_test();
    options.context = kContext;
    options.max_width = kWidest;
    options.tree_slots = kTreeSlots;
    options.taps = {0, 1};
    model_ = Model::load(device_under_test(), file_, options);
    for (uint32_t position = 0; position < kText; ++position) alone_.push_back(commit(token_at(position), position));
  }

  Model& model() { return *model_; }
  const RowResult& alone(uint32_t position) const { return alone_[position]; }

  /// Computes a row of text alone, in its place of the cache.
  RowResult commit(uint32_t token, uint32_t position) {
    RowBatch batch;
    batch.add_text(token, position);
    return compute(batch)[0];
  }

  /// Puts the text's own K/V back where a test wrote something else.
  void restore(uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < std::min(first + count, kText); ++i) commit(token_at(i), i);
  }

  std::vector<RowResult> compute(const RowBatch& batch) {
    std::vector<uint32_t> rows(batch.width());
    std::iota(rows.begin(), rows.end(), 0u);
    PassOutputs outputs = PassOutputs::logits_of(rows);
    outputs.taps = true;
    const PassResult pass = model_->run(batch, outputs);
    std::vector<RowResult> results(batch.width());
    const size_t vocab = pass.logits.size() / batch.width();
    const size_t taps = pass.taps.size() / batch.width();
    for (size_t i = 0; i < results.size(); ++i) {
      results[i].logits.assign(&pass.logits[i * vocab], &pass.logits[i * vocab] + vocab);
      results[i].taps.assign(&pass.taps[i * taps], &pass.taps[i * taps] + taps);
    }
    read_kv(batch, results);
    return results;
  }

 private:
  void read_kv(const RowBatch& batch, std::vector<RowResult>& results) {
    uint32_t low = ~0u;
    uint32_t high = 0;
    for (const Row& row : batch.rows) {
      low = std::min(low, row.slot);
      high = std::max(high, row.slot);
    }
    for (uint32_t layer = 0; layer < model_->config().layers; ++layer) {
      for (const bool values : {false, true}) {
        const std::vector<float> all = model_->read_kv(layer, values, low, high - low + 1);
        const size_t size = model_->config().kv_width();
        for (size_t i = 0; i < results.size(); ++i) {
          const float* from = &all[(batch.rows[i].slot - low) * size];
          results[i].kv.insert(results[i].kv.end(), from, from + size);
        }
      }
    }
  }

  TempFolder folder_;
  ModelFile file_;
  std::unique_ptr<Model> model_;
  std::vector<RowResult> alone_;
};

class NumericContract : public ::testing::TestWithParam<Case> {
 protected:
  static Rig& rig() {
    std::unique_ptr<Rig>& rig = rigs_[GetParam().name];
    if (!rig) rig = std::make_unique<Rig>(GetParam().model);
    return *rig;
  }
  static void TearDownTestSuite() { rigs_.clear(); }  // before the device goes
  static inline std::map<std::string, std::unique_ptr<Rig>> rigs_;

  static ::testing::AssertionResult same(const RowResult& row, const RowResult& alone) {
    if (!same_bits(row.logits, alone.logits)) return ::testing::AssertionFailure() << "logits differ";
    if (!same_bits(row.taps, alone.taps)) return ::testing::AssertionFailure() << "tap features differ";
    if (!same_bits(row.kv, alone.kv)) return ::testing::AssertionFailure() << "keys or values differ";
    return ::testing::AssertionSuccess();
  }

  /// Computes these positions of the text in one pass.
  static void expect_positions(const std::vector<uint32_t>& positions, const std::string& what) {
    RowBatch batch;
    for (const uint32_t position : positions) batch.add_text(token_at(position), position);
    const std::vector<RowResult> rows = rig().compute(batch);
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_TRUE(same(rows[i], rig().alone(positions[i])))
          << what << ", row " << i << " of " << rows.size() << ", position " << positions[i];
    }
  }
};

std::vector<uint32_t> widths() {
  std::vector<uint32_t> result(130);
  std::iota(result.begin(), result.end(), 1u);
  result.insert(result.end(), {255, 256, 257});
  return widths_under_test(result);
}

TEST_P(NumericContract, RowsDependOnNothingElse) {
  for (size_t i = 0; i < rig().alone(0).logits.size(); ++i)
    ASSERT_TRUE(std::isfinite(rig().alone(kText - 1).logits[i]));
  EXPECT_FALSE(same(rig().alone(3), rig().alone(4)));  // or nothing below could fail
}

TEST_P(NumericContract, ContiguousRowsAtEveryWidth) {
  size_t next = 0;
  for (const uint32_t width : widths()) {
    const uint32_t start = std::min(kContexts[next++ % std::size(kContexts)], kText - width);
    std::vector<uint32_t> positions(width);
    std::iota(positions.begin(), positions.end(), start);
    expect_positions(positions, "width " + std::to_string(width));
    if (HasFatalFailure()) return;
  }
}

TEST_P(NumericContract, MixedPositionsAtEveryWidth) {
  for (const uint32_t width : widths()) {
    // Every position at most once: 151 and 330 have no common factor.
    std::vector<uint32_t> positions(width);
    for (uint32_t i = 0; i < width; ++i) positions[i] = (i * 151 + width * 17) % kText;
    expect_positions(positions, "mixed width " + std::to_string(width));
    if (HasFatalFailure()) return;
  }
}

TEST_P(NumericContract, PrefillInChunksOfAnySize) {
  for (const uint32_t chunk : {5u, 32u, 100u, 257u}) {
    for (uint32_t first = 0; first < kText; first += chunk) {
      std::vector<uint32_t> positions(std::min(chunk, kText - first));
      std::iota(positions.begin(), positions.end(), first);
      expect_positions(positions, "chunk of " + std::to_string(chunk));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(NumericContract, ChosenRowsOfTheHead) {
  RowBatch batch;
  for (uint32_t i = 0; i < 40; ++i) batch.add_text(token_at(100 + i), 100 + i);
  const std::vector<uint32_t> chosen = {39, 0, 17};
  const PassResult logits = rig().model().run(batch, PassOutputs::logits_of(chosen));
  const PassResult best = rig().model().run(batch, PassOutputs::argmax_of(chosen));
  const size_t vocab = rig().model().config().vocab;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const std::vector<float>& alone = rig().alone(100 + chosen[i]).logits;
    EXPECT_TRUE(same_bits(std::span(logits.logits).subspan(i * vocab, vocab), alone));
    const auto largest = std::max_element(alone.begin(), alone.end());
    EXPECT_EQ(best.ids[i], largest - alone.begin());
    EXPECT_TRUE(same_bits({&best.best[i], 1}, {&*largest, 1}));
  }
}

/// A tree over the text's continuation: node 0 is the root; of the others some spell the text, some do not.
struct Tree {
  RowBatch batch;
  std::vector<int32_t> parents;
  std::vector<uint32_t> on_text;  // rows that spell the text, by depth

  void add(uint32_t token, uint32_t committed, int32_t parent) {
    // Slots in an order of their own: nothing may rely on rows and slots running in parallel.
    const uint32_t slot = kContext + (batch.width() * 7) % kTreeSlots;
    batch.add_node(token, slot, committed, parent);
    parents.push_back(parent);
  }
};

Tree bushy_tree(uint32_t committed, uint32_t width) {
  Tree tree;
  tree.add(token_at(committed), committed, -1);
  tree.on_text = {0};
  for (uint32_t i = 1; i < width; ++i) {
    const bool spell = i % 3 == 2 && tree.on_text.size() < 12;
    const auto parent = static_cast<int32_t>(spell ? tree.on_text.back() : (i * 5) % i);
    const uint32_t depth = tree.batch.rows[static_cast<size_t>(parent)].position + 1 - committed;
    tree.add((token_at(committed + depth) + (spell ? 0 : 1 + i)) % 77, committed, parent);
    if (spell) tree.on_text.push_back(i);
  }
  return tree;
}

TEST_P(NumericContract, TreeRowsEqualTheirCommittedSelves) {
  uint32_t width = 2;
  for (const uint32_t committed : kContexts) {
    const Tree tree = bushy_tree(committed, width);
    width = width * 2 > 60 ? 3 : width * 2 + 1;
    const std::vector<RowResult> rows = rig().compute(tree.batch);
    for (uint32_t depth = 0; depth < tree.on_text.size(); ++depth) {
      ASSERT_TRUE(same(rows[tree.on_text[depth]], rig().alone(committed + depth)))
          << "context " << committed << ", width " << rows.size() << ", depth " << depth;
    }
    // A path that is not the text: the last row's. Committed token by token, it gives the same bits.
    std::vector<uint32_t> path;
    for (auto row = static_cast<int32_t>(rows.size()) - 1; row >= 0; row = tree.parents[static_cast<size_t>(row)]) {
      path.insert(path.begin(), static_cast<uint32_t>(row));
    }
    for (uint32_t depth = 0; depth < path.size(); ++depth) {
      const RowResult committed_row = rig().commit(tree.batch.rows[path[depth]].token, committed + depth);
      ASSERT_TRUE(same(rows[path[depth]], committed_row)) << "context " << committed << ", other path, depth " << depth;
    }
    rig().restore(committed, static_cast<uint32_t>(path.size()));
  }
}

TEST_P(NumericContract, TheDeepestChainEqualsItsCommittedSelf) {
  for (const uint32_t committed : {0u, 30u, 63u, 64u, 100u, 129u}) {
    Tree chain;
    for (uint32_t depth = 0; depth <= kMaxTreeDepth; ++depth) {
      chain.add(token_at(committed + depth), committed, static_cast<int32_t>(depth) - 1);
    }
    const std::vector<RowResult> rows = rig().compute(chain.batch);
    for (uint32_t depth = 0; depth < rows.size(); ++depth) {
      ASSERT_TRUE(same(rows[depth], rig().alone(committed + depth))) << "context " << committed << ", depth " << depth;
    }
  }
}

TEST_P(NumericContract, AcceptedRowsMoveIntoTheText) {
  constexpr uint32_t committed = 61;
  const Tree tree = bushy_tree(committed, 30);
  rig().compute(tree.batch);
  std::vector<KvMove> moves;
  for (uint32_t depth = 0; depth < tree.on_text.size(); ++depth) {
    moves.push_back({tree.batch.rows[tree.on_text[depth]].slot, committed + depth});
  }
  // Something else must be there before, or the test could not fail.
  for (uint32_t depth = 0; depth < tree.on_text.size(); ++depth) rig().commit(5, committed + depth);
  rig().model().move_kv(moves);
  const auto next = committed + static_cast<uint32_t>(moves.size());
  EXPECT_TRUE(same(rig().commit(token_at(next), next), rig().alone(next)));
  rig().restore(committed, static_cast<uint32_t>(moves.size()));
}

INSTANTIATE_TEST_SUITE_P(Models, NumericContract, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace canopy::test
