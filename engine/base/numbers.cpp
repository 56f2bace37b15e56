#include "engine/base/numbers.h"

namespace canopy {

const char* to_string(CacheType type) {
  switch (type) {
    case CacheType::f32: return "f32";
    case CacheType::f16: return "f16";
    case CacheType::q8_0: return "q8_0";
  }
  throw bad_input("A K/V cache has no known type.");
}

std::optional<CacheType> cache_type_from(std::string_view name) {
  for (const CacheType type : kCacheTypes) {
    if (name == to_string(type)) return type;
  }
  return std::nullopt;
}

CacheType checked_cache_type(std::string_view name) {
  if (const auto type = cache_type_from(name)) return *type;
  throw bad_input("\"" + std::string(name) + "\" is no type of K/V cache; allowed: f16, q8_0, f32.");
}

}  // namespace canopy
