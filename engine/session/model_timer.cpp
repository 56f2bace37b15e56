#include "engine/session/model_timer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/planning/stage_timer.h"

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

}  // namespace

void grow_timed_tree(DraftTree& tree, uint32_t width) {
  tree.reset(0);
  while (tree.width() < width) tree.add((tree.width() - 1) / kChildren, tree.width() % kChildren, 0, 0, 0);
}

ModelTimer::ModelTimer(Model& model, Sequence& sequence, std::stop_token stop)
    : model_(model), sequence_(sequence), stop_(std::move(stop)) {
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
    input.aux_hidden_states = width > 1;
    model_.forward(input, stop_);
  };
  return time_prepared(pass, [&] { return model_.recordings(); });
}

double ModelTimer::draft_ms(uint32_t backlog, uint32_t context) {
  const uint32_t waiting = std::min(backlog, context);
  Drafter& drafter = *sequence_.drafter();
  const auto draft = [&] {
    sequence_.pretend(context, waiting);
    sequence_.draft(0, drafter.max_depth(), stop_);
  };
  return time_prepared(draft, [&] { return drafter.recordings(); });
}

void prepare_drafts(Model& model, Sequence& sequence, std::stop_token stop) {
  const uint32_t context = std::min(64u, model.limits().context);
  ModelTimer timer(model, sequence, std::move(stop));
  for (const uint32_t backlog : {1u, context}) {
    if (!timer.stopped()) timer.draft_ms(backlog, context);
  }
}

CalibrationPlan calibration_plan(const Model& model, const Drafter& drafter, double budget_s) {
  constexpr uint32_t deepest = 16;  // of the trees that are timed, with room to spare
  CalibrationPlan plan;
  plan.block = drafter.config().block_size;
  plan.max_width = std::min(model.limits().max_width, model.limits().tree_slots + 1);
  plan.max_context = std::max(16u, model.limits().context - std::min(model.limits().context, deepest));
  plan.budget_s = budget_s;
  return plan;
}

}  // namespace canopy
