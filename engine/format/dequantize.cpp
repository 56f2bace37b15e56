#include "engine/format/dequantize.h"

#include <array>

#include "engine/base/error.h"
#include "engine/format/dequantize_block.h"

namespace canopy {
namespace {

std::array<std::span<const Decoder>, 5> families() {
  return {simple_decoders(), k_decoders(), table_decoders(), ternary_decoders(), codebook_decoders()};
}

const Decoder* find_decoder(TensorType type) {
  for (const auto family : families()) {
    for (const Decoder& decoder : family) {
      if (decoder.type == type) return &decoder;
    }
  }
  return nullptr;
}

}  // namespace

bool can_dequantize(TensorType type) {
  return find_decoder(type) != nullptr;
}

std::string dequantizable_types() {
  std::string names;
  for (const auto family : families()) {
    for (const Decoder& decoder : family) {
      names += (names.empty() ? "" : ", ") + std::string(to_string(decoder.type));
    }
  }
  return names;
}

void dequantize(TensorType type, std::span<const std::byte> blocks, std::span<float> out) {
  const Decoder* decoder = find_decoder(type);
  if (decoder == nullptr) {
    throw bad_input("Elements of type " + std::string(to_string(type)) +
                    " cannot be decoded; supported types: " + dequantizable_types() + ".");
  }
  const uint64_t needed = tensor_bytes(type, out.size(), "output");
  if (blocks.size() != needed) {
    throw bad_input("Decoding " + std::to_string(out.size()) + " elements of type " + std::string(to_string(type)) +
                    " takes " + std::to_string(needed) + " bytes, but " + std::to_string(blocks.size()) +
                    " were given.");
  }
  decoder->decode(blocks, out);
}

}  // namespace canopy
