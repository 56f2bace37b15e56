#include "engine/text/jinja/callables.h"

#include <algorithm>

#include "engine/base/printable.h"
#include "engine/text/jinja/format_text.h"

namespace canopy::jinja {
namespace {

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

}  // namespace

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

}  // namespace canopy::jinja
