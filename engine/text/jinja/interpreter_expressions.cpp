#include "engine/base/printable.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/callables.h"
#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {

Interpreter::Frame::Frame(Interpreter& interpreter, int line) : interpreter_(interpreter) {
  const size_t limit = interpreter.context_.limits().frames;
  interpreter.line_ = line;
  interpreter.context_.step();
  if (interpreter.frames_ >= limit) {
    throw Failure("More than " + std::to_string(limit) +
                  " expressions and blocks are inside each other, which is the " + "limit.");
  }
  ++interpreter.frames_;
}

Value Interpreter::evaluate(const Expr& expr) {
  const Frame frame(*this, expr.line);
  return std::visit(
      [&](const auto& node) {
        Value value = visit(node);
        line_ = expr.line;
        return value;
      },
      expr.node);
}

Value Interpreter::evaluate_or(const ExprPtr& expr, const Value& otherwise) {
  return expr == nullptr ? otherwise : evaluate(*expr);
}

Value Interpreter::visit(const Literal& node) {
  return node.value;
}

Value Interpreter::visit(const Name& node) {
  if (const Value* value = scope_->find(node.name)) return *value;
  if (const Value* value = find_function(node.name)) return *value;
  if (node.name == "self") return Value(std::make_shared<TemplateBlocks>(*this));
  return Value::undefined("there is no " + quoted_name(node.name));
}

Value Interpreter::visit(const ListLiteral& node) {
  List list{{}, node.is_tuple ? List::tuple : List::list};
  for (const ExprPtr& item : node.items) list.items.push_back(evaluate(*item));
  return context_.make(std::move(list));
}

Value Interpreter::visit(const DictLiteral& node) {
  Dict dict;
  for (const auto& [key_expr, value_expr] : node.items) {
    const Value key = evaluate(*key_expr);
    set_item(context_, dict, key, evaluate(*value_expr));
  }
  return context_.make(std::move(dict));
}

Value Interpreter::visit(const Not& node) {
  return !evaluate(*node.operand).truthy();
}

Value Interpreter::visit(const Sign& node) {
  Value value = evaluate(*node.operand);
  if (node.minus) return negate(value);
  require_defined(value);
  if (value.is_int() || value.floating() != nullptr) return value;
  if (const auto number = value.as_integer()) return *number;
  throw Failure("'+' has no meaning in front of " + std::string(value.kind()) + ".");
}

Value Interpreter::visit(const Binary& node) {
  const Value left = evaluate(*node.left);
  const Value right = evaluate(*node.right);
  return apply(context_, node.op, left, right);
}

Value Interpreter::visit(const Concat& node) {
  std::vector<Text> parts;
  bool safe = false;
  for (const ExprPtr& part : node.parts) {
    parts.push_back(to_text(context_, evaluate(*part)));
    safe = safe || (context_.autoescape && parts.back().is_safe());
  }
  TextBuilder builder(context_);
  for (const Text& part : parts) builder.add(safe ? escaped(context_, part) : part);
  Text text = builder.take();
  text.set_safe(safe);
  return text;
}

Value Interpreter::visit(const Logic& node) {
  Value left = evaluate(*node.left);
  return left.truthy() == node.is_and ? evaluate(*node.right) : left;
}

bool Interpreter::compare(CompareOp op, const Value& left, const Value& right) {
  switch (op) {
    case CompareOp::equal: return equal(context_, left, right);
    case CompareOp::not_equal: return !equal(context_, left, right);
    case CompareOp::less: return less(context_, left, right);
    case CompareOp::less_equal: return less(context_, left, right) || equal(context_, left, right);
    case CompareOp::greater: return less(context_, right, left);
    case CompareOp::greater_equal: return less(context_, right, left) || equal(context_, left, right);
    case CompareOp::in: return contains(context_, right, left);
    case CompareOp::not_in: return !contains(context_, right, left);
  }
  return false;
}

Value Interpreter::visit(const Comparison& node) {
  Value left = evaluate(*node.first);
  for (const auto& [op, expr] : node.others) {
    Value right = evaluate(*expr);
    if (!compare(op, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::visit(const Conditional& node) {
  if (evaluate(*node.condition).truthy()) return evaluate(*node.then);
  return evaluate_or(node.otherwise, Value::undefined("an inline 'if' was false and has no 'else'"));
}

Value Interpreter::visit(const AttributeOf& node) {
  return attribute(context_, evaluate(*node.value), node.name);
}

Value Interpreter::visit(const ItemOf& node) {
  const Value value = evaluate(*node.value);
  return item(context_, value, evaluate(*node.key));
}

Value Interpreter::visit(const SliceOf& node) {
  const Value value = evaluate(*node.value);
  const Value begin = evaluate_or(node.begin, None{});
  const Value end = evaluate_or(node.end, None{});
  return slice(context_, value, begin, end, evaluate_or(node.step, None{}));
}

Arguments Interpreter::evaluate_arguments(const CallArguments& arguments) {
  Arguments result;
  for (const ExprPtr& expr : arguments.positional) result.positional.push_back(evaluate(*expr));
  if (arguments.spread_list != nullptr) {
    for (Value& value : elements(context_, evaluate(*arguments.spread_list))) {
      result.positional.push_back(std::move(value));
    }
  }
  for (const auto& [name, expr] : arguments.named) result.named.push_back({name, evaluate(*expr), Value::markup(name)});
  if (arguments.spread_dict != nullptr) {
    const Value spread = evaluate(*arguments.spread_dict);
    if (spread.dict() == nullptr) throw Failure("'**' is followed by " + std::string(spread.kind()) + ".");
    for (const auto& [key, value] : spread.dict()->items) {
      context_.step();
      if (key.text() == nullptr) throw Failure("'**' is followed by a dict with keys that are not strings.");
      result.named.push_back({std::string(key.text()->bytes()), value, key});
    }
  }
  return result;
}

Value Interpreter::call(const Call& node, const Value* caller) {
  const Value callee = evaluate(*node.callee);
  Arguments arguments = evaluate_arguments(node.arguments);
  if (caller != nullptr) arguments.named.push_back({"caller", *caller, Value::markup("caller")});
  require_defined(callee);
  Object* object = callee.object();
  if (object == nullptr) throw Failure("The value that is called is " + std::string(callee.kind()) + ".");
  return object->call(context_, arguments);
}

Value Interpreter::visit(const Call& node) {
  return call(node, nullptr);
}

Value Interpreter::visit(const FilterCall& node) {
  const Value subject = node.subject == nullptr ? *block_text_ : evaluate(*node.subject);
  return apply_filter(context_, node.name, subject, evaluate_arguments(node.arguments));
}

Value Interpreter::visit(const TestCall& node) {
  const Value subject = evaluate(*node.subject);
  return apply_test(context_, node.name, subject, evaluate_arguments(node.arguments)) != node.negated;
}

}  // namespace canopy::jinja
