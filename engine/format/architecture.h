#pragma once
// The supported architectures: their names, the LayerSpec of each of their layers, and the tensors that follow from
// it. A new one whose layers are of kinds that there are (layer_spec.h) is a row in architecture.cpp.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/layer_spec.h"
#include "engine/format/model_config.h"

namespace canopy {

/// The layers whose attention has a window where a file gives one without their list.
enum class Windows {
  in_last_layers,       // from 'max_window_layers' on; GGUF has no such field
  in_unrotated_layers,  // those that do not turn their heads
  in_even_layers,       // the first, the third, ...; in config.json it needs no 'use_sliding_window'
  in_all_layers,        // but where 'layer_types' says otherwise; and in config.json it needs no 'use_sliding_window'
};

/// Neighbours may have one name: the same layers under several classes.
struct Architecture {
  std::string_view name;          // ours and GGUF's general.architecture
  std::string_view hugging_face;  // config.json's architectures[0]
  std::string_view models;        // what people call them
  RopeLayout gguf_rope_layout;    // Hugging Face files are always RopeLayout::half
  bool has_qkv_bias = false;
  bool has_output_bias = false;  // beside that, where config.json does not say otherwise
  bool has_qk_norm = false;
  bool ties_head = false;          // in config.json: without 'tie_word_embeddings'
  uint32_t unrotated_step = 0;     // heads of each so many-th layer are not turned; 0: of none
  bool has_fused_tensors = false;  // fused_tensors.h
  bool has_experts = false;        // in some layers, or all
  bool is_gpt_oss = false;         // gpt_oss.h
  bool is_gemma = false;           // gemma.h
  bool is_hybrid = false;          // recurrent layers, a gate of attention, heads that are turned in part
  double rope_theta = 10000;       // in config.json: without 'rope_theta'
  Windows window = Windows::in_last_layers;
  Windows gguf_window = Windows::in_last_layers;
  /// The specification of layer n.
  LayerSpec (*layer)(const ModelConfig& config, uint32_t n) = nullptr;
};

/// Which of the layers turn their heads: all but each `step`-th. Empty, which means all of them, where step is 0.
std::vector<bool> layers_that_rotate(uint32_t layers, uint32_t step);

/// Throws, listing what is supported, when there is none of that name.
const Architecture& architecture_by_name(std::string_view name);
/// The same for a class name of config.json.
const Architecture& architecture_by_class(std::string_view class_name);

/// "these architectures run here: llama (Llama 2 and 3, ...), ...": the end of a sentence for messages, with what GGUF
/// files call them and what people do.
std::string what_runs();

/// Of all layers, first to last. Throws what architecture_by_name() throws for config.architecture.
std::vector<LayerSpec> layer_specs(const ModelConfig& config);

/// A tensor that a model of this configuration must have, under its canonical name; a vector has rows = 1.
struct RequiredTensor {
  std::string name;
  uint64_t rows = 0;
  uint64_t cols = 0;
};

std::vector<RequiredTensor> required_tensors(const ModelConfig& config);
/// Those of the layers alone, "blk.N....".
void append_layer_tensors(const ModelConfig& config, std::span<const LayerSpec> layers,
                          std::vector<RequiredTensor>& result);

/// Whether a GGUF file with this general.architecture, or a folder with this class in config.json, is a drafter of some
/// kind; not necessarily one that can be run.
bool is_drafter_architecture(std::string_view name);
bool is_drafter_class(std::string_view class_name);

/// In hybrids without a list of kinds, every so many-th layer is one of attention.
inline constexpr uint32_t kUsualAttentionStep = 4;
/// `step`, where it is not 0. Throws bad_input, naming the field: which layers are of which kind follows from it.
uint32_t checked_layer_step(uint32_t step, const std::string& field);
/// Which layers are recurrences where each `step`-th is attention; step is not 0.
std::vector<bool> recurrent_layers(uint32_t layers, uint32_t step);

}  // namespace canopy
