#pragma once
// A head of the target that predicts further tokens (multi-token prediction) on a device.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/format/mtp_file.h"
#include "engine/model/step_head.h"

namespace canopy {

/// The target's last layer's output that a head goes on from: the one aux layer that it must be loaded with.
std::vector<uint32_t> mtp_aux_layers(const ModelConfig& target);

/// A row (see StepHead; W: weights of MtpFile, E: the embedding of the token, s: a state) is
///
///   x = fc [rms_norm(E) * embedding_norm; rms_norm(h) * hidden_norm],   h = rms_norm(s) * norm
///   x goes through the layer, which sees the rows before it;   logits = rms_norm(x) * output_norm times the head
///
/// s is the output of the target's last layer, norm the target's last, in rows of text and of the root; behind a node
/// that was drafted s is the row's own x, norm the head's last.
class MtpHead final : public StepHead {
 public:
  /// The target must have been loaded with mtp_aux_layers(); check_pair() has passed. Throws bad_input, out_of_memory,
  /// cancelled or device_lost.
  static std::unique_ptr<MtpHead> load(const MtpFile& file, Model& target, const HeadOptions& options);
  ~MtpHead() override;

  DraftSources source() const override { return kFromMtp; }
  std::string identity() const override;
  /// rms_norm(x) * output_norm.
  std::vector<float> hidden_states() const override;

 private:
  MtpHead(const MtpFile& file, Model& target, const HeadOptions& options);
  void record_inputs(Recorder& record, uint32_t width, const Buffer& rows, const Buffer& states, const Buffer& moves,
                     bool of_text) override;

  std::unique_ptr<Buffer> embedding_norm_, hidden_norm_;  // [H]
  std::unique_ptr<Buffer> normed_;                        // [I, H]
};

}  // namespace canopy
