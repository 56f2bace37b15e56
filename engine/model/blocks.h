#pragma once
// The steps that pre-norm transformers share. Each reads and writes the model's PassBuffers; shapes are at the members.
//
// A norm is split: the step that writes x also writes normed = x * norm weight, and the step that reads normed
// multiplies by 1 / rms(x). So each step names the norm of the step after it.

#include "engine/model/forward.h"

namespace canopy {

/// x = embedding of the rows' tokens, times embedding_scale; normed = x * first_norm.
void embed_tokens(Recorder& record, const ForwardContext& model, const PassShape& pass, const Buffer& first_norm);

/// qkv = rms_norm(x) [Wq; Wk; Wv]^T, plus a bias where the layer has one; q and k get their head norms (likewise) and
/// their rotation; K and V go to the cache.
void project_qkv(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer);

/// attended = softmax(q K^T / sqrt(D)) V, each row over what the layer's attention shows it of prefix and ancestors;
/// times sigmoid of the gate where the layer has one; with sinks where it has them.
void attend(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer);

/// x += attended Wo^T, plus a bias where the layer has one, all through the layer's post norm where it has one; normed
/// = x * ffn_norm.
void add_attention(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer);

/// inputs = rms_norm(x) [Wqkv; Wb; Wa]^T, gate = rms_norm(x) Wz^T of a recurrence.
void project_recurrence(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer);

/// Prepares the inputs (convolution, norms, decay) and goes through the states of the rows: read = S^T q of each.
void advance_states(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer);

/// x += (rms_norm(read) * silu(gate)) Wout^T; normed = x * ffn_norm.
void add_recurrence(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer);

/// x += (f(h Wgate^T) * (h Wup^T)) Wdown^T with h = rms_norm(x), f silu or gelu, through the layer's post norm where it
/// has one; normed = x * next_norm. x of an aux layer is written to the aux hidden states too.
void add_swiglu(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer,
                const Buffer& next_norm);

/// x += sum over the experts e that the row's router chooses of share_e * (silu(h Wgate_e^T) * (h Wup_e^T)) Wdown_e^T,
/// with biases and clamped gates where the model has them; the rest as add_swiglu. A shared expert's swiglu of all rows
/// is added likewise, by the share that its gate gives.
void add_experts(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer,
                 const Buffer& next_norm);

/// How many different experts of each layer the rows of the pass went through.
void count_experts(Recorder& record, const ForwardContext& model, const PassShape& pass);

/// logits = rms_norm(x) Wout^T of the wanted rows, and what is wanted of them: argmax, log sum exp, single logits. Goes
/// through the rows in chunks of what `gathered` and `logits` hold; the logits of the last chunk stay.
void predict(Recorder& record, const ForwardContext& model, const PassShape& pass);

/// The norm that follows a layer: the next layer's, or the final one.
const Buffer& norm_after(const Weights& weights, uint32_t layer);

}  // namespace canopy
