#pragma once
// Products with the experts that a row has chosen.

#include <cstdint>
#include <vector>

#include "engine/compute/ops.h"
#include "tests/reference/memory.h"

namespace canopy::reference {

/// The products of an expert's rows with a row of activations, times `scale`, plus the bias of each of the weight's
/// rows, in double and in f32 activations on every device.
std::vector<double> expert_products(const HostWeight& weight, uint32_t expert, uint32_t expert_rows, const float* row,
                                    double scale, const std::vector<float>& bias);

/// One for each row of all experts: zeros where there is no buffer.
std::vector<float> bias_of_rows(const Buffer* bias, uint32_t rows, const char* what);

/// Rows of the weight that each expert has. Throws bad_input where they are no whole number.
uint32_t rows_of_expert(const HostWeight& weight, const ExpertCounts& experts, const char* op);

/// The experts that the rows have chosen, uint32 [width, used]. Throws bad_input for one that does not exist.
std::span<const uint32_t> chosen_experts(const Buffer* chosen, uint32_t width, const ExpertCounts& experts,
                                         const char* op);

}  // namespace canopy::reference
