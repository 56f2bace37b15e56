#pragma once
// Statistics over the rounds of one or more replies. Adding the same rounds in the same order gives an equal object,
// for a live run and for its trace.

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/speculation/round_record.h"

namespace canopy {

/// How many of the emitted tokens a round's tree contained. Found by following the emitted tokens through the tree, so
/// tokens after a stop or the token limit do not count.
struct DraftedPart {
  uint32_t tokens = 0;     // emitted tokens that were drafted
  uint32_t last_node = 0;  // that carries the last of them; the root where there is none
  bool cut = false;  // all emitted tokens were drafted: the reply ended inside the tree, so the full accepted length is
                     // unknown
  bool refused = false;  // the tree had children after the last match, but none carried the emitted token
};

DraftedPart drafted_part(const RoundRecord& record);

/// Counts at one depth, over the rounds in which all depths above it matched the text.
struct DepthCounts {
  uint64_t offered = 0;   // rounds whose tree had a node there
  uint64_t accepted = 0;  // of those, a node that carried the token that came
  bool operator==(const DepthCounts&) const = default;
};

/// Counts over drafted nodes of the same sources. What stands behind the last token of a reply that ended inside its
/// tree is left out, as it is not known whether it was right.
struct SourceCounts {
  uint64_t offered = 0;   // nodes that the target decided on: those whose parent is in the text
  uint64_t accepted = 0;  // of those, in the text too
  bool operator==(const SourceCounts&) const = default;
};

/// Sums over the rounds of one shape (ar, chain or tree).
struct ShapeCounts {
  uint64_t rounds = 0;
  uint64_t emitted = 0;
  uint64_t rows = 0;  // of the target's passes
  double ms = 0;
  double tau() const;                // tokens emitted in a round; 0 without rounds
  double tokens_per_second() const;  // 0 without time
  bool operator==(const ShapeCounts&) const = default;
};

/// How predicted times compare with those measured, over the rounds that had a prediction.
struct PredictionError {
  uint64_t rounds = 0;
  double predicted_ms = 0;
  double measured_ms = 0;
  double sum_of_errors = 0;   // |predicted - measured| / measured
  double mean_error() const;  // of those, a share of the measured time
  double bias() const;        // predicted over measured time in sum, less 1
  void add(double predicted, double measured);
  bool operator==(const PredictionError&) const = default;
};

/// Pearson's correlation of pairs, without keeping them (Welford's recurrence).
struct Correlation {
  uint64_t pairs = 0;
  double mean_x = 0;
  double mean_y = 0;
  double squares_x = 0;  // sum of (x - mean)^2
  double squares_y = 0;
  double products = 0;
  void add(double x, double y);
  double value() const;  // -1 ... 1; 0 where x or y never varies
  bool operator==(const Correlation&) const = default;
};

class RoundStatistics {
 public:
  void add(const RoundRecord& record);

  uint64_t rounds() const { return rounds_; }
  /// Tokens that the rounds added to the text: none past a stop token or the limit.
  uint64_t emitted() const { return emitted_; }
  /// Rounds that ended with the reply inside their tree, at a stop or the limit.
  uint64_t cut_rounds() const { return cut_rounds_; }
  /// Mean tokens emitted in a round; 0 without any.
  double tau() const;
  double tokens_per_second() const;

  /// Key: drafted tokens that a round added to the text. Value: number of such rounds. The values sum to rounds().
  const std::map<uint32_t, uint64_t>& accepted_histogram() const { return histogram_; }
  /// [depth - 1]
  const std::vector<DepthCounts>& by_depth() const { return by_depth_; }
  /// Nodes that all of these sources proposed and no other. The accepted ones of all sets sum to accepted().
  const SourceCounts& by_source(DraftSources sources) const { return by_source_.at(sources); }
  /// Rounds by who guessed in them (guessed_by); none: the plain ones. All sets sum to rounds().
  uint64_t rounds_by(DraftSources sources) const { return rounds_by_.at(sources); }
  /// Whether the text had a part in any tree.
  bool has_text_drafts() const { return rounds_by(kFromSuffix) + rounds_by(kUsualSources) > 0; }

  uint64_t rows() const { return rows_; }          // of all passes
  uint64_t drafted() const { return drafted_; }    // rows but the roots
  uint64_t accepted() const { return accepted_; }  // drafted tokens in the text
  double node_utilisation() const;                 // accepted / drafted; 0 where nothing was drafted
  double row_utilisation() const;                  // emitted / rows

  const ShapeCounts& of(DecodeMode shape) const { return shapes_.at(static_cast<size_t>(shape)); }

  const RoundTimes& ms() const { return ms_; }                // in sum
  const RoundTimes& device_ms() const { return device_ms_; }  // likewise
  const PredictionError& total_error() const { return total_error_; }
  const PredictionError& draft_error() const { return draft_error_; }
  const PredictionError& verify_error() const { return verify_error_; }
  /// Expected against emitted tokens, over the rounds that had an expectation and were not cut.
  const Correlation& expectation() const { return expectation_; }

  bool operator==(const RoundStatistics&) const = default;

 private:
  void add_depths(const DraftedPart& part);
  void add_sources(const RoundRecord& record, const DraftedPart& part);
  void add_predictions(const RoundRecord& record, const DraftedPart& part);

  uint64_t rounds_ = 0, emitted_ = 0, cut_rounds_ = 0, rows_ = 0, drafted_ = 0, accepted_ = 0;
  std::map<uint32_t, uint64_t> histogram_;
  std::vector<DepthCounts> by_depth_;
  std::array<SourceCounts, kUsualSources + 1> by_source_;
  std::array<uint64_t, kUsualSources + 1> rounds_by_{};
  std::array<ShapeCounts, 3> shapes_;  // ar, chain, tree
  RoundTimes ms_, device_ms_;
  PredictionError total_error_, draft_error_, verify_error_;
  Correlation expectation_;
};

}  // namespace canopy
