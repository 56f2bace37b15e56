#include "engine/vulkan/logits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>

#include "engine/base/error.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/kernel.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {
namespace {

constexpr uint32_t group = 64;          // blocks that interleave: GROUP in shaders/top_k.glsl
constexpr uint32_t block_bytes = 16;    // of scratch
constexpr uint32_t most_blocks = 2560;  // beyond, blocks get larger: step 2 holds them all in the registers of a group
constexpr uint32_t largest_block = 16;  // quads; step 1 holds a block in registers
constexpr uint32_t largest_vocab = 1u << 20;
constexpr uint32_t small_k = 8;  // up to here step 2 looks at fewer candidates

constexpr uint32_t divide_up(uint32_t a, uint32_t b) {
  return (a + b - 1) / b;
}

// The blocks that a row of logits is cut into. They depend on the vocabulary alone, so that the order of the sum of
// exponentials depends on nothing else.
struct Blocks {
  explicit Blocks(uint32_t vocab) : quads(divide_up(vocab, 4)) {
    while (vecs < largest_block && divide_up(quads, vecs) > most_blocks) vecs *= 2;
    groups = divide_up(quads, vecs * group);
    const uint32_t rest = quads - (groups - 1) * vecs * group;
    filled = (groups - 1) * group + std::min(rest, group);
  }
  uint32_t count() const { return groups * group; }

  uint32_t quads;
  uint32_t vecs = 1;  // quads of a block
  uint32_t groups = 1;
  uint32_t filled = 0;  // blocks with at least one logit
};

struct BlocksPush {
  uint32_t vocab;
};

struct SelectPush {
  uint32_t vocab;
  uint32_t k;
  uint32_t first_row;
  uint32_t block_count;
  uint32_t filled_blocks;
};

void require_size(const Binding& buffer, uint64_t bytes, const char* name) {
  if (buffer.bytes >= bytes) return;
  throw bad_input("The buffer \"" + std::string(name) + "\" of top_k has " + std::to_string(buffer.bytes) + " bytes, " +
                  std::to_string(bytes) + " are needed.");
}

/// Bytes [first, first + size) of what a binding refers to.
Binding range(const Binding& all, uint64_t first, uint64_t size) {
  return Binding(*all.buffer, all.offset + first, size);
}

void validate(const TopKBindings& b) {
  if (b.vocab < 1 || b.vocab > largest_vocab) {
    throw bad_input("The vocabulary of top_k is " + std::to_string(b.vocab) + ", 1 to " +
                    std::to_string(largest_vocab) + " is allowed.");
  }
  if (b.k < 1 || b.k > std::min(kMaxTopK, b.vocab)) {
    throw bad_input("The k of top_k is " + std::to_string(b.k) + ", 1 to " +
                    std::to_string(std::min(kMaxTopK, b.vocab)) + " is allowed.");
  }
  if (b.lanes != 0 && b.lanes != 64 && b.lanes != 128 && b.lanes != 256) {
    throw bad_input("The workgroup of top_k is " + std::to_string(b.lanes) + ", 64, 128 or 256 is allowed.");
  }
  if (!std::isfinite(b.multiplier) || b.multiplier == 0) {
    throw bad_input("The multiplier of top_k is " + std::to_string(b.multiplier) +
                    ", a number other than 0 is allowed.");
  }
  if (!std::isfinite(b.softcap) || b.softcap < 0) {
    throw bad_input("The softcap of top_k is " + std::to_string(b.softcap) +
                    ", 0 for none or a positive number is allowed.");
  }
  const uint64_t end = uint64_t{b.first_out} + b.width;
  require_size(b.logits, uint64_t{b.width} * b.vocab * 4, "logits");
  require_size(b.ids, end * b.k * 4, "ids");
  require_size(b.values, end * b.k * 4, "values");
  require_size(b.log_sum_exp, end * 4, "log_sum_exp");
  require_size(b.scratch, top_k_scratch_bytes(b.width, b.vocab, b.k), "scratch");
}

// Rows that one dispatch takes: as many as a binding may hold, in steps that keep the next binding aligned.
uint32_t rows_per_dispatch(const Context& context, const TopKBindings& b, const Blocks& blocks) {
  const DeviceLimits& limits = context.limits();
  const uint64_t row = std::max<uint64_t>(uint64_t{b.vocab} * 4, uint64_t{blocks.count()} * block_bytes);
  const uint64_t most =
      std::min<uint64_t>({limits.max_storage_range / row, limits.max_group_count[0], limits.max_group_count[1]});
  if (b.width <= most) return b.width;
  const uint64_t alignment = std::max<uint64_t>(limits.storage_alignment, 16);  // a quad
  const uint64_t step = alignment / std::gcd(alignment, uint64_t{b.vocab} * 4);
  if (most < step) {
    throw out_of_memory("top_k needs a storage binding of " + std::to_string(step * row) +
                        " bytes, the device allows " + std::to_string(limits.max_storage_range) + ".");
  }
  return static_cast<uint32_t>(most / step * step);
}

// y = outer * x, or outer * tanh(inner * x), as CAP, INNER and OUTER of shaders/top_k.glsl.
void add_cap(KernelOptions& options, const TopKBindings& b) {
  const bool capped = b.softcap > 0;
  if (!capped && b.multiplier == 1) return;
  const float inner = capped ? b.multiplier / b.softcap : 0;
  const float outer = capped ? b.softcap : b.multiplier;
  options.spec.insert(
      options.spec.end(),
      {{4, capped ? 2u : 1u}, {5, std::bit_cast<uint32_t>(inner)}, {6, std::bit_cast<uint32_t>(outer)}});
}

// Few invocations suit a software device, which pays for each one at every barrier; many hide a GPU's latency.
uint32_t select_lanes(const Context& context) {
  return context.report().type == DeviceType::cpu ? 64 : context.limits().max_group_size[0] >= 256 ? 256 : 128;
}

}  // namespace

uint64_t top_k_scratch_bytes(uint32_t width, uint32_t vocab, uint32_t /*k*/) {
  return uint64_t{width} * Blocks(vocab).count() * block_bytes;
}

void record_top_k(Context& context, CommandList& list, const TopKBindings& b) {
  if (b.width == 0) return;
  validate(b);
  const Blocks blocks(b.vocab);
  const std::string variant = b.vocab % 4 == 0 ? "quads" : "words";
  const uint32_t lanes = b.lanes == 0 ? select_lanes(context) : b.lanes;
  const uint32_t candidates = std::min(b.k <= small_k ? small_k : kMaxTopK, blocks.count()) * blocks.vecs;
  KernelOptions find_options{.spec = {{1, blocks.vecs}}};
  add_cap(find_options, b);
  const Kernel& find = context.kernel(find_shader("top_k_blocks_" + variant), find_options);
  KernelOptions select_options{
      .spec = {{0, lanes}, {1, blocks.vecs}, {2, divide_up(blocks.count(), lanes)}, {3, divide_up(candidates, lanes)}}};
  add_cap(select_options, b);
  const Kernel& select = context.kernel(find_shader("top_k_select_" + variant), select_options);

  const uint64_t row_bytes = uint64_t{b.vocab} * 4;
  const uint64_t scratch_row = uint64_t{blocks.count()} * block_bytes;
  const uint32_t step = rows_per_dispatch(context, b, blocks);
  for (uint32_t row = 0; row < b.width; row += step) {
    const uint32_t rows = std::min(step, b.width - row);
    list.bind(
        find,
        {range(b.logits, row * row_bytes, rows * row_bytes), range(b.scratch, row * scratch_row, rows * scratch_row)},
        BlocksPush{b.vocab});
    list.dispatch(blocks.groups, rows);
  }
  list.barrier();
  for (uint32_t row = 0; row < b.width; row += step) {
    const uint32_t rows = std::min(step, b.width - row);
    list.bind(select,
              {range(b.logits, row * row_bytes, rows * row_bytes),
               range(b.scratch, row * scratch_row, rows * scratch_row), b.ids, b.values, b.log_sum_exp},
              SelectPush{b.vocab, b.k, b.first_out + row, blocks.count(), blocks.filled});
    list.dispatch(rows);
  }
}

// The op `sample`: shaders/sample.glsl says what each kernel does.

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
