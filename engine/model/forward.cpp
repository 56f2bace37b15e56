#include "engine/model/forward.h"

#include <algorithm>
#include <cmath>

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

/// layer_inputs[w, l] = (rms_norm(e Wl^T / sqrt(H)) + sqrt(I) El[token]) / sqrt(2) of each layer l, e the row's
/// embedding, which `normed` has divided by sqrt(H); normed = x * first_norm then.
void make_layer_inputs(Recorder& record, const ForwardContext& model, const PassShape& pass, const Buffer& first_norm) {
  const PassBuffers& b = model.buffers;
  const Weights& weights = model.weights;
  const uint32_t layers = model.config.layers, each = model.config.layer_inputs;
  record(EmbedArgs{.width = pass.width,
                   .table = weights.layer_embd.get(),
                   .rows = model.parts.rows.get(),
                   .x = b.layer_inputs.get(),
                   .norm = {weights.ones.get()},
                   .out = b.looked_up_inputs.get(),
                   .scale = static_cast<float>(std::sqrt(each / 2.0))});
  record(LinearArgs{.width = pass.width,
                    .weight = weights.layer_proj.get(),
                    .in = b.normed.get(),
                    .out = b.layer_products.get(),
                    .stride = layers * each});
  record(NormAddArgs{.width = pass.width * layers,
                     .in = b.layer_products.get(),
                     .weight = weights.layer_norm.get(),
                     .eps = model.config.rms_eps,
                     .x = b.layer_inputs.get(),
                     .norm = {weights.ones.get()},
                     .out = b.normed_inputs.get()});
  record(NormRowsArgs{.width = pass.width, .in = b.x.get(), .norm = {&first_norm}, .out = b.normed.get()});
}

/// What a layer turns its heads by, as RopeStoreArgs has it.
struct Turns {
  const Buffer* table = nullptr;
  uint32_t query_offset = 0;
};

Turns turns_of(const PassBuffers& b, const LayerSpec& spec) {
  if (!spec.rotates) return {b.no_rotation.get()};
  if (spec.local_rope) return {b.local_rotation.get()};
  return {b.rotation.get(), b.query_offset};
}

/// What the first matrices of attention or feed-forward read, and the norm that is still to be applied; 0: none.
struct HalfInput {
  const Activations* rows = nullptr;
  float norm_eps = 0;
};

/// rms_norm(x); where the half has a convolution, mixed by its first side, and kernels of its rows for both.
HalfInput half_input(Recorder& record, const ForwardContext& model, const PassShape& pass, const ConvWeights* weights,
                     const Buffer& norm) {
  const PassBuffers& b = model.buffers;
  if (weights == nullptr) return {b.normed.get(), model.config.residual_eps()};
  const ConvBuffers& conv = *model.conv;
  const uint32_t hidden = model.config.hidden;
  for (Buffer* const rows : {conv.normed.get(), conv.mixed.get()}) {  // both are sums that begin with nothing
    record(CopyRowsArgs{
        .count = pass.width, .cols = hidden, .in = conv.zero.get(), .moves = conv.zero_moves.get(), .out = rows});
  }
  record(NormAddArgs{.width = pass.width,
                     .in = b.x.get(),
                     .weight = &norm,
                     .eps = model.config.rms_eps,
                     .x = conv.normed.get(),
                     .norm = {&norm},
                     .out = conv.spare.get()});
  record(LinearArgs{.width = pass.width,
                    .weight = weights->project.get(),
                    .in = b.normed.get(),
                    .norm_eps = model.config.residual_eps(),
                    .out = conv.kernels.get(),
                    .stride = weights->project->rows()});
  record(ConvRowsArgs{.width = pass.width,
                      .cols = hidden,
                      .taps = conv.taps,
                      .group = conv.group,
                      .side = 0,
                      .in = conv.normed.get(),
                      .base = weights->base.get(),
                      .kernel = conv.kernels.get(),
                      .x = conv.mixed.get()});
  record(NormRowsArgs{.width = pass.width, .in = conv.mixed.get(), .norm = {}, .out = conv.rows.get()});
  return {conv.rows.get(), 0};
}

/// x += in W^T, mixed by the second side of the half's convolution; normed = x * next_norm.
void add_mixed(Recorder& record, const ForwardContext& model, const PassShape& pass, const ConvWeights& weights,
               const Weight& weight, const Activations& in, const Buffer& next_norm) {
  const PassBuffers& b = model.buffers;
  const ConvBuffers& conv = *model.conv;
  const uint32_t hidden = model.config.hidden;
  record(LinearArgs{.width = pass.width, .weight = &weight, .in = &in, .out = conv.branch.get(), .stride = hidden});
  record(ConvRowsArgs{.width = pass.width,
                      .cols = hidden,
                      .taps = conv.taps,
                      .group = conv.group,
                      .side = 1,
                      .in = conv.branch.get(),
                      .base = weights.base.get(),
                      .kernel = conv.kernels.get(),
                      .x = b.x.get()});
  record(NormRowsArgs{.width = pass.width, .in = b.x.get(), .norm = {&next_norm}, .out = b.normed.get()});
}

/// qkv = rms_norm(x) [Wq; Wk; Wv]^T, plus a bias where the layer has one; q and k get their head norms (likewise) and
/// their rotation; K and V go to the cache. A layer that reads another's K and V has queries alone.
void project_qkv(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const LayerSpec& spec = model.layers[layer];
  const ModelConfig& config = model.config;
  std::vector<const Weight*> stacked;
  for (const auto& weight : weights.qkv) stacked.push_back(weight.get());
  const HalfInput input = model.qkv_input != nullptr
                              ? HalfInput{model.qkv_input, 0}
                              : half_input(record, model, pass, weights.attn_conv.get(), *weights.attn_norm);
  KvShape shape = model.cache.shape(layer);
  if (!spec.own_kv) shape.kv_heads = 0;
  const Turns turns = turns_of(b, spec);
  const ProjectHeadsArgs project{.weights = stacked,
                                 .in = input.rows,
                                 .in_norm_eps = input.norm_eps,
                                 .qkv = b.qkv.get(),
                                 .heads = {.width = pass.width,
                                           .qkv = b.qkv.get(),
                                           .rows = model.parts.rows.get(),
                                           .rotation = turns.table,
                                           .query_offset = turns.query_offset,
                                           .q_norm = weights.q_norm.get(),
                                           .k_norm = weights.k_norm.get(),
                                           .v_norm = weights.v_norm.get(),
                                           .norm_eps = config.rms_eps,
                                           .heads = config.heads_of(layer),
                                           .shape = shape,
                                           .interleaved = spec.rope == RopeLayout::interleaved,
                                           .cache = spec.own_kv ? &model.cache.layer(layer) : nullptr,
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
                       .rows = model.seen_rows != nullptr ? model.seen_rows : model.parts.rows.get(),
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

/// Products of heads that have a matrix of their own each: out[w, h] = in[w, h] W_h^T.
void multiply_heads(Recorder& record, const ForwardContext& model, const PassShape& pass, const Weight& weight,
                    const Activations& in, Buffer& out) {
  const uint32_t heads = model.config.heads;
  record(ExpertAddArgs{.width = pass.width * heads,
                       .experts = {heads, 1},
                       .weight = &weight,
                       .in = &in,
                       .chosen = model.buffers.latent.heads.get(),
                       .products = &out,
                       .norm = {}});
}

/// qkv[w, h] = [Wk_h^T q; r]: what a head's query, q beside its part r that will be turned, is to keys of latents.
/// Queries are products of rms_norm(x), or of their own latents of it.
void project_latent_queries(Recorder& record, const ForwardContext& model, const PassShape& pass,
                            const LatentWeights& weights) {
  const PassBuffers& b = model.buffers;
  const LatentBuffers& l = b.latent;
  HalfInput input = {b.normed.get(), model.config.residual_eps()};
  const auto product = [&](const Weight& weight, Buffer& out) {
    record(LinearArgs{.width = pass.width,
                      .weight = &weight,
                      .in = input.rows,
                      .norm_eps = input.norm_eps,
                      .out = &out,
                      .stride = weight.rows()});
  };
  if (weights.query_latent) {
    product(*weights.query_latent, *l.query_latent);
    record(NormRowsArgs{pass.width, l.query_latent.get(), {weights.query_norm.get()}, l.normed_query_latent.get()});
    input = {l.normed_query_latent.get(), model.config.rms_eps};
  }
  product(*weights.query_keys, *l.query_keys);
  product(*weights.query_turned, *l.query_turned);
  const uint32_t pairs = pass.width * model.config.heads;
  record(NormRowsArgs{.width = pairs, .in = l.query_keys.get(), .norm = {}, .out = l.query_key_rows.get()});
  multiply_heads(record, model, pass, *weights.keys, *l.query_key_rows, *b.qkv);
  record(CopyRowsArgs{.count = pairs * (model.config.rotary_dim / l.piece),
                      .cols = l.piece,
                      .in = l.query_turned.get(),
                      .moves = l.turned_moves.get(),
                      .out = b.qkv.get()});
}

/// keys[w] = [rms_norm(c); k], c and k products of rms_norm(x): a latent, and the part that will be turned.
void project_latent_keys(Recorder& record, const ForwardContext& model, const PassShape& pass,
                         const LatentWeights& weights) {
  const PassBuffers& b = model.buffers;
  const LatentBuffers& l = b.latent;
  const ModelConfig& config = model.config;
  const uint32_t rank = config.latent.rank;
  const auto product = [&](const Weight& weight, Buffer& out, uint32_t stride, uint32_t offset) {
    record(LinearArgs{.width = pass.width,
                      .weight = &weight,
                      .in = b.normed.get(),
                      .norm_eps = config.residual_eps(),
                      .out = &out,
                      .stride = stride,
                      .offset = offset});
  };
  product(*weights.latent, *l.latent, rank, 0);
  product(*weights.turned, *l.keys, config.head_dim, rank);
  record(CopyRowsArgs{.count = pass.width,
                      .cols = rank,
                      .in = l.zeros.get(),
                      .moves = l.from_zeros.get(),
                      .out = l.normed_latent.get()});
  record(NormAddArgs{.width = pass.width,
                     .in = l.latent.get(),
                     .weight = weights.latent_norm.get(),
                     .eps = config.rms_eps,
                     .x = l.normed_latent.get(),
                     .norm = {l.ones.get()},
                     .out = l.spare.get()});
  record(CopyRowsArgs{.count = pass.width * (rank / l.piece),
                      .cols = l.piece,
                      .in = l.normed_latent.get(),
                      .moves = l.latent_moves.get(),
                      .out = l.keys.get()});
}

/// Where a layer's output is written as aux hidden states; no buffer where it is not.
struct AuxPlace {
  Buffer* buffer = nullptr;
  uint32_t stride = 0, offset = 0;
};

/// x += in W^T; normed = x * norm, and what is kept beside.
void add_product(Recorder& record, const PassBuffers& b, uint32_t width, const Weight& weight, const Activations& in,
                 const Buffer& norm, const AuxPlace& aux = {}) {
  record(LinearAddArgs{.width = width,
                       .weight = &weight,
                       .in = &in,
                       .x = b.x.get(),
                       .norm = {&norm},
                       .out = b.normed.get(),
                       .aux = aux.buffer,
                       .aux_stride = aux.stride,
                       .aux_offset = aux.offset});
}

/// x += values Wo^T, values[w, h] = Wv_h softmax(q K^T) C of each head, C the latents in the keys K; normed = x *
/// ffn_norm. A query head is a row of attention by itself, so that what it is given is a row for its matrix.
void add_latent_attention(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const LatentBuffers& l = b.latent;
  const ModelConfig& config = model.config;
  const LayerWeights& weights = model.weights.layers[layer];
  project_latent_queries(record, model, pass, *weights.latent);
  project_latent_keys(record, model, pass, *weights.latent);
  const KvShape shape = model.cache.shape(layer);
  RopeStoreArgs heads{.width = pass.width,
                      .qkv = b.qkv.get(),
                      .rows = model.parts.rows.get(),
                      .rotation = b.rotation.get(),
                      .query_offset = b.query_offset,
                      .heads = config.heads,
                      .shape = shape,
                      .interleaved = model.layers[layer].rope == RopeLayout::interleaved,
                      .q = b.q.get()};
  heads.shape.kv_heads = 0;
  record(heads);
  heads.qkv = l.keys.get();
  heads.heads = 0;
  heads.shape = shape;
  heads.cache = &model.cache.layer(layer);
  heads.q = nullptr;
  record(heads);
  record(AttentionArgs{.width = pass.width * config.heads,
                       .q = b.q.get(),
                       .rows = l.head_rows.get(),
                       .ancestors = model.parts.ancestors.get(),
                       .pages = model.parts.pages.get(),
                       .heads = 1,
                       .shape = shape,
                       .scale = static_cast<float>(config.query_scale()),
                       .max_positions = pass.max_positions,
                       .cache = &model.cache.layer(layer),
                       .out = l.attended.get()});
  multiply_heads(record, model, pass, *weights.latent->values, *l.attended, *l.values);
  record(NormRowsArgs{.width = pass.width, .in = l.values.get(), .norm = {}, .out = l.head_values.get()});
  add_product(record, b, pass.width, *weights.attn_output, *l.head_values, *weights.ffn_norm);
}

/// The number of a layer among those with experts.
uint32_t expert_layer(std::span<const LayerSpec> layers, uint32_t layer) {
  const auto has_experts = [](const LayerSpec& spec) {
    return spec.feed_forward == FeedForward::mixture_of_experts || spec.feed_forward == FeedForward::both;
  };
  return static_cast<uint32_t>(std::ranges::count_if(layers.first(layer), has_experts));
}

AuxPlace aux_of(const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const auto& layers = model.aux_layers;
  const auto found = std::find(layers.begin(), layers.end(), layer);
  const uint32_t hidden = model.config.hidden, stride = static_cast<uint32_t>(layers.size()) * hidden;
  if (!pass.aux_hidden_states || found == layers.end()) return {nullptr, stride, 0};
  return {model.buffers.aux_hidden_states.get(), stride, static_cast<uint32_t>(found - layers.begin()) * hidden};
}

/// The same, where what adds a branch to the stream can write it: as the stream is the model's own.
AuxPlace aux_beside(const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  return model.config.scales_branches() ? AuxPlace{} : aux_of(model, pass, layer);
}

/// Where it cannot: the stream with nothing added, divided by its scale. `normed` stays as it is.
void write_aux(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const AuxPlace aux = aux_of(model, pass, layer);
  if (!model.config.scales_branches() || aux.buffer == nullptr) return;
  record(NormAddArgs{.width = pass.width,
                     .in = b.nothing.get(),
                     .weight = model.weights.output_norm.get(),
                     .eps = model.config.rms_eps,
                     .x = b.x.get(),
                     .norm = {model.weights.output_norm.get()},
                     .out = b.unread.get(),
                     .aux = aux.buffer,
                     .aux_stride = aux.stride,
                     .aux_offset = aux.offset,
                     .aux_scale = 1 / model.config.residual_scale});
}

/// x = scale * (x + post norm of in); normed = x * next_norm.
void add_normed_branch(Recorder& record, const ForwardContext& model, const PassShape& pass, const Buffer& in,
                       const Buffer& post_norm, const Buffer& next_norm, const AuxPlace& aux, float scale) {
  record(NormAddArgs{.width = pass.width,
                     .in = &in,
                     .weight = &post_norm,
                     .eps = model.config.rms_eps,
                     .x = model.buffers.x.get(),
                     .norm = {&next_norm},
                     .out = model.buffers.normed.get(),
                     .aux = aux.buffer,
                     .aux_stride = aux.stride,
                     .aux_offset = aux.offset,
                     .aux_scale = 1 / model.config.residual_scale,
                     .x_scale = scale});
}

/// The same of in W^T, plus a bias where there is one.
void add_through_norm(Recorder& record, const ForwardContext& model, const PassShape& pass, const Weight& weight,
                      const Activations& in, const Buffer* bias, const Buffer& post_norm, const Buffer& next_norm,
                      const AuxPlace& aux, float scale = 1) {
  Buffer& branch = *model.buffers.branch;
  const uint32_t hidden = model.config.hidden;
  record(LinearArgs{.width = pass.width, .weight = &weight, .in = &in, .out = &branch, .stride = hidden, .offset = 0});
  if (bias != nullptr) record(AddBiasArgs{pass.width, hidden, bias, &branch});
  add_normed_branch(record, model, pass, branch, post_norm, next_norm, aux, scale);
}

/// The norm that follows a layer: the next layer's, or the final one.
const Buffer& norm_after(const Weights& weights, uint32_t layer) {
  return layer + 1 < weights.layers.size() ? *weights.layers[layer + 1].attn_norm : *weights.output_norm;
}

/// What follows a layer's mixer: the norm of its feed-forward, or where it has none, what follows the layer.
struct BehindMixer {
  const Buffer& norm;
  AuxPlace aux;
};

BehindMixer behind_mixer(const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const bool ends = model.layers[layer].feed_forward == FeedForward::none;
  if (!ends) return {*model.weights.layers[layer].ffn_norm, {}};
  return {norm_after(model.weights, layer), aux_beside(model, pass, layer)};
}

/// x += attended Wo^T, plus a bias where the layer has one, all through the layer's post norm where it has one; normed
/// = x * ffn_norm, or by the norm behind the layer.
void add_attention(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const Activations& attended = *b.attended.at(model.config.q_width_of(layer));
  if (weights.attn_conv) {
    return add_mixed(record, model, pass, *weights.attn_conv, *weights.attn_output, attended, *weights.ffn_norm);
  }
  if (weights.attn_post_norm) {
    return add_through_norm(record, model, pass, *weights.attn_output, attended, weights.output_bias.get(),
                            *weights.attn_post_norm, *weights.ffn_norm, {});
  }
  if (weights.output_bias) record(AddBiasArgs{pass.width, model.config.hidden, weights.output_bias.get(), b.x.get()});
  const BehindMixer behind = behind_mixer(model, pass, layer);
  add_product(record, b, pass.width, *weights.attn_output, attended, behind.norm, behind.aux);
}

/// inputs = rms_norm(x) [Wqkv; Wb; Wa]^T, of a scan without Wb, gate = rms_norm(x) Wz^T of a recurrence; inputs =
/// rms_norm(x) Win^T of a short convolution.
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
    product(*weight, *memory.layer(layer).inputs, memory.row_elements());
    offset += weight->rows();
  }
  if (!weights.gate) return;
  offset = 0;
  product(*weights.gate, memory.gate(), memory.shape().values());
}

/// Prepares the inputs (convolution, norms, decay) and goes through the states of the rows: read = S^T q of each. Of a
/// short convolution: results.
void advance_states(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  record_recurrence(record, *model.recurrent, model.weights.layers[layer], layer, pass.width, *model.parts.steps, true);
}

/// x += results Wout^T, of a delta net results = rms_norm(read) * silu(gate), of a scan rms_norm(read * silu(gate)) of
/// each key head's values; normed = x * ffn_norm, or by the norm behind the layer.
void add_recurrence(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const RecurrentMemory& memory = *model.recurrent;
  if (model.layers[layer].mixer != Mixer::short_convolution) {
    const DeltaShape& shape = memory.shape();
    const uint32_t heads = shape.corrects ? shape.value_heads : shape.key_heads;
    record(GatedNormArgs{.width = pass.width,
                         .heads = heads,
                         .head_dim = shape.values() / heads,
                         .in = &memory.read(),
                         .gate = &memory.gate(),
                         .weight = weights.state_norm.get(),
                         .eps = model.config.rms_eps,
                         .out = &memory.results(),
                         .gate_within = !shape.corrects});
  }
  const BehindMixer behind = behind_mixer(model, pass, layer);
  add_product(record, b, pass.width, *weights.attn_output, memory.results(), behind.norm, behind.aux);
}

/// x = scale * (x + norm of (gelu(x Wgate^T) * the layer's inputs) Wproj^T); normed = x * next_norm. `normed` has x.
void add_layer_input(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer,
                     const Buffer& next_norm) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const uint32_t each = model.config.layer_inputs;
  record(LinearArgs{.width = pass.width,
                    .weight = weights.input_gate.get(),
                    .in = b.normed.get(),
                    .out = b.layer_gate.get(),
                    .stride = each});
  record(GateInputsArgs{.width = pass.width,
                        .gate = b.layer_gate.get(),
                        .scale = 1 / model.config.residual_scale,
                        .inputs = b.layer_inputs.get(),
                        .stride = model.config.layers * each,
                        .offset = layer * each,
                        .out = b.gated_inputs.get()});
  add_through_norm(record, model, pass, *weights.input_proj, *b.gated_inputs, nullptr, *weights.input_norm, next_norm,
                   aux_of(model, pass, layer), weights.scale);
}

/// x += (f(h Wgate^T) * (h Wup^T)) Wdown^T with h = rms_norm(x), f silu or gelu, through the layer's post norm where it
/// has one; normed = x * next_norm. x of an aux layer is written to the aux hidden states too.
void add_swiglu(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer,
                const Buffer& next_norm) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const AuxPlace aux = aux_beside(model, pass, layer);
  Activations& gated = *b.gated.at(model.config.ffn_of(layer));
  const HalfInput input = half_input(record, model, pass, weights.ffn_conv.get(), *weights.ffn_norm);
  record(LinearSwigluArgs{.width = pass.width,
                          .weight = weights.gate_up.get(),
                          .in = input.rows,
                          .norm_eps = input.norm_eps,
                          .out = &gated,
                          .gate = model.layers[layer].gelu ? GateFunction::gelu : GateFunction::silu});
  if (weights.ffn_conv) {
    return add_mixed(record, model, pass, *weights.ffn_conv, *weights.ffn_down, gated, next_norm);
  }
  if (model.layers[layer].layer_input) {
    add_through_norm(record, model, pass, *weights.ffn_down, gated, nullptr, *weights.ffn_post_norm,
                     *model.weights.ones, {});
    return add_layer_input(record, model, pass, layer, next_norm);
  }
  if (weights.ffn_post_norm) {
    return add_through_norm(record, model, pass, *weights.ffn_down, gated, nullptr, *weights.ffn_post_norm, next_norm,
                            aux, weights.scale);
  }
  add_product(record, b, pass.width, *weights.ffn_down, gated, next_norm, aux);
}

/// out = relu(h Wup^T)^2 with h = rms_norm(x).
void square_upper(Recorder& record, const ForwardContext& model, const PassShape& pass, const Weight& up,
                  Activations& out) {
  const PassBuffers& b = model.buffers;
  record(LinearArgs{.width = pass.width,
                    .weight = &up,
                    .in = b.normed.get(),
                    .norm_eps = model.config.residual_eps(),
                    .out = b.upper.get(),
                    .stride = up.rows()});
  record(SquareReluArgs{pass.width, b.upper.get(), &out});
}

/// x += relu(h Wup^T)^2 Wdown^T; the rest as add_swiglu.
void add_square_relu(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer,
                     const Buffer& next_norm) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const AuxPlace aux = aux_beside(model, pass, layer);
  Activations& squared = *b.gated.at(model.config.ffn_of(layer));
  square_upper(record, model, pass, *weights.gate_up, squared);
  add_product(record, b, pass.width, *weights.ffn_down, squared, next_norm, aux);
}

/// expert_gated = relu(h Wup_e^T)^2 of each row and each of its experts e. The products are of rows by themselves that
/// have chosen one expert, so that h must be a row of each pair, with its norm applied.
void square_experts(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const ModelConfig& config = model.config;
  const LayerWeights& weights = model.weights.layers[layer];
  const Buffer& norm = weights.ffn_norm ? *weights.ffn_norm : *weights.attn_norm;
  const uint32_t pairs = pass.width * config.experts_used;
  record(CopyRowsArgs{.count = pass.width,
                      .cols = config.hidden,
                      .in = b.zeros.get(),
                      .moves = b.from_zeros.get(),
                      .out = b.normed_rows.get()});
  record(NormAddArgs{.width = pass.width,
                     .in = b.x.get(),
                     .weight = &norm,
                     .eps = config.residual_eps(),
                     .x = b.normed_rows.get(),
                     .norm = {&norm},
                     .out = b.unread_rows.get()});
  record(CopyRowsArgs{.count = pairs,
                      .cols = config.hidden,
                      .in = b.normed_rows.get(),
                      .moves = b.to_pairs.get(),
                      .out = b.pair_rows.get()});
  record(NormRowsArgs{.width = pairs, .in = b.pair_rows.get(), .norm = {}, .out = b.pairs.get()});
  record(ExpertAddArgs{.width = pairs,
                       .experts = {config.experts, 1},
                       .weight = weights.gate_up.get(),
                       .in = b.pairs.get(),
                       .chosen = b.chosen_experts.get(),
                       .products = b.expert_upper.get(),
                       .norm = {}});
  record(SquareReluArgs{pairs, b.expert_upper.get(), b.expert_gated.get()});
}

/// What the expert that every row goes through makes of the rows: PassBuffers::shared_product.
void record_shared_expert(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  if (model.layers[layer].square_relu) {
    square_upper(record, model, pass, *weights.shared_gate_up, *b.shared_gated);
  } else {
    record(LinearSwigluArgs{.width = pass.width,
                            .weight = weights.shared_gate_up.get(),
                            .in = b.normed.get(),
                            .norm_eps = model.config.residual_eps(),
                            .out = b.shared_gated.get()});
  }
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
  const ExpertCounts experts{config.experts, config.experts_used, shared, model.layers[layer].shared_gate};
  const AuxPlace aux = aux_beside(model, pass, layer);
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
                   .layer = expert_layer(model.layers, layer),
                   .factor = config.share_factor,
                   .sigmoid = config.router_has_sigmoid,
                   .choice_bias = weights.choice_bias.get(),
                   .groups = config.expert_groups,
                   .groups_used = config.expert_groups_used});
  // Before `normed` is written anew, and not between the two ops that share the groups of rows with the same expert.
  if (shared) record_shared_expert(record, model, pass, layer);
  if (model.layers[layer].square_relu) {
    square_experts(record, model, pass, layer);
  } else {
    record(ExpertSwigluArgs{.width = pass.width,
                            .experts = experts,
                            .weight = weights.gate_up.get(),
                            .in = b.normed.get(),
                            .norm_eps = config.residual_eps(),
                            .chosen = b.chosen_experts.get(),
                            .out = b.expert_gated.get(),
                            .bias = weights.gate_up_bias.get(),
                            .limit = config.swiglu_limit});
  }
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

/// to = 0
void clear(Recorder& record, const ForwardContext& model, const PassShape& pass, Buffer& to) {
  const PassBuffers& b = model.buffers;
  record(CopyRowsArgs{
      .count = pass.width, .cols = model.config.hidden, .in = b.zeros.get(), .moves = b.from_zeros.get(), .out = &to});
}

/// to += norm of in. What `normed` had before is lost.
void add_normed(Recorder& record, const ForwardContext& model, const PassShape& pass, const Buffer& in,
                const Buffer& norm, Buffer& to) {
  record(NormAddArgs{.width = pass.width,
                     .in = &in,
                     .weight = &norm,
                     .eps = model.config.rms_eps,
                     .x = &to,
                     .norm = {model.weights.ones.get()},
                     .out = model.buffers.normed.get()});
}

/// x = scale * (x + post norm of (norm of swiglu(h) + norm of experts(h'))), h and h' being x by the norms of each, and
/// the router reading x by a third; normed = x * next_norm.
void add_both(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer,
              const Buffer& next_norm) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const ModelConfig& config = model.config;
  const ExpertCounts experts{config.experts, config.experts_used};
  const GateFunction function = model.layers[layer].gelu ? GateFunction::gelu : GateFunction::silu;
  const bool counts = pass.expert_layers > 0;
  Activations& gated = *b.gated.at(config.ffn_of(layer));
  record(LinearSwigluArgs{.width = pass.width,
                          .weight = weights.shared_gate_up.get(),
                          .in = b.normed.get(),
                          .norm_eps = config.residual_eps(),
                          .out = &gated,
                          .gate = function});
  record(LinearArgs{.width = pass.width,
                    .weight = weights.shared_down.get(),
                    .in = &gated,
                    .out = b.branch.get(),
                    .stride = config.hidden});
  clear(record, model, pass, *b.both);
  add_normed(record, model, pass, *b.branch, *weights.dense_post_norm, *b.both);
  record(
      NormRowsArgs{.width = pass.width, .in = b.x.get(), .norm = {weights.router_norm.get()}, .out = b.normed.get()});
  record(RouteArgs{.width = pass.width,
                   .experts = experts,
                   .router = weights.router.get(),
                   .in = b.normed.get(),
                   .norm_eps = config.residual_eps(),
                   .of_chosen = true,
                   .logits = b.expert_logits.get(),
                   .chosen = b.chosen_experts.get(),
                   .shares = b.expert_shares.get(),
                   .scales = weights.expert_scales.get(),
                   .rows = counts ? model.parts.rows.get() : nullptr,
                   .touched = counts ? b.touched_experts.get() : nullptr,
                   .layer = expert_layer(model.layers, layer)});
  record(
      NormRowsArgs{.width = pass.width, .in = b.x.get(), .norm = {weights.expert_norm.get()}, .out = b.normed.get()});
  clear(record, model, pass, *b.expert_sum);  // not between the two ops that share the groups of rows
  record(ExpertSwigluArgs{.width = pass.width,
                          .experts = experts,
                          .weight = weights.gate_up.get(),
                          .in = b.normed.get(),
                          .norm_eps = config.residual_eps(),
                          .chosen = b.chosen_experts.get(),
                          .out = b.expert_gated.get(),
                          .gate = function});
  record(ExpertAddArgs{.width = pass.width,
                       .experts = experts,
                       .weight = weights.ffn_down.get(),
                       .in = b.expert_gated.get(),
                       .chosen = b.chosen_experts.get(),
                       .shares = b.expert_shares.get(),
                       .products = b.expert_products.get(),
                       .x = b.expert_sum.get(),
                       .norm = {model.weights.ones.get()},
                       .out = b.normed.get()});
  add_normed(record, model, pass, *b.expert_sum, *weights.expert_post_norm, *b.both);
  add_normed_branch(record, model, pass, *b.both, *weights.ffn_post_norm, next_norm, aux_of(model, pass, layer),
                    weights.scale);
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

/// head_rows[w, h] = rows[w], as each query head is a row of latent attention.
void copy_rows_to_heads(Recorder& record, const ForwardContext& model, const PassShape& pass) {
  const LatentBuffers& l = model.buffers.latent;
  record(CopyRowsArgs{.count = pass.width * model.config.heads,
                      .cols = sizeof(Row) / sizeof(float),
                      .in = model.parts.rows.get(),
                      .moves = l.rows_of_heads.get(),
                      .out = l.head_rows.get()});
}

/// x += mixer(rms_norm(x))
void add_mixer(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  switch (model.layers[layer].mixer) {
    case Mixer::attention:
      project_qkv(record, model, pass, layer);
      attend(record, model, pass, layer);
      add_attention(record, model, pass, layer);
      break;
    case Mixer::latent_attention: add_latent_attention(record, model, pass, layer); break;
    case Mixer::gated_delta_net:
    case Mixer::scan:
    case Mixer::short_convolution:
      project_recurrence(record, model, pass, layer);
      advance_states(record, model, pass, layer);
      add_recurrence(record, model, pass, layer);
      break;
    case Mixer::none: break;
  }
}

/// x += feed_forward(rms_norm(x))
void add_feed_forward(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  switch (model.layers[layer].feed_forward) {
    case FeedForward::none: break;
    case FeedForward::swiglu:
      if (model.layers[layer].square_relu) {
        add_square_relu(record, model, pass, layer, norm_after(model.weights, layer));
      } else {
        add_swiglu(record, model, pass, layer, norm_after(model.weights, layer));
      }
      break;
    case FeedForward::mixture_of_experts:
      add_experts(record, model, pass, layer, norm_after(model.weights, layer));
      break;
    case FeedForward::both: add_both(record, model, pass, layer, norm_after(model.weights, layer)); break;
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
    const Buffer& first_norm = *model.weights.layers[0].attn_norm;
    const bool has_inputs = model.config.layer_inputs != 0;
    embed_tokens(record, model, pass, has_inputs ? *model.weights.embedding_norm : first_norm);
    if (has_inputs) make_layer_inputs(record, model, pass, first_norm);
    if (model.config.has_latent_attention()) copy_rows_to_heads(record, model, pass);
    record_layers(record, model, pass);
    count_experts(record, model, pass);
  }
  record_head(record, model, pass);
}

void record_layers(Recorder& record, const ForwardContext& model, const PassShape& pass) {
  for (uint32_t layer = 0; layer < model.layers.size(); ++layer) {
    add_mixer(record, model, pass, layer);
    add_feed_forward(record, model, pass, layer);
    write_aux(record, model, pass, layer);
  }
}

/// logits = rms_norm(x) Wout^T of the wanted rows, and what is wanted of them: argmax, log sum exp, single logits. Goes
/// through the rows in chunks of what `gathered` and `logits` hold; the logits of the last chunk stay.
void record_head(Recorder& record, const ForwardContext& model, const PassShape& pass) {
  if (pass.head == HeadOutput::none) return;
  const uint32_t most = model.buffers.gathered->max_width();
  for (uint32_t first = 0; first < pass.head_rows; first += most) {
    const HeadChunk chunk{first, std::min(most, pass.head_rows - first)};
    compute_logits(record, model, pass, chunk);
    read_logits(record, model, pass, chunk);
  }
}

}  // namespace canopy
