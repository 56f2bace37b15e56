#pragma once
// The tokens of a template, and a stream of them for the parser.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/value.h"

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

/// Tokens one after the other, with what both halves of the parser need to say about them.
class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, const Limits& limits) : tokens_(std::move(tokens)), limits_(limits) {}

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& next();
  int line() const { return peek().line; }

  bool is(TokenKind kind) const { return peek().kind == kind; }
  bool is_symbol(std::string_view text, size_t ahead = 0) const;
  bool is_name(std::string_view text, size_t ahead = 0) const;
  bool skip_symbol(std::string_view text);
  bool skip_name(std::string_view text);

  /// Throw SyntaxFailure, saying what was expected and what is there.
  const Token& expect(TokenKind kind, std::string_view what);
  void expect_symbol(std::string_view text);
  void expect_name(std::string_view text);
  std::string expect_identifier(std::string_view what);
  [[noreturn]] void fail_expecting(std::string_view what) const;

  /// Bounds how deep the parser goes.
  class Level {
   public:
    explicit Level(TokenStream& stream);
    ~Level() { --stream_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TokenStream& stream_;
  };

  const Limits& limits() const { return limits_; }

 private:
  std::vector<Token> tokens_;
  Limits limits_;
  size_t at_ = 0, depth_ = 0;
};

}  // namespace canopy::jinja
