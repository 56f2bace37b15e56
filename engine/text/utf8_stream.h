#pragma once
// Bytes in, whole UTF-8 characters out. Tokens end inside characters; a reader must never see half of one.

#include <string>
#include <string_view>

namespace canopy {

class Utf8Stream {
 public:
  /// Takes bytes and returns the text that is complete by now: valid UTF-8. Invalid bytes become U+FFFD, one for each
  /// maximal part of a character (the Unicode standard's recommendation); the start of a character that may still
  /// become whole is held back. However the bytes are cut into calls, the concatenated text is the same.
  std::string push(std::string_view bytes);

  /// Ends the text: what was held back becomes U+FFFD. The stream is then as new.
  std::string finish();

  /// Bytes held back: 0 to 3.
  size_t pending() const { return held_.size(); }

 private:
  std::string held_;
};

}  // namespace canopy
