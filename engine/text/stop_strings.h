#pragma once
// Ends a reply at a stop string and holds back text that may turn out to begin one.

#include <string>
#include <string_view>
#include <vector>

namespace canopy {

class StopStrings {
 public:
  /// Empty strings are ignored.
  explicit StopStrings(std::vector<std::string> stops);

  /// Takes text and returns what can be shown by now. After a stop string was met, nothing more comes out.
  std::string push(std::string_view text);

  /// Ends the text: returns what was held back and proved to be ordinary.
  std::string finish();

  /// True once a stop string was met; it and all that follows is left out.
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace canopy
