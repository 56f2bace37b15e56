#include "engine/model/weight_plan.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/base/figures.h"
#include "engine/base/numbers.h"
#include "engine/base/text.h"
#include "engine/format/dequantize.h"
#include "engine/model/rotation.h"

namespace canopy {

void convert_rows(const TensorView& tensor, uint32_t first, uint32_t count, WeightType to,
                  std::vector<std::byte>& blocks) {
  std::vector<std::byte> scratch;
  convert_rows(tensor, first, rows_of(tensor, first, count, scratch), to, blocks);
}

void convert_rows(const TensorView& tensor, uint32_t first, std::span<const std::byte> rows, WeightType to,
                  std::vector<std::byte>& blocks) {
  const uint64_t file_row = row_bytes(tensor);
  const uint64_t count = rows.size() / file_row;
  const uint64_t row = tensor_bytes(stored_as(to), tensor.cols(), tensor.name);
  std::vector<float> values(tensor.cols());
  blocks.resize(checked_mul(row, count, "size of rows of " + tensor.name));
  for (uint64_t r = 0; r < count; ++r) {
    dequantize(tensor.type, rows.subspan(r * file_row, file_row), values);
    const std::span<std::byte> out = std::span(blocks).subspan(r * row, row);
    if (to == WeightType::f32) {
      std::memcpy(out.data(), values.data(), out.size());
      continue;
    }
    try {
      quantize(stored_as(to), values, out);
    } catch (const Error& e) {
      throw e.within("Row " + std::to_string(uint64_t{first} + r) + " of the tensor " +
                     quoted_name(tensor.shown_name()));
    }
  }
}

namespace {

bool same_type(std::span<const TensorView* const> parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const TensorView* part) { return part->type == parts[0]->type; });
}

/// Sums up while the plan is made.
class Planner {
 public:
  Planner(const ModelFile& file, const Device& device, QuantizeOnLoad quantize)
      : file_(file), config_(file.config()), device_(device), quantize_(quantize) {}

  WeightPlan plan() {
    const uint64_t hidden = config_.hidden;
    plan_.token_embd = add("token_embd", {&file_.require("token_embd", config_.vocab, hidden)});
    const uint64_t embedding_bytes = plan_.device_bytes;
    for (uint32_t n = 0; n < config_.layers; ++n) plan_.layers.push_back(layer(n));
    if (config_.layer_inputs != 0) add_layer_inputs();
    if (config_.tied_head) {
      plan_.weight_elements += hidden * config_.vocab;
    } else {
      plan_.output.push_back(add("output", {&file_.require("output", config_.vocab, hidden)}));
    }
    plan_.pass_bytes = plan_.device_bytes - (config_.tied_head ? 0 : embedding_bytes) - idle_bytes_;
    plan_.weight_elements -= hidden * config_.vocab + idle_elements_;  // the embedding is looked up, not multiplied
    uint64_t biases = 0;
    for (uint32_t n = 0; n < config_.layers; ++n) {
      biases += (config_.has_qkv_bias ? config_.q_width_of(n) + 2 * uint64_t{config_.kv_width_of(n)} : 0) +
                (config_.has_output_bias ? hidden : 0) + (config_.has_sinks ? config_.heads_of(n) : 0);
    }
    biases += config_.layers * (uint64_t{config_.latent.rank} + config_.latent.query_rank);
    biases += config_.has_choice_bias ? uint64_t{config_.layers_with_experts()} * config_.experts : 0;
    const DeltaNetConfig& net = config_.delta_net;
    const uint64_t of_scan = net.scans ? net.value_heads + net.values() : net.value_dim;
    const uint64_t recurrent = uint64_t{net.channels()} * (net.taps + (net.has_conv_bias ? 1 : 0)) +
                               2 * uint64_t{net.value_heads} + of_scan + hidden * config_.conv_taps;
    const uint64_t norms = config_.has_post_norms ? 4 : 2;
    const uint64_t heads = (config_.has_v_norm ? 3 : 2) * uint64_t{std::max(config_.head_dim, config_.local_head_dim)};
    const uint64_t vectors =
        config_.layers * (norms * hidden + heads) + biases + config_.recurrent_layers() * recurrent + hidden;
    const uint64_t widest = std::max(uint64_t{config_.layers} * config_.layer_inputs, hidden);
    const uint64_t of_inputs =
        config_.layer_inputs != 0 ? (config_.layers + 1) * hidden + config_.layer_inputs + widest : 0;
    const uint64_t of_both = config_.has_experts_beside ? config_.layers * (4 * hidden + config_.experts) + hidden : 0;
    const uint64_t router_rows = config_.experts + (config_.shared_ffn != 0 && config_.gates_shared_expert ? 1 : 0);
    const uint64_t expert_biases = config_.has_expert_bias ? 1 + 2 * uint64_t{config_.expert_ffn} + hidden : 0;
    const uint64_t routers = config_.layers_with_experts() * (router_rows * hidden + config_.experts * expert_biases);
    plan_.device_bytes += (vectors + of_inputs + of_both + routers) * sizeof(float);
    if (converted_ > 0) warn_of_conversion();
    for (const auto& [form, count] : widened_) {
      plan_.warnings.push_back(std::to_string(count) + " matrices are in a form that no kernel reads (" + form +
                               ") and are kept as floats of 16 bits or more, which takes more memory than the file; "
                               "quantizing while loading (q8_0) takes less.");
    }
    return std::move(plan_);
  }

 private:
  void add_layer_inputs() {
    const uint64_t all = uint64_t{config_.layers} * config_.layer_inputs;
    const uint64_t before = plan_.device_bytes;
    plan_.layer_inputs.push_back(
        add("per_layer_token_embd", {&file_.require("per_layer_token_embd", config_.vocab, all)}));
    idle_bytes_ += plan_.device_bytes - before;  // rows of it are looked up
    idle_elements_ += all * config_.vocab;
    plan_.layer_inputs.push_back(
        add("per_layer_model_proj", {&file_.require("per_layer_model_proj", all, config_.hidden)}));
  }

  LayerPlan layer(uint32_t n) {
    LayerPlan layer = plan_layer(
        config_, n, QkvJoin::all,
        [&](const std::string& name, uint64_t rows, uint64_t cols) -> const TensorView& {
          return file_.require(name, rows, cols);
        },
        [&](std::string name, std::vector<const TensorView*> parts, WeightLayout layout, std::vector<uint32_t> rows) {
          return add(std::move(name), std::move(parts), layout, std::move(rows));
        });
    if (layer.router.empty()) return layer;
    const uint32_t all = config_.experts, idle = all - config_.experts_used;
    for (const MatrixPlan* experts : {&layer.gate_up, &layer.ffn_down}) {
      const uint64_t bytes = device_.weight_bytes(experts->device_parts(), experts->layout) / all;
      idle_bytes_ += bytes * idle;
      plan_.expert_bytes += bytes;
      for (const TensorView* part : experts->parts) idle_elements_ += part->elements() / all * idle;
    }
    return layer;
  }

  MatrixPlan add(std::string name, std::vector<const TensorView*> parts, WeightLayout layout = WeightLayout::stacked,
                 std::vector<uint32_t> rows = {}) {
    MatrixPlan matrix = plan_matrix(std::move(name), std::move(parts), layout, std::move(rows));
    const bool is_head = matrix.name == "output" || (matrix.name == "token_embd" && config_.tied_head);
    matrix.type = quantized_type(matrix.type, matrix.parts[0]->cols(), is_head, quantize_);
    for (const TensorView* part : matrix.parts) {
      plan_.weight_elements += matrix.elements_of(*part);
      count(matrix, *part);
    }
    plan_.file_bytes = checked_add(plan_.file_bytes, matrix.file_bytes(), "size of the weights");
    plan_.device_bytes = checked_add(plan_.device_bytes, device_.weight_bytes(matrix.device_parts(), matrix.layout),
                                     "size of the weights");
    return matrix;
  }

  void count(const MatrixPlan& matrix, const TensorView& part) {
    QuantizedTensors& quantized = plan_.quantized;
    if (quantize_ != QuantizeOnLoad::none && is_dense(matrix.type)) ++quantized.kept[part.type];
    const std::string form(part.packed ? part.packed->form() : std::string_view());
    if (!form.empty() && is_dense(matrix.type)) ++widened_[form];
    if (!matrix.converts(part)) return;
    if (matrix.type != WeightType::f32) {
      ++quantized.to[matrix.type];
      quantized.file_bytes += matrix.file_bytes_of(part);
      quantized.bytes += tensor_bytes(stored_as(matrix.type), matrix.elements_of(part), part.name);
      return;
    }
    ++converted_;
    converted_type_ = part.type;
    converted_bytes_ += matrix.elements_of(part) * sizeof(float);
  }

  void warn_of_conversion() {
    plan_.warnings.push_back(std::to_string(converted_) + " tensors, for example of type " +
                             std::string(to_string(converted_type_)) +
                             ", have no kernel in the combination the file holds them in; they are kept as F32, which "
                             "changes no value but takes " +
                             byte_figures(converted_bytes_) + ".");
  }

  const ModelFile& file_;
  const ModelConfig& config_;
  const Device& device_;
  const QuantizeOnLoad quantize_;
  WeightPlan plan_;
  std::map<std::string, uint64_t> widened_;      // matrices that the file has packed, by their form
  uint64_t idle_bytes_ = 0, idle_elements_ = 0;  // of experts that one row does not use
  uint64_t converted_ = 0;
  uint64_t converted_bytes_ = 0;
  TensorType converted_type_ = TensorType::f32;
};

/// Whether rows of `cols` elements can become `to`: F32 always, Q8_0 and Q4_K where they are whole blocks.
bool can_convert_rows(uint64_t cols, WeightType to) {
  return to == WeightType::f32 || (can_quantize(stored_as(to)) && cols % block_size(to).elements == 0);
}

}  // namespace

WeightType quantized_type(WeightType type, uint64_t cols, bool is_head, QuantizeOnLoad quantize) {
  if (quantize == QuantizeOnLoad::none || !is_dense(type)) return type;
  if (quantize == QuantizeOnLoad::q4_k && !is_head && can_convert_rows(cols, WeightType::q4_k)) return WeightType::q4_k;
  return can_convert_rows(cols, WeightType::q8_0) ? WeightType::q8_0 : type;
}

MatrixPlan plan_matrix(std::string name, std::vector<const TensorView*> parts, WeightLayout layout,
                       std::vector<uint32_t> rows) {
  for (const TensorView* part : parts) {
    if (!can_dequantize(part->type)) {
      throw bad_input("The tensor " + quoted_name(part->shown_name()) + " is stored as " +
                      std::string(to_string(part->type)) +
                      ", which cannot be decoded; supported: " + dequantizable_types() + ".");
    }
  }
  MatrixPlan plan{std::move(name), std::move(parts), WeightType::f32, layout, std::move(rows)};
  // f32 holds every decoded value exactly, whatever the file's type; nothing smaller does.
  if (same_type(plan.parts)) plan.type = weight_type_of(plan.parts[0]->type).value_or(WeightType::f32);
  return plan;
}

namespace {

/// What makes the plans of a layer's matrices.
class LayerPlanner {
 public:
  LayerPlanner(const ModelConfig& config, uint32_t n, const RequireTensor& require, const AddMatrix& add)
      : config_(config),
        ffn_(config.ffn_of(n)),
        heads_(config.heads_of(n)),
        kv_heads_(config.kv_heads_of(n)),
        head_dim_(config.head_dim_of(n)),
        values_(config.has_values_of_keys(n) ? "attn_k" : "attn_v"),
        has_kv_(config.has_own_kv(n)),
        prefix_("blk." + std::to_string(n) + "."),
        require_(require),
        add_(add) {}

  void add_attention(QkvJoin join, LayerPlan& layer) const {
    if (config_.has_output_gate || !head_order(config_).empty()) {
      add_chosen_heads(layer);
    } else {
      add_heads(join, layer);
    }
    layer.attn_output = matrix("attn_output", config_.hidden, q_width());
  }

  void add_latent_attention(LayerPlan& layer) const {
    const LatentAttention& latent = config_.latent;
    const uint32_t turned = config_.rotary_dim, of_query = latent.key_dim + turned, rank = latent.rank;
    LatentPlan plan;
    uint64_t cols = config_.hidden;
    if (latent.query_rank != 0) {
      plan.query_latent.push_back(matrix("attn_q_a", latent.query_rank, cols));
      cols = latent.query_rank;
    }
    const TensorView* queries =
        tensor(latent.query_rank != 0 ? "attn_q_b" : "attn_q", uint64_t{heads_} * of_query, cols);
    std::vector<uint32_t> of_keys, of_turned;
    for (uint32_t h = 0; h < heads_; ++h) {
      for (uint32_t i = 0; i < of_query; ++i) (i < latent.key_dim ? of_keys : of_turned).push_back(h * of_query + i);
    }
    plan.query_keys = add_(queries->name, {queries}, WeightLayout::stacked, std::move(of_keys));
    plan.query_turned = add_(queries->name + " turned", {queries}, WeightLayout::stacked, std::move(of_turned));
    const TensorView* keys = tensor("attn_kv_a_mqa", head_dim_, config_.hidden);
    std::vector<uint32_t> of_latent(rank), behind(turned);
    std::iota(of_latent.begin(), of_latent.end(), 0u);
    std::iota(behind.begin(), behind.end(), rank);
    plan.latent = add_(keys->name, {keys}, WeightLayout::stacked, std::move(of_latent));
    plan.turned = add_(keys->name + " turned", {keys}, WeightLayout::stacked, std::move(behind));
    plan.keys = matrix("attn_k_b", q_width(), latent.key_dim);
    plan.values = matrix("attn_v_b", uint64_t{heads_} * latent.value_dim, rank);
    layer.latent.push_back(std::move(plan));
    layer.attn_output = matrix("attn_output", config_.hidden, uint64_t{heads_} * latent.value_dim);
  }

  void add_recurrence(LayerPlan& layer) const {
    if (config_.conv_taps != 0) {
      layer.qkv.push_back(matrix("shortconv.in_proj", 3 * uint64_t{config_.hidden}, config_.hidden));
      layer.attn_output = matrix("shortconv.out_proj", config_.hidden, config_.hidden);
      return;
    }
    const DeltaNetConfig& net = config_.delta_net;
    if (net.scans) return add_scan(layer);
    std::vector<const TensorView*> parts;
    if (net.has_joined_inputs) {
      add_joined_inputs(layer);
    } else {
      parts.push_back(tensor("attn_qkv", net.channels(), config_.hidden));
      layer.gate.push_back(matrix("attn_gate", net.values(), config_.hidden));
    }
    if (!net.has_joined_rates) {
      parts.push_back(tensor("ssm_beta", net.value_heads, config_.hidden));
      parts.push_back(tensor("ssm_alpha", net.value_heads, config_.hidden));
    }
    if (!parts.empty()) add_joined("ssm_in", parts, layer.qkv);
    if (net.has_joined_rates) add_joined_rates(layer);
    layer.attn_output = matrix("ssm_out", config_.hidden, net.values());
  }

  void add_feed_forward(bool has_experts, LayerPlan& layer) const {
    std::vector<const TensorView*> gate_up, down;
    const bool has_gates = !config_.has_square_relu;
    if (has_experts) {
      layer.router.push_back(tensor("ffn_gate_inp", config_.experts, config_.hidden));
      for (uint32_t e = 0; e < config_.experts; ++e) {
        const std::string number = "." + std::to_string(e);
        if (has_gates) gate_up.push_back(tensor("ffn_gate" + number, config_.expert_ffn, config_.hidden));
        gate_up.push_back(tensor("ffn_up" + number, config_.expert_ffn, config_.hidden));
        down.push_back(tensor("ffn_down" + number, config_.hidden, config_.expert_ffn));
      }
    } else {
      if (has_gates) gate_up.push_back(tensor("ffn_gate", ffn_, config_.hidden));
      gate_up.push_back(tensor("ffn_up", ffn_, config_.hidden));
      down = {tensor("ffn_down", config_.hidden, ffn_)};
    }
    layer.gate_up = add_(prefix_ + (has_gates ? "ffn_gate_up" : "ffn_up"), std::move(gate_up), upper_layout(), {});
    layer.ffn_down = add_(prefix_ + "ffn_down", std::move(down), WeightLayout::stacked, {});
    if (has_experts && config_.shared_ffn != 0) add_shared_expert(layer);
    if (has_experts && config_.has_experts_beside) {
      layer.shared_gate_up.push_back(add_(
          prefix_ + "dense_gate_up", {tensor("ffn_gate", ffn_, config_.hidden), tensor("ffn_up", ffn_, config_.hidden)},
          WeightLayout::paired, {}));
      layer.shared_down.push_back(matrix("ffn_down", config_.hidden, ffn_));
    }
    if (config_.layer_inputs == 0) return;
    layer.input.push_back(matrix("inp_gate", config_.layer_inputs, config_.hidden));
    layer.input.push_back(matrix("proj", config_.hidden, config_.layer_inputs));
  }

 private:
  /// Of the first matrix of feed-forwards.
  WeightLayout upper_layout() const { return config_.has_square_relu ? WeightLayout::stacked : WeightLayout::paired; }
  uint64_t q_width() const { return uint64_t{heads_} * head_dim_; }
  uint64_t kv_width() const { return uint64_t{kv_heads_} * head_dim_; }

  void add_shared_expert(LayerPlan& layer) const {
    const uint32_t ffn = config_.shared_ffn;
    if (config_.gates_shared_expert) layer.router.push_back(tensor("ffn_gate_inp_shexp", 1, config_.hidden));
    std::vector<const TensorView*> gate_up;
    if (!config_.has_square_relu) gate_up.push_back(tensor("ffn_gate_shexp", ffn, config_.hidden));
    gate_up.push_back(tensor("ffn_up_shexp", ffn, config_.hidden));
    layer.shared_gate_up.push_back(add_(prefix_ + "shared_gate_up", std::move(gate_up), upper_layout(), {}));
    layer.shared_down.push_back(matrix("ffn_down_shexp", config_.hidden, ffn));
  }

  const TensorView* tensor(const std::string& name, uint64_t rows, uint64_t cols) const {
    return &require_(prefix_ + name, rows, cols);
  }
  MatrixPlan matrix(const char* name, uint64_t rows, uint64_t cols) const {
    return add_(prefix_ + name, {tensor(name, rows, cols)}, WeightLayout::stacked, {});
  }

  /// Rows [first, first + count) of every key head of a tensor that has `of_key` rows for each, behind `rows`.
  void take_of_keys(uint32_t of_key, uint32_t first, uint32_t count, std::vector<uint32_t>& rows) const {
    for (uint32_t key = 0; key < config_.delta_net.key_heads; ++key) {
      for (uint32_t i = 0; i < count; ++i) rows.push_back(key * of_key + first + i);
    }
  }

  /// Gates, values, keys, queries and steps, below each other.
  void add_scan(LayerPlan& layer) const {
    const DeltaNetConfig& net = config_.delta_net;
    const uint32_t values = net.values(), keys = net.keys();
    const TensorView* all = tensor("ssm_in", uint64_t{values} + net.channels() + net.value_heads, config_.hidden);
    std::vector<uint32_t> inputs, gates;
    const auto take = [](uint32_t first, uint32_t count, std::vector<uint32_t>& rows) {
      for (uint32_t i = 0; i < count; ++i) rows.push_back(first + i);
    };
    take(2 * values + keys, keys, inputs);
    take(2 * values, keys, inputs);
    take(values, values, inputs);
    take(2 * values + 2 * keys, net.value_heads, inputs);
    take(0, values, gates);
    layer.qkv.push_back(add_(all->name, {all}, WeightLayout::stacked, std::move(inputs)));
    layer.gate.push_back(add_(all->name + " gate", {all}, WeightLayout::stacked, std::move(gates)));
    layer.attn_output = matrix("ssm_out", config_.hidden, values);
  }

  /// Of each key head its query, its key, its values and their gates lie together.
  void add_joined_inputs(LayerPlan& layer) const {
    const DeltaNetConfig& net = config_.delta_net;
    const uint32_t dim = net.key_dim, values = net.heads_of_key() * net.value_dim, of_key = 2 * dim + 2 * values;
    const TensorView* all = tensor("ssm_in", net.channels() + net.values(), config_.hidden);
    std::vector<uint32_t> inputs, gates;
    take_of_keys(of_key, 0, dim, inputs);
    take_of_keys(of_key, dim, dim, inputs);
    take_of_keys(of_key, 2 * dim, values, inputs);
    take_of_keys(of_key, 2 * dim + values, values, gates);
    layer.qkv.push_back(add_(all->name, {all}, WeightLayout::stacked, std::move(inputs)));
    layer.gate.push_back(add_(all->name + " gate", {all}, WeightLayout::stacked, std::move(gates)));
  }

  /// Of each key head the betas of its values and their alphas lie together.
  void add_joined_rates(LayerPlan& layer) const {
    const DeltaNetConfig& net = config_.delta_net;
    const uint32_t heads = net.heads_of_key();
    const TensorView* all = tensor("ssm_ba", 2 * uint64_t{net.value_heads}, config_.hidden);
    std::vector<uint32_t> rates;
    take_of_keys(2 * heads, 0, heads, rates);
    take_of_keys(2 * heads, heads, heads, rates);
    layer.qkv.push_back(add_(all->name, {all}, WeightLayout::stacked, std::move(rates)));
  }

  /// One stacked matrix where their types allow it.
  void add_joined(const char* name, const std::vector<const TensorView*>& parts, std::vector<MatrixPlan>& to) const {
    if (same_type(parts)) {
      to.push_back(add_(prefix_ + name, parts, WeightLayout::stacked, {}));
    } else {
      for (const TensorView* part : parts) to.push_back(add_(part->name, {part}, WeightLayout::stacked, {}));
    }
  }

  void add_heads(QkvJoin join, LayerPlan& layer) const {
    const TensorView* q = tensor("attn_q", q_width(), config_.hidden);
    if (!has_kv_) {
      layer.qkv.push_back(add_(q->name, {q}, WeightLayout::stacked, {}));
      return;
    }
    const TensorView* k = tensor("attn_k", kv_width(), config_.hidden);
    const TensorView* v = tensor(values_, kv_width(), config_.hidden);
    if (join == QkvJoin::all) return add_joined("attn_qkv", {q, k, v}, layer.qkv);
    layer.qkv.push_back(add_(q->name, {q}, WeightLayout::stacked, {}));
    add_joined("attn_kv", {k, v}, layer.qkv);
  }

  /// Queries apart from the gates that stand behind each head of them, and elements of heads in the order of
  /// head_order().
  void add_chosen_heads(LayerPlan& layer) const {
    const uint32_t dim = head_dim_, step = config_.has_output_gate ? 2 * dim : dim;
    std::vector<uint32_t> order = head_order(config_);
    for (uint32_t i = 0; order.size() < dim; ++i) order.push_back(i);
    std::vector<uint32_t> queries, keys, gates;
    for (uint32_t h = 0; h < heads_; ++h) {
      for (const uint32_t i : order) queries.push_back(h * step + i);
      for (uint32_t i = 0; i < dim; ++i) gates.push_back(h * step + dim + i);
    }
    for (uint32_t h = 0; h < kv_heads_; ++h) {
      for (const uint32_t i : order) keys.push_back(h * dim + i);
    }
    const TensorView* q = tensor("attn_q", uint64_t{heads_} * step, config_.hidden);
    const TensorView* k = tensor("attn_k", kv_width(), config_.hidden);
    layer.qkv.push_back(add_(q->name, {q}, WeightLayout::stacked, std::move(queries)));
    layer.qkv.push_back(add_(k->name, {k}, WeightLayout::stacked, std::move(keys)));
    layer.qkv.push_back(matrix(values_, kv_width(), config_.hidden));
    if (!config_.has_output_gate) return;
    layer.gate.push_back(add_(prefix_ + "attn_q gate", {q}, WeightLayout::stacked, std::move(gates)));
  }

  const ModelConfig& config_;
  const uint32_t ffn_, heads_, kv_heads_, head_dim_;
  const char* const values_;  // the tensor that they come from
  const bool has_kv_;
  const std::string prefix_;
  const RequireTensor& require_;
  const AddMatrix& add_;
};

}  // namespace

LayerPlan plan_layer(const ModelConfig& config, uint32_t n, QkvJoin join, const RequireTensor& require,
                     const AddMatrix& add) {
  const LayerPlanner planner(config, n, require, add);
  LayerPlan layer;
  if (config.is_recurrent(n)) {
    planner.add_recurrence(layer);
  } else if (!config.layer_has_mixer(n)) {
    // a feed-forward alone
  } else if (config.has_latent_attention()) {
    planner.add_latent_attention(layer);
  } else {
    planner.add_attention(join, layer);
  }
  if (config.layer_has_feed_forward(n)) planner.add_feed_forward(config.layer_has_experts(n), layer);
  return layer;
}

bool MatrixPlan::converts(const TensorView& part) const {
  return weight_type_of(part.type) != type;
}

MatrixPlan plan_rows(std::string name, const TensorView& tensor, std::vector<uint32_t> rows, WeightType type) {
  MatrixPlan plan = plan_matrix(std::move(name), {&tensor});
  plan.type = type;
  plan.rows = std::move(rows);
  return plan;
}

uint64_t MatrixPlan::file_bytes_of(const TensorView& part) const {
  return rows.empty() ? part.bytes.size() : part.bytes.size() / part.rows() * rows.size();
}

uint64_t MatrixPlan::file_bytes() const {
  uint64_t bytes = 0;
  for (const TensorView* part : parts) bytes += file_bytes_of(*part);
  return bytes;
}

uint64_t MatrixPlan::elements_of(const TensorView& part) const {
  return rows.empty() ? part.elements() : part.cols() * rows.size();
}

std::vector<WeightPart> MatrixPlan::device_parts() const {
  std::vector<WeightPart> result;
  for (const TensorView* part : parts) {
    const uint64_t count = rows.empty() ? part->rows() : rows.size();
    result.push_back({type, checked_cast<uint32_t>(count, "number of rows of " + part->name),
                      checked_cast<uint32_t>(part->cols(), "number of columns of " + part->name)});
  }
  return result;
}

std::string QuantizedTensors::sentence() const {
  if (to.empty()) return "";
  std::string text = "Quantized while loading:";
  const char* separator = " ";
  for (const auto& [type, tensors] : to) {
    text += separator + std::to_string(tensors) + " tensors to " + to_string(type);
    separator = ", ";
  }
  text += ", " + byte_figures(file_bytes) + " of the file to " + byte_figures(bytes) + ".";
  for (const auto& [type, tensors] : kept) {
    text += " " + std::to_string(tensors) + " of type " + std::string(to_string(type)) +
            " stay as they are: their rows are no multiple of 32.";
  }
  return text;
}

WeightPlan plan_weights(const ModelFile& file, const Device& device, QuantizeOnLoad quantize) {
  return Planner(file, device, quantize).plan();
}

}  // namespace canopy
