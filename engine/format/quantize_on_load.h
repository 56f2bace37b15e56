#pragma once
// The types to which weights that a file stores wide may be quantized while loading, named as on the command line.

#include <cstdint>
#include <optional>
#include <string_view>

namespace canopy {

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

}  // namespace canopy
