#pragma once
// Ways to decode, measured against each other over the same prompts in the same minutes.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/session/engine.h"
#include "engine/trace/round_statistics.h"

namespace canopy::cli {

struct WayToDecode {
  DecodeMode mode = DecodeMode::ar;
  uint32_t budget = 0;       // drafted nodes of mode tree; 0 in the other modes
  std::string name() const;  // "chain", "tree 16"
  ReplySettings settings(CostPolicy policy, uint32_t max_tokens) const;
};

struct BenchPrompt {
  std::string category;
  std::vector<uint32_t> ids;
};

struct ModesSettings {
  std::vector<WayToDecode> ways;  // autoregressive decoding first: the others are compared with it
  CostPolicy policy = CostPolicy::measured;
  uint32_t repeats = 3;
  uint32_t max_tokens = 128;
};

/// Mean and standard deviation over the repeats (of the sample; 0 for one repeat).
struct Spread {
  double mean = 0;
  double sd = 0;
};

Spread spread_of(const std::vector<double>& values);

/// One way over the prompts of one category.
struct ModeResult {
  WayToDecode way;
  std::string category;  // all_categories for all of them
  uint64_t replies = 0;
  uint64_t rounds = 0;
  uint64_t tokens = 0;  // emitted by rounds: not the first of each reply, which comes out of the prefill
  double tau = 0;
  Spread tokens_per_second;
  Spread times_ar;        // the same over that of autoregressive decoding in the same repeat
  double host_share = 0;  // 0 ... 1: build, walk and other of all time
  bool identical_to_ar = true;
  Correlation expectation;  // expected against emitted tokens, over rounds with a draft that the reply's end left whole
};

constexpr const char* all_categories = "all";

struct ModesResult {
  uint32_t repeats = 0;  // that the figures are of
  uint64_t prompts = 0;
  std::vector<ModeResult> modes;  // by category in the order of the prompts, "all" last; in each by way
};

struct ModesCallbacks {
  std::function<void(uint64_t done, uint64_t total)> progress;  // replies
  std::function<bool()> keep_going;
};

/// Runs every way on every prompt, way by way, `repeats` times. The prompt is in both caches when a way begins, so that
/// times are of rounds alone. Stopped by keep_going, it gives what whole repeats measured, or the whole prompts of the
/// first; with nothing whole it throws cancelled. Throws what Engine::reply() throws.
ModesResult measure_modes(Engine& model, const std::vector<BenchPrompt>& prompts, const ModesSettings& settings,
                          const ModesCallbacks& callbacks);

/// Reads a prompt into both caches, so that a reply to it starts with its first round. False when keep_going said no.
bool read_ahead(const Engine& model, const std::vector<uint32_t>& prompt, const std::function<bool()>& keep_going);

/// Tokens that the round's draft promised, the root's included: what the planner said of the chosen width, else the sum
/// over the nodes' own probabilities (the paper's A(W)).
double expected_tokens(const RoundRecord& record);

}  // namespace canopy::cli
