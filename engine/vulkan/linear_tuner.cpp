#include "engine/vulkan/linear_tuner.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <optional>
#include <string>

#include "engine/vulkan/command_list.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {

namespace {

constexpr uint64_t kSmallWeight = 128 * 1024;  // elements: below, compiling candidates costs more than they gain
constexpr int kRounds = 8;
constexpr double kClearly = 0.93;

// One product over the weight's first shard.
CommandList record_candidate(DeviceState& state, const VulkanWeight& weight, uint32_t columns,
                             const LinearConfig& config, const BufferView& texels, const Buffer& out) {
  Context& context = *state.context;
  const WeightShard& shard = weight.shards.front();
  const Kernel& kernel = context.kernel(
      weight_shader("linear", weight.type(), true),
      linear_options(config, weight.type(), columns, weight.cols() % 32 != 0, shard.layout.rows % config.rows == 0));
  std::vector<Binding> bindings;
  bind_weight(bindings, shard, state);
  bindings.emplace_back(texels);
  bindings.emplace_back(state.dummy);
  bindings.emplace_back(out);
  bindings.emplace_back(out);
  const LinearPush push{{shard.layout.rows, weight.cols(), 0, 0}, columns, shard.layout.rows, 0, 0.0f};
  CommandList list(context, {"tuning", 0});
  list.bind(kernel, bindings, bytes_of(push));
  list.dispatch(1, (shard.layout.rows + config.lanes * config.rows - 1) / (config.lanes * config.rows));
  list.finish();
  return list;
}

double run_timed(Context& context, CommandList& list) {
  const auto start = std::chrono::steady_clock::now();
  context.run(list);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

LinearConfig measure(DeviceState& state, const VulkanWeight& weight, const LinearShapeKey& key) {
  auto candidates = linear_candidates(key.columns);
  for (LinearConfig& candidate : candidates) candidate.body = state.max_body;
  if (candidates.size() == 1) return candidates.front();
  const uint32_t columns = std::min(key.columns, tile_width(key.columns, state.max_tile));
  Context& context = *state.context;
  const Buffer activations = context.create_buffer(
      BufferKind::device, activation_buffer_bytes(columns, weight.cols(), columns), "tuning input");
  const BufferView texels = context.create_view(activations, 0, activations.bytes() / 16 * 16, 4);
  const std::vector<std::byte> zeros(activations.bytes());
  context.upload(activations, 0, zeros);
  const Buffer out = context.create_buffer(BufferKind::device,
                                           uint64_t{columns} * weight.shards.front().layout.rows * 4, "tuning output");
  std::vector<CommandList> lists;
  for (const LinearConfig& candidate : candidates) {
    lists.push_back(record_candidate(state, weight, columns, candidate, texels, out));
    context.run(lists.back());  // compiles and warms up
  }
  // Taken in turns, so that a busy moment of the machine does not decide; the best time of each counts.
  std::vector<double> best(candidates.size(), std::numeric_limits<double>::max());
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < lists.size(); ++i) best[i] = std::min(best[i], run_timed(context, lists[i]));
  }
  // The first candidate is the likeliest: another must be clearly faster.
  size_t chosen = 0;
  for (size_t i = 1; i < lists.size(); ++i) {
    if (best[i] < kClearly * best[0] && best[i] < best[chosen]) chosen = i;
  }
  return candidates[chosen];
}

/// Says in the description of the device which variant runs for a shape: "...; Q4_1 576x1536 x4 (8 rows, 8
/// lanes)". What is measured on it is measured of that variant.
void describe(DeviceState& state, const LinearShapeKey& key, const LinearConfig& config) {
  const std::string shape = "; " + to_string(key.type) + " " + std::to_string(key.rows) + "x" +
                            std::to_string(key.cols) + " x" + std::to_string(key.columns) + " (";
  std::string& kernels = state.info.kernels;
  if (kernels.find(shape) != std::string::npos) return;
  kernels += shape + std::to_string(config.rows) + " rows, " + std::to_string(config.lanes) + " lanes)";
}

LinearConfig variant_of(DeviceState& state, const VulkanWeight& weight, uint32_t columns) {
  if (state.forced_linear) return *state.forced_linear;
  const LinearShapeKey key{weight.type(), weight.rows(), weight.cols(), std::bit_ceil(columns)};
  if (uint64_t{weight.rows()} * weight.cols() < kSmallWeight) return {4, 8};
  std::optional<LinearConfig> chosen = state.choices->find(key);
  if (!chosen) {
    chosen = measure(state, weight, key);
    state.choices->set(key, *chosen);
  }
  describe(state, key, *chosen);
  return *chosen;
}

}  // namespace

LinearConfig choose_linear(DeviceState& state, const VulkanWeight& weight, uint32_t columns) {
  LinearConfig config = variant_of(state, weight, columns);
  config.body = state.max_body;
  return config;
}

}  // namespace canopy::vk
