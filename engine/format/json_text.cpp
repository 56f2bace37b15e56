#include "engine/format/json_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace canopy {
namespace {

using nlohmann::json;

/// Watches the parse: fails before an object that is too deep is built, and on repeated keys.
class Guard {
 public:
  Guard(std::string_view what, DuplicateKeys duplicates) : what_(what), duplicates_(duplicates) {}

  bool operator()(int depth, json::parse_event_t event, json& value) {
    if (depth >= max_json_depth) {
      throw bad_input(std::string(what_) + " is nested more than " + std::to_string(max_json_depth) + " levels deep.");
    }
    if (duplicates_ == DuplicateKeys::last_wins) return true;
    if (event == json::parse_event_t::object_start) {
      keys_.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == json::parse_event_t::key && !keys_.back().insert(value.get_ref<const std::string&>()).second) {
      throw bad_input(std::string(what_) + " has the key '" + printable(value.get_ref<const std::string&>()) +
                      "' twice.");
    }
    return true;
  }

 private:
  std::string_view what_;
  DuplicateKeys duplicates_;
  std::vector<std::set<std::string>> keys_;  // one set an open object
};

/// `what` at the beginning of a sentence; names of files keep their letters.
std::string opening(const std::string& what) {
  if (what.starts_with("the ")) return "T" + what.substr(1);
  return what.starts_with("an ") ? "A" + what.substr(1) : what;
}

/// A short, safe picture of a value for messages.
std::string picture(const json& value) {
  if (value.is_object() || value.is_array()) return "an " + std::string(value.type_name());
  if (value.is_number_float() && std::isinf(value.get<double>())) {
    return value.get<double>() < 0 ? "-Infinity" : "Infinity";
  }
  return printable(value.dump(-1, ' ', false, json::error_handler_t::replace), 64);
}

/// Where and on what a parser stopped. `read`: how many bytes it had taken, the one it stopped at included.
std::string syntax_fault(std::string_view text, size_t read) {
  const size_t at = std::min(read > 0 ? read - 1 : 0, text.size());
  const std::string_view before = text.substr(0, at);
  const size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const std::string place = "line " + std::to_string(1 + std::ranges::count(before, '\n')) + ", column " +
                            std::to_string(at - line_start + 1);
  if (read > text.size()) return "it ends too early, at " + place;
  return "at " + place + " it has '" + printable(text.substr(at, decode_first(text.substr(at)).length)) +
         "', which cannot stand there";
}

// Stands for Infinity while a text is parsed: a number of no more characters, so that places in messages stay, and
// beyond all that is meant as one.
constexpr std::string_view kInfinityName = "Infinity", kStandIn = "9.9e307 ";
constexpr double kStandInValue = 9.9e307;
static_assert(kInfinityName.size() == kStandIn.size());

/// `text` with kStandIn wherever Infinity stands outside of strings, as a value by itself.
std::string without_infinities(std::string_view text) {
  std::string result(text);
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && text.substr(i).starts_with(kInfinityName) &&
               (i == 0 || std::string_view(" \t\r\n[:,-").find(text[i - 1]) != std::string_view::npos)) {
      result.replace(i, kStandIn.size(), kStandIn);
      i += kInfinityName.size() - 1;
    }
  }
  return result;
}

}  // namespace

json parse_json(std::string_view text, std::string_view what, DuplicateKeys duplicates) {
  try {
    return json::parse(text.begin(), text.end(), Guard(what, duplicates));
  } catch (const json::parse_error& e) {
    throw bad_input(std::string(what) + " is not valid JSON: " + syntax_fault(text, e.byte) + ".");
  } catch (const json::out_of_range&) {
    throw bad_input(std::string(what) + " is not valid JSON: a number in it is too large.");
  }
}

json parse_config_json(std::string_view text, std::string_view what) {
  if (text.find(kInfinityName) == std::string_view::npos) return parse_json(text, what);
  const std::string replaced = without_infinities(text);
  parse_json(replaced, what);  // says what is wrong, and bounds the depth
  return json::parse(replaced, [](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::value && value.is_number_float() &&
        std::abs(value.get<double>()) == kStandInValue) {
      value = std::copysign(std::numeric_limits<double>::infinity(), value.get<double>());
    }
    return true;
  });
}

JsonFields::JsonFields(const json& object, std::string what) : object_(object), what_(std::move(what)) {
  if (!object.is_object()) throw bad_input(opening(what_) + " must be a JSON object, but is " + picture(object) + ".");
}

const json* JsonFields::find(const char* field) const {
  const auto found = object_.find(field);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const json& JsonFields::at(const char* field) const {
  if (const json* value = find(field)) return *value;
  throw bad_input(opening(what_) + " lacks the field '" + field + "'.");
}

void JsonFields::fail_type(const char* field, const json& value, std::string_view wanted) const {
  throw bad_input("The field '" + std::string(field) + "' of " + what_ + " is " + picture(value) + "; " +
                  std::string(wanted) + " is expected.");
}

uint32_t JsonFields::to_u32(const char* field, const json& value) const {
  constexpr uint64_t limit = std::numeric_limits<uint32_t>::max();
  if (!value.is_number_unsigned() || value.get<uint64_t>() > limit) {
    fail_type(field, value, "a whole number from 0 to " + std::to_string(limit));
  }
  return value.get<uint32_t>();
}

uint32_t JsonFields::u32(const char* field) const {
  return to_u32(field, at(field));
}

uint32_t JsonFields::u32_or(const char* field, uint32_t fallback) const {
  const json* value = find(field);
  return value == nullptr ? fallback : to_u32(field, *value);
}

double JsonFields::number(const char* field) const {
  const json& value = at(field);
  if (!value.is_number() || !std::isfinite(value.get<double>())) fail_type(field, value, "a number");
  return value.get<double>();
}

double JsonFields::number_or(const char* field, double fallback) const {
  return has(field) ? number(field) : fallback;
}

bool JsonFields::boolean_or(const char* field, bool fallback) const {
  const json* value = find(field);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail_type(field, *value, "true or false");
  return value->get<bool>();
}

std::string JsonFields::text(const char* field) const {
  at(field);
  return text_or(field, "");
}

std::string JsonFields::text_or(const char* field, std::string_view fallback) const {
  const json* value = find(field);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) fail_type(field, *value, "a string");
  return value->get<std::string>();
}

const json& JsonFields::list(const char* field) const {
  const json& value = at(field);
  if (!value.is_array()) fail_type(field, value, "a list");
  return value;
}

std::vector<bool> JsonFields::of_layers(const char* field, uint32_t layers, std::string_view yes,
                                        std::string_view no) const {
  const std::string place = "The field '" + std::string(field) + "' of " + what_;
  std::vector<bool> result;
  for (const json& entry : list(field)) {
    if (entry != yes && entry != no) {
      throw bad_input(place + " holds " + printable(entry.dump(), 40) + "; \"" + std::string(yes) + "\" and \"" +
                      std::string(no) + "\" are supported.");
    }
    result.push_back(entry == yes);
  }
  if (result.size() == layers) return result;
  throw bad_input(place + " has " + std::to_string(result.size()) + " entries; the model has " +
                  std::to_string(layers) + " layers.");
}

std::vector<uint32_t> JsonFields::ids(const char* field) const {
  const json* value = find(field);
  if (value == nullptr) return {};
  if (!value->is_array()) return {to_u32(field, *value)};
  std::vector<uint32_t> result;
  for (const json& id : *value) result.push_back(to_u32(field, id));
  return result;
}

const json* JsonFields::object(const char* field) const {
  const json* value = find(field);
  if (value != nullptr && !value->is_object()) fail_type(field, *value, "an object");
  return value;
}

}  // namespace canopy
