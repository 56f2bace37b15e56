// Every form that a drafter may have: block sizes, windows, causal layers, scales and caps. A device must draft what
// the reference device drafts, and on that each form must have its effect.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>

#include "engine/model/drafter.h"
#include "tests/compute/forwarding_device.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"
#include "tests/model/random_drafter.h"
#include "tests/model/random_model.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

constexpr uint32_t kText = 37;

struct Form {
  const char* name;
  RandomDrafter drafter;
};

void PrintTo(const Form& form, std::ostream* out) {
  *out << form.name;
}

Form form(const char* name, const std::function<void(RandomDrafter&)>& change) {
  Form result{name, {}};
  change(result.drafter);
  return result;
}

/// A matrix of values between -1 and 1, always the same.
void add_matrix(SafetensorsBuilder& b, const std::string& name, uint64_t rows, uint64_t cols,
                const std::vector<uint64_t>& shape = {}) {
  std::mt19937 random(static_cast<uint32_t>(name.size() + rows + cols));
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(rows * cols);
  for (float& value : values) value = uniform(random) / std::sqrt(static_cast<float>(cols));
  b.tensor(name, "F32", shape.empty() ? std::vector<uint64_t>{rows, cols} : shape,
           {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

/// A Markov head of an odd rank over a vocabulary of 77, and a confidence head.
void make_dspark(RandomDrafter& d, bool reads_markov) {
  constexpr uint64_t rank = 5, vocab = 77, hidden = 64;
  d.extra["markov_rank"] = rank;
  d.extra["enable_confidence_head"] = true;
  d.extra["confidence_head_with_markov"] = reads_markov;
  d.more_weights = [reads_markov](SafetensorsBuilder& b) {
    add_matrix(b, "markov_head.markov_w1.weight", vocab, rank);
    add_matrix(b, "markov_head.markov_w2.weight", vocab, rank);
    add_matrix(b, "confidence_head.proj.weight", 1, hidden + (reads_markov ? rank : 0));
  };
}

/// Convolutions of three taps, and a selector of an odd rank.
void make_dflash2(RandomDrafter& d, bool convolves) {
  constexpr uint64_t rank = 5, vocab = 77, hidden = 64, taps = 3, group = 4;
  d.extra["conv_kernel_size"] = convolves ? taps : 0;
  d.extra["conv_group_size"] = convolves ? group : 0;
  d.extra["selector_rank"] = rank;
  d.extra["selector_top_k"] = 6;
  d.more_weights = [layers = convolves ? d.layers : 0](SafetensorsBuilder& b) {
    for (uint32_t n = 0; n < layers; ++n) {
      for (const char* const part : {".attention_conv.", ".mlp_conv."}) {
        const std::string name = "layers." + std::to_string(n) + part;
        add_matrix(b, name + "base_kernel", 2 * taps, hidden, {2, taps, hidden});
        add_matrix(b, name + "kernel_projection.weight", 2 * taps * hidden / group, hidden);
      }
    }
    add_matrix(b, "candidate_selector.hidden_projection.weight", rank, hidden);
    add_matrix(b, "candidate_selector.predecessor_codebook", vocab, rank);
    add_matrix(b, "candidate_selector.successor_codebook", vocab, rank);
  };
}

std::vector<Form> forms() {
  return {
      form("usual", [](RandomDrafter&) {}),
      form("block_of_2", [](RandomDrafter& d) { d.block = 2; }),
      form("block_of_16", [](RandomDrafter& d) { d.block = 16; }),
      form("one_tap_five_layers", [](RandomDrafter& d) { d.aux_layers = {1}, d.layers = 5; }),
      form("grouped_nine_heads", [](RandomDrafter& d) { d.heads = 9, d.kv_heads = 3, d.head_dim = 32; }),
      form("sliding",
           [](RandomDrafter& d) {
             d.layer_types = {"sliding_attention", "full_attention"}, d.window = 6;
           }),
      form("sliding_dense",
           [](RandomDrafter& d) {
             d.layer_types = {"sliding_attention", "sliding_attention"};
             d.window = 3;
             d.extra["is_causal"] = false;
           }),
      form("causal_full", [](RandomDrafter& d) { d.extra["is_causal"] = true; }),
      form("causal_shifted",
           [](RandomDrafter& d) {
             d.extra["causal_head"] = true;
             d.extra["draft_shift"] = true;
           }),
      form("dflash2", [](RandomDrafter& d) { make_dflash2(d, true); }),
      form("dflash2_scaled",
           [](RandomDrafter& d) {
             make_dflash2(d, true);
             d.extra["output_multiplier"] = 0.25;
             d.extra["final_logit_softcapping"] = 2.0;
           }),
      form("dspark", [](RandomDrafter& d) { make_dspark(d, true); }),
      form("dspark_behind_masks",
           [](RandomDrafter& d) {
             make_dspark(d, false);
             d.extra["sample_from_anchor"] = false;
           }),
      form("dspark_over_5_tokens",
           [](RandomDrafter& d) {
             make_dspark(d, true);
             d.extra["draft_token_ids"] = {0, 5, 30, 31, 76};
           }),
      form("scaled",
           [](RandomDrafter& d) {
             d.extra["input_embedding_scale"] = 8.0;
             d.extra["output_multiplier"] = 0.25;
             d.extra["final_logit_softcapping"] = 2.0;
           }),
      form("over_5_tokens",
           [](RandomDrafter& d) {
             d.extra["draft_token_ids"] = {0, 5, 30, 31, 76};
           }),
      form("over_67_tokens",
           [](RandomDrafter& d) {
             std::vector<uint32_t> ids(67);
             std::iota(ids.begin(), ids.end(), 9u);
             d.extra["draft_token_ids"] = ids;
             d.extra["final_logit_softcapping"] = 2.0;
           }),
  };
}

/// A target and a drafter on one device, after reading a text.
class Pair {
 public:
  Pair(Device& device, const RandomDrafter& drafter, CacheType cache) {
    RandomModel random;
    const ModelFile file = ModelFile::open(folder_.write("target.gguf", random.build()));
    drafter.write(folder_, file.config());
    const DrafterFile draft = DrafterFile::open(folder_.path());
    ModelOptions options;
    options.cache_type = cache;
    options.context = 128;
    options.aux_layers = drafter.aux_layers;
    model = Model::load(device, file, options);
    this->drafter = Drafter::load(draft, *model, {.cache_type = cache, .callbacks = {}, .target_file = &file});
    state = std::make_unique<DraftState>(*this->drafter);
  }

  /// kText tokens; the first `changed` of them differ from those of changed = 0.
  static std::vector<uint32_t> some_text(uint32_t changed = 0) {
    std::vector<uint32_t> text(kText);
    for (uint32_t i = 0; i < kText; ++i) text[i] = (i * 29 + (i < changed ? 11 : 3)) % 77;
    return text;
  }

  /// Runs text behind `committed` positions and keeps its features on the device.
  void read(std::span<const uint32_t> text, uint32_t committed) {
    ForwardInput input = text_input(text, committed);
    input.aux_hidden_states = true;
    EXPECT_TRUE(model->forward(input).completed());
  }

  /// The draft behind that text.
  Draft draft(uint32_t changed = 0) {
    const std::vector<uint32_t> text = some_text(changed);
    std::vector<uint32_t> rows(kText);
    std::iota(rows.begin(), rows.end(), 0u);
    read(text, 0);
    state->truncate(0);
    EXPECT_TRUE(drafter->append_features(*state, rows));
    return drafter->draft(*state, 5, drafter->max_depth()).value();
  }

  /// The same draft, but the text is read as in AR rounds: token by token, each pass following a copy that nothing
  /// waited for.
  Draft draft_behind_ar_rounds() {
    const std::vector<uint32_t> text = some_text();
    state->truncate(0);
    for (uint32_t i = 0; i < kText; ++i) {
      read({&text[i], 1}, i);
      const uint32_t root = 0;
      drafter->append_features_soon(*state, {&root, 1});
    }
    return drafter->draft(*state, 5, drafter->max_depth()).value();
  }

  std::unique_ptr<Model> model;
  std::unique_ptr<Drafter> drafter;
  std::unique_ptr<DraftState> state;

 private:
  TempFolder folder_;
};

class DrafterForms : public ::testing::TestWithParam<Form> {};

TEST_P(DrafterForms, ADeviceDraftsWhatTheOracleDrafts) {
  const std::unique_ptr<Device> oracle = make_reference_device();
  Pair expected(*oracle, GetParam().drafter, cache_under_test()),
      actual(device_under_test(), GetParam().drafter, cache_under_test());
  const Draft a = expected.draft(), b = actual.draft();
  ASSERT_EQ(a.depths, b.depths);
  ASSERT_EQ(a.candidates, b.candidates);
  EXPECT_LE(max_difference(b.log_sum_exp, a.log_sum_exp), tolerance(2e-4, 2e-2));
  EXPECT_LE(max_difference(b.logits, a.logits), tolerance(2e-4, 2e-2));
  for (uint32_t depth = 1; depth <= a.depths; ++depth) {
    EXPECT_LE(max_difference(b.logits_at(depth), a.logits_at(depth)), tolerance(2e-4, 2e-2));
  }
  const auto sure = expected.drafter->confidence(), found = actual.drafter->confidence();
  ASSERT_EQ(sure.size(), found.size());
  for (size_t i = 0; i < sure.size(); ++i) EXPECT_NEAR(found[i], sure[i], tolerance(1e-4, 1e-2)) << i;
}

TEST_P(DrafterForms, FeaturesKeptByPlainRoundsGiveTheSameDraft) {
  Pair pair(device_under_test(), GetParam().drafter, cache_under_test());
  const Draft a = pair.draft(), b = pair.draft_behind_ar_rounds();
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.logits, b.logits);
  EXPECT_EQ(a.log_sum_exp, b.log_sum_exp);
}

INSTANTIATE_TEST_SUITE_P(All, DrafterForms, ::testing::ValuesIn(forms()),
                         [](const auto& test) { return std::string(test.param.name); });

const RandomDrafter& form_of(const std::string& name) {
  static const std::vector<Form> all = forms();
  for (const Form& f : all) {
    if (f.name == name) return f.drafter;
  }
  throw std::runtime_error("no form " + name);
}

TEST(DrafterFormsOnTheOracle, AWindowHidesTheKeysBehindIt) {
  const std::unique_ptr<Device> oracle = make_reference_device();
  // truncate() replaces the keys of old positions. With windows of 3 only the last two of them can matter.
  const auto change = [&](const char* name) {
    Pair pair(*oracle, form_of(name), CacheType::f32);
    const Draft all = pair.draft();
    Pair other(*oracle, form_of(name), CacheType::f32);
    other.draft(kText);  // now every key differs
    const auto keep_last = [&](Pair& into) {
      const std::vector<uint32_t> text = Pair::some_text(), rows = {kText - 2, kText - 1};
      into.read(text, 0);
      into.state->truncate(kText - 2);
      EXPECT_TRUE(into.drafter->append_features(*into.state, rows));
      return into.drafter->draft(*into.state, 5, into.drafter->max_depth()).value();
    };
    return max_difference(all.logits, keep_last(other).logits);
  };
  EXPECT_EQ(change("sliding_dense"), 0);
  EXPECT_GT(change("usual"), 1e-4);
}

TEST(DrafterFormsOnTheOracle, ScalesAndCapsAreThoseOfTheirFormula) {
  const std::unique_ptr<Device> oracle = make_reference_device();
  RandomDrafter scaled = form_of("scaled");
  scaled.extra.erase("output_multiplier");
  scaled.extra.erase("final_logit_softcapping");
  Pair plain(*oracle, scaled, CacheType::f32), capped(*oracle, form_of("scaled"), CacheType::f32);
  const Draft a = plain.draft(), b = capped.draft();
  ASSERT_EQ(a.tokens, b.tokens);  // both increase
  for (size_t i = 0; i < a.logits.size(); ++i) {
    EXPECT_NEAR(b.logits[i], 2 * std::tanh(0.25 * static_cast<double>(a.logits[i]) / 2), 1e-5);
  }
  Pair unscaled(*oracle, form_of("usual"), CacheType::f32);
  EXPECT_GT(max_difference(unscaled.draft().logits, a.logits), 1e-3);
}

TEST(DrafterFormsOnTheOracle, CausalRowsDoNotSeeTheRowsBehindThem) {
  const std::unique_ptr<Device> oracle = make_reference_device();
  // In a causal block the first depths do not depend on the size of the block; in a dense one they do.
  for (const bool causal : {false, true}) {
    RandomDrafter small = form_of(causal ? "causal_full" : "usual"), large = small;
    small.block = 4;
    large.block = 12;
    Pair a(*oracle, small, CacheType::f32), b(*oracle, large, CacheType::f32);
    const Draft x = a.draft(), y = b.draft();
    const auto first = std::span(y.logits).first(x.logits.size());
    EXPECT_EQ(max_difference(x.logits, first) == 0, causal) << causal;
  }
}

/// Each list of a DSpark draft is the block's logits of its place and the Markov head's of the token before it, and the
/// tree's lists are those of single chains.
TEST(DrafterFormsOnTheOracle, AMarkovHeadAddsToTheBlockByTheTokenBefore) {
  const std::unique_ptr<Device> oracle = make_reference_device();
  Pair pair(*oracle, form_of("dspark"), CacheType::f32);
  const Draft chain = pair.draft();
  ASSERT_EQ(chain.lists(), 8u);
  ASSERT_EQ(pair.drafter->confidence().size(), 8u);
  TempFolder folder;
  const ModelFile target = ModelFile::open(folder.write("target.gguf", RandomModel().build()));
  form_of("dspark").write(folder, target.config());
  const DrafterFile file = DrafterFile::open(folder.path());
  const auto floats = [&](const char* name, uint64_t rows, uint64_t cols) {
    std::vector<float> values(rows * cols);
    std::memcpy(values.data(), file.require(name, rows, cols).bytes.data(), values.size() * sizeof(float));
    return values;
  };
  const std::vector<float> w1 = floats("markov_w1", 77, 5), w2 = floats("markov_w2", 77, 5);
  uint32_t before = 5;  // the root
  for (uint32_t i = 0; i < chain.lists(); ++i) {
    std::vector<float> logits = chain.logits_at(i + 1);
    for (uint32_t token = 0; token < 77; ++token) {
      double sum = logits[token];
      for (uint32_t r = 0; r < 5; ++r) sum += double{w1[before * 5 + r]} * w2[token * 5 + r];
      logits[token] = static_cast<float>(sum);
    }
    const DepthCandidates list = chain.list(i);
    for (size_t rank = 0; rank < list.tokens.size(); ++rank) {
      EXPECT_NEAR(list.logits[rank], logits[list.tokens[rank]], 1e-5) << i << ", " << rank;
    }
    EXPECT_NEAR(list.logits[0], *std::ranges::max_element(logits), 1e-5) << i;
    before = list.tokens[0];
  }

  DraftWish wish{8};
  wish.nodes = 24;
  const Draft tree = pair.drafter->draft(*pair.state, 5, wish).value();
  EXPECT_GT(tree.lists(), 8u);
  EXPECT_EQ(tree.list(0).logits[0], chain.list(0).logits[0]);
  wish.by_confidence = true;
  const Draft trusted = pair.drafter->draft(*pair.state, 5, wish).value();
  double sum = 0;
  for (size_t rank = 0; rank < trusted.candidates; ++rank) {
    const DepthCandidates list = trusted.list(0);
    sum += std::exp(double{list.logits[rank]} - list.log_sum_exp);
    EXPECT_GE(list.logits[rank > 0 ? rank - 1 : 0], list.logits[rank]);
  }
  const double first = std::exp(double{trusted.list(0).logits[0]} - trusted.list(0).log_sum_exp);
  EXPECT_NEAR(first, std::clamp(pair.drafter->confidence()[0], 1e-4, 1 - 1e-4), 1e-5);
  EXPECT_LE(sum, 1 + 1e-5);
}

/// A convolution makes a row depend on those before it, but not on those behind.
TEST(DrafterFormsOnTheOracle, ConvolutionsLookBack) {
  const std::unique_ptr<Device> oracle = make_reference_device();
  RandomDrafter small = form_of("dflash2");
  small.extra["is_causal"] = true;
  RandomDrafter large = small;
  small.block = 4;
  large.block = 12;
  Pair a(*oracle, small, CacheType::f32), b(*oracle, large, CacheType::f32);
  const Draft x = a.draft(), y = b.draft();
  ASSERT_EQ(x.lists(), 3u);
  for (uint32_t depth = 1; depth <= 3; ++depth) EXPECT_EQ(x.logits_at(depth), y.logits_at(depth)) << depth;
  RandomDrafter plain = small;
  make_dflash2(plain, false);
  Pair without(*oracle, plain, CacheType::f32);
  EXPECT_GT(max_difference(without.draft().logits_at(1), x.logits_at(1)), 1e-3);
}

/// Counts its passes.
class PassCounter final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  bool run(Commands& commands, const std::stop_token& stop) override {
    ++passes;
    return ForwardingDevice::run(commands, stop);
  }
  uint32_t passes = 0;
};

/// Whatever tree is wanted, a causal block is one pass that says something of places, not of paths: the masks in it
/// stay masks.
TEST(DrafterFormsOnTheOracle, ACausalBlockIsDraftedInOnePassWhateverTheTree) {
  const std::unique_ptr<Device> oracle = make_reference_device();
  for (const char* const name : {"causal_full", "causal_shifted"}) {
    PassCounter counting(*oracle);
    Pair pair(counting, form_of(name), CacheType::f32);
    const Draft chain = pair.draft();
    DraftWish wish{pair.drafter->max_depth()};
    wish.nodes = 24;
    counting.passes = 0;
    const Draft tree = pair.drafter->draft(*pair.state, 5, wish).value();
    EXPECT_EQ(counting.passes, 1u) << name;
    EXPECT_FALSE(tree.is_by_token()) << name;
    EXPECT_EQ(tree.lists(), pair.drafter->max_depth()) << name;
    EXPECT_EQ(tree.tokens, chain.tokens) << name;
    EXPECT_EQ(tree.logits, chain.logits) << name;
  }
}

TEST(DrafterFormsOnTheOracle, ShiftedRowsPredictWhatFollowsThem) {
  const std::unique_ptr<Device> oracle = make_reference_device();
  // The same rows, of which the shifted drafter takes the root's as the first depth and the other one not at all.
  RandomDrafter causal = form_of("causal_shifted");
  causal.extra.erase("draft_shift");
  Pair a(*oracle, form_of("causal_shifted"), CacheType::f32), b(*oracle, causal, CacheType::f32);
  const Draft shifted = a.draft(), usual = b.draft();
  ASSERT_EQ(shifted.depths, usual.depths);
  for (uint32_t depth = 1; depth < usual.depths; ++depth) {
    EXPECT_EQ(shifted.logits_at(depth + 1), usual.logits_at(depth)) << depth;
  }
  EXPECT_NE(shifted.logits_at(1), usual.logits_at(1));
}

}  // namespace
}  // namespace canopy::test
