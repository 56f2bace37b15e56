#include "engine/session/measurement.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/speculation/round_record.h"
#include "engine/speculation/suffix_trie.h"

namespace canopy {
namespace {

/// Children of a node in the trees that are timed: as bushy as real ones, and no deeper.
constexpr uint32_t kChildren = 3;

/// Milliseconds of `pass`, run a second time where the first took long and made a recording.
template <class Pass, class Recordings>
double time_prepared(Pass&& pass, Recordings&& recordings) {
  constexpr double long_ms = 500;
  const auto time = [&] {
    const auto start = std::chrono::steady_clock::now();
    pass();
    return milliseconds_since(start);
  };
  const uint64_t before = recordings();
  const double ms = time();
  return ms > long_ms && recordings() != before ? time() : ms;
}

/// Makes the tree of `width` nodes, the root included, that passes are timed with.
void grow_timed_tree(DraftTree& tree, uint32_t width) {
  tree.reset(0);
  while (tree.width() < width) tree.add((tree.width() - 1) / kChildren, tree.width() % kChildren, 0, 0, 0);
}

}  // namespace

ModelTimer::ModelTimer(Model& model, Sequence& sequence, std::stop_token stop, DraftModel* draft_model)
    : model_(model), sequence_(sequence), stop_(std::move(stop)), draft_model_(draft_model) {
  sequence_.clear();  // before the first pass overwrites what the caches hold
}

ModelTimer::~ModelTimer() {
  sequence_.clear();
}

double ModelTimer::verify_ms(uint32_t width, uint32_t context) {
  grow_timed_tree(tree_, width);
  sequence_.pretend(context, 0);
  // One row is what autoregressive decoding takes, which writes no aux hidden states: all speed-ups are over that.
  const auto pass = [&] {
    ForwardInput input = sequence_.tree(tree_, HeadOutput::argmax);
    input.aux_hidden_states = width > 1 && sequence_.drafter() != nullptr;
    model_.forward(input, stop_);
  };
  return time_prepared(pass, [&] { return model_.recordings(); });
}

double ModelTimer::draft_ms(uint32_t backlog, uint32_t context) {
  if (draft_model_ != nullptr) {
    return time_prepared([&] { draft_model_->draft_anywhere(backlog, context, stop_); },
                         [&] { return draft_model_->recordings(); });
  }
  FeatureDrafter& drafter = *sequence_.drafter();
  const auto recordings = [&] { return drafter.recordings(); };
  if (!drafter.by_token()) {
    const uint32_t waiting = std::min(backlog, context);
    const auto draft = [&] {
      sequence_.pretend(context, waiting);
      sequence_.draft(0, drafter.max_depth(), stop_);
    };
    return time_prepared(draft, recordings);
  }
  const auto drafted_ms = [&](uint32_t features, const DraftWish& wish) {
    const auto draft = [&] {
      sequence_.pretend(std::max(context, 1u), std::clamp(features, 1u, std::max(context, 1u)));
      sequence_.draft(0, wish, stop_);
    };
    return time_prepared(draft, recordings);
  };
  const double first = drafted_ms(backlog, {1});
  if (backlog < 2 || backlog > drafter.most_beams()) return first;
  // A pass over so many paths: what it takes behind a first one, and no less than these rows of text.
  const std::vector<double> costs(backlog, 0.0);
  return std::max(first, drafted_ms(1, {2, costs}) - drafted_ms(1, {1}));
}

void prepare_drafts(Model& model, Sequence& sequence, DraftModel* draft_model, std::stop_token stop) {
  const uint32_t context = std::min(64u, model.limits().context);
  ModelTimer timer(model, sequence, std::move(stop), draft_model);
  std::vector<uint32_t> prepared{1, context};
  const FeatureDrafter* const drafter = sequence.drafter();
  const uint32_t most = draft_model != nullptr ? draft_model->most_beams()
                        : drafter != nullptr   ? drafter->most_beams()
                                               : 1;
  for (uint32_t paths = 2; paths <= most; paths *= 2) prepared.push_back(paths);
  for (const uint32_t backlog : prepared) {
    if (!timer.stopped()) timer.draft_ms(backlog, context);
  }
}

CalibrationPlan calibration_plan(const Model& model, const FeatureDrafter* drafter, const DraftModel* draft_model,
                                 double budget_s) {
  constexpr uint32_t deepest = 16;  // of the trees that are timed, with room to spare
  CalibrationPlan plan;
  plan.drafts = drafter != nullptr || draft_model != nullptr;
  plan.by_token = draft_model != nullptr || (drafter != nullptr && drafter->by_token());
  plan.block = drafter != nullptr ? drafter->max_depth() + 1 : TextDrafter::kMostNodes + 1;
  plan.max_width = std::min(model.limits().max_width, model.limits().tree_slots + 1);
  if (!plan.drafts) plan.max_width = std::min(plan.max_width, TextDrafter::kMostNodes + 1);
  plan.max_context = std::max(16u, model.limits().context - std::min(model.limits().context, deepest));
  plan.budget_s = budget_s;
  return plan;
}

namespace {

constexpr uint32_t kRoomForTrees = 16;  // positions behind the context: trees that are timed are no deeper
constexpr uint32_t kManyEmitted = 8;    // tokens of a round that accepts much

double middle(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

void require_usable(const MeasurementPlan& plan) {
  if (plan.widths.empty() || plan.contexts.empty() || plan.most_repeats == 0 || !(plan.seconds > 0)) {
    throw bad_input("A measurement of " + std::to_string(plan.widths.size()) + " widths at " +
                    std::to_string(plan.contexts.size()) + " contexts, " + std::to_string(plan.most_repeats) +
                    " times each, in " + std::to_string(plan.seconds) +
                    " s was asked for; allowed: at least one of each.");
  }
}

/// A tree of `width` nodes whose last node at each depth up to `accepted` is on the path, so that keys and values of
/// all of it must move, as where the likeliest tokens were wrong. Returns the path.
AcceptedPath grow_round_tree(DraftTree& tree, uint32_t width, uint32_t accepted) {
  AcceptedPath path;
  tree.reset(0);
  const uint32_t depth = std::max(1u, accepted), siblings = (width - 1) / depth;
  for (uint32_t d = 0; d < depth; ++d) {
    const uint32_t parent = path.nodes.back(), more = d == 0 ? (width - 1) % depth : 0;
    uint32_t last = parent;
    for (uint32_t rank = 0; rank < siblings + more; ++rank) last = tree.add(parent, rank + 1, rank, 0, 0);
    if (d < accepted) path.nodes.push_back(last);
  }
  return path;
}

class MeasurementRun {
 public:
  MeasurementRun(Model& model, Sequence& sequence, const MeasurementPlan& plan,
                 const std::function<void(uint32_t, uint32_t)>& progress, const std::stop_token& stop)
      : model_(model), sequence_(sequence), plan_(plan), progress_(progress), stop_(stop) {
    require_usable(plan_);
    sequence_.clear();  // before the first pass overwrites what the caches hold
  }
  MeasurementRun(const MeasurementRun&) = delete;
  MeasurementRun& operator=(const MeasurementRun&) = delete;
  ~MeasurementRun() { sequence_.clear(); }

  ModelMeasurement run() {
    choose_points();
    measure_peak();
    result_.pass_bytes = model_.pass_bytes();
    for (const uint32_t context : contexts_) measure_passes(context);
    if (drafts_blocks()) {
      for (const uint32_t context : contexts_) measure_drafts(context);
      measure_rounds();
    }
    measure_peak();
    result_.seconds = elapsed();
    return std::move(result_);
  }

 private:
  struct Once {
    double device_ms = 0, wall_ms = 0, host_ms = 0;
  };
  /// The host's time from its construction on.
  class HostTime {
   public:
    explicit HostTime(const Device& device) : device_(device), waited_(device.waited_ms()) {}
    Once with(double device_ms) const {
      const double wall = milliseconds_since(start_);
      return {device_ms, wall, std::max(0.0, wall - (device_.waited_ms() - waited_))};
    }

   private:
    const Device& device_;
    double waited_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  };
  /// One of the points that are measured in turns.
  struct Point {
    std::function<Once()> timed;
    std::vector<double> device, wall, host;

    MeasuredTime time() const {
      if (wall.empty()) return {};
      return {static_cast<uint32_t>(wall.size()), middle(device), middle(wall), middle(host)};
    }
  };

  /// The report has no place for drafts that are made token by token.
  bool drafts_blocks() const { return sequence_.drafter() != nullptr && !sequence_.drafter()->by_token(); }
  double elapsed() const { return milliseconds_since(start_) / 1e3; }

  void choose_points() {
    const ModelLimits& limits = model_.limits();
    for (const uint32_t context : plan_.contexts) {
      if (uint64_t{context} + kRoomForTrees <= limits.context) contexts_.push_back(context);
    }
    for (const uint32_t width : plan_.widths) {
      if (width >= 1 && width <= std::min(limits.max_width, limits.tree_slots + 1)) widths_.push_back(width);
    }
    total_ = static_cast<uint32_t>(contexts_.size() * widths_.size());
    groups_ = static_cast<uint32_t>(contexts_.size());
    if (!drafts_blocks()) return;
    groups_ = 2 * groups_ + 1;
    for (const uint32_t context : contexts_) total_ += static_cast<uint32_t>(backlogs(context).size());
    for (const uint32_t width : widths_) total_ += static_cast<uint32_t>(emitted_of(width).size());
  }

  /// Features that a draft injects: after one token, and after a long path.
  static std::vector<uint32_t> backlogs(uint32_t context) {
    return context == 0 ? std::vector<uint32_t>{0} : std::vector<uint32_t>{1, std::min(16u, context)};
  }

  /// Tokens of the rounds that are measured at a width: one, as where nothing was accepted, and many.
  std::vector<uint32_t> emitted_of(uint32_t width) const {
    if (width == 1 || contexts_.empty()) return {};
    const uint32_t most = std::min({width, kManyEmitted, sequence_.drafter()->max_depth() + 1});
    return {1, most};
  }

  void measure_peak() { result_.peak.raise_to(model_.device().measure_peak()); }

  void measure_passes(uint32_t context) {
    std::vector<Point> points;
    for (const uint32_t width : widths_) points.push_back({[this, width, context] { return pass(width, context); }});
    measure(points);
    MeasuredContext measured{context, {}};
    for (size_t i = 0; i < points.size(); ++i) {
      const MeasuredTime time = points[i].time();
      if (time.repeats > 0) measured.passes.push_back({widths_[i], time});
    }
    if (!measured.passes.empty()) result_.contexts.push_back(std::move(measured));
  }

  void measure_drafts(uint32_t context) {
    const std::vector<uint32_t> waiting = backlogs(context);
    std::vector<Point> points;
    for (const uint32_t backlog : waiting) {
      points.push_back({[this, backlog, context] { return draft(backlog, context); }});
    }
    measure(points);
    for (size_t i = 0; i < points.size(); ++i) {
      const MeasuredTime time = points[i].time();
      if (time.repeats > 0) result_.drafts.push_back({context, waiting[i], time});
    }
  }

  void measure_rounds() {
    std::vector<MeasuredRound> rounds;
    std::vector<Point> points;
    for (const uint32_t width : widths_) {
      for (const uint32_t emitted : emitted_of(width)) {
        rounds.push_back({contexts_.front(), width, emitted, {}});
        points.push_back({[this, round = rounds.back()] { return timed_round(round); }});
      }
    }
    measure(points);
    for (size_t i = 0; i < points.size(); ++i) {
      rounds[i].time = points[i].time();
      if (rounds[i].time.repeats > 0) result_.rounds.push_back(rounds[i]);
    }
  }

  /// The one round of several in a row: the features of the round before wait for its draft.
  Once timed_round(const MeasuredRound& round) {
    const AcceptedPath path = grow_round_tree(tree_, round.width, round.emitted - 1);
    sequence_.pretend(round.context, std::min(round.emitted, round.context));
    const HostTime time(model_.device());
    const std::optional<Draft> draft = sequence_.draft(0, sequence_.drafter()->max_depth(), stop_);
    require_completed(draft.has_value());
    ForwardInput input = sequence_.tree(tree_, HeadOutput::argmax);
    input.aux_hidden_states = true;
    const ForwardOutput output = model_.forward(input, stop_);
    require_completed(output.completed());
    const double moved_ms = sequence_.commit(tree_, path, output);
    return time.with(draft->device_ms + output.device_ms() + moved_ms);
  }

  Once pass(uint32_t width, uint32_t context) {
    grow_timed_tree(tree_, width);
    sequence_.pretend(context, 0);
    const HostTime time(model_.device());
    ForwardInput input = sequence_.tree(tree_, HeadOutput::argmax);
    input.aux_hidden_states = width > 1 && !model_.aux_layers().empty();  // plain decoding leaves none
    const ForwardOutput output = model_.forward(input, stop_);
    require_completed(output.completed());
    return time.with(output.device_ms());
  }

  Once draft(uint32_t backlog, uint32_t context) {
    sequence_.pretend(context, backlog);
    const HostTime time(model_.device());
    const std::optional<Draft> draft = sequence_.draft(0, sequence_.drafter()->max_depth(), stop_);
    require_completed(draft.has_value());
    return time.with(draft->device_ms);
  }

  static void require_completed(bool completed) {
    if (!completed) throw cancelled("The measurement was cancelled.");
  }

  /// Each point once without counting it, which compiles kernels and chooses their variants; then all of them in turns,
  /// so that a drift of the device affects all widths alike, for these points' part of the time that is left. Points
  /// that no time is left for stay empty.
  void measure(std::vector<Point>& points) {
    const double until = elapsed() + std::max(0.0, plan_.seconds - elapsed()) / std::max(1u, groups_--);
    size_t prepared = 0;
    for (; prepared < points.size() && elapsed() < plan_.seconds; ++prepared) {
      if (progress_) progress_(done_, total_);
      require_completed(!stop_.stop_requested());
      points[prepared].timed();
      ++done_;
    }
    if (prepared < points.size()) result_.complete = false;
    if (progress_) progress_(done_, total_);
    for (uint32_t repeat = 0; repeat < plan_.most_repeats; ++repeat) {
      for (size_t i = 0; i < prepared; ++i) {
        if (repeat > 0 && elapsed() >= until) return;
        const Once once = points[i].timed();
        points[i].device.push_back(once.device_ms);
        points[i].wall.push_back(once.wall_ms);
        points[i].host.push_back(once.host_ms);
      }
    }
  }

  Model& model_;
  Sequence& sequence_;
  const MeasurementPlan& plan_;
  const std::function<void(uint32_t, uint32_t)>& progress_;
  std::stop_token stop_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<uint32_t> contexts_, widths_;
  uint32_t done_ = 0, total_ = 0;  // points
  uint32_t groups_ = 0;            // of points that are measured in turns, still to come
  DraftTree tree_;
  ModelMeasurement result_;
};

}  // namespace

double ModelMeasurement::weights_gb_s(const MeasuredContext& context) const {
  if (context.passes.empty() || context.passes[0].width != 1) return 0;
  return static_cast<double>(pass_bytes) / (context.passes[0].time.ms() * 1e6);
}

double ModelMeasurement::speedup(const MeasuredRound& round) const {
  for (const MeasuredContext& context : contexts) {
    if (context.context != round.context || context.passes.empty() || context.passes[0].width != 1) continue;
    return context.passes[0].time.wall_ms * round.emitted / round.time.wall_ms;
  }
  return 0;
}

ModelMeasurement measure_model(Model& model, Sequence& sequence, const MeasurementPlan& plan,
                               const std::function<void(uint32_t done, uint32_t total)>& progress,
                               const std::stop_token& stop) {
  return MeasurementRun(model, sequence, plan, progress, stop).run();
}

}  // namespace canopy
