#pragma once
// The time of a pass from its bytes and operations: the roofline of the BASTION paper (appendix G), extended to
// quantized weights, any K/V and activation type, mixtures of experts and recurrences; and the fit of it to measured
// passes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace canopy {

/// The sizes that decide how many operations and bytes a pass of a transformer takes.
struct ModelShape {
  uint32_t layers = 0;
  uint32_t hidden = 0;
  uint32_t query_heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t ffn = 0;  // inner width of a dense feed-forward layer (gate, up and down)
  uint32_t vocab = 0;

  // Bytes of one element. Of weights it is the average over the model as stored: 2 for BF16, 0.625 for Q4_1.
  double weight_bytes = 2;
  double kv_bytes = 2;
  double activation_bytes = 2;

  // Layers whose feed-forward part is a mixture of experts; the other layers are dense.
  uint32_t moe_layers = 0;
  uint32_t experts = 0;          // in such a layer
  uint32_t experts_per_row = 0;  // that a row runs through
  uint32_t expert_ffn = 0;       // inner width of one expert
  uint32_t shared_ffn = 0;       // of the expert that every row runs through; 0: there is none

  // Layers that are recurrences (gated delta nets); the others are attention, with a gate for each query where gated.
  uint32_t recurrent_layers = 0;
  uint32_t recurrent_keys = 0;     // elements of all keys of a row, or of its queries
  uint32_t recurrent_values = 0;   // of all values
  uint32_t recurrent_key_dim = 0;  // of a key: a state has recurrent_values * recurrent_key_dim elements, in f32
  uint32_t gated = 0;              // 0 or 1

  // Layers that are a mixer or a feed-forward alone, and whether feed-forwards and experts have no gates (0 or 1).
  uint32_t layers_without_mixer = 0;
  uint32_t layers_without_ffn = 0;
  uint32_t ungated_ffn = 0;

  // Of attention to latents (ModelConfig::latent), whose one key of head_dim elements is kept, and no value; 0: it is
  // not.
  uint32_t latent_rank = 0;
  uint32_t latent_query_rank = 0;
  uint32_t latent_key_dim = 0;
  uint32_t latent_value_dim = 0;
};

/// The most bytes that an element of a shape may have.
inline constexpr int kMostElementBytes = 8;

/// Counts of one pass over `width` rows behind `context` committed positions. A row attends to context + width
/// positions, as the paper counts a tree (ours attend to their ancestors only, which a fit cannot tell apart).
class PassWork {
 public:
  struct Bytes {
    uint64_t weights = 0;
    uint64_t kv = 0;
    uint64_t activations = 0;
    uint64_t states = 0;
    uint64_t total() const { return weights + kv + activations + states; }
  };

  /// Throws Error(bad_input) naming the field for a count or a size out of range.
  explicit PassWork(const ModelShape& shape);

  /// Multiplications and additions of the matrix products and of attention. Throws Error(bad_input) when the number
  /// does not fit 64 bits, as bytes() does.
  uint64_t flops(uint32_t width, uint32_t context) const;

  /// Weights are read once a pass, embedding and head both in full; of a mixture, the experts that `width` rows are
  /// expected to touch when each picks its own at random. Every product reads its input and writes its output. States
  /// of recurrences are read and written once a pass.
  Bytes bytes(uint32_t width, uint32_t context) const;

  const ModelShape& shape() const { return shape_; }

 private:
  uint64_t weight_elements(uint32_t width) const;

  /// Of a layer of attention: weights, and inputs and outputs of its products for a row.
  struct LayerCounts {
    uint64_t weights = 0, row_elements = 0;
  };
  LayerCounts attention_counts() const;

  ModelShape shape_;
  // Each count is a sum of these times width, times width * (context + width), or times context + width.
  uint64_t flops_per_row_ = 0;
  uint64_t flops_per_pair_ = 0;
  uint64_t activations_per_row_ = 0;
  uint64_t activations_per_pair_ = 0;
  uint64_t kv_per_position_ = 0;
  uint64_t dense_weights_ = 0;
  uint64_t expert_weights_ = 0;  // one expert of every mixture layer
  uint64_t state_bytes_ = 0;     // of all states, once
};

/// A device's peak rates.
struct DevicePeaks {
  double flops_per_second = 0;
  double bytes_per_second = 0;
};

/// Turns the two bare times into times that a device really takes; all at least 0, betas in seconds.
struct RooflineCalibration {
  double alpha_m = 1;
  double beta_m = 0;
  double alpha_c = 1;
  double beta_c = 0;

  double seconds(double memory_s, double compute_s) const {
    const double memory = alpha_m * memory_s + beta_m;
    const double compute = alpha_c * compute_s + beta_c;
    return memory > compute ? memory : compute;
  }
};

/// Seconds of a pass: max(alpha_m * bytes / bandwidth + beta_m, alpha_c * flops / peak + beta_c).
class Roofline {
 public:
  /// Throws Error(bad_input) for a shape that PassWork refuses, peaks that are not positive and finite, negative or
  /// infinite calibration, or one that is zero throughout.
  Roofline(const ModelShape& shape, const DevicePeaks& peaks, const RooflineCalibration& calibration = {});

  /// The same model on the same device, calibrated otherwise.
  Roofline calibrated(const RooflineCalibration& calibration) const;
  Roofline bare() const { return calibrated({}); }

  double memory_seconds(uint32_t width, uint32_t context) const;   // bare
  double compute_seconds(uint32_t width, uint32_t context) const;  // bare
  double seconds(uint32_t width, uint32_t context) const {
    return calibration_.seconds(memory_seconds(width, context), compute_seconds(width, context));
  }

  const PassWork& work() const { return work_; }
  const ModelShape& shape() const { return work_.shape(); }
  const DevicePeaks& peaks() const { return peaks_; }
  const RooflineCalibration& calibration() const { return calibration_; }

 private:
  PassWork work_;
  DevicePeaks peaks_;
  RooflineCalibration calibration_;
};

// Calibrates a roofline to measured passes: the paper's weighted least squares, solved so that it does not stall.

/// One measured pass beside the two bare times of the roofline.
struct RooflinePoint {
  double memory_s = 0;
  double compute_s = 0;
  double measured_s = 0;
  double sigma = 1;  // its residual is divided by this
};

struct RooflineFit {
  RooflineCalibration calibration;
  double weighted_ssr = 0;  // sum of ((predicted - measured) / sigma)^2, seconds squared
};

/// Points that a fit needs: as many as it has parameters.
constexpr size_t min_roofline_points = 4;

/// The calibration with the smallest weighted_ssr, all four values at least 0. Deterministic; a few milliseconds for
/// hundreds of points. A branch that no point is bound by is set as high as the points allow, its alpha at most 1.
/// Throws Error(bad_input) naming the point for fewer than min_roofline_points, and for values that are not finite,
/// negative bare times, or a measured time or sigma that is not positive.
RooflineFit fit_roofline(std::span<const RooflinePoint> points);

/// The paper's sigma by width: 1 at the narrowest, 1 + scale at the widest, linear between, divided by their mean.
/// Scale 0 gives 1 throughout.
std::vector<double> width_sigmas(std::span<const uint32_t> widths, double scale);

/// The scale that the paper's program fits with: narrow passes count most.
constexpr double paper_sigma_scale = 30;

}  // namespace canopy
