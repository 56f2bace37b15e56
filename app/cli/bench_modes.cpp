#include "app/cli/bench_modes.h"

#include <algorithm>
#include <cmath>
#include <map>
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
  bool identical = true;
};

/// In place of a category's name, for all prompts. No file has a category of that name.
constexpr const char* all_prompts = "";

class ModesBench {
 public:
  ModesBench(Engine& model, const std::vector<BenchPrompt>& prompts, const ModesSettings& settings,
             const ModesCallbacks& callbacks)
      : model_(model), prompts_(prompts), settings_(settings), callbacks_(callbacks) {
    for (const BenchPrompt& prompt : prompts) {
      if (std::ranges::find(categories_, prompt.category) == categories_.end()) categories_.push_back(prompt.category);
    }
    categories_.push_back(all_prompts);
    total_ = prompts.size() * settings.ways.size() * settings.repeats;
    ar_ids_.resize(prompts.size());
  }

  ModesResult run() {
    bool going = warm_up();
    uint32_t whole = 0;
    while (going && whole < settings_.repeats) {
      for (size_t i = 0; going && i < prompts_.size(); ++i) going = run_prompt(i, whole);
      if (going) ++whole;
    }
    // A repeat that was stopped early had other prompts than the whole ones, so it does not count beside them.
    const bool partly = whole == 0 && finished_prompts_ > 0;
    if (whole == 0 && !partly) throw cancelled("The measurement was stopped before any prompt was through all modes.");
    return summary(partly ? 1 : whole, partly ? finished_prompts_ : prompts_.size());
  }

 private:
  using Key = std::tuple<std::string, size_t, uint32_t>;  // category, way, repeat

  /// Runs short replies, so that compiling and recording kernels for new widths does not count for the first reply.
  bool warm_up() {
    constexpr uint32_t tokens = 8;
    if (!read_ahead(model_, prompts_.front().ids, callbacks_.stop)) return false;
    return std::ranges::all_of(settings_.ways, [&](const WayToDecode& way) {
      return reply(prompts_.front(), way, tokens).reason != FinishReason::cancelled;
    });
  }

  Reply reply(const BenchPrompt& prompt, const WayToDecode& way, uint32_t max_tokens) {
    ReplyCallbacks callbacks;
    callbacks.stop = callbacks_.stop;
    return model_.reply(prompt.ids, way.settings(settings_.policy, max_tokens), callbacks);
  }

  /// Answers a prompt in all ways. The measurements count only if all of them ended; false when the run was stopped.
  bool run_prompt(size_t index, uint32_t repeat) {
    const BenchPrompt& prompt = prompts_[index];
    if (!read_ahead(model_, prompt.ids, callbacks_.stop)) return false;
    std::vector<Reply> replies;
    for (const WayToDecode& way : settings_.ways) {
      if (callbacks_.progress) callbacks_.progress(done_, total_);
      replies.push_back(reply(prompt, way, settings_.max_tokens));
      if (replies.back().reason == FinishReason::cancelled) return false;
      ++done_;
    }
    if (repeat == 0) ar_ids_[index] = replies.front().ids;
    for (size_t way = 0; way < replies.size(); ++way) {
      const bool identical = replies[way].ids == ar_ids_[index];
      for (const std::string& category : {prompt.category, std::string(all_prompts)}) {
        add_reply({category, way, repeat}, replies[way], identical);
      }
    }
    if (repeat == 0) ++finished_prompts_;
    return true;
  }

  void add_reply(const Key& key, const Reply& reply, bool identical) {
    Cell& cell = cells_[key];
    ++cell.replies;
    cell.identical = cell.identical && identical;
    for (const RoundRecord& round : reply.rounds) {
      cell.statistics.add(round);
      if (round.width == 1 || drafted_part(round).cut) continue;
      cell.promises.emplace_back(expected_tokens(round), static_cast<double>(round.emitted.size()));
    }
  }

  ModesResult summary(uint32_t repeats, uint64_t prompts) {
    ModesResult result{.repeats = repeats, .prompts = prompts, .modes = {}};
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
    result.category = category == all_prompts ? all_categories : category;
    std::vector<double> speeds, ratios;
    double host_ms = 0, total_ms = 0;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
      const Cell& cell = cells_.at({category, way, repeat});
      const RoundTimes& ms = cell.statistics.ms();
      result.replies += cell.replies;
      result.rounds += cell.statistics.rounds();
      result.tokens += cell.statistics.emitted();
      result.identical_to_ar = result.identical_to_ar && cell.identical;
      for (const auto& [expected, emitted] : cell.promises) result.expectation.add(expected, emitted);
      host_ms += ms.build + ms.walk + ms.other;
      total_ms += ms.total();
      speeds.push_back(cell.statistics.tokens_per_second());
      const double plain = cells_.at({category, 0, repeat}).statistics.tokens_per_second();
      ratios.push_back(plain > 0 ? speeds.back() / plain : 0);
    }
    if (result.rounds > 0) result.tau = static_cast<double>(result.tokens) / static_cast<double>(result.rounds);
    if (total_ms > 0) result.host_share = host_ms / total_ms;
    result.tokens_per_second = spread_of(speeds);
    result.times_ar = spread_of(ratios);
    return result;
  }

  const Engine& model_;
  const std::vector<BenchPrompt>& prompts_;
  const ModesSettings& settings_;
  const ModesCallbacks& callbacks_;
  std::vector<std::string> categories_;
  std::map<Key, Cell> cells_;
  std::vector<std::vector<uint32_t>> ar_ids_;  // by prompt, of plain decoding in the first repeat
  uint64_t done_ = 0, total_ = 0;              // replies
  uint64_t finished_prompts_ = 0;              // of the first repeat
};

}  // namespace

std::string WayToDecode::name() const {
  std::string name(to_string(mode));
  return budget > 0 ? name + " " + std::to_string(budget) : name;
}

ReplySettings WayToDecode::settings(CostPolicy policy, uint32_t max_tokens) const {
  ReplySettings settings;
  settings.mode = mode;
  if (budget > 0) settings.budget = budget;
  settings.policy = policy;
  settings.max_tokens = max_tokens;
  return settings;
}

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  if (values.empty()) return spread;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) spread.mean += value / count;
  if (values.size() == 1) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.sd = std::sqrt(squares / (count - 1));
  return spread;
}

ModesResult measure_modes(Engine& model, const std::vector<BenchPrompt>& prompts, const ModesSettings& settings,
                          const ModesCallbacks& callbacks) {
  return ModesBench(model, prompts, settings, callbacks).run();
}

bool read_ahead(const Engine& model, const std::vector<uint32_t>& prompt, const std::stop_token& stop) {
  // The drafter reads the prompt's features with its first draft, and a reply of fewer than three tokens has none.
  ReplySettings settings;
  settings.mode = DecodeMode::chain;
  settings.max_tokens = 3;
  ReplyCallbacks callbacks;
  callbacks.stop = stop;
  return model.reply(prompt, settings, callbacks).reason != FinishReason::cancelled;
}

double expected_tokens(const RoundRecord& record) {
  if (const WidthForecast* chosen = chosen_candidate(record)) return chosen->expected;
  double expected = 1;
  for (size_t i = 1; i < record.nodes.size(); ++i) expected += std::exp(double{record.nodes[i].node.score});
  return expected;
}

}  // namespace canopy::cli
