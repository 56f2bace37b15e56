#include "engine/model/weights.h"

#include <cmath>
#include <string>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/printable.h"
#include "engine/format/dequantize.h"

namespace canopy {
namespace {

std::vector<float> decoded(const TensorView& tensor) {
  std::vector<float> values(tensor.elements());
  dequantize(tensor.type, tensor.bytes, values);
  return values;
}

class Loader {
 public:
  Loader(const ModelFile& file, const WeightPlan& plan, Device& device, const LoadCallbacks& callbacks)
      : file_(file), plan_(plan), device_(device), callbacks_(callbacks) {}

  Weights load() {
    const ModelConfig& config = file_.config();
    Weights weights;
    weights.token_embd = matrix(plan_.token_embd);
    for (uint32_t n = 0; n < config.layers; ++n) weights.layers.push_back(layer(n));
    weights.output_norm = norm("output_norm", config.hidden);
    if (!plan_.output.empty()) weights.output = matrix(plan_.output[0]);
    return weights;
  }

 private:
  LayerWeights layer(uint32_t n) {
    const ModelConfig& config = file_.config();
    const LayerPlan& plan = plan_.layers[n];
    const std::string prefix = "blk." + std::to_string(n) + ".";
    LayerWeights layer;
    layer.attn_norm = norm(prefix + "attn_norm", config.hidden);
    for (const MatrixPlan& part : plan.qkv) layer.qkv.push_back(matrix(part));
    if (config.has_qk_norm) {
      layer.q_norm = norm(prefix + "attn_q_norm", config.head_dim);
      layer.k_norm = norm(prefix + "attn_k_norm", config.head_dim);
    }
    layer.attn_output = matrix(plan.attn_output);
    layer.ffn_norm = norm(prefix + "ffn_norm", config.hidden);
    layer.gate_up = matrix(plan.gate_up);
    layer.ffn_down = matrix(plan.ffn_down);
    return layer;
  }

  std::unique_ptr<Weight> matrix(const MatrixPlan& plan) {
    before_reading();
    std::vector<WeightPart> parts = plan.device_parts();
    std::vector<std::vector<float>> converted(parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!plan.converts(*plan.parts[i])) continue;
      converted[i] = decoded(*plan.parts[i]);
      parts[i].data = as_bytes_of(converted[i]);
    }
    auto weight = device_.make_weight(parts, plan.layout, plan.name);
    for (const TensorView* part : plan.parts) MappedFile::forget(part->bytes);  // or both copies count against memory
    done_ += plan.file_bytes();
    if (callbacks_.progress) callbacks_.progress(done_, plan_.file_bytes);
    return weight;
  }

  std::unique_ptr<Buffer> norm(const std::string& name, uint32_t count) {
    before_reading();
    const std::vector<float> values = decoded(file_.require(name, 1, count));
    for (const float value : values) {
      if (!std::isfinite(value)) {
        throw bad_input("The norm " + quoted_name(name) + " holds a value that is not finite: the file is damaged.");
      }
    }
    auto buffer = device_.allocate(values.size() * sizeof(float), name);
    device_.write(*buffer, 0, as_bytes_of(values));
    return buffer;
  }

  void before_reading() {
    if (callbacks_.keep_going && !callbacks_.keep_going()) throw cancelled("Loading was cancelled.");
    file_.check_unchanged();
  }

  const ModelFile& file_;
  const WeightPlan& plan_;
  Device& device_;
  const LoadCallbacks& callbacks_;
  uint64_t done_ = 0;
};

}  // namespace

Weights load_weights(const ModelFile& file, const WeightPlan& plan, Device& device, const LoadCallbacks& callbacks) {
  return Loader(file, plan, device, callbacks).load();
}

}  // namespace canopy
