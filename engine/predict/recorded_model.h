#pragma once
// A model whose passes can be recorded, of a file or a shape, without its weights: the real forward pass over a device
// that allocates nothing.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/compute/op_list.h"
#include "engine/format/layer_spec.h"
#include "engine/format/model_file.h"
#include "engine/model/forward.h"
#include "engine/predict/dry_device.h"
#include "engine/predict/model_shapes.h"

namespace canopy::predict {

class RecordedModel {
 public:
  /// From the file's configuration and the types of its tensors; their bytes are not read. Throws bad_input for a model
  /// that cannot be computed.
  explicit RecordedModel(const ModelFile& file);
  explicit RecordedModel(const NamedShape& shape);

  const ModelConfig& config() const { return config_; }

  /// The ops of a pass over `width` rows behind `context` positions, each row with its likeliest token. The head is
  /// computed for at most head_rows rows at a time; 0: all. They point into this model and stay valid until the next
  /// call. Throws bad_input for a width of 0 or above kMaxWidth.
  OpList record(uint32_t width, uint32_t context, uint32_t head_rows);

  /// Of a drafter: what makes keys and values of the features of `rows` positions. They stay valid as those of record()
  /// do. Throws bad_input for rows of 0 or above kMaxWidth, and where the model is no drafter.
  OpList record_injection(uint32_t rows);

  static constexpr uint32_t kMaxWidth = 4096;

 private:
  void make_weights(const WeightPlan& plan);
  std::unique_ptr<Weight> make_matrix(const MatrixPlan& plan);
  void make_buffers(uint32_t width, uint32_t head_rows);

  DryDevice device_;
  ModelConfig config_;
  std::vector<LayerSpec> layers_;
  Weights weights_;
  ModelLimits limits_;
  std::unique_ptr<KvCaches> cache_;
  std::unique_ptr<RecurrentMemory> recurrent_;  // of a hybrid
  PassBuffers buffers_;
  PassParts parts_;
  // Of a drafter, null otherwise.
  std::unique_ptr<Weight> features_weight_;  // [H, taps * H]
  std::unique_ptr<Buffer> features_norm_;    // [H]
  struct Injection {
    std::unique_ptr<Buffer> features, projected, rows;
    std::unique_ptr<Activations> normed_features, context;
  };
  uint32_t taps_ = 0;
  Injection injection_;
};

/// The model of a file or a folder where there is one of that path, else of the shape of that name, and how it is
/// called.
struct NamedModelPasses {
  std::unique_ptr<RecordedModel> model;
  std::string name;
};
NamedModelPasses open_for_prediction(const std::string& file_or_shape);

}  // namespace canopy::predict
