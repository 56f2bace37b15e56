#pragma once
// Runs the controller on many devices and texts, and compares it with plain decoding and the best fixed width in
// hindsight.

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
  std::vector<Hindsight::Best> fixed = {};  // every fixed way; plain decoding alone without hindsight
  Hindsight::Best best = {};                // the best of them
  const PromiseRecord* promises = nullptr;  // valid while the row is visited

  double regret() const { return ours.ms / best.ms; }
};

struct TableSpec {
  std::vector<TraceSpec> texts;
  std::vector<DeviceSpec> devices;
  uint32_t tokens = 0;
  unsigned seeds = 1;
  ControllerOptions options = {};
  bool hindsight = true;  // also compare with the best fixed width, which doubles the run time
};

std::vector<TraceSpec> simulated_texts();
/// The texts with these names, in this order; fails the test for an unknown name.
std::vector<TraceSpec> texts_named(const std::vector<std::string>& names);
std::vector<DeviceSpec> devices_named(const std::vector<std::string>& names);

/// Runs every combination and prints a line for each.
void run_table(const TableSpec& spec, const std::function<void(const TableRow&)>& visit);

/// Checks for a row that elapsed <= 1.02 * plain decoding + two rounds, at every moment.
void expect_bound(const TableRow& row);
/// Checks the sum over seeds, where luck averages out: <= 1.02 * the better of plain decoding and the best fixed width,
/// 1.08 for texts that switch. Adversarial texts are left out, as they would have been others for a fixed width.
class Regrets {
 public:
  enum class Best : uint8_t {
    of_each_seed,  // for long texts; over short ones the best of 78 ways is only the luckiest
    of_all_seeds,  // the same way for all seeds
  };
  /// luck: allowance above the limits, for the best of all ways being ahead of the others by chance.
  explicit Regrets(Best best, double luck = 0) : best_(best), luck_(luck) {}

  void add(const TableRow& row);

  /// Prints the regret of every text on every device and checks that it is within its limit.
  void expect_small() const;

 private:
  struct Sum {
    double ours = 0;
    double best = 0;                     // sum of the best time of each seed
    std::vector<Hindsight::Best> fixed;  // sums over all seeds
    double limit = 0;
  };
  Best best_;
  double luck_;
  std::map<std::pair<std::string, std::string>, Sum> sums_;  // by names of text and device
};

}  // namespace canopy::test
