#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/text/jinja/ast.h"
#include "engine/text/jinja/context.h"
#include "engine/text/jinja/scope.h"

namespace canopy::jinja {

class Loop;

/// Renders one template once. Throws Failure; line() then says where.
class Interpreter {
 public:
  /// Names in `values` are the variables of the outermost scope; values and program outlive the interpreter.
  Interpreter(const Limits& limits, const std::tm& now, const Dict& values, const Program& program);
  ~Interpreter();

  Text render();
  int line() const { return line_; }

 private:
  friend class Macro;
  friend class Loop;
  friend class TemplateBlocks;
  enum class Flow { on, next_turn, end_of_loop };
  using ScopePtr = std::shared_ptr<Scope>;

  // Expressions (interpreter_expressions.cpp).
  Value evaluate(const Expr& expr);
  Value evaluate_or(const ExprPtr& expr, const Value& otherwise);
  Value visit(const Literal& node);
  Value visit(const Name& node);
  Value visit(const ListLiteral& node);
  Value visit(const DictLiteral& node);
  Value visit(const Not& node);
  Value visit(const Sign& node);
  Value visit(const Binary& node);
  Value visit(const Concat& node);
  Value visit(const Logic& node);
  Value visit(const Comparison& node);
  Value visit(const Conditional& node);
  Value visit(const AttributeOf& node);
  Value visit(const ItemOf& node);
  Value visit(const SliceOf& node);
  Value visit(const Call& node);
  Value visit(const FilterCall& node);
  Value visit(const TestCall& node);
  Value call(const Call& node, const Value* caller);
  bool compare(CompareOp op, const Value& left, const Value& right);
  Arguments evaluate_arguments(const CallArguments& arguments);

  // Statements (interpreter_statements.cpp).
  Flow run(const Block& block);
  Flow run(const Statement& statement);
  Flow visit(const Output& node);
  Flow visit(const Print& node);
  Flow visit(const If& node);
  Flow visit(const For& node);
  Flow visit(const Set& node);
  Flow visit(const SetBlock& node);
  Flow visit(const MacroDefinition& node);
  Flow visit(const CallBlock& node);
  Flow visit(const FilterBlock& node);
  Flow visit(const With& node);
  Flow visit(const Group& node);
  Flow visit(const BlockTag& node);
  Flow visit(const Autoescape& node);
  Flow visit(const Refused& node) { throw Failure(node.message); }
  Flow visit(const Break&) { return Flow::end_of_loop; }
  Flow visit(const Continue&) { return Flow::next_turn; }
  Flow run_loop(const For& node, const Value& iterable, size_t depth);
  std::shared_ptr<Iterator> loop_items(const For& node, const Value& iterable);
  Text block_text(const BlockBody& block);
  void assign(const Target& target, const Value& value);
  void assign(const Place& place, const Value& value);
  Text captured(const std::function<void()>& body);
  Text captured_block(const Block& block);
  Value filtered(const ExprPtr& filters, Text text);
  void write(const Text& text);
  void print_value(const Value& value);
  Value make_macro(std::shared_ptr<const MacroBody> body);

  // While it lives, variables are looked up and set in another scope.
  class Inside;
  // One more expression or block being worked on.
  class Frame;

  const Program& program_;
  Context context_;
  ScopePtr scope_, root_;
  TextBuilder output_;
  TextBuilder* out_ = &output_;
  const Value* block_text_ = nullptr;  // the text that a filter block works on
  std::vector<ScopePtr> captured_scopes_;
  size_t frames_ = 0;
  int line_ = 1;
};

class Interpreter::Frame {
 public:
  Frame(Interpreter& interpreter, int line);
  ~Frame() { --interpreter_.frames_; }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

 private:
  Interpreter& interpreter_;
};

class Interpreter::Inside {
 public:
  Inside(Interpreter& interpreter, ScopePtr scope)
      : interpreter_(interpreter), outer_(std::exchange(interpreter.scope_, std::move(scope))) {}
  ~Inside() { interpreter_.scope_ = std::move(outer_); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Interpreter& interpreter_;
  ScopePtr outer_;
};

}  // namespace canopy::jinja
