#include "app/cli/bench_modes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/base/error.h"

namespace canopy::cli {
namespace {

/// The measurements of one way in one category and one repeat.
struct Cell {
  RoundStatistics statistics;
  // Expected and emitted tokens of rounds whose draft was not cut by the reply's end.
  std::vector<std::pair<double, double>> promises;
  uint64_t replies = 0;
};

/// Contexts that are told together: below 512, and from each power of two up to the next.
std::pair<uint32_t, uint32_t> contexts_like(uint32_t context) {
  constexpr uint32_t least = 512;
  const uint32_t first = std::bit_floor(context);
  return context < least ? std::pair(0u, least) : std::pair(first, 2 * first);
}

/// In place of a category's name, for all prompts. No file has a category of that name.
constexpr const char* every_category = "";

class ModesBench {
 public:
  ModesBench(Engine& model, const std::vector<BenchPrompt>& prompts, const ModesSettings& settings,
             const ModesCallbacks& callbacks)
      : model_(model), settings_(settings), callbacks_(callbacks) {
    for (const BenchPrompt& prompt : prompts) {
      if (std::ranges::find(categories_, prompt.category) == categories_.end()) categories_.push_back(prompt.category);
      sweep_.prompts.push_back({{}, prompt.category, {}});
      prompts_.push_back({{}, prompt.ids});
    }
    categories_.push_back(every_category);
    sweep_.subjects.emplace_back();
    for (const WayToDecode& way : settings.ways) sweep_.contestants.push_back({way, 0});
    sweep_.settings.policy = settings.policy;
    sweep_.settings.repeats = settings.repeats;
    sweep_.settings.max_tokens = settings.max_tokens;
  }

  ModesResult run() {
    RunnerCallbacks callbacks;
    callbacks.stop = callbacks_.stop;
    callbacks.begin = [this](const RunKey&, uint64_t done, uint64_t total, double) {
      if (callbacks_.progress) callbacks_.progress(done, total);
    };
    callbacks.made = [this](const RunnerReply& made) { take(made.run.key, made.reply); };
    run_comparison(sweep_, {ComparisonWriter{&model_, nullptr, nullptr, {}}}, prompts_, callbacks);
    const uint64_t all = sweep_.prompts.size();
    const auto whole = static_cast<uint32_t>(finished_prompts_ / all);
    // A repeat that was stopped early had other prompts than the whole ones, so it does not count beside them.
    if (finished_prompts_ == 0) throw cancelled("The measurement was stopped before any prompt was through all modes.");
    return summary(std::max(1u, whole), whole > 0 ? all : finished_prompts_);
  }

 private:
  /// Expected and emitted tokens; nothing where none were drafted or the reply's end cut them.
  static std::optional<std::pair<double, double>> promise_of(const RoundRecord& round) {
    if (round.width == 1 || drafted_part(round).cut) return std::nullopt;
    return std::pair(expected_tokens(round), static_cast<double>(round.emitted.size()));
  }

  using Key = std::tuple<std::string, size_t, uint32_t>;  // category, way, repeat

  /// Replies to a prompt count once all ways wrote one; the runner makes them one behind the other.
  void take(const RunKey& key, const Reply& reply) {
    block_.emplace_back(key, reply);
    if (block_.size() < settings_.ways.size()) return;
    for (const auto& [run, written] : block_) {
      for (const std::string& category : {sweep_.prompts[run.prompt].category, std::string(every_category)})
        add_reply({category, run.contestant, run.repeat}, written);
      add_contexts(run.contestant, written);
    }
    block_.clear();
    ++finished_prompts_;
  }

  void add_reply(const Key& key, const Reply& reply) {
    Cell& cell = cells_[key];
    ++cell.replies;
    for (const RoundRecord& round : reply.rounds) {
      cell.statistics.add(round);
      if (const auto promise = promise_of(round)) cell.promises.push_back(*promise);
    }
  }

  void add_contexts(size_t way, const Reply& reply) {
    for (const RoundRecord& round : reply.rounds) {
      const auto [first, end] = contexts_like(round.context);
      ContextResult& like = contexts_[{first, way}];
      like.way = settings_.ways[way];
      like.first = first;
      like.end = end;
      like.statistics.add(round);
      if (const auto promise = promise_of(round)) like.expectation.add(promise->first, promise->second);
    }
  }

  bool identical(const std::string& category, size_t way) const {
    return std::ranges::none_of(sweep_.runs, [&](const MeasuredRun& run) {
      const bool counts = category == every_category || sweep_.prompts[run.key.prompt].category == category;
      return counts && run.key.contestant == way && run.differs_at;
    });
  }

  ModesResult summary(uint32_t repeats, uint64_t prompts) {
    ModesResult result{.repeats = repeats, .prompts = prompts, .modes = {}, .contexts = {}};
    for (const auto& [key, like] : contexts_) result.contexts.push_back(like);
    for (const std::string& category : categories_) {
      for (size_t way = 0; way < settings_.ways.size(); ++way) {
        if (!cells_.contains({category, way, 0})) continue;  // stopped before this category
        result.modes.push_back(summary(category, way, repeats));
      }
    }
    return result;
  }

  ModeResult summary(const std::string& category, size_t way, uint32_t repeats) {
    ModeResult result;
    result.way = settings_.ways[way];
    result.category = category == every_category ? all_categories : category;
    std::vector<double> speeds;
    std::vector<std::pair<double, double>> pairs;
    result.identical_to_ar = identical(category, way);
    double host_ms = 0, total_ms = 0;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
      const Cell& cell = cells_.at({category, way, repeat});
      const RoundTimes& ms = cell.statistics.ms();
      result.replies += cell.replies;
      result.rounds += cell.statistics.rounds();
      result.tokens += cell.statistics.emitted();
      for (const auto& [expected, emitted] : cell.promises) result.expectation.add(expected, emitted);
      host_ms += ms.build + ms.walk + ms.other;
      total_ms += ms.total();
      speeds.push_back(cell.statistics.tokens_per_second());
      pairs.emplace_back(speeds.back(), cells_.at({category, 0, repeat}).statistics.tokens_per_second());
    }
    if (result.rounds > 0) result.tau = static_cast<double>(result.tokens) / static_cast<double>(result.rounds);
    if (total_ms > 0) result.host_share = host_ms / total_ms;
    result.tokens_per_second = spread_of(speeds);
    result.times_ar = ratio_of_pairs(pairs);
    return result;
  }

  const Engine& model_;
  const ModesSettings& settings_;
  const ModesCallbacks& callbacks_;
  Sweep sweep_;
  std::vector<RunnerPrompt> prompts_;
  std::vector<std::string> categories_;
  std::map<Key, Cell> cells_;
  std::map<std::pair<uint32_t, size_t>, ContextResult> contexts_;  // by the first position and the way
  std::vector<std::pair<RunKey, Reply>> block_;                    // of the prompt under way
  uint64_t finished_prompts_ = 0;                                  // of all repeats
};

}  // namespace

ModesResult measure_modes(Engine& model, const std::vector<BenchPrompt>& prompts, const ModesSettings& settings,
                          const ModesCallbacks& callbacks) {
  return ModesBench(model, prompts, settings, callbacks).run();
}

double expected_tokens(const RoundRecord& record) {
  if (const WidthForecast* chosen = chosen_candidate(record)) return chosen->expected;
  double expected = 1;
  for (size_t i = 1; i < record.nodes.size(); ++i) expected += std::exp(double{record.nodes[i].node.score});
  return expected;
}

}  // namespace canopy::cli
