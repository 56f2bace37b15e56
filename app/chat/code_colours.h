#pragma once
// What the parts of code are — keywords, strings, comments — and their colours. No parser of any language: what its
// words and marks say, a line at a time.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/state/theme.h"

namespace canopy::app {

enum class CodeKind : uint8_t {
  plain,
  keyword,
  type,
  string,
  number,  // and constants: true, null
  comment,
  function,  // a name before a bracket
  key,       // of a mapping; an attribute, a property, a variable that is marked as such
  added,     // a line of a diff
  removed,
};

/// Bytes [begin, end) of code that are of one kind. What lies between runs is plain.
struct CodeRun {
  uint32_t begin = 0, end = 0;
  CodeKind kind = CodeKind::plain;
};

/// What is open where a line begins.
struct CodeState {
  std::string_view until;  // what ends the string or comment around it; empty if there is none
  CodeKind kind = CodeKind::plain;
  bool in_tag = false;  // of HTML
};

/// The runs of code that may grow: its complete lines are looked at once.
class CodeColours {
 public:
  /// `language` as written behind the fence. Of a language that is not known everything is plain.
  void update(std::string_view code, std::string_view language);
  const std::vector<CodeRun>& runs() const { return runs_; }

 private:
  std::string done_, language_;  // the complete lines that were looked at
  std::vector<CodeRun> runs_;
  size_t done_runs_ = 0;
  CodeState state_;  // behind them
};

/// The colour of a kind on Theme::canvas.
Colour code_colour(const Theme& theme, CodeKind kind);

}  // namespace canopy::app
