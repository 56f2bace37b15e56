#include "engine/calibration/calibration.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <set>
#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace canopy {
namespace {

constexpr uint32_t dense_widths = 64;    // every width up to here
constexpr uint32_t least_tile_step = 8;  // beyond
constexpr size_t most_samples = 9;       // of one point, the first included
constexpr double enough = 0.01;          // relative uncertainty of a time that needs no repeat
constexpr uint32_t usual_samples = 5;
constexpr size_t pace_samples = 5;         // passes of one row that tell how fast the device is at a time
constexpr double steady = 0.06;            // a change of pace below this is taken for noise
constexpr double long_pass = 0.02;         // of the budget: a longer pass is not repeated before all others were met,
constexpr double long_pass_s = 0.25;       // unless it is shorter than this
constexpr double too_long_to_lose = 0.08;  // of the budget: such a pass is not run when it probably cannot win

struct Sample {
  double ms = 0;
  double at = 0;  // seconds since the start
};

/// One place of the table.
struct Point {
  bool draft = false;
  uint32_t rows = 0;
  uint32_t context = 0;
  std::vector<Sample> samples;  // as they came
  uint32_t attempts = 0;
  double foreseen_ms = 0;  // estimated upper bound of its first pass; 0 where no estimate was possible
};

// Median; of an even number of values the lower middle one, since disturbances only make a pass longer.
double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Uncertainty of the median, relative to the median.
double uncertainty(const std::vector<double>& values) {
  const double median = lower_median(values);
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - median));
  std::sort(deviations.begin(), deviations.end());
  return 1.5 * deviations[deviations.size() / 2] / median / std::sqrt(static_cast<double>(values.size()));
}

bool usable(double ms) {
  return std::isfinite(ms) && ms > 0 && ms <= CostSurface::max_ms;
}

class Calibrator {
 public:
  Calibrator(PassTimer& timer, const CalibrationPlan& plan,
             const std::function<void(const CalibrationProgress&)>& progress)
      : timer_(timer), plan_(plan), progress_(progress), table_(plan.tile), reference_(reference_context(plan)) {}

  CostTable run() {
    last_now_ = timer_.now();
    start();
    list_points();
    for (Point& point : points_) {
      if (worth_measuring(point)) measure_first(point);
    }
    repeat();
    for (Point& point : points_) enter(point);
    report(true);
    return table_;
  }

 private:
  // The times of one row and of the draft decide which widths can win, so they are measured first and repeatedly.
  void start() {
    // The first pass may spend far more time on preparation than a pass takes, so its time does not tell whether
    // another pass fits into the budget.
    const auto early = [&] { return elapsed() < 0.75 * plan_.budget_s; };
    Point& one = add_point(false, 1, reference_);
    for (int i = 0; i < 5 && one.samples.size() < 3; ++i) {
      if (one.samples.empty() || fits(one) || early()) run_pass(one);
    }
    if (one.samples.empty()) {
      throw bad_input("The device gave no usable time for a pass of one row, so nothing can be calibrated on it.");
    }
    Point& draft = add_point(true, 1, reference_);
    for (int i = 0; i < 3; ++i) {
      // At least one draft, however much of the budget preparation took: without it, a guess would decide whether to
      // draft at all.
      if (i == 0 || fits(draft) || (i == 1 && early())) run_pass(draft);
    }
  }

  // Lists the points in the order in which they are measured: a coarse set first, then the rest.
  void list_points() {
    for (uint32_t width = 2; width <= dense_widths; width *= 2) add_point(false, width, reference_);
    for (const uint32_t backlog : {4u, 16u, plan_.max_backlog}) add_point(true, backlog, reference_);
    for (const uint32_t context : calibration_contexts(plan_)) {
      for (const uint32_t width : {1u, 4u, 16u, 64u}) add_point(false, width, context);
      for (const uint32_t backlog : {1u, 16u}) add_point(true, backlog, context);
    }
    for (uint32_t width = 1; width <= dense_widths; ++width) add_point(false, width, reference_);
    const uint32_t step = (least_tile_step + plan_.tile - 1) / plan_.tile * plan_.tile;
    for (uint32_t width = (dense_widths / step + 1) * step; width <= plan_.max_width; width += step) {
      add_point(false, width, reference_);
    }
  }

  Point& add_point(bool draft, uint32_t rows, uint32_t context) {
    rows = std::min(rows, draft ? plan_.max_backlog : plan_.max_width);
    for (Point& known : points_) {
      if (known.draft == draft && known.rows == rows && known.context == context) return known;
    }
    return points_.emplace_back(Point{.draft = draft, .rows = rows, .context = context, .samples = {}});
  }

  bool worth_measuring(const Point& point) {
    return point.samples.empty() && fits(point) && (point.draft || point.rows == 1 || may_win(point));
  }

  /// How much longer a pass takes now than `at`, by the passes of one row about that time: devices heat up.
  double slowdown_since(double at) const {
    const std::vector<Sample>& pace = points_.front().samples;
    if (pace.size() <= pace_samples) return 1;
    const auto median_of = [&](size_t first) {
      std::vector<double> values;
      for (size_t i = first; i < first + pace_samples; ++i) values.push_back(pace[i].ms);
      return lower_median(values);
    };
    const auto after = std::lower_bound(pace.begin() + 1, pace.end(), at,
                                        [](const Sample& s, double seconds) { return s.at < seconds; });
    const auto index = static_cast<size_t>(after - pace.begin());
    const size_t last = pace.size() - pace_samples;
    const size_t first = std::clamp<size_t>(index < pace_samples / 2 ? 0 : index - pace_samples / 2, 1, last);
    const double ratio = median_of(last) / median_of(first);
    return std::abs(ratio - 1) < steady ? 1 : ratio;
  }

  /// The times of a point as they would be now. The first pass at a place prepares buffers and pipelines, so it counts
  /// only while it is alone.
  std::vector<double> times(const Point& point) const {
    std::vector<double> result;
    for (size_t i = point.samples.size() > 1 ? 1 : 0; i < point.samples.size(); ++i) {
      result.push_back(point.samples[i].ms * slowdown_since(point.samples[i].at));
    }
    return result;
  }

  // True when a point has only its first pass and that took longer than estimated: the time then probably includes
  // preparation.
  static bool is_doubtful(const Point& point) {
    return point.samples.size() == 1 && point.foreseen_ms > 0 && point.samples.front().ms > point.foreseen_ms;
  }

  void enter(const Point& point) {
    if (point.samples.empty() || is_doubtful(point)) return;
    const double ms = std::min(lower_median(times(point)), CostSurface::max_ms);
    if (point.draft) {
      table_.set_draft(point.rows, point.context, ms);
    } else {
      table_.set_verify(point.rows, point.context, ms);
    }
  }

  bool loses(double verify_ms) const {
    return table_.draft_ms(1, reference_) + verify_ms > plan_.block * table_.verify_ms(1, reference_);
  }

  // Whether the width of the point may still win, judged by the widths measured at the reference context.
  bool may_win(const Point& point) const {
    int lost_in_a_row = 0;
    bool lost = false;
    for (const CostPoint& known : table_.verify_points()) {
      if (known.context != reference_) continue;
      if (known.rows > point.rows) {
        if (!loses(known.ms)) return true;  // a wider pass wins although narrower ones lose: cost is not convex
        continue;
      }
      lost = loses(known.ms);
      lost_in_a_row = lost ? lost_in_a_row + 1 : 0;
    }
    if (point.context != reference_) return !lost;
    const double ms = estimate(point);
    return lost_in_a_row < 2 && !((lost || loses(ms)) && ms > 1e3 * too_long_to_lose * plan_.budget_s);
  }

  // Estimated upper bound of the next pass, in milliseconds.
  double estimate(const Point& point) const {
    if (point.samples.size() == 1 && point.foreseen_ms > 0) {
      return std::min(1.3 * point.samples.front().ms, point.foreseen_ms);  // the first pass prepares the others
    }
    if (!point.samples.empty()) return 1.3 * lower_median(times(point));
    if (point.draft) return table_.has_draft() ? 2 * table_.draft_ms(point.rows, point.context) : 4 * one_row_ms();
    if (point.context != reference_) return 1.5 * table_.verify_ms(point.rows, point.context);
    CostPoint below = {1, reference_, one_row_ms()};
    for (const CostPoint& known : table_.verify_points()) {
      if (known.context == reference_ && known.rows <= point.rows) below = known;
    }
    return 1.3 * below.ms * point.rows / below.rows;  // each row at most what a row took there
  }

  double one_row_ms() const { return table_.verify_ms(1, reference_); }

  bool fits(const Point& point) {
    if (table_.verify_points().empty()) return true;
    return elapsed() + estimate(point) / 1e3 <= plan_.budget_s;
  }

  // Measures a point twice, so that the first pass, which includes preparation, can be ignored. A long pass is measured
  // only once to leave time for other points, unless it took longer than estimated.
  void measure_first(Point& point) {
    point.foreseen_ms = estimate(point);
    sample(point);
    if (point.samples.empty()) return;
    const bool is_short = estimate(point) <= 1e3 * std::max(long_pass_s, long_pass * plan_.budget_s);
    if ((is_doubtful(point) || is_short) && fits(point)) sample(point);
  }

  bool settled(const Point& point) const {
    if (point.attempts == 0 || point.attempts >= most_samples) return true;  // left out, or enough
    return point.samples.size() >= 3 && uncertainty(times(point)) < enough;
  }

  // Repeats points in turns, narrow passes first, until all times are certain enough or the budget ends.
  void repeat() {
    std::vector<Point*> order;
    for (Point& point : points_) order.push_back(&point);
    std::stable_sort(order.begin(), order.end(), [](const Point* a, const Point* b) { return a->rows < b->rows; });
    for (bool any = true; any;) {
      any = false;
      for (Point* point : order) {
        if (settled(*point) || !fits(*point)) continue;
        sample(*point);
        any = true;
      }
    }
  }

  // Now and then also times a pass of one row, to track the speed of the device; that takes at most a twentieth of the
  // time.
  void sample(Point& point) {
    Point& one = points_.front();
    if (one.samples.size() >= 3 && &point != &one) {
      const double pause = std::max(0.25, 20e-3 * one_row_ms());
      if (elapsed() - one.samples.back().at >= pause && fits(one)) run_pass(one);
    }
    if (&point == &one || fits(point)) run_pass(point);
  }

  void run_pass(Point& point) {
    if (timer_.stopped()) throw cancelled("The calibration was stopped.");
    const double ms =
        point.draft ? timer_.draft_ms(point.rows, point.context) : timer_.verify_ms(point.rows, point.context);
    ++point.attempts;
    ++done_;
    if (usable(ms)) {
      point.samples.push_back({ms, elapsed()});
      enter(point);
    }
    report(false);
  }

  // Seconds since the start; stays the same when the clock runs backwards.
  double elapsed() {
    const double now = timer_.now();
    if (now > last_now_) elapsed_ += now - last_now_;
    last_now_ = now;
    return elapsed_;
  }

  void report(bool finished) {
    if (!progress_) return;
    CalibrationProgress progress = {.done = done_, .total = done_, .seconds_left = 0};
    if (!finished && !table_.verify_points().empty()) {
      for (const Point& point : points_) {
        if (point.attempts == 0 ? !worth_measuring(point) : settled(point)) continue;
        const uint32_t missing = point.attempts < usual_samples ? usual_samples - point.attempts : 1;
        progress.total += missing;
        progress.seconds_left += missing * estimate(point) / 1.3e3;
      }
      progress.seconds_left = std::clamp(plan_.budget_s - elapsed(), 0.0, progress.seconds_left);
    }
    progress_(progress);
  }

  PassTimer& timer_;
  const CalibrationPlan& plan_;
  const std::function<void(const CalibrationProgress&)>& progress_;
  CostTable table_;
  const uint32_t reference_;
  std::deque<Point> points_;  // a deque, since references to its elements are kept
  uint32_t done_ = 0;
  double elapsed_ = 0;
  double last_now_ = 0;
};

void require(bool good, std::string_view field, double value, std::string_view allowed) {
  if (good) return;
  throw bad_input("The calibration plan's " + std::string(field) + " is " + std::to_string(value) + "; " +
                  std::string(allowed) + " is allowed.");
}

}  // namespace

double PassTimer::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void validate(const CalibrationPlan& plan) {
  constexpr uint32_t most = 1u << 16;
  require(plan.block >= 2 && plan.block <= most, "block size", plan.block, "2 to 65,536");
  require(plan.max_width >= 1 && plan.max_width <= most, "largest width", plan.max_width, "1 to 65,536");
  require(plan.tile >= 1 && plan.tile <= 1024, "tile", plan.tile, "1 to 1,024");
  require(plan.max_backlog >= 1 && plan.max_backlog <= most, "largest backlog", plan.max_backlog, "1 to 65,536");
  require(plan.max_context >= 16, "largest context", plan.max_context, "at least 16");
  require(std::isfinite(plan.budget_s) && plan.budget_s > 0, "time", plan.budget_s, "a positive number of seconds");
}

uint32_t reference_context(const CalibrationPlan& plan) {
  return std::min(512u, plan.max_context / 2);
}

std::vector<uint32_t> calibration_contexts(const CalibrationPlan& plan) {
  const uint32_t reference = reference_context(plan);
  const auto middle = static_cast<uint32_t>(std::lround(std::sqrt(static_cast<double>(reference) * plan.max_context)));
  const std::set<uint32_t> contexts = {std::min(64u, reference / 4), reference, middle, plan.max_context};
  return {contexts.begin(), contexts.end()};
}

CostTable calibrate(PassTimer& timer, const CalibrationPlan& plan,
                    const std::function<void(const CalibrationProgress&)>& progress) {
  validate(plan);
  return Calibrator(timer, plan, progress).run();
}

}  // namespace canopy
