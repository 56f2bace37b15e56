#pragma once
// JSON from files: bounded depth, no surprises. Everything in the format folder parses through here.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace canopy {

constexpr int max_json_depth = 64;

enum class DuplicateKeys { refuse, last_wins };

/// Parses JSON text. Throws bad_input, naming `what` and the place, on a syntax error, invalid UTF-8, nesting deeper
/// than max_json_depth, and, with DuplicateKeys::refuse, on a key that an object has twice.
nlohmann::json parse_json(std::string_view text, std::string_view what,
                          DuplicateKeys duplicates = DuplicateKeys::last_wins);

/// parse_json() of a text that Python may have written: a bare Infinity or -Infinity is a number, too, as in published
/// config.json files (`"time_step_limit": [0.0, Infinity]`). JsonFields::number() refuses it.
nlohmann::json parse_config_json(std::string_view text, std::string_view what);

/// Typed access to one JSON object; an error names file, field, actual value and what is allowed. A field that is null
/// counts as absent, as Hugging Face means it.
class JsonFields {
 public:
  /// `object` must outlive this. Throws when it is no object.
  JsonFields(const nlohmann::json& object, std::string what);

  bool has(const char* field) const { return find(field) != nullptr; }
  /// Null when absent.
  const nlohmann::json* find(const char* field) const;
  /// Required.
  const nlohmann::json& at(const char* field) const;

  uint32_t u32(const char* field) const;  // required
  uint32_t u32_or(const char* field, uint32_t fallback) const;
  double number(const char* field) const;  // required
  double number_or(const char* field, double fallback) const;
  bool boolean_or(const char* field, bool fallback) const;
  std::string text(const char* field) const;  // required
  std::string text_or(const char* field, std::string_view fallback) const;
  const nlohmann::json& list(const char* field) const;  // required
  /// A required list with `yes` or `no` for each layer.
  std::vector<bool> of_layers(const char* field, uint32_t layers, std::string_view yes, std::string_view no) const;
  /// One id or a list of ids; empty when absent.
  std::vector<uint32_t> ids(const char* field) const;
  /// The object in `field`; null when absent.
  const nlohmann::json* object(const char* field) const;

  const std::string& what() const { return what_; }

 private:
  [[noreturn]] void fail_type(const char* field, const nlohmann::json& value, std::string_view wanted) const;
  uint32_t to_u32(const char* field, const nlohmann::json& value) const;

  const nlohmann::json& object_;
  std::string what_;  // "config.json"
};

}  // namespace canopy
