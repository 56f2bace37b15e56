#pragma once
// Experts as DeepSeek 2 and 3 choose them ("DeepSeek-V2", 2024, and "DeepSeek-V3 Technical Report", 2024; GLM-4.5 and
// later), in the files of such models: none in the first layers, some that every row goes through, and routers of
// several kinds. And layers behind the last, which predict further tokens.

#include <string_view>

#include "engine/format/gguf.h"
#include "engine/format/json_text.h"
#include "engine/format/model_config.h"

namespace canopy {

/// Experts of config.json, and how many layers stand behind its last; its layer count and sizes are read already.
/// `router_has_sigmoid`: what its class has where the file does not say. Throws bad_input, naming the field; not
/// validated otherwise.
void read_hf_routed_experts(const JsonFields& config_json, bool router_has_sigmoid, ModelConfig& config);

/// The same of GGUF's keys "<prefix>....". Layers behind the last are taken off the layer count.
void read_gguf_routed_experts(const GgufFile& file, std::string_view prefix, bool router_has_sigmoid,
                              ModelConfig& config);

/// Takes the layers that predict further tokens ("<prefix>.nextn_predict_layers") off the layer count, in which GGUF
/// files have them, and off what is known of each layer. Throws bad_input where no layer would be left.
void leave_out_further_layers(const GgufFile& file, std::string_view prefix, ModelConfig& config);

}  // namespace canopy
