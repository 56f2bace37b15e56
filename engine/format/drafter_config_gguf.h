#pragma once
// The engine's view of a drafter's GGUF metadata, in llama.cpp's dialect and in those of its forks.

#include <string>
#include <string_view>

#include "engine/format/drafter_config.h"
#include "engine/format/gguf.h"
#include "engine/format/model_file.h"

namespace canopy {

/// Config without what depends on tensors alone (quantization, parameters, has_qk_norm, brings_vocabulary). Not
/// validated.
///
/// The dialects, told apart by metadata alone (A is general.architecture):
///   llama.cpp     A = dflash; A.target_layers holds aux layer + 1; the mask is tokenizer.ggml.mask_token_id
///   unshifted     A = dflash, but aux layers as they are, with the mask in A.mask_token_id
///   forks         A = dflash-draft, qwen35-dflash-draft, ...: A.dflash.target_layer_ids holds the aux layers as they
///   are
DrafterConfig read_gguf_drafter_config(const GgufFile& file);

/// Canonical names from those of llama.cpp: "enc.output_norm.weight" -> "hidden_norm".
std::string drafter_name_from_gguf(std::string_view name);
/// And from those of the forks: "dflash.fc.weight" -> "fc", "blk.0.post_attention_norm.weight" -> "blk.0.ffn_norm".
std::string drafter_name_from_fork(std::string_view name);

/// Whether the file is in llama.cpp's dialect, or at least of its architecture, whose tensor names it then has.
bool has_upstream_drafter_names(const GgufFile& file);

}  // namespace canopy
