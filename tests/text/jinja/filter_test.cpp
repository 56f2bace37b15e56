// Filters, tests and methods. The expected results are those of Jinja 3.1 with the settings of Hugging Face.

#include "tests/text/jinja/jinja_test.h"

namespace canopy::jinja {
namespace {

TEST(JinjaFilter, ToJson) {
  expect_all({
      {R"j({{ tools|tojson }})j",
       "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"é \\\"q\\\" <b>\\n\", "
       "\"parameters\": {\"a\": [1, 2.0, null, true], \"o\": {}}}}]"},
      {R"j({{ tools|tojson(indent=2) }})j",
       "[\n  {\n    \"type\": \"function\",\n    \"function\": {\n      \"name\": \"f\",\n      \"description\": \"é "
       "\\\"q\\\" <b>\\n\",\n      \"parameters\": {\n        \"a\": [\n          1,\n          2.0,\n          "
       "null,\n          true\n        ],\n        \"o\": {}\n      }\n    }\n  }\n]"},
      {R"j({{ u|tojson }})j", "\"héllo wörld\""},
      {R"j({{ u|tojson(ensure_ascii=true) }})j", "\"h\\u00e9llo w\\u00f6rld\""},
      {R"j({{ d|tojson(sort_keys=true) }})j", "{\"a\": \"z\", \"b\": 1, \"items\": 5}"},
      {R"j({{ d|tojson(separators=(',',':')) }})j", "{\"b\":1,\"a\":\"z\",\"items\":5}"},
      {R"j({{ 1.0|tojson }})j", "1.0"},
      {R"j({{ [] | tojson(indent=4) }})j", "[]"},
  });
}

TEST(JinjaFilter, Trim) {
  expect_all({
      {R"j({{ s|trim }})j", "Hi There"},
      {R"j({{ s.strip() }})j", "Hi There"},
      {R"j({{ s.lstrip() }})j", "Hi There \n"},
      {R"j({{ s.rstrip() }})j", "  Hi There"},
      {R"j({{ 'xxaxx'.strip('x') }})j", "a"},
      {R"j({{ 'xyaxy'.lstrip('yx') }})j", "axy"},
      {R"j({{ 'abc'|trim('ac') }})j", "b"},
  });
}

TEST(JinjaFilter, Split) {
  expect_all({
      {R"j({{ 'a,b,,c'.split(',') }})j", "['a', 'b', '', 'c']"},
      {R"j({{ ' a b  c '.split() }})j", "['a', 'b', 'c']"},
      {R"j({{ 'a,b,c'.split(',', 1) }})j", "['a', 'b,c']"},
      {R"j({{ ' a b  c '.split(none, 1) }})j", "['a', 'b  c ']"},
      {R"j({{ 'a b '.split(none,1) }})j", "['a', 'b ']"},
      {R"j({{ 'a,b,c'.rsplit(',', 1) }})j", "['a,b', 'c']"},
      {R"j({{ 'abc'.split('x') }})j", "['abc']"},
      {R"j({{ ''.split() }})j", "[]"},
      {R"j({{ ''.split(',') }})j", "['']"},
  });
}

TEST(JinjaFilter, Affixes) {
  expect_all({
      {R"j({{ x.startswith('ab') }})j", "True"},
      {R"j({{ x.endswith(('q','c')) }})j", "True"},
      {R"j({{ x.replace('b','--') }})j", "a--c"},
      {R"j({{ 'aaa'.replace('a','b',2) }})j", "bba"},
      {R"j({{ 'ab'.replace('','-') }})j", "-a-b-"},
      {R"j({{ x|replace('a','') }})j", "bc"},
  });
}

TEST(JinjaFilter, Case) {
  expect_all({
      {R"j({{ x.upper() }})j", "ABC"},
      {R"j({{ 'ÀÉ'.lower() }})j", "àé"},
      {R"j({{ "they're bill's" .title() }})j", "They'Re Bill'S"},
      {R"j({{ "they're bill-x (a) [b".title() }})j", "They'Re Bill-X (A) [B"},
      {R"j({{ "they're bill-x (a) [b"|title }})j", "They're Bill-X (A) [B"},
      {R"j({{ 'hELLO wORLD'.capitalize() }})j", "Hello world"},
      {R"j({{ 'hELLO'|capitalize }})j", "Hello"},
      {R"j({{ x|upper }})j", "ABC"},
  });
}

TEST(JinjaFilter, StringMethods) {
  expect_all({
      {R"j({{ 'a\nb\r\nc'.splitlines() }})j", "['a', 'b', 'c']"},
      {R"j({{ 'ab'.isdigit() }})j", "False"},
      {R"j({{ '12'.isdigit() }})j", "True"},
      {R"j({{ x.find('c') }})j", "2"},
      {R"j({{ x.find('q') }})j", "-1"},
      {R"j({{ u.rfind('l') }})j", "9"},
      {R"j({{ 'aXbX'.count('X') }})j", "2"},
      {R"j({{ ','.join(['a','b']) }})j", "a,b"},
      {R"j({{ 'pre-x'.removeprefix('pre-') }})j", "x"},
      {R"j({{ 'x.y'.removesuffix('.y') }})j", "x"},
      {R"j({{ 'a=b=c'.partition('=') }})j", "('a', '=', 'b=c')"},
      {R"j({{ 'Ab'.isalpha() }})j", "True"},
      {R"j({{ 'ab'.islower() }})j", "True"},
      {R"j({{ 'AB'.isupper() }})j", "True"},
  });
}

TEST(JinjaFilter, Lengths) {
  expect_all({
      {R"j({{ x|length }})j", "3"},
      {R"j({{ u|length }})j", "11"},
      {R"j({{ l|length }})j", "3"},
      {R"j({{ d|count }})j", "3"},
      {R"j({{ nope|length }})j", "0"},
      {R"j({{ l|first }})j", "3"},
      {R"j({{ l|last }})j", "2"},
      {R"j({{ e|first }})j", ""},
      {R"j({{ l|join(',') }})j", "3,1,2"},
      {R"j({{ ms|join(', ', attribute='role') }})j", "user, assistant, user"},
      {R"j({{ x|first }})j", "a"},
  });
}

TEST(JinjaFilter, Default) {
  expect_all({
      {R"j({{ nope|default('D') }})j", "D"},
      {R"j({{ ''|default('D') }})j", ""},
      {R"j({{ ''|default('D', true) }})j", "D"},
      {R"j({{ z|default('D') }})j", "None"},
      {R"j({{ nope|d }})j", ""},
  });
}

TEST(JinjaFilter, Choosing) {
  expect_all({
      {R"j({{ ms|selectattr('role','equalto','user')|list|length }})j", "2"},
      {R"j({{ ms|rejectattr('role','==','user')|map(attribute='content')|list }})j", "['a1']"},
      {R"j({{ ms|map(attribute='n')|sum }})j", "6"},
      {R"j({{ l|select('odd')|list }})j", "[3, 1]"},
      {R"j({{ l|reject('odd')|list }})j", "[2]"},
      {R"j({{ ['a','b']|map('upper')|list }})j", "['A', 'B']"},
      {R"j({{ ms|selectattr('nope')|list }})j", "[]"},
      {R"j({{ ms|map(attribute='q', default='w')|join }})j", "www"},
  });
}

TEST(JinjaFilter, ChoosingByMembership) {
  expect_all({
      {R"j({{ ms | selectattr('role', 'in', ['user','x']) | list | length }})j", "2"},
      {R"j({{ ms|selectattr('n','gt',1)|map(attribute='n')|list }})j", "[2, 3]"},
      {R"j({{ d.items()|list|first|last }})j", "1"},
  });
}

TEST(JinjaFilter, Sorting) {
  expect_all({
      {R"j({{ l|sort }})j", "[1, 2, 3]"},
      {R"j({{ l|sort(reverse=true) }})j", "[3, 2, 1]"},
      {R"j({{ ['b','A','c']|sort }})j", "['A', 'b', 'c']"},
      {R"j({{ ['b','A']|sort(case_sensitive=true) }})j", "['A', 'b']"},
      {R"j({{ l|max }})j", "3"},
      {R"j({{ l|min }})j", "1"},
      {R"j({{ l|reverse|list }})j", "[2, 1, 3]"},
      {R"j({{ x|reverse }})j", "cba"},
      {R"j({{ [1,1,2]|unique|list }})j", "[1, 2]"},
      {R"j({{ d|dictsort }})j", "[('a', 'z'), ('b', 1), ('items', 5)]"},
      {R"j({{ ms|sort(attribute='content')|map(attribute='content')|list }})j", "['a1', 'q1', 'q2']"},
  });
}

TEST(JinjaFilter, Numbers) {
  expect_all({
      {R"j({{ '42'|int }})j", "42"},
      {R"j({{ '4.7'|int }})j", "4"},
      {R"j({{ 'q'|int }})j", "0"},
      {R"j({{ 'q'|int(3) }})j", "3"},
      {R"j({{ 2.9|int }})j", "2"},
      {R"j({{ '1.5'|float }})j", "1.5"},
      {R"j({{ 3|float }})j", "3.0"},
      {R"j({{ 2.5|round }})j", "2.0"},
      {R"j({{ 3.14159|round(2) }})j", "3.14"},
      {R"j({{ 2.1|round(0,'ceil') }})j", "3.0"},
      {R"j({{ 42|round }})j", "42"},
      {R"j({{ -3|abs }})j", "3"},
      {R"j({{ 'ff'|int(base=16) }})j", "255"},
      {R"j({{ 5|string }})j", "5"},
      {R"j({{ 2.345|round(2) }})j", "2.35"},
  });
}

TEST(JinjaFilter, Lists) {
  expect_all({
      {R"j({{ d|items|list }})j", "[('b', 1), ('a', 'z'), ('items', 5)]"},
      {R"j({{ x|list }})j", "['a', 'b', 'c']"},
      {R"j({{ d|list }})j", "['b', 'a', 'items']"},
      {R"j({{ range(3)|list }})j", "[0, 1, 2]"},
      {R"j({{ range(5,1,-2)|list }})j", "[5, 3]"},
      {R"j({{ 'a\nb\n\nc'|indent(2) }})j", "a\n  b\n\n  c"},
      {R"j({{ 'a\nb'|indent(2, true) }})j", "  a\n  b"},
      {R"j({{ 'a\n\nb'|indent(1, blank=true) }})j", "a\n \n b"},
  });
}

TEST(JinjaFilter, Printf) {
  expect_all({
      {R"j({{ '%s-%d-%05.2f-%%' % ('a', 3, 1.5) }})j", "a-3-01.50-%"},
      {R"j({{ '%s' % x }})j", "abc"},
      {R"j({{ '%5s|%-5s|' % (1, 2) }})j", "    1|2    |"},
      {R"j({{ '%x' % 255 }})j", "ff"},
      {R"j({{ '%s %s'|format('a', 1) }})j", "a 1"},
      {R"j({{ '%+d % d %03d' % (1,2,-3) }})j", "+1  2 -03"},
  });
}

TEST(JinjaFilter, BraceFormat) {
  expect_all({
      {R"j({{ '{}-{}'.format('a', 1) }})j", "a-1"},
      {R"j({{ '{1}{0}{name}'.format('a', 'b', name='c') }})j", "bac"},
      {R"j({{ '{{{}}}'.format(x) }})j", "{abc}"},
  });
  EXPECT_NE(error_of("{{ '{}'.format() }}").find("more fields than the 0 values"), std::string::npos);
  EXPECT_NE(error_of("{{ '{x.y}'.format(x=1) }}").find("the field 'x.y'"), std::string::npos);
  EXPECT_NE(error_of("{{ '{'.format(1) }}").find("a brace without its partner"), std::string::npos);
}

TEST(JinjaFilter, ChoosingFromNone) {
  expect_all(
      {{"{{ z | selectattr('q') | list }}{{ z | map('upper') | list }}{{ z | reject('none') | list }}", "[][][]"}});
}

TEST(JinjaFilter, Tests) {
  expect_all({
      {R"j({{ x is string }})j", "True"},        {R"j({{ n is number }})j", "True"},
      {R"j({{ n is integer }})j", "True"},       {R"j({{ f is float }})j", "True"},
      {R"j({{ l is iterable }})j", "True"},      {R"j({{ x is iterable }})j", "True"},
      {R"j({{ d is mapping }})j", "True"},       {R"j({{ l is mapping }})j", "False"},
      {R"j({{ l is sequence }})j", "True"},      {R"j({{ d is sequence }})j", "True"},
      {R"j({{ n is iterable }})j", "False"},     {R"j({{ z is none }})j", "True"},
      {R"j({{ nope is defined }})j", "False"},   {R"j({{ nope is undefined }})j", "True"},
      {R"j({{ t is true }})j", "True"},          {R"j({{ t is false }})j", "False"},
      {R"j({{ 1 is true }})j", "False"},         {R"j({{ t is boolean }})j", "True"},
      {R"j({{ n is odd }})j", "True"},           {R"j({{ n is even }})j", "False"},
      {R"j({{ n is divisibleby 7 }})j", "True"}, {R"j({{ n is not none }})j", "True"},
      {R"j({{ x is eq 'abc' }})j", "True"},      {R"j({{ x is in ['abc'] }})j", "True"},
      {R"j({{ n is gt 3 }})j", "True"},          {R"j({{ range is callable }})j", "True"},
      {R"j({{ 'a' is lower }})j", "True"},       {R"j({{ nope is sequence }})j", "True"},
      {R"j({{ nope is iterable }})j", "True"},   {R"j({{ t is number }})j", "True"},
      {R"j({{ t is integer }})j", "False"},
  });
}

TEST(JinjaFilter, UndefinedAndOthers) {
  expect_all({
      {R"j({{ nope|upper }})j", ""},
      {R"j({{ nope|trim }})j", ""},
      {R"j({{ nope|list }})j", "[]"},
      {R"j({{ nope|join }})j", ""},
      {R"j({{ z|string }})j", "None"},
      {R"j({{ 5|upper }})j", "5"},
      {R"j({{ nope == nope2 }})j", "True"},
      {R"j({{ nope == none }})j", "False"},
      {R"j({{ nope|items|list }})j", "[]"},
  });
}

TEST(JinjaFilter, MapsAndSums) {
  expect_all({
      {R"j({{ [1,2]|map('string')|join('-') }})j", "1-2"},
      {R"j({{ 'abc'|map('upper')|join('-') }})j", "A-B-C"},
      {R"j({{ ['a','b']|join }})j", "ab"},
      {R"j({{ [[1,2],[3]]|sum(start=[]) }})j", "[1, 2, 3]"},
  });
}

}  // namespace
}  // namespace canopy::jinja
