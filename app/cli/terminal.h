#pragma once
// What goes to the user's streams.

#include <string>
#include <string_view>

#include "engine/client/engine_client.h"

namespace canopy::cli {

/// Writes text of a model to standard output at once. On a terminal, control characters are shown, not obeyed.
void write_reply_text(std::string_view text);

/// One line on standard error.
void note(std::string_view message);

/// A load's progress on one line of standard error, where that is a terminal; nothing elsewhere.
class ProgressLine {
 public:
  ~ProgressLine() { clear(); }
  void show(const LoadProgress& progress);
  void clear();

 private:
  size_t shown_ = 0;  // columns
};

/// "12.3", with that many digits behind the point.
std::string fixed(double value, int digits);

}  // namespace canopy::cli
