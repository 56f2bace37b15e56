#pragma once
// Converts JSON to values of a template.

#include <nlohmann/json.hpp>
#include <string>

#include "engine/text/jinja/value.h"

namespace canopy::jinja {

using Json = nlohmann::ordered_json;

/// Strings get this origin; keys of objects are markup.
inline Value to_value(const Json& json, Origin origin = Origin::markup) {
  switch (json.type()) {
    case Json::value_t::boolean: return json.get<bool>();
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned: return json.get<int64_t>();
    case Json::value_t::number_float: return json.get<double>();
    case Json::value_t::string: return Text(json.get<std::string>(), origin);
    case Json::value_t::array: {
      List list;
      for (const Json& item : json) list.items.push_back(to_value(item, origin));
      return list;
    }
    case Json::value_t::object: {
      Dict dict;
      for (const auto& [key, value] : json.items()) dict.set(key, to_value(value, origin));
      return dict;
    }
    default: return None{};
  }
}

inline Dict to_dict(const Json& json, Origin origin = Origin::markup) {
  const Value value = to_value(json, origin);
  return *value.dict();
}

}  // namespace canopy::jinja
