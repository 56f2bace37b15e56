// Embedding, choice of rows, and what is read off the logits.

#include <string>

#include "engine/base/error.h"
#include "engine/vulkan/recorder.h"
#include "engine/vulkan/top_k.h"

namespace canopy::vk {

namespace {

constexpr uint32_t kArgmaxBlock = 1024;  // shaders/argmax.comp

uint32_t groups(uint32_t count, uint32_t size) {
  return (count + size - 1) / size;
}

// For the hours between an op's declaration and its shader.
void require_ready(bool ready, const char* what) {
  if (!ready) throw bad_input(std::string(what) + " is not there on Vulkan devices yet.");
}

}  // namespace

void VulkanRecorder::pick(const PickArgs&) {
  require_ready(false, "pick");
}

void VulkanRecorder::copy_rows(const CopyRowsArgs&) {
  require_ready(false, "copy_rows");
}

void VulkanRecorder::norm_rows(const NormRowsArgs&) {
  require_ready(false, "norm_rows");
}

void VulkanRecorder::embed(const EmbedArgs& args) {
  require_ready(args.scale == 1, "A scale of embed");
  const VulkanWeight& table = weight_of(*args.table);
  const VulkanPanel& out = panel_of(*args.out);
  require_width(args.width, out, "embed");
  const PanelLayout layout = state_.layout(args.width, table.cols());
  CommandList& list = this->list(0);
  const Kernel& kernel = state_.context->kernel(weight_shader("embed", table.type(), state_.texel_fetch));
  struct Push {
    uint32_t rows, cols, row_offset, tile;
  };
  for (const WeightShard& shard : table.shards) {
    std::vector<Binding> bindings;
    bind_weight(bindings, shard, state_);
    bindings.push_back(words(*args.rows, uint64_t{args.width} * sizeof(Row) / 4, "The rows of embed"));
    bindings.push_back(words(*args.x, uint64_t{args.width} * table.cols(), "The residual stream of embed"));
    bindings.emplace_back(out.values);
    bindings.push_back(words(out.squares, args.width, "The sums of squares of embed"));
    bindings.push_back(words(*args.norm.weight, table.cols(), "The norm weight of embed"));
    const Push push{shard.layout.rows, table.cols(), shard.layout.first_row, layout.tile};
    list.bind(kernel, bindings, bytes_of(push));
    list.dispatch(args.width);
  }
  list.barrier();
}

void VulkanRecorder::select(const SelectArgs& args) {
  require_ready(args.first == 0, "A first index of select");
  const VulkanPanel& in = panel_of(*args.in);
  const VulkanPanel& out = panel_of(*args.out);
  require_width(args.width, in, "select");
  require_width(args.count, out, "select");
  struct Push {
    uint32_t cols, tile, count, out_tile;
  };
  const Push push{in.cols(), state_.layout(args.width, in.cols()).tile, args.count,
                  state_.layout(args.count, in.cols()).tile};
  CommandList& list = this->list(0);
  list.bind(state_.context->kernel("select"),
            {in.values, words(in.squares, args.width, "The sums of squares of select"),
             words(*args.index, args.count, "The index of select"), out.values,
             words(out.squares, args.count, "The sums of squares of select")},
            push);
  list.dispatch(groups(in.cols(), 64), args.count);
  list.barrier();
}

void VulkanRecorder::argmax(const ArgmaxArgs& args) {
  require_ready(args.first_out == 0, "A first output row of argmax");
  const uint32_t blocks = groups(args.vocab, kArgmaxBlock);
  Buffer& candidates = scratch(uint64_t{args.width} * blocks * 8, "argmax candidates");
  const KernelOptions options{{{0, state_.attention_lanes}}, 0};
  struct Push {
    uint32_t count, blocks;
  };
  CommandList& list = this->list(0);
  const Binding logits = words(*args.logits, uint64_t{args.width} * args.vocab, "The logits of argmax");
  const BufferView& texels = static_cast<const VulkanBuffer&>(*args.logits).texels;
  const bool texel = texels && args.vocab % 4 == 0;
  list.bind(state_.context->kernel(texel ? "argmax_part_texel" : "argmax_part", options),
            {texel ? Binding(texels) : logits, candidates}, Push{args.vocab, blocks});
  list.dispatch(blocks, args.width);
  list.barrier();
  list.bind(state_.context->kernel("argmax_final", options),
            {candidates, words(*args.out, uint64_t{args.width} * 2, "The output of argmax")}, Push{blocks, 1});
  list.dispatch(1, args.width);
  list.barrier();
}

void VulkanRecorder::top_k(const TopKArgs& args) {
  require_ready(args.first_out == 0 && args.multiplier == 1 && args.softcap == 0, "A first output row or cap of top_k");
  if (args.k == 0 || args.k > kMaxTopK || args.k > args.vocab) {
    throw bad_input("top_k is asked for " + std::to_string(args.k) + " of " + std::to_string(args.vocab) +
                    " logits; allowed: 1 to " + std::to_string(std::min(kMaxTopK, args.vocab)) + ".");
  }
  Buffer& space = scratch(top_k_scratch_bytes(args.width, args.vocab, args.k), "top-k scratch");
  TopKBindings bindings;
  bindings.logits = &buffer_of(*args.logits);
  bindings.ids = &buffer_of(*args.ids);
  bindings.values = &buffer_of(*args.values);
  bindings.log_sum_exp = &buffer_of(*args.log_sum_exp);
  bindings.scratch = &space;
  bindings.width = args.width;
  bindings.vocab = args.vocab;
  bindings.k = args.k;
  CommandList& list = this->list(0);
  record_top_k(*state_.context, list, bindings);
  list.barrier();
}

}  // namespace canopy::vk
