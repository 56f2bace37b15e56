#include <algorithm>
#include <array>

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
  std::vector<Value> numbers;
  for (int64_t i = first; by > 0 ? i < last : i > last;) {
    context.step();
    numbers.emplace_back(i);
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  return context.make_list(std::move(numbers));
}

// The entries of an optional dict, then the named arguments.
Dict collected(std::string_view callee, Context& context, const Arguments& arguments) {
  Dict dict;
  if (arguments.positional.size() > 1) throw Failure("'" + std::string(callee) + "' takes one dict and named values.");
  if (!arguments.positional.empty()) {
    const Dict* given = arguments.positional.front().dict();
    if (given == nullptr) {
      throw Failure("'" + std::string(callee) + "' is given " + std::string(arguments.positional.front().kind()) +
                    "; it takes a dict and named values.");
    }
    context.step(given->items.size());
    dict = *given;
  }
  for (const auto& [name, value] : arguments.named) {
    context.step(1 + dict.items.size() / 8);
    dict.set(name, value);
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
    if (const Text* text = name.text()) result->set(std::string(text->bytes()), value);
  }
  context.keep(result);
  return std::shared_ptr<Object>(result);
}

Value call_raise_exception(Context& context, const Arguments& arguments) {
  const Parameters p("raise_exception", arguments, {"message"}, 1);
  throw Failure("The template refuses: " + printable(to_text(context, p.at(0)).bytes(), 512));
}

std::string two_digits(int number, char padding = '0') {
  return (number < 10 ? std::string(1, padding) : std::string()) + std::to_string(number);
}

// One conversion of strftime in the C locale, whatever the locale of the process; empty where it is not known.
std::string date_part(char conversion, const std::tm& now) {
  static constexpr std::array<std::string_view, 12> months = {"January",   "February", "March",    "April",
                                                              "May",       "June",     "July",     "August",
                                                              "September", "October",  "November", "December"};
  static constexpr std::array<std::string_view, 7> days = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                           "Thursday", "Friday", "Saturday"};
  const std::string_view month = months[static_cast<size_t>(now.tm_mon) % months.size()];
  const std::string_view day = days[static_cast<size_t>(now.tm_wday) % days.size()];
  const int hour = now.tm_hour % 12 == 0 ? 12 : now.tm_hour % 12;
  switch (conversion) {
    case 'a': return std::string(day.substr(0, 3));
    case 'A': return std::string(day);
    case 'b':
    case 'h': return std::string(month.substr(0, 3));
    case 'B': return std::string(month);
    case 'd': return two_digits(now.tm_mday);
    case 'e': return two_digits(now.tm_mday, ' ');
    case 'm': return two_digits(now.tm_mon + 1);
    case 'y': return two_digits(now.tm_year % 100);
    case 'Y': return std::to_string(now.tm_year + 1900);
    case 'H': return two_digits(now.tm_hour);
    case 'I': return two_digits(hour);
    case 'M': return two_digits(now.tm_min);
    case 'S': return two_digits(now.tm_sec);
    case 'p': return now.tm_hour < 12 ? "AM" : "PM";
    case 'w': return std::to_string(now.tm_wday);
    case 'F': return date_part('Y', now) + "-" + date_part('m', now) + "-" + date_part('d', now);
    case 'T': return date_part('H', now) + ":" + date_part('M', now) + ":" + date_part('S', now);
    case '%': return "%";
    default: return {};
  }
}

// The number without padding, for %-d and its kind.
std::string unpadded(std::string digits) {
  const size_t first = digits.find_first_not_of("0 ");
  return first == std::string::npos ? "0" : digits.substr(first);
}

Value call_strftime_now(Context& context, const Arguments& arguments) {
  const Parameters p("strftime_now", arguments, {"format"}, 1);
  const Text& format = p.text(0);
  const std::string_view bytes = format.bytes();
  TextBuilder out(context);
  for (size_t at = 0; at < bytes.size(); ++at) {
    if (bytes[at] != '%') {
      out.add(format, at, 1);
      continue;
    }
    const bool bare = at + 1 < bytes.size() && bytes[at + 1] == '-';
    at += bare ? 2 : 1;
    const std::string part = at < bytes.size() ? date_part(bytes[at], context.now()) : std::string();
    if (part.empty()) {
      throw Failure(
          "'strftime_now' is given a conversion that is not supported; supported are % with one of "
          "a A b B d e F h H I m M p S T w y Y and %.");
    }
    out.add(bare ? unpadded(part) : part);
  }
  return out.take();
}

// Gives nothing when first called, then the separator.
class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string_view kind() const override { return "a joiner"; }
  bool callable() const override { return true; }
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
  return std::shared_ptr<Object>(
      std::make_shared<Joiner>(p.find(0) == nullptr ? Value::markup(", ") : Value(p.text(0))));
}

Value function(Function::Body body) {
  return std::shared_ptr<Object>(std::make_shared<Function>(body));
}

}  // namespace

std::optional<Value> Namespace::attribute(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

const Value* find_function(std::string_view name) {
  static const std::pair<std::string_view, Value> functions[] = {
      {"range", function(call_range)},
      {"namespace", function(call_namespace)},
      {"dict", function(call_dict)},
      {"raise_exception", function(call_raise_exception)},
      {"strftime_now", function(call_strftime_now)},
      {"joiner", function(call_joiner)},
  };
  const auto* found =
      std::find_if(std::begin(functions), std::end(functions), [&](const auto& entry) { return entry.first == name; });
  return found == std::end(functions) ? nullptr : &found->second;
}

}  // namespace canopy::jinja
