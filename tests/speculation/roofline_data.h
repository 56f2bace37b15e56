#pragma once
// The models and devices of bastion_cost.json, by name.

#include "engine/speculation/roofline.h"
#include "tests/model/golden_data.h"

namespace canopy::test {

/// The model's shape with two bytes for every element, as the published program counts.
inline ModelShape golden_shape(const nlohmann::json& model) {
  ModelShape shape;
  shape.layers = model.at("L");
  shape.hidden = model.at("h");
  shape.query_heads = model.at("n_q");
  shape.kv_heads = model.at("n_kv");
  shape.head_dim = model.at("d");
  shape.ffn = model.at("h_ffn");
  shape.vocab = model.at("V");
  return shape;
}

inline DevicePeaks golden_peaks(const nlohmann::json& gpu) {
  return {.flops_per_second = gpu.at("peak_throughput_bf16"), .bytes_per_second = gpu.at("memory_bandwidth")};
}

inline RooflineCalibration golden_calibration(const nlohmann::json& c) {
  return {.alpha_m = c.at("alpha_m"), .beta_m = c.at("beta_m"), .alpha_c = c.at("alpha_c"), .beta_c = c.at("beta_c")};
}

/// The roofline of the model and the device that an entry of a golden file names.
inline Roofline golden_roofline(const nlohmann::json& entry, const RooflineCalibration& calibration = {}) {
  static const nlohmann::json file = golden_json("bastion_cost.json");
  const auto model = entry.at("model").get<std::string>();
  const auto gpu = entry.at("gpu").get<std::string>();
  return {golden_shape(file.at("models").at(model)), golden_peaks(file.at("gpus").at(gpu)), calibration};
}

}  // namespace canopy::test
