#pragma once
// Measures ways to decode against each other, over the same prompts and alternating in time.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/comparison/statistics.h"
#include "engine/comparison/way_to_decode.h"
#include "engine/session/comparison_runner.h"
#include "engine/session/engine.h"
#include "engine/trace/round_statistics.h"

namespace canopy::cli {

struct BenchPrompt {
  std::string category;
  std::vector<uint32_t> ids;
};

struct ModesSettings {
  std::vector<WayToDecode> ways;  // plain decoding first: the others are compared with it
  CostPolicy policy = CostPolicy::measured;
  uint32_t repeats = 3;
  uint32_t max_tokens = 128;
};

/// The measurements of one way over the prompts of one category.
struct ModeResult {
  WayToDecode way;
  std::string category;  // all_categories for all of them
  uint64_t replies = 0;
  uint64_t rounds = 0;
  // Emitted by rounds, without the first token of each reply, which comes out of the prompt's pass.
  uint64_t tokens = 0;
  double tau = 0;
  Spread tokens_per_second;
  Ratio times_ar;         // tokens per second / those of plain decoding in the same repeat
  double host_share = 0;  // in [0, 1]: time of build, accept and other / all time
  bool identical_to_ar = true;
  Correlation expectation;  // of expected and emitted tokens, over rounds whose draft was not cut by the reply's end
};

constexpr const char* all_categories = "all";

/// The rounds of one way, over all prompts and repeats, whose committed context was from `first` to below `end`
/// positions (BASTION's long-context table).
struct ContextResult {
  WayToDecode way;
  uint32_t first = 0, end = 0;
  RoundStatistics statistics;
  Correlation expectation;  // as of a ModeResult
};

struct ModesResult {
  uint32_t repeats = 0;  // number of repeats measured
  uint64_t prompts = 0;
  std::vector<ModeResult> modes;        // by category in the order of the prompts, "all" last; in each category by way
  std::vector<ContextResult> contexts;  // ascending, in each by way; of whole prompts, those of a broken repeat too
};

struct ModesCallbacks {
  std::function<void(uint64_t done, uint64_t total)> progress;  // counts replies
  std::stop_token stop;
};

/// Runs every way on every prompt `repeats` times, in an order that is drawn anew for each prompt
/// (engine/session/comparison_runner.h). Stopped by stop, it gives what whole repeats measured, or the whole prompts of
/// the first; with nothing whole it throws cancelled. Throws what Engine::reply() throws.
ModesResult measure_modes(Engine& model, const std::vector<BenchPrompt>& prompts, const ModesSettings& settings,
                          const ModesCallbacks& callbacks);

/// The tokens that a round was expected to emit when it was drafted, the root's included: the planner's forecast for
/// the chosen width, else the sum of the nodes' own path probabilities (the paper's A(W)).
double expected_tokens(const RoundRecord& record);

}  // namespace canopy::cli
