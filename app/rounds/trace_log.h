#pragma once
// The rounds of a recorded trace, read when they are looked at.

#include <filesystem>

#include "app/rounds/recent_rounds.h"
#include "app/rounds/round_log.h"
#include "engine/trace/trace_reader.h"

namespace canopy::app {

class TraceLog final : public RoundLog {
 public:
  /// Throws bad_input naming the path for what TraceReader::open refuses, for a trace without a round, and for a round
  /// that contradicts itself.
  explicit TraceLog(const std::filesystem::path& path);

  std::shared_ptr<const RoundRecord> round(size_t index) const override;
  std::optional<trace::Piece> piece(uint32_t token) const override;
  bool is_live() const override { return false; }
  std::string origin() const override;

  const TraceReader& reader() const { return reader_; }

 private:
  void take(const TraceReply& reply);

  TraceReader reader_;
  mutable RecentRounds recent_;
};

/// Whether a file begins as a trace does, or is called one. False for what cannot be read.
bool looks_like_trace(const std::filesystem::path& path);

}  // namespace canopy::app
