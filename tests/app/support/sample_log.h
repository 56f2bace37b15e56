#pragma once
// A log of rounds that a test provides.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/state/round_log.h"

namespace canopy::test {

class SampleLog final : public app::RoundLog {
 public:
  explicit SampleLog(bool live = true) : live_(live) { replies_.emplace_back(); }

  void add(RoundRecord record) {
    record.round = static_cast<uint32_t>(records_.size());
    records_.push_back(std::make_shared<const RoundRecord>(std::move(record)));
    count(*records_.back());
  }
  app::ReplySummary& reply() { return replies_.back(); }
  void name(uint32_t token, std::string bytes) { pieces_[token] = std::move(bytes); }
  /// Drops the tree of a round, as happens in long conversations to save memory.
  void forget(size_t round) { records_[round].reset(); }

  std::shared_ptr<const RoundRecord> round(size_t index) const override { return records_[index]; }
  std::optional<trace::Piece> piece(uint32_t token) const override {
    const auto found = pieces_.find(token);
    if (found == pieces_.end()) return std::nullopt;
    return trace::Piece{found->second, false};
  }
  bool is_live() const override { return live_; }
  std::string origin() const override { return "a test"; }

 private:
  bool live_;
  std::vector<std::shared_ptr<const RoundRecord>> records_;
  std::map<uint32_t, std::string> pieces_;
};

}  // namespace canopy::test
