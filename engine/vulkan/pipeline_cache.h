#pragma once
// The driver's pipeline cache kept on disk behind a header of our own: drivers have crashed on caches that were cut
// short or came from another version, so what they are given is exactly what they wrote.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace canopy::vk {

/// The device and driver that wrote a cache; all of it must match.
struct CacheIdentity {
  std::array<uint8_t, 16> device_uuid{};
  std::array<uint8_t, 16> driver_uuid{};
  std::array<uint8_t, 16> cache_uuid{};  // VkPhysicalDeviceProperties::pipelineCacheUUID
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  uint32_t driver_version = 0;
};

/// The content of a cache file: the driver's bytes, or none and the reason.
struct CacheFile {
  std::vector<std::byte> data;
  std::string note;  // why the file was not used; empty if it was, or if there is none
};

/// Caches larger than this are neither read nor written.
inline constexpr uint64_t max_cache_bytes = 256ull << 20;

/// Header and data as they are on disk.
std::vector<std::byte> pack_cache(const CacheIdentity& identity, std::span<const std::byte> data);
/// The data of a packed cache if everything about it checks out.
CacheFile unpack_cache(const CacheIdentity& identity, std::span<const std::byte> file);

/// Never throws: a cache that cannot be read is only a note.
CacheFile load_cache(const std::filesystem::path& path, const CacheIdentity& identity);
/// Writes beside, flushes, renames. Returns what went wrong, or an empty string.
std::string save_cache(const std::filesystem::path& path, const CacheIdentity& identity,
                       std::span<const std::byte> data);

}  // namespace canopy::vk
