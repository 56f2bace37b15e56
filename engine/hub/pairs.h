#pragma once
// Pairs of a model and a drafter that are known to fit: assets/pairs.json.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace canopy {

/// One half of a pair. What is not known is left out of the file, and empty or 0 here.
struct PairHalf {
  std::string name;     // "Qwen3-8B"
  std::string repo;     // OWNER/REPO on the hub, a folder of safetensors; empty: it is elsewhere, see KnownPair::note
  std::string gguf;     // OWNER/REPO of the same model in GGUF files, Q4_K_M, Q6_K and Q8_0 among them; may be empty
  std::string licence;  // "apache-2.0"
  uint64_t bytes = 0;   // of its files
};

struct KnownPair {
  PairHalf target, drafter;
  std::string kind;     // "dflash", "dflash2"
  std::string note;     // "for replies without thinking"; may be empty
  std::string source;   // where it is said that they fit
  uint64_t memory = 0;  // bytes on the device, both together
  std::string tried;    // with what this program was tried on it; empty: not tried
};

/// Throws bad_input, naming file and field, for a file that is none.
std::vector<KnownPair> read_pairs(const std::filesystem::path& path);

/// Those that come with Canopy; none where the file is not there.
std::vector<KnownPair> known_pairs();

/// The pairs whose target a repository holds, by its name: "Qwen3-8B" in "Qwen/Qwen3-8B-GGUF".
std::vector<KnownPair> pairs_for(const std::vector<KnownPair>& pairs, std::string_view repo);

}  // namespace canopy
