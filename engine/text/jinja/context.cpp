#include "engine/text/jinja/context.h"

#include <algorithm>

#include "engine/base/printable.h"
#include "engine/text/jinja/builtins.h"

namespace canopy::jinja {

Context::~Context() {
  for (const auto& space : namespaces_) space->clear();
}

void Context::step(size_t count) {
  if (count > limits_.steps - steps_) {
    throw Failure("The template takes more than " + std::to_string(limits_.steps) + " steps, which is the limit.");
  }
  steps_ += count;
}

void Context::use_text(size_t bytes) {
  if (bytes > limits_.text_bytes - text_) {
    throw Failure("The template makes or searches more than " + std::to_string(limits_.text_bytes) +
                  " bytes of text, which is the limit.");
  }
  text_ += bytes;
}

void Context::check_depth(size_t depth) const {
  if (depth > limits_.call_depth) {
    throw Failure("Lists, dicts or generators are nested deeper than " + std::to_string(limits_.call_depth) +
                  " levels, which is the limit.");
  }
}

Value Context::make(List list) {
  step(list.items.size());
  Value value(std::move(list));
  check_depth(value.depth());
  return value;
}

Value Context::make(Dict dict) {
  step(dict.items.size());
  Value value(std::move(dict));
  check_depth(value.depth());
  return value;
}

Context::Call::Call(Context& context) : context_(context) {
  if (context.calls_ >= context.limits_.call_depth) {
    throw Failure("Macros, recursive loops or generators call each other deeper than " +
                  std::to_string(context.limits_.call_depth) + " levels, which is the limit.");
  }
  ++context.calls_;
}

void TextBuilder::add(const Text& text) {
  context_.use_text(text.size() + cost_of_piece);
  text_.append(text);
}

void TextBuilder::add(const Text& text, size_t begin, size_t size) {
  if (begin >= text.size()) return;
  context_.use_text(std::min(size, text.size() - begin) + cost_of_piece);
  text_.append(text, begin, size);
}

void TextBuilder::add(std::string_view bytes, Origin origin) {
  context_.use_text(bytes.size() + cost_of_piece);
  text_.append(bytes, origin);
}

namespace {

std::string listed(const std::vector<std::string_view>& names) {
  if (names.empty()) return "it takes none";
  std::string text = "allowed are ";
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : ", ") + std::string(names[i]);
  return text;
}

}  // namespace

Parameters::Parameters(std::string_view callee, const Arguments& arguments,
                       std::initializer_list<std::string_view> names, size_t required)
    : callee_(callee), names_(names), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names_.size()) {
    throw Failure("'" + std::string(callee) + "' is given " + std::to_string(arguments.positional.size()) +
                  " arguments; " + listed(names_) + ".");
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value, key] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      throw Failure("'" + std::string(callee) + "' takes no argument " + quoted_name(name) + "; " + listed(names_) +
                    ".");
    }
    values_[static_cast<size_t>(found - names_.begin())] = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) {
      throw Failure("'" + std::string(callee) + "' needs its argument '" + std::string(names_[i]) + "'.");
    }
  }
}

const Text& Parameters::text(size_t index) const {
  if (const Text* text = at(index).text()) return *text;
  throw Failure("The argument '" + std::string(names_[index]) + "' of '" + std::string(callee_) + "' is " +
                std::string(at(index).kind()) + "; it must be a string.");
}

const Text* Parameters::text_or_null(size_t index) const {
  return find(index) == nullptr || at(index).is_none() ? nullptr : &text(index);
}

int64_t Parameters::integer(size_t index, int64_t otherwise) const {
  if (values_[index] == nullptr) return otherwise;
  if (const auto value = at(index).as_integer()) return *value;
  throw Failure("The argument '" + std::string(names_[index]) + "' of '" + std::string(callee_) + "' is " +
                std::string(at(index).kind()) + "; it must be an int.");
}

bool Parameters::truth(size_t index, bool otherwise) const {
  return values_[index] == nullptr ? otherwise : at(index).truthy();
}

}  // namespace canopy::jinja
