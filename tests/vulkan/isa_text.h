#pragma once
// Finds out from an AMD disassembly how a kernel rounds. Pure functions of a text.

#include <cstdint>
#include <string>
#include <string_view>

namespace canopy::vk::testing {

/// The f32 arithmetic of a disassembly, counted as written: the body of a loop counts once.
struct MultiplyAdds {
  uint32_t fused = 0;       // a b + c rounded once: v_fma*, v_fmac*, v_pk_fma (two each), dual forms
  uint32_t split = 0;       // additions of a product that was rounded before; v_mad* and v_mac* count here
  uint32_t multiplies = 0;  // v_mul*
  uint32_t adds = 0;        // v_add*, v_sub*, including those in `split`
};

/// Counts. An addition counts as `split` if the last instruction before it in the text that wrote one of its operands
/// is a multiplication.
MultiplyAdds count_multiply_adds(std::string_view disassembly);

/// Compares two specialisations of a kernel for different numbers of columns. Empty if both round each output alike,
/// that is, if a product rounded before its addition in one is so in the other; else a sentence with the counts. Only
/// for kernels that round products before adding them outside of loops, as a loop may be unrolled in one of the two.
std::string rounding_mismatch(const MultiplyAdds& narrow, uint32_t narrow_columns, const MultiplyAdds& wide,
                              uint32_t wide_columns);

}  // namespace canopy::vk::testing
