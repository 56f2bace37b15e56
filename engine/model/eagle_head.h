#pragma once
// An EAGLE-3 head on a device.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/format/eagle_file.h"
#include "engine/model/step_head.h"

namespace canopy {

/// A row (see StepHead; W: weights of EagleFile, E: the embedding of the token, s: a state) is
///
///   n = rms_norm(s) * hidden_norm;   y = [rms_norm(E) * attn_norm; n] is what queries, keys and values are made of
///   x = s, or n with norm_before_residual;   x += attention;   x += feed_forward(rms_norm(x))
///   logits = rms_norm(x) * output_norm times the head, over the tokens that it drafts
///
/// s is fc times the feature in rows of text and of the root, which is normed before with norm_before_fc or, layer by
/// layer, fc_norm; behind a node that was drafted it is the row's x, with norm_output rms_norm(x) * output_norm.
class EagleHead final : public StepHead {
 public:
  /// The target must have been loaded with the head's aux layers (EagleConfig::aux_layers_of); check_pair() has
  /// passed. Throws bad_input, out_of_memory, cancelled or device_lost.
  static std::unique_ptr<EagleHead> load(const EagleFile& file, Model& target, const HeadOptions& options);
  ~EagleHead() override;

  DraftSources source() const override { return kFromEagle; }
  std::string identity() const override;

 private:
  EagleHead(const EagleFile& file, Model& target, const HeadOptions& options);
  uint64_t own_bytes() const;
  void make_buffers();
  void load_vectors(TensorLoader& tensors, const RequireTensor& require);
  void record_inputs(Recorder& record, uint32_t width, const Buffer& rows, const Buffer& states, const Buffer& moves,
                     bool of_text) override;
  void record_projection(Recorder& record, uint32_t width, Buffer& state);
  const Activations* qkv_input() const override { return joined_rows_.get(); }
  const Buffer& record_states(Recorder& record, uint32_t width) override;
  uint32_t token_at(uint32_t place) const override {
    return eagle_.draft_token_ids.empty() ? place : eagle_.draft_token_ids[place];
  }

  EagleConfig eagle_;
  std::unique_ptr<Buffer> hidden_norm_;            // [H]
  std::unique_ptr<Buffer> input_norm_;             // [F] with norm_before_fc
  std::vector<std::unique_ptr<Buffer>> fc_norms_;  // of each tap, [target's H], with fc_norm
  std::unique_ptr<Buffer> state_;                  // [I, H] with norm_before_residual; else s begins in x
  std::unique_ptr<Buffer> embedded_;               // [I, H]
  std::unique_ptr<Activations> feature_rows_;      // [I, F]
  // With fc_norm, of one tap after the other.
  std::unique_ptr<Buffer> normed_features_;         // [I, F]
  std::unique_ptr<Buffer> tap_, normed_tap_;        // [I, target's H]
  std::unique_ptr<Activations> tap_rows_;           // likewise
  std::vector<std::unique_ptr<Buffer>> tap_moves_;  // uint32 [I, 2]: part of row i of the feature to row i
};

}  // namespace canopy
