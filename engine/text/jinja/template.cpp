#include "engine/text/jinja/template.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <unordered_map>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/lexer.h"
#include "engine/text/jinja/parser.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {
namespace {

/// The variables of a template, a loop's turn, a macro's call or a {% with %}. What is set inside is gone outside.
/// Names point into the template and the given values, which outlive every scope.
class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> parent) : parent_(std::move(parent)) {}

  void set(std::string_view name, Value value) { values_.insert_or_assign(name, std::move(value)); }

  /// Here or further out; null where there is no such variable.
  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent_.get()) {
      const auto found = scope->values_.find(name);
      if (found != scope->values_.end()) return &found->second;
    }
    return nullptr;
  }

  /// A macro holds the scope that holds it; emptying the scope parts them.
  void clear() { values_.clear(); }

 private:
  std::shared_ptr<Scope> parent_;
  std::unordered_map<std::string_view, Value> values_;
};

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

  // Expressions.
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

  // Statements.
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

// Objects that a template can call or ask about itself: the variable `loop`, and macros.

class Loop final : public Object {
 public:
  /// depth counts recursive calls, from 0.
  Loop(Interpreter& interpreter, const For& node, std::shared_ptr<Scope> scope, std::shared_ptr<Iterator> items,
       std::optional<size_t> count, size_t depth)
      : interpreter_(interpreter),
        node_(node),
        scope_(std::move(scope)),
        items_(std::move(items)),
        count_(count),
        depth_(depth) {}

  std::string_view kind() const override { return "a loop"; }
  bool callable() const override { return true; }
  std::optional<Value> attribute(std::string_view name) override;
  void print(TextBuilder& out) override;

  /// loop(items): the text of the same loop over other items.
  Value call(Context& context, const Arguments& arguments) override;

  /// False at the end; true with the next item.
  bool go_on();
  const Value& item() const { return item_; }

  /// loop.changed(...): whether it was called with something else than the last time.
  bool changed(Context& context, const Arguments& arguments);
  size_t index() const { return index_ - 1; }

  /// Lets go of everything: loops kept in a namespace must not hold each other in a long chain.
  void finish();

 private:
  bool look_ahead();  // whether there is another item
  size_t count();     // of a generator, all that is left of it is asked for

  Interpreter& interpreter_;
  const For& node_;
  std::shared_ptr<Scope> scope_;     // around the loop
  std::shared_ptr<Iterator> items_;  // null when the loop has ended
  std::deque<Value> ahead_;          // items that were asked for early
  std::optional<size_t> count_;
  size_t depth_;
  size_t index_ = 0;  // of the item that comes next
  Value item_, previous_;
  std::optional<Value> last_changed_;
};

/// The variable `self`: the blocks of the template as functions.
class TemplateBlocks final : public Object {
 public:
  explicit TemplateBlocks(Interpreter& interpreter) : interpreter_(interpreter) {}
  std::string_view kind() const override { return "a template"; }
  std::optional<Value> attribute(std::string_view name) override;
  Text block_text(Context& context, const BlockBody& block);

 private:
  Interpreter& interpreter_;
};

class Macro final : public Object {
 public:
  Macro(Interpreter& interpreter, std::shared_ptr<const MacroBody> body, std::shared_ptr<Scope> scope)
      : interpreter_(interpreter), body_(std::move(body)), scope_(std::move(scope)) {}

  std::string_view kind() const override { return "a macro"; }
  bool callable() const override { return true; }
  Value call(Context& context, const Arguments& arguments) override;
  std::optional<Value> attribute(std::string_view name) override;
  void print(TextBuilder& out) override;

 private:
  void bind(Scope& scope, const Arguments& arguments) const;
  size_t parameter_index(std::string_view name) const;

  Interpreter& interpreter_;
  std::shared_ptr<const MacroBody> body_;
  std::shared_ptr<Scope> scope_;  // where the macro was defined
};

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

class LoopMethod final : public Object {
 public:
  LoopMethod(std::shared_ptr<Loop> loop, bool cycles) : loop_(std::move(loop)), cycles_(cycles) {}
  std::string_view kind() const override { return "a method"; }
  bool callable() const override { return true; }
  Value call(Context& context, const Arguments& arguments) override {
    context.step();
    if (!arguments.named.empty()) throw Failure("A method of a loop takes no named arguments.");
    if (!cycles_) return loop_->changed(context, arguments);
    if (arguments.positional.empty()) throw Failure("'loop.cycle' is given nothing to cycle through.");
    return arguments.positional[loop_->index() % arguments.positional.size()];
  }

 private:
  std::shared_ptr<Loop> loop_;
  bool cycles_;
};

class BlockFunction final : public Object {
 public:
  BlockFunction(std::shared_ptr<TemplateBlocks> blocks, std::shared_ptr<const BlockBody> block)
      : blocks_(std::move(blocks)), block_(std::move(block)) {}
  std::string_view kind() const override { return "a block"; }
  bool callable() const override { return true; }
  Value call(Context& context, const Arguments& arguments) override {
    const Parameters p("a block", arguments, {});
    return blocks_->block_text(context, *block_);
  }

 private:
  std::shared_ptr<TemplateBlocks> blocks_;
  std::shared_ptr<const BlockBody> block_;
};

bool Loop::look_ahead() {
  if (ahead_.empty() && items_ != nullptr) {
    if (auto item = items_->next(interpreter_.context_)) ahead_.push_back(*std::move(item));
  }
  return !ahead_.empty();
}

bool Loop::go_on() {
  if (!look_ahead()) return false;
  previous_ = std::exchange(item_, std::move(ahead_.front()));
  ahead_.pop_front();
  ++index_;
  return true;
}

size_t Loop::count() {
  if (!count_) {
    while (items_ != nullptr) {
      auto item = items_->next(interpreter_.context_);
      if (!item) break;
      ahead_.push_back(*std::move(item));
    }
    count_ = index_ + ahead_.size();
  }
  return *count_;
}

bool Loop::changed(Context& context, const Arguments& arguments) {
  if (items_ == nullptr) throw Failure("A loop is called that has ended.");
  Value values = context.make(List{arguments.positional, List::tuple});
  if (last_changed_ && equal(context, *last_changed_, values)) return false;
  last_changed_ = std::move(values);
  return true;
}

std::optional<Value> Loop::attribute(std::string_view name) {
  const auto index = static_cast<int64_t>(index_) - 1;
  const auto size = [&] { return static_cast<int64_t>(count()); };
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "revindex") return size() - index;
  if (name == "revindex0") return size() - index - 1;
  if (name == "first") return index == 0;
  if (name == "last") return !look_ahead();
  if (name == "length") return size();
  if (name == "depth") return static_cast<int64_t>(depth_) + 1;
  if (name == "depth0") return static_cast<int64_t>(depth_);
  if (name == "previtem") return index > 0 ? previous_ : Value::undefined("there is no previous item");
  if (name == "nextitem") return look_ahead() ? ahead_.front() : Value::undefined("there is no next item");
  if (name == "cycle" || name == "changed") {
    return Value(std::make_shared<LoopMethod>(std::static_pointer_cast<Loop>(shared_from_this()), name == "cycle"));
  }
  return std::nullopt;
}

void Loop::print(TextBuilder& out) {
  out.add("<LoopContext " + std::to_string(index_) + "/" + std::to_string(count()) + ">");
}

std::optional<Value> TemplateBlocks::attribute(std::string_view name) {
  const auto found = interpreter_.program_.blocks.find(name);
  if (found == interpreter_.program_.blocks.end()) return std::nullopt;
  return Value(
      std::make_shared<BlockFunction>(std::static_pointer_cast<TemplateBlocks>(shared_from_this()), found->second));
}

Text TemplateBlocks::block_text(Context& context, const BlockBody& block) {
  const Context::Call level(context);
  const Interpreter::Inside inside(interpreter_, interpreter_.root_);
  return interpreter_.block_text(block);
}

Value Loop::call(Context& context, const Arguments& arguments) {
  const Parameters p("loop", arguments, {"iterable"}, 1);
  if (!node_.recursive) throw Failure("A loop that is called must be marked 'recursive'.");
  if (scope_ == nullptr) throw Failure("A loop is called that has ended.");
  const Context::Call level(context);
  const Interpreter::Inside inside(interpreter_, scope_);
  return interpreter_.captured([&] { interpreter_.run_loop(node_, p.at(0), depth_ + 1); });
}

void Loop::finish() {
  items_.reset();
  ahead_.clear();
  scope_.reset();
  item_ = previous_ = Value();
  last_changed_.reset();
}

size_t Macro::parameter_index(std::string_view name) const {
  const auto found = std::find_if(body_->parameters.begin(), body_->parameters.end(),
                                  [&](const Parameter& parameter) { return parameter.name == name; });
  return static_cast<size_t>(found - body_->parameters.begin());
}

void Macro::bind(Scope& scope, const Arguments& arguments) const {
  const auto& parameters = body_->parameters;
  const size_t positional = std::min(arguments.positional.size(), parameters.size());
  List varargs{{}, List::tuple};
  Dict kwargs;
  for (size_t i = 0; i < positional; ++i) scope.set(parameters[i].name, arguments.positional[i]);
  for (size_t i = positional; i < arguments.positional.size(); ++i) varargs.items.push_back(arguments.positional[i]);
  std::vector<bool> given(parameters.size(), false);
  std::fill_n(given.begin(), positional, true);
  for (const auto& [name, value, key] : arguments.named) {
    const size_t index = parameter_index(name);
    if (index < parameters.size() && !given[index]) {
      given[index] = true;
      scope.set(parameters[index].name, value);
    } else if (name == "caller" && body_->uses_caller) {
      scope.set("caller", value);
    } else if (body_->uses_kwargs) {
      set_item(interpreter_.context_, kwargs, key, value);
    } else {
      throw Failure("The macro " + quoted_name(body_->name) + " takes no argument " + quoted_name(name) +
                    ", or is given it twice.");
    }
  }
  if (!varargs.items.empty() && !body_->uses_varargs) {
    throw Failure("The macro " + quoted_name(body_->name) + " is given " + std::to_string(arguments.positional.size()) +
                  " values; it takes " + std::to_string(parameters.size()) + ".");
  }
  // Absent parameters are undefined even where a variable outside has their name; defaults may use those before them.
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!given[i]) scope.set(parameters[i].name, Value::undefined("the macro is not given this parameter"));
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (given[i] || parameters[i].otherwise == nullptr) continue;
    scope.set(parameters[i].name, interpreter_.evaluate(*parameters[i].otherwise));
  }
  const auto is_caller = [](const auto& argument) { return argument.name == "caller"; };
  if (body_->uses_caller && parameter_index("caller") == parameters.size() &&
      std::none_of(arguments.named.begin(), arguments.named.end(), is_caller)) {
    scope.set("caller", Value::undefined("the macro is not called by {% call %}"));
  }
  if (body_->uses_varargs) scope.set("varargs", interpreter_.context_.make(std::move(varargs)));
  if (body_->uses_kwargs) scope.set("kwargs", interpreter_.context_.make(std::move(kwargs)));
}

std::optional<Value> Macro::attribute(std::string_view name) {
  if (name == "name") return Value::markup(body_->name);
  if (name == "catch_kwargs") return body_->uses_kwargs;
  if (name == "catch_varargs") return body_->uses_varargs;
  if (name == "caller") return body_->uses_caller;
  if (name != "arguments") return std::nullopt;
  List names{{}, List::tuple};
  for (const Parameter& parameter : body_->parameters) names.items.push_back(Value::markup(parameter.name));
  return interpreter_.context_.make(std::move(names));
}

void Macro::print(TextBuilder& out) {
  out.add("<Macro ");
  print_literal(out, Value::markup(body_->name));
  out.add(">");
}

Value Macro::call(Context& context, const Arguments& arguments) {
  const Context::Call level(context);
  const auto scope = std::make_shared<Scope>(scope_);
  const Interpreter::Inside inside(interpreter_, scope);
  bind(*scope, arguments);
  return interpreter_.captured([&] { interpreter_.run(body_->body); });
}

Interpreter::Interpreter(const Limits& limits, const std::tm& now, const Dict& values, const Program& program)
    : program_(program),
      context_(limits, now),
      scope_(std::make_shared<Scope>(nullptr)),
      root_(scope_),
      output_(context_) {
  for (const auto& [name, value] : values.items) {
    if (const Text* text = name.text()) scope_->set(text->bytes(), value);
  }
}

Interpreter::~Interpreter() {
  for (const ScopePtr& scope : captured_scopes_) scope->clear();
}

Text Interpreter::render() {
  run(program_.statements);
  return output_.take();
}

void Interpreter::write(const Text& text) {
  out_->add(text);
  const size_t limit = context_.limits().output_bytes;
  if (out_ == &output_ && output_.size() > limit) {
    throw Failure("The result has more than " + std::to_string(limit) + " bytes, which is the limit.");
  }
}

Text Interpreter::captured(const std::function<void()>& body) {
  TextBuilder builder(context_);
  struct Restore {
    TextBuilder*& slot;
    TextBuilder* outer;
    ~Restore() { slot = outer; }
  } const restore{out_, std::exchange(out_, &builder)};
  body();
  Text text = builder.take();
  text.set_safe(context_.autoescape);
  return text;
}

Value Interpreter::filtered(const ExprPtr& filters, Text text) {
  Value value(std::move(text));
  if (filters == nullptr) return value;
  struct Restore {
    const Value*& slot;
    const Value* outer;
    ~Restore() { slot = outer; }
  } const restore{block_text_, std::exchange(block_text_, &value)};
  return evaluate(*filters);
}

Interpreter::Flow Interpreter::run(const Block& block) {
  for (const Statement& statement : block) {
    const Flow flow = run(statement);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::run(const Statement& statement) {
  const Frame frame(*this, statement.line);
  return std::visit([&](const auto& node) { return visit(node); }, statement.node);
}

Interpreter::Flow Interpreter::visit(const Output& node) {
  write(Text(node.text));
  return Flow::on;
}

Interpreter::Flow Interpreter::visit(const Print& node) {
  for (const ExprPtr& expr : node.values) print_value(evaluate(*expr));
  return Flow::on;
}

void Interpreter::print_value(const Value& value) {
  if (context_.autoescape) return write(escaped(context_, to_text(context_, value)));
  write(value.text() != nullptr ? *value.text() : to_text(context_, value));
}

Interpreter::Flow Interpreter::visit(const If& node) {
  for (const auto& [condition, block] : node.branches) {
    if (condition == nullptr || evaluate(*condition).truthy()) return run(block);
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::visit(const For& node) {
  return run_loop(node, evaluate(*node.iterable), 0);
}

// A condition is looked at when the loop asks for its next item, so it sees what the body has done until then.
std::shared_ptr<Iterator> Interpreter::loop_items(const For& node, const Value& iterable) {
  std::shared_ptr<Iterator> items = iterate(context_, iterable);
  if (node.condition == nullptr) return items;
  return std::make_shared<Generator>(items->depth() + 1,
                                     [this, &node, items, outer = scope_](Context& context) -> std::optional<Value> {
                                       while (auto item = items->next(context)) {
                                         const Inside inside(*this, std::make_shared<Scope>(outer));
                                         assign(node.target, *item);
                                         if (evaluate(*node.condition).truthy()) return item;
                                       }
                                       return std::nullopt;
                                     });
}

Interpreter::Flow Interpreter::run_loop(const For& node, const Value& iterable, size_t depth) {
  std::optional<size_t> count;
  const bool has_length = iterable.list() != nullptr || iterable.dict() != nullptr || iterable.text() != nullptr;
  if (node.condition == nullptr && has_length) count = length(context_, iterable);
  const auto loop = std::make_shared<Loop>(*this, node, scope_, loop_items(node, iterable), count, depth);
  struct Finish {
    Loop& loop;
    ~Finish() { loop.finish(); }
  } const finish{*loop};
  const ScopePtr outer = scope_;
  bool completed = false;  // a turn, to the end of the body: neither break nor continue
  while (loop->go_on()) {
    const Inside inside(*this, std::make_shared<Scope>(outer));
    scope_->set("loop", std::shared_ptr<Object>(loop));
    assign(node.target, loop->item());
    const Flow flow = run(node.body);
    if (flow == Flow::end_of_loop) break;
    completed = completed || flow == Flow::on;
  }
  if (completed) return Flow::on;
  const Inside inside(*this, std::make_shared<Scope>(outer));
  return run(node.otherwise);
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (!target.unpacks) return assign(target.place, value);
  const std::vector<Value> items = elements(context_, value);
  if (items.size() != target.parts.size()) {
    throw Failure("A sequence of " + std::to_string(items.size()) + " is unpacked into " +
                  std::to_string(target.parts.size()) + " variables.");
  }
  for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
}

void Interpreter::assign(const Place& place, const Value& value) {
  if (place.attribute.empty()) return scope_->set(place.name, value);
  const Value* held = scope_->find(place.name);
  auto* space = held == nullptr ? nullptr : dynamic_cast<Namespace*>(held->object());
  if (space == nullptr) {
    throw Failure("The attribute " + quoted_name(place.attribute) + " of " + quoted_name(place.name) +
                  " is set, which is not a namespace().");
  }
  context_.check_depth(value.depth() + 1);
  space->set(Value::markup(place.attribute), value);
}

Interpreter::Flow Interpreter::visit(const Set& node) {
  assign(node.target, evaluate(*node.value));
  return Flow::on;
}

Text Interpreter::captured_block(const Block& block) {
  const Inside inside(*this, std::make_shared<Scope>(scope_));
  return captured([&] { run(block); });
}

Interpreter::Flow Interpreter::visit(const SetBlock& node) {
  assign(node.target, filtered(node.filters, captured_block(node.body)));
  return Flow::on;
}

Interpreter::Flow Interpreter::visit(const FilterBlock& node) {
  print_value(filtered(node.filters, captured_block(node.body)));
  return Flow::on;
}

Value Interpreter::make_macro(std::shared_ptr<const MacroBody> body) {
  if (captured_scopes_.empty() || captured_scopes_.back() != scope_) captured_scopes_.push_back(scope_);
  return std::shared_ptr<Object>(std::make_shared<Macro>(*this, std::move(body), scope_));
}

Interpreter::Flow Interpreter::visit(const MacroDefinition& node) {
  scope_->set(node.macro->name, make_macro(node.macro));
  return Flow::on;
}

Interpreter::Flow Interpreter::visit(const CallBlock& node) {
  const Value caller = make_macro(node.caller);
  print_value(call(std::get<Call>(node.call->node), &caller));
  return Flow::on;
}

Interpreter::Flow Interpreter::visit(const With& node) {
  std::vector<Value> values;  // all are computed outside
  for (const auto& [target, expr] : node.assignments) values.push_back(evaluate(*expr));
  const Inside inside(*this, std::make_shared<Scope>(scope_));
  for (size_t i = 0; i < values.size(); ++i) assign(node.assignments[i].first, values[i]);
  return run(node.body);
}

Interpreter::Flow Interpreter::visit(const Group& node) {
  return run(node.body);
}

Text Interpreter::block_text(const BlockBody& block) {
  if (block.is_required) {
    throw Failure("The block " + quoted_name(block.name) +
                  " is required to be filled by another template, and a chat template has no other.");
  }
  const Inside inside(*this, std::make_shared<Scope>(block.is_scoped ? scope_ : root_));
  return captured([&] { run(block.body); });
}

Interpreter::Flow Interpreter::visit(const BlockTag& node) {
  write(block_text(*node.block));
  return Flow::on;
}

Interpreter::Flow Interpreter::visit(const Autoescape& node) {
  struct Restore {
    bool& slot;
    bool outer;
    ~Restore() { slot = outer; }
  } const restore{context_.autoescape, context_.autoescape};
  context_.autoescape = evaluate(*node.on).truthy();
  const Inside inside(*this, std::make_shared<Scope>(scope_));
  return run(node.body);
}

Error located(const std::string& name, int line, const char* message) {
  return bad_input(name + ", line " + std::to_string(line) + ": " + message);
}

}  // namespace

Template::Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Template Template::parse(std::string_view source, std::string name, const Limits& limits) {
  Template result;
  result.name_ = std::move(name);
  result.limits_ = limits;
  try {
    result.program_ = std::make_unique<const Program>(jinja::parse(source, limits));
  } catch (const SyntaxFailure& failure) {
    throw located(result.name_, failure.line(), failure.what());
  }
  return result;
}

std::vector<Segment> Template::render(const Dict& values, const std::tm& now) const {
  Interpreter interpreter(limits_, now, values, *program_);
  Text text;
  try {
    text = interpreter.render();
  } catch (const Failure& failure) {
    throw located(name_, interpreter.line(), failure.what());
  }
  std::vector<Segment> segments;
  for (size_t at = 0; at < text.size();) {
    const size_t size = text.run_length(at);
    segments.push_back({std::string(text.bytes().substr(at, size)), text.origin(at)});
    at += size;
  }
  return segments;
}

}  // namespace canopy::jinja
