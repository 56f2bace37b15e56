#include "cuda_backend/embedded_kernels.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "engine/base/error.h"

namespace canopy::cuda {
namespace {

/// What a fat binary begins with, as nvcc writes it.
struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t bytes;  // behind the header
};
static_assert(sizeof(FatbinHeader) == 16);

}  // namespace

std::vector<const void*> split_fatbins(std::span<const std::byte> joined) {
  std::vector<const void*> fatbins;
  for (uint64_t at = 0; at < joined.size();) {
    const uint64_t left = joined.size() - at;
    FatbinHeader header = {};
    if (left >= sizeof(header)) std::memcpy(&header, joined.data() + at, sizeof(header));
    if (header.magic != kFatbinMagic || header.header_bytes < sizeof(header) || header.header_bytes > left ||
        header.bytes > left - header.header_bytes) {
      throw bad_input("The CUDA kernels of this build are damaged at byte " + std::to_string(at) + " of " +
                      std::to_string(joined.size()) + ".");
    }
    fatbins.push_back(joined.data() + at);
    at += header.header_bytes + header.bytes;
  }
  return fatbins;
}

}  // namespace canopy::cuda
