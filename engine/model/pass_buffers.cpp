#include "engine/model/pass_buffers.h"

#include "engine/compute/rows.h"
#include "engine/model/rotation.h"

namespace canopy {

PassBuffers allocate_pass_buffers(Device& device, const ModelConfig& config, const ModelLimits& limits) {
  const uint64_t width = limits.max_width;
  const uint64_t token_logits = limits.max_token_logits();
  const uint64_t word = sizeof(uint32_t);
  PassBuffers b;
  b.rows = device.allocate(width * sizeof(Row), "rows");
  b.ancestors = device.allocate(width * (kMaxTreeDepth + 1) * word, "ancestors");
  b.head_rows = device.allocate(width * word, "head rows");
  b.token_logit_pairs = device.allocate(token_logits * 2 * word, "wanted logits");
  b.moves = device.allocate(kMaxKvMoves * 2 * word, "K/V moves");

  const std::vector<float> rotation = rotation_table(config, limits.context);
  b.rotation = device.allocate(rotation.size() * sizeof(float), "rotation");
  device.write(*b.rotation, 0, as_bytes_of(rotation));

  b.x = device.allocate(width * config.hidden * sizeof(float), "x");
  b.qkv = device.allocate(width * (config.q_width() + 2 * config.kv_width()) * sizeof(float), "qkv");
  b.q = device.allocate(width * config.q_width() * sizeof(float), "q");
  b.normed = device.allocate_activations(limits.max_width, config.hidden, "normed");
  b.attended = device.allocate_activations(limits.max_width, config.q_width(), "attended");
  b.gated = device.allocate_activations(limits.max_width, config.ffn, "gated");
  b.gathered = device.allocate_activations(limits.head_rows, config.hidden, "gathered rows");

  if (limits.aux_layers > 0)
    b.aux_hidden_states =
        device.allocate(width * limits.aux_layers * config.hidden * sizeof(float), "aux hidden states");
  b.logits = device.allocate(uint64_t{limits.head_rows} * config.vocab * sizeof(float), "logits");
  b.best = device.allocate(width * 2 * word, "best");
  b.token_logits = device.allocate(token_logits * sizeof(float), "token logits");
  b.likeliest = device.allocate(width * word, "likeliest");
  b.likeliest_logits = device.allocate(width * sizeof(float), "likeliest logits");
  b.log_sum_exp = device.allocate(width * sizeof(float), "log sum exp");
  return b;
}

}  // namespace canopy
