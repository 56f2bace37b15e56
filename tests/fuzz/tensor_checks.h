#pragma once
// What must hold of tensors that a reader accepted.

#include <span>

#include "engine/format/model_file.h"

namespace canopy::fuzz {

/// Every tensor's bytes can be read, lie in `file` where one is given, are as many as its shape says, and decode.
void check_tensors(std::span<const TensorView> tensors, std::span<const std::byte> file = {});

/// Everything that is read of a model before its weights go to a device.
void check_model(const ModelFile& model);

}  // namespace canopy::fuzz
