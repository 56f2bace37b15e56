// Loops, assignments, macros and the other statements. The expected results are those of Jinja 3.1 with the settings of
// Hugging Face.

#include "tests/text/jinja/jinja_test.h"

namespace canopy::jinja {
namespace {

TEST(JinjaStatement, LoopVariables) {
  expect_all({
      {R"j({% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('o','e') }};{% endfor %})j",
       "1032TrueFalse31o;2121FalseFalse332e;3210FalseTrue31o;"},
  });
}

TEST(JinjaStatement, LoopElseFilterBreak) {
  expect_all({
      {R"j({% for i in e %}x{% else %}none{% endfor %})j", "none"},
      {R"j({% for i in l if i > 1 %}{{ i }}{{ loop.length }}{% endfor %})j", "3222"},
      {R"j({% for i in l if i > 9 %}{% else %}E{% endfor %})j", "E"},
      {R"j({% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %})j",
       "0134"},
  });
}

TEST(JinjaStatement, LoopTargets) {
  expect_all({
      {R"j({% for a, b in [(1,2),(3,4)] %}{{ a }}{{ b }}{% endfor %})j", "1234"},
      {R"j({% for (a, b) in [(1,2)] %}{{ a }}{% endfor %})j", "1"},
      {R"j({% for c in 'hé' %}{{ c }},{% endfor %})j", "h,é,"},
      {R"j({% for k in d %}{{ k }}{% endfor %})j", "baitems"},
      {R"j({% for i in nope %}x{% endfor %})j", ""},
  });
}

TEST(JinjaStatement, LoopNeighbours) {
  expect_all({
      {R"j({% for m in ms %}{% if loop.nextitem is defined and loop.nextitem.role == 'user' %}N{% endif %}{% if not loop.first and loop.previtem.role == 'user' %}P{% endif %}{% endfor %})j",
       "NP"},
  });
}

TEST(JinjaStatement, Scopes) {
  expect_all({
      {R"j({% set q = 1 %}{% for i in l %}{% set q = q + i %}{{ q }}{% endfor %}{{ q }})j", "4231"},
      {R"j({% set ns = namespace(a=0) %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }})j", "6"},
      {R"j({% if true %}{% set w = 5 %}{% endif %}{{ w }})j", "5"},
  });
}

TEST(JinjaStatement, SetForms) {
  expect_all({
      {R"j({% set a, b = 1, 2 %}{{ a }}{{ b }})j", "12"},
      {R"j({% set blk %}in {{ x }}{% endset %}[{{ blk }}]|{% set blk | upper %}q{% endset %}{{ blk }})j", "[in abc]|Q"},
      {R"j({% set tt = 1, 2 %}{{ tt }})j", "(1, 2)"},
  });
}

TEST(JinjaStatement, Macros) {
  expect_all({
      {R"j({% macro m(a, b='B', c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, c=3) }}|{{ m() }}|{% macro v() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ v(1,2,k=3) }}|{% macro w(t) %}<{{ caller(t) }}>{% endmacro %}{% call(y) w('T') %}in{{ y }}{% endcall %})j",
       "1B1|1B3|B|(1, 2){'k': 3}|<inT>"},
  });
}

TEST(JinjaStatement, MacrosCallThemselvesAndSeeLaterValues) {
  expect_all({
      {R"j({% macro r(n) %}{{ n }}{% if n > 0 %}{{ r(n - 1) }}{% endif %}{% endmacro %}{{ r(3) }}|{% set g = 1 %}{% macro h() %}{{ g }}{% endmacro %}{% set g = 2 %}{{ h() }})j",
       "3210|2"},
  });
}

TEST(JinjaStatement, Blocks) {
  expect_all({
      {R"j({% filter upper %}a{{ x }}{% endfilter %})j", "AABC"},
      {R"j({% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }})j", "3"},
      {R"j({% raw %}{{ x }}{% endraw %}|{# c #}|{% generation %}g{% endgeneration %})j", "{{ x }}||g"},
  });
}

TEST(JinjaStatement, RecursiveLoops) {
  expect_all({
      {R"j({%- for i in [[1,[2]],[3]] recursive %}{% for j in [i] %}{{ loop.depth }}{% endfor %}{% if i is iterable %}({{ loop(i) }}){% else %}{{ i }}{% endif %}{% endfor %})j",
       "1(111(12))1(13)"},
  });
}

TEST(JinjaStatement, Joiner) {
  expect_all({
      {R"j({% set j = joiner(',') %}{% for i in l %}{{ j() }}{{ i }}{% endfor %})j", "3,1,2"},
  });
}

TEST(JinjaStatement, Dates) {
  expect_all({
      {R"j({{ strftime_now('%d %b %Y|%Y-%m-%d|%B %-d|%A %H:%M %I %p %j'[:40]) }})j",
       "05 Nov 2026|2026-11-05|November 5|Thursday 15:00 03 PM "},
  });
}

TEST(JinjaStatement, SignsInTags) {
  expect_all({
      {R"j({% for i in l -%} {{ i }} {%- endfor %})j", "312"},
      {R"j({%+ if t %}y{% endif +%} |{{- x -}} |)j", "y |abc|"},
  });
}

TEST(JinjaStatement, ElifElse) {
  expect_all({
      {R"j({% if 'a' is in x and not e %}1{% elif t %}2{% else %}3{% endif %}{% if e %}1{% elif z %}2{% else %}3{% endif %})j",
       "13"},
  });
}

}  // namespace
}  // namespace canopy::jinja
