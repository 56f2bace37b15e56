#pragma once
// The plan of a load, made before anything is allocated: the types of the weights, the context, the memory.

#include <functional>

#include "engine/compute/device.h"
#include "engine/format/model_file.h"
#include "engine/format/quantize_on_load.h"
#include "engine/model/memory_plan.h"
#include "engine/model/weight_plan.h"

namespace canopy {

struct LoadPlan {
  WeightPlan weights;
  MemoryPlan memory;
  QuantizeOnLoad quantized = QuantizeOnLoad::none;  // what will be done: never automatic, and none where none is wide
};

/// A model whose context would be shortened below this (or below its own limit) counts as one that does not fit as it
/// is: quantizing it then serves its user better.
inline constexpr uint32_t kRoomyContext = 4096;

/// Plans the load and sets limits.context, see choose_context(). `automatic` quantizes only where the file's own types
/// do not fit, or leave less than kRoomyContext positions where a context is to be chosen.
/// Throws what choose_context() throws; a refusal for want of memory names the sizes that quantizing would give, and
/// the option. `would_fit`, where given, is then told the widest choice that fits, if any does. `available` are the
/// bytes of the device that the load may take.
LoadPlan plan_load(const ModelFile& file, const Device& device, uint64_t available, ModelLimits& limits,
                   uint32_t requested_context, QuantizeOnLoad quantize,
                   const std::function<void(QuantizeOnLoad)>& would_fit = {});

}  // namespace canopy
