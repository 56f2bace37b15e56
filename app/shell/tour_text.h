#pragma once
// What the tour says at each step, with the words and figures of the recorded pass. Pure.

#include <cstdint>
#include <string>
#include <vector>

namespace canopy::app {

struct TourWords {
  enum class Kind { plain, accepted, rejected, bonus };
  Kind kind = Kind::plain;
  std::string text;
  bool operator==(const TourWords&) const = default;
};

/// A row of tokens: of them the last `bonus` are the big model's own.
struct TourBar {
  std::string name;
  uint32_t tokens = 0, bonus = 0;
};

/// Which parts of the window a step speaks of.
enum class TourPart { chat, tree, path, numbers };

struct TourStep {
  std::string title;
  std::vector<TourWords> words;
  std::vector<TourBar> figure;  // may be empty
  std::vector<TourPart> parts;
};

/// What is known of the pass on show.
struct TourFacts {
  uint32_t guesses = 0, right = 0, emitted = 0;
  std::string favourite, taken, own;  // where the path leaves the drafter's favourite: both words; and the bonus
  uint32_t chain = 0;                 // tokens that a chain would have brought
  bool chain_at_least = false;
  std::string tokens_per_pass;  // of the reply, "5.3"; empty where it is not known
  std::string plain_tokens;     // that the pass took as long as, "11"; empty where it is not known
  bool slower = false;          // the pass took longer than plain decoding of what a pass of the reply brings
};

/// step: 0 ... kTourSteps - 1.
TourStep tour_step(uint32_t step, const TourFacts& facts);

}  // namespace canopy::app
