// Sampled text has the target's own distribution in every mode: paths of three tokens, drawn with 20,000 seeds through
// the real drafts, passes, sampler and accept step, are compared with probabilities computed from the target's logits
// alone. Two published rules that are not exact serve as controls: the same test must reject them.
//
// A round depends on the seed only through the sampler, so the draft and pass of each text are computed once for all
// seeds. For a few hundred seeds whole sessions write the paths too, which must be the same.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "engine/session/engine.h"
#include "engine/session/reply_writer.h"
#include "engine/speculation/round_planner.h"
#include "tests/model/golden_data.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

using Text = std::vector<uint32_t>;

constexpr size_t kDrawn = 3;  // tokens of a path
constexpr uint32_t kSeeds = 20'000;

SamplingSettings settings(uint64_t seed) {
  SamplingSettings s;
  s.temperature = 1.1f;
  s.top_k = 5;
  s.top_p = 0.97f;
  s.seed = seed;
  return s;
}

/// Probabilities of the next token by definition: temperature, then the 5 largest, then the smallest set of these that
/// reaches 0.97.
std::map<uint32_t, double> next_tokens(std::span<const float> logits) {
  std::vector<uint32_t> order(logits.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
  std::vector<double> weights;
  double sum = 0;
  for (size_t i = 0; i < 5; ++i) {
    const auto above = static_cast<double>(logits[order[i]]) - static_cast<double>(logits[order[0]]);
    weights.push_back(std::exp(above / static_cast<double>(1.1f)));
    sum += weights.back();
  }
  size_t kept = 0;
  double covered = 0;
  while (kept < weights.size() && covered < static_cast<double>(0.97f) * sum) covered += weights[kept++];
  std::map<uint32_t, double> result;
  for (size_t i = 0; i < kept; ++i) result[order[i]] = weights[i] / covered;
  return result;
}

/// How far counts are from the expected ones, as a standard normal deviate (Wilson and Hilferty's cube root of
/// chi-square). Paths that are expected fewer than 8 times are counted together.
double deviate(const std::map<Text, uint32_t>& counts, const std::map<Text, double>& expected, uint32_t draws) {
  double chi_square = 0, rare_expected = 0, rare_seen = 0;
  int cells = 0;
  const auto add = [&](double seen, double mean) {
    chi_square += (seen - mean) * (seen - mean) / mean;
    ++cells;
  };
  uint32_t known = 0;
  for (const auto& [path, probability] : expected) {
    const auto found = counts.find(path);
    const uint32_t seen = found == counts.end() ? 0 : found->second;
    known += seen;
    const double mean = probability * draws;
    if (mean >= 8) {
      add(seen, mean);
    } else {
      rare_expected += mean;
      rare_seen += seen;
    }
  }
  if (rare_expected > 0) add(rare_seen, rare_expected);
  if (known != draws) return std::numeric_limits<double>::infinity();  // some drawn path has no expected probability
  const double freedom = cells - 1;
  const double spread = 2 / (9 * freedom);
  return (std::cbrt(chi_square / freedom) - (1 - spread)) / std::sqrt(spread);
}

constexpr double kFits = 3.5;      // exceeded by chance once in 4,000; the seeds are fixed
constexpr double kDoesNotFit = 8;  // a wrong rule must give at least this

class SamplingStatistics : public ::testing::Test {
 protected:
  /// A text with its draft, and the target's logits at every node of the widest tree.
  struct Known {
    std::vector<float> next;  // logits after the text
    DraftTree tree, chain;
    std::vector<std::vector<float>> tree_logits, chain_logits;  // by node
  };

  void SetUp() override {
    OpenRequest request;
    request.path = golden_folder() / "tiny-qwen3";
    request.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
    request.cache_type = CacheType::f32;
    request.context = 256;
    request.self_test = false;
    loaded_ = Engine::open(*device_, request, {});
    prompt_ = loaded_->text.encode_raw("for i in range(10):\n    print(");
  }

  std::vector<std::vector<float>> logits_of(const DraftTree& tree, uint32_t committed) {
    Model& model = *loaded_->model;
    ForwardOutput output = model.forward(tree_input(tree, committed, model.limits(), HeadOutput::logits));
    EXPECT_TRUE(output.completed());
    std::vector<std::vector<float>> rows;
    for (uint32_t node = 0; node < tree.width(); ++node) {
      const auto row = output.logits(node);
      rows.emplace_back(row.begin(), row.end());
    }
    return rows;
  }

  /// The Known of a text, computed when first asked for. `text` begins with the prompt; its last token is the root.
  const Known& known(const Text& text) {
    const auto [entry, is_new] = known_.try_emplace(text);
    Known& k = entry->second;
    if (!is_new) return k;
    const auto committed = static_cast<uint32_t>(text.size()) - 1;
    const std::span<const uint32_t> before(text.data(), committed);
    loaded_->resident->clear();
    ForwardInput input = loaded_->resident->current().text(before);
    input.aux_hidden_states = true;
    EXPECT_TRUE(loaded_->resident->current().append(before, loaded_->model->forward(input)));
    SequenceDrafts drafts(loaded_->resident->current());
    TreeDrafter trees(drafts);
    EXPECT_TRUE(trees.draft(text.back(), {loaded_->drafter->max_depth()}, {}));
    trees.begin();
    trees.build(24);
    k.tree = trees.tree();
    trees.begin();
    trees.build_chain(7);
    k.chain = trees.tree();
    k.tree_logits = logits_of(k.tree, committed);
    k.chain_logits = logits_of(k.chain, committed);
    k.next = k.tree_logits[0];
    return k;
  }

  std::map<Text, double> expected() {
    std::map<Text, double> all;
    for (const auto& [a, pa] : next_tokens(known(prompt_).next)) {
      for (const auto& [b, pb] : next_tokens(known(followed_by({a})).next)) {
        for (const auto& [c, pc] : next_tokens(known(followed_by({a, b})).next)) all[{a, b, c}] = pa * pb * pc;
      }
    }
    return all;
  }

  Text followed_by(const Text& drawn) const {
    Text text = prompt_;
    text.insert(text.end(), drawn.begin(), drawn.end());
    return text;
  }

  /// Draws a path for each seed. round(text, drawn, seed) adds at least one token to `drawn`.
  template <class Round>
  std::map<Text, uint32_t> draw(const Round& round) {
    std::map<Text, uint32_t> counts;
    for (uint32_t seed = 0; seed < kSeeds; ++seed) {
      Text drawn;
      Sampler sampler(settings(seed), loaded_->model->config().vocab);
      drawn.push_back(sampler.sample(known(prompt_).next, prompt_, 0, 0));  // from the prompt's own row
      while (drawn.size() < kDrawn) round(known(followed_by(drawn)), sampler, drawn, seed);
      drawn.resize(kDrawn);
      ++counts[drawn];
    }
    return counts;
  }

  /// The accept step of every mode, over the first `width` nodes.
  void walk_tree(DraftTree tree, const std::vector<std::vector<float>>& logits, uint32_t width, Sampler& sampler,
                 Text& drawn) const {
    tree.cut(width);
    AcceptedPath path;
    Text history = followed_by(drawn);
    accept(
        tree,
        [&](uint32_t node) {
          const uint32_t token = sampler.sample(logits[node], history, 0, drawn.size());
          history.push_back(token);
          drawn.push_back(token);
          return token;
        },
        path);
  }

  std::unique_ptr<Device> device_ = make_reference_device();
  std::unique_ptr<Engine> loaded_;
  Text prompt_;
  std::map<Text, Known> known_;
};

TEST_F(SamplingStatistics, EveryModeDrawsFromTheTargetsDistribution) {
  const std::map<Text, double> exact = expected();
  EXPECT_GT(exact.size(), 20u);
  const auto tree_of = [&](uint32_t width) {
    return draw([&, width](const Known& k, Sampler& sampler, Text& drawn, uint32_t) {
      walk_tree(k.tree, k.tree_logits, std::min(width, k.tree.width()), sampler, drawn);
    });
  };
  EXPECT_LT(deviate(tree_of(1), exact, kSeeds), kFits) << "ar";
  EXPECT_LT(deviate(tree_of(5), exact, kSeeds), kFits) << "tree of 4";
  EXPECT_LT(deviate(tree_of(25), exact, kSeeds), kFits) << "tree of 24";
  EXPECT_LT(deviate(draw([&](const Known& k, Sampler& sampler, Text& drawn, uint32_t) {
                      walk_tree(k.chain, k.chain_logits, k.chain.width(), sampler, drawn);
                    }),
                    exact, kSeeds),
            kFits)
      << "chain";
  // Adaptive: a different width in each round.
  EXPECT_LT(deviate(draw([&](const Known& k, Sampler& sampler, Text& drawn, uint32_t seed) {
                      walk_tree(k.tree, k.tree_logits,
                                1 + (seed * 7 + static_cast<uint32_t>(drawn.size())) % k.tree.width(), sampler, drawn);
                    }),
                    exact, kSeeds),
            kFits)
      << "adaptive";
}

TEST_F(SamplingStatistics, WholeSessionsDrawTheSamePaths) {
  for (const DecodeMode mode : {DecodeMode::ar, DecodeMode::chain, DecodeMode::tree, DecodeMode::adaptive}) {
    SCOPED_TRACE(to_string(mode));
    std::vector<Text> written;
    for (uint32_t seed = 0; seed < 100; ++seed) {
      ReplySettings reply;
      reply.mode = mode;
      reply.budget = 24;
      reply.max_tokens = kDrawn;
      reply.sampling = settings(seed);
      written.push_back(loaded_->reply(prompt_, reply).ids);
    }
    loaded_->resident->clear();  // what follows runs passes of its own
    for (uint32_t seed = 0; seed < written.size(); ++seed) {
      Sampler sampler(settings(seed), loaded_->model->config().vocab);
      Text drawn = {sampler.sample(known(prompt_).next, prompt_, 0, 0)};
      while (drawn.size() < kDrawn) {
        const Known& k = known(followed_by(drawn));
        walk_tree(k.tree, k.tree_logits, k.tree.width(), sampler, drawn);
      }
      drawn.resize(kDrawn);
      if (written[seed].size() == kDrawn) {  // without a stop token
        EXPECT_EQ(written[seed], drawn) << seed;
      }
    }
  }
}

TEST_F(SamplingStatistics, AcceptingAlongTheArgmaxIsToldApart) {
  const auto counts = draw([&](const Known& k, Sampler& sampler, Text& drawn, uint32_t) {
    uint32_t node = 0;
    for (;;) {  // follows the most probable token as long as the tree has it, and draws only the token after that
      const std::vector<float>& row = k.tree_logits[node];
      const auto best = static_cast<uint32_t>(std::max_element(row.begin(), row.end()) - row.begin());
      const uint32_t child = k.tree.child(node, best);
      if (child == TreeNode::none) break;
      drawn.push_back(best);
      node = child;
    }
    drawn.push_back(sampler.sample(k.tree_logits[node], followed_by(drawn), 0, drawn.size()));
  });
  EXPECT_GT(deviate(counts, expected(), kSeeds), kDoesNotFit);
}

TEST_F(SamplingStatistics, AcceptingByTheRatioOfProbabilitiesIsToldApart) {
  const auto counts = draw([&](const Known& k, Sampler& sampler, Text& drawn, uint32_t seed) {
    std::mt19937_64 random(seed * 31 + drawn.size());
    std::uniform_real_distribution<double> uniform(0, 1);
    uint32_t node = 0;
    // Accepts a child with probability min(1, p / q), as if it had been drawn from q.
    for (bool accepted = true; accepted;) {
      accepted = false;
      const auto p = next_tokens(k.tree_logits[node]);
      for (uint32_t child = node + 1; child < k.tree.width() && !accepted; ++child) {
        if (k.tree[child].parent != node) continue;
        const auto found = p.find(k.tree[child].token);
        if (found == p.end() || uniform(random) >= found->second / std::exp(k.tree[child].log_q)) continue;
        drawn.push_back(k.tree[child].token);
        node = child;
        accepted = true;
      }
    }
    drawn.push_back(sampler.sample(k.tree_logits[node], followed_by(drawn), 0, drawn.size()));
  });
  EXPECT_GT(deviate(counts, expected(), kSeeds), kDoesNotFit);
}

TEST(Deviate, IsSmallForTheTruthAndLargeForALie) {
  std::mt19937 random(1);
  std::discrete_distribution<uint32_t> fair({1, 2, 3, 4}), biased({1.2, 2, 3, 3.8});
  const std::map<Text, double> expected = {{{0}, 0.1}, {{1}, 0.2}, {{2}, 0.3}, {{3}, 0.4}};
  std::map<Text, uint32_t> truth, lie;
  for (uint32_t i = 0; i < 20'000; ++i) ++truth[{fair(random)}], ++lie[{biased(random)}];
  EXPECT_LT(deviate(truth, expected, 20'000), kFits);
  EXPECT_GT(deviate(lie, expected, 20'000), kDoesNotFit);
  ++truth[{9}];
  EXPECT_GT(deviate(truth, expected, 20'001), kDoesNotFit);  // one draw that cannot occur
}

}  // namespace
}  // namespace canopy::test
