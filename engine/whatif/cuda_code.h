#pragma once
// What the CUDA kernels are in machine code, as tools/cuda_code.py reads it.

#include <cstdint>
#include <string_view>

namespace canopy::predict {

struct CudaCode {
  uint32_t registers = 0;  // of a thread
  /// Of products: instructions x lanes of the main loop for a weight, those of tensor cores left out: with 8 rows of
  /// the pass where a kernel takes up to 8, else with as many as it takes.
  double of_weight = 0;
};

/// Of a kernel for a GPU of that compute capability (89 is 8.9); zeros for a name that is not known.
CudaCode cuda_code(std::string_view kernel, int capability);

}  // namespace canopy::predict
