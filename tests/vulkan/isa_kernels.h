#pragma once
// The kernels that the ISA gate compiles, as GPUs run them. A new kernel of a GPU's families gets a line in
// gated_kernels().

#include <cstdint>
#include <string>
#include <vector>

#include "engine/vulkan/context.h"

namespace canopy::vk::testing {

/// A kernel for tiles of so many columns (rows of a pass).
struct GatedVariant {
  uint32_t columns = 1;
  KernelOptions options;
  uint32_t least_waves = 8;  // that a SIMD can hold at once, as registers and shared memory allow
};

/// A kernel in the variants that differ by width, the narrowest first; one where there is one for every width.
struct GatedKernel {
  std::string shader;
  std::vector<GatedVariant> variants;
  bool must_fuse = true;  // the machine code must have multiply-adds: the shader says fma()
};

/// The kernels that a device of this context runs: those on matrix cores only where it has cooperative matrices.
/// all_variants: of every op and type of weight each variant that timing may choose; otherwise of one op.
std::vector<GatedKernel> gated_kernels(const Context& context, bool all_variants);

}  // namespace canopy::vk::testing
