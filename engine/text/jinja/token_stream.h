#pragma once
// Tokens one after the other, with what both halves of the parser need to say about them.

#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/lexer.h"
#include "engine/text/jinja/limits.h"

namespace canopy::jinja {

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
