#include "engine/model/weights.h"

#include <string>

#include "engine/model/tensor_loader.h"

namespace canopy {
namespace {

class Loader {
 public:
  Loader(const ModelFile& file, const WeightPlan& plan, Device& device, const LoadCallbacks& callbacks)
      : file_(file),
        plan_(plan),
        monitor_(callbacks, plan.file_bytes),
        tensors_(device, monitor_, [&file] { file.check_unchanged(); }) {}

  Weights load() {
    const ModelConfig& config = file_.config();
    Weights weights;
    weights.token_embd = matrix(plan_.token_embd);
    for (uint32_t n = 0; n < config.layers; ++n) weights.layers.push_back(layer(n));
    weights.output_norm = norm("output_norm", config.hidden);
    if (!plan_.output.empty()) weights.output = matrix(plan_.output[0]);
    monitor_.report();
    file_.check_unchanged();  // what is wrong with the file was wrong when it was read
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

  std::unique_ptr<Weight> matrix(const MatrixPlan& plan) { return tensors_.matrix(plan); }

  std::unique_ptr<Buffer> norm(const std::string& name, uint32_t count) {
    return tensors_.norm(file_.require(name, 1, count));
  }

  const ModelFile& file_;
  const WeightPlan& plan_;
  LoadMonitor monitor_;
  TensorLoader tensors_;
};

}  // namespace

Weights load_weights(const ModelFile& file, const WeightPlan& plan, Device& device, const LoadCallbacks& callbacks) {
  return Loader(file, plan, device, callbacks).load();
}

}  // namespace canopy
