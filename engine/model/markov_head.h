#pragma once
// The Markov head of a DSpark drafter on a device: what a block says of a place becomes what it says given the token
// before it, and the confidence head says how likely the first of that is right.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/compute/device.h"
#include "engine/compute/ops.h"
#include "engine/format/drafter_file.h"
#include "engine/model/block_places.h"
#include "engine/model/pass_buffers.h"
#include "engine/model/weight_plan.h"
#include "engine/model/weights.h"

namespace canopy {

/// Tables of a MarkovHead as files have them.
struct MarkovPlan {
  MatrixPlan w1;  // [V, R]
  MatrixPlan w2;  // [n, R]
};

/// logits of a row = the block's logits of its place + w2 w1[token before it]. A row of a pass is a place of the block
/// with such a token; a pass has at most `widest` of them.
class MarkovHead {
 public:
  /// Beside the tables.
  static uint64_t device_bytes(const DrafterConfig& config, const Device& device, uint32_t widest, uint32_t candidates);

  /// candidates: of each row.
  MarkovHead(const DrafterFile& file, const MarkovPlan& plan, Device& device, TensorLoader& tensors, uint32_t widest,
             uint32_t candidates);

  uint32_t widest() const { return widest_; }
  uint32_t candidates() const { return candidates_; }

  /// The confidence head's share of each place, of hidden [depths, H] before the drafter's last norm is whole: part of
  /// the block's pass.
  void record_block(Recorder& record, const Activations& hidden, float norm_eps);
  /// `width` rows over the block's logits, [depths, n].
  void record_rows(Recorder& record, uint32_t width, const Buffer& logits);

  /// The rows of the next pass, of `width`; those beyond `places` repeat the last.
  void write(std::span<const BlockPlace> places, uint32_t width);
  /// Of the last pass; the tokens are rows of the head.
  PlaceLists read(std::span<const BlockPlace> places);

 private:
  bool has_confidence() const { return confidence_hidden_ != nullptr; }

  Device& device_;
  uint32_t rank_ = 0, drafted_ = 0, depths_ = 0, widest_ = 0, candidates_ = 0;
  std::unique_ptr<Weight> w1_, w2_;
  std::unique_ptr<Weight> confidence_hidden_;  // [1, H]; null without a confidence head
  std::unique_ptr<Weight> confidence_markov_;  // [1, R]; null where that does not read w1
  float confidence_bias_ = 0;
  std::unique_ptr<Buffer> ones_;        // [max(R, n)]: no norm
  std::unique_ptr<Buffer> before_;      // [widest, R] rows of w1
  std::unique_ptr<Activations> rows_;   // the same
  std::unique_ptr<Buffer> sums_;        // [widest, n]
  std::unique_ptr<Activations> spare_;  // [widest, n]: what a product that adds leaves besides
  std::unique_ptr<Buffer> input_, results_;
  std::unique_ptr<Buffer> tokens_;        // Row [widest]
  std::unique_ptr<Buffer> moves_;         // uint32 [widest, 2]: places to rows
  std::unique_ptr<Buffer> ids_, logits_;  // [widest, candidates]
  std::unique_ptr<Buffer> log_sum_exp_;   // [widest]
  std::unique_ptr<Buffer> of_places_;     // [depths]: of the confidence head
  std::unique_ptr<Buffer> of_rows_;       // [widest], likewise
  std::vector<std::byte> upload_, download_;
};

}  // namespace canopy
