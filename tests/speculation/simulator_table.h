#pragma once
// The controller on many devices and texts, beside plain decoding and the best fixed width in hindsight.

#include <functional>
#include <string>
#include <vector>

#include "tests/speculation/simulator_run.h"

namespace canopy::test {

struct TableRow {
  std::string device, text;
  unsigned seed = 0;
  bool switching = false, adversarial = false;
  double ar_ms = 0;
  RunResult ours = {};
  Hindsight::Best best = {};                // plain decoding where hindsight was not asked
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

/// What must hold of every row: elapsed <= 1.02 * plain decoding + two rounds, at every moment.
void expect_bound(const TableRow& row);
/// And of rows long enough to tell luck from skill: <= 1.02 * the better of plain decoding and the best fixed
/// width, 1.08 where the text switches. What an adversary did to a fixed width cannot be told: it would have met
/// another text.
void expect_regret(const TableRow& row);

}  // namespace canopy::test
