#pragma once
// Floats to blocks of Q8_0 and Q4_K, for models that are stored wider than the device can hold, and the choice of it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "engine/format/tensor.h"

namespace canopy {

// The types to which weights that a file stores wide may be quantized while loading, named as on the command line.

/// Concerns matrices that a device would keep as F32, F16 or BF16; norms and what is quantized already stay as they
/// are.
enum class QuantizeOnLoad : uint32_t {
  none,       // keep the file's types, and refuse the model where they do not fit
  automatic,  // keep them where they fit; else the widest of the following that does
  q8_0,       // 8.5 bits a weight
  q4_k,       // 4.5 bits a weight; 8.5 in the output head and where rows are no multiple of 256
};

constexpr std::string_view to_string(QuantizeOnLoad choice) {
  switch (choice) {
    case QuantizeOnLoad::none: return "none";
    case QuantizeOnLoad::automatic: return "auto";
    case QuantizeOnLoad::q8_0: return "q8_0";
    case QuantizeOnLoad::q4_k: return "q4_k";
  }
  return "";
}

/// The choice of that name, or nothing.
constexpr std::optional<QuantizeOnLoad> quantize_on_load_from(std::string_view name) {
  for (const auto choice :
       {QuantizeOnLoad::none, QuantizeOnLoad::automatic, QuantizeOnLoad::q8_0, QuantizeOnLoad::q4_k}) {
    if (to_string(choice) == name) return choice;
  }
  return std::nullopt;
}

/// Whether quantize() can write the type: Q8_0 and Q4_K.
bool can_quantize(TensorType type);

/// Writes `values`, whole blocks of one or more rows, as blocks of `type`. Deterministic; dequantize() reads the
/// result.
///
/// Q8_0: no element is off by more than half a step, which is the largest magnitude of its 32 over 127, as a half.
/// Q4_K: scale and minimum of each 32 elements come from a least-squares search, scaled down to six bits each under the
/// two half-precision scales of 256; the quants are then rounded against what those bits really say.
///
/// Threads may write parts of one tensor, whole blocks each, at the same time.
/// Throws bad_input when the type cannot be written, `values` is no whole number of blocks, `blocks` is not exactly
/// their size, a value is infinite or not a number, or so large that the block's half-precision scale cannot express it
/// (about 8.3e6 for Q8_0 and 4e6 for Q4_K). `blocks` is unspecified then.
void quantize(TensorType type, std::span<const float> values, std::span<std::byte> blocks);

}  // namespace canopy
