#include "engine/format/dequantize.h"

#include <array>

#include "engine/base/checked.h"
#include "engine/base/error.h"
#include "engine/base/half.h"
#include "engine/base/reader.h"

namespace canopy {
namespace {

/// Decodes one block from the reader into block_elements floats.
using DecodeBlock = void (*)(Reader& reader, float* out);

float read_f16(Reader& reader) {
  return f16_to_f32(reader.read<uint16_t>("a half"));
}

void decode_f32(Reader& reader, float* out) {
  *out = reader.read<float>("an element");
}
void decode_f16(Reader& reader, float* out) {
  *out = read_f16(reader);
}
void decode_bf16(Reader& reader, float* out) {
  *out = bf16_to_f32(reader.read<uint16_t>("an element"));
}

// Block of 32: f16 d, int8 q[32].   x = d q
void decode_q8_0(Reader& reader, float* out) {
  const float scale = read_f16(reader);
  for (int i = 0; i < 32; ++i) out[i] = scale * reader.read<int8_t>("a quant");
}

// Block of 32: f16 d, f16 m, 16 bytes; byte i holds q[i] in its low and q[i + 16] in its high half.   x = d q + m
void decode_q4_1(Reader& reader, float* out) {
  const float scale = read_f16(reader);
  const float minimum = read_f16(reader);
  for (int i = 0; i < 16; ++i) {
    const auto pair = reader.read<uint8_t>("two quants");
    out[i] = scale * static_cast<float>(pair & 0xf) + minimum;
    out[i + 16] = scale * static_cast<float>(pair >> 4) + minimum;
  }
}

struct Decoder {
  TensorType type;
  DecodeBlock decode;
};

// A new type is one function above and one line here.
constexpr std::array decoders = std::to_array<Decoder>({
    {TensorType::f32, decode_f32},
    {TensorType::f16, decode_f16},
    {TensorType::bf16, decode_bf16},
    {TensorType::q8_0, decode_q8_0},
    {TensorType::q4_1, decode_q4_1},
});

const Decoder* find_decoder(TensorType type) {
  for (const Decoder& decoder : decoders) {
    if (decoder.type == type) return &decoder;
  }
  return nullptr;
}

}  // namespace

bool can_dequantize(TensorType type) {
  return find_decoder(type) != nullptr;
}

std::string dequantizable_types() {
  std::string names;
  for (const Decoder& decoder : decoders) names += (names.empty() ? "" : ", ") + std::string(to_string(decoder.type));
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
  const size_t step = tensor_type_info(type).block_elements;
  Reader reader(blocks);
  for (size_t i = 0; i < out.size(); i += step) decoder->decode(reader, out.data() + i);
}

}  // namespace canopy
