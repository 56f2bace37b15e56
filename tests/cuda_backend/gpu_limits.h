#pragma once
// GPUs of each kind that plans of kernels differ for.

#include "cuda_backend/plan.h"

namespace canopy::test {

inline constexpr cuda::GpuLimits kGpus[] = {
    {75, 64 << 10}, {80, 163 << 10}, {86, 99 << 10}, {90, 227 << 10}, {90, 227 << 10, 132, true}, {120, 99 << 10}};

}  // namespace canopy::test
