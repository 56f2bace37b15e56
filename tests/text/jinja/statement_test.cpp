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

// Items and conditions are looked at when the loop gets there.
TEST(JinjaStatement, LoopConditionsSeeWhatTheBodyDid) {
  expect_all({
      {R"j({% set ns = namespace(n=0) %}{% for i in range(9) if ns.n < 3 %}{% set ns.n = ns.n + 1 %}{{ i }}{{ loop.last }};{% endfor %})j",
       "0False;1False;2True;"},
      {R"j({% set ns = namespace(n=0) %}{% for i in range(4) if ns.n < 3 %}{{ loop.length if loop.first }}{% set ns.n = ns.n + 1 %}{{ i }}{% endfor %})j",
       "40123"},
      {R"j({% set ns = namespace(n=0) %}{% for i in l if ns.n == 0 %}{% set ns.n = 1 %}{{ i }}{{ loop.nextitem }}{% endfor %})j",
       "3"},
      {R"j({% for i in l if i > 1 %}{{ loop.index }}{{ loop.last }}{{ loop.revindex }}{{ loop.nextitem }}{{ loop.previtem }};{% endfor %})j",
       "1False22;2True13;"},
      {R"j({% for i in l | map('string') %}{{ loop.last }}{{ loop.length }}{{ i }};{% endfor %})j",
       "False33;False31;True32;"},
  });
}

TEST(JinjaStatement, ElseRunsUnlessATurnWasCompleted) {
  expect_all({
      {R"j({% for i in l %}{% break %}{% else %}none{% endfor %})j", "none"},
      {R"j({% for i in l %}{% continue %}{% else %}none{% endfor %})j", "none"},
      {R"j({% for i in l %}{% if loop.first %}{% continue %}{% endif %}{% break %}{% else %}none{% endfor %})j",
       "none"},
      {R"j({% for i in l %}{{ i }}{% if loop.index == 2 %}{% break %}{% endif %}{% else %}none{% endfor %})j", "31"},
      {R"j({% for i in l %}{{ i }}{% for j in [] %}{% else %}{% break %}{% endfor %}{% endfor %})j", "3"},
  });
}

TEST(JinjaStatement, LoopMethods) {
  expect_all({
      {R"j({% for m in ms %}{{ loop.changed(m.role) }}{{ loop.cycle('a', 'b') }}{% endfor %})j", "TrueaTruebTruea"},
      {R"j({% for i in [1, 1, 2] %}{% if loop.changed(i) %}c{% endif %}{% endfor %})j", "cc"},
      {R"j({% for i in l %}{{ loop }}{{ loop is callable }}{% break %}{% endfor %})j", "<LoopContext 1/3>True"},
  });
}

TEST(JinjaStatement, LoopTargets) {
  expect_all({
      {R"j({% for a, b in [(1,2),(3,4)] %}{{ a }}{{ b }}{% endfor %})j", "1234"},
      {R"j({% for (a, b) in [(1,2)] %}{{ a }}{% endfor %})j", "1"},
      {R"j({% for c in 'hé' %}{{ c }},{% endfor %})j", "h,é,"},
      {R"j({% for k in d %}{{ k }}{% endfor %})j", "baitems"},
      {R"j({% for i in nope %}x{% endfor %})j", ""},
      {R"j({% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %})j", "123"},
      {R"j({% for (a, b), c in [[[1, 2], 3]] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for a, in [[1]] %}{{ a }}{% endfor %})j",
       "1231"},
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
      {R"j({% set (a, b), c = (1, 2), 3 %}{{ a }}{{ b }}{{ c }})j", "123"},
      {R"j({% set ns = namespace(x=1) %}{% set ns.x, q = 5, 6 %}{{ ns.x }}{{ q }}{{ ns }})j", "56<Namespace {'x': 5}>"},
      {R"j({% set loop = 1 %}{{ loop }}{% set q: %}z{% endset %}{{ q }}{% print 1, 2 %})j", "1z12"},
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

TEST(JinjaStatement, NamedBlocks) {
  expect_all({
      {R"j({% block b %}x{{ x }}{% set q = 1 %}{% endblock b %}{{ q }}{{ self.b() }}{{ self.nope is defined }})j",
       "xabcxabcFalse"},
      {R"j({% for i in l %}{% block c %}[{{ i }}]{% endblock %}{% endfor %})j", "[][][]"},
      {R"j({% for i in l %}{% block c scoped %}[{{ i }}{{ loop.index }}]{% endblock %}{% endfor %})j", "[31][12][23]"},
  });
}

TEST(JinjaStatement, OtherTemplatesAreRefusedOnlyWhereTheyAreReached) {
  expect_all(
      {{R"j({% if false %}{% include 'x' %}{% extends 'y' %}{% import 'z' as q %}{% from 'q' import a with context %}{% endif %}ok)j",
        "ok"}});
}

TEST(JinjaStatement, Autoescape) {
  expect_all({
      {R"j({% autoescape true %}{{ '<' }}{{ '<' | safe }}{% set q %}<{{ '<' }}{% endset %}{{ q }}{{ ['<', '&'] | join(',') }}{% endautoescape %}{{ '<' }})j",
       "&lt;<<&lt;&lt;,&amp;<"},
      {R"j({% autoescape false %}{{ '<' }}{% set w = 1 %}{% endautoescape %}{{ w }})j", "<"},
      {R"j({% autoescape true %}{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m('<') }}{{ m('<') ~ '<' }}{% endautoescape %})j",
       "<&lt;><&lt;>&lt;"},
  });
}

TEST(JinjaStatement, CyclersAndPairs) {
  expect_all({
      {R"j({% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.current }})j",
       "abbaNonea"},
      {R"j({{ dict([('a', 1)]).a }}{{ dict([['x', 1]], y=2) }}{{ namespace([('a', 2)]).a }})j", "1{'x': 1, 'y': 2}2"},
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

TEST(JinjaStatement, DatesInEveryFormThatPythonKnows) {
  expect_all({
      {R"j({{ strftime_now('%j|%Z|%z|%c|%x|%X|%U|%W|%D|%R|%G-%V|%u|%C|%r|%k|%l|%P|%h|%f') }})j",
       "309|||Thu Nov  5 15:00:00 2026|11/05/26|15:00:00|44|44|11/05/26|15:00|2026-45|4|20|03:00:00 PM|15| "
       "3|pm|Nov|000000"},
      {R"j({{ strftime_now('%-d|%_d|%05d|%^a|%#p|%Ey|%Od|%Q|%') }})j", "5| 5|00005|THU|pm|26|05|%Q|%"},
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
