#pragma once
// What must hold of drafters that a reader accepted.

#include "engine/format/drafter_file.h"

namespace canopy::fuzz {

/// Of a config that is valid: sizes fit each other, and the pair check takes a target that has what the drafter asks
/// for and refuses those that lack it.
void check_drafter_config(const DrafterConfig& config);

/// Everything that is read of a drafter before its weights go to a device; and written as GGUF, it is read back as the
/// same drafter.
void check_drafter(const DrafterFile& drafter);

}  // namespace canopy::fuzz
