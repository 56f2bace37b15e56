#include "engine/speculation/round_record.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/base/error.h"

namespace canopy {
namespace {

constexpr std::array<std::string_view, 4> mode_names = {"ar", "chain", "tree", "adaptive"};

}  // namespace

std::string_view to_string(DecodeMode mode) {
  return mode_names.at(static_cast<size_t>(mode));
}

std::optional<DecodeMode> decode_mode_of(std::string_view name) {
  for (size_t i = 0; i < mode_names.size(); ++i) {
    if (mode_names[i] == name) return static_cast<DecodeMode>(i);
  }
  return std::nullopt;
}

namespace {

constexpr uint32_t every_width_up_to = 64;
constexpr uint32_t coarse_step = 16;
// A chain is chosen only if its expected tokens exceed those of the best tree by this share.
constexpr double chain_margin = 0.02;

constexpr uint32_t shown_all_up_to = 40;
constexpr uint32_t kShown = 64;

}  // namespace

uint32_t WidthLimits::widest() const {
  return std::min(budget == none ? none : budget + 1, rows);
}

uint32_t WidthLimits::deepest() const {
  const auto less_one = [](uint32_t limit) { return limit == 0 ? 0 : limit - 1; };
  return std::min({depth, tokens_left == none ? none : less_one(tokens_left),
                   context_left == none ? none : less_one(context_left)});
}

double worth(const WidthCurves& curves, double expected, double ms) {
  return curves.objective == WidthObjective::per_round ? expected / ms : expected - curves.tokens_per_ms * ms;
}

bool may_occur(uint32_t width, uint32_t built) {
  return width <= every_width_up_to || width % coarse_step == 0 || width == built;
}

WidthChoice choose_width(const WidthCurves& curves) {
  const auto forecast = [&](std::span<const double> emitted, uint32_t width) {
    return WidthForecast{width, emitted[width - 1], curves.ms[width - 1]};
  };
  const auto allowed = [&](uint32_t width) { return curves.ms[width - 1] <= curves.longest_ms; };
  const auto value = [&](const WidthForecast& f) { return worth(curves, f.expected, f.ms); };

  WidthChoice choice;
  choice.best = forecast(curves.tree, 1);
  const auto choose = [&](DecodeMode shape, const WidthForecast& best) {
    choice.shape = shape;
    choice.best = best;
  };
  const auto built = static_cast<uint32_t>(curves.tree.size());
  for (uint32_t width = 2; width <= built; ++width) {
    if (!may_occur(width, built) || !allowed(width)) continue;
    const WidthForecast tree = forecast(curves.tree, width);
    if (value(tree) > value(choice.best)) choose(DecodeMode::tree, tree);
  }
  for (uint32_t width = 2; width <= curves.chain.size(); ++width) {
    if (!allowed(width)) continue;
    const WidthForecast chain = forecast(curves.chain, width);
    const WidthForecast handicapped{width, chain.expected * (1 - chain_margin), chain.ms};
    const bool over_a_chain = choice.shape == DecodeMode::chain;
    if (value(over_a_chain ? chain : handicapped) > value(choice.best)) choose(DecodeMode::chain, chain);
  }
  return choice;
}

std::vector<WidthForecast> forecasts(const WidthCurves& curves, uint32_t chosen) {
  const auto built = static_cast<uint32_t>(curves.tree.size());
  // Beyond the narrow ones a geometric ladder that reaches `built` in the places left, but for chosen and widest.
  const double ratio = std::max(
      1.0, std::pow(double{static_cast<double>(built)} / shown_all_up_to, 1.0 / (kShown - shown_all_up_to - 2)));
  std::vector<WidthForecast> result;
  double next = 1;
  for (uint32_t width = 1; width <= built; ++width) {
    if (width >= next || width == chosen || width == built) {
      result.push_back({width, curves.tree[width - 1], curves.ms[width - 1]});
    }
    if (width >= next) next = width < shown_all_up_to ? width + 1 : std::max(next * ratio, width + 1.0);
  }
  return result;
}

namespace {

[[noreturn]] void refuse(const RoundRecord& record, const std::string& what) {
  throw bad_input("The record of pass " + std::to_string(record.round) + " is wrong: " + what);
}

/// Finite and not negative.
void check_amount(const RoundRecord& record, std::string_view field, double value) {
  if (std::isfinite(value) && value >= 0) return;
  refuse(record, "its " + std::string(field) + " is " + std::to_string(value) + "; a number from 0 on is allowed.");
}

void check_times(const RoundRecord& record, const RoundTimes& times) {
  for (const double ms : {times.draft, times.build, times.verify, times.walk, times.commit, times.other}) {
    check_amount(record, "time of a stage", ms);
  }
}

void check_counts(const RoundRecord& record) {
  if (record.shape == DecodeMode::adaptive) refuse(record, "its shape is adaptive; ar, chain and tree are allowed.");
  if (record.width == 0 || record.width > max_round_width) {
    refuse(record,
           "its width is " + std::to_string(record.width) + "; allowed: 1 to " + std::to_string(max_round_width) + ".");
  }
  const bool plain = record.width == 1 && record.nodes.empty();
  if (!plain && record.nodes.size() != record.width) {
    refuse(record, "it has " + std::to_string(record.nodes.size()) + " nodes; its width is " +
                       std::to_string(record.width) + ".");
  }
  if (record.accepted >= record.width) {
    refuse(record, std::to_string(record.accepted) + " drafted tokens were accepted of a pass of width " +
                       std::to_string(record.width) + ".");
  }
  if (!(record.distinct_experts >= 0 && record.distinct_experts <= max_distinct_experts)) {
    refuse(record, "its rows went through " + std::to_string(record.distinct_experts) + " experts; allowed: 0 to " +
                       std::to_string(max_distinct_experts) + ".");
  }
  if (record.emitted.size() > size_t{record.accepted} + 1) {
    refuse(record, "it emitted " + std::to_string(record.emitted.size()) + " tokens with " +
                       std::to_string(record.accepted) + " accepted; at most one more is allowed.");
  }
}

void check_node(const RoundRecord& record, size_t index) {
  const RoundNode& row = record.nodes[index];
  const TreeNode& node = row.node;
  const std::string name = "node " + std::to_string(index);
  if (index == 0) {
    if (node.parent != TreeNode::none || node.depth != 0) refuse(record, "node 0 is not the root of its tree.");
    if (row.state != NodeState::accepted) refuse(record, "its root is not accepted.");
  } else {
    if (node.parent >= index) {
      refuse(record,
             name + " has the parent " + std::to_string(node.parent) + "; an earlier node of the tree is allowed.");
    }
    const uint32_t depth = record.nodes[node.parent].node.depth + 1;
    if (node.depth != depth || depth > max_round_depth) {
      refuse(record, name + " has the depth " + std::to_string(node.depth) + "; its parent's and one are " +
                         std::to_string(depth) + ", and at most " + std::to_string(max_round_depth) + " is allowed.");
    }
  }
  if (!std::isfinite(node.log_q) || !std::isfinite(node.score)) {
    refuse(record, name + " has a log q of " + std::to_string(node.log_q) + " and a score of " +
                       std::to_string(node.score) + "; numbers are allowed.");
  }
  if (node.went_on.times > node.went_on.places) {
    refuse(record, name + " went on " + std::to_string(node.went_on.times) + " times at " +
                       std::to_string(node.went_on.places) + " places; at most as many times are allowed.");
  }
  if (row.log_p == std::numeric_limits<float>::infinity()) refuse(record, name + " has an infinite log p.");
}

void check_choice(const RoundRecord& record) {
  const RoundChoice& choice = record.choice;
  uint32_t last = 0;
  for (const WidthForecast& candidate : choice.candidates) {
    if (candidate.width <= last || candidate.width > max_round_width) {
      refuse(record, "a candidate's width is " + std::to_string(candidate.width) + " behind one of " +
                         std::to_string(last) + "; ascending widths up to " + std::to_string(max_round_width) +
                         " are allowed.");
    }
    last = candidate.width;
    check_amount(record, "expected tokens of a candidate", candidate.expected);
    check_amount(record, "predicted time of a candidate", candidate.ms);
  }
  check_amount(record, "rate of plain decoding", choice.ar_tokens_per_second);
  if (choice.reason.size() > max_reason_bytes) {
    refuse(record, "its reason has " + std::to_string(choice.reason.size()) + " bytes; at most " +
                       std::to_string(max_reason_bytes) + " are allowed.");
  }
}

}  // namespace

void validate(const RoundRecord& record) {
  check_counts(record);
  for (size_t i = 0; i < record.nodes.size(); ++i) check_node(record, i);
  check_times(record, record.ms);
  check_times(record, record.device_ms);
  check_times(record, record.predicted);
  check_choice(record);
}

DraftSources proposed_by(const TreeNode& node) {
  const DraftSources free = (node.sources & kFreeSources) != 0 ? kFromSuffix : 0;
  const DraftSources model = (node.sources & kFromModels) != 0 ? kFromDflash : 0;
  const auto known = static_cast<DraftSources>(model | free);
  return known != 0 ? known : kFromDflash;
}

DraftSources guessed_by(const RoundRecord& record) {
  DraftSources sources = record.ms.draft > 0 ? kFromDflash : DraftSources{0};
  for (size_t i = 1; i < record.nodes.size(); ++i) sources |= proposed_by(record.nodes[i].node);
  // Of a round whose nodes were let go it is still known whether a drafter was asked.
  if (record.nodes.empty() && record.width > 1 && sources == 0) sources = record.match > 0 ? kFromSuffix : kFromDflash;
  return sources;
}

bool is_plain(const RoundRecord& round) {
  return round.shape == DecodeMode::ar && round.ms.draft == 0 && round.emitted.size() == 1 && round.teaches &&
         round.ms.total() > 0;
}

PlainBeside median_pass(std::vector<double> ms, bool own) {
  const auto middle = ms.begin() + static_cast<std::ptrdiff_t>(ms.size() / 2);
  std::nth_element(ms.begin(), middle, ms.end());
  return {*middle, static_cast<uint32_t>(ms.size()), own};
}

const WidthForecast* chosen_candidate(const RoundRecord& record) {
  const auto& candidates = record.choice.candidates;
  const auto found = std::ranges::lower_bound(candidates, record.width, {}, &WidthForecast::width);
  return found != candidates.end() && found->width == record.width ? &*found : nullptr;
}

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop_token: return "stop token";
    case FinishReason::max_tokens: return "token limit";
    case FinishReason::context_full: return "context full";
    case FinishReason::cancelled: return "cancelled";
    case FinishReason::failed: return "failed";
    case FinishReason::repeats: return "repeats itself";
  }
  return "?";
}

}  // namespace canopy
