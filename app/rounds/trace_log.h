#pragma once
// The rounds of a recorded trace, each read from the file when it is shown.

#include <filesystem>

#include "app/rounds/recent_rounds.h"
#include "app/rounds/round_log.h"
#include "engine/trace/trace_reader.h"

namespace canopy::app {

class TraceLog final : public RoundLog {
 public:
  /// Throws bad_input naming the path for a file that TraceReader::open refuses, for a trace without a whole round, and
  /// for a round whose values contradict each other.
  explicit TraceLog(const std::filesystem::path& path);

  std::shared_ptr<const RoundRecord> round(size_t index) const override;
  std::optional<trace::Piece> piece(uint32_t token) const override;
  bool is_live() const override { return false; }
  std::string_view times() const override { return reader_.header().times; }
  std::string origin() const override;
  bool on_processor() const override;

  const TraceReader& reader() const { return reader_; }

 private:
  void take(const TraceReply& reply);

  TraceReader reader_;
  mutable RecentRounds recent_;
};

/// Whether the file has the ending of a trace or begins with its magic bytes. False for a file that cannot be read.
bool looks_like_trace(const std::filesystem::path& path);

}  // namespace canopy::app
