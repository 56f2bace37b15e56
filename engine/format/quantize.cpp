#include "engine/format/quantize.h"

#include <string>

#include "engine/base/error.h"
#include "engine/format/quantize_block.h"

namespace canopy {
namespace {

/// Writes all of `values` as blocks of `type`.
template <TensorType type, void (*write_block)(ValuesOf<type>, BlockOf<type>&)>
void quantize_blocks(std::span<const float> values, std::span<std::byte> blocks) {
  constexpr size_t step = ValuesOf<type>::extent;
  BlockOf<type> block;
  for (size_t i = 0; i < values.size() / step; ++i) {
    const auto part = values.subspan(i * step, step);
    try {
      write_block(ValuesOf<type>(part), block);
    } catch (const Error& error) {
      throw error.within("Quantizing elements " + std::to_string(i * step) + " to " +
                         std::to_string((i + 1) * step - 1));
    }
    std::memcpy(blocks.data() + i * block.size(), block.data(), block.size());
  }
}

using Quantizer = void (*)(std::span<const float> values, std::span<std::byte> blocks);

Quantizer find_quantizer(TensorType type) {
  switch (type) {
    case TensorType::q8_0: return quantize_blocks<TensorType::q8_0, write_q8_0>;
    case TensorType::q4_k: return quantize_blocks<TensorType::q4_k, write_q4_k>;
    default: return nullptr;
  }
}

}  // namespace

bool can_quantize(TensorType type) {
  return find_quantizer(type) != nullptr;
}

void quantize(TensorType type, std::span<const float> values, std::span<std::byte> blocks) {
  const std::string name(to_string(type));
  const Quantizer quantizer = find_quantizer(type);
  if (quantizer == nullptr) throw bad_input("Elements cannot be quantized to " + name + "; supported: Q8_0, Q4_K.");
  const uint64_t needed = tensor_bytes(type, values.size(), "input of the quantization to " + name);
  if (blocks.size() != needed) {
    throw bad_input("Quantizing " + std::to_string(values.size()) + " elements to " + name + " takes " +
                    std::to_string(needed) + " bytes, but room for " + std::to_string(blocks.size()) + " was given.");
  }
  quantizer(values, blocks);
}

}  // namespace canopy
