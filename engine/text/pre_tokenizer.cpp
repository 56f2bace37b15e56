#include "engine/text/pre_tokenizer.h"

#include <utility>

#include "engine/text/utf8.h"

namespace canopy {
namespace {

// Calls piece(stretch, is_match) for every stretch of a text, in order; together they are the whole text.
template <class F>
void for_each_stretch(const Regex& regex, std::string_view text, Regex::Matcher& matcher, F&& piece) {
  size_t done = 0;
  size_t from = 0;
  while (from < text.size()) {
    const auto match = regex.find(text, from, matcher);
    if (!match) break;
    if (match->end == match->begin) {  // cuts nothing; go on behind the next character
      if (match->begin >= text.size()) break;
      from = match->begin + next_utf8(text.substr(match->begin)).length;
      continue;
    }
    if (match->begin > done) piece(text.substr(done, match->begin - done), false);
    piece(text.substr(match->begin, match->end - match->begin), true);
    done = from = match->end;
  }
  if (done < text.size()) piece(text.substr(done), false);
}

// Puts stretches together as a behavior asks. A matching stretch that joined the one in front does not draw in the next
// match, as Hugging Face has it.
class PieceJoiner {
 public:
  PieceJoiner(PreTokenizer::Behavior behavior, std::vector<std::string_view>& pieces)
      : behavior_(behavior), pieces_(pieces), first_(pieces.size()) {}

  void add(std::string_view stretch, bool is_match) {
    using enum PreTokenizer::Behavior;
    const bool is_first = pieces_.size() == first_;
    switch (behavior_) {
      case isolated: pieces_.push_back(stretch); break;
      case removed:
        if (!is_match) pieces_.push_back(stretch);
        break;
      case with_previous: put(stretch, is_match && !after_match_ && !is_first); break;
      case with_next: put(stretch, after_match_ && !is_match && !is_first); break;
      case contiguous: put(stretch, is_match == after_match_ && !is_first); break;
    }
    after_match_ = is_match;
  }

 private:
  void put(std::string_view stretch, bool joins) {
    if (joins) {
      pieces_.back() = {pieces_.back().data(), pieces_.back().size() + stretch.size()};
    } else {
      pieces_.push_back(stretch);
    }
  }

  PreTokenizer::Behavior behavior_;
  std::vector<std::string_view>& pieces_;
  size_t first_;
  bool after_match_ = false;
};

}  // namespace

PreTokenizer::PreTokenizer(std::vector<Stage> stages) : stages_(std::move(stages)) {}

void PreTokenizer::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  pieces.clear();
  if (text.empty()) return;
  pieces.push_back(text);
  Regex::Matcher matcher;
  std::vector<std::string_view> coarser;
  for (const Stage& stage : stages_) {
    std::swap(coarser, pieces);
    pieces.clear();
    for (const std::string_view piece : coarser) {
      PieceJoiner joiner(stage.behavior, pieces);
      for_each_stretch(stage.regex, piece, matcher,
                       [&](std::string_view stretch, bool is_match) { joiner.add(stretch, is_match != stage.invert); });
    }
  }
}

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  split(text, pieces);
  return pieces;
}

}  // namespace canopy
