#pragma once
// A chat template: Jinja as jinja2 has it and Hugging Face sets it up, rendered within limits and seeing nothing but
// the values it is given.

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/value.h"

namespace canopy::jinja {

// What can be named: builtins.cpp (functions and tests), text_filters.cpp and list_filters.cpp (filters), methods.cpp
// (methods). Lists and dicts cannot be changed. What reaches for other templates (extends, include, import, from) and
// what is random (the filter random, lipsum()) is refused where it is reached. Whole numbers have up to 4300 digits.
// There are no bytes, sets or complex numbers.

struct Program;

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
  std::unique_ptr<const Program> program_;
};

}  // namespace canopy::jinja
