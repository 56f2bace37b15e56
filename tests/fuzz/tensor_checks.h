#pragma once
// Properties that tensors accepted by a reader must have.

#include <span>

#include "engine/format/model_file.h"

namespace canopy::fuzz {

/// Checks that each tensor's bytes can be read, are inside `file` if that is given, have the size of its shape, and can
/// be decoded.
void check_tensors(std::span<const TensorView> tensors, std::span<const std::byte> file = {});

/// Checks that each pair of a head has a frequency by which it turns, or is one that does not turn.
void check_rotations(const ModelConfig& config);

/// Reads everything of a model that is read before its weights go to a device.
void check_model(const ModelFile& model);

}  // namespace canopy::fuzz
