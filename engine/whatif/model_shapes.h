#pragma once
// Models by name, as shapes: a configuration and the type of each tensor without a file, and the model of random
// weights that is made of one, in memory or as a GGUF file.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "engine/base/files.h"
#include "engine/format/drafter_file.h"
#include "engine/format/model_config.h"
#include "engine/format/model_file.h"
#include "engine/format/tensor.h"

namespace canopy::predict {

// Models by name, as shapes: a configuration and the type of each tensor, without a file.

/// "qwen3-8b-q4_k" is the model qwen3-8b with the weights of type q4_k.
struct NamedShape {
  std::string name;
  ModelConfig config;
  std::string weights;  // "q4_k"
  /// The type of each kind of matrix ("attn_q"), as a file has it; of others `weights` decides.
  std::map<std::string, TensorType, std::less<>> types = {};
  uint32_t taps = 0;  // of a drafter: layers of its target that it reads
  // Of relatives of DFlash; 0 where a drafter lacks them.
  uint32_t markov_rank = 0, row_conv_taps = 0, row_conv_group = 0;
};

/// Throws bad_input that lists what is allowed.
NamedShape model_shape(std::string_view name);

/// "MODEL-TYPE, where MODEL is one of ..., and TYPE one of ...": for messages and help.
std::string allowed_shapes();

/// A name for a model's configuration that says nothing of its file: that of the shape with the same sizes and type of
/// weights ("qwen3-8b-q4_k"), else architecture, layers, width and type ("llama-30x576-q4_1").
std::string shape_name(const ModelConfig& config);

/// The type that a file of such weights has for a matrix of `cols` columns, by its canonical name ("blk.3.attn_v").
/// q4_0, q4_1 and q4_k have the head in Q6_K; q4_k_m also half of the layers' attn_v and ffn_down. Rows that are no
/// whole blocks of 256 get the next larger type that has blocks of 32. Routers and taps of convolutions are F32.
TensorType type_of_tensor(const NamedShape& shape, std::string_view tensor, uint64_t cols);

/// A model of this shape with random weights, to be measured on a device.
ModelFile random_model(const NamedShape& shape);

/// The drafter that a model of this shape would have, of random weights in the same types: as the published ones for
/// Qwen3 are, five layers of attention of the target's sizes that read five of its layers, blocks of 16. Never deeper
/// than the target.
DrafterFile random_drafter(const NamedShape& shape);

// A model of a named shape as a GGUF file: what programs and machines without such a model can be measured with.

/// Writes the file of random_model(shape): random blocks of the types that such files have, and a SentencePiece
/// vocabulary of bytes and made-up words, so that chats and llama.cpp open it. What it writes makes no sense. Nothing
/// but a pattern of random blocks is held in memory.
void write_random_model(const NamedShape& shape, const PutBytes& put);

/// The same for random_drafter(shape), as a drafter of that model: of Q8_0 like most that are published as GGUF.
void write_random_drafter(const NamedShape& shape, const PutBytes& put);

}  // namespace canopy::predict
