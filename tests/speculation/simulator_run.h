#pragma once
// A whole reply in virtual time: the controller, the tree, the walk, and no device.

#include <cstdint>
#include <vector>

#include "engine/speculation/controller.h"
#include "tests/speculation/simulator_device.h"
#include "tests/speculation/simulator_trace.h"

namespace canopy::test {

struct RunResult {
  double ms = 0;
  double longest_round_ms = 0;  // of those that made a draft
  double worst_ms = 0;          // the most that it ever was behind 1.02 times plain decoding, at any round
  uint32_t rounds = 0;
  uint32_t drafts = 0;    // rounds with a draft
  uint32_t verified = 0;  // of them, those that verified more than the root
  uint32_t chains = 0;
  double mean_width = 0;  // of the verified ones
};

RunResult run_adaptive(Controller& controller, const Trace& trace, const VirtualDevice& device, uint32_t budget = 63);

double run_plain(const Trace& trace, const VirtualDevice& device);

/// What every fixed width would have taken, from the drafts of all positions.
class Hindsight {
 public:
  Hindsight(const Trace& trace, uint32_t depths, uint32_t widest);

  struct Best {
    uint32_t width = 1;
    bool chain = false;
    double ms = 0;
  };
  /// The best of plain decoding, all tree widths and all chains.
  Best best(const VirtualDevice& device) const;
  double tree_ms(const VirtualDevice& device, uint32_t width) const;
  double chain_ms(const VirtualDevice& device, uint32_t width) const;

 private:
  template <class Accepted>
  double run(const VirtualDevice& device, uint32_t width, Accepted&& accepted) const;

  const Trace& trace_;
  uint32_t widest_;
  std::vector<DraftOutcome> outcomes_;  // [tokens]
};

}  // namespace canopy::test
