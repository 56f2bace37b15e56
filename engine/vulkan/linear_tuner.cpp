#include "engine/vulkan/linear_tuner.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>

#include "engine/vulkan/command_list.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {

namespace {

constexpr uint64_t kSmallWeight = 128 * 1024;  // elements: below, compiling candidates costs more than they gain
constexpr int kRepeats = 5;

struct Push {
  uint32_t rows, stored_rows, cols, first_column, first_quad, stride, offset;
  float norm_eps;
};

// Best wall time of one product over the weight's first shard, in seconds.
double time_candidate(DeviceState& state, const VulkanWeight& weight, uint32_t columns, const LinearConfig& config,
                      const Buffer& activations, const BufferView& texels, const Buffer& out) {
  Context& context = *state.context;
  const WeightShard& shard = weight.shards.front();
  const PanelLayout layout{columns, weight.cols(), columns};
  const Kernel& kernel = context.kernel(
      weight_shader("linear", weight.type(), state.texel_fetch),
      linear_options(config, weight.type(), columns, weight.cols() % 32 != 0, shard.layout.rows % config.rows == 0));
  std::vector<Binding> bindings;
  bind_weight(bindings, shard, state);
  bind_activations(bindings, activations, texels, layout, 0);
  bindings.emplace_back(state.dummy);
  bindings.emplace_back(out);
  bindings.emplace_back(out);
  const Push push{shard.layout.rows, shard.layout.stored_rows, weight.cols(), 0, 0, shard.layout.rows, 0, 0.0f};
  CommandList list(context, {"tuning", 0});
  list.bind(kernel, bindings, bytes_of(push));
  list.dispatch((shard.layout.rows + config.lanes * config.rows - 1) / (config.lanes * config.rows));
  list.finish();
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i <= kRepeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    context.run(list);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (i > 0) best = std::min(best, took.count());  // the first run compiles and warms up
  }
  return best;
}

LinearConfig measure(DeviceState& state, const VulkanWeight& weight, const LinearShapeKey& key) {
  const uint32_t columns = std::min(key.columns, tile_width(key.columns, weight.cols(), state.max_tile));
  Context& context = *state.context;
  const Buffer activations =
      context.create_buffer(BufferKind::device, panel_buffer_bytes(columns, weight.cols(), columns), "tuning input");
  const BufferView texels =
      state.texel_fetch ? context.create_view(activations, 0, activations.bytes() / 16 * 16, 4) : BufferView();
  const std::vector<std::byte> zeros(activations.bytes());
  context.upload(activations, 0, zeros);
  const Buffer out = context.create_buffer(BufferKind::device,
                                           uint64_t{columns} * weight.shards.front().layout.rows * 4, "tuning output");
  const auto candidates = linear_candidates(state.software, key);
  LinearConfig best = candidates.front();
  double best_time = std::numeric_limits<double>::max();
  for (const LinearConfig& candidate : candidates) {
    const double time = time_candidate(state, weight, columns, candidate, activations, texels, out);
    if (time < best_time) {
      best_time = time;
      best = candidate;
    }
  }
  return best;
}

}  // namespace

LinearConfig choose_linear(DeviceState& state, const VulkanWeight& weight, uint32_t columns) {
  if (state.forced_linear) return *state.forced_linear;
  const LinearShapeKey key{weight.type(), weight.rows(), weight.cols(), std::bit_ceil(columns)};
  if (uint64_t{weight.rows()} * weight.cols() < kSmallWeight) {
    return state.software ? LinearConfig{4, 8, 1} : LinearConfig{4, 32, 1};
  }
  if (const auto known = state.choices->find(key)) return *known;
  const LinearConfig chosen = measure(state, weight, key);
  state.choices->set(key, chosen);
  return chosen;
}

}  // namespace canopy::vk
