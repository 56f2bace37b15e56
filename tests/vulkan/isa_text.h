#pragma once
// Finds out from an AMD disassembly how a kernel rounds. Pure functions of a text.

#include <cstdint>
#include <string>
#include <string_view>

namespace canopy::vk::testing {

/// The f32 arithmetic of a disassembly, counted as written: the body of a loop counts once.
struct MultiplyAdds {
  uint32_t fused = 0;       // a b + c rounded once: v_fma*, v_fmac*, v_pk_fma (two each), dual and scalar forms
  uint32_t split = 0;       // additions of a product that was rounded before; v_mad* and v_mac* count here
  uint32_t multiplies = 0;  // v_mul*
  uint32_t adds = 0;        // v_add*, v_sub*, including those in `split`
};

/// Counts. An addition counts as `split` if the last instruction before it in the text that wrote one of its operands
/// is a multiplication.
MultiplyAdds count_multiply_adds(std::string_view disassembly);

/// The f32 additions in the text of Mesa's intermediate language (NIR) that the machine code was made of.
uint32_t count_nir_additions(std::string_view nir);

/// Compares two specialisations of a kernel for different numbers of columns. Empty if both round each output alike,
/// else a sentence with the counts: products that are rounded before they are added must be as many in both (those
/// outside of the columns) or as many for each column. Only for kernels that add rounded products outside of loops, as
/// a loop may be unrolled in one of the two.
std::string rounding_mismatch(const MultiplyAdds& narrow, uint32_t narrow_columns, const MultiplyAdds& wide,
                              uint32_t wide_columns);

}  // namespace canopy::vk::testing
