#pragma once
// The services for built-ins while a template is rendered: the count of the work done, and the clock.

#include <ctime>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/text/jinja/failure.h"
#include "engine/text/jinja/limits.h"
#include "engine/text/jinja/value.h"

namespace canopy::jinja {

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
