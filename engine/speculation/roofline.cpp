#include "engine/speculation/roofline.h"

#include <cmath>
#include <string>
#include <string_view>

#include "engine/base/checked.h"
#include "engine/base/error.h"

namespace canopy {
namespace {

uint64_t mul(uint64_t a, uint64_t b) {
  return checked_mul(a, b, "work of a pass");
}
uint64_t add(uint64_t a, uint64_t b) {
  return checked_add(a, b, "work of a pass");
}

void require_count(uint32_t value, std::string_view field) {
  constexpr uint32_t most = 1u << 24;
  if (value >= 1 && value <= most) return;
  throw bad_input("The model shape's " + std::string(field) + " is " + std::to_string(value) + "; 1 to " +
                  std::to_string(most) + " is allowed.");
}

void require_element_size(double bytes, std::string_view field) {
  if (bytes > 0 && bytes <= kMostElementBytes) return;
  throw bad_input("The model shape's bytes of one " + std::string(field) + " element are " + std::to_string(bytes) +
                  "; more than 0 and at most " + std::to_string(kMostElementBytes) + " is allowed.");
}

void validate(const ModelShape& shape) {
  require_count(shape.layers, "number of layers");
  require_count(shape.hidden, "hidden size");
  require_count(shape.query_heads, "number of query heads");
  require_count(shape.kv_heads, "number of K/V heads");
  require_count(shape.head_dim, "head size");
  require_count(shape.vocab, "vocabulary size");
  require_element_size(shape.weight_bytes, "weight");
  require_element_size(shape.kv_bytes, "K/V");
  require_element_size(shape.activation_bytes, "activation");
  if (shape.moe_layers > shape.layers) {
    throw bad_input("The model shape has " + std::to_string(shape.moe_layers) + " layers with experts among " +
                    std::to_string(shape.layers) + " layers; there can be no more of them than layers.");
  }
  if (shape.recurrent_layers > shape.layers || shape.gated > 1) {
    throw bad_input("The model shape has " + std::to_string(shape.recurrent_layers) + " recurrent layers among " +
                    std::to_string(shape.layers) + " layers and gates " + std::to_string(shape.gated) +
                    " times; at most as many as layers, and 0 or 1 times, are allowed.");
  }
  if (shape.recurrent_layers > 0) {
    require_count(shape.recurrent_keys, "number of elements of recurrent keys");
    require_count(shape.recurrent_values, "number of elements of recurrent values");
    require_count(shape.recurrent_key_dim, "size of a recurrent key");
  }
  if (shape.moe_layers < shape.layers) require_count(shape.ffn, "feed-forward size");
  if (shape.moe_layers == 0) return;
  require_count(shape.experts, "number of experts");
  require_count(shape.experts_per_row, "number of experts a row uses");
  require_count(shape.expert_ffn, "feed-forward size of an expert");
  if (shape.experts_per_row > shape.experts) {
    throw bad_input("The model shape's number of experts a row uses is " + std::to_string(shape.experts_per_row) +
                    "; there are only " + std::to_string(shape.experts) + ".");
  }
}

uint64_t to_bytes(uint64_t elements, double bytes_each) {
  return static_cast<uint64_t>(std::llround(static_cast<double>(elements) * bytes_each));
}

void require_positive(double value, std::string_view what) {
  if (std::isfinite(value) && value > 0) return;
  throw bad_input("The device's " + std::string(what) + " is " + std::to_string(value) +
                  "; a positive finite number is needed.");
}

}  // namespace

PassWork::PassWork(const ModelShape& shape) : shape_(shape) {
  validate(shape);
  const uint64_t layers = shape.layers;
  const uint64_t moe = shape.moe_layers;
  const uint64_t dense = layers - moe;
  const uint64_t h = shape.hidden;
  const uint64_t q = mul(shape.query_heads, shape.head_dim);  // columns of all query heads
  const uint64_t kv = mul(shape.kv_heads, shape.head_dim);
  const uint64_t expert = moe == 0 ? 0 : mul(h, shape.expert_ffn);
  const uint64_t used = shape.experts_per_row;
  const uint64_t recurrent = shape.recurrent_layers, attentive = layers - recurrent;
  const uint64_t keys = shape.recurrent_keys, values = shape.recurrent_values;
  const uint64_t state = recurrent == 0 ? 0 : mul(values, shape.recurrent_key_dim);

  // One element of a weight is one multiplication and one addition a row, except those of the embedding.
  const uint64_t attention = mul(h, add(mul(2 + shape.gated, q), 2 * kv));  // q, its gate and output; k and v
  const uint64_t recurrence = mul(h, add(2 * keys, 3 * values));  // queries, keys; values, their gate and output
  const uint64_t head = mul(h, shape.vocab);
  const uint64_t mixers = add(mul(attentive, attention), mul(recurrent, recurrence));
  const uint64_t feed_forward = add(mul(3 * dense, mul(h, shape.ffn)), mul(3 * moe, mul(h, shape.shared_ffn)));
  const uint64_t layer_weights = add(mixers, feed_forward);
  const uint64_t routers = mul(moe, mul(h, shape.experts));
  expert_weights_ = mul(3 * moe, expert);
  dense_weights_ = add(add(layer_weights, routers), mul(2, head));
  flops_per_row_ = mul(2, add(add(layer_weights, routers), add(mul(used, expert_weights_), head)));
  flops_per_row_ = add(flops_per_row_, mul(7 * recurrent, state));  // decay, products with key and query, the sum
  flops_per_pair_ = mul(4 * attentive, q);                          // queries times keys, probabilities times values
  state_bytes_ = mul(recurrent, mul(2 * sizeof(float), state));

  // Inputs and outputs: of q/k/v, scores, values and output (2 h + 4 q + 2 kv); of gate/up and down (2 h + 4 ffn).
  const uint64_t attention_io = add(add(2 * h, mul(4 + 2 * shape.gated, q)), 2 * kv);
  const uint64_t recurrence_io = add(2 * h, add(4 * keys, 6 * values));
  const uint64_t dense_io = add(2 * h, mul(4, shape.ffn));
  const uint64_t experts_io = add(mul(4 * used, shape.expert_ffn), mul(4, shape.shared_ffn));
  const uint64_t moe_io = add(add(2 * h, shape.experts), experts_io);
  activations_per_row_ = add(mul(attentive, attention_io), mul(recurrent, recurrence_io));
  activations_per_row_ = add(activations_per_row_, add(mul(dense, dense_io), mul(moe, moe_io)));
  activations_per_row_ = add(activations_per_row_, add(h, shape.vocab));
  activations_per_pair_ = mul(2 * attentive, shape.query_heads);  // scores are written and read
  kv_per_position_ = mul(2 * attentive, kv);
}

uint64_t PassWork::flops(uint32_t width, uint32_t context) const {
  const uint64_t pairs = mul(width, uint64_t{context} + width);
  return add(mul(width, flops_per_row_), mul(pairs, flops_per_pair_));
}

uint64_t PassWork::weight_elements(uint32_t width) const {
  if (shape_.moe_layers == 0) return dense_weights_;
  const double missed = 1.0 - static_cast<double>(shape_.experts_per_row) / shape_.experts;
  const double touched = shape_.experts * (1.0 - std::pow(missed, width));
  return add(dense_weights_, static_cast<uint64_t>(std::llround(touched * static_cast<double>(expert_weights_))));
}

PassWork::Bytes PassWork::bytes(uint32_t width, uint32_t context) const {
  const uint64_t positions = uint64_t{context} + width;  // committed ones are read, the pass's own written
  const uint64_t activations = add(mul(width, activations_per_row_), mul(mul(width, positions), activations_per_pair_));
  return {.weights = to_bytes(weight_elements(width), shape_.weight_bytes),
          .kv = to_bytes(mul(positions, kv_per_position_), shape_.kv_bytes),
          .activations = to_bytes(activations, shape_.activation_bytes),
          .states = state_bytes_};
}

Roofline::Roofline(const ModelShape& shape, const DevicePeaks& peaks, const RooflineCalibration& calibration)
    : work_(shape), peaks_(peaks) {
  require_positive(peaks.flops_per_second, "peak of operations per second");
  require_positive(peaks.bytes_per_second, "memory bandwidth in bytes per second");
  *this = calibrated(calibration);
}

Roofline Roofline::calibrated(const RooflineCalibration& calibration) const {
  double sum = 0;
  for (const double value : {calibration.alpha_m, calibration.beta_m, calibration.alpha_c, calibration.beta_c}) {
    if (!std::isfinite(value) || value < 0) {
      throw bad_input("A roofline's calibration has the value " + std::to_string(value) +
                      "; all four must be at least 0 and finite.");
    }
    sum += value;
  }
  if (sum == 0) throw bad_input("A roofline's calibration is zero throughout; at least one value must be positive.");
  Roofline result = *this;
  result.calibration_ = calibration;
  return result;
}

double Roofline::memory_seconds(uint32_t width, uint32_t context) const {
  return static_cast<double>(work_.bytes(width, context).total()) / peaks_.bytes_per_second;
}

double Roofline::compute_seconds(uint32_t width, uint32_t context) const {
  return static_cast<double>(work_.flops(width, context)) / peaks_.flops_per_second;
}

}  // namespace canopy
