#pragma once
// What a frame drew as words, measured: for tests that nothing is cut off or written over something else.

#include <string>
#include <vector>

#include "app/look/fonts.h"

namespace canopy::test {

/// Notes the words of the frames that are drawn while it lives.
class DrawnTexts {
 public:
  DrawnTexts() { app::look().drawn = &texts_; }
  ~DrawnTexts() { app::look().drawn = nullptr; }
  DrawnTexts(const DrawnTexts&) = delete;
  DrawnTexts& operator=(const DrawnTexts&) = delete;

  const std::vector<app::DrawnText>& all() const { return texts_; }
  void clear() { texts_.clear(); }
  bool has(const std::string& text) const;
  bool any_contains(const std::string& part) const;

  /// Words that stick out of their window at the right or the left, where no scrolling would bring them in view.
  std::vector<std::string> cut() const;
  /// Pairs of words, "a | b", that lie over each other.
  std::vector<std::string> overlapping() const;
  /// Words that begin inside a box and end outside of it.
  std::vector<std::string> leaving(ImVec2 min, ImVec2 max) const;
  /// Words that end in an ellipsis.
  std::vector<std::string> shortened() const;

 private:
  std::vector<app::DrawnText> texts_;
};

}  // namespace canopy::test
