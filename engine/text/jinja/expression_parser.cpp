#include "engine/text/jinja/expression_parser.h"

#include <array>

namespace canopy::jinja {

void ExpressionParser::count_node() {
  if (++nodes_ <= stream_.limits().expression_nodes) return;
  throw SyntaxFailure(stream_.line(), "An expression has more than " +
                                          std::to_string(stream_.limits().expression_nodes) +
                                          " parts, which is the limit.");
}

ExprPtr ExpressionParser::parse_expression() {
  const TokenStream::Level level(stream_);
  if (depth_++ == 0) nodes_ = 0;
  const int line = stream_.line();
  ExprPtr value = parse_or();
  while (stream_.skip_name("if")) {
    ExprPtr condition = parse_or();
    ExprPtr otherwise = stream_.skip_name("else") ? parse_expression() : nullptr;
    value = make(line, Conditional{std::move(condition), std::move(value), std::move(otherwise)});
  }
  --depth_;
  return value;
}

bool ExpressionParser::at_tuple_end() const {
  return stream_.is(TokenKind::variable_end) || stream_.is(TokenKind::block_end) || stream_.is_symbol(")") ||
         stream_.is_name("recursive");
}

ExprPtr ExpressionParser::parse_tuple(bool with_conditionals) {
  const auto parse_item = [&] {
    if (with_conditionals) return parse_expression();
    nodes_ = 0;
    return parse_or();
  };
  const int line = stream_.line();
  ExprPtr first = parse_item();
  if (!stream_.is_symbol(",")) return first;
  ListLiteral tuple;
  tuple.is_tuple = true;
  tuple.items.push_back(std::move(first));
  while (stream_.skip_symbol(",") && !at_tuple_end()) tuple.items.push_back(parse_item());
  return make(line, std::move(tuple));
}

ExprPtr ExpressionParser::parse_or() {
  const int line = stream_.line();
  ExprPtr left = parse_and();
  while (stream_.skip_name("or")) {
    ExprPtr right = parse_and();
    left = make(line, Logic{false, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_and() {
  const int line = stream_.line();
  ExprPtr left = parse_not();
  while (stream_.skip_name("and")) {
    ExprPtr right = parse_not();
    left = make(line, Logic{true, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_not() {
  const int line = stream_.line();
  if (!stream_.is_name("not")) return parse_comparison();
  const TokenStream::Level level(stream_);
  stream_.next();
  return make(line, Not{parse_not()});
}

ExprPtr ExpressionParser::parse_comparison() {
  static constexpr std::array<std::pair<std::string_view, CompareOp>, 6> symbols = {{
      {"==", CompareOp::equal},
      {"!=", CompareOp::not_equal},
      {"<", CompareOp::less},
      {"<=", CompareOp::less_equal},
      {">", CompareOp::greater},
      {">=", CompareOp::greater_equal},
  }};
  const auto read_operator = [&]() -> std::optional<CompareOp> {
    for (const auto& [symbol, op] : symbols) {
      if (stream_.skip_symbol(symbol)) return op;
    }
    if (stream_.skip_name("in")) return CompareOp::in;
    if (!stream_.is_name("not") || !stream_.is_name("in", 1)) return std::nullopt;
    stream_.next();
    stream_.next();
    return CompareOp::not_in;
  };
  const int line = stream_.line();
  Comparison comparison;
  comparison.first = parse_sum();
  while (const auto op = read_operator()) {
    count_node();
    comparison.others.emplace_back(*op, parse_sum());
  }
  if (comparison.others.empty()) return std::move(comparison.first);
  return make(line, std::move(comparison));
}

ExprPtr ExpressionParser::parse_sum() {
  const int line = stream_.line();
  ExprPtr left = parse_concat();
  while (stream_.is_symbol("+") || stream_.is_symbol("-")) {
    const BinaryOp op = stream_.next().text == "+" ? BinaryOp::add : BinaryOp::subtract;
    ExprPtr right = parse_concat();
    left = make(line, Binary{op, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_concat() {
  const int line = stream_.line();
  ExprPtr first = parse_product();
  if (!stream_.is_symbol("~")) return first;
  Concat concat;
  concat.parts.push_back(std::move(first));
  while (stream_.skip_symbol("~")) concat.parts.push_back(parse_product());
  return make(line, std::move(concat));
}

ExprPtr ExpressionParser::parse_product() {
  static constexpr std::array<std::pair<std::string_view, BinaryOp>, 4> symbols = {{
      {"*", BinaryOp::multiply},
      {"/", BinaryOp::divide},
      {"//", BinaryOp::floor_divide},
      {"%", BinaryOp::modulo},
  }};
  const auto read_operator = [&]() -> std::optional<BinaryOp> {
    for (const auto& [symbol, op] : symbols) {
      if (stream_.skip_symbol(symbol)) return op;
    }
    return std::nullopt;
  };
  const int line = stream_.line();
  ExprPtr left = parse_power();
  while (const auto op = read_operator()) {
    ExprPtr right = parse_power();
    left = make(line, Binary{*op, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_power() {
  const int line = stream_.line();
  ExprPtr left = parse_unary();
  while (stream_.skip_symbol("**")) {  // from left to right: Jinja differs from Python here
    ExprPtr right = parse_unary();
    left = make(line, Binary{BinaryOp::power, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_unary(bool with_filters) {
  const int line = stream_.line();
  ExprPtr value;
  if (stream_.is_symbol("-") || stream_.is_symbol("+")) {
    const TokenStream::Level level(stream_);
    const bool minus = stream_.next().text == "-";
    value = make(line, Sign{minus, parse_unary(false)});
  } else {
    value = parse_primary();
  }
  value = parse_postfix(std::move(value));
  return with_filters ? parse_filters_and_tests(std::move(value)) : std::move(value);
}

ExprPtr ExpressionParser::parse_primary() {
  const Token& token = stream_.peek();
  switch (token.kind) {
    case TokenKind::name: return parse_name();
    case TokenKind::string: return parse_string();
    case TokenKind::integer: return make(token.line, Literal{stream_.next().number});
    case TokenKind::floating: return make(token.line, Literal{stream_.next().floating});
    default: break;
  }
  if (stream_.is_symbol("(")) return parse_parentheses();
  if (stream_.is_symbol("[")) return parse_list();
  if (stream_.is_symbol("{")) return parse_dict();
  stream_.fail_expecting("an expression");
}

ExprPtr ExpressionParser::parse_name() {
  const Token& token = stream_.next();
  const std::string& name = token.text;
  if (name == "true" || name == "True") return make(token.line, Literal{true});
  if (name == "false" || name == "False") return make(token.line, Literal{false});
  if (name == "none" || name == "None") return make(token.line, Literal{None{}});
  names_read_.insert(name);
  return make(token.line, Name{name});
}

ExprPtr ExpressionParser::parse_string() {
  const int line = stream_.line();
  std::string text;
  while (stream_.is(TokenKind::string)) text += stream_.next().text;  // neighbours are one string, as in Python
  return make(line, Literal{Value::markup(text)});
}

ExprPtr ExpressionParser::parse_parentheses() {
  const int line = stream_.line();
  stream_.expect_symbol("(");
  if (stream_.skip_symbol(")")) return make(line, ListLiteral{{}, true});
  ExprPtr value = parse_tuple();
  stream_.expect_symbol(")");
  return value;
}

ExprPtr ExpressionParser::parse_list() {
  const int line = stream_.line();
  stream_.expect_symbol("[");
  ListLiteral list;
  while (!stream_.is_symbol("]")) {
    list.items.push_back(parse_expression());
    if (!stream_.skip_symbol(",")) break;
  }
  stream_.expect_symbol("]");
  return make(line, std::move(list));
}

ExprPtr ExpressionParser::parse_dict() {
  const int line = stream_.line();
  stream_.expect_symbol("{");
  DictLiteral dict;
  while (!stream_.is_symbol("}")) {
    ExprPtr key = parse_expression();
    stream_.expect_symbol(":");
    dict.items.emplace_back(std::move(key), parse_expression());
    if (!stream_.skip_symbol(",")) break;
  }
  stream_.expect_symbol("}");
  return make(line, std::move(dict));
}

ExprPtr ExpressionParser::parse_postfix(ExprPtr value) {
  while (true) {
    const int line = stream_.line();
    if (stream_.is_symbol(".")) {
      value = parse_attribute(std::move(value));
    } else if (stream_.is_symbol("[")) {
      value = parse_subscript(std::move(value));
    } else if (stream_.is_symbol("(")) {
      value = make(line, Call{std::move(value), parse_arguments()});
    } else {
      return value;
    }
  }
}

ExprPtr ExpressionParser::parse_attribute(ExprPtr value) {
  const int line = stream_.next().line;
  if (stream_.is(TokenKind::integer)) {
    ExprPtr index = make(line, Literal{stream_.next().number});
    return make(line, ItemOf{std::move(value), std::move(index)});
  }
  return make(line, AttributeOf{std::move(value), stream_.expect_identifier("a name or a number")});
}

ExprPtr ExpressionParser::parse_subscript(ExprPtr value) {
  const int line = stream_.next().line;
  const auto ends_part = [&] { return stream_.is_symbol(":") || stream_.is_symbol("]"); };
  const auto parse_part = [&] { return ends_part() ? nullptr : parse_expression(); };
  ExprPtr first = parse_part();
  if (!stream_.is_symbol(":")) {
    if (first == nullptr) stream_.fail_expecting("an expression");
    if (stream_.is_symbol(",")) {
      ListLiteral tuple;
      tuple.is_tuple = true;
      tuple.items.push_back(std::move(first));
      while (stream_.skip_symbol(",") && !stream_.is_symbol("]")) tuple.items.push_back(parse_expression());
      first = make(line, std::move(tuple));
    }
    stream_.expect_symbol("]");
    return make(line, ItemOf{std::move(value), std::move(first)});
  }
  stream_.next();
  ExprPtr end = parse_part();
  ExprPtr step = stream_.skip_symbol(":") ? parse_part() : nullptr;
  stream_.expect_symbol("]");
  return make(line, SliceOf{std::move(value), std::move(first), std::move(end), std::move(step)});
}

ExprPtr ExpressionParser::parse_filters_and_tests(ExprPtr value) {
  while (true) {
    const int line = stream_.line();
    if (stream_.skip_symbol("|")) {
      value = parse_filters(std::move(value));
    } else if (stream_.is_name("is")) {
      value = parse_test(std::move(value));
    } else if (stream_.is_symbol("(")) {
      value = make(line, Call{std::move(value), parse_arguments()});
    } else {
      return value;
    }
  }
}

ExprPtr ExpressionParser::parse_filters(ExprPtr subject) {
  do {
    const int line = stream_.line();
    std::string name = stream_.expect_identifier("the name of a filter");
    CallArguments arguments;
    if (stream_.is_symbol("(")) arguments = parse_arguments();
    subject = make(line, FilterCall{std::move(subject), std::move(name), std::move(arguments)});
  } while (stream_.skip_symbol("|"));
  return subject;
}

ExprPtr ExpressionParser::parse_test(ExprPtr subject) {
  const int line = stream_.next().line;
  TestCall test;
  test.subject = std::move(subject);
  test.negated = stream_.skip_name("not");
  test.name = stream_.expect_identifier("the name of a test");
  const Token& token = stream_.peek();
  const bool is_word = stream_.is_name("else") || stream_.is_name("or") || stream_.is_name("and");
  const bool begins_value = token.kind == TokenKind::name || token.kind == TokenKind::string ||
                            token.kind == TokenKind::integer || token.kind == TokenKind::floating ||
                            stream_.is_symbol("[") || stream_.is_symbol("{");
  if (stream_.is_symbol("(")) {
    test.arguments = parse_arguments();
  } else if (stream_.is_name("is")) {
    stream_.fail_expecting("the end of the test before it: tests cannot be chained");
  } else if (begins_value && !is_word) {
    test.arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  return make(line, std::move(test));
}

CallArguments ExpressionParser::parse_arguments() {
  CallArguments arguments;
  stream_.expect_symbol("(");
  while (!stream_.is_symbol(")")) {
    parse_argument(arguments);
    if (!stream_.skip_symbol(",")) break;
  }
  stream_.expect_symbol(")");
  return arguments;
}

void ExpressionParser::parse_argument(CallArguments& arguments) {
  if (stream_.is_symbol("*") && arguments.spread_list == nullptr && arguments.spread_dict == nullptr) {
    stream_.next();
    arguments.spread_list = parse_expression();
  } else if (stream_.is_symbol("**") && arguments.spread_dict == nullptr) {
    stream_.next();
    arguments.spread_dict = parse_expression();
  } else if (stream_.is(TokenKind::name) && stream_.is_symbol("=", 1) && arguments.spread_dict == nullptr) {
    std::string name = stream_.next().text;
    stream_.next();
    arguments.named.emplace_back(std::move(name), parse_expression());
  } else {
    if (!arguments.named.empty() || arguments.spread_list != nullptr || arguments.spread_dict != nullptr) {
      stream_.fail_expecting("a named argument, as one stands before it,");
    }
    arguments.positional.push_back(parse_expression());
  }
}

}  // namespace canopy::jinja
