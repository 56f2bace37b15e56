#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>

#include "engine/text/jinja/value.h"

namespace canopy::jinja {

/// The variables of a template, a loop's turn, a macro's call or a {% with %}. What is set inside is gone outside.
/// Names point into the template and the given values, which outlive every scope.
class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> parent) : parent_(std::move(parent)) {}

  void set(std::string_view name, Value value) { values_.insert_or_assign(name, std::move(value)); }

  /// Here or further out; null where there is no such variable.
  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent_.get()) {
      const auto found = scope->values_.find(name);
      if (found != scope->values_.end()) return &found->second;
    }
    return nullptr;
  }

  /// A macro holds the scope that holds it; emptying the scope parts them.
  void clear() { values_.clear(); }

 private:
  std::shared_ptr<Scope> parent_;
  std::unordered_map<std::string_view, Value> values_;
};

}  // namespace canopy::jinja
