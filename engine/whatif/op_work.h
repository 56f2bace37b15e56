#pragma once
// The work of a recorded op in kernels of a family; on NVIDIA's GPUs also in those of the CUDA backend, cut as that
// backend's own functions cut them.

#include "engine/compute/ops.h"
#include "engine/whatif/device_profile.h"
#include "engine/whatif/kernel_rules.h"
#include "engine/whatif/kernel_work.h"

namespace canopy::predict {

/// Ops that have no rule of their own count with their price (OpPrice): one dispatch, through the shared cache where
/// that can hold it.
Work work_of(const Op& op, const KernelRules& rules, const DeviceProfile& device);

/// Of a recurrence, whose workgroups have so many columns of a state, each in the registers of so many invocations.
/// States come from memory and go back to it once, as those of all layers together are more than a cache holds; the
/// steps of a workgroup wait for each other.
Work work_of_recurrence(const DeltaNetArgs& args, uint32_t columns, uint32_t column_lanes);

/// Products that run one after the other without waiting, or as one dispatch.
Work together(Work a, const Work& b);

/// Bytes of weights that a product reads, once; 0 for other ops.
uint64_t weight_bytes_of(const Op& op);

}  // namespace canopy::predict
