#pragma once
// The engine's view of a drafter's config.json.

#include <string>
#include <string_view>

#include "engine/format/drafter_config.h"

namespace canopy {

/// Config without what depends on tensors alone (quantization, parameters, has_qk_norm, brings_vocabulary). Not
/// validated. block_size, target_layer_ids and mask_token_id may stand at the top level or in dflash_config.
DrafterConfig read_hf_drafter_config(std::string_view config_json);

/// Whether the class in config.json is that of a drafter of some kind. Throws where there is none.
bool is_drafter_config(std::string_view config_json);

/// "layers.0.self_attn.q_proj.weight" -> "blk.0.attn_q", "norm.weight" -> "output_norm"; with or without "model." in
/// front. Names we do not know stay as they are.
std::string drafter_name_from_hugging_face(std::string_view name);

}  // namespace canopy
