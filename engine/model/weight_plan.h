#pragma once
// Which tensors of a file become which matrix on the device, and in which type, decided before anything is allocated;
// and the conversion of their rows to that type.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/compute/device.h"
#include "engine/compute/types.h"
#include "engine/format/model_file.h"
#include "engine/format/quantize.h"
#include "engine/format/tensor.h"

namespace canopy {

// Conversion between the weight types of devices and the tensor types of files.

inline TensorType stored_as(WeightType type) {
  switch (type) {
    case WeightType::f32: return TensorType::f32;
    case WeightType::f16: return TensorType::f16;
    case WeightType::bf16: return TensorType::bf16;
    case WeightType::q8_0: return TensorType::q8_0;
    case WeightType::q4_1: return TensorType::q4_1;
    case WeightType::q4_0: return TensorType::q4_0;
    case WeightType::q5_0: return TensorType::q5_0;
    case WeightType::q5_1: return TensorType::q5_1;
    case WeightType::q2_k: return TensorType::q2_k;
    case WeightType::q3_k: return TensorType::q3_k;
    case WeightType::q4_k: return TensorType::q4_k;
    case WeightType::q5_k: return TensorType::q5_k;
    case WeightType::q6_k: return TensorType::q6_k;
    case WeightType::iq4_nl: return TensorType::iq4_nl;
    case WeightType::iq4_xs: return TensorType::iq4_xs;
    case WeightType::mxfp4: return TensorType::mxfp4;
  }
  throw bad_input("A weight has no known type.");
}

/// Nothing for types that no device keeps.
inline std::optional<WeightType> weight_type_of(TensorType type) {
  for (uint32_t i = 0; i < kWeightTypes; ++i) {
    if (stored_as(static_cast<WeightType>(i)) == type) return static_cast<WeightType>(i);
  }
  return std::nullopt;
}

// Rows of a tensor in another type than the file's: decoded, or quantized on load.

/// Writes rows [first, first + count) of a [R, C] tensor, whose type can be decoded, as row-major blocks of `to` into
/// `blocks`, resized to fit. The same bits as quantize() of the whole decoded tensor. Needs one row of floats beside
/// the result; several threads may convert parts of one tensor.
/// Throws bad_input, naming tensor and row, where a value cannot be written in that type.
void convert_rows(const TensorView& tensor, uint32_t first, uint32_t count, WeightType to,
                  std::vector<std::byte>& blocks);
/// The same of `rows`, the tensor's rows from `first` on as rows_of() gives them.
void convert_rows(const TensorView& tensor, uint32_t first, std::span<const std::byte> rows, WeightType to,
                  std::vector<std::byte>& blocks);

// Which tensors of a file become which matrix on the device, and in which type: decided before anything is allocated.

/// One matrix on the device. Views point into the ModelFile it was planned from.
struct MatrixPlan {
  std::string name;
  std::vector<const TensorView*> parts;
  WeightType type = WeightType::f32;
  WeightLayout layout = WeightLayout::stacked;
  std::vector<uint32_t> rows =
      {};  // those of the only part that are taken, in this order; empty: all rows of all parts

  bool is_there() const { return !parts.empty(); }
  /// A part is stored in another type in the file: `type` is then f32, by which nothing is lost, or what it is
  /// quantized to.
  bool converts(const TensorView& part) const;
  uint64_t file_bytes() const;
  uint64_t file_bytes_of(const TensorView& part) const;
  /// Of a part, those that are taken.
  uint64_t elements_of(const TensorView& part) const;
  /// What Device::weight_bytes takes; make_weight needs data or a reader besides.
  std::vector<WeightPart> device_parts() const;
};

/// The parts as one matrix, in the file's type where all parts have one that the device keeps, else f32, which holds
/// every decoded value exactly. Throws bad_input where a part cannot be decoded.
MatrixPlan plan_matrix(std::string name, std::vector<const TensorView*> parts,
                       WeightLayout layout = WeightLayout::stacked, std::vector<uint32_t> rows = {});

/// These rows of one tensor as a matrix of `type`: what the device keeps of it, where it keeps the tensor in that type.
MatrixPlan plan_rows(std::string name, const TensorView& tensor, std::vector<uint32_t> rows, WeightType type);

/// The matrices that are quantized on load.
struct QuantizedTensors {
  std::map<WeightType, uint64_t> to;    // tensors by the type they get
  std::map<TensorType, uint64_t> kept;  // tensors that stay wide: by the type of the file
  uint64_t file_bytes = 0;              // of those that are quantized
  uint64_t bytes = 0;                   // of their blocks

  /// "Quantized while loading: 211 tensors to Q8_0, 269.0 MB of the file to 142.9 MB.", empty where nothing is.
  std::string sentence() const;
};

/// Of latent attention (LayerWeights::latent): heads of D = R + T elements, the latent's and those that are turned.
struct LatentPlan {
  std::vector<MatrixPlan> query_latent;  // one or none
  MatrixPlan query_keys, query_turned;
  MatrixPlan latent, turned;
  MatrixPlan keys, values;
};

struct LayerPlan {
  std::vector<MatrixPlan>
      qkv;  // none of latent attention; one stacked [Q + 2K, H], or q, k and v where their types differ; see QkvJoin
  std::vector<MatrixPlan> gate;  // one or none: see LayerWeights::gate
  MatrixPlan attn_output;        // [H, Q]; [H, V] of a recurrence; without parts in layers without a mixer
  // Paired [2F, H], or [F, H] without gates; of a layer with experts those of each, one below the other; without parts
  // in layers without a feed-forward.
  MatrixPlan gate_up;
  MatrixPlan ffn_down;  // [H, F]; likewise
  // Of a layer with experts: [E, H], and the gate of a shared expert, [H]. Kept as floats, no matrix of the device.
  std::vector<const TensorView*> router = {};
  // One or none: paired [2S, H] (without gates [S, H]) of a shared expert of width S, or of the feed-forward beside
  // which experts stand.
  std::vector<MatrixPlan> shared_gate_up = {};
  std::vector<MatrixPlan> shared_down = {};  // [H, S], likewise
  std::vector<LatentPlan> latent = {};       // one or none
  std::vector<MatrixPlan> input = {};        // two or none: gate [I, H] and projection [H, I] of a layer's inputs
};

/// The tensor of that canonical name and shape, ModelFile::require or its like.
using RequireTensor = std::function<const TensorView&(const std::string& name, uint64_t rows, uint64_t cols)>;
/// `rows`: as in MatrixPlan.
using AddMatrix = std::function<MatrixPlan(std::string name, std::vector<const TensorView*> parts, WeightLayout layout,
                                           std::vector<uint32_t> rows)>;

/// The tensors that become one matrix, where their types allow it.
enum class QkvJoin {
  all,          // q, k and v
  keys_values,  // k and v: a drafter makes them of features, where there is no q
};

/// The matrices of layer n, each made by `add`. Throws what the two functions throw.
LayerPlan plan_layer(const ModelConfig& config, uint32_t n, QkvJoin join, const RequireTensor& require,
                     const AddMatrix& add);

struct WeightPlan {
  MatrixPlan token_embd;  // [V, H]
  std::vector<LayerPlan> layers;
  std::vector<MatrixPlan>
      layer_inputs;                // two or none: embeddings [V, L * I] and projection [L * I, H] of inputs of layers
  std::vector<MatrixPlan> output;  // [V, H]; empty where the head is tied to the embedding
  uint64_t file_bytes = 0;         // of the matrices
  uint64_t device_bytes = 0;       // matrices, routers and norms
  uint64_t pass_bytes = 0;         // of the matrices a pass of one row reads: not embeddings but a tied head's, and of
                                   // experts those that a row uses
  uint64_t expert_bytes = 0;       // of one expert of every layer that has any
  uint64_t weight_elements = 0;  // that one row is multiplied with: all matrices, the head included, not the embedding,
                                 // and of experts those that it uses
  QuantizedTensors quantized;
  std::vector<std::string> warnings;
};

/// The first of the types that the choice names, best fit first, that rows of `cols` elements can have; `type` where
/// none can. The head decides between tokens that are close to each other: it is never cut to four bits.
WeightType quantized_type(WeightType type, uint64_t cols, bool is_head, QuantizeOnLoad quantize);

/// `quantize` is no automatic here: load_plan.h chooses. Throws bad_input where a tensor cannot be decoded or a
/// dimension exceeds what a device can index.
WeightPlan plan_weights(const ModelFile& file, const Device& device, QuantizeOnLoad quantize = QuantizeOnLoad::none);

}  // namespace canopy
