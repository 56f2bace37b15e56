#pragma once
// The candidate selector of a DFlash2 drafter: of the likeliest tokens that a block says of a place, how likely each is
// given the token before it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/compute/device.h"
#include "engine/compute/ops.h"
#include "engine/format/drafter_file.h"
#include "engine/model/block_places.h"
#include "engine/model/weight_plan.h"
#include "engine/model/weights.h"
#include "engine/speculation/draft_source.h"

namespace canopy {

/// score of candidate j behind token i = its logit + sum over r of predecessor[i, r] * (hidden_projection h)[r] *
/// successor[j, r], h being the place's hidden state behind the drafter's last norm. What follows i is the softmax of
/// the candidates' scores. The codebooks are kept in the host's memory, as the file has them: a draft reads some rows.
class CandidateSelector {
 public:
  static uint64_t device_bytes(const DrafterConfig& config);

  /// hidden: the plan of hidden_projection [R, H].
  CandidateSelector(const DrafterFile& file, const MatrixPlan& hidden, Device& device, TensorLoader& tensors);

  /// Part of the block's pass, `hidden` [depths, H] before the norm's scale.
  void record_block(Recorder& record, const Activations& hidden, float norm_eps);
  /// Once that pass has run.
  void read_block();
  /// The lists of these places. `block`: what the pass says of each place, its candidates.
  PlaceLists lists(std::span<const BlockPlace> places, const BlockDraft& block) const;

 private:
  /// [V, R] in a type of files.
  struct Codebook {
    Codebook(const DrafterFile& file, const char* name, uint64_t rows, uint64_t cols);
    /// Row `row`, decoded.
    void row(uint32_t row, std::span<float> values) const;

    TensorType type;
    std::vector<std::byte> bytes;
    size_t row_bytes = 0;
  };

  Device& device_;
  uint32_t rank_ = 0, depths_ = 0;
  Codebook predecessor_, successor_;
  std::unique_ptr<Weight> hidden_;     // [R, H]
  std::unique_ptr<Buffer> projected_;  // [depths, R]
  std::vector<float> block_;           // the same, of the last pass
};

}  // namespace canopy
