// Templates that use too much are stopped soon, by an error that names the limit.

#include "tests/text/jinja/jinja_test.h"
#include "tests/text/jinja/work.h"

namespace canopy::jinja {
namespace {

std::string repeated(std::string_view text, size_t times) {
  std::string result;
  for (size_t i = 0; i < times; ++i) result += text;
  return result;
}

/// Checks that a limit is hit, and that work which is not counted as steps or text is small.
void expect_limit(const std::string& source, std::string_view message, const Json& values = test_values()) {
  SCOPED_TRACE(source.substr(0, 120));
  const Work work;
  const std::string error = error_of(source, values);
  EXPECT_LT(work.of_all_steps(), most_work);
  EXPECT_NE(error.find(message), std::string::npos) << "the error is: " << error;
}

TEST(JinjaLimits, Steps) {
  constexpr auto message = "more than 1000000 steps";
  expect_limit("{% for i in range(10**9) %}{% endfor %}", message);
  expect_limit("{% for a in range(2000) %}{% for b in range(2000) %}{% endfor %}{% endfor %}", message);
  expect_limit("{{ range(200000) | sort }}", message);
  expect_limit("{{ range(100000) | unique | list }}", message);
  expect_limit("{{ [0] * 10**12 }}", message);
  // 60 levels of lists, each of which contains the one below twice.
  expect_limit(
      "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
      "{{ ns.x | tojson }}",
      message);
}

TEST(JinjaLimits, StepsOfGeneratorsAndLargeNumbers) {
  constexpr auto message = "more than 1000000 steps";
  expect_limit("{{ range(2000) | map('string') | map('int') | list | length }}{{ [] | slice(10**9) | list }}", message);
  expect_limit("{{ [1] | batch(10**9, 'x') | list }}", message);
  expect_limit("{% for i in range(10**6) %}{% set x = 10**4000 // 3**2000 %}{% endfor %}", message);
  expect_limit("{% for i in range(10**6) %}{% set x = (10**4000) | string %}{% endfor %}", message);
  expect_limit("{% set c = cycler(1, 2) %}{% for i in range(10**6) %}{% set x = c.next() %}{% endfor %}", message);
}

TEST(JinjaLimits, Text) {
  constexpr auto message = "more than 134217728 bytes of text";
  const Json values = {{"big", repeated("a", 4'000'000)}};
  expect_limit("{{ 'a' * 10**12 }}", message);
  expect_limit("{% set ns = namespace(s='a') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
               message);
  expect_limit("{% for i in range(100000) %}{% if big.find('b') > 0 %}{% endif %}{% endfor %}", message, values);
  expect_limit("{{ (big ~ 'x').find(big[:2000000] ~ 'b') }}", message, values);
  expect_limit("{{ big.replace('', big) }}", message, values);
  expect_limit("{% for i in range(1000) %}{% set x = big.strip('a') %}{% endfor %}", message, values);
  expect_limit("{% for i in range(1000) %}{% set x = big | upper %}{% endfor %}", message, values);
  expect_limit("{{ range(100000) | join(big) }}", message, values);
  expect_limit("{{ 'a'.center(10**12) }}", message);
  expect_limit("{% for i in range(1000) %}{% set x = ('-' * 100000) | wordwrap(7) %}{% endfor %}", message);
}

TEST(JinjaLimits, Output) {
  expect_limit("{% for i in range(10000) %}{{ 'a' * 1000 }}{% endfor %}", "result has more than 4194304 bytes");
}

TEST(JinjaLimits, Depth) {
  expect_limit("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "deeper than 64 levels");
  expect_limit("{% for i in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}", "deeper than 64 levels");
  expect_limit("{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x] %}{% endfor %}",
               "deeper than 64 levels");
  expect_limit("{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x].count %}{% endfor %}",
               "deeper than 64 levels");
  // Generators over generators, and one that comes to itself by way of a namespace.
  expect_limit(
      "{% set ns = namespace(g=[1]) %}{% for i in range(99) %}{% set ns.g = ns.g | map('string') %}{% endfor %}",
      "deeper than 64 levels");
  expect_limit(
      "{% set ns = namespace(of=[], g=[1]) %}{% for i in range(999) %}{% set inner = namespace(g=ns.g) %}"
      "{% set ns.g = [inner] | map(attribute='g') | map('list') %}{% endfor %}{{ ns.g | list }}",
      "deeper than 64 levels");
  expect_limit("{% set ns = namespace() %}{% set ns.g = [ns] | map(attribute='g') | map('list') %}{{ ns.g | list }}",
               "A generator asks itself for its next item.");
  expect_limit("{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns }}", "deeper than 64 levels");
  expect_limit("{% block b %}{{ self.b() }}{% endblock %}", "deeper than 64 levels");
  expect_limit("{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}", "deeper than 200 levels");
  expect_limit("{{ " + repeated("not ", 5000) + "1 }}", "deeper than 200 levels");
  expect_limit("{{ " + repeated("-", 5000) + "1 }}", "deeper than 200 levels");
  expect_limit("{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}", "deeper than 200 levels");
  expect_limit(repeated("{% if 1 %}", 5000), "deeper than 200 levels");
  expect_limit("{{ 1" + repeated("+1", 20000) + " }}", "more than 5000 parts");
  expect_limit("{{ x" + repeated(".a", 20000) + " }}", "more than 5000 parts");
  expect_limit("{{ 1" + repeated("+1", 1800) + " }}", "More than 1500 expressions and blocks are inside each other");
}

TEST(JinjaLimits, Size) {
  expect_limit(repeated(" ", (1 << 20) + 1), "The template has 1048577 bytes; allowed are 1048576");
}

TEST(JinjaLimits, WhatHoldsItselfIsReleased) {  // checked by LeakSanitizer in the preset asan
  EXPECT_EQ(rendered("{% set ns = namespace() %}{% set ns.me = ns %}{% macro m() %}{% endmacro %}{% set ns.m = m %}"
                     "{% for i in range(9) %}{% for x in [ns.l] %}{% set ns.l = loop %}{% endfor %}{% endfor %}ok"),
            "ok");
  EXPECT_NE(error_of("{% set ns = namespace() %}{% set ns.me = ns %}{{ 1 / 0 }}"), "");
  EXPECT_EQ(rendered("{% set ns = namespace() %}{% set ns.g = [ns] | select %}{% for i in l if ns.g %}"
                     "{% set ns.l = loop %}{% set x = loop.changed(loop) %}{% set g = [loop, ns] | map('string') %}"
                     "{% endfor %}{% set ns.s = self %}ok"),
            "ok");
  EXPECT_NE(
      error_of("{% set ns = namespace() %}{% for i in l %}{% set ns.l = loop %}{% endfor %}{{ ns.l.changed(ns.l) }}"),
      "");
}

TEST(JinjaLimits, AreTheCallersToSet) {
  Limits limits;
  limits.output_bytes = 3;
  EXPECT_EQ(rendered("abc", test_values(), limits), "abc");
  EXPECT_NE(error_of("abcd", test_values(), limits).find("more than 3 bytes"), std::string::npos);
}

TEST(JinjaLimits, ALongMessageFits) {
  const Json values = {{"big", repeated("a", 4'000'000)}};
  EXPECT_EQ(
      rendered("{% for m in [big] %}{{ '<|im_start|>' + m.split('</think>')[-1] | trim + '<|im_end|>' }}{% endfor %}",
               values)
          .size(),
      4'000'022u);
}

}  // namespace
}  // namespace canopy::jinja
