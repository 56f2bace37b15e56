#include "engine/speculation/cost_policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/speculation/cost_residual.h"

namespace canopy {
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
