#pragma once
// Whole replies in virtual time: the controller, the trees and the walk, without a device.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/speculation/controller.h"
#include "engine/speculation/ddtree.h"
#include "engine/speculation/pass_cost.h"
#include "tests/speculation/simulator_device.h"
#include "tests/speculation/simulator_trace.h"

namespace canopy::test {

/// How a text is cut into replies; controller, costs and device are kept from one to the next.
struct Replies {
  uint32_t tokens = 0;  // of each reply, the last may have fewer; 0: the text is one reply
  uint32_t prompt = 0;  // features that each reply's first draft has to inject

  /// The tokens that the reply at `position` may still emit.
  uint32_t left(uint32_t position, uint32_t text) const;
  bool begins(uint32_t position) const { return position == 0 || (tokens != 0 && position % tokens == 0); }
};

struct RunTimes {
  double draft = 0, verify = 0, other = 0;
};

/// What is seen of a run while it goes on; both may be empty.
struct RunWatcher {
  /// Before the first round of a reply, whose root stands at `position`.
  std::function<void(uint32_t position, uint32_t backlog, Controller&, ObservedCost&)> reply;
  /// After each round. `tree` is what was verified: the root alone, a chain or a tree; `drafted`: there was a draft.
  std::function<void(uint32_t position, bool drafted, const WidthChoice&, const DraftTree& tree,
                     std::span<const uint32_t> emitted, const RunTimes& ms)>
      round;
};

struct RunResult {
  double ms = 0;
  std::vector<double> reply_ms;     // of each reply
  std::vector<double> reply_ar_ms;  // of each reply by plain decoding
  double longest_round_ms = 0;      // among rounds with a draft
  double worst_ms = 0;              // the most that it was ever behind 1.02 times plain decoding, after any round
  uint32_t rounds = 0;
  uint32_t drafts = 0;    // rounds with a draft
  uint32_t verified = 0;  // rounds that verified more than the root
  uint32_t chains = 0;
  double mean_width = 0;  // of the rounds that verified a draft
};

RunResult run_adaptive(Controller& controller, const Trace& trace, const VirtualDevice& device, uint32_t budget = 63,
                       const Replies& replies = {}, const RunWatcher& watcher = {});

/// The most features that wait for a draft; if there are more, the drafter injects them earlier.
constexpr uint32_t most_waiting = 64;

/// For widths beyond the calibrated ones, which do not occur here.
Roofline any_roofline();

double run_ar(const Trace& trace, const VirtualDevice& device);

/// What every fixed width would have taken, computed from the drafts at all positions.
class Hindsight {
 public:
  Hindsight(const Trace& trace, uint32_t depths, uint32_t widest);

  struct Best {
    uint32_t width = 1;
    bool chain = false;
    double ms = 0;
    bool operator<(const Best& other) const { return ms < other.ms; }
  };
  /// Plain decoding, all tree widths and all chains, always in this order.
  std::vector<Best> all(const VirtualDevice& device) const;
  double tree_ms(const VirtualDevice& device, uint32_t width, const Replies& replies = {}) const;
  double chain_ms(const VirtualDevice& device, uint32_t width, const Replies& replies = {}) const;

 private:
  void learn(std::span<const TreeNode> tree, uint32_t position, uint32_t depths);
  double run(const VirtualDevice& device, uint32_t width, const Replies& replies,
             std::span<const uint8_t> accepted) const;

  const Trace& trace_;
  uint32_t widest_;
  std::vector<uint8_t> tree_;   // [widest, tokens] number accepted from each position by the tree of each width
  std::vector<uint8_t> chain_;  // [depths + 1, tokens] number accepted from each position by the chain of each length
};

}  // namespace canopy::test
