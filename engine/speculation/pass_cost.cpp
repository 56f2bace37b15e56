#include "engine/speculation/pass_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "engine/base/error.h"

namespace canopy {
namespace {

double mix(double a, double b, double t) {
  return a + t * (b - a);
}

double fraction(uint32_t low, uint32_t high, uint32_t value) {
  return static_cast<double>(value - low) / static_cast<double>(high - low);
}

}  // namespace

void CostSurface::set(const CostPoint& point) {
  if (!(point.ms > 0) || !(point.ms <= max_ms)) {
    throw bad_input("The time measured for " + std::to_string(point.rows) + " rows at context " +
                    std::to_string(point.context) + " is " + std::to_string(point.ms) +
                    " ms; more than 0 and at most " + std::to_string(max_ms) + " ms is allowed.");
  }
  curves_[point.context][point.rows] = point.ms;
  const auto reference = curves_.find(reference_context_);
  if (reference == curves_.end() || curves_[point.context].size() > reference->second.size()) {
    reference_context_ = point.context;
  }
}

std::vector<CostPoint> CostSurface::points() const {
  std::vector<CostPoint> result;
  for (const auto& [context, curve] : curves_) {
    for (const auto& [rows, ms] : curve) result.push_back({rows, context, ms});
  }
  return result;
}

uint32_t CostSurface::nearest_rows(uint32_t rows) const {
  if (empty()) return rows;
  return std::clamp(rows, reference().begin()->first, reference().rbegin()->first);
}

uint32_t CostSurface::nearest_context(uint32_t context) const {
  if (empty()) return context;
  return std::clamp(context, curves_.begin()->first, curves_.rbegin()->first);
}

// `rows` is within the curve's.
double CostSurface::between_rows(const Curve& curve, uint32_t rows) const {
  const auto above = curve.lower_bound(rows);
  if (above->first == rows) return above->second;
  const auto below = std::prev(above);
  const uint64_t padded = (uint64_t{rows} + tile_ - 1) / tile_ * tile_;
  const auto effective = static_cast<uint32_t>(std::min<uint64_t>(padded, above->first));
  const double ms = mix(below->second, above->second, fraction(below->first, above->first, effective));
  return std::max(ms, below->second);
}

// Milliseconds that the curve's context adds to the reference's time of a pass of `rows`: interpolated between the
// measured widths, in proportion to the rows beyond them.
double CostSurface::added_by(const Curve& curve, uint32_t rows) const {
  const auto added_at = [&](Curve::const_iterator known) {
    return known->second - between_rows(reference(), nearest_rows(known->first));
  };
  const auto above = curve.lower_bound(rows);
  if (above == curve.end()) {
    const auto last = std::prev(above);
    return added_at(last) * (last->first == 0 ? 1.0 : static_cast<double>(rows) / last->first);
  }
  if (above->first == rows || above == curve.begin()) return added_at(above);
  const auto below = std::prev(above);
  return mix(added_at(below), added_at(above), fraction(below->first, above->first, rows));
}

// Rows within the reference's, context within the measured ones.
double CostSurface::inside(uint32_t rows, uint32_t context) const {
  const double base = between_rows(reference(), rows);
  const auto added = [&](const auto& entry) {
    return entry.first == reference_context_ ? 0.0 : added_by(entry.second, rows);
  };
  const auto above = curves_.lower_bound(context);
  double more = added(*above);
  if (above->first != context) {
    const auto below = std::prev(above);
    more = mix(added(*below), more, fraction(below->first, above->first, context));
  }
  return std::max(base + more,
                  0.1 * base);  // noise in several measurements must not add up to a pass that costs nothing
}

double CostSurface::at(uint32_t rows, uint32_t context) const {
  if (empty()) throw bad_input("No pass was measured, so no time can be told.");
  const uint32_t r = nearest_rows(rows);
  const uint32_t c = nearest_context(context);
  double ms = inside(r, c);
  if (rows > r) {
    const uint32_t first = reference().begin()->first;
    const double slope = r > first ? std::max(0.0, ms - inside(first, c)) / (r - first) : 0.0;
    ms += slope * (rows - r);
  }
  const uint32_t first = curves_.begin()->first;
  if (context > c && c > first) {
    const double slope = std::max(0.0, inside(r, c) - inside(r, first)) / (c - first);
    ms += slope * (context - c) * (r > 0 ? static_cast<double>(rows) / r : 1.0);
  }
  return ms;
}

void CostTable::set_verify(uint32_t width, uint32_t context, double ms) {
  if (width == 0) throw bad_input("A measured pass has a width of 0 rows; at least 1 is needed.");
  verify_.set({width, context, ms});
}

void CostTable::set_draft(uint32_t backlog, uint32_t context, double ms) {
  draft_.set({backlog, context, ms});
}

void CostTable::set_other(uint32_t width, double ms) {
  if (width == 0 || !(ms >= 0) || !(ms <= CostSurface::max_ms)) {
    throw bad_input("The rest of a pass of " + std::to_string(width) + " rows was measured as " + std::to_string(ms) +
                    " ms; at least 1 row and 0 to " + std::to_string(CostSurface::max_ms) + " ms are allowed.");
  }
  const auto at = std::lower_bound(other_.begin(), other_.end(), width,
                                   [](const OtherCost& known, uint32_t w) { return known.width < w; });
  if (at != other_.end() && at->width == width) {
    at->ms = ms;
  } else {
    other_.insert(at, {width, ms});
  }
}

double CostTable::verify_ms(uint32_t width, uint32_t context) const {
  if (verify_.empty() && roofline_) return 1e3 * roofline_->seconds(width, context);
  const uint32_t w = verify_.nearest_rows(width);
  const uint32_t c = verify_.nearest_context(context);
  if ((w == width && c == context) || !roofline_) return verify_.at(width, context);
  return verify_.at(w, c) * roofline_->seconds(width, context) / roofline_->seconds(w, c);
}

double CostTable::draft_ms(uint32_t backlog, uint32_t context) const {
  return draft_.empty() ? verify_ms(1, context) : draft_.at(backlog, context);
}

double CostTable::other_ms(uint32_t width) const {
  if (other_.empty()) return 0;
  const auto above = std::lower_bound(other_.begin(), other_.end(), width,
                                      [](const OtherCost& known, uint32_t w) { return known.width < w; });
  if (above == other_.end()) return other_.back().ms;
  if (above->width == width || above == other_.begin()) return above->ms;
  const OtherCost& below = *std::prev(above);
  const double t = static_cast<double>(width - below.width) / static_cast<double>(above->width - below.width);
  return below.ms + t * (above->ms - below.ms);
}

Roofline calibrated_roofline(const Roofline& bare, const CostTable& table) {
  std::vector<RooflinePoint> points;
  std::vector<uint32_t> widths;
  for (const CostPoint& p : table.verify_points()) {
    points.push_back({.memory_s = bare.memory_seconds(p.rows, p.context),
                      .compute_s = bare.compute_seconds(p.rows, p.context),
                      .measured_s = p.ms / 1e3});
    widths.push_back(p.rows);
  }
  if (points.size() < min_roofline_points) return bare.bare();
  const std::vector<double> sigmas = width_sigmas(widths, paper_sigma_scale);
  for (size_t i = 0; i < points.size(); ++i) points[i].sigma = sigmas[i];
  return bare.calibrated(fit_roofline(points).calibration);
}

namespace {

constexpr double memory = 0.9;         // of an observation, with each that follows: some ten count
constexpr double memory_range = 0.97;  // of a range, with each observation in another
constexpr double least_prior = 0.1;    // so that a range forgotten long ago follows the others
constexpr double usual = 1.6;          // an observation within this factor of the mean is no outlier

}  // namespace

bool RatioMean::add(double predicted_ms, double observed_ms) {
  if (!std::isfinite(predicted_ms) || !std::isfinite(observed_ms) || predicted_ms <= 0 || observed_ms <= 0)
    return false;
  const double ratio = std::clamp(observed_ms / predicted_ms, 1 / bound, bound);
  const double mean = value();
  const bool near = ratio < mean * usual && ratio > mean / usual;
  const bool confirmed = doubtful_ != 0 && (ratio > mean) == (doubtful_ > mean);
  if (!near && !confirmed) {
    doubtful_ = ratio;
    return true;
  }
  // Two in a row on the same side: the device has changed, and what was seen before says little of it.
  if (!near) {
    fade(0.5);
    take(doubtful_);
  }
  doubtful_ = 0;
  take(ratio);
  return true;
}

void RatioMean::take(double ratio) {
  sum_ = sum_ * memory + ratio;
  weight_ = weight_ * memory + 1;
  prior_ = std::max(least_prior, prior_ * memory);
}

void RatioMean::fade(double factor) {
  sum_ *= factor;
  weight_ *= factor;
}

size_t WidthResiduals::range_of(uint32_t width) {
  return std::min<size_t>(std::bit_width(std::max(width, 1u) - 1), ranges - 1);
}

bool WidthResiduals::observe(uint32_t width, double predicted_ms, double observed_ms) {
  const size_t range = range_of(width);
  if (!ranges_[range].add(predicted_ms, observed_ms)) return false;
  all_.add(predicted_ms, observed_ms);
  for (size_t i = 0; i < ranges_.size(); ++i) {
    if (i != range) ranges_[i].fade(memory_range);
  }
  return true;
}

void CostDrift::add(const CostTable& table, uint32_t width, uint32_t context, double ms) {
  if (table.verify_points().empty() || !std::isfinite(ms) || ms <= 0) return;
  std::deque<double>& range = ranges_[WidthResiduals::range_of(width)];
  range.push_back(std::clamp(ms / table.verify_ms(width, context), 1 / RatioMean::bound, RatioMean::bound));
  if (range.size() > most_of_range) range.pop_front();
  ++passes_;
  ++of_reply_;
}

void CostDrift::end_reply() {
  replies_ += of_reply_ > 0 ? 1 : 0;
  of_reply_ = 0;
}

template <class F>
double CostDrift::mean(F&& of) const {
  double sum = 0, count = 0;
  for (const std::deque<double>& range : ranges_) {
    if (range.empty()) continue;
    std::vector<double> ratios(range.begin(), range.end());
    const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
    std::nth_element(ratios.begin(), middle, ratios.end());
    sum += static_cast<double>(ratios.size()) * of(*middle);
    count += static_cast<double>(ratios.size());
  }
  return count > 0 ? sum / count : of(1.0);
}

std::optional<double> CostDrift::off() const {
  if (passes_ < enough_passes || replies_ < enough_replies) return std::nullopt;
  return mean([](double ratio) { return std::abs(ratio - 1); });
}

double CostDrift::ratio() const {
  return mean([](double ratio) { return ratio; });
}

namespace {

constexpr std::array<std::pair<CostPolicy, std::string_view>, 5> policy_names = {{
    {CostPolicy::static_roofline, "static"},
    {CostPolicy::ema, "ema"},
    {CostPolicy::ema_calib, "ema+calib"},
    {CostPolicy::measured, "measured"},
    {CostPolicy::paper, "paper"},
}};

/// The part that all policies share: the times of the drafter and of the rest of a round, which the paper does not
/// model.
class RoundCost : public ObservedCost {
 public:
  explicit RoundCost(CostTable table) : table_(std::move(table)) {
    for (const OtherCost& known : table_.other_points()) other_.emplace(known.width, known.ms);
  }

  double draft_ms(uint32_t backlog, uint32_t context) const override {
    return table_.draft_ms(backlog, context) * draft_.value();
  }
  bool drafts_by_token() const override { return table_.drafts_by_token(); }
  double other_ms(uint32_t width) const override { return table_.other_ms(width); }

  void observe_draft(uint32_t backlog, uint32_t context, double ms) override {
    if (!(ms > 0) || ms > CostSurface::max_ms) return;
    if (first_drafts_.empty() && table_.has_draft()) {
      draft_.add(table_.draft_ms(backlog, context), ms);
    } else {
      enter_draft(backlog, context, ms);
    }
  }

  // Nothing was measured of it beforehand, so that the table itself learns, at the widest pass of each range.
  void observe_other(uint32_t width, double ms) override {
    if (!std::isfinite(ms) || ms < 0 || width == 0 || width > max_width) return;
    uint32_t place = 1;
    while (place < width) place *= 2;
    auto [mean, first] = other_.try_emplace(place, std::min(ms, CostSurface::max_ms));
    // A pause of the whole program is no cost of a round, so one observation changes little.
    if (!first) mean->second += 0.1 * (std::min(ms, 3 * mean->second + 0.1) - mean->second);
    table_.set_other(place, mean->second);
  }

  void archive(StateArchive& archive) override {
    archive_drafts(archive);
    archive_others(archive);
    draft_.archive(archive);
  }

 protected:
  const CostTable& table() const { return table_; }
  double draft_factor() const { return draft_.value(); }

 private:
  static constexpr uint32_t max_width = 1u << 16;
  static constexpr size_t drafts_for_an_entry = 9;

  void archive_drafts(StateArchive& archive) {
    bool entered = entry_.ms > 0;
    archive.flag(entered);
    archive.size(first_drafts_, drafts_for_an_entry);
    for (double& ms : first_drafts_) archive.number(ms);
    if (!entered) return;
    archive.whole(entry_.rows, max_width);
    archive.whole(entry_.context);
    archive.number(entry_.ms);
    if (archive.reads()) table_.set_draft(entry_.rows, entry_.context, entry_.ms);
  }

  void archive_others(StateArchive& archive) {
    auto count = static_cast<uint32_t>(other_.size());
    archive.whole(count, max_width);
    if (!archive.reads()) {
      for (auto& [place, mean] : other_) {
        uint32_t width = place;
        archive.whole(width, max_width);
        archive.number(mean);
      }
      return;
    }
    other_.clear();
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t width = 0;
      double ms = 0;
      archive.whole(width, max_width);
      archive.number(ms);
      table_.set_other(width, ms);
      other_.insert_or_assign(width, ms);
    }
  }

  /// Nothing was measured of drafts: the first ones that rounds make become the table's entry, their lower median,
  /// since the very first may have prepared its pass. Then the entry stands, and what follows corrects it.
  void enter_draft(uint32_t backlog, uint32_t context, double ms) {
    if (first_drafts_.empty()) entry_ = {backlog, context, ms};
    first_drafts_.push_back(ms);
    std::vector<double> sorted = first_drafts_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    entry_.ms = *middle;
    table_.set_draft(entry_.rows, entry_.context, entry_.ms);
    if (first_drafts_.size() == drafts_for_an_entry) first_drafts_.clear();
  }

  CostTable table_;
  std::vector<double> first_drafts_;  // milliseconds, while they make the table's entry; then empty
  CostPoint entry_;                   // where it stands; 0 ms before the first
  RatioMean draft_;
  std::map<uint32_t, double> other_;  // running means by place
};

/// Static, and with a bias the two EMA policies.
class RooflineCost final : public RoundCost {
 public:
  RooflineCost(const Roofline& roofline, CostTable table, double alpha)
      : RoundCost(std::move(table)), roofline_(roofline), alpha_(alpha) {}

  double verify_ms(uint32_t width, uint32_t context) const override {
    return bias_ * 1e3 * roofline_.seconds(width, context);
  }

  void observe_verify(uint32_t width, uint32_t context, double ms) override {
    if (width == 0 || !std::isfinite(ms) || ms <= 0) return;
    bias_ = (1 - alpha_) * bias_ + alpha_ * ms / (1e3 * roofline_.seconds(width, context));
  }

  void archive(StateArchive& archive) override {
    RoundCost::archive(archive);
    archive.number(bias_);
  }

 private:
  Roofline roofline_;
  double alpha_;  // 0: static
  double bias_ = 1;
};

class MeasuredCost final : public RoundCost {
 public:
  explicit MeasuredCost(CostTable table) : RoundCost(std::move(table)) {}

  double verify_ms(uint32_t width, uint32_t context) const override {
    return table().verify_ms(width, context) * residuals_.factor(width);
  }

  void observe_verify(uint32_t width, uint32_t context, double ms) override {
    if (width == 0) return;
    observed_ |= residuals_.observe(width, table().verify_ms(width, context), ms);
  }

  std::optional<CostTable> refreshed_table() const override {
    if (!observed_ || table().verify_points().empty()) return std::nullopt;
    CostTable result = table();  // with the rest of a round as observed
    const auto bounded = [](double ms) { return std::min(ms, CostSurface::max_ms); };
    for (const CostPoint& p : table().verify_points()) {
      result.set_verify(p.rows, p.context, bounded(p.ms * residuals_.factor(p.rows)));
    }
    for (const CostPoint& p : table().draft_points()) {
      result.set_draft(p.rows, p.context, bounded(p.ms * draft_factor()));
    }
    return result;
  }

  void archive(StateArchive& archive) override {
    RoundCost::archive(archive);
    residuals_.archive(archive);
    archive.flag(observed_);
  }

 private:
  WidthResiduals residuals_;
  bool observed_ = false;
};

}  // namespace

std::string_view to_string(CostPolicy policy) {
  for (const auto& [known, name] : policy_names) {
    if (known == policy) return name;
  }
  throw bad_input("There is no cost policy number " + std::to_string(static_cast<int>(policy)) + ".");
}

std::optional<CostPolicy> cost_policy_of(std::string_view name) {
  for (const auto& [policy, known] : policy_names) {
    if (known == name) return policy;
  }
  return std::nullopt;
}

std::unique_ptr<ObservedCost> make_cost(CostPolicy policy, const Roofline& bare, const CostTable& table,
                                        const CostPolicySettings& settings) {
  if (!(settings.alpha > 0) || settings.alpha > 1) {
    throw bad_input("The weight alpha of the newest observation is " + std::to_string(settings.alpha) +
                    "; more than 0 and at most 1 is allowed.");
  }
  const Roofline calibrated = calibrated_roofline(bare, table);
  CostTable whole = table;
  whole.set_roofline(calibrated);
  switch (policy) {
    case CostPolicy::static_roofline:
    case CostPolicy::paper: return std::make_unique<RooflineCost>(calibrated, std::move(whole), 0.0);
    case CostPolicy::ema: return std::make_unique<RooflineCost>(bare.bare(), std::move(whole), settings.alpha);
    case CostPolicy::ema_calib: return std::make_unique<RooflineCost>(calibrated, std::move(whole), settings.alpha);
    case CostPolicy::measured: return std::make_unique<MeasuredCost>(std::move(whole));
  }
  throw bad_input("There is no cost policy number " + std::to_string(static_cast<int>(policy)) + ".");
}

}  // namespace canopy
