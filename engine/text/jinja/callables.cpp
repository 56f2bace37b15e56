#include "engine/text/jinja/callables.h"

#include <algorithm>

#include "engine/base/printable.h"

namespace canopy::jinja {
namespace {

// loop.cycle('odd', 'even')
class Cycle final : public Object {
 public:
  explicit Cycle(size_t index) : index_(index) {}
  std::string_view kind() const override { return "a function"; }
  bool callable() const override { return true; }
  Value call(Context& context, const Arguments& arguments) override {
    context.step();
    if (arguments.positional.empty()) throw Failure("'loop.cycle' is given nothing to cycle through.");
    return arguments.positional[index_ % arguments.positional.size()];
  }

 private:
  size_t index_;
};

}  // namespace

Value Loop::neighbour(bool exists, size_t index) const {
  return exists && index < items_.size() ? items_[index] : Value::undefined("the loop has no such item");
}

std::optional<Value> Loop::attribute(std::string_view name) const {
  const auto index = static_cast<int64_t>(index_);
  const auto count = static_cast<int64_t>(items_.size());
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "revindex") return count - index;
  if (name == "revindex0") return count - index - 1;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 >= count;
  if (name == "length") return count;
  if (name == "depth") return static_cast<int64_t>(depth_) + 1;
  if (name == "depth0") return static_cast<int64_t>(depth_);
  if (name == "previtem") return neighbour(index_ > 0, index_ - 1);
  if (name == "nextitem") return neighbour(true, index_ + 1);
  if (name == "cycle") return Value(std::shared_ptr<Object>(std::make_shared<Cycle>(index_)));
  return std::nullopt;
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
  items_.clear();
  scope_.reset();
}

size_t Macro::parameter_index(std::string_view name) const {
  const auto found = std::find_if(body_->parameters.begin(), body_->parameters.end(),
                                  [&](const Parameter& parameter) { return parameter.name == name; });
  return static_cast<size_t>(found - body_->parameters.begin());
}

void Macro::bind(Scope& scope, const Arguments& arguments) const {
  const auto& parameters = body_->parameters;
  const size_t positional = std::min(arguments.positional.size(), parameters.size());
  List varargs{{}, true};
  Dict kwargs;
  for (size_t i = 0; i < positional; ++i) scope.set(parameters[i].name, arguments.positional[i]);
  for (size_t i = positional; i < arguments.positional.size(); ++i) varargs.items.push_back(arguments.positional[i]);
  std::vector<bool> given(parameters.size(), false);
  std::fill_n(given.begin(), positional, true);
  for (const auto& [name, value] : arguments.named) {
    const size_t index = parameter_index(name);
    if (index < parameters.size() && !given[index]) {
      given[index] = true;
      scope.set(parameters[index].name, value);
    } else if (name == "caller" && body_->uses_caller) {
      scope.set("caller", value);
    } else if (body_->uses_kwargs) {
      kwargs.set(name, value);
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
  if (body_->uses_varargs) scope.set("varargs", interpreter_.context_.make(std::move(varargs)));
  if (body_->uses_kwargs) scope.set("kwargs", interpreter_.context_.make(std::move(kwargs)));
}

Value Macro::call(Context& context, const Arguments& arguments) {
  const Context::Call level(context);
  const auto scope = std::make_shared<Scope>(scope_);
  const Interpreter::Inside inside(interpreter_, scope);
  bind(*scope, arguments);
  return interpreter_.captured([&] { interpreter_.run(body_->body); });
}

}  // namespace canopy::jinja
