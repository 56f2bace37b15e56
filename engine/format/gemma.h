#pragma once
// What files of Gemma 2 and 3 have that others do not ("Gemma 2: Improving Open Language Models at a Practical Size",
// 2024; "Gemma 3 Technical Report", 2025): embeddings that are scaled, norms of what is added to the residual stream,
// caps of scores and logits, and a rotation of its own in the layers with a window. Configurations of the models that
// see pictures leave out most fields.

#include <cstdint>
#include <string_view>

#include "engine/format/gguf.h"
#include "engine/format/json_text.h"
#include "engine/format/model_config.h"

namespace canopy {

/// The object of config.json that describes the text part, with what it leaves out as transformers fills it in, and
/// the rotation as older files have it ('rope_theta', 'rope_scaling', 'rope_local_base_freq'). Throws bad_input where
/// it is no object, or its rotation is of a kind that no Gemma has.
nlohmann::json complete_gemma(const nlohmann::json& text_part, std::string_view architecture);

/// The rest of an object completed so, whose sizes are read already, but for what depends on the kind of layer. Throws
/// bad_input, naming the field; not validated otherwise.
void read_hf_gemma(const JsonFields& fields, ModelConfig& config);

/// Makes a configuration, whose sizes are set, one of Gemma 3 that sees `window` positions (0: all) in all layers but
/// each sixth.
void set_gemma3(uint32_t window, ModelConfig& config);

/// As read_hf_gemma(), of a GGUF file.
void read_gguf_gemma(const GgufFile& file, std::string_view architecture, ModelConfig& config);

}  // namespace canopy
