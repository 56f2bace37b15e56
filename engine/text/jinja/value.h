#pragma once
// The values that a template computes with: whole numbers of any size, texts that know who wrote each byte, lists,
// dicts and objects; and the context that counts the work on them against limits.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace canopy::jinja {

/// An error inside the interpreter: a full sentence without the place. It leaves this folder as an Error that names the
/// template and the line.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Limits on the steps, depth and memory of a template. Templates come with model files and are not trusted.

struct Limits {
  size_t source_bytes = size_t{1} << 20;  // of the template itself
  size_t nesting = 200;                   // of expressions and blocks in the template
  size_t expression_nodes = 5000;         // of one expression; bounds the depth of its tree
  size_t steps = 1'000'000;               // statements, operations, and elements touched by built-ins
  size_t call_depth = 64;                 // macros and recursive loops inside each other; lists inside lists
  size_t frames = 1500;                   // expressions and blocks being worked on at once; bounds the stack
  size_t text_bytes = size_t{128} << 20;  // of all text made or searched on the way
  size_t output_bytes = size_t{4} << 20;  // of the result
};

// Whole numbers beyond 64 bits: templates have Python's, which grow as they must.

class BigInteger {
 public:
  /// Of larger numbers nothing is computed: Python does not print them either.
  static constexpr size_t max_digits = 4300;

  BigInteger(int64_t value);
  /// The whole part of a finite number.
  static BigInteger truncated(double value);
  /// Digits of a base from 2 to 36 without a sign; nothing where one is no digit of it. Throws Failure beyond
  /// max_digits.
  static std::optional<BigInteger> parse(std::string_view digits, int base);

  bool negative() const { return negative_; }
  bool zero() const { return limbs_.empty(); }
  /// What operations on it cost: each takes time in proportion to the product of two sizes.
  size_t size() const { return limbs_.size(); }
  std::optional<int64_t> small() const;  // nothing where it does not fit
  /// Rounded to the nearest; infinite where it is too large.
  double to_double() const { return ratio(*this, 1); }
  /// Of the number without its sign; letters are small.
  std::string digits(int base = 10) const;
  std::string text() const { return (negative_ ? "-" : "") + digits(); }
  size_t bits() const;
  size_t bits_set() const;

  BigInteger operator-() const;
  std::strong_ordering operator<=>(const BigInteger& other) const;
  bool operator==(const BigInteger& other) const = default;

  /// All throw Failure where the result has more than max_digits.
  friend BigInteger operator+(const BigInteger& a, const BigInteger& b);
  friend BigInteger operator-(const BigInteger& a, const BigInteger& b) { return a + -b; }
  friend BigInteger operator*(const BigInteger& a, const BigInteger& b);
  /// Quotient, rounded down, and rest; the divisor is not zero.
  static std::pair<BigInteger, BigInteger> divide(const BigInteger& a, const BigInteger& b);
  static double ratio(const BigInteger& a, const BigInteger& b);

 private:
  using Limbs = std::vector<uint32_t>;  // the smallest first, the last not zero

  BigInteger(bool negative, Limbs limbs);
  static std::strong_ordering compare(const Limbs& a, const Limbs& b);
  static Limbs sum(const Limbs& a, const Limbs& b);
  static Limbs difference(const Limbs& a, const Limbs& b);  // a >= b
  static std::pair<Limbs, Limbs> divided(const Limbs& a, const Limbs& b);
  static uint32_t divide_by(Limbs& limbs, uint32_t divisor);  // gives the rest
  static Limbs shifted(const Limbs& limbs, size_t bits);

  bool negative_ = false;
  Limbs limbs_;
};

/// A float as Python reads it, without white space around it; too large a one is infinite. Nothing where it is none.
std::optional<double> parse_float(std::string_view text);

// A string that knows, byte by byte, who wrote it. Whatever a template does to a message — trim, split, replace,
// concatenate — the bytes of the message stay recognisable, so that no spelling in them becomes a control token.

/// The author of a byte: the template (markup), or a message (content). Values above content are content too, for a
/// caller that wants to tell messages apart.
enum class Origin : char { markup, content };

class Text {
 public:
  Text() = default;
  explicit Text(std::string bytes, Origin origin = Origin::markup);

  std::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  Origin origin(size_t at) const { return static_cast<Origin>(origins_[at]); }

  void append(const Text& other);
  void append(const Text& other, size_t begin, size_t size);
  void append(std::string_view bytes, Origin origin);

  /// Clamped to what there is.
  Text part(size_t begin, size_t size = std::string_view::npos) const;

  /// A text that counts as HTML already, as 'safe' and 'escape' leave it: joined with others, it has them escaped.
  bool is_safe() const { return safe_; }
  void set_safe(bool safe) { safe_ = safe; }

  /// Length of the run of bytes of one origin that begins at `at`, which is inside the text.
  size_t run_length(size_t at) const;

 private:
  std::string bytes_;
  bool safe_ = false;
  std::string origins_;  // one Origin for each byte: makes every operation a pair of equal string operations
};

/// Where the characters of a UTF-8 text begin, and its size at the end. A byte that is not UTF-8 is one character.
std::vector<size_t> character_starts(std::string_view text);
size_t count_characters(std::string_view text);

/// The code point that begins at `at` and how many bytes it has; a byte that is not UTF-8 stands for itself.
struct CodePoint {
  int32_t value = 0;
  size_t size = 1;
  bool valid = true;
};
CodePoint code_point_at(std::string_view text, size_t at);
std::string encode_utf8(int32_t code_point);

/// White space as Python's str.strip() sees it.
bool is_space(int32_t code_point);
bool is_letter(int32_t code_point);
/// What str.isdecimal(), str.isdigit(), str.isnumeric() and str.isprintable() say of a character.
bool is_decimal_digit(int32_t code_point);
bool is_digit(int32_t code_point);
bool is_numeric(int32_t code_point);
bool is_printable(int32_t code_point);

// The values that a template computes with. They are immutable, but for namespaces; text and lists are shared.

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

// The services for built-ins while a template is rendered: the count of the work done, and the clock.

class Namespace;

class Context {
 public:
  Context(const Limits& limits, const std::tm& now) : limits_(limits), now_(now) {}
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// All of these throw Failure, naming the limit, before the work is done.
  void step(size_t count = 1);
  void use_text(size_t bytes);  // to be made or searched
  void return_text(size_t bytes) { text_ -= bytes; }
  Value make(List list);  // charges a step for each item
  Value make(Dict dict);
  Value make_list(std::vector<Value> items) { return make(List{std::move(items)}); }

  /// Remembers a namespace, to empty it when the context ends: it may hold itself.
  void keep(std::shared_ptr<Namespace> space) { namespaces_.push_back(std::move(space)); }

  /// Throws Failure for lists, dicts and generators nested too deep.
  void check_depth(size_t depth) const;

  const Limits& limits() const { return limits_; }
  /// The time that strftime_now() shows.
  const std::tm& now() const { return now_; }

  bool autoescape = false;  // inside of {% autoescape true %}

  /// One macro, recursive loop or generator inside another.
  class Call {
   public:
    explicit Call(Context& context);
    ~Call() { --context_.calls_; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Context& context_;
  };

 private:
  Limits limits_;
  std::tm now_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  size_t steps_ = 0, text_ = 0, calls_ = 0;
};

/// Builds a text on the account of a context.
class TextBuilder {
 public:
  explicit TextBuilder(Context& context) : context_(context) {}

  void add(const Text& text);
  void add(const Text& text, size_t begin, size_t size);
  void add(std::string_view bytes, Origin origin = Origin::markup);

  Context& context() { return context_; }
  size_t size() const { return text_.size(); }
  Text take() { return std::move(text_); }

 private:
  static constexpr size_t cost_of_piece = 8;  // adding a byte takes as long as copying some more

  Context& context_;
  Text text_;
};

/// The arguments of a call by the names of the parameters. Throws Failure where they do not fit.
class Parameters {
 public:
  Parameters(std::string_view callee, const Arguments& arguments, std::initializer_list<std::string_view> names,
             size_t required = 0);

  /// Null where the argument was not given.
  const Value* find(size_t index) const { return values_[index]; }
  const Value& at(size_t index) const { return *values_[index]; }

  /// Throw Failure where the argument is of another kind; the second form where it may be absent.
  const Text& text(size_t index) const;
  const Text* text_or_null(size_t index) const;  // null where it was not given or is none
  int64_t integer(size_t index, int64_t otherwise) const;
  bool truth(size_t index, bool otherwise) const;

 private:
  std::string_view callee_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace canopy::jinja
