#pragma once
// A chat template: the subset of Jinja that such templates use, as Hugging Face sets it up. It sees the values it is
// given and nothing else, and works within limits.
//
// Statements: for (if, else, recursive, break, continue), if, set (also as a block, also of attributes of a namespace),
// macro, call, filter, with, generation, raw. All operators. What can be named: functions.cpp (functions),
// *_filters.cpp (filters), value_tests.cpp (tests), methods.cpp (methods). Lists and dicts cannot be changed. There is
// no include, import, extends or block, and no dict with anything but strings and numbers as keys.

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/limits.h"
#include "engine/text/jinja/value.h"

namespace canopy::jinja {

struct Statement;

/// A stretch of a result whose bytes come from one side.
struct Segment {
  std::string text;
  Origin origin = Origin::markup;
};

class Template {
 public:
  /// Reads a template; `name` is for messages. Throws Error(bad_input) that names the line.
  static Template parse(std::string_view source, std::string name, const Limits& limits = {});

  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  /// The result of the template for some variables (keys that are strings), `now` being what strftime_now() tells.
  /// Bytes that come from Value::content() are content, wherever the template puts them; all others are markup.
  /// Neighbouring segments differ in origin, and none is empty. Throws Error(bad_input) that names the line, for what
  /// has no meaning, for a limit that is passed, and where the template itself refuses (raise_exception).
  std::vector<Segment> render(const Dict& values, const std::tm& now = {}) const;

 private:
  Template();

  std::string name_;
  Limits limits_;
  std::vector<Statement> statements_;
};

}  // namespace canopy::jinja
