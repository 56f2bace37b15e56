#include "engine/format/latent_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/architecture.h"

namespace canopy {
namespace {

using nlohmann::json;

/// Products of queries and keys are multiplied by m^2 / sqrt(their elements), m = 1 + log_multiplier * ln factor.
void set_query_width(uint32_t elements, double log_multiplier, ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  const bool has_yarn = scaling.kind == RopeScaling::Kind::yarn && scaling.factor > 1;
  const double m = has_yarn ? 1 + log_multiplier * std::log(scaling.factor) : 1;
  config.query_width = elements / std::pow(m, 4);
}

/// A rank of 0 would stand for attention of another kind.
void require_rank(const std::string& field, uint32_t rank) {
  if (rank != 0) return;
  throw bad_input("The " + field + " is 0; the model's attention is to latents, of at least 4 elements.");
}

}  // namespace

json complete_latent(const json& object) {
  const JsonFields given(object, "config.json");
  json fields = object;
  fields["head_dim"] = uint64_t{given.u32("kv_lora_rank")} + given.u32("qk_rope_head_dim");
  fields["num_key_value_heads"] = 1u;
  fields.erase("partial_rotary_factor");
  return fields;
}

void read_hf_latent(const JsonFields& fields, ModelConfig& config) {
  LatentAttention& latent = config.latent;
  latent.rank = fields.u32("kv_lora_rank");
  require_rank("field 'kv_lora_rank' of config.json", latent.rank);
  latent.query_rank = fields.u32_or("q_lora_rank", 0);
  latent.key_dim = fields.u32("qk_nope_head_dim");
  latent.value_dim = fields.u32("v_head_dim");
  config.rotary_dim = fields.u32("qk_rope_head_dim");
  config.rope_layout = RopeLayout::interleaved;
  if (!fields.boolean_or("rope_interleave", true)) {
    throw bad_input("The field 'rope_interleave' of config.json is false; only true is supported.");
  }
  double of_all = 0;
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const json* scaling = fields.object(name);
    if (scaling != nullptr) of_all = JsonFields(*scaling, "config.json's rope scaling").number_or("mscale_all_dim", 0);
  }
  set_query_width(latent.key_dim + config.rotary_dim, 0.1 * of_all, config);
}

void read_gguf_latent(const GgufFile& file, std::string_view prefix, ModelConfig& config) {
  const auto full = [&](std::string_view key) { return std::string(prefix) + "." + std::string(key); };
  const auto u32_or = [&](std::string_view key, uint32_t other) { return file.u32_if(full(key)).value_or(other); };
  LatentAttention& latent = config.latent;
  if (file.find(full("attention.key_length_mla")) == nullptr) {
    throw bad_input("The metadata '" + full("attention.key_length_mla") +
                    "' is missing, as in files of older converters, whose keys and values are not kept as latents. Get "
                    "a newer conversion of the model.");
  }
  latent.rank = file.u32(full("attention.kv_lora_rank"));
  require_rank("metadata '" + full("attention.kv_lora_rank") + "'", latent.rank);
  latent.query_rank = u32_or("attention.q_lora_rank", 0);
  latent.value_dim = file.u32(full("attention.value_length_mla"));
  const uint32_t keys = file.u32(full("attention.key_length_mla"));
  config.rotary_dim = file.u32(full("rope.dimension_count"));
  if (keys <= config.rotary_dim) {
    throw bad_input("The metadata '" + full("attention.key_length_mla") + "' is " + std::to_string(keys) +
                    "; more than '" + full("rope.dimension_count") + "', " + std::to_string(config.rotary_dim) +
                    ", is expected.");
  }
  latent.key_dim = keys - config.rotary_dim;
  if (config.kv_heads != 1) {
    throw bad_input("The metadata '" + full("attention.head_count_kv") + "' is " + std::to_string(config.kv_heads) +
                    "; only 1 is supported.");
  }
  if (config.head_dim != uint64_t{latent.rank} + config.rotary_dim) {
    throw bad_input("The metadata '" + full("attention.key_length") + "' is " + std::to_string(config.head_dim) +
                    "; the latent's " + std::to_string(latent.rank) + " elements and the " +
                    std::to_string(config.rotary_dim) + " that are turned are expected.");
  }
  config.rope_scaling.magnitude = 1;
  set_query_width(keys, file.number_if(full("rope.scaling.yarn_log_multiplier")).value_or(0), config);
}

namespace {

/// Rows of heads, each `rows` of another matrix and then as many of zeros as it takes to `all`.
class PaddedHeads final : public PackedMatrix {
 public:
  PaddedHeads(TensorView heads, uint64_t rows, uint64_t all) : heads_(std::move(heads)), rows_(rows), all_(all) {}
  void make_rows(uint64_t first, uint64_t count, std::span<std::byte> out) const override {
    const uint64_t bytes = row_bytes(heads_);
    std::vector<std::byte> scratch;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t head = (first + i) / all_, row = (first + i) % all_;
      const std::span<std::byte> to = out.subspan(i * bytes, bytes);
      if (row < rows_) {
        std::ranges::copy(rows_of(heads_, head * rows_ + row, 1, scratch), to.begin());
      } else {
        std::ranges::fill(to, std::byte{0});  // which every type of blocks has as zeros
      }
    }
  }
  std::string_view form() const override { return ""; }

 private:
  TensorView heads_;
  uint64_t rows_, all_;
};

/// Of each head of a matrix some rows, transposed, and then as many of zeros as it takes to `all`.
class TransposedHeads final : public PackedMatrix {
 public:
  /// Heads have `step` rows, of which the first `taken` are taken.
  TransposedHeads(TensorView heads, uint64_t step, uint64_t taken, uint64_t all)
      : heads_(std::move(heads)), step_(step), taken_(taken), all_(all) {}
  void make_rows(uint64_t first, uint64_t count, std::span<std::byte> out) const override {
    const uint64_t element = tensor_type_info(heads_.type).block_bytes, cols = heads_.cols();
    std::vector<std::byte> scratch;
    std::ranges::fill(out, std::byte{0});
    for (uint64_t at = first; at < first + count;) {
      const uint64_t head = at / all_, begin = at % all_, end = std::min(all_, begin + first + count - at);
      const std::span<const std::byte> rows = rows_of(heads_, head * step_, taken_, scratch);
      for (uint64_t k = 0; k < taken_; ++k) {
        for (uint64_t c = begin; c < std::min(end, cols); ++c) {
          std::memcpy(out.data() + ((at - first + c - begin) * taken_ + k) * element,
                      rows.data() + (k * cols + c) * element, element);
        }
      }
      at += end - begin;
    }
  }
  std::string_view form() const override { return ""; }

 private:
  TensorView heads_;
  uint64_t step_, taken_, all_;
};

/// Rows `first` ... of each head of a matrix whose heads have `step`.
class PartsOfHeads final : public PackedMatrix {
 public:
  PartsOfHeads(TensorView heads, uint64_t step, uint64_t first, uint64_t count)
      : heads_(std::move(heads)), step_(step), first_(first), count_(count) {}
  void make_rows(uint64_t first, uint64_t count, std::span<std::byte> out) const override {
    const uint64_t bytes = row_bytes(heads_);
    std::vector<std::byte> scratch;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t row = (first + i) / count_ * step_ + first_ + (first + i) % count_;
      std::ranges::copy(rows_of(heads_, row, 1, scratch), out.begin() + static_cast<std::ptrdiff_t>(i * bytes));
    }
  }
  std::string_view form() const override { return ""; }

 private:
  TensorView heads_;
  uint64_t step_, first_, count_;
};

class HeadSeparator {
 public:
  HeadSeparator(std::span<const TensorView> tensors, const ModelConfig& config,
                const std::function<std::string(const std::string& name)>& shown)
      : config_(config), shown_(shown) {
    for (const TensorView& tensor : tensors) by_name_.emplace(tensor.name, &tensor);
  }

  /// The two of a layer, behind `result`.
  void add(const std::string& layer, std::vector<TensorView>& result) const {
    const LatentAttention& latent = config_.latent;
    const uint64_t heads = config_.heads, rank = latent.rank, all = config_.head_dim;
    const auto joined = by_name_.find(layer + "attn_kv_b");
    if (joined != by_name_.end()) {
      const uint64_t step = uint64_t{latent.key_dim} + latent.value_dim;
      const TensorView& tensor = checked(layer + "attn_kv_b", {heads * step, rank});
      if (tensor_type_info(tensor.type).block_elements != 1) {
        throw bad_input("The tensor " + quoted_name(tensor.shown_name()) + " is stored as " +
                        std::string(to_string(tensor.type)) +
                        ", of which keys cannot be taken apart without rounding; floats are supported.");
      }
      result.push_back(made(tensor, layer + "attn_k_b", heads * all, latent.key_dim, 0,
                            std::make_shared<TransposedHeads>(tensor, step, latent.key_dim, all)));
      result.push_back(made(tensor, layer + "attn_v_b", heads * latent.value_dim, rank, 1,
                            std::make_shared<PartsOfHeads>(tensor, step, latent.key_dim, latent.value_dim)));
      return;
    }
    const TensorView& keys = checked(layer + "attn_k_b", {heads, rank, latent.key_dim});
    const TensorView& values = checked(layer + "attn_v_b", {heads, latent.value_dim, rank});
    result.push_back(made(keys, layer + "attn_k_b", heads * all, latent.key_dim, 2,
                          std::make_shared<PaddedHeads>(flat(keys), rank, all)));
    result.push_back(flat(values));
  }

 private:
  /// As a matrix of all heads, one below the other.
  static TensorView flat(TensorView tensor) {
    const uint64_t rows = tensor.rows(), cols = tensor.cols();
    tensor.rank = 2;
    tensor.shape = {rows, cols};
    return tensor;
  }

  /// half: of the bytes of a tensor of which two are made, for what is counted while loading; 2: all of them.
  static TensorView made(const TensorView& from, std::string name, uint64_t rows, uint64_t cols, uint32_t half,
                         std::shared_ptr<const PackedMatrix> packed) {
    TensorView tensor = from;
    tensor.name = std::move(name);
    tensor.rank = 2;
    tensor.shape = {rows, cols};
    tensor.packed = std::move(packed);
    const uint64_t middle = from.bytes.size() / 2;
    if (half < 2) tensor.bytes = half == 0 ? from.bytes.first(middle) : from.bytes.subspan(middle);
    return tensor;
  }

  const TensorView& checked(const std::string& name, std::initializer_list<uint64_t> shape) const {
    TensorView expected;
    expected.rank = static_cast<uint32_t>(shape.size());
    std::ranges::copy(shape, expected.shape.begin());
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      throw bad_input("The tensor " + quoted_name(shown_(name)) + " is missing; its shape should be " +
                      expected.shape_text() + ".");
    }
    const TensorView& tensor = *found->second;
    if (tensor.rank == expected.rank && tensor.shape == expected.shape) return tensor;
    throw bad_input("The tensor " + quoted_name(tensor.shown_name()) + " has the shape " + tensor.shape_text() + "; " +
                    expected.shape_text() + " is expected.");
  }

  const ModelConfig& config_;
  const std::function<std::string(const std::string& name)>& shown_;
  std::unordered_map<std::string_view, const TensorView*> by_name_;
};

}  // namespace

std::vector<TensorView> separate_latent_heads(std::span<const TensorView> tensors, const ModelConfig& config,
                                              const std::function<std::string(const std::string& name)>& shown) {
  const HeadSeparator separator(tensors, config, shown);
  std::vector<TensorView> result;
  for (const TensorView& tensor : tensors) {
    const bool is_made =
        tensor.name.ends_with(".attn_kv_b") || tensor.name.ends_with(".attn_k_b") || tensor.name.ends_with(".attn_v_b");
    if (!is_made) result.push_back(tensor);
  }
  for (uint32_t n = 0; n < config.layers; ++n) separator.add("blk." + std::to_string(n) + ".", result);
  return result;
}

}  // namespace canopy
