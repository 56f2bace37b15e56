#include "engine/base/printable.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/callables.h"
#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {

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

}  // namespace canopy::jinja
