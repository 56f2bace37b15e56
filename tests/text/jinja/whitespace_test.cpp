// White space after trim_blocks, lstrip_blocks and the signs in tags.

#include "tests/text/jinja/jinja_test.h"

namespace canopy::jinja {
namespace {

TEST(JinjaWhitespace, Control) {
  expect_all({
      {"{% if true %}\n  a\n{% endif %}\n  {% if true %}  \n b\n  {% endif %}x\n", "  a\n  \n b\nx"},
      {"  {% set a = 1 %}\n{{ a }}\n\n", "1\n"},
      {"a\n  {%- if true %}\n  b {{ 1 }}\n\n {%- endif -%} \n c\n", "a  b 1c"},
      {"{# c #}\nx\n  {# d #}\ny {# e #}\nz {#- f -#} w", "x\ny zw"},
      {"{% raw %}\n {{ x }}\n {% endraw %}\n q", "\n {{ x }}\n q"},
      {"\n\n{{ x }}\n", "\n\nabc"},
      {"  {{ x }}\n  {%+ if true %}\n t\n  {%+ endif %}\n", "  abc\n   t\n  "},
      {"a {% if true %} b {% endif %} c\n{% if true -%}\n\n  d\n{%- endif %}\n", "a  b  c\nd"},
      {"{%- set a -%}\n x \n{%- endset -%}\n[{{ a }}]", "[x]"},
      {"x\r\n{% if true %}\r\ny\r\n{% endif %}\r\n", "x\ny\n"},
      {"{%- raw -%} {{ a }} {%- endraw -%} x", "{{ a }}x"},
      {"{% if true %}\t\n{% endif %}", "\t\n"},
      {"\t{% if true %}a{% endif %}\t{# x #}\n\t{# y #}\n", "a\t"},
      {"{{\n  x\n  ~\n 'q' }}\n{% for i in l\n %}\n{{ i }}\n{% endfor\n%}\n", "abcq\n3\n1\n2\n"},
  });
}

}  // namespace
}  // namespace canopy::jinja
