#pragma once
// Compares acceptance lengths with those of another implementation. Its replies are forced token by token, so that both
// draft after the same texts.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "app/cli/bench_modes.h"

namespace canopy::cli {

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

}  // namespace canopy::cli
