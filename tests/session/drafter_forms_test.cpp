// Every form that a drafter may have: block sizes, windows, causal layers, scales and caps. A device must draft what
// the reference device drafts, and on that each form must have its effect.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>

#include "engine/model/drafter.h"
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

}  // namespace
}  // namespace canopy::test
