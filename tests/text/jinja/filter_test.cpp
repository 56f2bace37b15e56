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
  EXPECT_NE(error_of("{{ '{y}'.format(x=1) }}").find("the field 'y'"), std::string::npos);
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

TEST(JinjaFilter, GeneratorsAreUsedUp) {
  expect_all({
      {R"j({{ (ms | selectattr("role", "equalto", "tool")) is sequence }}{% if ms | selectattr("role", "equalto", "tool") %}yes{% endif %})j",
       "Falseyes"},
      {R"j({% set users = ms | selectattr("role", "equalto", "user") %}{% for m in users %}a{% endfor %}{% for m in users %}b{% endfor %})j",
       "aa"},
      {R"j({% set r = ms | map(attribute="role") %}{{ r | first }}|{{ r | join(",") }}|{{ r | join(",") }})j",
       "user|assistant,user|"},
      {R"j({% set g = l | reject("eq", 1) %}{{ 2 in g }}{{ g | list }})j", "True[]"},
      {R"j({{ l | reverse is sequence }}{{ l | reverse | list }}{{ (l | select) | reverse }}{{ d | reverse | list }}{{ nope | reverse | list }})j",
       "False[2, 1, 3][2, 1, 3]['items', 'a', 'b'][]"},
      {R"j({{ (l | unique) is iterable }}{{ (d | items) is sequence }}{{ (l | batch(2)) is string }}{{ (l | map("nope")) is callable }}{{ (l | map("nope")) is mapping }})j",
       "TrueFalseFalseFalseFalse"},
      {R"j({{ dict(ms | map(attribute="role") | unique | map("list") | map("first") | batch(2)) }}{{ "%s %s %s" | format(*(l | map("string"))) }})j",
       "{'u': 'a'}3 1 2"},
      {R"j({{ [1, 2, 3, 4, 5] | batch(2, "x") | list }}{{ [1, 2, 3, 4] | slice(3, "x") | list }}{{ [1, 2, 3, 4] | slice(2, "y") | list }}{{ [] | slice(2) | list }}{{ [] | batch(2) | list }})j",
       "[[1, 2], [3, 4], [5, 'x']][[1, 2], [3, 'x'], [4, 'x']][[1, 2, 'y'], [3, 4, 'y']][[], []][]"},
      {R"j({{ ms | map(attribute="nope.x", default="D") | list }})j", "['D', 'D', 'D']"},
  });
}

TEST(JinjaFilter, Grouping) {
  expect_all({
      {R"j({% for role, xs in ms | groupby("role") %}{{ role }}{{ xs | length }}{% endfor %}{% for g in ms | groupby("role") %}{{ g.grouper }}{{ g.list | length }}{% endfor %})j",
       "assistant1user2assistant1user2"},
      {R"j({{ [{"a": "X"}, {"a": "x"}, {"a": "y"}] | groupby("a") }}{{ [{"a": "X"}, {"a": "x"}] | groupby("a", case_sensitive=true) }}{{ [{"a": 1}, {}] | groupby("a", default=0) }})j",
       "[('X', [{'a': 'X'}, {'a': 'x'}]), ('y', [{'a': 'y'}])][('X', [{'a': 'X'}]), ('x', [{'a': 'x'}])][(0, [{}]), "
       "(1, [{'a': 1}])]"},
      {R"j({{ ms | sort(attribute="role,content") | map(attribute="content") | join(",") }}{{ [(1, "b"), (1, "a")] | sort(attribute="0,1") }}{{ {"a": 2, "b": 1} | dictsort(by="value") }})j",
       "a1,q1,q2[(1, 'a'), (1, 'b')][('b', 1), ('a', 2)]"},
  });
}

TEST(JinjaFilter, Html) {
  expect_all({
      {R"j({{ "<a href='x'>&" | e }}{{ 5 | escape }}{{ none | e }}{{ ["<"] | e }})j",
       "&lt;a href=&#39;x&#39;&gt;&amp;5None[&#39;&lt;&#39;]"},
      {R"j({{ ("<b>" | e) + "<i>" }}{{ ("<b>" | e) ~ "<i>" }}{{ "<b>" | e | e }}{{ "<b>" | e | forceescape }}{{ "<b>" | safe | e }})j",
       "&lt;b&gt;&lt;i&gt;&lt;b&gt;<i>&lt;b&gt;&amp;lt;b&amp;gt;<b>"},
      {R"j({{ ("a" | safe | upper) is escaped }}{{ "a" is escaped }}{{ ("a b" | safe).split()[0] is escaped }}{{ ("a" | safe | replace("a", "b")) is escaped }}{{ ["<" | safe] }})j",
       "TrueFalseTrueFalse[Markup('<')]"},
      {R"j({{ ("%s<" | safe) % "<" }}{{ ("{}" | safe).format("<b>") }}{{ ("-" | safe).join(["<", 1, ">" | safe]) }}{{ ("<" | safe).replace("<", "&") }})j",
       "&lt;<&lt;b&gt;&lt;-1->&amp;"},
      {R"j({{ "<p>a <!-- x > --> b &amp; c&lt;d &#65; &eacute; &copy</p>  e" | striptags }})j", "a b & c<d A é © e"},
      {R"j({{ {"class": "a b", "id": none, "y": "<"} | xmlattr }}|{{ {"a": 1} | xmlattr(false) }})j",
       " class=\"a b\" y=\"&lt;\"|a=\"1\""},
      {R"j({{ "a b/c?é" | urlencode }}{{ {"a": "b c/&", "d e": 1} | urlencode }}{{ [("a", "ü")] | urlencode }})j",
       "a%20b/c%3F%C3%A9a=b+c%2F%26&d+e=1a=%C3%BC"},
      {R"j({{ "see http://example.com/a?b=c, (www.foo.org) and me@x.com. mailto:a@b.co ftp://no.com foo.net x.y" | urlize }})j",
       "see <a href=\"http://example.com/a?b=c\" rel=\"noopener\">http://example.com/a?b=c</a>, (<a "
       "href=\"https://www.foo.org\" rel=\"noopener\">www.foo.org</a>) and <a href=\"mailto:me@x.com\">me@x.com</a>. "
       "<a href=\"mailto:a@b.co\">a@b.co</a> ftp://no.com <a href=\"https://foo.net\" rel=\"noopener\">foo.net</a> "
       "x.y"},
      {R"j({{ "http://example.com/long" | urlize(10, true, target="_blank", rel="me") }}{{ "tel:123 http://1.2.3.4:80/x http://localhost" | urlize(extra_schemes=["tel:"]) }})j",
       "<a href=\"http://example.com/long\" rel=\"me nofollow noopener\" target=\"_blank\">http://exa...</a><a "
       "href=\"tel:123\" rel=\"noopener\">tel:123</a> <a href=\"http://1.2.3.4:80/x\" "
       "rel=\"noopener\">http://1.2.3.4:80/x</a> <a href=\"http://localhost\" rel=\"noopener\">http://localhost</a>"},
  });
}

TEST(JinjaFilter, Layout) {
  expect_all({
      {R"j({{ "a long sentence of words" | truncate(12) }}|{{ "abcdefghijk" | truncate(5, true, "", 0) }}|{{ "abcdef" | truncate(3) }}|{{ "a long sentence of words" | truncate(12, true, "…") }})j",
       "a long...|abcde|abcdef|a long sent…"},
      {R"j({{ "the state-of-the-art foo--bar e-mail supercalifragilistic" | wordwrap(10) }})j",
       "the state-\nof-the-art\nfoo--bar\ne-mail sup\nercalifrag\nilistic"},
      {R"j({{ "aaa-bbb cccccccc" | wordwrap(5, false, "|", false) }}|{{ "a\n\nb  c   d\n   e f" | wordwrap(3) }})j",
       "aaa-bbb|cccccccc|a\n\nb\nc\nd\ne f"},
      {R"j({{ "it's a_b c-d é1" | wordcount }}{{ "ab" | center(5) }}|{{ "ab" | center(1) }}|{{ 100000 | filesizeformat }}{{ 1 | filesizeformat }}{{ 1024 | filesizeformat(true) }}{{ 999 | filesizeformat }}{{ 123456789012 | filesizeformat }})j",
       "6  ab |ab|100.0 kB1 Byte1.0 KiB999 Bytes123.5 GB"},
      {R"j({{ {"b": {"d": 1, "c": 2}, "a": []} | pprint }}{{ "a" | pprint }}{{ range(30) | list | pprint }})j",
       "{'a': [], 'b': {'c': 2, 'd': 1}}'a'[0,\n 1,\n 2,\n 3,\n 4,\n 5,\n 6,\n 7,\n 8,\n 9,\n 10,\n 11,\n 12,\n 13,\n "
       "14,\n 15,\n 16,\n 17,\n 18,\n 19,\n 20,\n 21,\n 22,\n 23,\n 24,\n 25,\n 26,\n 27,\n 28,\n 29]"},
      {R"j({{ {"k": ["b" * 40, {"z": "d d " * 30, "a": ("c" * 50,)}]} | pprint }})j",
       "{'k': ['bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',\n       {'a': "
       "('cccccccccccccccccccccccccccccccccccccccccccccccccc',),\n        'z': 'd d d d d d d d d d d d d d d d d d d "
       "d d d d d d d d d d d d d '\n             'd d d d d d d d d d d d d d d d d d d d d d d d d d d d '}]}"},
      {R"j({{ ("line one\nline two " * 8) | pprint }})j",
       "('line one\\n'\n 'line two line one\\n'\n 'line two line one\\n'\n 'line two line one\\n'\n 'line two line "
       "one\\n'\n 'line two line one\\n'\n 'line two line one\\n'\n 'line two line one\\n'\n 'line two ')"},
  });
}

TEST(JinjaFilter, Names) {
  expect_all({
      {R"j({{ "e" is filter }}{{ "nope" is filter }}{{ "odd" is test }}{{ "==" is test }}{{ "nope" is test }})j",
       "TrueFalseTrueTrueFalse"},
      {R"j({{ nope is callable }}{{ 5 is upper }}{{ none is lower }}{{ x.upper is callable }}{{ x is lower }})j",
       "TrueFalseFalseTrueTrue"},
  });
}

TEST(JinjaFilter, StringMethodsWithPlaces) {
  expect_all({
      {R"j({{ "abcabc".find("c", 3) }}{{ "abcabc".find("a", 1, 3) }}{{ "abc".find("", 4) }}{{ "héhé".find("h", 1) }}{{ "abcabc".rfind("c", 0, 4) }}{{ "abc".find("b", none, 1) }})j",
       "5-1-122-1"},
      {R"j({{ "abc".startswith("b", 1) }}{{ "abc".endswith("b", 0, 2) }}{{ "abc".startswith("", 4) }}{{ "aaa".count("a", 1, 2) }}{{ "abc".count("", 5) }}{{ "abcabc".index("b", 2) }}{{ "abcabc".rindex("b") }}{{ [1, 2, 1].index(1, 1) }})j",
       "TrueTrueFalse10442"},
  });
}

TEST(JinjaFilter, MoreStringMethods) {
  expect_all({
      {R"j({{ "7".zfill(3) }}{{ "-5".zfill(5) }}{{ "a".ljust(3, ".") }}{{ "a".rjust(3) }}{{ "abc".center(6, "*") }}{{ "ab".center(5, "*") }})j",
       "007-0005a..  a*abc****ab*"},
      {R"j({{ "aB".swapcase() }}{{ "ß".upper() }}{{ "ß".casefold() }}{{ "ﬁn".title() }}{{ "ΟΔΟΣ".lower() }}{{ "Σ".lower() }}{{ "中a b1c".title() }}{{ "ß" | title }})j",
       "AbSSssFinοδοςσ中A B1CSS"},
      {R"j({{ "1".isnumeric() }}{{ "½".isnumeric() }}{{ "²".isdigit() }}{{ "²".isdecimal() }}{{ "Ab".istitle() }}{{ "AB".istitle() }}{{ "".isascii() }}{{ "a_1".isidentifier() }}{{ "1a".isidentifier() }}{{ "a\n".isprintable() }}{{ "a1".islower() }})j",
       "TrueTrueTrueFalseTrueFalseTrueTrueFalseFalseTrue"},
      {R"j({{ "a/b/c".rpartition("/") }}{{ "abc".rpartition("-") }}{{ "a\tb".expandtabs(4) }}{{ "hello".translate("x".maketrans("el", "ip", "o")) }}{{ "abc".translate({97: "X", 98: none}) }}{{ "{a}".format_map({"a": 5}) }})j",
       "('a/b', '/', 'c')('', '', 'abc')a   bhippXc5"},
      {R"j({{ "a\u2028b\x85c\r\nd".splitlines() }}{{ d.fromkeys(["a"], 1) }}{{ d.keys().isdisjoint(["q"]) }}{{ (2.5).as_integer_ratio() }}{{ (255).bit_count() }}{{ (2.0).is_integer() }})j",
       "['a', 'b', 'c', 'd']{'a': 1}True(5, 2)8True"},
  });
}

TEST(JinjaFilter, PrintfForms) {
  expect_all({
      {R"j({{ "%(a)s %(b)05d" % {"a": "x", "b": 42} }}{{ "%(x)s" | format(x="é") }}{{ "%*d|%-*d|" % (5, 42, 5, 42) }}{{ "%.*f" % (2, 3.14159) }}{{ "%.3d" % 5 }})j",
       "x 00042é   42|42   |3.14005"},
      {R"j({{ "%e %E %g %G %o %X %#x %#o %c%c %a %i" % (12345.678, 0.00012, 1e-10, 1e20, 8, 255, 255, 8, "a", 98, "é", 3.9) }}{{ "abc" % {} }})j",
       "1.234568e+04 1.200000E-04 1e-10 1E+20 10 FF 0xff 0o10 ab '\\xe9' 3abc"},
  });
}

TEST(JinjaFilter, BraceForms) {
  expect_all({
      {R"j({{ "{:>4}|{:.2f}|{:,}".format("a", 1.5, 1234) }}{{ "{:5}|{:<5}|{:^5}|{:*^7}|{:é>3}".format("ab", 1, "d", "e", 1) }})j",
       "   a|1.50|1,234ab   |1    |  d  |***e***|éé1"},
      {R"j({{ "{:05d} {:+} {: } {:#x} {:X} {:o} {:b} {:=+8} {:c}".format(42, 5, 5, 255, 255, 8, 5, 5, 97) }})j",
       "00042 +5  5 0xff FF 10 101 +      5 a"},
      {R"j({{ "{:e} {:.3g} {:g} {:.1%} {:_} {:012,} {:08,.1f} {:_x}".format(12345.678, 1234.5, 0.0001, 0.123, 1234567, 1234567, 1234.5, 1048575) }})j",
       "1.234568e+04 1.23e+03 0.0001 12.3% 1_234_567 0,001,234,567 01,234.5 f_ffff"},
      {R"j({{ "{:.3} {:.2} {:.1} {:.4} {:5}".format("abcdef", 3.14159, 100.0, 123.0, 1.0) }})j",
       "abc 3.1 1e+02 123.0   1.0"},
      {R"j({{ "{0.a} {0[b]} {1[0]} {!r:>6}".replace("{!r", "{2!r").format({"a": 1, "b": 2}, [3, 4], "a") }}{{ "{:{}}|{:{w}.{p}f}".format("a", 5, 3.14159, w=8, p=2) }}{{ "{:d}{}".format(true, true) }})j",
       "1 2 3    'a'a    |    3.141True"},
  });
}

TEST(JinjaFilter, NumbersOfOtherBases) {
  expect_all({
      {R"j({{ "0x10" | int(0, 16) }}{{ "0o17" | int(0, 0) }}{{ "010" | int(0, 0) }}{{ "-0x10" | int(0, 0) }}{{ "1_000" | int }}{{ "1__0" | int(5) }}{{ "inf" | int(3) }}{{ "10" | int(0, 99) }}{{ "1e999" | float }})j",
       "161510-1610005310inf"},
      {R"j({{ 15 | round(-1) }}{{ 25 | round(-1) }}{{ (10**30 + 5) | round(-1) }}{{ 0b1_01 }}{{ 0o17 }})j",
       "20201000000000000000000000000000000515"},
  });
}

// Every name that jinja2 3.1 brings, for templates may use any of them: what is known here, and what is refused with a
// reason of its own.
TEST(JinjaFilter, EveryNameOfJinja2IsKnown) {
  const char* filters[] = {"abs",    "attr",       "batch",       "capitalize", "center",   "count",
                           "d",      "default",    "dictsort",    "e",          "escape",   "filesizeformat",
                           "first",  "float",      "forceescape", "format",     "groupby",  "indent",
                           "int",    "items",      "join",        "last",       "length",   "list",
                           "lower",  "map",        "max",         "min",        "pprint",   "random",
                           "reject", "rejectattr", "replace",     "reverse",    "round",    "safe",
                           "select", "selectattr", "slice",       "sort",       "string",   "striptags",
                           "sum",    "title",      "tojson",      "trim",       "truncate", "unique",
                           "upper",  "urlencode",  "urlize",      "wordcount",  "wordwrap", "xmlattr"};
  const char* tests[] = {"!=",       "<",        "<=",          "==",       ">",           ">=",       "boolean",
                         "callable", "defined",  "divisibleby", "eq",       "equalto",     "escaped",  "even",
                         "false",    "filter",   "float",       "ge",       "greaterthan", "gt",       "in",
                         "integer",  "iterable", "le",          "lessthan", "lower",       "lt",       "mapping",
                         "ne",       "none",     "number",      "odd",      "sameas",      "sequence", "string",
                         "test",     "true",     "undefined",   "upper"};
  const char* functions[] = {"cycler", "dict", "joiner", "lipsum", "namespace", "range"};
  for (const std::string name : filters) {
    EXPECT_EQ(rendered("{{ '" + name + "' is filter }}"), "True") << name;
    EXPECT_EQ(error_of("{{ x | " + name + " }}").find("There is no filter"), std::string::npos) << name;
  }
  for (const std::string name : tests) EXPECT_EQ(rendered("{{ '" + name + "' is test }}"), "True") << name;
  for (const std::string name : functions) EXPECT_EQ(rendered("{{ " + name + " is defined }}"), "True") << name;
}

// The methods of Python's types, less those that would change a value and those about bytes.
TEST(JinjaFilter, EveryMethodOfPythonIsKnown) {
  const std::pair<std::string, std::vector<std::string>> methods[] = {
      {"x", {"capitalize", "casefold",     "center",       "count",   "encode",     "endswith",    "expandtabs",
             "find",       "format",       "format_map",   "index",   "isalnum",    "isalpha",     "isascii",
             "isdecimal",  "isdigit",      "isidentifier", "islower", "isnumeric",  "isprintable", "isspace",
             "istitle",    "isupper",      "join",         "ljust",   "lower",      "lstrip",      "maketrans",
             "partition",  "removeprefix", "removesuffix", "replace", "rfind",      "rindex",      "rjust",
             "rpartition", "rsplit",       "rstrip",       "split",   "splitlines", "startswith",  "strip",
             "swapcase",   "title",        "translate",    "upper",   "zfill"}},
      {"d", {"copy", "fromkeys", "get", "items", "keys", "values"}},
      {"l", {"copy", "count", "index"}},
      {"(1,)", {"count", "index"}},
      {"(1)", {"as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator", "imag", "numerator", "real"}},
      {"(1.0)", {"as_integer_ratio", "conjugate", "imag", "is_integer", "real"}},
  };
  for (const auto& [value, names] : methods) {
    for (const std::string& name : names)
      EXPECT_EQ(rendered("{{ " + value + "." + name + " is defined }}"), "True") << name;
  }
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
