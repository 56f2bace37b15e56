#pragma once
// A folder of model files as one input, an archive (archive.h). The name of a safetensors file is followed by the bytes
// of its data, which are zeros, and its text is its header: "-- a.safetensors 64 --".

#include <string_view>

#include "tests/fuzz/scratch.h"

namespace canopy::fuzz {

/// Writes the files of an archive that a model's folder may have; leaves out all others.
void write_archived_folder(ScratchFolder& folder, std::string_view input);

}  // namespace canopy::fuzz
