#include "engine/text/jinja/token_stream.h"

#include "engine/base/printable.h"

namespace canopy::jinja {
namespace {

std::string described(const Token& token) {
  switch (token.kind) {
    case TokenKind::data: return "text";
    case TokenKind::variable_begin: return "'{{'";
    case TokenKind::variable_end: return "'}}'";
    case TokenKind::block_begin: return "'{%'";
    case TokenKind::block_end: return "'%}'";
    case TokenKind::string: return "a string";
    case TokenKind::end: return "the end of the template";
    default: return quoted_name(token.text);
  }
}

}  // namespace

const Token& TokenStream::next() {
  const Token& token = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenStream::is_symbol(std::string_view text, size_t ahead) const {
  return peek(ahead).kind == TokenKind::symbol && peek(ahead).text == text;
}

bool TokenStream::is_name(std::string_view text, size_t ahead) const {
  return peek(ahead).kind == TokenKind::name && peek(ahead).text == text;
}

bool TokenStream::skip_symbol(std::string_view text) {
  if (!is_symbol(text)) return false;
  next();
  return true;
}

bool TokenStream::skip_name(std::string_view text) {
  if (!is_name(text)) return false;
  next();
  return true;
}

const Token& TokenStream::expect(TokenKind kind, std::string_view what) {
  if (!is(kind)) fail_expecting(what);
  return next();
}

void TokenStream::expect_symbol(std::string_view text) {
  if (!skip_symbol(text)) fail_expecting("'" + std::string(text) + "'");
}

void TokenStream::expect_name(std::string_view text) {
  if (!skip_name(text)) fail_expecting("'" + std::string(text) + "'");
}

std::string TokenStream::expect_identifier(std::string_view what) {
  return expect(TokenKind::name, what).text;
}

void TokenStream::fail_expecting(std::string_view what) const {
  throw SyntaxFailure(line(), "There is " + described(peek()) + " where " + std::string(what) + " is expected.");
}

TokenStream::Level::Level(TokenStream& stream) : stream_(stream) {
  if (stream.depth_ >= stream.limits_.nesting) {
    throw SyntaxFailure(stream.line(), "Expressions or blocks are nested deeper than " +
                                           std::to_string(stream.limits_.nesting) + " levels, which is the limit.");
  }
  ++stream.depth_;
}

}  // namespace canopy::jinja
