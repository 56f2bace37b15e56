#pragma once
// The values that a template computes with. They are immutable, but for namespaces; text and lists are shared.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/text/jinja/integer.h"
#include "engine/text/jinja/text.h"

namespace canopy::jinja {

class Value;
class Context;
class TextBuilder;
struct Arguments;

/// The value of a name or an attribute that does not exist: prints nothing, is false and has no elements.
struct Undefined {
  std::shared_ptr<const std::string> what;  // for messages, e.g. "'x' is undefined"
};

struct None {};

struct List;
struct Dict;

/// A value with a behaviour of its own: a function, a macro, a loop, a namespace, a generator.
class Object : public std::enable_shared_from_this<Object> {
 public:
  virtual ~Object() = default;
  /// For messages, e.g. "a namespace".
  virtual std::string_view kind() const = 0;
  virtual std::optional<Value> attribute(std::string_view name);
  virtual bool callable() const { return false; }
  /// Levels of lists and dicts that it holds on to.
  virtual size_t depth() const { return 0; }
  /// Throws Failure where the object cannot be called or the arguments do not fit.
  virtual Value call(Context& context, const Arguments& arguments);
  /// What {{ value }} prints. Throws Failure where Python would print an address.
  virtual void print(TextBuilder& out);
};

class Value {
 public:
  using Data = std::variant<Undefined, None, bool, int64_t, std::shared_ptr<const BigInteger>, double,
                            std::shared_ptr<const Text>, std::shared_ptr<const List>, std::shared_ptr<const Dict>,
                            std::shared_ptr<Object>>;

  Value() = default;
  Value(None none) : data_(none) {}
  Value(bool value) : data_(value) {}
  Value(int64_t value) : data_(value) {}
  Value(int value) : data_(int64_t{value}) {}
  Value(const BigInteger& value);
  Value(double value) : data_(value) {}
  Value(Text text) : data_(std::make_shared<const Text>(std::move(text))) {}
  Value(List list);
  Value(Dict dict);
  Value(std::shared_ptr<Object> object) : data_(std::move(object)) {}
  Value(const void*) = delete;  // no pointer becomes a bool by accident

  static Value undefined(std::string what);
  static Value markup(std::string_view text) { return Text(std::string(text), Origin::markup); }
  static Value content(std::string_view text, Origin origin = Origin::content) {
    return Text(std::string(text), origin);
  }

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }

  /// Null where the value is of another kind.
  const Undefined* undefined() const { return std::get_if<Undefined>(&data_); }
  const bool* boolean() const { return std::get_if<bool>(&data_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&data_); }
  const BigInteger* big() const { return pointee<const BigInteger>(); }  // only what does not fit into 64 bits
  const double* floating() const { return std::get_if<double>(&data_); }
  const Text* text() const { return pointee<const Text>(); }
  const List* list() const { return pointee<const List>(); }
  const Dict* dict() const { return pointee<const Dict>(); }
  Object* object() const { return pointee<Object>(); }
  std::shared_ptr<Object> shared_object() const;  // null where the value is of another kind

  bool is_int() const { return integer() != nullptr || big() != nullptr; }  // bools are none
  /// The number that Python sees in an int or a bool; as_integer() only where it fits into 64 bits.
  std::optional<int64_t> as_integer() const;
  std::optional<BigInteger> as_big_integer() const;
  /// Infinite for an int beyond the largest float.
  std::optional<double> as_number() const;

  /// False for undefined, none, false, zero and whatever is empty.
  bool truthy() const;

  /// For messages: "a string", "a list", ...
  std::string_view kind() const;

  /// Levels of lists and dicts, 0 for what is neither.
  size_t depth() const;

 private:
  template <class T>
  T* pointee() const {
    const auto* held = std::get_if<std::shared_ptr<T>>(&data_);
    return held == nullptr ? nullptr : held->get();
  }

  Data data_;
};

/// What Python has several types for. They differ in how they are printed, what equals them and what can be done with
/// them: the views of a dict have no items by number.
struct List {
  enum Kind { list, tuple, group, range, keys, values, items_view };
  std::vector<Value> items;
  Kind kind = list;
  std::array<int64_t, 3> bounds{};  // of a range: start, stop, step
  size_t depth = 1;                 // set by Value

  bool is_tuple() const { return kind == tuple || kind == group; }  // a group is one of groupby's
  bool is_view() const { return kind >= keys; }
};

struct Dict {
  std::vector<std::pair<Value, Value>> items;  // in the order of insertion; keys differ
  size_t depth = 1;                            // set by Value

  const Value* find(std::string_view key) const;
  void set(std::string_view key, Value value);
};

/// key: the name as a string that knows who wrote it; `**` brings the keys of messages.
struct NamedArgument {
  std::string name;
  Value value, key;
};

/// The arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<NamedArgument> named;
};

}  // namespace canopy::jinja
