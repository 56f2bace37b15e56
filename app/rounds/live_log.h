#pragma once
// The rounds of the running engine, as its events bring them. Memory is bounded: the oldest trees move to a file.

#include <deque>
#include <vector>

#include "app/rounds/round_log.h"
#include "app/rounds/round_spill.h"
#include "engine/trace/token_texts.h"

namespace canopy::app {

/// What the trees of live rounds may take before the oldest go to the file.
inline constexpr size_t kRoundMemory = size_t{256} << 20;

class LiveLog final : public RoundLog {
 public:
  explicit LiveLog(size_t memory = kRoundMemory, RoundSpill spill = RoundSpill())
      : memory_(memory), spill_(std::move(spill)) {}

  /// Whether the rounds of another model could join: tokens must mean the same.
  bool fits(const ModelReady& model) const { return model_.empty() || model_ == model.file_name; }

  /// A reply was asked for; its place in the log is where its first event comes.
  void expect(const Generate& request);
  void take(const Event& event);

  std::shared_ptr<const RoundRecord> round(size_t index) const override;
  std::optional<trace::Piece> piece(uint32_t token) const override;
  bool is_live() const override { return true; }
  std::string origin() const override { return origin_; }

  /// What the trees in memory take, in bytes.
  size_t memory_used() const { return used_; }

 private:
  /// The reply that an event belongs to, begun with its first event. Null for one that nobody asked for, or that a
  /// newer one followed: its rounds would stand between those of the other.
  ReplySummary* reply(uint64_t id);
  void add(std::shared_ptr<const RoundRecord> record);
  void add_abridged(const RoundRecord& record);
  void keep_within_memory();

  size_t memory_;
  RoundSpill spill_;
  std::vector<Generate> expected_;                       // without their texts
  std::deque<std::shared_ptr<const RoundRecord>> kept_;  // the newest rounds; null for an abridged one
  size_t used_ = 0;
  std::vector<std::shared_ptr<const TokenTexts>> texts_;  // of each load of the model; the last is asked
  std::string model_, origin_;
};

/// What a record takes in memory.
size_t memory_of(const RoundRecord& record);

}  // namespace canopy::app
