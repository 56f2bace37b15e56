#pragma once
// A loaded pair of models as the choice of a round's width sees it (engine/planning).

#include <memory>
#include <optional>
#include <vector>

#include "engine/model/sequence.h"
#include "engine/planning/draft_source.h"
#include "engine/planning/speculation_state.h"

namespace canopy {

/// The statistics of a pair on its device, which is measured (a second) as soon as its roofline is needed. Model and
/// drafter must outlive them.
std::unique_ptr<SpeculationState> pair_speculation(const Model& target, const Drafter& drafter, CostTable table);

/// The sizes of the target that its roofline depends on.
ModelShape model_shape(const Model& model);

/// The drafts behind a sequence that has a drafter; it must outlive this.
class SequenceDrafts final : public DraftSource {
 public:
  explicit SequenceDrafts(Sequence& sequence) : sequence_(sequence) {}

  uint32_t max_depth() const override { return sequence_.drafter()->max_depth(); }
  uint32_t backlog() const override { return sequence_.backlog(); }
  uint32_t most_waiting() const override { return Drafter::most_waiting(); }
  uint32_t drafted_tokens() const override { return sequence_.drafter()->drafted_tokens(); }
  const BlockDraft* draft(uint32_t root, uint32_t depths, const std::stop_token& stop) override;
  double device_ms() const override { return draft_.device_ms; }
  bool more(uint32_t depth, uint32_t known, uint32_t count, std::vector<uint32_t>& tokens,
            std::vector<float>& logits) override;

  const Draft& last() const { return draft_; }

 private:
  Sequence& sequence_;
  Draft draft_;
};

}  // namespace canopy
