#include "engine/vulkan/pipeline_cache.h"

#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include "engine/base/atomic_file.h"
#include "engine/base/damage_hash.h"
#include "engine/base/error.h"

namespace canopy::vk {
namespace {

constexpr std::array<char, 8> cache_magic = {'C', 'N', 'P', 'Y', 'V', 'K', 'P', 'C'};
constexpr uint32_t cache_version = 1;

// On disk, in the byte order of the machine: a cache never leaves it, and one that did is of another device.
struct Header {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t vendor_id;
  uint32_t device_id;
  uint32_t driver_version;
  std::array<uint8_t, 16> device_uuid;
  std::array<uint8_t, 16> driver_uuid;
  std::array<uint8_t, 16> cache_uuid;
  uint64_t data_bytes;
  uint64_t data_hash;
};
static_assert(sizeof(Header) == 88 && std::is_trivially_copyable_v<Header>);

CacheFile refused(const std::string& why) {
  return {.data = {}, .note = "The pipeline cache was ignored: " + why + "."};
}

}  // namespace

std::vector<std::byte> pack_cache(const CacheIdentity& identity, std::span<const std::byte> data) {
  const Header header{.magic = cache_magic,
                      .version = cache_version,
                      .vendor_id = identity.vendor_id,
                      .device_id = identity.device_id,
                      .driver_version = identity.driver_version,
                      .device_uuid = identity.device_uuid,
                      .driver_uuid = identity.driver_uuid,
                      .cache_uuid = identity.cache_uuid,
                      .data_bytes = data.size(),
                      .data_hash = damage_hash(data)};
  std::vector<std::byte> file(sizeof header + data.size());
  std::memcpy(file.data(), &header, sizeof header);
  if (!data.empty()) {
    std::memcpy(file.data() + sizeof header, data.data(), data.size());
  }
  return file;
}

CacheFile unpack_cache(const CacheIdentity& identity, std::span<const std::byte> file) {
  Header header{};
  if (file.size() < sizeof header) {
    return refused("the file has " + std::to_string(file.size()) + " bytes, its header alone has " +
                   std::to_string(sizeof header));
  }
  std::memcpy(&header, file.data(), sizeof header);
  const std::span<const std::byte> data = file.subspan(sizeof header);
  if (header.magic != cache_magic) {
    return refused("the file is not a pipeline cache");
  }
  if (header.version != cache_version) {
    return refused("its format is version " + std::to_string(header.version) + ", this program reads version " +
                   std::to_string(cache_version));
  }
  if (header.vendor_id != identity.vendor_id || header.device_id != identity.device_id ||
      header.device_uuid != identity.device_uuid) {
    return refused("it was written for another device");
  }
  if (header.driver_version != identity.driver_version || header.driver_uuid != identity.driver_uuid ||
      header.cache_uuid != identity.cache_uuid) {
    return refused("it was written by another version of the driver");
  }
  if (header.data_bytes != data.size()) {
    return refused("it should hold " + std::to_string(header.data_bytes) + " bytes of data and holds " +
                   std::to_string(data.size()));
  }
  if (header.data_hash != damage_hash(data)) {
    return refused("its data is damaged (the hash differs)");
  }
  return {.data = std::vector<std::byte>(data.begin(), data.end()), .note = ""};
}

CacheFile load_cache(const std::filesystem::path& path, const CacheIdentity& identity) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return {};
  }
  if (error || status.type() != std::filesystem::file_type::regular) {
    return refused("\"" + path.string() + "\" is not a readable file");
  }
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > max_cache_bytes) {
    return refused("the file has " + std::to_string(bytes) + " bytes, at most " + std::to_string(max_cache_bytes) +
                   " are read");
  }
  std::vector<std::byte> file(bytes);
  std::ifstream stream(path, std::ios::binary);
  stream.read(reinterpret_cast<char*>(file.data()), static_cast<std::streamsize>(bytes));
  if (!stream) {
    return refused("\"" + path.string() + "\" cannot be read");
  }
  return unpack_cache(identity, file);
}

std::string save_cache(const std::filesystem::path& path, const CacheIdentity& identity,
                       std::span<const std::byte> data) {
  if (data.size() > max_cache_bytes) {
    return "The pipeline cache was not saved: it has " + std::to_string(data.size()) + " bytes, at most " +
           std::to_string(max_cache_bytes) + " are kept.";
  }
  try {
    if (path.has_parent_path()) {
      std::filesystem::create_directories(path.parent_path());
    }
    const std::vector<std::byte> file = pack_cache(identity, data);
    write_file_atomically(path, {reinterpret_cast<const char*>(file.data()), file.size()});
  } catch (const std::exception& e) {
    return std::string("The pipeline cache was not saved: ") + e.what();
  }
  return "";
}

}  // namespace canopy::vk
