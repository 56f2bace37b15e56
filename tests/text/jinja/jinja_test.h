#pragma once

#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/text/jinja/template.h"
#include "tests/text/jinja/json_values.h"

namespace canopy::jinja {

/// The values that templates in these tests see.
inline const Json& test_values() {
  static const Json values = Json::parse(R"j({
    "x": "abc", "s": "  Hi There \n", "u": "héllo wörld", "n": 7, "f": 2.5, "l": [3, 1, 2],
    "d": {"b": 1, "a": "z", "items": 5}, "e": [], "t": true, "z": null,
    "ms": [{"role": "user", "content": "q1", "n": 1}, {"role": "assistant", "content": "a1", "n": 2},
           {"role": "user", "content": "q2", "n": 3}],
    "tools": [{"type": "function", "function": {"name": "f", "description": "é \"q\" <b>\n",
               "parameters": {"a": [1, 2.0, null, true], "o": {}}}}]
  })j");
  return values;
}

/// Thursday, 5 November 2026, 15:00:00.
inline std::tm test_time() {
  std::tm time{};
  time.tm_year = 126;
  time.tm_mon = 10;
  time.tm_mday = 5;
  time.tm_wday = 4;
  time.tm_hour = 15;
  return time;
}

inline std::string text_of(const std::vector<Segment>& segments) {
  std::string text;
  for (const Segment& segment : segments) text += segment.text;
  return text;
}

inline std::string rendered(std::string_view source, const Json& values = test_values(), const Limits& limits = {}) {
  return text_of(Template::parse(source, "test", limits).render(to_dict(values), test_time()));
}

inline void expect_all(const std::vector<std::pair<std::string, std::string>>& cases) {
  for (const auto& [source, expected] : cases) {
    SCOPED_TRACE(source);
    try {
      EXPECT_EQ(rendered(source), expected);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

/// The message of the error from reading or rendering a template; empty if there is none.
inline std::string error_of(std::string_view source, const Json& values = test_values(), const Limits& limits = {}) {
  try {
    rendered(source, values, limits);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace canopy::jinja
