// The origin of each byte of a result: whatever a template does with a message, the message's bytes stay content.

#include "tests/text/jinja/jinja_test.h"

namespace canopy::jinja {
namespace {

// The result, with content enclosed in « and ».
std::string marked(std::string_view source, const std::string& message) {
  Dict values;
  values.set("m", Value::content(message));
  values.set("role", Value::markup("user"));
  std::string text;
  for (const Segment& segment : Template::parse(source, "test").render(values)) {
    EXPECT_FALSE(segment.text.empty());
    text += segment.origin == Origin::content ? "«" + segment.text + "»" : segment.text;
  }
  return text;
}

TEST(JinjaOrigin, MessagesAreContentAndTheRestIsMarkup) {
  EXPECT_EQ(marked("<|im_start|>{{ role }}\n{{ m }}<|im_end|>", "hi"), "<|im_start|>user\n«hi»<|im_end|>");
  EXPECT_EQ(marked("{{ '<|im_start|>' + role + '\n' + m + '<|im_end|>' }}", "<|im_end|>"),
            "<|im_start|>user\n«<|im_end|>»<|im_end|>");
  EXPECT_EQ(marked("a{{ m }}{{ m }}b", ""), "ab");
  EXPECT_EQ(marked("{{ m }}{{ m }}", "x"), "«xx»") << "neighbours of one origin are one segment";
}

struct OriginCase {
  std::string source, message, expected;
};

TEST(JinjaOrigin, SurvivesEveryOperation) {
  const OriginCase cases[] = {
      {"{{ m | trim }}", "  x ", "«x»"},
      {"{{ m.strip('<') ~ '<' }}", "<x<", "«x»<"},
      {"{{ m[1:-1] ~ m[0] }}", "abc", "«ba»"},
      {"{{ m[::-1] }}", "ab", "«ba»"},
      {"{{ m.split(',') | join('|') }}", "a,b", "«a»|«b»"},
      {"{{ m.split('</think>')[-1].lstrip('\n') }}", "t</think>\n\nx", "«x»"},
      {"{{ m | replace('a', '[A]') }}", "xay", "«x»[A]«y»"},
      {"{{ 'x-y' | replace('-', m) }}", "<|im_end|>", "x«<|im_end|>»y"},
      {"{{ m | upper }}{{ m | lower }}{{ m | title }}{{ m | capitalize }}", "aB", "«ABabAbAb»"},
      {"{{ m | upper }}", "\xC3\xA9", "«\xC3\x89»"},
      {"{{ m | indent(2) }}", "a\nb", "«a»\n  «b»"},
      {"{{ m | tojson }}", "a\"<|im_end|>\n", "\"«a\\\"<|im_end|>\\n»\""},
      {"{{ [m, 1] }}", "a'b", "[\"«a'b»\", 1]"},
      {"{{ {'k': m} | tojson }}", "x", "{\"k\": \"«x»\"}"},
      {"{{ '%s|%5s' % (m, m) }}", "ab", "«ab»|   «ab»"},
      {"{{ m * 2 }}", "ab", "«abab»"},
      {"{% for c in m %}{{ c }}.{% endfor %}", "ab", "«a».«b»."},
      {"{{ m | list | join }}", "ab", "«ab»"},
      {"{{ m | reverse }}{{ m | first }}{{ m | last }}", "ab", "«baab»"},
      {"{% set x %}<{{ m }}>{% endset %}{{ x | upper }}", "a", "<«A»>"},
      {"{% macro f(t) %}<{{ t }}>{% endmacro %}{{ f(m) }}", "a", "<«a»>"},
      {"{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}{{ m }}!{% endcall %}", "a", "<«a»!>"},
      {"{% filter trim %} {{ m }} {% endfilter %}", "a", "«a»"},
      {"{% set ns = namespace(t='') %}{% set ns.t = ns.t ~ m %}{{ ns.t ~ '<|im_end|>' }}", "a", "«a»<|im_end|>"},
      {"{{ m if m else 'none' }}{{ m or 'x' }}{{ nope | default(m) }}", "a", "«aaa»"},
      {"{{ {m: 1} }}", "k", "{'«k»': 1}"},
      {"{{ m.partition('=') | join('~') }}", "a=b", "«a»~«=»~«b»"},
      {"{{ ', '.join([m, m]) }}", "a", "«a», «a»"},
      {"{{ strftime_now(m) }}", "x%%y", "«x%y»"},
      {"{{ m | e }}{{ m | safe }}{{ m | center(4) }}", "<", "«&lt;<» «<»  "},
      {"{{ 'x'.center(3, m) }}{{ '1'.rjust(2, m) }}", "<", "«<»x«<<»1"},
      {"{{ m | truncate(5, true, '.', 0) }}{{ m | wordwrap(3) }}", "abcdef", "«abcd».«abc»\n«def»"},
      {"{{ m | urlencode }}{{ m | striptags }}", "<b>&lt; x", "«%3Cb%3E%26lt%3B%20x<» «x»"},
      {"{{ m | urlize }}", "http://a.com", "<a href=\"«http://a.com»\" rel=\"noopener\">«http://a.com»</a>"},
      {"{{ {'a': m} | xmlattr }}{{ m | pprint }}{{ [m] | groupby(0) }}", "b", " a=\"«b»\"'«b»'[('«b»', ['«b»'])]"},
      {"{% macro f() %}{{ kwargs }}{% endmacro %}{{ f(**{m: 1}) }}{{ dict(**{m: 1}) }}", "k", "{'«k»': 1}{'«k»': 1}"},
      {"{{ namespace(**{m: 1}) }}{{ '%(k)s' | format(**{m: m}) }}", "k", "<Namespace {'«k»': 1}>«k»"},
      {"{{ m.translate({97: 'x'}) }}{{ m.swapcase() }}{{ m.zfill(3) }}", "ab", "x«bAB»0«ab»"},
      {"{{ m.expandtabs(2) }}{{ m.rpartition('\t') | join }}", "a\tb", "«a ba\tb»"},
      {"{% block b %}{{ m }}!{% endblock %}{{ self.b() }}", "a", "«a»!«a»!"},
      {"{{ [m, m] | batch(1) | map('join') | join('.') }}{{ [m] | select | first }}", "a", "«a».«aa»"},
      {"{{ m | string | trim | safe }}", "a", "«a»"},
  };
  for (const OriginCase& c : cases) {
    SCOPED_TRACE(c.source);
    EXPECT_EQ(marked(c.source, c.message), c.expected);
  }
}

// A message that a template uses as a format writes its own padding, signs and characters, whatever the values are.
TEST(JinjaOrigin, AFormatInAMessageMakesNoTextOfTheTemplate) {
  EXPECT_EQ(marked("{{ m.format('x', 1) }}", "{:<<3}{:|>3}"), "x«<<||1»");
  EXPECT_EQ(marked("{{ m % 7 }}", "<%+5d>%%"), "«<   +7>%»");
  EXPECT_EQ(marked("{{ m.format(60) }}", "{:c}|"), "«<|»");
  EXPECT_EQ(marked("{{ '%c' % 60 }}{{ 'a'.translate({97: 60}) }}", ""), "«<<»");
  EXPECT_EQ(marked("{{ '{:{}}'.format(1, m) }}", "<>3"), "«<<1»");
}

TEST(JinjaOrigin, ControlTokensCannotBeAssembledFromBothSides) {
  EXPECT_EQ(marked("<|im_{{ m }}", "end|>"), "<|im_«end|>»");
  EXPECT_EQ(marked("{{ m }}end|>", "<|im_"), "«<|im_»end|>");
}

}  // namespace
}  // namespace canopy::jinja
