// Operators, literals, lookups and slices. The expected results are those of Jinja 3.1 with the settings of Hugging
// Face.

#include "tests/text/jinja/jinja_test.h"

namespace canopy::jinja {
namespace {

TEST(JinjaExpression, Arithmetic) {
  expect_all({
      {R"j({{ 1 + 2 * 3 }})j", "7"},
      {R"j({{ 7 // 2 }})j", "3"},
      {R"j({{ -7 // 2 }})j", "-4"},
      {R"j({{ -7 % 3 }})j", "2"},
      {R"j({{ 7 / 2 }})j", "3.5"},
      {R"j({{ 2 ** 3 ** 2 }})j", "64"},
      {R"j({{ 1.0 }})j", "1.0"},
      {R"j({{ 1e20 }})j", "1e+20"},
      {R"j({{ 0.1 + 0.2 }})j", "0.30000000000000004"},
  });
}

TEST(JinjaExpression, WholeNumbersBeyond64Bits) {
  expect_all({
      {R"j({{ 2 ** 64 }} {{ -2 ** 63 - 1 }} {{ 9223372036854775807 + 1 }} {{ 0xffffffffffffffffffff }})j",
       "18446744073709551616 -9223372036854775809 9223372036854775808 1208925819614629174706175"},
      {R"j({{ 12345678901234567890 * 98765432109876543210 }})j", "1219326311370217952237463801111263526900"},
      {R"j({{ 10**40 // 7 }} {{ -10**40 // 7 }} {{ -10**40 % 7 }} {{ 10**40 // -12345678901234567890123 }})j",
       "1428571428571428571428571428571428571428 1428571428571428571428571428571428571428 4 -810000007290000067"},
      {R"j({{ 10**40 % -12345678901234567890123 }})j", "-8160116301712718638241"},
      {R"j({{ 2**64 / 3 }} {{ 10**400 / 10**399 }} {{ 7 / 2**70 }} {{ 9007199254740993 / 1 }} {{ 2**64 * 1.5 }})j",
       "6.148914691236517e+18 10.0 5.929230630780102e-21 9007199254740992.0 2.7670116110564327e+19"},
      {R"j({{ 2**53 + 1 == 9007199254740992.0 }} {{ 2**64 > 1e19 }} {{ [2**64, 5, -2**70] | sort }})j",
       "False True [5, 18446744073709551616, 1180591620717411303424]"},
      {R"j({{ 2**64 is integer }}{{ (2**64) is even }}{{ (2**64) | tojson }}{{ '%x' % (2**65) }}{{ '{:,}'.format(2**64) }})j",
       "2True184467440737095516162000000000000000018,446,744,073,709,551,616"},
      {R"j({{ '18446744073709551616' | int }}{{ 1e20 | int }}{{ (-2**64) | abs }}{{ (2**64).bit_length() }})j",
       "184467440737095516161000000000000000000001844674407370955161665"},
      {R"j({{ (10**4299) | string | length }})j", "4300"},
  });
}

TEST(JinjaExpression, FloatsDivideAsInPython) {
  expect_all({{R"j({{ 7.0 // 0.1 }} {{ -7.5 % 2 }} {{ 7.5 // -2 }} {{ 6.0 % -3 }} {{ 2 ** -1 }} {{ 1e400 }})j",
               "69.0 0.5 -4.0 -0.0 0.5 inf"}});
}

TEST(JinjaExpression, KindsOfSequences) {
  expect_all({
      {R"j({{ range(3) }}{{ range(1, 9, 3) }}{{ range(9)[2:6:2] }}{{ range(3) == [0, 1, 2] }}{{ range(3) is sequence }})j",
       "range(0, 3)range(1, 9, 3)range(2, 6, 2)FalseTrue"},
      {R"j({{ d.keys() }}{{ d.values() }}{{ d.items() }})j",
       "dict_keys(['b', 'a', 'items'])dict_values([1, 'z', 5])dict_items([('b', 1), ('a', 'z'), ('items', 5)])"},
      {R"j({{ d.keys() is sequence }}{{ d.keys()[0] }}{{ d.keys() | length }}{{ d.keys() | last }}{{ 'a' in d.keys() }})j",
       "False3itemsTrue"},
      {R"j({{ {(1, 2): 3}[1, 2] }}{{ l.append is defined }}{{ (1, 2).count(1) }})j", "3False1"},
  });
}

TEST(JinjaExpression, Concatenation) {
  expect_all({
      {R"j({{ 'a' ~ 1 ~ none ~ true ~ 1.5 }})j", "a1NoneTrue1.5"},
      {R"j({{ 'a' + 'b' }})j", "ab"},
      {R"j({{ [1] + [2] }})j", "[1, 2]"},
      {R"j({{ 'ab' * 2 }})j", "abab"},
      {R"j({{ (1,2) + (3,) }})j", "(1, 2, 3)"},
  });
}

TEST(JinjaExpression, Comparison) {
  expect_all({
      {R"j({{ 1 < 2 < 3 }})j", "True"},
      {R"j({{ 1 < 2 > 3 }})j", "False"},
      {R"j({{ 'a' < 'b' }})j", "True"},
      {R"j({{ 1 == 1.0 }})j", "True"},
      {R"j({{ true == 1 }})j", "True"},
      {R"j({{ [1,2] == [1,2] }})j", "True"},
      {R"j({{ [1] == (1,) }})j", "False"},
      {R"j({{ none == false }})j", "False"},
  });
}

TEST(JinjaExpression, Membership) {
  expect_all({
      {R"j({{ 'b' in x }})j", "True"},
      {R"j({{ 'q' not in x }})j", "True"},
      {R"j({{ 3 in l }})j", "True"},
      {R"j({{ 'a' in d }})j", "True"},
      {R"j({{ nope in l }})j", "False"},
      {R"j({{ 'a' in nope }})j", "False"},
  });
}

TEST(JinjaExpression, InlineIf) {
  expect_all({
      {R"j({{ x if t else 'no' }})j", "abc"},
      {R"j({{ x if not t }})j", ""},
      {R"j({{ 'a' if e else 'b' if z else 'c' }})j", "c"},
  });
}

TEST(JinjaExpression, Logic) {
  expect_all({
      {R"j({{ x or 'q' }})j", "abc"},
      {R"j({{ e or 'q' }})j", "q"},
      {R"j({{ e and 'q' }})j", "[]"},
      {R"j({{ not e }})j", "True"},
      {R"j({{ not x is string }})j", "False"},
  });
}

TEST(JinjaExpression, ItemsAndSlices) {
  expect_all({
      {R"j({{ l[0] }})j", "3"},
      {R"j({{ l[-1] }})j", "2"},
      {R"j({{ l[9] }})j", ""},
      {R"j({{ l[1:] }})j", "[1, 2]"},
      {R"j({{ l[::-1] }})j", "[2, 1, 3]"},
      {R"j({{ x[::-1] }})j", "cba"},
      {R"j({{ x[1] }})j", "b"},
      {R"j({{ x[-2:] }})j", "bc"},
      {R"j({{ u[1:4] }})j", "éll"},
      {R"j({{ l[:-1] }})j", "[3, 1]"},
      {R"j({{ l[5:] }})j", "[]"},
      {R"j({{ l[-9:2] }})j", "[3, 1]"},
      {R"j({{ x[2:0:-1] }})j", "cb"},
      {R"j({{ l.0 }})j", "3"},
  });
}

TEST(JinjaExpression, Dicts) {
  expect_all({
      {R"j({{ d.a }})j", "z"},
      {R"j({{ d['b'] }})j", "1"},
      {R"j({{ d.nope }})j", ""},
      {R"j({{ d['items'] }})j", "5"},
      {R"j({{ d.get('a') }})j", "z"},
      {R"j({{ d.get('q', 4) }})j", "4"},
      {R"j({{ d.keys()|list }})j", "['b', 'a', 'items']"},
      {R"j({{ d.values()|list }}|{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %})j",
       "[1, 'z', 5]|b=1;a=z;items=5;"},
  });
}

TEST(JinjaExpression, PrintsAsPythonDoes) {
  expect_all({
      {R"j({{ d }})j", "{'b': 1, 'a': 'z', 'items': 5}"},
      {R"j({{ l }})j", "[3, 1, 2]"},
      {R"j({{ ms[0] }})j", "{'role': 'user', 'content': 'q1', 'n': 1}"},
      {R"j({{ (1,) }})j", "(1,)"},
      {R"j({{ ['a"b', "c'd", 'é', '\n\\'] }})j", "['a\"b', \"c'd\", 'é', '\\n\\\\']"},
      {R"j({{ none }})j", "None"},
      {R"j({{ true }})j", "True"},
  });
}

TEST(JinjaExpression, Floats) {
  expect_all({
      {R"j({{ 10000000000000000.0 }})j", "1e+16"},
      {R"j({{ 1e16 }})j", "1e+16"},
      {R"j({{ 123456789.125 }})j", "123456789.125"},
      {R"j({{ 1e-5 }})j", "1e-05"},
      {R"j({{ 0.0001 }})j", "0.0001"},
      {R"j({{ 1e22 }})j", "1e+22"},
      {R"j({{ 5e-324 }})j", "5e-324"},
      {R"j({{ -0.0 }})j", "-0.0"},
      {R"j({{ 100.0 }})j", "100.0"},
  });
}

TEST(JinjaExpression, Literals) {
  expect_all({
      {R"j({{ dict(a=1)|tojson }})j", "{\"a\": 1}"},
      {R"j({{ {'a': 1, 'b': {'c': [1]}}|tojson }})j", "{\"a\": 1, \"b\": {\"c\": [1]}}"},
      {R"j({{ {1: 2} }})j", "{1: 2}"},
      {R"j({{ 'a' 'b' }})j", "ab"},
      {R"j({{ '\x41\u00e9\n\q\101' }})j", "Aé\n\\qA"},
      {R"j({{ 1_000 }})j", "1000"},
      {R"j({{ 0x1f }})j", "31"},
  });
}

TEST(JinjaExpression, Precedence) {
  expect_all({
      {R"j({{ (-1)|abs }})j", "1"},
      {R"j({{ 'a'|upper ~ 'b' }})j", "Ab"},
      {R"j({{ 'a' ~ 'b'|upper }})j", "aB"},
      {R"j({{ 1 + 2|string|length }})j", "2"},
      {R"j({{ not x in l }})j", "True"},
      {R"j({{ x is string and n is number }})j", "True"},
      {R"j({{ x is defined and x }})j", "abc"},
  });
}

TEST(JinjaExpression, TrailingCommasAndIndexing) {
  expect_all({
      {R"j({{ [1,2,3,]|length }})j", "3"},
      {R"j({{ {'a':1,}|length }})j", "1"},
      {R"j({{ range(3)[1] }})j", "1"},
      {R"j({{ ms[-1]['content'] }})j", "q2"},
      {R"j({{ ms[1:]|length }})j", "2"},
      {R"j({{ ms|last }})j", "{'role': 'user', 'content': 'q2', 'n': 3}"},
      {R"j({{ (ms|first).role }})j", "user"},
  });
}

TEST(JinjaExpression, UndefinedPrintsNothing) {
  expect_all({
      {R"j({{ x.q }})j", ""},
      {R"j({{ nope }})j", ""},
      {R"j({{ z }})j", "None"},
      {R"j({{ nope ~ 'x' }})j", "x"},
  });
}

TEST(JinjaExpression, Choices) {
  expect_all({
      {R"j({{ "a" if nope else "b" }})j", "b"},
      {R"j({{ (x, n)[0] }})j", "abc"},
      {R"j({{ x[0:1] ~ x[-1] }})j", "ac"},
      {R"j({{ 3 is divisibleby(3) }})j", "True"},
      {R"j({{ 3 is not divisibleby 2 }})j", "True"},
  });
}

}  // namespace
}  // namespace canopy::jinja
