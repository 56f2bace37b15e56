#include "engine/text/jinja/parser.h"

#include <algorithm>
#include <array>

#include "engine/base/printable.h"
#include "engine/text/jinja/expression_parser.h"
#include "engine/text/jinja/token_stream.h"

namespace canopy::jinja {
namespace {

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
