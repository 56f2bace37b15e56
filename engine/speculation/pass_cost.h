#pragma once
// What passes cost: the interface that the choice of a width asks, the measured table with interpolation between its
// points, its correction by what rounds really take, and the policies of the BASTION paper to compare with.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/speculation/roofline.h"
#include "engine/speculation/state_archive.h"

namespace canopy {

// Interface for the times of passes on this device, used by the choice of a width. Implementations: the measured table,
// the roofline fitted to it, and the made-up devices of the simulator.

class PassCost {
 public:
  virtual ~PassCost() = default;

  /// Milliseconds of the target's pass over `width` rows (1 ...) behind `context` committed positions, its submission
  /// and the download of its result included; positive and finite.
  virtual double verify_ms(uint32_t width, uint32_t context) const = 0;

  /// Milliseconds of the drafter: `backlog` features are injected, then one block is drafted. Of one that drafts token
  /// by token: `backlog` tokens, the root among them, are read, and the first is drafted.
  virtual double draft_ms(uint32_t backlog, uint32_t context) const = 0;
  virtual bool drafts_by_token() const { return false; }
  /// Of a draft whose passes behind the first went on with so many paths (BlockDraft::beams()), each as if it read as
  /// many tokens.
  double whole_draft_ms(uint32_t backlog, uint32_t context, std::span<const uint32_t> beams) const {
    double ms = draft_ms(backlog, context);
    for (const uint32_t paths : beams) ms += draft_ms(paths, context);
    return ms;
  }
  /// Of a draft of so many tokens along one path.
  double whole_draft_ms(uint32_t backlog, uint32_t context, uint32_t depths) const {
    const double first = draft_ms(backlog, context);
    return drafts_by_token() && depths > 1 ? first + (depths - 1) * draft_ms(1, context) : first;
  }

  /// Milliseconds of the rest of a round of `width` rows: build, walk, commit. `width` 1 is an AR round.
  virtual double other_ms(uint32_t width) const = 0;

  double ar_ms(uint32_t context) const { return verify_ms(1, context) + other_ms(1); }
  double round_ms(uint32_t width, uint32_t backlog, uint32_t context) const {
    return whole_draft_ms(backlog, context, width - 1) + verify_ms(width, context) + other_ms(width);
  }
};

// Measured times of passes at some (rows, context), and interpolation between them.

/// One measured time.
struct CostPoint {
  uint32_t rows = 0;
  uint32_t context = 0;
  double ms = 0;
  bool operator==(const CostPoint&) const = default;
};

/// Many widths were measured at one context, a few at the others. A longer context adds attention only, whose time
/// grows linearly with rows and context, so the difference between two contexts is interpolated, while jumps between
/// neighbouring widths are taken from the context at which they were measured. Nothing is smoothed or made convex.
class CostSurface {
 public:
  /// A pass of any width takes as long as one of the next multiple of `tile`; 1: no such steps. Used between measured
  /// widths only.
  explicit CostSurface(uint32_t tile = 1) : tile_(tile < 1 ? 1 : tile) {}

  /// Adds a point, or replaces the one of the same rows and context. Throws Error(bad_input) unless 0 < ms <= max_ms.
  void set(const CostPoint& point);

  bool empty() const { return curves_.empty(); }
  uint32_t tile() const { return tile_; }
  std::vector<CostPoint> points() const;  // by context, then rows

  /// The nearest rows and context between measured ones; `rows` may be beyond those of a single context.
  uint32_t nearest_rows(uint32_t rows) const;
  uint32_t nearest_context(uint32_t context) const;

  /// Milliseconds: the measured time, or one between its neighbours, which by rows is not below that of fewer rows and
  /// by context is linear. Outside of what was measured it goes on at the mean slope, never falling. Positive. Throws
  /// Error(bad_input) when nothing is measured.
  double at(uint32_t rows, uint32_t context) const;

  static constexpr double max_ms = 1e7;  // nearly three hours

 private:
  using Curve = std::map<uint32_t, double>;  // ms by rows

  const Curve& reference() const { return curves_.at(reference_context_); }
  double between_rows(const Curve& curve, uint32_t rows) const;
  double added_by(const Curve& curve, uint32_t rows) const;
  double inside(uint32_t rows, uint32_t context) const;

  uint32_t tile_;
  std::map<uint32_t, Curve> curves_;  // by context
  uint32_t reference_context_ = 0;    // where most rows are measured
};

// The measured times of passes of one model on one device; kept in a file between launches.

/// Milliseconds of the rest of a round (build, walk, commit) by its width.
struct OtherCost {
  uint32_t width = 1;
  double ms = 0;
  bool operator==(const OtherCost&) const = default;
};

/// When a table was measured, and beside what.
struct MeasuredUnder {
  int64_t at_ms = 0;  // since 1970, UTC; 0: not known
  /// Share of the processor, 0 to 1, that other programs used meanwhile. None where that is not known, and on devices
  /// that it does not slow.
  std::optional<double> others;
  bool operator==(const MeasuredUnder&) const = default;

  static constexpr double load = 0.1;  // from here on the times are those of a machine that does something else as well
  bool under_load() const { return others && *others >= load; }
};

/// The measured table, as a PassCost. Where nothing was measured the roofline tells, scaled to meet the table at its
/// edge. A table with neither answers with an Error(bad_input).
class CostTable : public PassCost {
 public:
  /// tile: see CostSurface.
  explicit CostTable(uint32_t tile = 1) : verify_(tile) {}

  // Each adds a measurement or replaces the one at the same place. Throw Error(bad_input) for a width of 0, and for
  // times that are not positive (of the rest of a round: negative), not finite or absurd.
  void set_verify(uint32_t width, uint32_t context, double ms);
  void set_draft(uint32_t backlog, uint32_t context, double ms);
  void set_other(uint32_t width, double ms);

  /// The model for passes that were not measured.
  void set_roofline(const Roofline& roofline) { roofline_ = roofline; }
  const std::optional<Roofline>& roofline() const { return roofline_; }

  double verify_ms(uint32_t width, uint32_t context) const override;
  /// A pass of one row where no draft was measured: a guess until the first round.
  double draft_ms(uint32_t backlog, uint32_t context) const override;
  bool drafts_by_token() const override { return by_token_; }
  /// Of the pair, which no file of costs says.
  void set_drafts_by_token(bool by_token) { by_token_ = by_token; }
  /// 0 where nothing was measured; the nearest width's beyond what was.
  double other_ms(uint32_t width) const override;

  void set_under(const MeasuredUnder& under) { under_ = under; }
  const MeasuredUnder& under() const { return under_; }

  uint32_t tile() const { return verify_.tile(); }
  std::vector<CostPoint> verify_points() const { return verify_.points(); }  // rows are the width
  bool has_draft() const { return !draft_.empty(); }
  std::vector<CostPoint> draft_points() const { return draft_.points(); }  // rows are the backlog
  const std::vector<OtherCost>& other_points() const { return other_; }    // by width

 private:
  CostSurface verify_;
  CostSurface draft_;
  std::vector<OtherCost> other_;
  std::optional<Roofline> roofline_;
  MeasuredUnder under_;
  bool by_token_ = false;
};

/// The roofline fitted to the verify times of the table, narrow passes counting most as in the paper; `bare` as it is
/// where the table holds too few.
Roofline calibrated_roofline(const Roofline& bare, const CostTable& table);

// The ratio of the time that passes take now to the predicted time. Other programs, heat and drivers change it.

/// A running mean of observed / predicted time, within bounds. A single outlier does not count, two in a row do; times
/// that are zero, negative or NaN are ignored.
class RatioMean {
 public:
  static constexpr double bound = 8;  // the mean stays within 1 / bound ... bound

  /// Returns whether the observation was usable.
  bool add(double predicted_ms, double observed_ms);
  /// Lowers the weight of the observations so far, as later observations would.
  void fade(double factor);

  /// The mean, in which `otherwise` counts as one observation before the first; its weight fades like theirs.
  double value(double otherwise = 1) const { return (sum_ + prior_ * otherwise) / (weight_ + prior_); }
  double weight() const { return weight_; }

  void archive(StateArchive& archive) {
    for (double* value : {&sum_, &weight_, &prior_, &doubtful_}) archive.number(*value);
  }

 private:
  void take(double ratio);

  double sum_ = 0;
  double weight_ = 0;
  double prior_ = 1;
  double doubtful_ = 0;  // the last observation when it was far from the mean, else 0
};

/// The means of passes of 1 row, 2, 3-4, 5-8, 9-16 ... rows. A range that was not met lately follows the mean of all,
/// since most of what changes a device's speed changes all of it.
class WidthResiduals {
 public:
  bool observe(uint32_t width, double predicted_ms, double observed_ms);
  double factor(uint32_t width) const { return ranges_[range_of(width)].value(all_.value()); }
  /// Observations that the range of `width` still remembers.
  double weight(uint32_t width) const { return ranges_[range_of(width)].weight(); }

  void archive(StateArchive& archive) {
    for (RatioMean& range : ranges_) range.archive(archive);
    all_.archive(archive);
  }

  static constexpr size_t ranges = 17;
  static size_t range_of(uint32_t width);

 private:
  std::array<RatioMean, ranges> ranges_;
  RatioMean all_;
};

/// How far the passes of the last replies are from a table: the medians of the last of each range of widths, as
/// WidthResiduals has them, so that one width met often speaks for no other, and a few slow passes for none. Pure.
class CostDrift {
 public:
  static constexpr double far = 0.15;            // the table is to be measured anew
  static constexpr uint32_t enough_passes = 24;  // before that nothing is said, nor
  static constexpr uint32_t enough_replies = 2;  // after a single reply
  static constexpr size_t most_of_range = 64;    // the newest of each range count

  /// A pass of a round. What is no time is passed over.
  void add(const CostTable& table, uint32_t width, uint32_t context, double ms);
  void end_reply();

  /// Mean distance of what passes took from what the table says, as a share of that; none before there are enough.
  std::optional<double> off() const;
  /// What they took over what it says, in the mean. 1.3: nearly a third longer.
  double ratio() const;
  bool is_far() const { return off().value_or(0) > far; }

 private:
  template <class F>
  double mean(F&& of) const;

  std::array<std::deque<double>, WidthResiduals::ranges> ranges_;  // what they took over what the table says
  uint32_t passes_ = 0, replies_ = 0, of_reply_ = 0;
};

// The ways to predict what a pass costs: the three of the BASTION paper, to compare with, and the measured table.

enum class CostPolicy {
  static_roofline,  // "static": the calibrated roofline, which learns nothing; the paper's default
  ema,              // "ema": the bare roofline times one bias; needs no calibration
  ema_calib,        // "ema+calib": the calibrated roofline times one bias
  measured,         // "measured": the table times a residual by width; ours, the default
  paper,            // "paper": costs as "static", the width by the paper's stop rule (bastion.h)
};

std::string_view to_string(CostPolicy policy);
/// By the names above; nothing for another.
std::optional<CostPolicy> cost_policy_of(std::string_view name);

/// A cost that is told what passes really took. What is no time (zero, negative, not a number) is passed over.
class ObservedCost : public PassCost {
 public:
  virtual void observe_verify(uint32_t width, uint32_t context, double ms) = 0;
  virtual void observe_draft(uint32_t backlog, uint32_t context, double ms) = 0;
  virtual void observe_other(uint32_t width, double ms) = 0;

  /// The table corrected by the times observed since, to be saved; nothing where they do not change it.
  virtual std::optional<CostTable> refreshed_table() const { return std::nullopt; }

  /// What was observed. One that reads must have been made of the same policy, roofline and table.
  virtual void archive(StateArchive& archive) = 0;
};

struct CostPolicySettings {
  double alpha = 0.1;  // weight of the newest observation in the paper's bias, 0 to 1
};

/// bare   the roofline of model and device, uncalibrated
/// table  what was measured, possibly nothing: then the roofline stands in everywhere
/// Draft times and the rest of a round come from the table in every policy, with what is observed of them (the paper
/// takes measured constants). Throws Error(bad_input) for an alpha out of range.
std::unique_ptr<ObservedCost> make_cost(CostPolicy policy, const Roofline& bare, const CostTable& table,
                                        const CostPolicySettings& settings = {});

}  // namespace canopy
