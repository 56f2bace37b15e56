#pragma once
// The order of a comparison's runs.

#include <cstdint>
#include <span>
#include <vector>

namespace canopy {

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

}  // namespace canopy
