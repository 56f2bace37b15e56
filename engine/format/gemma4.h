#pragma once
// What files of Gemma 4 have that those of other Gemmas do not: two sizes of heads, values without weights of their
// own, and a rotation that turns a part of each head by frequencies of the whole. There is no paper; names and rules
// are those of transformers (Gemma4TextConfig) and of GGUF's architecture "gemma4".

#include <string_view>
#include <vector>

#include "engine/format/gguf.h"
#include "engine/format/json_text.h"
#include "engine/format/model_config.h"

namespace canopy {

/// The text part of config.json with the kinds of its layers, which it may leave out: each sixth and the last see the
/// whole text. Throws bad_input where it is no object, or has no number of layers.
nlohmann::json complete_gemma4(const nlohmann::json& text_part);

/// The rest of an object completed so, whose sizes are read already; `slides`: by layer, whether it has a window.
/// Throws bad_input, naming the field, also for forms of the model that do not run here; not validated otherwise.
void read_hf_gemma4(const JsonFields& fields, const std::vector<bool>& slides, ModelConfig& config);

/// The same of a GGUF file whose keys begin with `prefix`.
void read_gguf_gemma4(const GgufFile& file, std::string_view prefix, ModelConfig& config);

/// Makes a configuration, whose sizes of full layers are set, one of Gemma 4: `slides` as above, with heads of
/// `local_head_dim` in these layers.
void set_gemma4(const std::vector<bool>& slides, uint32_t local_head_dim, ModelConfig& config);

/// Which layers have a window: all but each `step`-th, in most published models each sixth, and the last.
std::vector<bool> gemma4_sliding_layers(uint32_t layers, uint32_t step = 6);

}  // namespace canopy
