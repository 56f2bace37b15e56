#pragma once
// What an AMD disassembly says of how a kernel rounds. Pure functions of a text.

#include <cstdint>
#include <string>
#include <string_view>

namespace canopy::vk::testing {

/// f32 arithmetic of a disassembly, counted as it stands there: a loop's body once.
struct MultiplyAdds {
  uint32_t fused = 0;       // a b + c rounded once: v_fma*, v_fmac*, v_pk_fma (two each), dual forms
  uint32_t split = 0;       // additions of a product that was rounded before; v_mad* and v_mac* are such
  uint32_t multiplies = 0;  // v_mul*
  uint32_t adds = 0;        // v_add*, v_sub*, those in `split` included
};

/// A product counts as added when the last instruction before the addition, in the order of the text, that wrote one of
/// its operands is a multiplication.
MultiplyAdds count_multiply_adds(std::string_view disassembly);

/// Empty if two specialisations of a kernel, of so many columns, round each output alike: a product that is rounded
/// before it is added in one is so in the other. Otherwise a sentence with the counts.
/// Holds for kernels that round products before adding them outside loops only: a loop may be unrolled in one of the
/// two.
std::string rounding_mismatch(const MultiplyAdds& narrow, uint32_t narrow_columns, const MultiplyAdds& wide,
                              uint32_t wide_columns);

}  // namespace canopy::vk::testing
