// Wrong templates are refused with a message that names the template, the line and the fault.

#include "tests/text/jinja/jinja_test.h"

namespace canopy::jinja {
namespace {

TEST(JinjaErrors, NameTheLineAndTheReason) {
  const std::pair<std::string, std::string> cases[] = {
      {"a\n{% if x %}\nb", "test, line 2: The tag '{% if %}' has no '{% endif %}'."},
      {"{% for i in l %}", "test, line 1: The tag '{% for %}' has no '{% endfor %}'."},
      {"\n\n{{ x", "test, line 3: The tag that begins here with '{{' has no end '}}'."},
      {"{% if x }}", "test, line 1: The bracket '}' closes nothing."},
      {"{# x", "test, line 1: The comment that begins here with '{#' has no end '#}'."},
      {"{% raw %}x", "test, line 1: The tag '{% raw %}' has no '{% endraw %}'."},
      {"\n{{ 'abc }}", "test, line 2: The string that begins here with ' has no end."},
      {"{{ }}", "test, line 1: There is '}}' where an expression is expected."},
      {"{{ 1 + }}", "test, line 1: There is '}}' where an expression is expected."},
      {"{{ (1 }}", "test, line 1: The bracket '}' stands where ')' is expected."},
      {"{{ x $ }}", "test, line 1: The character '$' has no meaning in a tag."},
      {"{{ x y }}", "test, line 1: There is 'y' where '}}' or an operator is expected."},
      {"{{ '\\xq' }}", "test, line 1: A string holds a broken escape;"},
      {"{{ " + std::string(4400, '9') + " }}", "test, line 1: A whole number has more than 4300 digits"},
      {"{{ 007 }}", "test, line 1: The number '007' begins with a zero."},
      {"{{ '\\N{BULLET}' }}", "test, line 1: A string names a character by \\N, which is not supported;"},
      {"{% endif %}", "test, line 1: The statement 'endif' is not supported here; supported are if, for,"},
      {"\n{% include 'x' %}", "test, line 2: The statement 'include' reaches for another template,"},
      {"{% extends 'x' %}", "The statement 'extends' reaches for another template, and a chat template has no other."},
      {"{% import 'x' as y %}", "The statement 'import' reaches for another template,"},
      {"{% from 'x' import y %}", "The statement 'from' reaches for another template,"},
      {"{% block b required %}{% endblock %}", "The block 'b' is required to be filled by another template,"},
      {"{% block b %}{% endblock %}{% block b %}{% endblock %}", "There are two blocks with the name 'b'."},
      {"{% do l %}", "test, line 1: The statement 'do' is not supported here;"},
      {"{{ l | random }}", "The filter 'random' is not supported: the same chat must give the same prompt."},
      {"{{ lipsum() }}", "The function 'lipsum' is not supported: the same chat must give the same prompt."},
      {"{{ x.encode() }}", "'encode' is not supported: templates have no bytes here."},
      {"{% break %}", "test, line 1: 'break' stands outside of a loop."},
      {"{% for i in l %}{% set x %}{% break %}{% endset %}{% endfor %}", "'break' stands outside of a loop."},
      {"{% set true = 1 %}", "test, line 1: Nothing can be assigned to 'true'."},
      {"{% set x %}", "test, line 1: The tag '{% set %}' has no '{% endset %}'."},
      {"{% macro m %}", "test, line 1: There is '%}' where '(' is expected."},
      {"{% macro m(a=1, b) %}{% endmacro %}", "where '=', as the parameter before has a default, is expected."},
      {"{{ f(a=1, 2) }}", "where a named argument, as one stands before it, is expected."},
      {"\n{{ nope.x }}", "test, line 2: An undefined value is used: there is no 'nope'."},
      {"{{ d.q.r }}", "test, line 1: An undefined value is used: a dict has no attribute 'q'."},
      {"{{ nope + 'x' }}", "An undefined value is used: there is no 'nope'."},
      {"{{ nope() }}", "An undefined value is used: there is no 'nope'."},
      {"{{ x() }}", "The value that is called is a string."},
      {"{{ 1 + 'a' }}", "'+' has no meaning between an int and a string."},
      {"{{ x < 1 }}", "There is no order between a string and an int."},
      {"{{ 1 / 0 }}", "A number is divided by zero."},
      {"{{ 9 ** 9999 }}", "A whole number has more than 4300 digits, which is the limit."},
      {"{{ 10 ** 400 / 3 }}", "The result of a calculation is too large for a float."},
      {"{{ 10.0 ** 400 }}", "The result of a calculation is too large for a float."},
      {"{{ l.append(4) }}", "An undefined value is used: a template may not change a list;"},
      {"{{ d.update(a=1) }}", "An undefined value is used: a template may not change a dict;"},
      {"{% set d.a = 1 %}", "The attribute 'a' of 'd' is set, which is not a namespace()."},
      {"a\nb{{ raise_exception('roles\x1b must alternate') }}", "test, line 2: The template refuses: roles\\x1b must"},
      {"{{ x | nofilter }}", "There is no filter 'nofilter' here."},
      {"{{ x is notest }}", "There is no test 'notest' here."},
      {"{{ x | tojson(foo=1) }}", "'tojson' takes no argument 'foo'; allowed are ensure_ascii, indent, separators"},
      {"{{ x.split(1) }}", "The argument 'sep' of 'split' is an int; it must be a string."},
      {"{{ x.split('') }}", "A string is split at an empty separator."},
      {"{{ range | tojson }}", "'tojson' is given a function, which JSON cannot express."},
      {"{{ range }}", "The value to be printed is a function, which has no text."},
      {"{% for i in 3 %}{% endfor %}", "A loop goes through an int; it must be a list, a dict or a string."},
      {"{% for a, b in [(1, 2, 3)] %}{% endfor %}", "A sequence of 3 is unpacked into 2 variables."},
      {"{{ l[::0] }}", "The step of a slice is zero."},
      {"{{ {[]: 1} }}", "The key of a dict is a list; it must be a string, a number or a tuple."},
      {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "The macro 'm' is given 2 values; it takes 1."},
      {"{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "The macro 'm' takes no argument 'b'"},
      {"{{ '%d' % 'x' }}", "A format wants a number and is given a string."},
      {"{{ '%s %s' % x }}", "A format has more fields than the 1 values given."},
      {"{{ '%999999s' % x }}", "A field of a format is wider than 1000, which is the limit."},
      {"{{ l | select }}", "The value to be printed is a generator, which has no text."},
      {"{{ l | select | length }}", "The length of a generator is asked for;"},
      {"{{ l | select | last }}", "'last' is given a generator;"},
      {"{{ '{0}{}'.format(1) }}", "'format' has fields with a number and fields without."},
      {"{{ '{:d}'.format('a') }}", "The form 'd' of a field of 'format' has no meaning for a string."},
      {"{% macro m() %}\n\n{{ 1 / 0 }}{% endmacro %}\n{{ m() }}", "test, line 3: A number is divided by zero."},
  };
  for (const auto& [source, expected] : cases) {
    SCOPED_TRACE(source);
    EXPECT_NE(error_of(source).find(expected), std::string::npos) << "the error is: " << error_of(source);
  }
}

// Names that give access to the host in other implementations are ordinary names here.
TEST(JinjaErrors, NothingOutsideOfTheValuesCanBeReached) {
  for (const char* source :
       {"{{ ''.__class__.__mro__ }}", "{{ self.__init__.__globals__ }}", "{{ config.items() }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}", "{{ lipsum.__globals__['os'] }}",
        "{{ range.__globals__.x }}", "{{ open('/etc/passwd').read() }}"}) {
    EXPECT_NE(error_of(source), "") << source;
  }
}

}  // namespace
}  // namespace canopy::jinja
