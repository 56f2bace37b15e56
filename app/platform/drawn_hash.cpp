#include "app/platform/drawn_hash.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

namespace canopy::app {
namespace {

/// Mixes eight bytes at a time: a tree of a thousand nodes has megabytes of vertices.
class Mixer {
 public:
  void word(uint64_t value) { hash_ = std::rotl((hash_ ^ value) * 0x9E3779B97F4A7C15u, 29); }
  void bytes(const void* data, size_t size) {
    const auto* at = static_cast<const std::byte*>(data);
    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), at += sizeof(uint64_t)) {
      uint64_t value = 0;
      std::memcpy(&value, at, sizeof value);
      word(value);
    }
    uint64_t rest = size;
    std::memcpy(reinterpret_cast<std::byte*>(&rest) + 1, at, std::min<size_t>(size, 7));
    word(rest);
  }
  template <class T>
  void value(const T& each) {
    bytes(&each, sizeof each);
  }
  uint64_t result() const { return hash_ ^ (hash_ >> 31); }

 private:
  uint64_t hash_ = 0x2545F4914F6CDD1Du;
};

}  // namespace

uint64_t drawn_hash(const ImDrawData& data, ImU32 clear) {
  Mixer mix;
  mix.value(data.DisplayPos);
  mix.value(data.DisplaySize);
  mix.value(data.FramebufferScale);
  mix.word(clear);
  for (const ImDrawList* list : data.CmdLists) {
    mix.bytes(list->VtxBuffer.Data, static_cast<size_t>(list->VtxBuffer.size_in_bytes()));
    mix.bytes(list->IdxBuffer.Data, static_cast<size_t>(list->IdxBuffer.size_in_bytes()));
    for (const ImDrawCmd& command : list->CmdBuffer) {
      mix.value(command.ClipRect);
      mix.value(command.TexRef._TexData);
      mix.value(command.TexRef._TexID);
      mix.word((uint64_t{command.VtxOffset} << 32) | command.IdxOffset);
      mix.word(command.ElemCount);
    }
  }
  return mix.result();
}

bool textures_wait(const ImDrawData& data) {
  if (!data.Textures) return false;
  return std::ranges::any_of(*data.Textures,
                             [](const ImTextureData* each) { return each->Status != ImTextureStatus_OK; });
}

}  // namespace canopy::app
