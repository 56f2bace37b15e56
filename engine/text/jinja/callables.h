#pragma once
// Objects that a template can call or ask about itself: the variable `loop`, and macros.

#include <deque>

#include "engine/text/jinja/interpreter.h"

namespace canopy::jinja {

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

}  // namespace canopy::jinja
