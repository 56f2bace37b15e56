#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/failure.h"
#include "engine/text/jinja/integer.h"

namespace canopy::jinja {

/// A template that is no template: the message and the line, counted from 1.
class SyntaxFailure : public Failure {
 public:
  SyntaxFailure(int line, const std::string& message) : Failure(message), line_(line) {}
  int line() const { return line_; }

 private:
  int line_;
};

enum class TokenKind {
  data,            // text outside of tags
  variable_begin,  // {{
  variable_end,
  block_begin,  // {%
  block_end,
  name,
  string,  // text: what it stands for, without quotes and escapes
  integer,
  floating,
  symbol,  // text: an operator or a bracket
  end,     // of the template
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  int line = 1;
  BigInteger number = 0;
  double floating = 0;
};

/// The tokens of a template, with white space controlled as Hugging Face sets it: trim_blocks (a line break behind a
/// block tag goes), lstrip_blocks (blanks in front of a block tag that begins a line go), '-' and '+' in tags, one line
/// break at the very end goes. Ends with a token of kind `end`. Throws SyntaxFailure.
std::vector<Token> tokenize(std::string_view source);

}  // namespace canopy::jinja
