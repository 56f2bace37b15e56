#pragma once
// What gpt-oss has in its configuration beside what all transformers have: attention with sinks, biases of all
// products, and experts with clamped gates.

#include "engine/format/json_text.h"
#include "engine/format/model_config.h"

namespace canopy {

/// Experts and biases of config.json, whose layer count and sizes are read already. Throws bad_input, naming the field;
/// not validated otherwise.
void read_hf_gpt_oss(const JsonFields& config_json, ModelConfig& config);

/// What GGUF files do not say, as all models of this architecture have it; the experts are read already.
void set_gguf_gpt_oss(ModelConfig& config);

}  // namespace canopy
