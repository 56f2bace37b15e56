#include <algorithm>

#include "engine/base/printable.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"

namespace canopy::jinja {
namespace {

class Function final : public Object {
 public:
  using Body = Value (*)(Context&, const Arguments&);
  explicit Function(Body body) : body_(body) {}

  std::string_view kind() const override { return "a function"; }
  bool callable() const override { return true; }
  Value call(Context& context, const Arguments& arguments) override { return body_(context, arguments); }

 private:
  Body body_;
};

Value call_range(Context& context, const Arguments& arguments) {
  const Parameters p("range", arguments, {"start", "stop", "step"}, 1);
  const bool one = p.find(1) == nullptr;
  const int64_t first = one ? 0 : p.integer(0, 0);
  const int64_t last = p.integer(one ? 0 : 1, 0);
  const int64_t by = p.integer(2, 1);
  if (by == 0) throw Failure("The step of 'range' is zero.");
  List numbers{{}, List::range, {first, last, by}};
  for (int64_t i = first; by > 0 ? i < last : i > last;) {
    context.step();
    numbers.items.emplace_back(i);
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  return context.make(std::move(numbers));
}

// The entries of an optional dict, or of pairs, then the named arguments.
Dict collected(std::string_view callee, Context& context, const Arguments& arguments) {
  Dict dict;
  if (arguments.positional.size() > 1) throw Failure("'" + std::string(callee) + "' takes one dict and named values.");
  if (!arguments.positional.empty()) {
    const Value& given = arguments.positional.front();
    if (given.dict() != nullptr) {
      context.step(given.dict()->items.size());
      dict = *given.dict();
    } else {
      for (const Value& pair : elements(context, given)) {
        const std::vector<Value> both = elements(context, pair);
        if (both.size() != 2) {
          throw Failure("'" + std::string(callee) + "' is given a sequence of " + std::to_string(both.size()) +
                        " where a pair of key and value is expected.");
        }
        set_item(context, dict, both[0], both[1]);
      }
    }
  }
  for (const auto& [name, value, key] : arguments.named) {
    set_item(context, dict, key, value);
  }
  return dict;
}

Value call_dict(Context& context, const Arguments& arguments) {
  return context.make(collected("dict", context, arguments));
}

Value call_namespace(Context& context, const Arguments& arguments) {
  const Dict fields = collected("namespace", context, arguments);
  const auto result = std::make_shared<Namespace>();
  for (const auto& [name, value] : fields.items) {
    if (name.text() != nullptr) result->set(name, value);
  }
  context.keep(result);
  return std::shared_ptr<Object>(result);
}

Value call_raise_exception(Context& context, const Arguments& arguments) {
  const Parameters p("raise_exception", arguments, {"message"}, 1);
  throw Failure("The template refuses: " + printable(to_text(context, p.at(0)).bytes(), 512));
}

Value call_strftime_now(Context& context, const Arguments& arguments) {
  const Parameters p("strftime_now", arguments, {"format"}, 1);
  return format_time(context, p.text(0), context.now());
}

Value call_lipsum(Context&, const Arguments&) {
  throw Failure("The function 'lipsum' is not supported: the same chat must give the same prompt.");
}

// cycler('odd', 'even'): each next() gives the next one, and begins again behind the last.
class Cycler final : public Object {
 public:
  explicit Cycler(const std::vector<Value>& items) : state_(std::make_shared<State>(State{items})) {
    for (const Value& item : items) state_->depth = std::max(state_->depth, item.depth() + 1);
  }
  std::string_view kind() const override { return "a cycler"; }
  size_t depth() const override { return state_->depth; }
  std::optional<Value> attribute(std::string_view name) override {
    if (name == "current") return state_->items[state_->at];
    if (name == "next" || name == "reset") return Value(std::make_shared<Method>(state_, name == "next"));
    return std::nullopt;
  }

 private:
  struct State {
    std::vector<Value> items;
    size_t at = 0, depth = 1;
  };

  class Method final : public Object {
   public:
    Method(std::shared_ptr<State> state, bool next) : state_(std::move(state)), next_(next) {}
    std::string_view kind() const override { return "a method"; }
    bool callable() const override { return true; }
    size_t depth() const override { return state_->depth; }
    Value call(Context& context, const Arguments& arguments) override {
      context.step();
      const Parameters p(next_ ? "next" : "reset", arguments, {});
      const size_t at = std::exchange(state_->at, next_ ? (state_->at + 1) % state_->items.size() : 0);
      return next_ ? state_->items[at] : Value(None{});
    }

   private:
    std::shared_ptr<State> state_;
    bool next_;
  };

  std::shared_ptr<State> state_;
};

Value call_cycler(Context& context, const Arguments& arguments) {
  if (!arguments.named.empty()) throw Failure("'cycler' takes no named arguments.");
  if (arguments.positional.empty()) throw Failure("'cycler' is given nothing to cycle through.");
  const auto cycler = std::make_shared<Cycler>(arguments.positional);
  context.check_depth(cycler->depth());
  return std::shared_ptr<Object>(cycler);
}

// Gives nothing when first called, then the separator.
class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string_view kind() const override { return "a joiner"; }
  bool callable() const override { return true; }
  size_t depth() const override { return separator_.depth(); }
  Value call(Context&, const Arguments& arguments) override {
    const Parameters p("a joiner", arguments, {});
    return std::exchange(used_, true) ? separator_ : Value::markup("");
  }

 private:
  Value separator_;
  bool used_ = false;
};

Value call_joiner(Context&, const Arguments& arguments) {
  const Parameters p("joiner", arguments, {"sep"});
  return std::shared_ptr<Object>(std::make_shared<Joiner>(p.find(0) == nullptr ? Value::markup(", ") : p.at(0)));
}

Value function(Function::Body body) {
  return std::shared_ptr<Object>(std::make_shared<Function>(body));
}

}  // namespace

std::optional<Value> Namespace::attribute(std::string_view name) {
  const auto found = places_.find(name);
  return found == places_.end() ? std::nullopt : std::optional(values_[found->second].second);
}

void Namespace::set(const Value& name, Value value) {
  const auto [place, is_new] = places_.emplace(std::string(name.text()->bytes()), values_.size());
  if (is_new) {
    values_.emplace_back(name, std::move(value));
  } else {
    values_[place->second].second = std::move(value);
  }
}

void Namespace::clear() {
  places_.clear();
  values_.clear();
}

void Namespace::print(TextBuilder& out) {
  out.context().step(values_.size());
  out.add("<Namespace ");
  print_literal(out, Dict{values_});
  out.add(">");
}

const Value* find_function(std::string_view name) {
  static const std::pair<std::string_view, Value> functions[] = {
      {"range", function(call_range)},
      {"namespace", function(call_namespace)},
      {"dict", function(call_dict)},
      {"raise_exception", function(call_raise_exception)},
      {"strftime_now", function(call_strftime_now)},
      {"joiner", function(call_joiner)},
      {"cycler", function(call_cycler)},
      {"lipsum", function(call_lipsum)},
  };
  const auto* found =
      std::find_if(std::begin(functions), std::end(functions), [&](const auto& entry) { return entry.first == name; });
  return found == std::end(functions) ? nullptr : &found->second;
}

}  // namespace canopy::jinja
