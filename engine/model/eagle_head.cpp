#include "engine/model/eagle_head.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/error.h"

namespace canopy {
namespace {

/// What the layer is to StepHead: its vocabulary is what it drafts.
ModelConfig drafting_layer(const EagleConfig& config) {
  ModelConfig layer = config.layer;
  layer.vocab = config.drafted_tokens();
  return layer;
}

}  // namespace

std::unique_ptr<EagleHead> EagleHead::load(const EagleFile& file, Model& target, const HeadOptions& options) {
  if (!std::ranges::equal(target.aux_layers(), file.config().aux_layers_of(target.config().layers))) {
    throw bad_input("The target was loaded with " + std::to_string(target.aux_layers().size()) +
                    " taps that are not the EAGLE-3 head's; it must keep the outputs of the head's own tap layers.");
  }
  return std::unique_ptr<EagleHead>(new EagleHead(file, target, options));
}

EagleHead::EagleHead(const EagleFile& file, Model& target, const HeadOptions& options)
    : StepHead(target, drafting_layer(file.config()), file.layer_spec(), file.config().feature_width(),
               options.cache_type),
      eagle_(file.config()) {
  // Queries, keys and values read the token's half and the state's.
  const RequireTensor require = [&file](const std::string& name, uint64_t rows, uint64_t cols) -> const TensorView& {
    const bool reads_both = name == "blk.0.attn_q" || name == "blk.0.attn_k" || name == "blk.0.attn_v";
    return file.require(name, rows, reads_both ? 2 * cols : cols);
  };
  const uint64_t hidden = config_.hidden, features = feature_width_;
  Parts parts;
  parts.fc_cols = features;
  if (file.has_own_embedding()) parts.embedded_tokens = eagle_.layer.vocab;
  if (file.has_own_output()) parts.drafted_tokens = config_.vocab;
  parts.vector_elements = 4 * hidden + 2 * uint64_t{config_.head_dim} + features;
  const Plan plan = plan_of(parts, require);
  prepare(plan, own_bytes(), options.memory);
  make_buffers();
  load_weights(
      plan, require, [&file] { file.check_unchanged(); }, options.callbacks,
      [&](TensorLoader& tensors) { load_vectors(tensors, require); });
}

EagleHead::~EagleHead() = default;

/// Of make_buffers().
uint64_t EagleHead::own_bytes() const {
  constexpr uint64_t word = sizeof(float);
  const uint64_t rows = most_rows(), hidden = config_.hidden;
  uint64_t bytes = 2 * rows * hidden * word + device_.activation_bytes(most_rows(), feature_width_);
  if (eagle_.fc_norm) {
    bytes += rows * (feature_width_ + 2 * uint64_t{eagle_.target_hidden} + 2 * uint64_t{eagle_.taps()}) * word +
             device_.activation_bytes(most_rows(), eagle_.target_hidden);
  }
  return bytes;
}

void EagleHead::make_buffers() {
  if (eagle_.norm_before_residual) state_ = allocate_rows(config_.hidden, "states of the head's rows");
  embedded_ = allocate_rows(config_.hidden, "embeddings of the head's rows");
  feature_rows_ = device_.allocate_activations(most_rows(), feature_width_, "features of the head's rows");
  if (!eagle_.fc_norm) return;
  normed_features_ = allocate_rows(feature_width_, "normed features");
  tap_ = allocate_rows(eagle_.target_hidden, "features of one tap");
  normed_tap_ = allocate_rows(eagle_.target_hidden, "normed features of one tap");
  tap_rows_ = device_.allocate_activations(most_rows(), eagle_.target_hidden, "features of one tap");
  const uint32_t taps = eagle_.taps();
  for (uint32_t tap = 0; tap < taps; ++tap) {
    std::vector<uint32_t> moves;  // from rows of one tap each, `taps` of them to a feature
    for (uint32_t i = 0; i < most_rows(); ++i) moves.insert(moves.end(), {i * taps + tap, i});
    tap_moves_.push_back(device_.allocate(moves.size() * sizeof(uint32_t), "parts of features"));
    device_.write(*tap_moves_.back(), 0, as_bytes_of(moves));
  }
}

void EagleHead::load_vectors(TensorLoader& tensors, const RequireTensor& require) {
  hidden_norm_ = tensors.norm(require("hidden_norm", 1, config_.hidden));
  body_.output_norm = tensors.norm(require("output_norm", 1, config_.hidden));
  if (eagle_.norm_before_fc) input_norm_ = tensors.norm(require("input_norm", 1, feature_width_));
  for (uint32_t tap = 0; eagle_.fc_norm && tap < eagle_.taps(); ++tap) {
    fc_norms_.push_back(tensors.norm(require("fc_norm." + std::to_string(tap), 1, eagle_.target_hidden)));
  }
}

std::string EagleHead::identity() const {
  return "an EAGLE-3 head, " + std::to_string(config_.parameters) + " parameters, " + config_.quantization + ", " +
         std::to_string(config_.vocab) + " tokens";
}

void EagleHead::record_inputs(Recorder& record, uint32_t width, const Buffer& rows, const Buffer& states,
                              const Buffer& moves, bool of_text) {
  const uint32_t hidden = config_.hidden;
  Activations& scratch = *buffers_.normed;
  const Buffer& token_norm = *body_.layers[0].attn_norm;
  Buffer& state = eagle_.norm_before_residual ? *state_ : *buffers_.x;
  if (of_text) {
    record(
        CopyRowsArgs{.count = width, .cols = feature_width_, .in = &states, .moves = &moves, .out = gathered_.get()});
    record_projection(record, width, state);
  } else {
    record(CopyRowsArgs{.count = width, .cols = hidden, .in = &states, .moves = &moves, .out = &state});
  }
  record(EmbedArgs{.width = width,
                   .table = &embedding(),
                   .rows = &rows,
                   .x = embedded_.get(),
                   .norm = {&token_norm},
                   .out = &scratch});
  Buffer& normed = eagle_.norm_before_residual ? *buffers_.x : *sum_;
  record_normed(record, width, hidden, *embedded_, token_norm, scratch, *sum_, joined_.get(), 2 * hidden, 0);
  record_normed(record, width, hidden, state, *hidden_norm_, scratch, normed, joined_.get(), 2 * hidden, hidden);
  record(NormRowsArgs{.width = width, .in = joined_.get(), .norm = {}, .out = joined_rows_.get()});
}

/// state = fc times the gathered features, normed as the head has it.
void EagleHead::record_projection(Recorder& record, uint32_t width, Buffer& state) {
  const uint32_t wide = eagle_.target_hidden;
  const Buffer* features = gathered_.get();
  if (eagle_.fc_norm) {
    for (uint32_t tap = 0; tap < eagle_.taps(); ++tap) {
      record(CopyRowsArgs{
          .count = width, .cols = wide, .in = gathered_.get(), .moves = tap_moves_[tap].get(), .out = tap_.get()});
      record_normed(record, width, wide, *tap_, *fc_norms_[tap], *tap_rows_, *normed_tap_, normed_features_.get(),
                    feature_width_, tap * wide);
    }
    features = normed_features_.get();
  }
  const bool norms = eagle_.norm_before_fc;
  record(NormRowsArgs{
      .width = width, .in = features, .norm = {norms ? input_norm_.get() : nullptr}, .out = feature_rows_.get()});
  record(LinearArgs{.width = width,
                    .weight = fc_.get(),
                    .in = feature_rows_.get(),
                    .norm_eps = norms ? config_.residual_eps() : 0,
                    .out = &state,
                    .stride = config_.hidden,
                    .offset = 0});
}

const Buffer& EagleHead::record_states(Recorder& record, uint32_t width) {
  if (!eagle_.norm_output) return *buffers_.x;
  record_normed(record, width, config_.hidden, *buffers_.x, *body_.output_norm, *buffers_.normed, *sum_);
  return *sum_;
}

}  // namespace canopy
