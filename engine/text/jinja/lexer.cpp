#include "engine/text/jinja/lexer.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "engine/base/text.h"

namespace canopy::jinja {
namespace {

constexpr size_t npos = std::string_view::npos;

// Line breaks of all systems become \n; the one at the very end goes.
std::string normalized(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size()) {
    const CodePoint c = code_point_at(text, at);
    if (!c.valid || !is_space(c.value)) break;
    at += c.size;
  }
  return at;
}

// The text without white space at its end.
std::string_view without_trailing_space(std::string_view text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    at += c.size;
    if (!c.valid || !is_space(c.value)) end = at;
  }
  return text.substr(0, end);
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const size_t open = next_tag();
      if (open == npos) {
        add_data(source_.substr(at_));
        advance(source_.size());
        break;
      }
      read_tag(open);
    }
    add(TokenKind::end, {});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw SyntaxFailure(line_, message); }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  void add_data(std::string_view text) {
    if (!text.empty()) add(TokenKind::data, std::string(text));
  }

  // Moves to `to`, counting lines.
  void advance(size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    if (to > at_) line_starts_ = source_[to - 1] == '\n';
    at_ = to;
  }

  bool has(std::string_view text, size_t at) const { return source_.substr(at, text.size()) == text; }

  size_t next_tag() const {
    for (size_t at = source_.find('{', at_); at != npos; at = source_.find('{', at + 1)) {
      if (has("{{", at) || has("{%", at) || has("{#", at)) return at;
    }
    return npos;
  }

  // The text in front of a tag, less what the tag or lstrip_blocks takes from it.
  std::string_view before_tag(size_t open) const {
    const std::string_view text = source_.substr(at_, open - at_);
    const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
    if (sign == '-') return without_trailing_space(text);
    if (sign == '+' || source_[open + 1] == '{') return text;
    const size_t line_break = text.rfind('\n');
    const size_t line_begin = line_break == npos ? 0 : line_break + 1;
    if (line_begin == 0 && !line_starts_) return text;
    return skip_space(text, line_begin) == text.size() ? text.substr(0, line_begin) : text;
  }

  void read_tag(size_t open) {
    add_data(before_tag(open));
    advance(open);
    const char kind = source_[open + 1];
    const bool has_sign = open + 2 < source_.size() && (source_[open + 2] == '-' || source_[open + 2] == '+');
    const size_t inside = open + (has_sign ? 3 : 2);
    if (kind == '#') return read_comment(inside);
    if (kind == '%') {
      if (const auto begin = raw_tag_end(inside, "raw")) return read_raw(*begin);
    }
    const bool is_block = kind == '%';
    add(is_block ? TokenKind::block_begin : TokenKind::variable_begin, {});
    advance(inside);
    read_inside(is_block);
  }

  void read_comment(size_t inside) {
    const size_t close = source_.find("#}", inside);
    if (close == npos) fail("The comment that begins here with '{#' has no end '#}'.");
    advance(tag_end(close, inside));
  }

  // Where the text behind a block tag or a comment goes on; close: where its two closing characters are.
  size_t tag_end(size_t close, size_t inside) const {
    const size_t behind = close + 2;
    const char sign = close > inside ? source_[close - 1] : '\0';
    if (sign == '-') return skip_space(source_, behind);
    if (sign == '+') return behind;
    return behind < source_.size() && source_[behind] == '\n' ? behind + 1 : behind;
  }

  // If the tag with this inside is {% word %}, where its closing sign (or "%}") begins.
  std::optional<size_t> raw_tag_end(size_t inside, std::string_view word) const {
    size_t at = skip_space(source_, inside);
    if (!has(word, at)) return std::nullopt;
    at = skip_space(source_, at + word.size());
    if (has("%}", at)) return at;
    if ((has("-", at) || has("+", at)) && has("%}", at + 1)) return at + 1;
    return std::nullopt;
  }

  void read_raw(size_t close) {
    // trim_blocks leaves the line break behind {% raw %} alone.
    advance(source_[close - 1] == '-' ? skip_space(source_, close + 2) : close + 2);
    for (size_t open = source_.find("{%", at_); open != npos; open = source_.find("{%", open + 2)) {
      const bool has_sign = open + 2 < source_.size() && (source_[open + 2] == '-' || source_[open + 2] == '+');
      const size_t inside = open + (has_sign ? 3 : 2);
      const auto end = raw_tag_end(inside, "endraw");
      if (!end) continue;
      add_data(before_tag(open));
      advance(tag_end(*end, inside));
      return;
    }
    fail("The tag '{% raw %}' has no '{% endraw %}'.");
  }

  // Tokens up to the end of the tag.
  void read_inside(bool is_block) {
    const int begin_line = line_;
    const std::string_view close = is_block ? "%}" : "}}";
    while (true) {
      advance(skip_space(source_, at_));
      if (at_ >= source_.size()) {
        throw SyntaxFailure(begin_line, std::string("The tag that begins here with '") + (is_block ? "{%" : "{{") +
                                            "' has no end '" + std::string(close) + "'.");
      }
      if (brackets_.empty() && ends_tag(is_block, close)) return;
      read_token();
    }
  }

  bool ends_tag(bool is_block, std::string_view close) {
    const bool has_sign = has("-", at_) || (is_block && has("+", at_));
    const size_t at = has_sign ? at_ + 1 : at_;
    if (!has(close, at)) return false;
    add(is_block ? TokenKind::block_end : TokenKind::variable_end, {});
    if (is_block) {
      advance(tag_end(at, at_));
    } else {
      advance(has_sign ? skip_space(source_, at + 2) : at + 2);
    }
    return true;
  }

  void read_token() {
    const char c = source_[at_];
    if (is_ascii_digit(c)) return read_number();
    if (c == '\'' || c == '"') return read_string(c);
    if (starts_name(c)) {
      size_t end = at_;
      while (end < source_.size() && (starts_name(source_[end]) || is_ascii_digit(source_[end]))) ++end;
      add(TokenKind::name, std::string(source_.substr(at_, end - at_)));
      return advance(end);
    }
    read_symbol();
  }

  void read_symbol() {
    constexpr std::string_view long_symbols[] = {"//", "**", "==", "!=", ">=", "<="};
    constexpr std::string_view short_symbols = "+-/*%~[](){}<>=.:|,;";
    for (const std::string_view symbol : long_symbols) {
      if (!has(symbol, at_)) continue;
      add(TokenKind::symbol, std::string(symbol));
      return advance(at_ + 2);
    }
    const char c = source_[at_];
    if (short_symbols.find(c) == npos) {
      fail("The character " + quoted_name(std::string_view(&c, 1)) + " has no meaning in a tag.");
    }
    balance(c);
    add(TokenKind::symbol, std::string(1, c));
    advance(at_ + 1);
  }

  // Inside brackets, "}}" closes two of them and not the tag.
  void balance(char c) {
    if (c == '(' || c == '[' || c == '{') {
      brackets_ += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (brackets_.empty()) fail(std::string("The bracket '") + c + "' closes nothing.");
      if (brackets_.back() != c) {
        fail(std::string("The bracket '") + c + "' stands where '" + brackets_.back() + "' is expected.");
      }
      brackets_.pop_back();
    }
  }

  // A run of digits that may have single underscores between them.
  size_t digits_end(size_t at) const {
    while (at < source_.size() &&
           (is_ascii_digit(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() &&
                                            is_ascii_digit(source_[at + 1]) && is_ascii_digit(source_[at - 1])))) {
      ++at;
    }
    return at;
  }

  void read_number() {
    if (read_prefixed_number()) return;
    size_t end = digits_end(at_);
    bool is_float = false;
    const bool behind_dot = at_ > 0 && source_[at_ - 1] == '.';  // in x.0.1, 0 and 1 are items
    const auto digit_at = [&](size_t at) { return at < source_.size() && is_ascii_digit(source_[at]); };
    if (!behind_dot && has(".", end) && digit_at(end + 1)) {
      end = digits_end(end + 1);
      is_float = true;
    }
    if (!behind_dot && (has("e", end) || has("E", end))) {
      const size_t exponent = end + (has("+", end + 1) || has("-", end + 1) ? 2 : 1);
      if (digit_at(exponent)) {
        end = digits_end(exponent);
        is_float = true;
      }
    }
    std::string digits(source_.substr(at_, end - at_));
    std::erase(digits, '_');
    Token token{is_float ? TokenKind::floating : TokenKind::integer, digits, line_};
    if (is_float) {
      token.floating = parse_float(digits).value_or(0);
    } else {
      if (digits.front() == '0' && digits.find_first_not_of('0') != std::string::npos) {
        fail("The number " + quoted_name(digits) + " begins with a zero.");
      }
      token.number = parsed(digits, 10);
    }
    tokens_.push_back(std::move(token));
    advance(end);
  }

  // 0x1F, 0o17, 0b11
  bool read_prefixed_number() {
    if (source_[at_] != '0' || at_ + 1 >= source_.size()) return false;
    const char letter = static_cast<char>(source_[at_ + 1] | 0x20);
    const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (base == 0) return false;
    const auto is_part = [&](size_t at) {
      return at < source_.size() &&
             (is_ascii_digit(source_[at]) || ((source_[at] | 0x20) >= 'a' && (source_[at] | 0x20) <= 'f'));
    };
    size_t end = at_ + 2;
    while (is_part(end) || (end < source_.size() && source_[end] == '_' && is_part(end + 1))) ++end;
    std::string digits(source_.substr(at_ + 2, end - at_ - 2));
    std::erase(digits, '_');
    tokens_.push_back({TokenKind::integer, std::string(source_.substr(at_, end - at_)), line_, parsed(digits, base)});
    advance(end);
    return true;
  }

  BigInteger parsed(const std::string& digits, int base) const {
    try {
      if (auto number = BigInteger::parse(digits, base)) return *std::move(number);
    } catch (const Failure& failure) {
      fail(failure.what());
    }
    fail("A number with a base prefix has no digits, or others than its base has.");
  }

  void read_string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail(std::string("The string that begins here with ") + quote + " has no end.");
    add(TokenKind::string, unescaped(source_.substr(at_ + 1, end - at_ - 1)));
    advance(end + 1);
  }

  // Escapes as in Python; an unknown one stands for itself.
  std::string unescaped(std::string_view literal) const {
    std::string text;
    for (size_t i = 0; i < literal.size();) {
      if (literal[i] != '\\' || i + 1 == literal.size()) {
        text += literal[i++];
        continue;
      }
      const char c = literal[i + 1];
      i += 2;
      constexpr std::string_view letters = "abfnrtv\\'\"", meanings = "\a\b\f\n\r\t\v\\'\"";
      if (const size_t known = letters.find(c); known != npos) {
        text += meanings[known];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        text += code_point_escape(literal, i, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
      } else if (c == 'N') {
        fail("A string names a character by \\N, which is not supported; \\u and \\U name it by its number.");
      } else if (c >= '0' && c <= '7') {
        --i;
        size_t digits = 1;
        while (digits < 3 && i + digits < literal.size() && literal[i + digits] >= '0' && literal[i + digits] <= '7') {
          ++digits;
        }
        text += code_point_escape(literal, i, digits, 8);
      } else if (c != '\n') {
        text += '\\';
        text += c;
      }
    }
    return text;
  }

  // The character with the number in `count` digits at i, which moves behind them.
  std::string code_point_escape(std::string_view literal, size_t& i, size_t count, int base) const {
    uint32_t value = 0;
    const std::string_view digits = literal.substr(i, count);
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    const bool complete = digits.size() == count && result.ptr == digits.data() + digits.size();
    const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    if (result.ec != std::errc() || !complete || surrogate || value > 0x10FFFF) {
      fail("A string holds a broken escape; \\x needs two hexadecimal digits, \\u four and \\U eight, of a character.");
    }
    i += count;
    return encode_utf8(static_cast<int32_t>(value));
  }

  std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  // whether the text read last ended with a line break
  std::string brackets_;     // the closing brackets still expected, innermost last
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  const std::string text = normalized(source);
  return Lexer(text).run();
}

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
