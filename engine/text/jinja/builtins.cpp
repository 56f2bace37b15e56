#include "engine/text/jinja/builtins.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>

#include "engine/base/text.h"
#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"
#include "engine/text/jinja/text_operations.h"

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

namespace {

constexpr std::array<std::string_view, 12> months = {"January",   "February", "March",    "April",
                                                     "May",       "June",     "July",     "August",
                                                     "September", "October",  "November", "December"};
constexpr std::array<std::string_view, 7> days = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                  "Thursday", "Friday", "Saturday"};

bool is_leap(int year) {
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

// From 0; by the date, as whoever made the time may have left it out.
int day_of_year(const std::tm& time) {
  constexpr std::array<int, 12> before = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  return before[static_cast<size_t>(time.tm_mon) % 12] + time.tm_mday - 1 +
         (time.tm_mon > 1 && is_leap(time.tm_year + 1900) ? 1 : 0);
}

struct IsoWeek {
  int year = 0, week = 0;
};

// ISO 8601: weeks begin on Mondays, and the first is the one with the first Thursday of the year.
IsoWeek iso_week(const std::tm& time) {
  const int year = time.tm_year + 1900;
  const int thursday = day_of_year(time) - (time.tm_wday + 6) % 7 + 3;
  const int days_of_year = is_leap(year) ? 366 : 365;
  if (thursday < 0) return {year - 1, (thursday + (is_leap(year - 1) ? 366 : 365)) / 7 + 1};
  if (thursday >= days_of_year) return {year + 1, 1};
  return {year, thursday / 7 + 1};
}

struct Part {
  std::string text;
  char padding = 0;  // what fills it up to `width`; none for names
  size_t width = 0;
};

Part number(int value, size_t width = 2, char padding = '0') {
  return {std::to_string(value), padding, width};
}

// One conversion of strftime in the C locale, whatever the locale of the process; nothing where it is not known.
std::optional<Part> date_part(char conversion, const std::tm& now) {
  const std::string_view month = months[static_cast<size_t>(now.tm_mon) % months.size()];
  const std::string_view day = days[static_cast<size_t>(now.tm_wday) % days.size()];
  const int year = now.tm_year + 1900;
  const int hour = now.tm_hour % 12 == 0 ? 12 : now.tm_hour % 12;
  const auto joined = [&](std::string_view format) {
    std::string text;
    for (const char c : format) {
      if (std::isalpha(static_cast<unsigned char>(c)) == 0) {
        text += c;
        continue;
      }
      const Part part = *date_part(c, now);
      if (part.text.size() < part.width) text.append(part.width - part.text.size(), part.padding);
      text += part.text;
    }
    return Part{text};
  };
  switch (conversion) {
    case 'a': return Part{std::string(day.substr(0, 3))};
    case 'A': return Part{std::string(day)};
    case 'b':
    case 'h': return Part{std::string(month.substr(0, 3))};
    case 'B': return Part{std::string(month)};
    case 'c': return joined("a b e H:M:S Y");
    case 'C': return number(year / 100);
    case 'd': return number(now.tm_mday);
    case 'D':
    case 'x': return joined("m/d/y");
    case 'e': return number(now.tm_mday, 2, ' ');
    case 'f': return number(0, 6);
    case 'F': return joined("Y-m-d");
    case 'g': return number(iso_week(now).year % 100);
    case 'G': return number(iso_week(now).year, 4);
    case 'H': return number(now.tm_hour);
    case 'I': return number(hour);
    case 'j': return number(day_of_year(now) + 1, 3);
    case 'k': return number(now.tm_hour, 2, ' ');
    case 'l': return number(hour, 2, ' ');
    case 'm': return number(now.tm_mon + 1);
    case 'M': return number(now.tm_min);
    case 'n': return Part{"\n"};
    case 'p': return Part{now.tm_hour < 12 ? "AM" : "PM"};
    case 'P': return Part{now.tm_hour < 12 ? "am" : "pm"};
    case 'r': return joined("I:M:S p");
    case 'R': return joined("H:M");
    case 's': {
      std::tm copy = now;
      copy.tm_isdst = -1;
      return Part{std::to_string(std::mktime(&copy))};
    }
    case 'S': return number(now.tm_sec);
    case 't': return Part{"\t"};
    case 'T':
    case 'X': return joined("H:M:S");
    case 'u': return number(now.tm_wday == 0 ? 7 : now.tm_wday, 1);
    case 'U': return number((day_of_year(now) + 7 - now.tm_wday) / 7);
    case 'V': return number(iso_week(now).week);
    case 'w': return number(now.tm_wday, 1);
    case 'W': return number((day_of_year(now) + 7 - (now.tm_wday + 6) % 7) / 7);
    case 'y': return number(year % 100);
    case 'Y': return number(year, 1);
    case 'z':
    case 'Z': return Part{};  // the time has no zone
    case '%': return Part{"%"};
    default: return std::nullopt;
  }
}

// The conversion behind a '%' that is at `at`, which moves behind it: the GNU flags - _ 0 ^ #, a width, E or O, a
// letter.
std::optional<std::string> conversion_at(std::string_view format, size_t& at, const std::tm& time) {
  constexpr size_t widest = 100;
  char padding = 0;
  bool upper = false, swap = false;
  size_t i = at + 1, width = 0;
  for (; i < format.size() && std::string_view("-_0^#").find(format[i]) != std::string_view::npos; ++i) {
    if (format[i] == '^') {
      upper = true;
    } else if (format[i] == '#') {
      swap = true;
    } else {
      padding = format[i];
    }
  }
  for (; i < format.size() && format[i] >= '0' && format[i] <= '9'; ++i) {
    width = std::min(width * 10 + static_cast<size_t>(format[i] - '0'), widest);
  }
  if (i < format.size() && (format[i] == 'E' || format[i] == 'O')) ++i;
  const auto part = i < format.size() ? date_part(format[i], time) : std::nullopt;
  if (!part) return std::nullopt;
  std::string text = part->text;
  if (swap && (format[i] == 'p' || format[i] == 'Z')) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  } else if (upper || swap) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  const char filler = padding == '_' ? ' ' : padding == '0' ? '0' : part->padding != 0 ? part->padding : ' ';
  const size_t wanted = width > 0 ? width : padding == '-' ? 0 : part->width;
  if (text.size() < wanted && padding != '-') text.insert(0, wanted - text.size(), filler);
  at = i + 1;
  return text;
}

}  // namespace

Value format_time(Context& context, const Text& format, const std::tm& time) {
  const std::string_view bytes = format.bytes();
  TextBuilder out(context);
  for (size_t at = 0; at < bytes.size();) {
    const Origin origin = format.origin(at);
    const auto text = bytes[at] == '%' ? conversion_at(bytes, at, time) : std::nullopt;
    if (text) {
      out.add(*text, origin);
    } else {
      out.add(format, at++, 1);  // what is no conversion stands for itself
    }
  }
  return out.take();
}

// The tests that may follow `is`: defined, string, ...

namespace {

bool is_defined(Context&, const Value& v, const Arguments&) {
  return !v.is_undefined();
}
bool is_undefined(Context&, const Value& v, const Arguments&) {
  return v.is_undefined();
}
bool is_none(Context&, const Value& v, const Arguments&) {
  return v.is_none();
}
bool is_true(Context&, const Value& v, const Arguments&) {
  return v.boolean() != nullptr && *v.boolean();
}
bool is_false(Context&, const Value& v, const Arguments&) {
  return v.boolean() != nullptr && !*v.boolean();
}
bool is_boolean(Context&, const Value& v, const Arguments&) {
  return v.boolean() != nullptr;
}
bool is_integer(Context&, const Value& v, const Arguments&) {
  return v.is_int();
}
bool is_float(Context&, const Value& v, const Arguments&) {
  return v.floating() != nullptr;
}
bool is_number(Context&, const Value& v, const Arguments&) {
  return v.as_number().has_value();
}
bool is_string(Context&, const Value& v, const Arguments&) {
  return v.text() != nullptr;
}
bool is_mapping(Context&, const Value& v, const Arguments&) {
  return v.dict() != nullptr;
}
// What has a length and items by number or key: neither generators nor the views of a dict.
bool is_sequence_test(Context&, const Value& v, const Arguments&) {
  return v.object() == nullptr && is_iterable(v) && (v.list() == nullptr || !v.list()->is_view());
}
bool is_iterable_test(Context&, const Value& v, const Arguments&) {
  return is_iterable(v);
}
bool is_callable(Context&, const Value& v, const Arguments&) {
  return v.is_undefined() || (v.object() != nullptr && v.object()->callable());
}
bool is_escaped(Context&, const Value& v, const Arguments&) {
  return v.text() != nullptr && v.text()->is_safe();
}
bool is_lower(Context& context, const Value& v, const Arguments&) {
  return is_case(context, to_text(context, v), Case::lower);
}
bool is_upper(Context& context, const Value& v, const Arguments&) {
  return is_case(context, to_text(context, v), Case::upper);
}
bool names_filter(Context&, const Value& v, const Arguments&) {
  return v.text() != nullptr && is_filter(v.text()->bytes());
}
bool names_test(Context&, const Value& v, const Arguments&) {
  return v.text() != nullptr && is_test(v.text()->bytes());
}

const Value& only_argument(std::string_view test, const Arguments& arguments) {
  if (arguments.positional.size() == 1 && arguments.named.empty()) return arguments.positional.front();
  throw Failure("The test '" + std::string(test) + "' needs one value to compare with.");
}

bool is_equal(Context& context, const Value& v, const Arguments& arguments) {
  return equal(context, v, only_argument("equalto", arguments));
}
bool is_not_equal(Context& context, const Value& v, const Arguments& arguments) {
  return !equal(context, v, only_argument("ne", arguments));
}
bool is_less(Context& context, const Value& v, const Arguments& arguments) {
  return less(context, v, only_argument("lt", arguments));
}
bool is_greater(Context& context, const Value& v, const Arguments& arguments) {
  return less(context, only_argument("gt", arguments), v);
}
bool is_at_most(Context& context, const Value& v, const Arguments& arguments) {
  return less(context, v, only_argument("le", arguments)) || equal(context, v, only_argument("le", arguments));
}
bool is_at_least(Context& context, const Value& v, const Arguments& arguments) {
  return less(context, only_argument("ge", arguments), v) || equal(context, v, only_argument("ge", arguments));
}
bool is_in(Context& context, const Value& v, const Arguments& arguments) {
  return contains(context, only_argument("in", arguments), v);
}

// Identity, as far as values without identity have one: the same kind and equal.
bool is_same(Context& context, const Value& v, const Arguments& arguments) {
  const Value& other = only_argument("sameas", arguments);
  return v.kind() == other.kind() && equal(context, v, other);
}

bool divides(Context& context, const Value& v, const Value& divisor, int64_t rest) {
  return equal(context, apply(context, BinaryOp::modulo, v, divisor), rest);
}
bool is_even(Context& context, const Value& v, const Arguments&) {
  return divides(context, v, 2, 0);
}
bool is_odd(Context& context, const Value& v, const Arguments&) {
  return divides(context, v, 2, 1);
}
bool is_divisible(Context& context, const Value& v, const Arguments& arguments) {
  return divides(context, v, only_argument("divisibleby", arguments), 0);
}

struct Test {
  std::string_view name;
  bool (*holds)(Context&, const Value& subject, const Arguments&);
};

constexpr Test tests[] = {
    {"!=", is_not_equal},
    {"<", is_less},
    {"<=", is_at_most},
    {"==", is_equal},
    {">", is_greater},
    {">=", is_at_least},
    {"boolean", is_boolean},
    {"callable", is_callable},
    {"defined", is_defined},
    {"divisibleby", is_divisible},
    {"eq", is_equal},
    {"equalto", is_equal},
    {"escaped", is_escaped},
    {"even", is_even},
    {"false", is_false},
    {"filter", names_filter},
    {"float", is_float},
    {"ge", is_at_least},
    {"greaterthan", is_greater},
    {"gt", is_greater},
    {"in", is_in},
    {"integer", is_integer},
    {"iterable", is_iterable_test},
    {"le", is_at_most},
    {"lessthan", is_less},
    {"lower", is_lower},
    {"lt", is_less},
    {"mapping", is_mapping},
    {"ne", is_not_equal},
    {"none", is_none},
    {"number", is_number},
    {"odd", is_odd},
    {"sameas", is_same},
    {"sequence", is_sequence_test},
    {"string", is_string},
    {"test", names_test},
    {"true", is_true},
    {"undefined", is_undefined},
    {"upper", is_upper},
};

}  // namespace

bool is_test(std::string_view name) {
  return std::any_of(std::begin(tests), std::end(tests), [&](const Test& test) { return test.name == name; });
}

bool apply_test(Context& context, std::string_view name, const Value& subject, const Arguments& arguments) {
  context.step();
  for (const Test& test : tests) {
    if (test.name == name) return test.holds(context, subject, arguments);
  }
  throw Failure("There is no test " + quoted_name(name) + " here.");
}

}  // namespace canopy::jinja
