#pragma once
// The engine's view of a GGUF file's metadata.

#include <string_view>

#include "engine/format/gguf.h"
#include "engine/format/model_config.h"
#include "engine/format/model_file.h"

namespace canopy {

/// Config without what depends on tensors alone (quantization, parameters). Validated.
ModelConfig read_gguf_config(const GgufFile& file);

/// Reads the part that all transformers have, from the keys "<prefix>.block_count" ...: name, sizes, norm epsilon and
/// rotary embedding, but neither its layout nor anything of the vocabulary. Not validated. With `turns_part` the number
/// of elements of a head that are turned may be any; otherwise it must be all. With `has_experts` the feed-forward size
/// may be missing, and is 0 then.
void read_gguf_transformer(const GgufFile& file, std::string_view prefix, ModelConfig& config, bool turns_part = false,
                           bool has_experts = false);

/// Checks that ids lie inside a vocabulary of `vocab` rows and that parallel lists are equally long.
TokenizerSource read_gguf_tokenizer(const GgufFile& file, uint32_t vocab);

}  // namespace canopy
