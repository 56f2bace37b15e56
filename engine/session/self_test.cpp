#include "engine/session/self_test.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "engine/base/error.h"
#include "engine/compute/sampling.h"
#include "engine/model/recurrent_memory.h"
#include "engine/speculation/sampler.h"

namespace canopy {
namespace {

constexpr uint32_t kRows = 5;      // rows compared; they follow `base` positions of text
constexpr uint32_t kWidest = 257;  // rows of the widest pass on a GPU: a prompt's is no wider than a few tiles more

// Rows before those that are compared, and as many as let these straddle the first attention chunk's end.
constexpr uint32_t kFewBefore = 14, kEnoughBefore = kAttentionChunk - 2;
constexpr double kMostMsBefore = 500;  // that reading the rest of these may take
constexpr double kMostMsWide = 1000;   // of wide passes, beyond which those that may be left out are

/// A width at which tiles or buckets are full, or just are not: of one tile or of several.
struct WideWidth {
  uint32_t rows = 0;
  bool always = false;  // else where there is time for it
};

/// Narrowest first.
std::vector<WideWidth> wide_widths(const Model& model) {
  const uint32_t tile = std::max(model.device().info().widest_tile, 2u);
  const uint32_t most = std::min({model.limits().max_width, model.limits().tree_slots, kWidest});
  const uint32_t always[] = {tile, tile + 1, 2 * tile};
  std::vector<WideWidth> widths;
  for (const uint32_t rows : {tile, tile + 1, 2 * tile, 8u, 9u, 17u, 33u, 2 * tile + 1, most}) {
    if (rows <= most) widths.push_back({rows, std::ranges::find(always, rows) != std::end(always)});
  }
  std::ranges::sort(widths, {}, &WideWidth::rows);
  widths.erase(std::ranges::unique(widths, {}, &WideWidth::rows).begin(), widths.end());
  return widths;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// The results of a row: logits and K/V.
struct RowResult {
  std::vector<float> logits;
  std::vector<float> kv;  // of all layers: keys, then values
};

class SelfTestRun {
 public:
  SelfTestRun(Model& model, const SelfTestCallbacks& callbacks)
      : model_(model), callbacks_(callbacks), text_(model.states()) {
    widths_ = wide_widths(model);
    const uint32_t room = model.limits().context - std::min(model.limits().context, kRows);
    few_ = std::min(kFewBefore, room);
    enough_ = std::min(kEnoughBefore, room);
  }

  SelfTestReport run() {
    const auto start = std::chrono::steady_clock::now();
    SelfTestReport report;
    if (!can_run()) {
      report.sentence = "Exactness was not checked: the context or the width of a pass is too small for the check.";
      return report;
    }
    report.ran = true;
    read_text_before();
    compute_alone();
    compare_text(3);
    compare_text(kRows);
    compare_states();
    compare_tree();
    compare_wide_trees();
    if (model_.device().info().draws_tokens) report.draws_alike = draws_alike();
    report.passed = difference_.empty();
    report.sentence = report.passed ? "Exactness checked on this device: rows gave the same bits alone, in wider "
                                      "passes and as guesses of a tree."
                                    : "This device rounds differently in wider passes (" + difference_ +
                                          "): guessed text may differ from plain decoding.";
    report.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return report;
  }

 private:
  bool can_run() const {
    const ModelLimits& limits = model_.limits();
    return limits.context > kRows && limits.tree_slots >= kRows && limits.max_width >= kRows &&
           limits.head_rows >= kRows;
  }

  /// Any text will do; neighbours differ.
  uint32_t token(uint32_t position) const { return (position * 7919 + 13) % model_.config().vocab; }

  void add_text(RowBatch& batch, uint32_t row) const { batch.add_text(token(base_ + row), base_ + row); }

  /// More of it where that does not take long.
  void read_text_before() {
    read_text(few_);
    if ((enough_ - few_) * ms_a_row_ > kMostMsBefore) enough_ = few_;
    read_text(enough_);
  }

  void read_text(uint32_t count) {
    for (uint32_t first = base_; first < count;) {
      const uint32_t end = std::min(count, first + model_.limits().max_width);
      RowBatch batch;
      for (; first < end; ++first) batch.add_text(token(first), first);
      ForwardInput input{batch};
      input.states = text_.next();
      pass(input);
      text_.take(batch.width());
    }
    base_ = count;
  }

  /// The rows one by one, each with what came before it in the caches.
  void compute_alone() {
    StateLine line = text_;
    for (uint32_t i = 0; i < kRows; ++i) {
      RowBatch batch;
      add_text(batch, i);
      compute(batch, line.next());
      line.take(1);
      alone_.push_back(result_of(0, base_ + i));
    }
    alone_state_ = line.state();
  }

  /// The states after rows that are applied again, as accepted rows of a tree are, against those of the rows alone. The
  /// last pass had these rows.
  void compare_states() {
    if (!alone_state_) return;
    std::vector<uint32_t> rows;
    for (uint32_t i = 0; i < kRows; ++i) rows.push_back(i);
    StateLine line = text_;
    const StateUse use = line.next();
    model_.apply_rows(rows, use);
    for (uint32_t layer = 0; layer < model_.config().layers && difference_.empty(); ++layer) {
      if (!model_.config().is_recurrent(layer)) continue;
      const std::vector<float> alone = model_.read_state(layer, alone_state_.place());
      if (!same_bits(model_.read_state(layer, use.to), alone)) difference_ = "the states of recurrent layers";
    }
  }

  uint32_t passes() const {
    const auto draws = static_cast<uint32_t>(model_.device().info().draws_tokens ? drawn_settings().size() : 0);
    const uint32_t widest = model_.limits().max_width;
    const uint32_t before = (few_ + widest - 1) / widest + (enough_ - few_ + widest - 1) / widest;
    // The rows before, the rows alone, two of text and a small tree, the wide trees, those that draw.
    return before + kRows + 3 + static_cast<uint32_t>(widths_.size()) + draws;
  }

  ForwardOutput pass(const ForwardInput& input) {
    if (callbacks_.progress) callbacks_.progress(done_, passes());
    const auto start = std::chrono::steady_clock::now();
    ForwardOutput output = model_.forward(input, callbacks_.stop);
    const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
    if (!output.completed() || (callbacks_.stop.stop_requested())) {
      throw cancelled("Loading was cancelled.");
    }
    ++done_;
    // By the device's clock, as the first pass of a width compiles its kernels.
    ms_a_row_ = (output.device_ms() > 0 ? output.device_ms() : wall.count()) / input.batch.width();
    return output;
  }

  void compute(const RowBatch& batch) { compute(batch, text_.here()); }
  void compute(const RowBatch& batch, const StateUse& states) {
    std::vector<uint32_t> rows;
    for (uint32_t i = 0; i < batch.width(); ++i) rows.push_back(i);
    ForwardInput input{batch, HeadOutput::logits, rows};
    input.states = states;
    logits_ = pass(input).logits(rows);
  }

  RowResult result_of(uint32_t row, uint32_t slot) const {
    const uint32_t vocab = model_.config().vocab;
    RowResult result;
    const auto first = logits_.begin() + static_cast<std::ptrdiff_t>(row) * vocab;
    result.logits.assign(first, first + vocab);
    for (uint32_t layer = 0; layer < model_.config().layers; ++layer) {
      if (!model_.config().is_attention(layer)) continue;  // no keys and values
      for (const bool values : {false, true}) {
        const std::vector<float> part = model_.read_kv(layer, values, slot, 1);
        result.kv.insert(result.kv.end(), part.begin(), part.end());
      }
    }
    return result;
  }

  void compare(uint32_t row_in_pass, uint32_t slot, uint32_t row, const std::string& what) {
    const RowResult result = result_of(row_in_pass, slot);
    if (!difference_.empty()) return;
    if (!same_bits(result.logits, alone_[row].logits)) difference_ = "the logits of " + what;
    if (!same_bits(result.kv, alone_[row].kv)) difference_ = "the keys and values of " + what;
  }

  void compare_text(uint32_t width) {
    RowBatch batch;
    for (uint32_t i = 0; i < width; ++i) add_text(batch, i);
    compute(batch);
    for (uint32_t i = 0; i < width; ++i) {
      compare(i, base_ + i, i, "row " + std::to_string(i + 1) + " of " + std::to_string(width));
    }
  }

  /// Root, a wrong child, the right child, a wrong grandchild, the right one: the right path is rows 0, 1, 2 of the
  /// text.
  void compare_tree() {
    const uint32_t slots = model_.limits().context;
    const auto wrong = [&](uint32_t row) { return (token(base_ + row) + 1) % model_.config().vocab; };
    RowBatch batch;
    batch.add_node(token(base_), slots, base_, -1);
    batch.add_node(wrong(1), slots + 1, base_, 0);
    batch.add_node(token(base_ + 1), slots + 2, base_, 0);
    batch.add_node(wrong(2), slots + 3, base_, 1);
    batch.add_node(token(base_ + 2), slots + 4, base_, 2);
    compute(batch);
    compare(0, slots, 0, "a tree's root");
    compare(2, slots + 2, 1, "a tree's node of depth 1");
    compare(4, slots + 4, 2, "a tree's node of depth 2");
  }

  /// Of the widths that may be left out those for which there is no time are.
  void compare_wide_trees() {
    double ms = 0;
    for (size_t i = 0; i < widths_.size();) {
      const WideWidth width = widths_[i];
      if (!width.always && ms + width.rows * ms_a_row_ > kMostMsWide) {
        widths_.erase(widths_.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      compare_wide_tree(width.rows);
      ms += width.rows * ms_a_row_;
      ++i;
    }
  }

  /// A root whose children are all the same, and each has the same child: wherever they stand in the pass, they are
  /// rows 0, 1 and 2 of the text. Of a pass wider than the logits a model gives, these are compared of its last rows.
  void compare_wide_tree(uint32_t width) {
    const uint32_t slots = model_.limits().context;
    const auto row_of = [](uint32_t i) { return i == 0 ? 0 : 2 - i % 2; };
    RowBatch batch;
    for (uint32_t i = 0; i < width; ++i) {
      const int32_t parent = i == 0 ? -1 : i % 2 == 1 ? 0 : static_cast<int32_t>(i) - 1;
      batch.add_node(token(base_ + row_of(i)), slots + i, base_, parent);
    }
    const uint32_t first = width - std::min(width, model_.limits().head_rows);
    std::vector<uint32_t> rows;
    for (uint32_t i = first; i < width; ++i) rows.push_back(i);
    ForwardInput input{batch, HeadOutput::logits, rows};
    input.states = text_.here();
    logits_ = pass(input).logits(rows);
    if (!difference_.empty()) return;
    const auto name = [&](const char* what, uint32_t i) {
      return std::string("the ") + what + " of row " + std::to_string(i + 1) + " of " + std::to_string(width);
    };
    const size_t vocab = model_.config().vocab;
    for (uint32_t i = first; i < width && difference_.empty(); ++i) {
      const std::span<const float> logits = std::span(logits_).subspan((i - first) * vocab, vocab);
      if (!same_bits(logits, alone_[row_of(i)].logits)) difference_ = name("logits", i);
    }
    compare_wide_kv(
        width, [&](uint32_t i) { return std::span<const float>(alone_[row_of(i)].kv); }, name);
  }

  /// Settings that together go through all steps of a draw.
  static std::vector<SamplingSettings> drawn_settings() {
    SamplingSettings plain, filtered, penalised;
    plain.temperature = 1.0f;
    filtered.temperature = 0.8f;
    filtered.top_p = 0.9f;
    filtered.min_p = 0.01f;
    penalised.temperature = 0.7f;
    penalised.top_k = 40;
    penalised.top_p = 0.95f;
    penalised.repetition_penalty = 1.1f;
    penalised.frequency_penalty = 0.3f;
    return {plain, filtered, penalised};
  }

  /// Whether tokens drawn after the rows of the text are those that the host draws from the logits of the rows alone.
  bool draws_alike() {
    bool alike = true;
    for (const SamplingSettings& settings : drawn_settings()) {
      TokenAdjustments text(settings, model_.config().vocab);
      text.add(token(base_));
      ForwardInput input;
      for (uint32_t i = 0; i < kRows; ++i) {
        add_text(input.batch, i);
        input.head_rows.push_back(i);
        input.parents.push_back(i == 0 ? kNoToken : i - 1);
      }
      input.head = HeadOutput::sampled;
      input.states = text_.here();
      input.sampling = {sampling_words(settings), {text.all().begin(), text.all().end()}, text.any()};
      const ForwardOutput output = pass(input);
      RowSampler host;
      for (uint32_t i = 0; i < kRows; ++i) {
        if (i > 0) text.add(token(base_ + i));
        alike = alike && output.drawn(i) == host.draw(alone_[i].logits, sampling_words(settings, 0, i), text.all());
      }
    }
    return alike;
  }

  /// K/V of the slots behind the context, a layer at a time, against those of `expected` (keys, then values, by layer).
  template <class Expected, class Name>
  void compare_wide_kv(uint32_t width, const Expected& expected, const Name& name) {
    size_t at = 0;  // in a row's K/V of all layers
    for (uint32_t layer = 0; layer < model_.config().layers; ++layer) {
      if (model_.config().is_recurrent(layer)) continue;
      for (const bool values : {false, true}) {
        const std::vector<float> part = model_.read_kv(layer, values, model_.limits().context, width);
        const size_t each = part.size() / width;
        for (uint32_t i = 0; i < width && difference_.empty(); ++i) {
          const std::span<const float> row = std::span(part).subspan(i * each, each);
          if (!same_bits(row, expected(i).subspan(at, each))) difference_ = name("keys and values", i);
        }
        at += each;
      }
    }
  }

  Model& model_;
  const SelfTestCallbacks& callbacks_;
  std::vector<WideWidth> widths_;  // of the wide trees
  uint32_t few_ = 0, enough_ = 0;  // rows before those that are compared
  uint32_t base_ = 0;              // of these, read so far
  uint32_t done_ = 0;              // passes
  double ms_a_row_ = 0;            // of the last pass
  std::vector<RowResult> alone_;
  std::vector<float> logits_;  // of the pass just computed
  StateLine text_;             // of recurrent layers, behind the text that the rows follow
  StateRef alone_state_;       // behind the rows alone
  std::string difference_;     // the first one
};

}  // namespace

SelfTestReport run_self_test(Model& model, const SelfTestCallbacks& callbacks) {
  return SelfTestRun(model, callbacks).run();
}

SelfTestReport self_test_or_fall_back(Model& model, const SelfTestCallbacks& callbacks) {
  Device& device = model.device();
  std::string fallback;
  for (;;) {
    std::string problem;
    try {
      SelfTestReport report = run_self_test(model, callbacks);
      report.fallback = fallback;
      if (!report.ran || report.passed || !device.fall_back()) return report;
      problem = report.sentence;
      fallback =
          "With its fastest kernels this device rounds differently in wider passes, so that "
          "slower ones are used: replies are exact, and take longer.";
    } catch (const Error& e) {
      // A driver that announces what it cannot compile, or a limit that it does not keep.
      if (e.kind() != ErrorKind::unavailable || !device.fall_back()) throw;
      problem = e.what();
      fallback =
          "The driver of this device cannot make its fastest kernels, so that slower ones are used: replies are "
          "exact, and take longer.";
    }
    log_warning(problem + " Falling back to other kernels: " + device.info().kernels + ".");
    model.forget_recordings();
  }
}

}  // namespace canopy
