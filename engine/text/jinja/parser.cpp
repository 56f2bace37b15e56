#include "engine/text/jinja/parser.h"

#include <algorithm>
#include <array>
#include <set>

#include "engine/base/text.h"
#include "engine/text/jinja/lexer.h"

namespace canopy::jinja {
namespace {

/// Reads expressions by Jinja's precedence, loosest first: if-else, or, and, not, comparisons, + -, ~, * / // %, **,
/// signs, filters and tests, attributes, items and calls. All throw SyntaxFailure.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  ExprPtr parse_expression();

  /// Expressions with commas between them, which make a tuple, or one expression. Ends in front of "recursive" too.
  /// Without conditionals, `x if y` ends behind x: that is how loops are filtered.
  ExprPtr parse_tuple(bool with_conditionals = true);

  /// A chain of filters around `subject`, which may be null; the stream stands at the first one's name.
  ExprPtr parse_filters(ExprPtr subject);

  /// Names that were read since the last call, for macros that use varargs, kwargs or caller.
  std::set<std::string> take_names_read() { return std::exchange(names_read_, {}); }
  void restore_names_read(std::set<std::string> names) { names_read_ = std::move(names); }

 private:
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_comparison();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filters = true);
  ExprPtr parse_primary();
  ExprPtr parse_name();
  ExprPtr parse_string();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_parentheses();
  ExprPtr parse_postfix(ExprPtr value);
  ExprPtr parse_attribute(ExprPtr value);
  ExprPtr parse_subscript(ExprPtr value);
  ExprPtr parse_filters_and_tests(ExprPtr value);
  ExprPtr parse_test(ExprPtr subject);
  CallArguments parse_arguments();
  void parse_argument(CallArguments& arguments);
  bool at_tuple_end() const;

  template <class Node>
  ExprPtr make(int line, Node node) {
    count_node();
    return std::make_unique<Expr>(Expr{line, std::move(node)});
  }
  void count_node();

  TokenStream& stream_;
  std::set<std::string> names_read_;
  size_t nodes_ = 0;  // of the outermost expression
  size_t depth_ = 0;
};

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

using Words = std::initializer_list<std::string_view>;

class Parser {
 public:
  Parser(std::string_view source, const Limits& limits) : stream_(tokenize(source), limits), expressions_(stream_) {}

  Program parse_template() {
    program_.statements = parse_block({}, 0, {});
    if (!stream_.is(TokenKind::end)) stream_.fail_expecting("the end of the template");
    return std::move(program_);
  }

 private:
  bool at_word(Words words) const {
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return stream_.is_name(word); });
  }

  // Statements up to a tag that begins with one of `ends`; the stream then stands at that word. opened and line: what
  // is being closed.
  Block parse_block(std::string_view opened, int line, Words ends) {
    const TokenStream::Level level(stream_);
    Block block;
    while (!stream_.is(TokenKind::end)) {
      const Token& token = stream_.next();
      if (token.kind == TokenKind::data) {
        block.push_back({token.line, Output{token.text}});
      } else if (token.kind == TokenKind::variable_begin) {
        Print print;
        print.values.push_back(expressions_.parse_tuple());
        block.push_back({token.line, std::move(print)});
        stream_.expect(TokenKind::variable_end, "'}}' or an operator");
      } else {
        if (at_word(ends)) return block;
        block.push_back(parse_statement());
        stream_.expect(TokenKind::block_end, "'%}' or an operator");
      }
    }
    if (ends.size() == 0) return block;
    throw SyntaxFailure(
        line, "The tag '{% " + std::string(opened) + " %}' has no '{% " + std::string(*(ends.end() - 1)) + " %}'.");
  }

  // The body of a tag whose text is captured, which no break or continue may leave.
  Block parse_captured(std::string_view opened, int line, std::string_view end) {
    const size_t outer_loops = std::exchange(loops_, 0);
    Block block = parse_body(opened, line, end);
    loops_ = outer_loops;
    return block;
  }

  // As parse_block(), for blocks with one possible end, which is read.
  Block parse_body(std::string_view opened, int line, std::string_view end) {
    end_tag("'%}'");
    Block block = parse_block(opened, line, {end});
    stream_.next();
    return block;
  }

  // The end of a tag that has a body; Jinja takes a colon in front of it, as Python has one.
  void end_tag(std::string_view expected) {
    stream_.skip_symbol(":");
    stream_.expect(TokenKind::block_end, expected);
  }

  Statement parse_statement() {
    const int line = stream_.line();
    const std::string word = stream_.expect_identifier("a statement");
    if (word == "if") return {line, parse_if(line)};
    if (word == "for") return {line, parse_for(line)};
    if (word == "set") return parse_set(line);
    if (word == "macro") return {line, parse_macro(line)};
    if (word == "call") return {line, parse_call(line)};
    if (word == "filter") return {line, parse_filter(line)};
    if (word == "with") return {line, parse_with(line)};
    if (word == "generation") return {line, Group{parse_body("generation", line, "endgeneration")}};
    if (word == "print") return {line, parse_print()};
    if (word == "block") return {line, parse_block_tag(line)};
    if (word == "autoescape") return {line, parse_autoescape(line)};
    if (word == "break" || word == "continue") return parse_jump(line, word);
    if (word == "extends" || word == "include" || word == "import" || word == "from") return parse_refused(line, word);
    throw SyntaxFailure(line, "The statement " + quoted_name(word) +
                                  " is not supported here; supported are if, for, set, macro, call, filter, with, "
                                  "block, autoescape, generation, print, raw, break and continue.");
  }

  // jinja2 fails too when it gets here, as a chat template has no other beside it; until then it may be in the way of
  // nothing.
  Statement parse_refused(int line, const std::string& word) {
    while (!stream_.is(TokenKind::block_end) && !stream_.is(TokenKind::end)) stream_.next();
    return {line,
            Refused{"The statement '" + word + "' reaches for another template, and a chat template has no other."}};
  }

  Print parse_print() {
    Print print;
    while (!stream_.is(TokenKind::block_end)) {
      if (!print.values.empty()) stream_.expect_symbol(",");
      print.values.push_back(expressions_.parse_expression());
    }
    return print;
  }

  BlockTag parse_block_tag(int line) {
    auto block = std::make_shared<BlockBody>();
    block->name = stream_.expect_identifier("the name of the block");
    block->is_scoped = stream_.skip_name("scoped");
    block->is_required = stream_.skip_name("required");
    if (program_.blocks.contains(block->name)) {
      throw SyntaxFailure(line, "There are two blocks with the name " + quoted_name(block->name) + ".");
    }
    program_.blocks.emplace(block->name, block);
    block->body = parse_captured("block", line, "endblock");
    if (stream_.is(TokenKind::name)) stream_.expect_name(block->name);
    return {std::move(block)};
  }

  Autoescape parse_autoescape(int line) {
    ExprPtr on = expressions_.parse_expression();
    return {std::move(on), parse_body("autoescape", line, "endautoescape")};
  }

  Statement parse_jump(int line, const std::string& word) {
    if (loops_ == 0) throw SyntaxFailure(line, "'" + word + "' stands outside of a loop.");
    if (word == "break") return {line, Break{}};
    return {line, Continue{}};
  }

  If parse_if(int line) {
    If result;
    ExprPtr condition = expressions_.parse_tuple();
    while (true) {
      end_tag("'%}' or an operator");
      const bool is_else = condition == nullptr;
      Block block = is_else ? parse_block("if", line, {"endif"}) : parse_block("if", line, {"elif", "else", "endif"});
      result.branches.emplace_back(std::move(condition), std::move(block));
      const std::string word = stream_.next().text;
      if (word == "endif") return result;
      condition = word == "elif" ? expressions_.parse_tuple() : nullptr;
    }
  }

  For parse_for(int line) {
    For loop;
    loop.target = parse_target(false);
    if (assigns(loop.target, "loop")) throw SyntaxFailure(line, "Nothing can be assigned to 'loop' by a loop.");
    stream_.expect_name("in");
    loop.iterable = expressions_.parse_tuple(false);
    if (stream_.skip_name("if")) loop.condition = expressions_.parse_expression();
    loop.recursive = stream_.skip_name("recursive");
    end_tag("'%}' or an operator");
    ++loops_;
    loop.body = parse_block("for", line, {"else", "endfor"});
    --loops_;
    if (stream_.next().text == "else") loop.otherwise = parse_body("for", line, "endfor");
    return loop;
  }

  Statement parse_set(int line) {
    Target target = parse_target(true);
    if (stream_.skip_symbol("=")) return {line, Set{std::move(target), expressions_.parse_tuple()}};
    if (!stream_.is(TokenKind::block_end) && !stream_.is_symbol("|") && !stream_.is_symbol(":"))
      stream_.fail_expecting("'=' or '%}'");
    ExprPtr filters = stream_.skip_symbol("|") ? expressions_.parse_filters(nullptr) : nullptr;
    return {line, SetBlock{std::move(target), std::move(filters), parse_captured("set", line, "endset")}};
  }

  MacroDefinition parse_macro(int line) {
    auto macro = std::make_shared<MacroBody>();
    macro->name = stream_.expect_identifier("the name of the macro");
    if (!stream_.is_symbol("(")) stream_.fail_expecting("'('");
    macro->parameters = parse_parameters();
    fill_macro(*macro, "macro", line, "endmacro");
    return {std::move(macro)};
  }

  CallBlock parse_call(int line) {
    auto caller = std::make_shared<MacroBody>();
    caller->name = "caller";
    if (stream_.is_symbol("(")) caller->parameters = parse_parameters();
    ExprPtr call = expressions_.parse_expression();
    if (!std::holds_alternative<Call>(call->node)) {
      throw SyntaxFailure(line, "'{% call %}' is followed by something that is not a call.");
    }
    fill_macro(*caller, "call", line, "endcall");
    return {std::move(caller), std::move(call)};
  }

  // Reads the body and notes the special names in it.
  void fill_macro(MacroBody& macro, std::string_view opened, int line, std::string_view end) {
    auto outer_names = expressions_.take_names_read();
    macro.body = parse_captured(opened, line, end);
    const auto names = expressions_.take_names_read();
    macro.uses_varargs = names.contains("varargs");
    macro.uses_kwargs = names.contains("kwargs");
    macro.uses_caller = names.contains("caller");
    expressions_.restore_names_read(std::move(outer_names));
  }

  std::vector<Parameter> parse_parameters() {
    std::vector<Parameter> parameters;
    stream_.expect_symbol("(");
    while (!stream_.is_symbol(")")) {
      Parameter parameter{stream_.expect_identifier("the name of a parameter"), nullptr};
      if (stream_.skip_symbol("=")) {
        parameter.otherwise = expressions_.parse_expression();
      } else if (!parameters.empty() && parameters.back().otherwise != nullptr) {
        stream_.fail_expecting("'=', as the parameter before has a default,");
      }
      parameters.push_back(std::move(parameter));
      if (!stream_.skip_symbol(",")) break;
    }
    stream_.expect_symbol(")");
    return parameters;
  }

  FilterBlock parse_filter(int line) {
    ExprPtr filters = expressions_.parse_filters(nullptr);
    return {std::move(filters), parse_captured("filter", line, "endfilter")};
  }

  With parse_with(int line) {
    With with;
    while (!stream_.is(TokenKind::block_end)) {
      Target target = parse_target(false);
      stream_.expect_symbol("=");
      with.assignments.emplace_back(std::move(target), expressions_.parse_expression());
      if (!stream_.skip_symbol(",")) break;
    }
    with.body = parse_body("with", line, "endwith");
    return with;
  }

  static bool assigns(const Target& target, std::string_view name) {
    if (!target.unpacks) return target.place.name == name && target.place.attribute.empty();
    return std::any_of(target.parts.begin(), target.parts.end(),
                       [&](const Target& part) { return assigns(part, name); });
  }

  // Names with commas between them, some of them in parentheses. In {% with a = 1, b = 2 %} a comma begins the next
  // assignment: there it stands behind a value.
  Target parse_target(bool with_attributes) {
    const TokenStream::Level level(stream_);
    Target first = parse_target_item(with_attributes);
    if (!stream_.is_symbol(",")) return first;
    Target target;
    target.unpacks = true;
    target.parts.push_back(std::move(first));
    while (stream_.skip_symbol(",")) {
      if (!stream_.is_symbol("(") && (!stream_.is(TokenKind::name) || stream_.is_name("in"))) break;
      target.parts.push_back(parse_target_item(with_attributes));
    }
    return target;
  }

  Target parse_target_item(bool with_attributes) {
    if (!stream_.skip_symbol("(")) return {parse_place(with_attributes), {}, false};
    Target target = parse_target(with_attributes);
    stream_.expect_symbol(")");
    return target;
  }

  Place parse_place(bool with_attributes) {
    static constexpr std::array<std::string_view, 6> reserved = {"true", "false", "none", "True", "False", "None"};
    const int line = stream_.line();
    Place place{stream_.expect_identifier("the name of a variable"), {}};
    if (with_attributes && stream_.skip_symbol(".")) {
      place.attribute = stream_.expect_identifier("the name of an attribute");
    } else if (std::find(reserved.begin(), reserved.end(), place.name) != reserved.end()) {
      throw SyntaxFailure(line, "Nothing can be assigned to '" + place.name + "'.");
    }
    return place;
  }

  TokenStream stream_;
  ExpressionParser expressions_;
  Program program_;
  size_t loops_ = 0;  // around the statement being read
};

}  // namespace

Program parse(std::string_view source, const Limits& limits) {
  if (source.size() > limits.source_bytes) {
    throw SyntaxFailure(1, "The template has " + std::to_string(source.size()) + " bytes; allowed are " +
                               std::to_string(limits.source_bytes) + ".");
  }
  return Parser(source, limits).parse_template();
}

}  // namespace canopy::jinja
