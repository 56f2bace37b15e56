#pragma once
// The functions, filters and tests that a template may name; it reaches nothing else. In builtins.cpp are the
// functions, dates and tests, in text_filters.cpp and list_filters.cpp the filters.

#include <map>
#include <span>
#include <string>

#include "engine/text/jinja/value.h"

namespace canopy::jinja {

struct Filter {
  std::string_view name;
  Value (*apply)(Context&, const Value& subject, const Arguments&);
};

/// Throw Failure for a name that is not known.
Value apply_filter(Context& context, std::string_view name, const Value& subject, const Arguments& arguments);
bool apply_test(Context& context, std::string_view name, const Value& subject, const Arguments& arguments);
/// Whether jinja2 has a filter or a test of this name, be it one that is refused here.
bool is_filter(std::string_view name);
bool is_test(std::string_view name);

/// Filters of text, of its layout in lines, and for HTML.
std::span<const Filter> text_filters();

/// range, namespace, dict, raise_exception, strftime_now, joiner, cycler; null for other names.
const Value* find_function(std::string_view name);

/// What strftime() of Python gives for a time without a zone, in the C locale.
Value format_time(Context& context, const Text& format, const std::tm& time);

/// An object whose attributes can be set. Namespaces can hold each other, so the interpreter empties them at the end of
/// a rendering.
class Namespace final : public Object {
 public:
  std::string_view kind() const override { return "a namespace"; }
  std::optional<Value> attribute(std::string_view name) override;
  void print(TextBuilder& out) override;
  void set(const Value& name, Value value);  // a string
  void clear();

 private:
  std::map<std::string, size_t, std::less<>> places_;
  std::vector<std::pair<Value, Value>> values_;  // in the order in which they were set first
};

}  // namespace canopy::jinja
