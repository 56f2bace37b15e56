#pragma once
// canopy-cli bench --modes and --forced: ways to decode against each other, over the same prompts and alternating in
// time.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/cli/commands.h"
#include "engine/bench/sweep.h"
#include "engine/bench/sweep_summary.h"
#include "engine/session/comparison.h"
#include "engine/session/engine.h"
#include "engine/trace/round_statistics.h"

namespace canopy::cli {

// Measures ways to decode against each other, over the same prompts and alternating in time.

struct BenchPrompt {
  std::string category;
  std::vector<uint32_t> ids;
};

struct ModesSettings {
  std::vector<WayToDecode> ways;  // plain decoding first: the others are compared with it
  CostPolicy policy = CostPolicy::measured;
  uint32_t repeats = 3;
  uint32_t max_tokens = 128;
  std::vector<double> accept_rates;  // ReplySettings::accept_rates
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
  bool given_rates = false;  // what was accepted was decided by given rates: no text is the model's
  Correlation expectation;   // of expected and emitted tokens, over rounds whose draft was not cut by the reply's end
};

constexpr const char* all_categories = "all";

/// The rounds of one way, over all prompts and repeats, whose committed context was from `first` to below `end`
/// positions (BASTION's long-context table).
struct ContextResult {
  WayToDecode way;
  uint32_t first = 0, end = 0;
  bool given_rates = false;  // as of a ModeResult
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
/// (engine/session/comparison.h). Stopped by stop, it gives what whole repeats measured, or the whole prompts of
/// the first; with nothing whole it throws cancelled. Throws what Engine::reply() throws.
ModesResult measure_modes(Engine& model, const std::vector<BenchPrompt>& prompts, const ModesSettings& settings,
                          const ModesCallbacks& callbacks);

/// The tokens that a round was expected to emit when it was drafted, the root's included: the planner's forecast for
/// the chosen width, else the sum of the nodes' own path probabilities (the paper's A(W)).
double expected_tokens(const RoundRecord& record);

// Compares acceptance lengths with those of another implementation. Its replies are forced token by token, so that both
// draft after the same texts.

/// A reply, and how many tokens each round of each way to decode emitted in it, the bonus included.
struct ForcedReply {
  std::string category;
  std::vector<uint32_t> prompt_ids;
  std::vector<uint32_t> output_ids;                      // the first one comes out of the prompt's pass
  std::map<std::string, std::vector<uint32_t>> lengths;  // by way: "chain", "tree4", "tree16", ...
};

/// Reads [{"category", "prompt_ids", "output_ids", "chain": {"acceptance_lengths": [...]}, "tree4": {...}, ...}, ...].
/// Throws bad_input naming file, entry and field.
std::vector<ForcedReply> read_forced(const std::filesystem::path& path);

/// A number of rounds and the tokens they emitted.
struct RoundSum {
  uint64_t rounds = 0;
  uint64_t tokens = 0;
  double tau() const { return rounds > 0 ? static_cast<double>(tokens) / static_cast<double>(rounds) : 0; }
};

/// The comparison of one way over the replies of one category. Only rounds that start where a whole block and its bonus
/// still fit into the reply count, on both sides: after that the reference drafts past the end, and Canopy does not.
struct ForcedResult {
  WayToDecode way;
  std::string category;  // all_categories for all of them
  uint64_t replies = 0;
  RoundSum ours, theirs;
  uint64_t same_starts = 0;   // rounds that start at the same token on both sides
  uint64_t same_lengths = 0;  // those of them that emitted as many tokens as the reference
  double difference() const;  // (our tau - theirs) / theirs
};

/// Forces every reply on every way and compares. Once stopped, it gives the replies that were through all
/// ways; with none it throws cancelled. Throws bad_input for a way that a reply has no lengths of, and what
/// Engine::reply() throws.
std::vector<ForcedResult> compare_forced(Engine& model, const std::vector<ForcedReply>& replies,
                                         const std::vector<WayToDecode>& ways, const ModesCallbacks& callbacks);

// The part of `canopy-cli bench` that compares ways to decode: --modes and --forced.

struct ModesOptions {
  std::vector<std::string> modes;
  std::vector<uint32_t> budgets = {4, 16, 64};
  std::vector<DraftSources> sources;  // a way each; empty: all together
  std::vector<std::string> prompts;   // files and folders; empty: the prompts that come with Canopy
  std::vector<uint32_t> prompt_tokens;
  std::string policy = "measured";
  std::vector<double> accept_rates;  // empty: the target decides
  std::string sources_from;          // folder of earlier replies, which are read alone; empty: none
  std::string forced;
  uint32_t limit = 0;  // prompts of each category; 0: all
  uint32_t max_tokens = 128;
  uint32_t repeats = 3;
  std::string json, csv, markdown;  // files, "-" for standard output; empty: none
};

void add_modes_options(CLI::App& command, ModesOptions& options);

/// Whether the command line asks for this part. Throws UsageError for options of it without --modes or --forced.
bool asks_for_modes(const CLI::App& command, const ModesOptions& options);

/// Checks the files that a measurement is written to before measuring, so that an hour's is not lost to a mistyped
/// folder, and none replaces a file that is read. Throws UsageError and bad_input.
void check_bench_targets(const ModelChoice& model, const ModesOptions& options);

/// Returns the exit code. Throws UsageError for options that contradict each other, before anything is loaded.
int run_modes(const ModelChoice& model, const ModesOptions& options);

}  // namespace canopy::cli
