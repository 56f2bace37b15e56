#include "app/cli/bench_measure.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <span>

#include "engine/base/error.h"
#include "engine/model/state_line.h"

namespace canopy::cli {
namespace {

class Bench {
 public:
  Bench(Model& model, const BenchSettings& settings, const std::function<void(const char*)>& step,
        const std::stop_token& stop)
      : model_(model), settings_(settings), step_(step), stop_(stop) {}

  BenchResult run() {
    measure_peak();
    step_("warming up");
    commit(settings_.context);
    for (const uint32_t width : settings_.widths) pass(width);
    decode_ms();
    step_("measuring passes");
    std::map<uint32_t, std::vector<double>> passes, shares;
    double before = sample_rate();
    for (uint32_t repeat = 0; repeat < settings_.repeats; ++repeat) {
      for (const uint32_t width : settings_.widths) {
        passes[width].push_back(pass(width));
        const double after = sample_rate();
        const double fma_ms = model_.pass_flops(width, width, settings_.context + 1) / ((before + after) / 2 * 1e6);
        shares[width].push_back(fma_ms / passes[width].back());
        before = after;
      }
    }
    for (const auto& [width, times] : passes) {
      result_.pass_ms[width] = median(times);
      result_.best_pass_ms[width] = *std::ranges::min_element(times);
    }
    for (const auto& [width, values] : shares) result_.share_of_fma_peak[width] = median(values);
    measure_decode();
    measure_prefill();
    measure_peak();
    rate();
    return result_;
  }

 private:
  uint32_t token(uint32_t position) const { return (position * 7919 + 13) % model_.config().vocab; }

  /// Runs f, which runs a pass, and returns its milliseconds. Throws cancelled if the pass was not completed.
  template <class F>
  double time(F&& f) {
    const auto start = std::chrono::steady_clock::now();
    const ForwardOutput output = f();
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (!output.completed()) throw cancelled("The measurement was cancelled.");
    return ms;
  }

  void measure_peak() {
    step_("measuring the device's peak");
    result_.peak.raise_to(model_.device().measure_peak());
  }

  double sample_rate() {
    const double rate = model_.device().sample_fma_rate();
    result_.peak.raise_to({.fma_gflop_s = rate});
    return rate;
  }

  /// Commits positions 0 ... count - 1, in chunks. Returns milliseconds.
  double commit(uint32_t count) {
    double total = 0;
    states_ = StateLine(model_.states());
    for (uint32_t first = 0; first < count;) {
      const uint32_t end = std::min(count, first + settings_.prefill_chunk);
      RowBatch batch;
      for (; first < end; ++first) batch.add_text(token(first), first);
      ForwardInput input{batch};
      if (end == count) input = {batch, HeadOutput::argmax, {batch.width() - 1}};
      input.states = states_.next();
      total += time([&] { return model_.forward(input, stop_); });
      states_.take(batch.width());
    }
    return total;
  }

  /// One verification pass over a binary tree of this many rows, with the target's choice at each. Returns
  /// milliseconds.
  double pass(uint32_t width) {
    RowBatch batch;
    for (uint32_t i = 0; i < width; ++i) {
      const int32_t parent = i == 0 ? -1 : static_cast<int32_t>((i - 1) / 2);
      batch.add_node(token(i), model_.limits().context + i, settings_.context, parent);
    }
    std::vector<uint32_t> rows(width);
    std::iota(rows.begin(), rows.end(), 0u);
    ForwardInput input{batch, HeadOutput::argmax, rows};
    states_.pretend(settings_.context);
    input.states = states_.here();
    return time([&] {
      ForwardOutput output = model_.forward(input, stop_);
      count_experts(output);
      return output;
    });
  }

  void count_experts(const ForwardOutput& output) {
    const std::span<const uint32_t> experts = output.distinct_experts();
    if (experts.empty()) return;
    const double sum = std::accumulate(experts.begin(), experts.end(), 0.0);
    result_.distinct_experts[output.width()] = sum / static_cast<double>(experts.size());
  }

  /// The median time of a decoded token, in milliseconds.
  double decode_ms() {
    std::vector<double> times;
    uint32_t next = token(settings_.context);
    for (uint32_t i = 0; i < settings_.decode_tokens; ++i) {
      RowBatch batch;
      batch.add_text(next, settings_.context + i);
      ForwardInput input{batch, HeadOutput::argmax, {0}};
      states_.pretend(settings_.context + i);
      input.states = states_.next();
      times.push_back(time([&] {
        ForwardOutput output = model_.forward(input, stop_);
        if (output.completed()) next = std::min(output.choices()[0], model_.config().vocab - 1);
        return output;
      }));
      states_.take(1);
    }
    return median(times);
  }

  void measure_decode() {
    step_("measuring decoding");
    result_.decode_tokens_per_second = 1000.0 / decode_ms();
  }

  void measure_prefill() {
    step_("measuring prefill");
    commit(settings_.prefill_tokens);  // compiles the widths it needs, so that they are not timed
    std::vector<double> times;
    for (uint32_t i = 0; i < std::min(settings_.repeats, 3u); ++i) times.push_back(commit(settings_.prefill_tokens));
    result_.prefill_tokens_per_second = 1000.0 * settings_.prefill_tokens / median(times);
  }

  void rate() {
    const ModelLimits& limits = model_.limits();
    const double cached = static_cast<double>(model_.memory().cache) / limits.slots() * settings_.context;
    for (const auto& [width, ms] : result_.pass_ms) {
      const double flops = model_.pass_flops(width, width, settings_.context + 1);
      const double product_ms = flops / (result_.peak.product_gflop_s() * 1e6);
      const auto experts = result_.distinct_experts.find(width);
      const double weights = experts == result_.distinct_experts.end() ? static_cast<double>(model_.pass_bytes())
                                                                       : model_.pass_bytes(experts->second);
      const double read_ms = (weights + cached) / (result_.peak.read_gb_s * 1e6);
      result_.share_of_plain_fma[width] =
          result_.share_of_fma_peak[width] * result_.peak.fma_gflop_s / result_.peak.plain_fma_gflop_s;
      if (result_.peak.matrix_gflop_s > 0) result_.share_of_matrix_peak[width] = product_ms / ms;
      result_.share_of_roofline[width] = std::max(product_ms, read_ms) / ms;
    }
  }

  Model& model_;
  StateLine states_{model_.states()};  // of recurrent layers, of the text that passes stand behind
  const BenchSettings& settings_;
  const std::function<void(const char*)>& step_;
  std::stop_token stop_;
  BenchResult result_;
};

}  // namespace

std::vector<uint32_t> standard_widths() {
  std::vector<uint32_t> widths(18);
  std::iota(widths.begin(), widths.end(), 1u);
  widths.insert(widths.end(), {20, 24, 28, 32, 40, 48, 64, 96, 128});
  return widths;
}

std::map<uint32_t, double> steps_of(const BenchResult& result) {
  std::map<uint32_t, double> steps;
  for (auto wider = result.best_pass_ms.begin(); wider != result.best_pass_ms.end(); ++wider) {
    if (wider == result.best_pass_ms.begin()) continue;
    const auto narrower = std::prev(wider);
    double explained = static_cast<double>(wider->first) / narrower->first;
    const auto more = result.distinct_experts.find(wider->first), fewer = result.distinct_experts.find(narrower->first);
    if (more != result.distinct_experts.end() && fewer != result.distinct_experts.end()) {
      explained = std::max(explained, more->second / fewer->second);
    }
    steps[wider->first] = wider->second / narrower->second / explained - 1;
  }
  return steps;
}

WorstStep worst_step(const BenchResult& result) {
  constexpr size_t neighbours = 8;
  struct Step {
    uint32_t width;
    double ms, narrower_ms;
  };
  std::vector<Step> steps;
  for (const auto& [width, ms] : result.best_pass_ms) {
    const auto wider = result.best_pass_ms.find(width + 1);
    if (wider != result.best_pass_ms.end()) steps.push_back({width, wider->second - ms, ms});
  }
  WorstStep worst;
  for (const Step& step : steps) {
    std::vector<Step> others = steps;
    const auto distance = [&](const Step& other) { return std::abs(int64_t{other.width} - int64_t{step.width}); };
    std::erase_if(others, [&](const Step& other) { return other.width == step.width; });
    if (others.size() < neighbours) return {};
    std::ranges::stable_sort(others, {}, distance);
    others.resize(neighbours);
    double sum = 0;
    for (const Step& other : others) sum += other.ms;
    const double above = (step.ms - sum / neighbours) / step.narrower_ms;
    if (worst.width == 0 || above > worst.above) worst = {step.width, above};
  }
  return worst;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

BenchResult run_bench(Model& model, const BenchSettings& settings, const std::function<void(const char*)>& step,
                      const std::stop_token& stop) {
  return Bench(model, settings, step, stop).run();
}

}  // namespace canopy::cli
