#pragma once
// What a GPU is, as JSON: the same for `canopy-cli devices --json` and for reports.

#include <nlohmann/json.hpp>

#include "cuda_backend/device_facts.h"

namespace canopy::cuda {

/// Sizes in bytes. No uuid.
nlohmann::ordered_json to_json(const DeviceFacts& facts);

}  // namespace canopy::cuda
