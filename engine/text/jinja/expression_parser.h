#pragma once

#include <set>

#include "engine/text/jinja/ast.h"
#include "engine/text/jinja/token_stream.h"

namespace canopy::jinja {

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

}  // namespace canopy::jinja
