#include "engine/session/pair_speculation.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/compute/kv_slots.h"

namespace canopy {
namespace {

/// A device that cannot be measured gets the numbers of a small CPU: what rounds really take corrects them.
DevicePeak peak_of(Device& device) {
  try {
    return device.measure_peak();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::unavailable) throw;
    return {.read_gb_s = 10, .fma_gflop_s = 50, .plain_fma_gflop_s = 50};
  }
}

}  // namespace

ModelShape model_shape(const Model& model) {
  const ModelConfig& config = model.config();
  ModelShape shape;
  shape.layers = config.layers;
  shape.hidden = config.hidden;
  shape.query_heads = config.mean_heads();
  shape.kv_heads = config.mean_kv_heads();
  shape.head_dim = config.head_dim;
  shape.ffn = config.mean_ffn();
  shape.vocab = config.vocab;
  shape.moe_layers = config.layers_with_experts();
  shape.experts = config.experts;
  shape.experts_per_row = config.experts_used;
  shape.expert_ffn = config.expert_ffn;
  shape.shared_ffn = config.shared_ffn;
  shape.recurrent_layers = config.recurrent_layers();
  if (shape.recurrent_layers > 0) {
    shape.recurrent_keys = config.delta_net.keys();
    shape.recurrent_values = config.delta_net.values();
    shape.recurrent_key_dim = config.delta_net.key_dim;
  }
  shape.gated = config.has_output_gate ? 1 : 0;
  // Whole tiles of a tiny weight may be many times its elements.
  shape.weight_bytes = std::min<double>(
      kMostElementBytes, static_cast<double>(model.pass_bytes()) / static_cast<double>(model.weight_elements()));
  shape.kv_bytes = mean_element_bytes(kv_shape(config, model.limits(), 0));
  shape.activation_bytes = sizeof(float);
  return shape;
}

std::unique_ptr<SpeculationState> pair_speculation(const Model& target, const Drafter& drafter, CostTable table) {
  PairFacts pair;
  pair.block_size = drafter.config().block_size;
  pair.roofline = [&target] {
    const DevicePeak peak = peak_of(target.device());
    return Roofline(model_shape(target), DevicePeaks{peak.product_gflop_s() * 1e9, peak.read_gb_s * 1e9});
  };
  pair.recordings = [&target, &drafter] { return target.recordings() + drafter.recordings(); };
  return std::make_unique<SpeculationState>(std::move(pair), std::move(table));
}

const BlockDraft* SequenceDrafts::draft(uint32_t root, uint32_t depths, const std::stop_token& stop) {
  std::optional<Draft> draft = sequence_.draft(root, depths, stop);
  if (!draft) return nullptr;
  draft_ = std::move(*draft);
  return &draft_;
}

// The device sorted the first of them; their values stand, since the host may round a softcap another way.
bool SequenceDrafts::more(uint32_t depth, uint32_t, uint32_t count, std::vector<uint32_t>& tokens,
                          std::vector<float>& logits) {
  const DepthCandidates known = draft_.at(depth);
  const std::vector<float> all = draft_.logits_at(depth);
  const Drafter& drafter = *sequence_.drafter();
  std::vector<bool> is_known(drafter.config().transformer.vocab);
  for (const uint32_t token : known.tokens) is_known[token] = true;
  std::vector<uint32_t> others;  // by their places among the drafted tokens, which have the order of the ids
  for (uint32_t place = 0; place < all.size(); ++place) {
    if (!is_known[drafter.token_at(place)]) others.push_back(place);
  }
  const auto end = others.begin() + static_cast<std::ptrdiff_t>(count - known.tokens.size());
  std::partial_sort(others.begin(), end, others.end(),
                    [&](uint32_t a, uint32_t b) { return all[a] != all[b] ? all[a] > all[b] : a < b; });
  tokens.assign(known.tokens.begin(), known.tokens.end());
  logits.assign(known.logits.begin(), known.logits.end());
  const float least = known.logits.back();
  for (auto place = others.begin(); place != end; ++place) {
    tokens.push_back(drafter.token_at(*place));
    logits.push_back(std::min(all[*place], least));
  }
  return true;
}

}  // namespace canopy
