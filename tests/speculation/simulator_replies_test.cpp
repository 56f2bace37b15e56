// Series of short replies, as in real use: what the controller learns must pay within a few dozen tokens, and what it
// tries must not be noticeable.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "tests/speculation/simulator_table.h"

namespace canopy::test {
namespace {

constexpr uint32_t widest = 64;
constexpr uint32_t prompt = 30;
constexpr uint32_t replies_in_a_row = 9;

/// All ways to decode a category, in milliseconds over all its replies.
struct Category {
  double ours = 0;
  double plain = 0;
  std::map<std::string, double> fixed;  // by name of tree or chain
  double worst_window = 0;              // largest (ours / plain decoding) over any three replies in a row
  uint32_t verified = 0;
  bool believed = false;  // a good drafter would pay on this device

  double best() const {
    double best = plain;
    for (const auto& [name, ms] : fixed) best = std::min(best, ms);
    return best;
  }
};

double worst_window(const RunResult& run) {
  constexpr size_t window = 3;
  double worst = 0;
  for (size_t first = 0; first + window <= run.reply_ms.size(); ++first) {
    double ours = 0, plain = 0;
    for (size_t i = first; i < first + window; ++i) ours += run.reply_ms[i], plain += run.reply_ar_ms[i];
    worst = std::max(worst, ours / plain);
  }
  return worst;
}

bool is_believed(const DeviceSpec& spec) {
  Controller controller({}, spec.block_size);
  return controller.plan(0, 0, {.budget = widest - 1}, CalibratedCost(spec)).believed >= 1;
}

/// Runs the replies of one kind of text on all devices and adds them to the sums of other seeds.
void run_replies(const Trace& trace, const Replies& replies, unsigned seed, std::map<std::string, Category>& sums) {
  std::map<uint32_t, std::unique_ptr<Hindsight>> hindsights;  // by block size
  for (const DeviceSpec& spec : simulated_devices()) {
    const VirtualDevice device(spec, trace.tokens(), seed);
    Controller controller({}, spec.block_size);
    const RunResult run = run_adaptive(controller, trace, device, widest - 1, replies);
    Category& category = sums[spec.name];
    category.believed = is_believed(spec);
    category.ours += run.ms;
    category.plain += run_ar(trace, device);
    category.verified += run.verified;
    category.worst_window = std::max(category.worst_window, worst_window(run));
    auto& hindsight = hindsights[spec.block_size];
    if (hindsight == nullptr) hindsight = std::make_unique<Hindsight>(trace, spec.block_size - 1, widest);
    for (const uint32_t width : {2u, 3u, 4u, 5u, 8u, 9u, 16u, 17u, 32u, 33u, 64u}) {
      category.fixed["tree " + std::to_string(width)] += hindsight->tree_ms(device, width, replies);
    }
    category.fixed["chain"] += hindsight->chain_ms(device, spec.block_size, replies);
  }
}

void judge(const std::string& where, const Category& category, bool honest) {
  const double over_ar = category.ours / category.plain, regret = category.ours / category.best();
  std::printf("%-55s %8.3f %8.3f %8.3f %8.3f %8u\n", where.c_str(), over_ar, category.best() / category.plain, regret,
              category.worst_window, category.verified);
  // A drafter that shows wrong probabilities must first be found out: within 360 tokens that costs up to 7%, and 10%
  // where times also scatter by a quarter ("noisy linear").
  EXPECT_LE(regret, 1 / (honest ? 0.95 : 0.90)) << where;
  EXPECT_LE(over_ar, 1 / 0.98) << where;
  if (category.believed) return;
  EXPECT_LE(over_ar, 1.0101) << where;
  EXPECT_LE(category.worst_window, 1.032) << where;
}

// What the benchmark claims: within 5% of the best choice for each category, and never below 0.98 times plain decoding.
// Each seed is a new process, which knows nothing of the drafter yet.
TEST(SimulatorReplies, ShortOnesComeNearTheBestChoiceFromTheStart) {
  std::printf("%-55s %8s %8s %8s %8s %8s\n", "", "ours", "best", "regret", "3 worst", "verified");
  for (const uint32_t reply_tokens : {40u, 128u}) {
    const Replies replies{.tokens = reply_tokens, .prompt = prompt};
    const unsigned seeds = reply_tokens < 100 ? 8 : 3;  // so that the number of tokens is about the same
    for (const TraceSpec& text : texts_named({"easy", "usual", "hard", "easy, too sure", "usual, unsure"})) {
      std::map<std::string, Category> sums;
      for (unsigned seed = 1; seed <= seeds; ++seed) {
        run_replies(Trace(text, replies_in_a_row * reply_tokens, seed), replies, seed, sums);
      }
      for (const auto& [device, category] : sums) {
        const bool honest = text.honesty.at_first == 1;
        judge(device + ", " + text.name + ", replies of " + std::to_string(reply_tokens), category, honest);
      }
    }
  }
}

}  // namespace
}  // namespace canopy::test
