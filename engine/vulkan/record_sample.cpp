// The op `sample`: shaders/sample.glsl says what each kernel does.

#include <algorithm>
#include <string>

#include "engine/base/error.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {
namespace {

// As in shaders/sample.glsl.
constexpr uint32_t kLogitsOfBlock = 1024;
constexpr uint32_t kStateWords = 49 * 64;
constexpr uint32_t kListTokens = 4096;
constexpr uint32_t kMostVocab = 1u << 20;  // so that sums of weights do not overflow

struct SamplePush {
  uint32_t vocab;
  uint32_t blocks;
  uint32_t first_row;
  uint32_t most_adjustments;
};

/// Arrays in scratch memory, each at a place where a binding may start.
struct SampleScratch {
  SampleScratch(const SampleArgs& args, uint32_t blocks) {
    const auto add = [this](uint64_t words) {
      const uint64_t start = bytes;
      bytes += (words * 4 + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
      return start;
    };
    const uint64_t pairs = uint64_t{args.width} * blocks * 2;
    best = add(pairs);
    if (args.random && !args.filtered) drawn = add(pairs);
    if (args.filtered) state = add(uint64_t{args.width} * kStateWords);
    if (args.filtered) list = add(uint64_t{args.width} * kListTokens * 2);
  }

  uint64_t best = 0, drawn = 0, state = 0, list = 0;  // bytes from the start
  uint64_t bytes = 0;
};

void validate(const SampleArgs& args) {
  if (args.width == 0 || args.vocab == 0 || args.vocab > kMostVocab) {
    throw bad_input("sample is asked for " + std::to_string(args.width) + " rows of " + std::to_string(args.vocab) +
                    " logits; allowed: rows of 1 to " + std::to_string(kMostVocab) + ".");
  }
  if (args.filtered && !args.random) throw bad_input("sample is asked to filter tokens at temperature 0.");
}

}  // namespace

template <>
void VulkanRecorder::record_op(const SampleArgs& args) {
  validate(args);
  const uint32_t blocks = (args.vocab + kLogitsOfBlock - 1) / kLogitsOfBlock;
  const SampleScratch layout(args, blocks);
  const Buffer& memory = scratch(layout.bytes, "sample scratch");
  const uint64_t pairs = uint64_t{args.width} * blocks * 2;
  const auto part = [&memory](uint64_t at, uint64_t count) { return Binding(memory, at, count * 4); };
  const Binding best = part(layout.best, pairs);
  const uint64_t end = uint64_t{args.first_row} + args.width;
  const Binding logits = words(*args.logits, uint64_t{args.width} * args.vocab, "The logits of sample");
  const Binding settings = words(*args.settings, sizeof(SamplingWords) / 4, "The settings of sample");
  const Binding rows = words(*args.rows, end * sizeof(SampledRow) / 4, "The rows of sample");
  const Binding out = words(*args.out, end, "The output of sample");
  const SamplePush push{args.vocab, blocks, args.first_row, args.adjustments != nullptr ? args.most_adjustments : 0};
  // Few invocations suit a software device, which pays for each one at every barrier.
  const uint32_t lanes = state_.software ? 16 : 128;
  const KernelOptions options{{{0, lanes}}, 0};
  CommandList& list = this->list(0);
  const auto step = [&](const char* name, std::initializer_list<Binding> bindings, uint32_t x, uint32_t y) {
    list.bind(state_.context->kernel(name, options), bindings, push);
    list.dispatch(x, y);
    list.barrier();
  };

  if (args.adjustments != nullptr) {
    const uint64_t table = uint64_t{args.most_adjustments} * sizeof(TokenAdjustment) / 4;
    step("sample_adjust", {logits, settings, rows, words(*args.adjustments, table, "The adjustments of sample")},
         (args.most_adjustments + kMaxSampledDepth + lanes - 1) / lanes, args.width);
  }
  if (!args.filtered) {
    step("sample_best_plain", {logits, best, rows}, blocks, args.width);
    if (!args.random) return step("sample_final_best", {best, out}, args.width, 1);
    const Binding drawn = part(layout.drawn, pairs);
    step("sample_draw", {logits, best, settings, rows, drawn}, blocks, args.width);
    return step("sample_final_drawn", {best, out, drawn}, args.width, 1);
  }
  const Binding state = part(layout.state, uint64_t{args.width} * kStateWords);
  const Binding near = part(layout.list, uint64_t{args.width} * kListTokens * 2);
  step("sample_best_filtered", {logits, best, rows, state}, blocks, args.width);
  step("sample_count", {logits, best, settings, state}, blocks, args.width);
  step("sample_edge", {settings, state}, args.width, 1);
  step("sample_gather", {logits, best, state, near}, blocks, args.width);
  step("sample_select", {logits, best, settings, rows, state, near, out}, args.width, 1);
}

}  // namespace canopy::vk
