#include "engine/model/load_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/numbers.h"
#include "engine/compute/kv_slots.h"
#include "engine/compute/rows.h"
#include "engine/model/pass_buffers.h"
#include "engine/model/recurrent_memory.h"

namespace canopy {
namespace {

uint64_t cache_bytes(const ModelConfig& config, const ModelLimits& limits) {
  uint64_t slot = 0;  // keys and values of all layers
  for (uint32_t n = 0; n < config.layers; ++n) {
    if (config.is_attention(n) && config.has_own_kv(n)) {
      const KvShape shape = kv_shape(config, limits, n);
      slot += shape.planes() * slot_bytes(shape);
    }
  }
  return checked_mul(slot, uint64_t{limits.slots()}, "size of the K/V cache");
}

/// Of feed-forwards without experts.
uint64_t gated_bytes(const ModelConfig& config, const ModelLimits& limits, const Device& device) {
  uint64_t bytes = 0;
  for (const uint32_t ffn : ffn_widths(config)) bytes += device.activation_bytes(limits.rows(), ffn);
  return bytes;
}

/// Of what attention gives.
uint64_t attended_bytes(const ModelConfig& config, const ModelLimits& limits, const Device& device) {
  uint64_t bytes = 0;
  for (const uint32_t width : query_widths(config)) bytes += device.activation_bytes(limits.rows(), width);
  return bytes;
}

/// That attention works in, which all layers share.
uint64_t attention_bytes(const ModelConfig& config, const ModelLimits& limits, const Device& device) {
  std::set<std::array<uint32_t, 3>> known;  // heads, K/V heads and their dimension
  uint64_t bytes = 0;
  for (uint32_t n = 0; n < config.layers; ++n) {
    const uint32_t heads = config.heads_of(n);
    if (!config.is_attention(n)) continue;
    if (config.has_latent_attention()) {  // whose query heads are rows
      const KvShape shape = kv_shape(config, limits, n);
      return device.attention_bytes(shape, 1, limits.rows() * heads, limits.context);
    }
    if (!known.insert({heads, config.kv_heads_of(n), config.head_dim_of(n)}).second) continue;
    bytes = std::max(bytes, device.attention_bytes(kv_shape(config, limits, n), heads, limits.rows(), limits.context));
  }
  return bytes;
}

/// Of latent attention: LatentBuffers.
uint64_t latent_bytes(const ModelConfig& config, const ModelLimits& limits, const Device& device) {
  if (!config.has_latent_attention()) return 0;
  const LatentAttention& latent = config.latent;
  const uint64_t width = limits.rows(), heads = config.heads, piece = latent_piece(config);
  const uint64_t of_head = uint64_t{latent.key_dim} + config.rotary_dim + latent.value_dim +
                           sizeof(Row) / sizeof(float) + 3 + 2 * config.rotary_dim / piece;
  const uint64_t of_row = latent.query_rank + 2 * uint64_t{latent.rank} + config.head_dim + 2 + 2 * latent.rank / piece;
  const auto activations = [&](uint64_t rows, uint64_t cols) {
    return cols == 0 ? 0
                     : device.activation_bytes(static_cast<uint32_t>(rows),
                                               checked_cast<uint32_t>(cols, "number of columns of activations"));
  };
  return (width * (heads * of_head + of_row) + 2 * uint64_t{latent.rank}) * sizeof(float) +
         activations(width, latent.query_rank) + activations(width * heads, latent.key_dim) +
         activations(width, latent.rank) + activations(width * heads, latent.rank) +
         activations(width, heads * latent.value_dim);
}

/// Of what layers are given of tokens besides the residual stream.
uint64_t layer_input_bytes(const ModelConfig& config, const ModelLimits& limits, const Device& device) {
  if (config.layer_inputs == 0) return 0;
  return device.activation_bytes(limits.rows(), config.layers * config.layer_inputs) +
         device.activation_bytes(limits.rows() * config.layers, config.layer_inputs) +
         device.activation_bytes(limits.rows(), config.layer_inputs);
}

/// Of feed-forwards and experts without gates.
uint64_t ungated_bytes(const ModelConfig& config, const ModelLimits& limits, const Device& device) {
  if (!config.has_square_relu) return 0;
  const uint64_t width = limits.rows(), hidden = config.hidden, upper = width * ungated_width(config);
  if (config.layers_with_experts() == 0) return upper * sizeof(float);
  const uint32_t pairs = limits.rows() * config.experts_used;
  const uint64_t of_rows = hidden + width * (hidden + 2), of_pairs = hidden + config.expert_ffn + 2;
  return (upper + of_rows + pairs * of_pairs) * sizeof(float) + device.activation_bytes(limits.rows(), config.hidden) +
         device.activation_bytes(pairs, config.hidden);
}

uint64_t working_bytes(const ModelConfig& config, const ModelLimits& limits, const Device& device) {
  const uint64_t width = limits.rows();
  const uint64_t per_row = uint64_t{config.hidden} * (1 + (config.has_post_norms ? 1 : 0) + limits.aux_layers) +
                           (config.has_output_gate ? 3 : 2) * config.q_width() + 2 * config.kv_width() + 2 +
                           kLikeliest;  // likeliest, its logit or several, the sum
  const bool has_experts = config.layers_with_experts() > 0;
  const uint32_t used = has_experts ? config.experts_used : 0;
  const uint64_t of_shared = has_experts && config.shared_ffn != 0 ? uint64_t{2} + config.hidden : 0;  // per row
  const uint64_t of_experts =
      has_experts ? config.experts + used * (uint64_t{2} + config.hidden) + of_shared : 0;  // likewise
  const uint64_t of_inputs = config.layer_inputs != 0 ? (2 * uint64_t{config.layers} + 1) * config.layer_inputs : 0;
  const uint64_t of_sums = config.has_experts_beside ? 2 * uint64_t{config.hidden} + 2 : 0;  // per row
  const bool writes_aux_apart = config.scales_branches() && limits.aux_layers > 0;
  const uint64_t zeros = config.has_experts_beside ? config.hidden : writes_aux_apart ? width * config.hidden : 0;
  const uint64_t logits = uint64_t{limits.head_rows} * config.vocab + zeros;
  const uint64_t moves = uint64_t{kMaxKvMoves} * 2;
  const uint64_t rotation = rotation_words(config, limits.turned_positions());
  const uint64_t gated = (has_experts ? device.activation_bytes(limits.rows() * used, config.expert_ffn) : 0) +
                         (of_shared != 0 ? device.activation_bytes(limits.rows(), config.shared_ffn) : 0);
  const uint64_t activations = gated + (writes_aux_apart ? device.activation_bytes(limits.rows(), config.hidden) : 0) +
                               ungated_bytes(config, limits, device) + layer_input_bytes(config, limits, device) +
                               latent_bytes(config, limits, device) +
                               device.activation_bytes(limits.rows(), config.hidden) +
                               attended_bytes(config, limits, device) + gated_bytes(config, limits, device) +
                               device.activation_bytes(limits.head_rows, config.hidden);
  const uint64_t words = checked_mul(width, per_row + of_experts + of_inputs + of_sums, "size of the activations") +
                         logits + moves + rotation;
  return words * sizeof(float) + activations + pass_input_bytes(limits) + pass_result_bytes(config, limits) +
         (has_experts ? touched_words(config) * sizeof(uint32_t) : 0);
}

constexpr uint64_t kStorageRange = uint64_t{128} << 20;  // that every device has in one buffer

/// Whether every device takes the keys of a layer in one buffer.
bool fits_buffers(const ModelConfig& config, const ModelLimits& limits) {
  for (uint32_t n = 0; n < config.layers; ++n) {
    if (config.is_attention(n) && uint64_t{limits.slots()} * slot_bytes(kv_shape(config, limits, n)) > kStorageRange)
      return false;
  }
  return true;
}

uint32_t states_for(const ModelConfig& config, uint32_t texts, uint64_t rest) {
  if (config.recurrent_layers() == 0) return 0;
  ModelLimits one;
  one.states = 1;
  const uint64_t fit = rest / 4 / std::max<uint64_t>(1, kept_state_bytes(config, one));
  const uint64_t fewest = kFewestStates + uint64_t{kStatesOfText} * (texts - 1);
  return static_cast<uint32_t>(std::clamp<uint64_t>(fit, fewest, std::max<uint64_t>(fewest, kMostStates)));
}

[[noreturn]] void refuse(const MemoryPlan& plan, const ModelLimits& limits, uint64_t available) {
  std::string states;
  if (limits.states > 0)
    states = ", " + std::to_string(limits.states) + " states of recurrent layers " + byte_figures(plan.states);
  const bool is_one = limits.texts == 1;
  const std::string several = is_one ? "" : std::to_string(limits.texts) + " texts at once, each of ";
  throw out_of_memory("The model needs " + byte_figures(plan.total(), available) + " on the device (weights " +
                      byte_figures(plan.weights) + ", K/V cache of " + several + std::to_string(limits.context) +
                      " positions " + byte_figures(plan.cache) + states + ", working memory " +
                      byte_figures(plan.working + plan.reserve) + "), but only " +
                      byte_figures(available, plan.total()) + " are available. Choose a shorter context, " +
                      (is_one ? "" : "fewer texts at once (--parallel), ") + "a smaller model, or another device.");
}

}  // namespace

void require_memory(const Device& device, uint64_t bytes, const std::string& what) {
  const uint64_t available = device.memory().available;
  if (bytes <= available) return;
  throw out_of_memory(what + " needs " + byte_figures(bytes, available) + " on the device, but only " +
                      byte_figures(available, bytes) +
                      " are available. Close another text, or load the model with a shorter context.");
}

KvShape kv_shape(const ModelConfig& config, const ModelLimits& limits, uint32_t layer) {
  return {limits.slots(), config.kv_heads_of(layer), config.head_dim_of(layer), limits.cache_type, config.latent.rank};
}

MemoryPlan plan_memory(const ModelConfig& config, const ModelLimits& limits, uint64_t weight_bytes,
                       const Device& device) {
  MemoryPlan plan;
  plan.weights = weight_bytes;
  plan.cache = cache_bytes(config, limits);
  plan.states = kept_state_bytes(config, limits);
  plan.working = working_bytes(config, limits, device);
  // Split-K sums, staging and pipelines are the backend's own; they grow with the activations.
  plan.reserve = (uint64_t{16} << 20) + plan.working;
  plan.working += recurrent_working_bytes(config, limits, device);
  plan.working += attention_bytes(config, limits, device);
  return plan;
}

uint32_t head_rows_for(const ModelConfig& config, uint32_t max_width) {
  constexpr uint64_t most_rows = 32, fewest_rows = 8;  // whole tiles on every device
  constexpr uint64_t wanted_bytes = uint64_t{32} << 20;
  const uint64_t row = uint64_t{config.vocab} * sizeof(float);
  // A twelfth of a byte for each weight of the head: small models have little memory beside which more is nothing.
  const uint64_t wanted = std::min(wanted_bytes / row, uint64_t{config.hidden} * config.vocab / 12 / row);
  const uint64_t rows = std::clamp(wanted / fewest_rows * fewest_rows, fewest_rows, most_rows);
  return static_cast<uint32_t>(std::clamp<uint64_t>(std::min(rows, kStorageRange / row), 1, max_width));
}

uint32_t ModelLimits::max_token_logits() const {
  return std::bit_ceil(std::max(kFewestTokenLogits, 2 * max_width));
}

uint32_t ModelLimits::max_adjustments() const {
  constexpr uint32_t biased = 1024;
  return std::bit_ceil(std::max(kFewestAdjustments, context + biased));
}

MemoryPlan choose_context(const ModelConfig& config, ModelLimits& limits, uint32_t requested, uint64_t weight_bytes,
                          const Device& device, uint64_t available) {
  if (requested > config.max_context) {
    throw bad_input("A context of " + std::to_string(requested) +
                    " positions was asked for; the model was trained for " + "at most " +
                    std::to_string(config.max_context) + ".");
  }
  const uint64_t rest = available > weight_bytes ? available - weight_bytes : 0;
  limits.states = states_for(config, limits.texts, rest);
  limits.context = requested != 0 ? requested : config.max_context;
  MemoryPlan plan = plan_memory(config, limits, weight_bytes, device);
  const uint32_t minimum = requested != 0 ? requested : std::min(kMinimumContext, config.max_context);
  const auto fits = [&] { return plan.total() <= available && plan.cache <= rest / 2; };
  while (!fits() && limits.context > minimum) {
    const uint32_t step = std::max<uint32_t>(256, limits.context / 16);
    limits.context = limits.context > minimum + step ? (limits.context - step) / 256 * 256 : minimum;
    limits.context = std::max(limits.context, minimum);
    plan = plan_memory(config, limits, weight_bytes, device);
  }
  if (plan.total() > available) refuse(plan, limits, available);
  while (limits.texts < limits.most_texts) {
    ++limits.texts;
    const MemoryPlan fewer = std::exchange(plan, plan_memory(config, limits, weight_bytes, device));
    if (fits() && fits_buffers(config, limits)) continue;
    --limits.texts;
    return fewer;
  }
  return plan;
}

namespace {

constexpr QuantizeOnLoad kNarrowing[] = {QuantizeOnLoad::q8_0, QuantizeOnLoad::q4_k};

class LoadPlanner {
 public:
  LoadPlanner(const ModelFile& file, const Device& device, uint64_t available, const ModelLimits& limits,
              uint32_t requested_context)
      : file_(file), device_(device), available_(available), limits_(limits), requested_(requested_context) {}

  struct Planned {
    LoadPlan plan;
    ModelLimits limits;
  };

  /// Throws out_of_memory where it does not fit.
  Planned with(QuantizeOnLoad quantize) const {
    Planned planned{{plan_weights(file_, device_, quantize), {}, quantize}, limits_};
    planned.plan.memory = choose_context(file_.config(), planned.limits, requested_, planned.plan.weights.device_bytes,
                                         device_, available_);
    if (planned.plan.weights.quantized.to.empty()) planned.plan.quantized = QuantizeOnLoad::none;
    return planned;
  }

  std::optional<Planned> if_it_fits(QuantizeOnLoad quantize) const {
    try {
      return with(quantize);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::out_of_memory) throw;
      return std::nullopt;
    }
  }

  /// The widest choice with room for a conversation; where none has, the widest that fits at all.
  Planned widest() const {
    const uint32_t roomy = requested_ != 0 ? requested_ : std::min(kRoomyContext, file_.config().max_context);
    std::optional<Planned> cramped;
    for (const QuantizeOnLoad choice : {QuantizeOnLoad::none, QuantizeOnLoad::q8_0, QuantizeOnLoad::q4_k}) {
      std::optional<Planned> planned = if_it_fits(choice);
      if (!planned) continue;
      if (planned->limits.context >= roomy) return *std::move(planned);
      if (!cramped) cramped = std::move(planned);
    }
    if (cramped) return *std::move(cramped);
    return with(QuantizeOnLoad::q4_k);  // refuses
  }

  struct Advice {
    std::string text;  // further sentences of a refusal
    std::optional<QuantizeOnLoad> fits;
  };

  /// A sentence on what quantizing would save; empty where it would save nothing.
  Advice advice(QuantizeOnLoad refused) const {
    ModelLimits limits = limits_;
    limits.context = requested_ != 0 ? requested_ : std::min(kMinimumContext, file_.config().max_context);
    uint64_t best = plan_weights(file_, device_, refused).device_bytes;
    Advice advice;
    for (const QuantizeOnLoad choice : kNarrowing) {
      const uint64_t weights = plan_weights(file_, device_, choice).device_bytes;
      if (weights >= best) continue;
      best = weights;
      const uint64_t total = plan_memory(file_.config(), limits, weights, device_).total();
      const bool fits = total <= available_;
      if (fits && !advice.fits) advice.fits = choice;
      advice.text += " Quantized while loading it would need " + byte_figures(total) + " (--quantize " +
                     std::string(to_string(choice)) + ")" + (fits ? ", which fits." : ", still too much.");
    }
    return advice;
  }

 private:
  const ModelFile& file_;
  const Device& device_;
  const uint64_t available_;
  const ModelLimits& limits_;
  const uint32_t requested_;
};

}  // namespace

MemoryPlan plan_roomy(const ModelConfig& config, uint64_t weight_bytes, uint32_t max_width, const Device& device) {
  ModelLimits limits;
  limits.max_width = max_width;
  limits.padded_rows = padded_width(device.info(), max_width);
  limits.tree_slots = max_width;
  limits.head_rows = head_rows_for(config, max_width);
  limits.states = config.recurrent_layers() > 0 ? kFewestStates : 0;
  limits.context = std::min(kRoomyContext, config.max_context);
  return plan_memory(config, limits, weight_bytes, device);
}

LoadPlan plan_load(const ModelFile& file, const Device& device, uint64_t available, ModelLimits& limits,
                   uint32_t requested_context, QuantizeOnLoad quantize,
                   const std::function<void(QuantizeOnLoad)>& would_fit) {
  const LoadPlanner planner(file, device, available, limits, requested_context);
  try {
    LoadPlanner::Planned planned = quantize == QuantizeOnLoad::automatic ? planner.widest() : planner.with(quantize);
    limits = planned.limits;
    return std::move(planned.plan);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::out_of_memory || quantize == QuantizeOnLoad::automatic) throw;
    const LoadPlanner::Advice advice = planner.advice(quantize);
    if (advice.fits && would_fit) would_fit(*advice.fits);
    throw out_of_memory(e.what() + advice.text);
  }
}

}  // namespace canopy
