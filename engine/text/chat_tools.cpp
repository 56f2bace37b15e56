#include "engine/text/chat_tools.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/json_text.h"

namespace canopy {
namespace {

using OrderedJson = nlohmann::ordered_json;  // a template may print an object as it is, in its own order

constexpr const char* tools_text = "The text of the tools";

jinja::Value value_of(const OrderedJson& json, const std::string& what) {
  switch (json.type()) {
    case OrderedJson::value_t::boolean: return json.get<bool>();
    case OrderedJson::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        throw bad_input(what + " has the number " + json.dump() + ", which is too large.");
      }
      return json.get<int64_t>();
    case OrderedJson::value_t::number_integer: return json.get<int64_t>();
    case OrderedJson::value_t::number_float: return json.get<double>();
    case OrderedJson::value_t::string: return jinja::Value::content(json.get_ref<const std::string&>());
    case OrderedJson::value_t::array: {
      jinja::List list;
      for (const OrderedJson& item : json) list.items.push_back(value_of(item, what));
      return list;
    }
    case OrderedJson::value_t::object: {
      jinja::Dict dict;
      for (const auto& [key, value] : json.items()) {
        dict.items.emplace_back(jinja::Value::content(key), value_of(value, what));
      }
      return dict;
    }
    default: return jinja::None{};
  }
}

}  // namespace

jinja::Value tools_from_json(std::string_view text) {
  parse_json(text, tools_text, DuplicateKeys::refuse);  // bounds the depth, which the recursion above relies on
  const OrderedJson json = OrderedJson::parse(text);
  if (!json.is_array() || json.empty())
    throw bad_input(std::string(tools_text) + " is no JSON array with tools in it.");
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i].is_object()) continue;
    throw bad_input("Tool " + std::to_string(i) + " is " + printable(json[i].dump(), 80) + "; an object is expected.");
  }
  return value_of(json, tools_text);
}

jinja::Value turn_fields_from_json(std::string_view text) {
  const std::string what = "The further fields of a turn";
  parse_json(text, what);  // bounds the depth
  return value_of(OrderedJson::parse(text), what);
}

}  // namespace canopy
