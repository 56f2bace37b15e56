#pragma once
// The texts that a frame drew, with their places, for tests that nothing is cut off or drawn over other text.

#include <string>
#include <vector>

#include "app/ui/look.h"

namespace canopy::test {

/// Collects the texts of the frames that are drawn while it exists.
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

  /// Texts that reach beyond the right or left side of their window, where scrolling would not show them.
  std::vector<std::string> cut() const;
  /// Pairs of texts, "a | b", that overlap.
  std::vector<std::string> overlapping() const;
  /// Texts that begin inside a box and end outside of it.
  std::vector<std::string> leaving(ImVec2 min, ImVec2 max) const;
  /// Texts that end in an ellipsis.
  std::vector<std::string> shortened() const;

 private:
  std::vector<app::DrawnText> texts_;
};

}  // namespace canopy::test
