#pragma once
// The functions, filters and tests that a template may name. Templates reach nothing else.

#include <map>
#include <span>
#include <string>

#include "engine/text/jinja/context.h"

namespace canopy::jinja {

struct Filter {
  std::string_view name;
  Value (*apply)(Context&, const Value& subject, const Arguments&);
};
struct Test {
  std::string_view name;
  bool (*holds)(Context&, const Value& subject, const Arguments&);
};

/// Throw Failure for a name that is not known.
Value apply_filter(Context& context, std::string_view name, const Value& subject, const Arguments& arguments);
bool apply_test(Context& context, std::string_view name, const Value& subject, const Arguments& arguments);

std::span<const Filter> text_filters();
std::span<const Filter> number_filters();
std::span<const Filter> list_filters();

/// range, namespace, dict, raise_exception, strftime_now, joiner; null for other names.
const Value* find_function(std::string_view name);

/// An object whose attributes can be set. Namespaces can hold each other, so the interpreter empties them at the end of
/// a rendering.
class Namespace final : public Object {
 public:
  std::string_view kind() const override { return "a namespace"; }
  std::optional<Value> attribute(std::string_view name) const override;
  void set(std::string name, Value value) { values_.insert_or_assign(std::move(name), std::move(value)); }
  void clear() { values_.clear(); }

 private:
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace canopy::jinja
