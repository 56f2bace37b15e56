#pragma once
// A comparison or a sweep and what was measured in it: the ways to decode, the order of the runs, the time left, and
// the contents of its file (docs/comparing-gpus.md). Holds names of models and devices, but no path and no text.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/speculation/ddtree.h"
#include "engine/speculation/pass_cost.h"
#include "engine/speculation/round_record.h"
#include "engine/speculation/sampler.h"

namespace canopy {

/// Drafted nodes of the largest tree that can be asked for.
inline constexpr uint32_t kMostBudget = 1024;

/// A mode and, in mode tree, its size; in modes that draft, where drafts come from.
struct WayToDecode {
  DecodeMode mode = DecodeMode::ar;
  uint32_t budget = 0;                   // drafted nodes of mode tree; 0 in the other modes
  DraftSources sources = kUsualSources;  // all in mode ar, which asks none

  std::string name() const;  // "chain", "tree 16", "adaptive (suffix)"
  bool operator==(const WayToDecode&) const = default;
};

// The order of a comparison's runs.

/// A run of a comparison: which column writes which prompt, and for the how many-th time.
struct RunKey {
  uint32_t contestant = 0;
  uint32_t prompt = 0;
  uint32_t repeat = 0;
  bool operator==(const RunKey&) const = default;
  auto operator<=>(const RunKey&) const = default;
};

struct RunCounts {
  uint32_t contestants = 0;
  uint32_t prompts = 0;
  uint32_t repeats = 0;

  uint64_t total() const { return uint64_t{contestants} * prompts * repeats; }
};

/// All runs, repeat by repeat and in each prompt by prompt; who writes a prompt first, second and so on is drawn anew
/// each time, by `seed`, so that nobody always comes after the same one. The same seed gives the same order.
std::vector<RunKey> run_order(const RunCounts& counts, uint64_t seed);

/// Those of `order` that `done` does not have.
std::vector<RunKey> runs_left(const std::vector<RunKey>& order, std::span<const RunKey> done);

/// The remaining time of a comparison, from what its columns took so far.
class TimeLeft {
 public:
  explicit TimeLeft(uint32_t contestants) : seconds_(contestants), runs_(contestants) {}

  /// A run took so long, with all that was done for it.
  void add(uint32_t contestant, double seconds);

  /// Seconds for these runs: each as long as its column's took on average, or where that has none, as all did. Nothing
  /// before the first run.
  std::optional<double> estimate(std::span<const RunKey> left) const;

 private:
  std::vector<double> seconds_;  // in sum, by contestant
  std::vector<uint64_t> runs_;
};

// What was measured, as in the file.

enum class SweepKind {
  sweep,       // many prompts and widths
  comparison,  // a few columns beside each other
};

/// What writes: a model with its drafter on a device, or a server.
struct SweepSubject {
  uint32_t target = 0;       // subjects with the same number write with the same files, opened in the same way
  std::string model;         // name of the file or folder; of a server, the name that it was asked for
  std::string quantization;  // of the weights on the device: "Q4_1", "F16 as Q8_0"
  uint64_t parameters = 0;   // 0: not known
  std::string drafter;       // likewise; empty: none
  uint32_t block = 0;        // rows of the drafter's pass
  std::string kv;            // type of keys and values
  uint32_t context = 0;      // positions of the cache
  std::string device;        // of a server: its host and port
  std::string device_type;   // "discrete", "integrated", "cpu", ...; "server"
  std::string driver;
  std::string kernels;           // DeviceInfo::kernels
  bool is_software = false;      // a GPU's interface on the processor
  std::string self_test;         // what the check of exactness found, as a sentence; empty where it did not run
  std::string energy;            // what tells the energy: "NVML", "amdgpu power"; empty: nothing does
  uint32_t earlier_replies = 0;  // that it drafts from, of a folder that was named; 0: every run begins with none
  uint32_t earlier_tokens = 0;   // of these
  bool operator==(const SweepSubject&) const = default;

  bool is_server() const { return device_type == "server"; }
};

/// A column: a way to decode on one of the subjects.
struct SweepContestant {
  WayToDecode way;
  uint32_t subject = 0;
  bool operator==(const SweepContestant&) const = default;
};

struct SweepPrompt {
  std::string id;        // "gsm_01"
  std::string category;  // "gsm"
  std::string hash;      // of its text: damage_hash_text()
  bool operator==(const SweepPrompt&) const = default;
};

struct SweepSettings {
  uint32_t repeats = 3;
  uint32_t max_tokens = 128;
  SamplingSettings sampling;
  CostPolicy policy = CostPolicy::measured;  // of mode adaptive
  uint64_t order_seed = 1;                   // that the order of runs is drawn by
  uint32_t warm_up_tokens = 8;               // of the short replies before the first run
};

/// A reply that was measured from its first round to its last.
struct MeasuredRun {
  RunKey key;
  uint32_t place = 0;          // in the order in which the runs were made, from 0
  uint32_t prompt_tokens = 0;  // 0: not known, of a server
  uint32_t reused_tokens = 0;  // of the prompt, which were in the cache
  uint32_t tokens = 0;         // of the reply; the first one comes out of the prompt's pass
  uint32_t rounds = 0;
  uint64_t rows = 0;      // of all passes
  uint32_t widest = 0;    // rows of the widest pass
  double prefill_ms = 0;  // up to and including the first token
  double decode_ms = 0;   // all rounds
  RoundTimes ms;          // by stage, in sum; 0 of a server
  FinishReason reason = FinishReason::max_tokens;
  std::string text_hash;                // of the reply's text
  std::optional<uint32_t> differs_at;   // first token that is another one than the baseline's
  std::optional<double> energy_j;       // of the device, over the rounds
  std::optional<double> clock_mhz;      // of the device, after the rounds
  std::optional<double> temperature_c;  // likewise

  /// Tokens that came out of rounds, a second; 0 without any.
  double tokens_per_second() const;
};

struct Sweep {
  SweepKind kind = SweepKind::sweep;
  std::string version, commit;  // of Canopy
  std::string created;          // "2026-11-24T10:00:00Z"
  uint32_t cores = 0;           // of the host
  std::vector<SweepSubject> subjects;
  std::vector<SweepContestant> contestants;
  std::vector<SweepPrompt> prompts;
  SweepSettings settings;
  uint32_t baseline = 0;          // the contestant that the others are compared with
  std::vector<MeasuredRun> runs;  // in the order in which they were made

  RunCounts counts() const;
  bool complete() const { return runs.size() == counts().total(); }
  /// "tree 16"; with more than one subject "tree 16, Qwen3-4B on Radeon RX 7900 XTX", as far as they differ.
  std::string name_of(uint32_t contestant) const;
  /// The contestant that decodes plainly on the same subject; nothing where none does.
  std::optional<uint32_t> plain_of(uint32_t contestant) const;
  /// Whether the two must write the same text: the same target on the same device, and no server.
  bool must_agree(uint32_t a, uint32_t b) const;
};

/// What stands in SweepSubject::kernels before the variants that timing chose, which may be more after a second start.
std::string kernel_family(const std::string& kernels);

/// The first token at which two replies differ; nothing where they are the same. One that ends earlier differs behind
/// its end.
std::optional<uint32_t> first_difference(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b);

}  // namespace canopy
