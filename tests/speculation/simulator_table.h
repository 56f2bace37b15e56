#pragma once
// The controller on many devices and texts, beside autoregressive decoding and the best fixed width in hindsight.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/speculation/simulator_run.h"

namespace canopy::test {

struct TableRow {
  std::string device, text;
  unsigned seed = 0;
  bool switching = false, adversarial = false;
  double ar_ms = 0;
  RunResult ours = {};
  std::vector<Hindsight::Best> fixed =
      {};                     // every fixed way; autoregressive decoding alone where hindsight was not asked
  Hindsight::Best best = {};  // of them
  const PromiseRecord* promises = nullptr;  // while the row is visited

  double regret() const { return ours.ms / best.ms; }
};

struct TableSpec {
  std::vector<TraceSpec> texts;
  std::vector<DeviceSpec> devices;
  uint32_t tokens = 0;
  unsigned seeds = 1;
  ControllerOptions options = {};
  bool hindsight = true;  // compare with the best fixed width too, which takes as long again
};

std::vector<TraceSpec> simulated_texts();
/// Those whose names are given, in that order; fails the test for a name that there is not.
std::vector<TraceSpec> texts_named(const std::vector<std::string>& names);
std::vector<DeviceSpec> devices_named(const std::vector<std::string>& names);

/// Runs every combination and prints a line of each.
void run_table(const TableSpec& spec, const std::function<void(const TableRow&)>& visit);

/// What must hold of every row: elapsed <= 1.02 * autoregressive decoding + two rounds, at every moment.
void expect_bound(const TableRow& row);
/// What must hold in the sum over seeds, which tells skill from luck: <= 1.02 * the better of autoregressive decoding
/// and the best fixed width, 1.08 where the text switches. What an adversary did to a fixed width cannot be told: it
/// would have met another text.
class Regrets {
 public:
  enum class Best : uint8_t {
    of_each_seed,  // for long texts: over short ones the best of 78 ways is the luckiest
    of_all_seeds,  // the same way for all
  };
  /// luck: what the best of all ways is ahead of the others by chance, beyond the limits.
  explicit Regrets(Best best, double luck = 0) : best_(best), luck_(luck) {}

  void add(const TableRow& row);

  /// Prints the regret of every text on every device and expects it to be within its limit.
  void expect_small() const;

 private:
  struct Sum {
    double ours = 0;
    double best = 0;                     // of each seed
    std::vector<Hindsight::Best> fixed;  // of all seeds
    double limit = 0;
  };
  Best best_;
  double luck_;
  std::map<std::pair<std::string, std::string>, Sum> sums_;  // by text and device
};

}  // namespace canopy::test
