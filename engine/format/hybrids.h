#pragma once
// What the files of hybrids have that others do not: models that mix along a text with attention in some layers and by
// something else in the others, with a state of fixed size. Functions of config.json begin with read_hf_ and throw
// bad_input, naming the field; those of GGUF with read_gguf_, whose keys begin with `prefix` and a dot.

#include <string_view>
#include <vector>

#include "engine/format/gguf.h"
#include "engine/format/json_text.h"
#include "engine/format/model_config.h"
#include "engine/format/tensor_names.h"

namespace canopy {

// Qwen3.5 and Qwen3-Next: gated delta nets.

/// The kinds of the layers, the sizes of the recurrences and the gate of attention, of config.json; its layer count and
/// sizes of heads are read already. Throws bad_input, naming the field; not validated otherwise.
void read_hf_hybrid(const JsonFields& config_json, ModelConfig& config);

/// The same of GGUF's keys "<prefix>.ssm. ...". Layers that predict further tokens are taken off the layer count.
void read_gguf_hybrid(const GgufFile& file, std::string_view prefix, ModelConfig& config);

// Granite 4 (IBM, "Granite 4.0", 2025): scans (Mamba-2) in most layers, attention in the others, experts in the larger
// sizes, and factors of embeddings, of what each layer adds, and of logits. Granite 3 has the factors alone.

/// The kinds of layers, the scans, the experts and the factors of config.json, of Granite 3 ("granite", which is
/// config.architecture) the factors. Throws bad_input, naming the field.
void read_hf_granite(const JsonFields& fields, ModelConfig& config);

/// Those of the metadata, whose keys begin with `prefix` and a dot: a layer without heads of keys is a scan. Throws
/// bad_input, naming the key.
void read_gguf_granite(const GgufFile& file, std::string_view prefix, ModelConfig& config);

/// What folders have as one tensor: gates and upper halves of the experts of a layer, of the one that every row goes
/// through, and of feed-forwards; of Granite 3 nothing.
std::vector<FusedTensor> fused_granite_tensors(const ModelConfig& config);

// Nemotron-H (NVIDIA, "Nemotron-H", 2025), Nemotron Nano 2 and Nemotron 3: each layer is a scan, attention without
// positions, a feed-forward or experts, the latter two without gates.

/// config.json with the name that other families have for the epsilon of norms, and without the part of heads that
/// turns: here no layer turns any.
nlohmann::json complete_nemotron(const nlohmann::json& object);

/// The kinds of layers, the scans and the experts of an object completed so, whose sizes are read already. Throws
/// bad_input, naming the field.
void read_hf_nemotron(const JsonFields& fields, ModelConfig& config);

/// Those of the metadata, whose keys begin with `prefix` and a dot: a layer without heads of keys and without a
/// feed-forward is a scan. Throws bad_input, naming the key.
void read_gguf_nemotron(const GgufFile& file, std::string_view prefix, ModelConfig& config);

/// Of a pattern with a letter for each layer: M a scan, * attention, E experts, - a feed-forward. Throws bad_input for
/// other letters.
void set_nemotron_layers(std::string_view pattern, ModelConfig& config);

// LFM2 (Liquid AI, "LFM2 Technical Report", 2025): short convolutions in the place of attention, and a feed-forward
// size that config.json states before it is cut.

/// config.json under the names that other models have, with the feed-forward size that the model has. Throws bad_input,
/// naming the field, where it is no object or that size cannot be made out.
nlohmann::json complete_lfm2(const nlohmann::json& object);

/// The kinds of the layers and the convolutions of an object completed so, whose layer count is read already. Throws
/// bad_input, naming the field; not validated otherwise.
void read_hf_lfm2(const JsonFields& config_json, ModelConfig& config);

/// The same of GGUF's keys "<prefix>....": layers without heads of keys are convolutions.
void read_gguf_lfm2(const GgufFile& file, std::string_view prefix, ModelConfig& config);

}  // namespace canopy
