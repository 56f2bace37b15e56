// Drafters whose head is over a part of the vocabulary: what they draft is what the whole head drafts among those
// tokens, and the text is that of plain decoding, however small the part is.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>

#include "engine/format/drafter_file.h"
#include "engine/model/drafter.h"
#include "engine/session/engine.h"
#include "tests/base/expect_error.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"
#include "tests/model/random_drafter.h"
#include "tests/model/random_model.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

using Ids = std::vector<uint32_t>;

constexpr uint32_t kRead = 21;

/// `count` of `vocab` tokens, spread over all of it.
Ids spread(uint32_t count, uint32_t vocab) {
  Ids ids;
  for (uint64_t i = 0; i < count; ++i) ids.push_back(static_cast<uint32_t>((2 * i + 1) * vocab / (2 * count)));
  return ids;
}

/// A target and a drafter over some of its tokens, after reading a text.
class RankedPair {
 public:
  RankedPair(Device& device, const RandomModel& random, const Ids& ids, QuantizeOnLoad quantize = QuantizeOnLoad::none)
      : file_(ModelFile::open(folder_.write("target.gguf", random.build()))) {
    RandomDrafter weights;
    if (!ids.empty()) weights.extra["draft_token_ids"] = ids;
    weights.write(folder_, file_.config());
    open(device, DrafterFile::open(folder_.path()), quantize);
  }

  /// The drafter of a pair, with these rows of the target's head as a head of its own.
  static std::unique_ptr<RankedPair> with_own_head(Device& device, const RandomModel& random, const Ids& ids) {
    auto pair = std::unique_ptr<RankedPair>(new RankedPair(random));
    const ModelConfig& target = pair->file_.config();
    const TensorView& embedding = pair->file_.require("token_embd", target.vocab, target.hidden);
    const uint64_t row = embedding.bytes.size() / target.vocab;
    std::string head, offsets;
    for (size_t i = 0; i < ids.size(); ++i) {
      head.append(reinterpret_cast<const char*>(embedding.bytes.data()) + row * ids[i], row);
      offsets += le<int64_t>(int64_t{ids[i]} - static_cast<int64_t>(i));
    }
    RandomDrafter weights;
    weights.more_weights = [&](SafetensorsBuilder& b) {
      b.tensor("lm_head.weight", "F32", {ids.size(), target.hidden}, head).tensor("d2t", "I64", {ids.size()}, offsets);
    };
    weights.write(pair->folder_, target);
    pair->open(device, DrafterFile::open(pair->folder_.path()), QuantizeOnLoad::none);
    return pair;
  }

  Draft draft() {
    Ids text(kRead), rows(kRead);
    for (uint32_t i = 0; i < kRead; ++i) text[i] = (i * 29 + 3) % 77;
    std::iota(rows.begin(), rows.end(), 0u);
    ForwardInput input = text_input(text, 0);
    input.aux_hidden_states = true;
    EXPECT_TRUE(model->forward(input).completed());
    EXPECT_TRUE(drafter->append_features(*state, rows));
    return drafter->draft(*state, 5, drafter->max_depth()).value();
  }

  std::unique_ptr<Model> model;
  std::unique_ptr<Drafter> drafter;
  std::unique_ptr<DraftState> state;

 private:
  explicit RankedPair(const RandomModel& random)
      : file_(ModelFile::open(folder_.write("target.gguf", random.build()))) {}

  void open(Device& device, const DrafterFile& file, QuantizeOnLoad quantize) {
    ModelOptions options;
    options.cache_type = cache_under_test();
    options.context = 128;
    options.aux_layers = file.config().aux_layers;
    options.quantize = quantize;
    model = Model::load(device, file_, options);
    drafter = Drafter::load(file, *model, {.cache_type = cache_under_test(), .callbacks = {}, .target_file = &file_});
    state = std::make_unique<DraftState>(*drafter);
  }

  TempFolder folder_;
  ModelFile file_;
};

/// What a draft over some tokens must be, from the logits that the whole head gives them.
void expect_drafted_of(const Draft& whole, const Draft& part, const Ids& ids) {
  ASSERT_EQ(part.depths, whole.depths);
  ASSERT_EQ(part.candidates, std::min<size_t>(kMaxTopK, ids.size()));
  for (uint32_t depth = 1; depth <= whole.depths; ++depth) {
    SCOPED_TRACE(depth);
    const std::vector<float> all = whole.logits_at(depth);
    std::vector<float> chosen;
    for (const uint32_t id : ids) chosen.push_back(all[id]);
    EXPECT_EQ(part.logits_at(depth), chosen);
    Ids order = ids;
    std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return all[a] > all[b]; });
    order.resize(part.candidates);
    const size_t first = size_t{depth - 1} * part.candidates;
    EXPECT_EQ(Ids(part.tokens.begin() + first, part.tokens.begin() + first + part.candidates), order);
    double sum = 0;
    for (const float logit : chosen) sum += std::exp(double{logit});
    EXPECT_NEAR(part.log_sum_exp[depth - 1], std::log(sum), 2e-5);
  }
}

struct Head {
  const char* name;
  TensorType type;
  bool tied = true;
  QuantizeOnLoad quantize = QuantizeOnLoad::none;
};

class RankedDrafter : public ::testing::TestWithParam<Head> {
 protected:
  static RandomModel target() {
    RandomModel random;
    random.type = GetParam().type;
    random.tied = GetParam().tied;
    random.hidden = 256;  // whole blocks of every type
    random.heads = 4;
    random.ffn = 256;
    random.head_dim = 64;
    return random;
  }
};

// On the oracle, whose products are computed element by element.
TEST_P(RankedDrafter, DraftsWhatTheWholeHeadDraftsAmongItsTokens) {
  const std::unique_ptr<Device> oracle = make_reference_device();
  RankedPair whole(*oracle, target(), {}, GetParam().quantize);
  const Draft expected = whole.draft();
  const uint32_t vocab = target().vocab;
  for (const uint32_t count : {1u, 2u, 13u, 63u, 64u, 65u, vocab}) {
    SCOPED_TRACE(count);
    const Ids ids = spread(count, vocab);
    RankedPair part(*oracle, target(), ids, GetParam().quantize);
    EXPECT_EQ(part.drafter->drafted_tokens(), count);
    expect_drafted_of(expected, part.draft(), ids);
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, RankedDrafter,
                         ::testing::Values(Head{"f32", TensorType::f32}, Head{"f16_untied", TensorType::f16, false},
                                           Head{"bf16", TensorType::bf16}, Head{"q8_0", TensorType::q8_0},
                                           Head{"q4_1_untied", TensorType::q4_1, false}, Head{"q4_k", TensorType::q4_k},
                                           Head{"q6_k_untied", TensorType::q6_k, false},
                                           Head{"kept_as_f32", TensorType::tq2_0},  // devices have no kernels for it
                                           Head{"quantized_while_loading", TensorType::bf16, true,
                                                QuantizeOnLoad::q8_0}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(RankedDrafterHead, OfItsOwnDraftsWhatTheSameRowsOfTheTargetDraft) {
  const std::unique_ptr<Device> oracle = make_reference_device();
  const Ids ids = spread(39, 77);
  const RandomModel random;
  RankedPair gathered(*oracle, random, ids);
  const std::unique_ptr<RankedPair> own = RankedPair::with_own_head(*oracle, random, ids);
  const Draft a = gathered.draft(), b = own->draft();
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.logits, b.logits);
  EXPECT_EQ(a.log_sum_exp, b.log_sum_exp);
}

TEST(RankedDrafterHead, CountsAmongTheBytesOfTheDrafter) {
  const std::unique_ptr<Device> oracle = make_reference_device();
  RankedPair small(*oracle, RandomModel(), spread(8, 77)), large(*oracle, RandomModel(), spread(72, 77));
  EXPECT_GE(large.drafter->device_bytes(), small.drafter->device_bytes() + 64 * 64 * sizeof(float));
}

TEST(RankedDrafterHead, NeedsTheTargetsFile) {
  const std::unique_ptr<Device> oracle = make_reference_device();
  const TempFolder folder;
  const ModelFile target = ModelFile::open(folder.write("target.gguf", RandomModel().build()));
  RandomDrafter weights;
  weights.extra["draft_token_ids"] = {3, 4, 9};
  weights.write(folder, target.config());
  ModelOptions options;
  options.aux_layers = weights.aux_layers;
  const auto model = Model::load(*oracle, target, options);
  expect_error("3 rows of its target's; they are read from the target's file, which was not given",
               [&] { Drafter::load(DrafterFile::open(folder.path()), *model, {}); });
}

std::vector<TreeNode> drafted_nodes(const RoundRecord& round) {
  std::vector<TreeNode> nodes;
  for (size_t i = 1; i < round.nodes.size(); ++i) nodes.push_back(round.nodes[i].node);
  return nodes;
}

/// The golden pair with a drafter over some tokens.
class RankedModes : public ::testing::Test {
 protected:
  void open(const Ids& ids) {
    const DrafterFile drafter = DrafterFile::open(golden_folder() / "tiny-qwen3-dflash-b8");
    OpenRequest request;
    request.path = golden_folder() / "tiny-qwen3";
    request.drafter =
        folder_.write("drafter.gguf", drafter_gguf(drafter, {.type = TensorType::bf16, .draft_token_ids = ids}));
    request.cache_type = cache_under_test();
    request.context = 512;
    request.self_test = false;
    loaded_ = Engine::open(device_under_test(), request, {});
  }

  Reply reply(DecodeMode mode, uint32_t budget, const ReplySettings& settings) {
    loaded_->resident->clear();
    ReplySettings own = settings;
    own.mode = mode;
    own.budget = budget;
    own.sources = kFromDflash;
    return loaded_->reply(loaded_->text.encode_raw("def read_file(path, mode='r'):\n"), own);
  }

  /// All tokens of the tree are the drafter's, each node's at most once below its parent, with probabilities over them.
  static void expect_drafted(const Reply& reply, const Ids& ids) {
    const std::set<uint32_t> allowed(ids.begin(), ids.end());
    for (const RoundRecord& round : reply.rounds) {
      std::set<std::pair<uint32_t, uint32_t>> seen;
      for (const TreeNode& node : drafted_nodes(round)) {
        EXPECT_TRUE(allowed.contains(node.token)) << node.token;
        EXPECT_LE(node.log_q, 0);
        EXPECT_LT(node.rank, ids.size());
        EXPECT_TRUE(seen.emplace(node.parent, node.token).second);
      }
    }
  }

  TempFolder folder_;
  std::unique_ptr<Engine> loaded_;
};

constexpr uint32_t kVocab = 1010;

TEST_F(RankedModes, TheTextIsThatOfPlainDecoding) {
  for (const uint32_t count : {1u, 3u, 64u, 257u}) {
    SCOPED_TRACE(count);
    const Ids ids = spread(count, kVocab);
    open(ids);
    for (const float temperature : {0.0f, 0.9f}) {
      ReplySettings settings;
      settings.max_tokens = 24;
      settings.sampling.temperature = temperature;
      settings.sampling.seed = count;
      const Reply plain = reply(DecodeMode::ar, 1, settings);
      for (const auto& [mode, budget] : {std::pair{DecodeMode::chain, 1u}, std::pair{DecodeMode::tree, 16u},
                                         std::pair{DecodeMode::tree, 100u}, std::pair{DecodeMode::adaptive, 1u}}) {
        const Reply drafted = reply(mode, budget, settings);
        EXPECT_EQ(drafted.ids, plain.ids) << budget;
        expect_drafted(drafted, ids);
      }
    }
  }
}

// More nodes than the candidates that the device brings: the others are fetched from its logits.
TEST_F(RankedModes, ATreeMayTakeMoreCandidatesThanTheDeviceBrings) {
  const Ids ids = spread(301, kVocab);
  open(ids);
  ReplySettings settings;
  settings.max_tokens = 8;
  const Reply plain = reply(DecodeMode::ar, 1, settings);
  const Reply drafted = reply(DecodeMode::tree, 500, settings);
  EXPECT_EQ(drafted.ids, plain.ids);
  expect_drafted(drafted, ids);
  uint32_t highest = 0;
  for (const RoundRecord& round : drafted.rounds) {
    for (const TreeNode& node : drafted_nodes(round)) highest = std::max(highest, node.rank);
  }
  EXPECT_GE(highest, kMaxTopK) << "the tree never went beyond what the device brought";
}

}  // namespace
}  // namespace canopy::test
