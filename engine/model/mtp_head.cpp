#include "engine/model/mtp_head.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/error.h"

namespace canopy {

std::vector<uint32_t> mtp_aux_layers(const ModelConfig& target) {
  return {target.layers - 1};
}

std::unique_ptr<MtpHead> MtpHead::load(const MtpFile& file, Model& target, const HeadOptions& options) {
  const std::vector<uint32_t> wanted = mtp_aux_layers(target.config());
  if (!std::ranges::equal(target.aux_layers(), wanted)) {
    throw bad_input("The target was loaded with " + std::to_string(target.aux_layers().size()) +
                    " taps; a head that predicts further tokens needs that of its last layer, " +
                    std::to_string(wanted.front()) + ", alone.");
  }
  return std::unique_ptr<MtpHead>(new MtpHead(file, target, options));
}

MtpHead::MtpHead(const MtpFile& file, Model& target, const HeadOptions& options)
    : StepHead(target, file.config(), layer_specs(file.config()).front(), target.config().hidden, options.cache_type) {
  const RequireTensor require = [&file](const std::string& name, uint64_t rows, uint64_t cols) -> const TensorView& {
    return file.require(name, rows, cols);
  };
  const uint64_t hidden = config_.hidden;
  Parts parts;
  parts.fc_cols = 2 * hidden;
  if (file.has_own_embedding()) parts.embedded_tokens = config_.vocab;
  if (file.has_own_output()) parts.drafted_tokens = config_.vocab;
  const uint64_t experts = config_.experts,
                 routers = config_.layers_with_experts() * ((experts + 1) * hidden + experts);
  const uint64_t biases = config_.has_qkv_bias ? uint64_t{config_.q_width()} + 4 * uint64_t{config_.kv_width()} : 0;
  parts.vector_elements = 5 * hidden + 2 * uint64_t{config_.head_dim} + routers + biases;
  const Plan plan = plan_of(parts, require);
  prepare(plan, uint64_t{most_rows()} * hidden * sizeof(float), options.memory);
  normed_ = allocate_rows(hidden, "hidden states of the head's rows");
  const float offset = config_.has_trained_form ? 1.0f : 0.0f;  // what norms are stored without
  load_weights(
      plan, require, [&file] { file.check_unchanged(); }, options.callbacks,
      [&](TensorLoader& tensors) {
        const auto norm = [&](const char* name) { return tensors.norm(require(name, 1, hidden), offset); };
        embedding_norm_ = norm("embedding_norm");
        hidden_norm_ = norm("hidden_norm");
        body_.output_norm = norm("output_norm");
      });
}

MtpHead::~MtpHead() = default;

std::string MtpHead::identity() const {
  return "a head for further tokens, " + std::to_string(config_.parameters) + " parameters, " + config_.quantization;
}

/// x = fc [rms_norm(E) * embedding_norm; rms_norm(h) * hidden_norm] with h = rms_norm(s) * the last norm of what s is
/// from, and normed = x * the layer's first norm.
void MtpHead::record_inputs(Recorder& record, uint32_t width, const Buffer& rows, const Buffer& states,
                            const Buffer& moves, bool of_text) {
  const uint32_t hidden = config_.hidden;
  Activations& scratch = *buffers_.normed;
  record(CopyRowsArgs{.count = width, .cols = hidden, .in = &states, .moves = &moves, .out = gathered_.get()});
  record(EmbedArgs{.width = width,
                   .table = &embedding(),
                   .rows = &rows,
                   .x = buffers_.x.get(),
                   .norm = {embedding_norm_.get()},
                   .out = &scratch,
                   .scale = config_.embedding_scale});
  record_normed(record, width, hidden, *buffers_.x, *embedding_norm_, scratch, *sum_, joined_.get(), 2 * hidden, 0);
  const Buffer& last_norm = of_text ? target_.output_norm() : *body_.output_norm;
  record_normed(record, width, hidden, *gathered_, last_norm, scratch, *normed_);
  record_normed(record, width, hidden, *normed_, *hidden_norm_, scratch, *sum_, joined_.get(), 2 * hidden, hidden);
  record(NormRowsArgs{.width = width, .in = joined_.get(), .norm = {}, .out = joined_rows_.get()});
  record(LinearArgs{.width = width,
                    .weight = fc_.get(),
                    .in = joined_rows_.get(),
                    .out = buffers_.x.get(),
                    .stride = hidden,
                    .offset = 0});
  record(
      NormRowsArgs{.width = width, .in = buffers_.x.get(), .norm = {body_.layers[0].attn_norm.get()}, .out = &scratch});
}

std::vector<float> MtpHead::hidden_states() const {
  const size_t hidden = config_.hidden;
  std::vector<float> x = BeamHead::hidden_states(), weight(hidden);
  device_.read(*body_.output_norm, 0, std::as_writable_bytes(std::span(weight)));
  for (size_t first = 0; first < x.size(); first += hidden) {
    const std::span<float> row = std::span(x).subspan(first, hidden);
    double squares = 0;
    for (const float value : row) squares += double{value} * value;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(hidden) + config_.rms_eps);
    for (size_t i = 0; i < hidden; ++i) row[i] = static_cast<float>(row[i] * scale * weight[i]);
  }
  return x;
}

}  // namespace canopy
