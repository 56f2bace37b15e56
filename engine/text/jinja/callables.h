#pragma once
// Objects that a template can call or ask about itself: the variable `loop`, and macros.

#include "engine/text/jinja/interpreter.h"

namespace canopy::jinja {

class Loop final : public Object {
 public:
  /// depth counts recursive calls, from 0.
  Loop(Interpreter& interpreter, const For& node, std::shared_ptr<Scope> scope, std::vector<Value> items, size_t depth)
      : interpreter_(interpreter), node_(node), scope_(std::move(scope)), items_(std::move(items)), depth_(depth) {}

  std::string_view kind() const override { return "a loop"; }
  bool callable() const override { return node_.recursive; }
  std::optional<Value> attribute(std::string_view name) const override;

  /// loop(items): the text of the same loop over other items.
  Value call(Context& context, const Arguments& arguments) override;

  bool done() const { return index_ >= items_.size(); }
  const Value& item() const { return items_[index_]; }
  void go_on() { ++index_; }

  /// Lets go of everything: loops kept in a namespace must not hold each other in a long chain.
  void finish();

 private:
  Value neighbour(bool exists, size_t index) const;

  Interpreter& interpreter_;
  const For& node_;
  std::shared_ptr<Scope> scope_;  // around the loop
  std::vector<Value> items_;
  size_t depth_;
  size_t index_ = 0;
};

class Macro final : public Object {
 public:
  Macro(Interpreter& interpreter, std::shared_ptr<const MacroBody> body, std::shared_ptr<Scope> scope)
      : interpreter_(interpreter), body_(std::move(body)), scope_(std::move(scope)) {}

  std::string_view kind() const override { return "a macro"; }
  bool callable() const override { return true; }
  Value call(Context& context, const Arguments& arguments) override;

 private:
  void bind(Scope& scope, const Arguments& arguments) const;
  size_t parameter_index(std::string_view name) const;

  Interpreter& interpreter_;
  std::shared_ptr<const MacroBody> body_;
  std::shared_ptr<Scope> scope_;  // where the macro was defined
};

}  // namespace canopy::jinja
