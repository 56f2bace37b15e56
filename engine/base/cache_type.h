#pragma once
// The types that keys and values may be kept in, and their names in options, settings and files.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace canopy {

/// Element type of the K/V cache. q8_0: 32 neighbouring elements of a head share a scale, a half, and take a byte each.
enum class CacheType : uint32_t { f32, f16, q8_0 };
inline constexpr std::array kCacheTypes = {CacheType::f32, CacheType::f16, CacheType::q8_0};

const char* to_string(CacheType type);  // "f16"

/// The type of that name; nothing where there is none.
std::optional<CacheType> cache_type_from(std::string_view name);
/// The same for a name that a caller has checked, as the options of a command line are. Throws bad_input with the names
/// that are allowed.
CacheType checked_cache_type(std::string_view name);

}  // namespace canopy
