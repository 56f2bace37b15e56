#pragma once
// Invented texts with a draft for each position, as a drafter would give it: ranked candidates with logits at each
// depth, the right token among them or not.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/speculation/ddtree.h"

namespace canopy::test {

/// How well the text can be drafted.
enum class Ease : uint8_t { easy, usual, hard };

/// How far the drafter's probabilities can be trusted, by depth: it shows softmax(sharpening * log q). 1 is honest,
/// more than 1 too confident.
struct Honesty {
  double at_first = 1;
  double at_last = 1;
};

/// The drafts of one ease for all positions of a text.
class DraftTable {
 public:
  static constexpr uint32_t depths = 15;
  static constexpr uint32_t listed = 24;

  /// text [positions + depths + 1]
  DraftTable(std::span<const uint32_t> text, uint32_t positions, Ease ease, const Honesty& honesty, unsigned seed);

  /// The first `count` depths of the draft whose root is text[position].
  std::vector<DepthCandidates> at(uint32_t position, uint32_t count) const;

 private:
  std::vector<uint32_t> tokens_;  // [position, depth, listed]
  std::vector<float> logits_;     // the same
  std::vector<float> log_sums_;   // [position, depth]
};

/// The description of a text: how easy it is at each position.
struct TraceSpec {
  std::string name;
  Ease first = Ease::easy;
  Ease second = Ease::easy;  // alternates with the first where stretch is not 0
  uint32_t stretch = 0;      // tokens of the shortest stretch; the longest is twice that
  uint32_t sulking = 0;      // adversarial: number of tokens that are hard after each verified draft
  Honesty honesty = {};
};

class Trace {
 public:
  Trace(const TraceSpec& spec, uint32_t tokens, unsigned seed);

  const std::string& name() const { return spec_.name; }
  const TraceSpec& spec() const { return spec_; }
  uint32_t tokens() const { return tokens_; }
  uint32_t token(uint32_t position) const { return text_[position]; }
  Ease ease(uint32_t position) const { return eases_[position]; }

  /// The drafts at `position`; sulking: those of an adversarial text while it is hard.
  std::vector<DepthCandidates> draft(uint32_t position, uint32_t depths, bool sulking = false) const;

 private:
  TraceSpec spec_;
  uint32_t tokens_;
  std::vector<uint32_t> text_;
  std::vector<Ease> eases_;         // [tokens]
  std::vector<DraftTable> tables_;  // of the first ease, then of the second; the last one is hard for texts that sulk
};

}  // namespace canopy::test
