#include "engine/format/model_families.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/architecture.h"
#include "engine/format/routed_experts.h"

namespace canopy {
namespace {

using nlohmann::json;

constexpr double kLocalTheta = 10000;
constexpr uint32_t kUsualStep = 6;  // of Gemma 3: each so many-th layer sees the whole text
constexpr const char* kActivation = "gelu_pytorch_tanh";
// Hidden states grow into the hundred thousands, beyond what halves hold. A power of two changes no bit of a result.
constexpr float kResidualScale = 1.0f / 256;

/// Gemma2Config and Gemma3TextConfig of transformers.
json usual_fields(bool is_gemma2) {
  json fields = {{"hidden_size", 2304u},      {"intermediate_size", 9216u},       {"num_hidden_layers", 26u},
                 {"num_attention_heads", 8u}, {"num_key_value_heads", 4u},        {"head_dim", 256u},
                 {"rms_norm_eps", 1e-6},      {"hidden_activation", kActivation}, {"query_pre_attn_scalar", 256u},
                 {"sliding_window", 4096u},   {"tie_word_embeddings", true}};
  if (is_gemma2) {
    fields.update({{"vocab_size", 256000u},
                   {"max_position_embeddings", 8192u},
                   {"rope_theta", 10000.0},
                   {"attn_logit_softcapping", 50.0},
                   {"final_logit_softcapping", 30.0}});
  } else {
    fields.update({{"vocab_size", 262208u},
                   {"max_position_embeddings", 131072u},
                   {"rope_theta", 1000000.0},
                   {"rope_local_base_freq", kLocalTheta}});
  }
  return fields;
}

/// Newer files have a rotation for each kind of layer.
void flatten_rotations(json& fields) {
  const JsonFields whole(fields, "config.json");
  const json* rotations = whole.object("rope_parameters");
  if (rotations == nullptr || !rotations->contains("full_attention")) return;
  const JsonFields by_kind(*rotations, "config.json's rope_parameters");
  json global = json::object(), local = json::object();
  if (const json* full = by_kind.object("full_attention")) global = *full;
  if (const json* sliding = by_kind.object("sliding_attention")) local = *sliding;
  const JsonFields of_local(local, "config.json's rope_parameters of sliding_attention");
  const std::string kind = of_local.text_or("rope_type", "default");
  if (kind != "default") {
    throw bad_input("The field 'rope_type' of " + of_local.what() + " is '" + printable(kind) +
                    "'; default is supported.");
  }
  fields["rope_local_base_freq"] = of_local.number_or("rope_theta", kLocalTheta);
  fields["rope_parameters"] = std::move(global);
}

/// By layer: whether it has a window. Gemma 2: each second, from the first on; Gemma 3: all but each `step`-th.
std::vector<bool> sliding_layers(uint32_t layers, bool is_gemma2, uint32_t step) {
  std::vector<bool> slides;
  for (uint32_t n = 0; n < layers; ++n) slides.push_back(is_gemma2 ? n % 2 == 0 : (n + 1) % step != 0);
  return slides;
}

/// By the metadata `pattern`: a step, or a list with an entry for each layer.
std::vector<bool> sliding_gguf_layers(const GgufFile& file, const std::string& pattern, uint32_t layers,
                                      bool is_gemma2) {
  const GgufValue* value = file.find(pattern);
  if (value == nullptr || value->type != GgufType::array) {
    const uint32_t step = checked_layer_step(file.u32_if(pattern).value_or(kUsualStep), "metadata '" + pattern + "'");
    return sliding_layers(std::min(layers, 1u << 16), is_gemma2, step);  // validate_config bounds them
  }
  std::vector<bool> slides = file.booleans(pattern);
  if (slides.size() == layers) return slides;
  throw bad_input("The metadata '" + pattern + "' has " + std::to_string(slides.size()) + " entries; the model has " +
                  std::to_string(layers) + " layers.");
}

void set_windows(const std::vector<bool>& slides, uint32_t window, ModelConfig& config) {
  if (window == 0 || window >= config.max_context) return;
  for (const bool has_window : slides) config.windows.push_back(has_window ? window : 0);
}

}  // namespace

void set_gemma(ModelConfig& config) {
  config.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(config.hidden)));
  config.residual_scale = kResidualScale;
  config.has_post_norms = true;
}

json complete_gemma(const json& text_part, std::string_view architecture) {
  const bool is_gemma2 = architecture == "gemma2";
  const JsonFields given(text_part, "config.json");
  json fields = usual_fields(is_gemma2);
  for (const auto& [field, value] : text_part.items()) {
    if (!value.is_null() || field == "attn_logit_softcapping" || field == "final_logit_softcapping") {
      fields[field] = value;
    }
  }
  fields.erase("hidden_act");  // of the first files, and not what was meant: hidden_activation is
  flatten_rotations(fields);
  if (given.has("layer_types")) return fields;
  const JsonFields whole(fields, "config.json");
  const char* step = whole.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
  const uint32_t layers = std::min(whole.u32("num_hidden_layers"), 1u << 16);  // validate_config bounds them
  json types = json::array();
  for (const bool slides : sliding_layers(
           layers, is_gemma2,
           checked_layer_step(whole.u32_or(step, kUsualStep), "field 'sliding_window_pattern' of config.json"))) {
    types.push_back(slides ? "sliding_attention" : "full_attention");
  }
  fields["layer_types"] = std::move(types);
  return fields;
}

void read_hf_gemma(const JsonFields& fields, ModelConfig& config) {
  set_gemma(config);
  config.has_trained_form = true;
  const std::string activation = fields.text("hidden_activation");
  if (activation != kActivation) {
    throw bad_input("The field 'hidden_activation' of config.json is '" + printable(activation) + "'; only " +
                    kActivation + " is supported.");
  }
  if (fields.boolean_or("use_bidirectional_attention", false)) {
    throw bad_input(
        "The field 'use_bidirectional_attention' of config.json is true: this is a model that makes embeddings of "
        "texts; it cannot write one.");
  }
  config.query_width = fields.number("query_pre_attn_scalar");
  config.attention_softcap = static_cast<float>(fields.number_or("attn_logit_softcapping", 0));
  config.logit_softcap = static_cast<float>(fields.number_or("final_logit_softcapping", 0));
  if (!fields.has("rope_local_base_freq")) return;
  config.local_rope_theta = fields.number("rope_local_base_freq");
  if (config.local_rope_theta > 1) return;
  throw bad_input("The field 'rope_local_base_freq' of config.json is " + json(config.local_rope_theta).dump() +
                  "; a number above 1 is allowed.");
}

void set_gemma3(uint32_t window, ModelConfig& config) {
  set_gemma(config);
  const std::vector<bool> slides = sliding_layers(config.layers, false, kUsualStep);
  set_windows(slides, window, config);
  if (window == 0) return;
  config.local_rope_theta = kLocalTheta;
  config.turns_locally = slides;
}

void read_gguf_gemma(const GgufFile& file, std::string_view architecture, ModelConfig& config) {
  const auto key = [&](const char* name) { return std::string(architecture) + "." + name; };
  const bool is_gemma2 = architecture == "gemma2";
  set_gemma(config);
  // No field says it: the largest model of each generation divides queries by the width of the residual stream for each
  // head, the others by that of a head.
  const bool is_largest = config.layers == (is_gemma2 ? 46 : 62);
  if (is_largest && config.heads != 0) config.query_width = static_cast<double>(config.hidden) / config.heads;
  config.attention_softcap =
      static_cast<float>(file.number_if(key("attn_logit_softcapping")).value_or(is_gemma2 ? 50 : 0));
  config.logit_softcap =
      static_cast<float>(file.number_if(key("final_logit_softcapping")).value_or(is_gemma2 ? 30 : 0));
  const std::vector<bool> slides =
      sliding_gguf_layers(file, key("attention.sliding_window_pattern"), config.layers, is_gemma2);
  const uint32_t window = file.u32_if(key("attention.sliding_window")).value_or(is_gemma2 ? 4096 : 0);
  set_windows(slides, window, config);
  if (is_gemma2 || window == 0) return;
  const auto other = file.number_if(key("rope.local.freq_base"));  // Ollama's name
  config.local_rope_theta = file.number_if(key("rope.freq_base_swa")).value_or(other.value_or(kLocalTheta));
  config.turns_locally = slides;
}

namespace {

constexpr float kUsualLimit = 7;  // of gates

void set_common(ModelConfig& config) {
  config.has_sinks = true;
  config.has_expert_bias = true;
  config.swiglu_limit = kUsualLimit;
}

constexpr uint64_t kBlockColumns = 32, kCodeBytes = 16;  // of MXFP4

/// Which rows of what an expert has are a matrix: first, first + step, ...
struct RowSteps {
  uint64_t first = 0, step = 1;
  uint64_t at(uint64_t row) const { return first + row * step; }
};

/// Columns of floats as rows: row r of the matrix is column steps.at(r) of values [cols, stride].
class TransposedRows final : public PackedMatrix {
 public:
  TransposedRows(std::span<const std::byte> values, uint64_t cols, uint64_t element_bytes, const RowSteps& steps)
      : values_(values), cols_(cols), stride_(values.size() / cols), element_bytes_(element_bytes), steps_(steps) {}

  void make_rows(uint64_t first, uint64_t count, std::span<std::byte> out) const override {
    for (uint64_t k = 0; k < cols_; ++k) {  // in the order of the file
      for (uint64_t r = 0; r < count; ++r) {
        std::memcpy(out.data() + (r * cols_ + k) * element_bytes_,
                    values_.data() + k * stride_ + steps_.at(first + r) * element_bytes_, element_bytes_);
      }
    }
  }
  std::string_view form() const override { return ""; }

 private:
  std::span<const std::byte> values_;
  uint64_t cols_, stride_, element_bytes_;  // stride: bytes of all rows' elements of a column
  RowSteps steps_;
};

/// Every so many-th element of the rows of a matrix.
class SteppedRows final : public PackedMatrix {
 public:
  SteppedRows(std::span<const std::byte> values, uint64_t cols, uint64_t element_bytes, const RowSteps& steps)
      : values_(values), cols_(cols), element_bytes_(element_bytes), steps_(steps) {}
  void make_rows(uint64_t first, uint64_t count, std::span<std::byte> out) const override {
    const uint64_t each = cols_ / steps_.step;
    for (uint64_t i = 0; i < count * each; ++i) {
      const uint64_t from = (first + i / each) * cols_ + steps_.at(i % each);
      std::memcpy(out.data() + i * element_bytes_, values_.data() + from * element_bytes_, element_bytes_);
    }
  }
  std::string_view form() const override { return ""; }

 private:
  std::span<const std::byte> values_;
  uint64_t cols_, element_bytes_;
  RowSteps steps_;
};

/// Codes [rows, blocks, 16] and scales [rows, blocks] as blocks of a scale and 16 bytes of codes. The file's byte j has
/// elements 2 j and 2 j + 1 of a block, the lower one in its lower half; the block type's has elements j and j + 16.
class MxFp4Rows final : public PackedMatrix {
 public:
  MxFp4Rows(std::span<const std::byte> codes, std::span<const std::byte> scales, uint64_t blocks, const RowSteps& steps)
      : codes_(codes), scales_(scales), blocks_(blocks), steps_(steps) {}

  void make_rows(uint64_t first, uint64_t count, std::span<std::byte> out) const override {
    std::byte* to = out.data();
    for (uint64_t r = first; r < first + count; ++r) {
      for (uint64_t b = 0; b < blocks_; ++b) {
        const uint64_t block = steps_.at(r) * blocks_ + b;
        *to = scales_[block];
        put_codes(codes_.subspan(block * kCodeBytes, kCodeBytes), to + 1);
        to += 1 + kCodeBytes;
      }
    }
  }
  std::string_view form() const override { return "MXFP4"; }

 private:
  static void put_codes(std::span<const std::byte> pairs, std::byte* to) {
    const auto code = [&](uint64_t element) {
      return element % 2 == 0 ? pairs[element / 2] & std::byte{15} : pairs[element / 2] >> 4;
    };
    for (uint64_t j = 0; j < kCodeBytes; ++j) to[j] = code(j) | code(j + kCodeBytes) << 4;
  }

  std::span<const std::byte> codes_, scales_;
  uint64_t blocks_;
  RowSteps steps_;
};

/// A matrix of each expert of a layer, which lie in one tensor.
struct Matrices {
  std::string name;  // with ".E" behind it
  RowSteps steps;
};

/// Of a layer: the tensor that has them, and the shape of what an expert has there.
struct Fused {
  std::string name;  // canonical
  uint64_t rows = 0, cols = 0;
  std::vector<Matrices> matrices;
};

using ShownName = std::function<std::string(const std::string& name)>;

class Separator {
 public:
  Separator(std::span<const TensorView> tensors, const ModelConfig& config, const ShownName& shown)
      : tensors_(tensors), config_(config), shown_(shown) {
    for (const TensorView& tensor : tensors) by_name_.emplace(tensor.name, &tensor);
  }

  std::vector<TensorView> separate() {
    const bool in_turn = config_.has_expert_bias;  // as gpt-oss
    const RowSteps gates{0, in_turn ? 2u : 1u}, others{in_turn ? 1u : config_.expert_ffn, gates.step};
    for (uint32_t n = 0; n < config_.layers; ++n) {
      if (!config_.layer_has_experts(n)) continue;
      const std::string layer = "blk." + std::to_string(n) + ".";
      add({layer + "ffn_gate_up_exps",
           2 * uint64_t{config_.expert_ffn},
           config_.hidden,
           {{layer + "ffn_gate", gates}, {layer + "ffn_up", others}}});
      add({layer + "ffn_down_exps", config_.hidden, config_.expert_ffn, {{layer + "ffn_down", {0, 1}}}});
    }
    for (const TensorView& tensor : tensors_) {
      if (!used_.contains(tensor.name)) result_.push_back(tensor);
    }
    return std::move(result_);
  }

 private:
  void add(const Fused& fused) {
    if (config_.has_expert_bias && by_name_.contains(fused.name + ".blocks")) {
      add_codes(fused);
    } else {
      add_floats(fused);
    }
    if (config_.has_expert_bias) add_bias(fused);
  }

  void add_floats(const Fused& fused) {
    const TensorView& values = required(fused.name, {config_.experts, fused.cols, fused.rows});
    require_type(values, {TensorType::f32, TensorType::f16, TensorType::bf16}, "F32, F16 or BF16");
    const uint64_t bytes = tensor_type_info(values.type).block_bytes;
    add_matrices(fused, values, values.type, [&](std::span<const std::byte> own, uint64_t, const RowSteps& steps) {
      return std::make_shared<TransposedRows>(own, fused.cols, bytes, steps);
    });
  }

  void add_codes(const Fused& fused) {
    if (fused.cols % kBlockColumns != 0) {
      throw bad_input("The tensor " + quoted_name(shown_(fused.name + ".blocks")) + " stands for rows of " +
                      std::to_string(fused.cols) + " columns; MXFP4 has blocks of 32.");
    }
    const uint64_t blocks = fused.cols / kBlockColumns, experts = config_.experts;
    const TensorView& codes = required(fused.name + ".blocks", {experts, fused.rows, blocks, kCodeBytes});
    const TensorView& scales = required(fused.name + ".scales", {experts, fused.rows, blocks});
    require_type(codes, {TensorType::u8}, "U8");
    require_type(scales, {TensorType::u8, TensorType::f8_e8m0}, "U8 or F8_E8M0");
    const uint64_t each = fused.rows * blocks;  // scales of an expert
    add_matrices(fused, codes, TensorType::mxfp4,
                 [&](std::span<const std::byte> own, uint64_t expert, const RowSteps& steps) {
                   return std::make_shared<MxFp4Rows>(own, scales.bytes.subspan(expert * each, each), blocks, steps);
                 });
  }

  /// `make` gives the rows of an expert's share of the bytes.
  template <class Make>
  void add_matrices(const Fused& fused, const TensorView& whole, TensorType type, const Make& make) {
    const uint64_t each = whole.bytes.size() / config_.experts, count = fused.matrices.size();
    for (uint64_t e = 0; e < config_.experts; ++e) {
      const std::span<const std::byte> own = whole.bytes.subspan(e * each, each);
      for (uint64_t i = 0; i < count; ++i) {
        const Matrices& matrices = fused.matrices[i];
        TensorView view;
        view.name = matrices.name + "." + std::to_string(e);
        view.stored_as = whole.stored_as;
        view.type = type;
        view.rank = 2;
        view.shape = {fused.rows / count, fused.cols};
        // A share for each, by which progress is counted: both are made of all.
        view.bytes = own.subspan(i * (each / count), each / count);
        view.packed = make(own, e, matrices.steps);
        result_.push_back(std::move(view));
      }
    }
  }

  /// A row of an expert is its bias, [E, rows].
  void add_bias(const Fused& fused) {
    const TensorView& whole = required(fused.name + ".bias", {config_.experts, fused.rows});
    require_type(whole, {TensorType::f32, TensorType::f16, TensorType::bf16}, "F32, F16 or BF16");
    for (const Matrices& matrices : fused.matrices) {
      TensorView view = whole;
      view.name = matrices.name + "_exps.bias";
      if (fused.matrices.size() > 1) {
        const uint64_t count = fused.matrices.size(), element = tensor_type_info(whole.type).block_bytes;
        view.shape[1] = fused.rows / count;
        view.bytes = whole.bytes.first(whole.bytes.size() / count);
        view.packed = std::make_shared<SteppedRows>(whole.bytes, fused.rows, element, matrices.steps);
      }
      result_.push_back(std::move(view));
    }
  }

  const TensorView& required(const std::string& name, std::initializer_list<uint64_t> shape) {
    TensorView expected;
    for (const uint64_t size : shape) expected.shape[expected.rank++] = size;
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      throw bad_input("The tensor " + quoted_name(shown_(name)) + " is missing; its shape should be " +
                      expected.shape_text() + ".");
    }
    const TensorView& tensor = *found->second;
    if (tensor.rank != expected.rank || tensor.shape != expected.shape) {
      throw bad_input("The tensor " + quoted_name(tensor.shown_name()) + " has the shape " + tensor.shape_text() +
                      "; " + expected.shape_text() + " is expected.");
    }
    used_.insert(tensor.name);
    return tensor;
  }

  static void require_type(const TensorView& tensor, std::initializer_list<TensorType> allowed, const char* names) {
    for (const TensorType type : allowed) {
      if (tensor.type == type) return;
    }
    throw bad_input("The tensor " + quoted_name(tensor.shown_name()) + " is stored as " +
                    std::string(to_string(tensor.type)) + "; " + names + " is expected.");
  }

  std::span<const TensorView> tensors_;
  const ModelConfig& config_;
  const ShownName& shown_;
  std::unordered_map<std::string_view, const TensorView*> by_name_;
  std::unordered_set<std::string_view> used_;
  std::vector<TensorView> result_;
};

}  // namespace

void read_hf_gpt_oss(const JsonFields& fields, ModelConfig& config) {
  set_common(config);
  config.experts = fields.u32(fields.has("num_local_experts") ? "num_local_experts" : "num_experts");
  config.experts_used = fields.u32("num_experts_per_tok");
  config.expert_ffn = config.ffn;
  config.has_experts.assign(config.layers, true);
  config.has_qkv_bias = config.has_output_bias = fields.boolean_or("attention_bias", true);
  config.swiglu_limit = static_cast<float>(fields.number_or("swiglu_limit", kUsualLimit));
}

void set_gguf_gpt_oss(ModelConfig& config) {
  set_common(config);
  config.rope_scaling.truncate = false;  // as the models were trained
}

std::vector<TensorView> separate_experts_of_folder(std::span<const TensorView> tensors, const ModelConfig& config,
                                                   const std::function<std::string(const std::string& name)>& shown) {
  return Separator(tensors, config, shown).separate();
}

}  // namespace canopy
