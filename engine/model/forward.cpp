#include "engine/model/forward.h"

#include <algorithm>

namespace canopy {
namespace {

// The steps that pre-norm transformers share. Each reads and writes the model's PassBuffers; shapes are at the members.
//
// A norm is split: the step that writes x also writes normed = x * norm weight, and the step that reads normed
// multiplies by 1 / rms(x). So each step names the norm of the step after it.

/// x = embedding of the rows' tokens, times embedding_scale; normed = x * first_norm.
void embed_tokens(Recorder& record, const ForwardContext& model, const PassShape& pass, const Buffer& first_norm) {
  const PassBuffers& b = model.buffers;
  record(EmbedArgs{.width = pass.width,
                   .table = &model.embedding,
                   .rows = model.parts.rows.get(),
                   .x = b.x.get(),
                   .norm = {&first_norm},
                   .out = b.normed.get(),
                   .scale = model.embedding_scale});
}

const Buffer& rotation_of(const PassBuffers& b, const LayerSpec& spec) {
  if (!spec.rotates) return *b.no_rotation;
  return spec.local_rope ? *b.local_rotation : *b.rotation;
}

/// qkv = rms_norm(x) [Wq; Wk; Wv]^T, plus a bias where the layer has one; q and k get their head norms (likewise) and
/// their rotation; K and V go to the cache.
void project_qkv(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const LayerSpec& spec = model.layers[layer];
  const ModelConfig& config = model.config;
  std::vector<const Weight*> stacked;
  for (const auto& weight : weights.qkv) stacked.push_back(weight.get());
  const ProjectHeadsArgs project{.weights = stacked,
                                 .in = b.normed.get(),
                                 .in_norm_eps = config.residual_eps(),
                                 .qkv = b.qkv.get(),
                                 .heads = {.width = pass.width,
                                           .qkv = b.qkv.get(),
                                           .rows = model.parts.rows.get(),
                                           .rotation = &rotation_of(b, spec),
                                           .q_norm = weights.q_norm.get(),
                                           .k_norm = weights.k_norm.get(),
                                           .norm_eps = config.rms_eps,
                                           .heads = config.heads_of(layer),
                                           .shape = model.cache.shape(layer),
                                           .interleaved = spec.rope == RopeLayout::interleaved,
                                           .cache = &model.cache.layer(layer),
                                           .q = b.q.get()}};
  if (!weights.qkv_bias) return record(project);
  OpList ops = separate_ops(project);
  const AddBiasArgs bias{pass.width, project.heads.elements(), weights.qkv_bias.get(), b.qkv.get()};
  ops.insert(ops.end() - 1, bias);  // before the heads are turned and stored
  for (Op& op : ops) record(std::move(op));
}

/// attended = softmax(q K^T / sqrt(D)) V, each row over what the layer's attention shows it of prefix and ancestors;
/// times sigmoid of the gate where the layer has one; with sinks where it has them.
void attend(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const LayerSpec& spec = model.layers[layer];
  const uint32_t queries = model.config.q_width_of(layer);
  Activations& attended = *b.attended.at(queries);
  if (spec.output_gate) {  // from the activations that q came from
    record(LinearArgs{.width = pass.width,
                      .weight = model.weights.layers[layer].gate.get(),
                      .in = b.normed.get(),
                      .norm_eps = model.config.residual_eps(),
                      .out = b.gate.get(),
                      .stride = queries});
  }
  record(AttentionArgs{.width = pass.width,
                       .q = b.q.get(),
                       .rows = model.parts.rows.get(),
                       .ancestors = model.parts.ancestors.get(),
                       .pages = model.parts.pages.get(),
                       .heads = model.config.heads_of(layer),
                       .shape = model.cache.shape(layer),
                       .scale = static_cast<float>(model.config.query_scale()),
                       .max_positions = pass.max_positions,
                       .cache = &model.cache.layer(layer),
                       .out = &attended,
                       .mask = spec.causal ? AttentionMask::causal : AttentionMask::block,
                       .window = spec.window,
                       .sinks = model.weights.layers[layer].sinks.get(),
                       .softcap = model.config.attention_softcap});
  if (spec.output_gate) record(GateArgs{pass.width, b.gate.get(), &attended});
}

/// The number of a layer among those with experts.
uint32_t expert_layer(std::span<const LayerSpec> layers, uint32_t layer) {
  return static_cast<uint32_t>(
      std::ranges::count(layers.first(layer), FeedForward::mixture_of_experts, &LayerSpec::feed_forward));
}

/// Where a layer's output is written as aux hidden states; no buffer where it is not.
struct AuxPlace {
  Buffer* buffer = nullptr;
  uint32_t stride = 0, offset = 0;
};

AuxPlace aux_of(const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const auto& layers = model.aux_layers;
  const auto found = std::find(layers.begin(), layers.end(), layer);
  const uint32_t hidden = model.config.hidden, stride = static_cast<uint32_t>(layers.size()) * hidden;
  if (!pass.aux_hidden_states || found == layers.end()) return {nullptr, stride, 0};
  return {model.buffers.aux_hidden_states.get(), stride, static_cast<uint32_t>(found - layers.begin()) * hidden};
}

/// x += post norm of in W^T, plus a bias where there is one; normed = x * next_norm.
void add_through_norm(Recorder& record, const ForwardContext& model, const PassShape& pass, const Weight& weight,
                      const Activations& in, const Buffer* bias, const Buffer& post_norm, const Buffer& next_norm,
                      const AuxPlace& aux) {
  const PassBuffers& b = model.buffers;
  const ModelConfig& config = model.config;
  record(LinearArgs{
      .width = pass.width, .weight = &weight, .in = &in, .out = b.branch.get(), .stride = config.hidden, .offset = 0});
  if (bias != nullptr) record(AddBiasArgs{pass.width, config.hidden, bias, b.branch.get()});
  record(NormAddArgs{.width = pass.width,
                     .in = b.branch.get(),
                     .weight = &post_norm,
                     .eps = config.rms_eps,
                     .x = b.x.get(),
                     .norm = {&next_norm},
                     .out = b.normed.get(),
                     .aux = aux.buffer,
                     .aux_stride = aux.stride,
                     .aux_offset = aux.offset,
                     .aux_scale = 1 / config.residual_scale});
}

/// x += attended Wo^T, plus a bias where the layer has one, all through the layer's post norm where it has one; normed
/// = x * ffn_norm.
void add_attention(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const Activations& attended = *b.attended.at(model.config.q_width_of(layer));
  if (weights.attn_post_norm) {
    return add_through_norm(record, model, pass, *weights.attn_output, attended, weights.output_bias.get(),
                            *weights.attn_post_norm, *weights.ffn_norm, {});
  }
  if (weights.output_bias) record(AddBiasArgs{pass.width, model.config.hidden, weights.output_bias.get(), b.x.get()});
  record(LinearAddArgs{.width = pass.width,
                       .weight = weights.attn_output.get(),
                       .in = &attended,
                       .x = b.x.get(),
                       .norm = {weights.ffn_norm.get()},
                       .out = b.normed.get()});
}

/// inputs = rms_norm(x) [Wqkv; Wb; Wa]^T, gate = rms_norm(x) Wz^T of a recurrence.
void project_recurrence(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const LayerWeights& weights = model.weights.layers[layer];
  const RecurrentMemory& memory = *model.recurrent;
  uint32_t offset = 0;
  const auto product = [&](const Weight& weight, Buffer& out, uint32_t stride) {
    record(LinearArgs{.width = pass.width,
                      .weight = &weight,
                      .in = model.buffers.normed.get(),
                      .norm_eps = model.config.residual_eps(),
                      .out = &out,
                      .stride = stride,
                      .offset = offset});
  };
  for (const auto& weight : weights.qkv) {
    product(*weight, *memory.layer(layer).inputs, memory.shape().row_elements());
    offset += weight->rows();
  }
  offset = 0;
  product(*weights.gate, memory.gate(), memory.shape().values());
}

/// Prepares the inputs (convolution, norms, decay) and goes through the states of the rows: read = S^T q of each.
void advance_states(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  record_recurrence(record, *model.recurrent, model.weights.layers[layer], layer, pass.width, *model.parts.steps, true);
}

/// x += (rms_norm(read) * silu(gate)) Wout^T; normed = x * ffn_norm.
void add_recurrence(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const RecurrentMemory& memory = *model.recurrent;
  record(GatedNormArgs{.width = pass.width,
                       .heads = memory.shape().value_heads,
                       .head_dim = memory.shape().value_dim,
                       .in = &memory.read(),
                       .gate = &memory.gate(),
                       .weight = weights.state_norm.get(),
                       .eps = model.config.rms_eps,
                       .out = &memory.normed()});
  record(LinearAddArgs{.width = pass.width,
                       .weight = weights.attn_output.get(),
                       .in = &memory.normed(),
                       .x = b.x.get(),
                       .norm = {weights.ffn_norm.get()},
                       .out = b.normed.get()});
}

/// x += (f(h Wgate^T) * (h Wup^T)) Wdown^T with h = rms_norm(x), f silu or gelu, through the layer's post norm where it
/// has one; normed = x * next_norm. x of an aux layer is written to the aux hidden states too.
void add_swiglu(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer,
                const Buffer& next_norm) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const AuxPlace aux = aux_of(model, pass, layer);
  Activations& gated = *b.gated.at(model.config.ffn_of(layer));
  record(LinearSwigluArgs{.width = pass.width,
                          .weight = weights.gate_up.get(),
                          .in = b.normed.get(),
                          .norm_eps = model.config.residual_eps(),
                          .out = &gated,
                          .gate = model.layers[layer].gelu ? GateFunction::gelu : GateFunction::silu});
  if (weights.ffn_post_norm) {
    return add_through_norm(record, model, pass, *weights.ffn_down, gated, nullptr, *weights.ffn_post_norm, next_norm,
                            aux);
  }
  record(LinearAddArgs{.width = pass.width,
                       .weight = weights.ffn_down.get(),
                       .in = &gated,
                       .x = b.x.get(),
                       .norm = {&next_norm},
                       .out = b.normed.get(),
                       .aux = aux.buffer,
                       .aux_stride = aux.stride,
                       .aux_offset = aux.offset});
}

/// What the expert that every row goes through makes of the rows: PassBuffers::shared_product.
void record_shared_expert(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  record(LinearSwigluArgs{.width = pass.width,
                          .weight = weights.shared_gate_up.get(),
                          .in = b.normed.get(),
                          .norm_eps = model.config.residual_eps(),
                          .out = b.shared_gated.get()});
  record(LinearArgs{.width = pass.width,
                    .weight = weights.shared_down.get(),
                    .in = b.shared_gated.get(),
                    .out = b.shared_product.get(),
                    .stride = model.config.hidden});
}

/// x += sum over the experts e that the row's router chooses of share_e * (silu(h Wgate_e^T) * (h Wup_e^T)) Wdown_e^T,
/// with biases and clamped gates where the model has them; the rest as add_swiglu. A shared expert's swiglu of all rows
/// is added likewise, by the share that its gate gives.
void add_experts(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer,
                 const Buffer& next_norm) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const ModelConfig& config = model.config;
  const bool shared = model.layers[layer].shared_expert;
  const ExpertCounts experts{config.experts, config.experts_used, shared};
  const AuxPlace aux = aux_of(model, pass, layer);
  const bool counts = pass.expert_layers > 0;
  record(RouteArgs{.width = pass.width,
                   .experts = experts,
                   .router = weights.router.get(),
                   .in = b.normed.get(),
                   .norm_eps = config.residual_eps(),
                   .of_chosen = config.shares_among_chosen,
                   .logits = b.expert_logits.get(),
                   .chosen = b.chosen_experts.get(),
                   .shares = b.expert_shares.get(),
                   .bias = weights.router_bias.get(),
                   .rows = counts ? model.parts.rows.get() : nullptr,
                   .touched = counts ? b.touched_experts.get() : nullptr,
                   .layer = expert_layer(model.layers, layer)});
  // Before `normed` is written anew, and not between the two ops that share the groups of rows with the same expert.
  if (shared) record_shared_expert(record, model, pass, layer);
  record(ExpertSwigluArgs{.width = pass.width,
                          .experts = experts,
                          .weight = weights.gate_up.get(),
                          .in = b.normed.get(),
                          .norm_eps = config.residual_eps(),
                          .chosen = b.chosen_experts.get(),
                          .out = b.expert_gated.get(),
                          .bias = weights.gate_up_bias.get(),
                          .limit = config.swiglu_limit});
  record(ExpertAddArgs{.width = pass.width,
                       .experts = experts,
                       .weight = weights.ffn_down.get(),
                       .in = b.expert_gated.get(),
                       .chosen = b.chosen_experts.get(),
                       .shares = b.expert_shares.get(),
                       .shared = shared ? b.shared_product.get() : nullptr,
                       .products = b.expert_products.get(),
                       .x = b.x.get(),
                       .norm = {&next_norm},
                       .out = b.normed.get(),
                       .aux = aux.buffer,
                       .aux_stride = aux.stride,
                       .aux_offset = aux.offset,
                       .bias = weights.down_bias.get()});
}

/// How many different experts of each layer the rows of the pass went through.
void count_experts(Recorder& record, const ForwardContext& model, const PassShape& pass) {
  if (pass.expert_layers == 0) return;
  const ModelConfig& config = model.config;
  record(CountExpertsArgs{.layers = pass.expert_layers,
                          .experts = {config.experts, config.experts_used, config.shared_ffn != 0},
                          .touched = model.buffers.touched_experts.get(),
                          .counts = model.parts.distinct_experts.get()});
}

/// Wanted rows that the head is computed for at a time.
struct HeadChunk {
  uint32_t first = 0;
  uint32_t count = 0;
};

void compute_logits(Recorder& record, const ForwardContext& model, const PassShape& pass, HeadChunk chunk) {
  const PassBuffers& b = model.buffers;
  const bool whole_pass = pass.all_rows && chunk.count == pass.width;  // nothing to select
  if (!whole_pass) {
    record(SelectArgs{.width = pass.width,
                      .count = chunk.count,
                      .in = b.normed.get(),
                      .index = model.parts.head_rows.get(),
                      .out = b.gathered.get(),
                      .first = chunk.first});
  }
  record(LinearArgs{.width = chunk.count,
                    .weight = &model.head,
                    .in = whole_pass ? b.normed.get() : b.gathered.get(),
                    .norm_eps = model.config.residual_eps(),
                    .out = b.logits.get(),
                    .stride = model.head.rows(),
                    .offset = 0});
  if (model.config.logit_softcap != 0) {
    record(CapLogitsArgs{chunk.count, b.logits.get(), model.head.rows(), model.config.logit_softcap});
  }
}

void read_logits(Recorder& record, const ForwardContext& model, const PassShape& pass, HeadChunk chunk) {
  const PassBuffers& b = model.buffers;
  const uint32_t vocab = model.head.rows();
  const bool is_argmax = pass.head == HeadOutput::argmax;
  if (is_argmax && top_tokens(pass) == 0) {
    record(ArgmaxArgs{.width = chunk.count,
                      .logits = b.logits.get(),
                      .vocab = vocab,
                      .out = model.parts.best.get(),
                      .first_out = chunk.first});
  }
  if (top_tokens(pass) > 0) {
    record(TopKArgs{.width = chunk.count,
                    .logits = b.logits.get(),
                    .vocab = vocab,
                    .k = top_tokens(pass),
                    .ids = is_argmax || pass.likeliest ? model.parts.likeliest.get() : b.likeliest.get(),
                    .values = is_argmax ? model.parts.likeliest_logits.get() : b.likeliest_logits.get(),
                    .log_sum_exp = pass.probabilities ? model.parts.log_sum_exp.get() : b.sums.get(),
                    .first_out = chunk.first});
  }
  if (pass.token_logits > 0) {
    record(PickArgs{.count = pass.token_logits,
                    .first_row = chunk.first,
                    .rows = chunk.count,
                    .logits = b.logits.get(),
                    .vocab = vocab,
                    .pairs = model.parts.token_logit_pairs.get(),
                    .out = model.parts.token_logits.get()});
  }
  if (pass.head == HeadOutput::sampled) {  // the last, as it adjusts logits
    record(SampleArgs{.width = chunk.count,
                      .logits = b.logits.get(),
                      .vocab = vocab,
                      .settings = model.parts.sampling.get(),
                      .rows = model.parts.sampled_rows.get(),
                      .adjustments = model.parts.adjustments.get(),
                      .most_adjustments = pass.adjustments,
                      .random = pass.random,
                      .filtered = pass.filtered,
                      .out = model.parts.drawn.get(),
                      .first_row = chunk.first});
  }
}

/// logits = rms_norm(x) Wout^T of the wanted rows, and what is wanted of them: argmax, log sum exp, single logits. Goes
/// through the rows in chunks of what `gathered` and `logits` hold; the logits of the last chunk stay.
void predict(Recorder& record, const ForwardContext& model, const PassShape& pass) {
  if (pass.head == HeadOutput::none) return;
  const uint32_t most = model.buffers.gathered->max_width();
  for (uint32_t first = 0; first < pass.head_rows; first += most) {
    const HeadChunk chunk{first, std::min(most, pass.head_rows - first)};
    compute_logits(record, model, pass, chunk);
    read_logits(record, model, pass, chunk);
  }
}

/// The norm that follows a layer: the next layer's, or the final one.
const Buffer& norm_after(const Weights& weights, uint32_t layer) {
  return layer + 1 < weights.layers.size() ? *weights.layers[layer + 1].attn_norm : *weights.output_norm;
}

/// x += mixer(rms_norm(x))
void add_mixer(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  switch (model.layers[layer].mixer) {
    case Mixer::attention:
      project_qkv(record, model, pass, layer);
      attend(record, model, pass, layer);
      add_attention(record, model, pass, layer);
      break;
    case Mixer::gated_delta_net:
      project_recurrence(record, model, pass, layer);
      advance_states(record, model, pass, layer);
      add_recurrence(record, model, pass, layer);
      break;
  }
}

/// x += feed_forward(rms_norm(x))
void add_feed_forward(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  switch (model.layers[layer].feed_forward) {
    case FeedForward::swiglu: add_swiglu(record, model, pass, layer, norm_after(model.weights, layer)); break;
    case FeedForward::mixture_of_experts:
      add_experts(record, model, pass, layer, norm_after(model.weights, layer));
      break;
  }
}

}  // namespace

// A pre-norm transformer, read top to bottom: embedding, layers, head.
//
//   x = embedding(token)
//   for each layer:  x += mixer(rms_norm(x));  x += feed_forward(rms_norm(x))
//   logits = rms_norm(x) Wout^T
//
// What distinguishes Llama, Qwen3 and a DFlash drafter is in their LayerSpecs (engine/format/architecture.cpp).
void record_forward(Recorder& record, const ForwardContext& model, const PassShape& pass) {
  if (!pass.head_only) {
    embed_tokens(record, model, pass, *model.weights.layers[0].attn_norm);
    for (uint32_t layer = 0; layer < model.layers.size(); ++layer) {
      add_mixer(record, model, pass, layer);
      add_feed_forward(record, model, pass, layer);
    }
    count_experts(record, model, pass);
  }
  predict(record, model, pass);
}

}  // namespace canopy
