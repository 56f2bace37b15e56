#include "engine/speculation/beam_draft.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace canopy {

std::vector<uint32_t> path_lengths(std::span<const uint32_t> behind, uint32_t candidates) {
  std::vector<uint32_t> lengths(behind.size(), 0);
  for (size_t i = 1; i < behind.size(); ++i) lengths[i] = lengths[behind[i] / candidates] + 1;
  return lengths;
}

std::vector<uint32_t> BlockDraft::beams() const {
  std::vector<uint32_t> counts;
  if (in_one_pass) return counts;
  for (const uint32_t length : path_lengths(behind, candidates)) {
    if (length == 0) continue;
    if (counts.size() < length) counts.resize(length);
    ++counts[length - 1];
  }
  return counts;
}

void add_list(std::span<const uint32_t> tokens, std::span<const float> logits, float log_sum_exp, uint32_t vocabulary,
              BlockDraft& draft) {
  const size_t first = draft.tokens.size(), end = first + draft.candidates;
  for (size_t i = 0; i < tokens.size() && draft.tokens.size() < end; ++i) {
    if (tokens[i] >= vocabulary || !std::isfinite(logits[i])) continue;
    draft.tokens.push_back(tokens[i]);
    draft.logits.push_back(logits[i]);
  }
  constexpr float improbable = 30;
  float least = draft.tokens.size() > first ? draft.logits.back() : log_sum_exp;
  for (uint32_t token = 0; draft.tokens.size() < end; ++token) {
    if (std::find(draft.tokens.begin() + static_cast<std::ptrdiff_t>(first), draft.tokens.end(), token) !=
        draft.tokens.end())
      continue;
    draft.tokens.push_back(token);
    draft.logits.push_back(least -= improbable);
  }
  draft.log_sum_exp.push_back(log_sum_exp);
}

namespace {

/// A path that a pass could go on with.
struct OpenPath {
  double score = 0;        // calibrated log p
  uint32_t candidate = 0;  // BlockDraft::behind of the list that would be behind it
};

/// How many of them, the most probable first, are worth a pass; 0: none.
uint32_t worth_a_pass(std::span<const OpenPath> best, std::span<const double> costs) {
  if (costs.empty()) return 1;
  uint32_t count = 0;
  double sum = 0, most = 0;
  for (uint32_t i = 0; i < std::min(best.size(), costs.size()); ++i) {
    sum += std::exp(best[i].score);
    if (sum - costs[i] < most) continue;
    most = sum - costs[i];
    count = i + 1;
  }
  return count;
}

double log_q_of_candidate(const DepthCandidates& list, uint32_t rank) {
  return std::min(0.0, double{list.logits[rank]} - list.log_sum_exp);
}

/// An empty draft behind the root, and the tree of the root alone.
void begin_draft(uint32_t root, bool in_one_pass, DraftTree& run, BlockDraft& draft) {
  run.reset(root);
  draft.depths = 0;
  draft.tokens.clear();
  draft.logits.clear();
  draft.log_sum_exp.clear();
  draft.behind.assign(1, BlockDraft::none);
  draft.in_one_pass = in_one_pass;
}

bool is_before(const OpenPath& a, const OpenPath& b) {
  return a.score != b.score ? a.score > b.score : a.candidate < b.candidate;
}

void require_lists(const DraftTree& run, const BlockDraft& draft) {
  if (draft.lists() != run.width()) throw std::logic_error("A pass of a draft gave other lists than were wanted.");
}

/// Adds the nodes that these paths end in, which are to be run.
void add_paths(std::span<const OpenPath> paths, DraftTree& run, BlockDraft& draft) {
  for (const OpenPath& path : paths) {
    const uint32_t node = path.candidate / draft.candidates, rank = path.candidate % draft.candidates;
    run.add(node, draft.tokens[path.candidate], rank, log_q_of_candidate(draft.list(node), rank), path.score,
            kFromDraft);
    draft.behind.push_back(path.candidate);
  }
}

/// The `count` most probable paths of all lists, the first of equal ones in the order of the lists. Where calibrated
/// probabilities of a list are more than 1 together, they share that, as in a tree (TreeBuilder).
void list_best(const DraftTree& run, const BlockDraft& draft, const DraftWish& wish, size_t count,
               std::vector<OpenPath>& best) {
  best.clear();
  for (uint32_t node = 0; node < run.width(); ++node) {
    const DepthCandidates list = draft.list(node);
    const size_t depth = std::min<size_t>(run[node].depth, std::max<size_t>(wish.calibration.size(), 1) - 1);
    const DepthCalibration c = wish.calibration.empty() ? DepthCalibration{} : wish.calibration[depth];
    double sum = 0;
    for (uint32_t rank = 0; rank < draft.candidates; ++rank) {
      const double gain = std::min(0.0, c.scale * log_q_of_candidate(list, rank) + c.shift);
      sum += std::exp(gain);
      best.push_back({run[node].score + gain, node * draft.candidates + rank});
    }
    if (sum <= 1) continue;
    for (OpenPath& path : std::span(best).last(draft.candidates)) path.score -= std::log(sum);
  }
  count = std::min(count, best.size());
  std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(count), best.end(), is_before);
  best.resize(count);
}

}  // namespace

bool draft_paths(NodeRunner& runner, uint32_t root, const DraftWish& wish, DraftTree& run, BlockDraft& draft,
                 const std::stop_token& stop) {
  begin_draft(root, true, run, draft);
  std::vector<OpenPath> best, open;
  for (uint32_t first = 0;;) {
    if (!runner.run(run, first, draft, stop)) return false;
    require_lists(run, draft);
    for (uint32_t node = first; node < run.width(); ++node) draft.depths = std::max(draft.depths, run[node].depth + 1);
    open.clear();
    if (run.width() > kMostPaths) return true;
    if (wish.nodes == 0) {
      const uint32_t last = run.width() - 1;
      const double score = run[last].score + log_q_of_candidate(draft.list(last), 0);
      if (draft.depths < wish.depths) open.push_back({score, last * draft.candidates});
    } else {
      list_best(run, draft, wish, std::min(wish.nodes, kMostPaths), best);
      for (const OpenPath& path : best) {
        const bool ends = run[path.candidate / draft.candidates].depth + 2 > wish.depths;
        if (ends || std::ranges::find(draft.behind, path.candidate) != draft.behind.end()) continue;
        open.push_back(path);
        if (open.size() == std::min(kMostBeams, kMostPaths + 1 - run.width())) break;
      }
    }
    if (open.empty()) return true;
    first = run.width();
    add_paths(open, run, draft);
  }
}

bool draft_beams(NodeRunner& runner, uint32_t root, const DraftWish& wish, DraftTree& run, BlockDraft& draft,
                 const std::stop_token& stop) {
  begin_draft(root, false, run, draft);
  std::vector<OpenPath> open;
  for (uint32_t first = 0;;) {
    if (!runner.run(run, first, draft, stop)) return false;
    require_lists(run, draft);
    if (++draft.depths >= wish.depths) return true;
    const size_t depth = draft.depths - 1;  // of the lists' nodes
    const DepthCalibration c = depth < wish.calibration.size() ? wish.calibration[depth] : DepthCalibration{};
    open.clear();
    for (uint32_t node = first; node < run.width(); ++node) {
      const DepthCandidates list = draft.list(node);
      for (uint32_t rank = 0; rank < draft.candidates; ++rank) {
        const double gain = std::min(0.0, c.scale * log_q_of_candidate(list, rank) + c.shift);
        open.push_back({run[node].score + gain, node * draft.candidates + rank});
      }
    }
    const size_t most = std::min<size_t>(kMostBeams, open.size());
    std::partial_sort(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(most), open.end(), is_before);
    const uint32_t count = worth_a_pass(std::span(open).first(most), wish.costs);
    if (count == 0) return true;
    first = run.width();
    add_paths(std::span(open).first(count), run, draft);
  }
}

}  // namespace canopy
