#include "engine/speculation/calibration.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"

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
    if (!plan_.drafts) return;
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
    for (const uint32_t backlog : {4u, 16u, plan_.max_backlog}) add_draft(backlog, reference_);
    if (plan_.by_token) {
      for (const uint32_t paths : {2u, 3u, 6u, 8u}) add_draft(paths, reference_);
    }
    for (const uint32_t context : calibration_contexts(plan_)) {
      for (const uint32_t width : {1u, 4u, 16u, 64u}) add_point(false, width, context);
      for (const uint32_t backlog : {1u, 16u}) add_draft(backlog, context);
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

  void add_draft(uint32_t backlog, uint32_t context) {
    if (plan_.drafts) add_point(true, backlog, context);
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
    const double draft_ms = plan_.drafts ? table_.draft_ms(1, reference_) : 0;
    return draft_ms + verify_ms > plan_.block * table_.verify_ms(1, reference_);
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

namespace {

using nlohmann::json;

constexpr const char* file_format = "canopy-calibration";
constexpr uint32_t file_version = 1;
constexpr uintmax_t max_file_bytes = 1 << 20;
constexpr size_t max_key_bytes = 1 << 15;
constexpr size_t max_points = 8192;
constexpr uint32_t max_rows = 1u << 16;
constexpr uint32_t max_context = 1u << 26;

struct KeyField {
  const char* name;
  const char* what;
  std::string CalibrationKey::*value;
};

constexpr std::array<KeyField, 7> key_fields = {{
    {"device", "device", &CalibrationKey::device},
    {"driver", "version of the driver", &CalibrationKey::driver},
    {"model", "model", &CalibrationKey::model},
    {"drafter", "drafter", &CalibrationKey::drafter},
    {"quantization", "quantization", &CalibrationKey::quantization},
    {"kv_type", "type of K/V cache", &CalibrationKey::kv_type},
    {"variants", "choice of kernels", &CalibrationKey::variants},
}};

json key_json(const CalibrationKey& key) {
  json result = json::object();
  for (const KeyField& field : key_fields) result[field.name] = printable(key.*field.value, max_key_bytes);
  return result;
}

/// Shape to variant, of CalibrationKey::tuned.
std::map<std::string_view, std::string_view> variants_of(std::string_view tuned) {
  std::map<std::string_view, std::string_view> variants;
  while (!tuned.empty()) {
    const std::string_view entry = tuned.substr(0, tuned.find("; "));
    tuned.remove_prefix(std::min(tuned.size(), entry.size() + 2));
    // Without " (" it is npos + 1 = 0, and the entry is skipped.
    const size_t variant = std::min(entry.find(" (") + 1, entry.size());
    if (variant > 0) variants.insert_or_assign(entry.substr(0, variant - 1), entry.substr(variant));
  }
  return variants;
}

void require_same_variants(std::string_view then, std::string_view now) {
  const auto known = variants_of(now);
  for (const auto& [shape, variant] : variants_of(then)) {
    const auto found = known.find(shape);
    if (found == known.end() || found->second == variant) continue;
    throw bad_input("it was measured with another kernel for " + quoted_name(shape) + ": " +
                    printable(std::string(variant)) + ", now " + printable(std::string(found->second)));
  }
}

json table_json(const CostTable& table) {
  const auto list = [](const std::vector<CostPoint>& points) {
    json result = json::array();
    for (const CostPoint& p : points) result.push_back({p.rows, p.context, p.ms});
    return result;
  };
  json other = json::array();
  for (const OtherCost& p : table.other_points()) other.push_back({p.width, p.ms});
  return {{"tile", table.tile()},
          {"verify", list(table.verify_points())},
          {"draft", list(table.draft_points())},
          {"other", other}};
}

// One entry of a list: whole numbers, then a time.
template <size_t count>
std::pair<std::array<uint32_t, count>, double> read_entry(const json& entry, const std::string& where) {
  if (!entry.is_array() || entry.size() != count + 1 || !entry.back().is_number()) {
    throw bad_input(where + " is no list of " + std::to_string(count) + " whole numbers and a time");
  }
  std::array<uint32_t, count> numbers{};
  for (size_t i = 0; i < count; ++i) {
    const uint32_t most = i == 0 ? max_rows : max_context;
    if (!entry[i].is_number_unsigned() || entry[i].get<uint64_t>() > most) {
      throw bad_input(where + " has the number " + entry[i].dump() + ", where 0 to " + std::to_string(most) +
                      " is allowed");
    }
    numbers[i] = entry[i].get<uint32_t>();
  }
  return {numbers, entry.back().get<double>()};
}

template <size_t count, class Take>
void read_list(const JsonFields& fields, const char* name, Take&& take) {
  const json& list = fields.list(name);
  if (list.size() > max_points) {
    throw bad_input("the list \"" + std::string(name) + "\" has " + std::to_string(list.size()) + " entries, at most " +
                    std::to_string(max_points) + " are allowed");
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const auto [numbers, ms] = read_entry<count>(list[i], "entry " + std::to_string(i) + " of \"" + name + "\"");
    take(numbers, ms);
  }
}

CostTable read_table(const json& object) {
  const JsonFields fields(object, "the table");
  const uint32_t tile = fields.u32("tile");
  if (tile < 1 || tile > 1024) {
    throw bad_input("its tile is " + std::to_string(tile) + ", where 1 to 1024 is allowed");
  }
  CostTable table(tile);
  read_list<2>(fields, "verify", [&](const auto& at, double ms) { table.set_verify(at[0], at[1], ms); });
  read_list<2>(fields, "draft", [&](const auto& at, double ms) { table.set_draft(at[0], at[1], ms); });
  read_list<1>(fields, "other", [&](const auto& at, double ms) { table.set_other(at[0], ms); });
  if (table.verify_points().empty()) throw bad_input("it holds no measured pass");
  return table;
}

void check_format(const JsonFields& fields) {
  if (fields.text("format") != file_format) throw bad_input("it is no calibration");
  if (const uint32_t version = fields.u32("version"); version != file_version) {
    throw bad_input("its format is version " + std::to_string(version) + ", this program reads version " +
                    std::to_string(file_version));
  }
}

/// Files of before these fields lack them. What makes no sense is not known either: the times hold all the same.
MeasuredUnder read_under(const JsonFields& fields) {
  constexpr double latest_ms = 1e14;  // three thousand years from now
  MeasuredUnder under;
  const double at = fields.number_or("measured_ms", 0), others = fields.number_or("used_by_others", -1);
  if (at > 0 && at < latest_ms) under.at_ms = static_cast<int64_t>(at);
  if (others >= 0 && others <= 1) under.others = others;
  return under;
}

CostTable checked_table(const JsonFields& fields) {
  const json& table = fields.at("table");
  if (fields.text("hash") != damage_hash_text(table.dump()))
    throw bad_input("its content is damaged (the hash differs)");
  CostTable result = read_table(table);
  result.set_under(read_under(fields));
  return result;
}

std::string file_text(const CalibrationKey& key, const CostTable& table) {
  const json content = table_json(table);
  // Serialized and parsed again, so that the hash is computed from the same values as when the file is read.
  const std::string hash = damage_hash_text(json::parse(content.dump()).dump());
  json file = {{"format", file_format}, {"version", file_version},
               {"key", key_json(key)},  {"tuned", printable(key.tuned, max_key_bytes)},
               {"hash", hash},          {"table", content}};
  // Beside the table, where programs that do not know them pass them over.
  const MeasuredUnder& under = table.under();
  if (under.at_ms > 0) file["measured_ms"] = under.at_ms;
  if (under.others) file["used_by_others"] = *under.others;
  return file.dump(1) + "\n";
}

/// Of a file in the cache; others are read by read_text_input().
std::string read_text(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) throw bad_input("it is no readable file");
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > max_file_bytes) {
    throw bad_input("it has more than " + std::to_string(max_file_bytes) + " bytes");
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text(bytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(bytes));
  if (!stream) throw bad_input("it cannot be read");
  return text;
}

}  // namespace

std::filesystem::path calibration_folder() {
  return cache_dir() / "calibrations";
}

std::filesystem::path calibration_path(const std::filesystem::path& folder, const CalibrationKey& key) {
  return folder / (damage_hash_text(key_json(key).dump()) + ".json");
}

CostTable parse_calibration(const std::string& text, const CalibrationKey& key) {
  const json file = parse_json(text, "the file", DuplicateKeys::refuse);
  const JsonFields fields(file, "the file");
  check_format(fields);
  const JsonFields known(fields.at("key"), "its key");
  const json wanted = key_json(key);
  for (const KeyField& field : key_fields) {
    const std::string value = known.text(field.name);
    if (value == wanted.at(field.name).get<std::string>()) continue;
    throw bad_input("it was made for another " + std::string(field.what) + " (\"" + printable(value) + "\")");
  }
  require_same_variants(fields.text_or("tuned", ""), key.tuned);
  return checked_table(fields);
}

ForeignCalibration parse_foreign_calibration(const std::string& text) {
  const json file = parse_json(text, "the file", DuplicateKeys::refuse);
  const JsonFields fields(file, "the file");
  check_format(fields);
  const JsonFields known(fields.at("key"), "its key");
  ForeignCalibration calibration;
  for (const KeyField& field : key_fields) {
    calibration.key.*field.value = printable(known.text(field.name), max_key_bytes);
  }
  calibration.key.tuned = printable(fields.text_or("tuned", ""), max_key_bytes);
  calibration.table = checked_table(fields);
  return calibration;
}

ForeignCalibration read_calibration(const std::filesystem::path& path) {
  try {
    std::error_code error;
    if (path != "-" && (!std::filesystem::exists(path, error) || std::filesystem::is_directory(path, error))) {
      throw bad_input("it is no readable file");
    }
    return parse_foreign_calibration(read_text_input(path, max_file_bytes));
  } catch (const Error& e) {
    std::string why = e.what();
    if (why.empty() || why.back() != '.') why += ".";
    throw bad_input("The calibration " + quoted_name(path.string()) + " cannot be used: " + why);
  }
}

void write_calibration(const std::filesystem::path& path, const CalibrationKey& key, const CostTable& table) {
  write_file_atomically(path, file_text(key, table));
}

LoadedCalibration load_calibration(const std::filesystem::path& folder, const CalibrationKey& key) {
  const std::filesystem::path path = calibration_path(folder, key);
  const auto refused = [&](const std::string& why) {
    const bool ends = !why.empty() && why.back() == '.';
    return LoadedCalibration{
        {}, "The calibration \"" + printable(path.string()) + "\" is not used: " + why + (ends ? "" : ".")};
  };
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::not_found) return {};
  try {
    return {parse_calibration(read_text(path), key), ""};
  } catch (const std::exception& e) {
    return refused(e.what());
  }
}

std::string save_calibration(const std::filesystem::path& folder, const CalibrationKey& key, const CostTable& table) {
  try {
    std::filesystem::create_directories(folder);
    write_file_atomically(calibration_path(folder, key), file_text(key, table));
  } catch (const std::exception& e) {
    return std::string("The calibration was not saved: ") + e.what();
  }
  return "";
}

namespace {

constexpr std::string_view learnt_format = "Canopy, learnt of drafts, 1\n";

std::filesystem::path learnt_path(const std::filesystem::path& folder, const CalibrationKey& key) {
  return calibration_path(folder, key).replace_extension(".learnt");
}

/// Its head: format, whose it is, and what tells damage.
std::string learnt_head(const CalibrationKey& key, std::string_view learnt) {
  return std::string(learnt_format) + key_json(key).dump() + "\n" + damage_hash_text(learnt) + "\n";
}

}  // namespace

std::optional<std::string> load_learnt(const std::filesystem::path& folder, const CalibrationKey& key) {
  const std::filesystem::path path = learnt_path(folder, key);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  try {
    const std::string text = read_text(path);
    size_t head = 0;
    for (int line = 0; line < 3 && head != std::string::npos; ++line) {
      head = text.find('\n', head);
      if (head != std::string::npos) ++head;
    }
    if (head == std::string::npos) return std::nullopt;
    const std::string learnt = text.substr(head);
    if (text.substr(0, head) != learnt_head(key, learnt)) return std::nullopt;
    return learnt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string save_learnt(const std::filesystem::path& folder, const CalibrationKey& key, std::string_view learnt) {
  try {
    std::filesystem::create_directories(folder);
    write_file_atomically(learnt_path(folder, key), learnt_head(key, learnt) + std::string(learnt));
  } catch (const std::exception& e) {
    return std::string("What was learnt of drafts was not saved: ") + e.what();
  }
  return "";
}

}  // namespace canopy
