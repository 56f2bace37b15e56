#pragma once
// The engine's view of a GGUF file's metadata.

#include "engine/format/gguf.h"
#include "engine/format/model_config.h"
#include "engine/format/model_file.h"

namespace canopy {

/// Config without what depends on tensors alone (quantization, parameters). Validated.
ModelConfig read_gguf_config(const GgufFile& file);

/// Checks that ids lie inside a vocabulary of `vocab` rows and that parallel lists are equally long.
TokenizerSource read_gguf_tokenizer(const GgufFile& file, uint32_t vocab);

}  // namespace canopy
