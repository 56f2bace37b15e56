#pragma once
// What hybrids of attention and recurrences have in their configuration beside what all transformers have.

#include "engine/format/gguf.h"
#include "engine/format/json_text.h"
#include "engine/format/model_config.h"

namespace canopy {

/// The kinds of the layers, the sizes of the recurrences and the gate of attention, of config.json; its layer count and
/// sizes of heads are read already. Throws bad_input, naming the field; not validated otherwise.
void read_hf_hybrid(const JsonFields& config_json, ModelConfig& config);

/// The same of GGUF's keys "<prefix>.ssm. ...". Layers that predict further tokens are taken off the layer count.
void read_gguf_hybrid(const GgufFile& file, std::string_view prefix, ModelConfig& config);

}  // namespace canopy
