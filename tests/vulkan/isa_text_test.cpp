#include "tests/vulkan/isa_text.h"

#include <gtest/gtest.h>

namespace canopy::vk::testing {
namespace {

TEST(IsaText, countsFusedForms) {
  const MultiplyAdds counts = count_multiply_adds(
      "BB0:\n"
      "\tv_fmac_f32_e32 v0, v1, v2                ; 56000501\n"
      "\tv_fma_f32 v0, -v1, |v2|, v3              ; d6130000 240e0501\n"
      "\tv_fmaak_f32 v0, v1, v2, 0x3f800000\n"
      "\tv_fma_mix_f32 v0, v1, v2, v3 op_sel_hi:[1,0,0]\n"
      "\tv_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]\n"
      "\tv_dual_fmac_f32 v4, v1, v2 :: v_dual_fmac_f32 v5, v1, v3\n");
  EXPECT_EQ(counts.fused, 8u);
  EXPECT_EQ(counts.split, 0u);
  EXPECT_EQ(counts.multiplies, 0u);
  EXPECT_EQ(counts.adds, 0u);
}

TEST(IsaText, seesAProductThatIsAdded) {
  const MultiplyAdds counts = count_multiply_adds(
      "v_mul_f32_e32 v3, v1, v2\n"
      "v_add_f32_e32 v0, v0, v3\n"
      "v_mul_f32 v4, s1, v2\n"
      "s_nop 0\n"
      "v_sub_f32_e64 v0, -v4, v0\n");
  EXPECT_EQ(counts.split, 2u);
  EXPECT_EQ(counts.multiplies, 2u);
  EXPECT_EQ(counts.adds, 2u);
}

TEST(IsaText, forgetsAProductThatIsOverwritten) {
  const MultiplyAdds counts = count_multiply_adds(
      "v_mul_f32_e32 v3, v1, v2\n"
      "v_mov_b32_e32 v3, 0\n"
      "v_add_f32_e32 v0, v0, v3\n"
      "v_mul_f32_e32 v5, v1, v2\n"
      "buffer_load_dwordx2 v[4:5], v1, s[0:3], 0 offen\n"
      "v_add_f32_e32 v0, v0, v5\n");
  EXPECT_EQ(counts.split, 0u);
  EXPECT_EQ(counts.adds, 2u);
}

TEST(IsaText, readsTheScalarUnit) {
  const MultiplyAdds counts = count_multiply_adds(
      "s_mul_f32 s3, s1, s2\ns_add_f32 s0, s0, s3\ns_fmac_f32 s0, s1, s2\ns_mul_f32 s[4:5], 2.0, s1\n"
      "v_add_f32_e32 v3, v0, v4\nv_sub_f32 v3, s5, v4\n");
  EXPECT_EQ(counts.fused, 1u);
  EXPECT_EQ(counts.multiplies, 2u);
  EXPECT_EQ(counts.adds, 3u);
  EXPECT_EQ(counts.split, 2u);
}

TEST(IsaText, countsUnfusedMultiplyAddsAsSplit) {
  const MultiplyAdds counts = count_multiply_adds("v_mad_f32 v0, v1, v2, v3\nv_mac_f32_e32 v0, v1, v2\n");
  EXPECT_EQ(counts.split, 2u);
  EXPECT_EQ(counts.fused, 0u);
}

TEST(IsaText, readsTheHalvesOfADualInstructionTogether) {
  // v_dual_add reads the old value of v3, not the one that its other half writes.
  EXPECT_EQ(count_multiply_adds("v_dual_mul_f32 v3, v1, v2 :: v_dual_add_f32 v0, v0, v3\n").split, 0u);
  EXPECT_EQ(count_multiply_adds("v_dual_mul_f32 v3, v1, v2 :: v_dual_mul_f32 v4, v1, v5\n"
                                "v_dual_add_f32 v0, v0, v3 :: v_dual_add_f32 v6, v6, v4\n")
                .split,
            2u);
}

TEST(IsaText, ignoresIntegersHalvesAndComments) {
  const MultiplyAdds counts = count_multiply_adds(
      "v_add_u32_e32 v0, v0, v3\nv_mul_lo_u32 v0, v1, v2\nv_mad_u32_u24 v0, v1, v2, v3\nv_mul_f64 v[0:1], v[2:3], "
      "v[4:5]\n"
      "s_add_u32 s0, s4, -4 ; v_fma_f32 v0, v1, v2, v3\nv_lshl_add_u32 v0, s10, 6, v0\n");
  EXPECT_EQ(counts.fused + counts.split + counts.multiplies + counts.adds, 0u);
}

TEST(IsaText, countsTheAdditionsOfNir) {
  EXPECT_EQ(count_nir_additions("        con 32      %94 = fadd! %81, %1918\n"
                                "    div 32x2  %7 = fadd %5, %6\n"
                                "    32  %8 = fsub! %7, %6 (0.5)\n"
                                "    div 16  %9 = fadd! %5, %6\n"
                                "    div 32  %10 = iadd %5, %6\n"
                                "    div 32  %11 = ffma! %5, %6, %7\n"
                                "    // fadd\n"
                                "    div 32  %12 = phi b1: %3, b2: %4"),
            4u);
}

TEST(IsaText, comparesPerColumn) {
  EXPECT_EQ(rounding_mismatch({.fused = 10, .split = 1, .adds = 3}, 1, {.fused = 36, .split = 4, .adds = 9}, 4), "");
  EXPECT_EQ(rounding_mismatch({.fused = 10, .split = 1, .adds = 3}, 1, {.fused = 36, .split = 1, .adds = 9}, 4), "");
  // In one of four columns a product is no longer rounded.
  EXPECT_EQ(
      rounding_mismatch({.fused = 10, .split = 1, .adds = 3}, 1, {.fused = 37, .split = 3, .adds = 8}, 4),
      "1 of 3 additions take a rounded product at 1 columns (10 fused), but 3 of 8 additions take a rounded product "
      "at 4 columns (37 fused).");
  EXPECT_NE(rounding_mismatch({.fused = 10}, 1, {.multiplies = 10, .adds = 10}, 1), "");
}

}  // namespace
}  // namespace canopy::vk::testing
