#include "app/layout/tree_caption.h"

#include <algorithm>
#include <array>

namespace canopy::app {
namespace {

std::string tokens(size_t count) {
  return spelled(count) + (count == 1 ? " token" : " tokens") + " from one pass.";
}

/// Of the guesses in the order in which they were added, how many hold all that were right.
uint32_t guesses_needed(const TreeModel& tree) {
  uint32_t last = 0;
  for (const uint32_t node : tree.path)
    if (node != tree.bonus) last = std::max(last, node);
  return last;
}

}  // namespace

std::array<std::string, 3> chain_note_lines(const ChainEstimate& chain, size_t emitted) {
  return {"The drafter\u2019s favourite.", "A single chain ends here,",
          "with " + std::string(chain.at_least ? "at least " : "") + std::to_string(chain.emitted) +
              (chain.emitted == 1 ? " token" : " tokens") + " in place of " + std::to_string(emitted) + "."};
}

std::string spelled(size_t number) {
  static constexpr std::array<const char*, 13> words = {"no",    "one",   "two",  "three", "four",   "five",  "six",
                                                        "seven", "eight", "nine", "ten",   "eleven", "twelve"};
  return number < words.size() ? words[number] : std::to_string(number);
}

std::string depth_words(uint32_t depth) {
  if (depth == 0) return "so far";
  if (depth == 1) return "next token";
  const uint32_t tens = depth % 100, ones = depth % 10;
  const char* end = tens >= 11 && tens <= 13 ? "th" : ones == 1 ? "st" : ones == 2 ? "nd" : ones == 3 ? "rd" : "th";
  return std::to_string(depth) + end;
}

std::string capitalised(std::string words) {
  if (!words.empty() && words.front() >= 'a' && words.front() <= 'z')
    words.front() = static_cast<char>(words.front() - 'a' + 'A');
  return words;
}

std::vector<CaptionPart> brief_caption(const TreeModel& tree, size_t emitted) {
  const uint32_t right = tree.counted(NodeFate::accepted);
  const CaptionPart rest = {CaptionPart::Kind::plain, (right > 0 ? ": " : "") + tokens(emitted)};
  if (right == 0) return {{CaptionPart::Kind::plain, capitalised(rest.text)}};
  return {{CaptionPart::Kind::accepted,
           capitalised(spelled(right)) + (right == 1 ? " guess was right" : " guesses were right")},
          rest};
}

std::vector<CaptionPart> briefest_caption(size_t emitted) {
  return {{CaptionPart::Kind::plain, capitalised(tokens(emitted))}};
}

std::vector<CaptionPart> tree_caption(const TreeModel& tree, const std::vector<std::string>& labels, size_t emitted) {
  using Kind = CaptionPart::Kind;
  const uint32_t drafted = tree.size() - 1 - (tree.bonus ? 1 : 0);
  if (drafted == 0)
    return {{Kind::plain, "Nothing was guessed: the big model wrote " + tokens(emitted) + " That is plain decoding."}};
  const uint32_t right = tree.counted(NodeFate::accepted);
  std::vector<CaptionPart> parts;
  const std::string guesses = right == 1 ? " guess was right" : " guesses were right";
  if (right == 0)
    parts.push_back({Kind::plain, "No guess was right"});
  else
    parts.push_back({Kind::accepted, capitalised(spelled(right)) + guesses});
  if (tree.bonus) {
    parts.push_back({Kind::plain, right == 0 ? ", so the big model added " : ", and the big model added "});
    parts.push_back({Kind::token, labels[*tree.bonus]});
    parts.push_back({Kind::plain, " itself: " + tokens(emitted)});
  } else {
    parts.push_back({Kind::plain, ", and the text ended there: " + tokens(emitted)});
  }
  const uint32_t needed = guesses_needed(tree);
  if (right > 0 && needed * 2 < drafted) {
    const std::string words = needed == 1 ? "One guess" : capitalised(spelled(needed)) + " guesses";
    parts.push_back({Kind::aside, " " + words + " would have brought the same."});
  }
  return parts;
}

}  // namespace canopy::app
