#include "engine/format/drafter_gguf.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/half.h"
#include "engine/base/parallel.h"
#include "engine/base/printable.h"
#include "engine/format/dequantize.h"
#include "engine/format/draft_vocabulary.h"
#include "engine/format/finite.h"
#include "engine/format/gguf_writer.h"
#include "engine/format/packed_matrix.h"
#include "engine/format/quantize.h"

namespace canopy {
namespace {

constexpr uint64_t least_rows = 16;  // of one part of a tensor

/// general.file_type, as llama.cpp numbers them.
uint32_t file_type(TensorType type) {
  switch (type) {
    case TensorType::q8_0: return 7;
    case TensorType::f16: return 1;
    case TensorType::bf16: return 32;
    default: break;
  }
  throw bad_input("A drafter cannot be written as " + std::string(to_string(type)) +
                  "; Q8_0, F16 and BF16 are possible.");
}

/// The type that a tensor is written in: `wanted`, or a float type without loss where rows are no whole blocks.
TensorType stored_type(const TensorView& tensor, TensorType wanted) {
  if (tensor.rank == 1) return TensorType::f32;
  return tensor.cols() % tensor_type_info(wanted).block_elements == 0 ? wanted : TensorType::f32;
}

template <class T, class Convert>
void put_each(std::span<const float> values, std::span<std::byte> out, const Convert& convert) {
  for (size_t i = 0; i < values.size(); ++i) {
    const T stored = convert(values[i]);
    std::memcpy(out.data() + i * sizeof(T), &stored, sizeof(T));
  }
}

uint16_t to_half(float value) {
  const uint16_t half = f32_to_f16(value);
  if ((half & 0x7fff) < 0x7c00) return half;
  throw bad_input("The value " + std::to_string(value) + " is too large for F16, which ends at 65504; BF16 holds it.");
}

void put_row(std::span<const float> values, TensorType type, std::span<std::byte> out) {
  switch (type) {
    case TensorType::f32: return put_each<float>(values, out, [](float value) { return value; });
    case TensorType::f16: return put_each<uint16_t>(values, out, to_half);
    case TensorType::bf16: return put_each<uint16_t>(values, out, f32_to_bf16);
    default: return quantize(type, values, out);
  }
}

/// Writes the whole tensor as `type`. Rows are converted on all cores.
void put_tensor(const TensorView& tensor, TensorType type, std::span<std::byte> out) {
  const uint64_t rows = tensor.rows();
  const uint64_t from_bytes = row_bytes(tensor);
  const uint64_t to_bytes = out.size() / rows;
  parallel_for(rows, least_rows, [&](uint64_t begin, uint64_t end) {
    std::vector<std::byte> scratch;
    const std::span<const std::byte> from = rows_of(tensor, begin, end - begin, scratch);
    require_finite(tensor, begin, from);
    std::vector<float> row(tensor.cols());
    for (uint64_t r = begin; r < end; ++r) {
      const auto target = out.subspan(r * to_bytes, to_bytes);
      const auto source = from.subspan((r - begin) * from_bytes, from_bytes);
      if (type == tensor.type) {
        std::ranges::copy(source, target.begin());
        continue;
      }
      dequantize(tensor.type, source, row);
      with_context("Writing row " + std::to_string(r) + " of the tensor " + quoted_name(tensor.name),
                   [&] { put_row(row, type, target); });
    }
  });
}

/// Our names to llama.cpp's.
std::string upstream_name(const std::string& canonical) {
  return (canonical == "hidden_norm" ? std::string("enc.output_norm") : canonical) + ".weight";
}

/// Beside a head of its own as llama.cpp reads it; else where programs that do not know it go on with the whole head.
void add_draft_vocabulary(const DrafterFile& drafter, const std::vector<uint32_t>& chosen, GgufWriter& writer) {
  const DrafterConfig& config = drafter.config();
  const std::vector<uint32_t>& ids = chosen.empty() ? config.draft_token_ids : chosen;
  if (config.own_head) {
    if (!chosen.empty()) {
      throw bad_input("The drafter has a head of its own, over " + std::to_string(config.draft_token_ids.size()) +
                      " tokens; others cannot be chosen.");
    }
    const std::array<uint64_t, 1> shape = {ids.size()};
    writer.tensor("d2t", shape, TensorType::i64, [&ids = config.draft_token_ids](std::span<std::byte> out) {
      for (size_t i = 0; i < ids.size(); ++i) {
        const int64_t id = ids[i];
        std::memcpy(out.data() + i * sizeof id, &id, sizeof id);
      }
    });
  } else if (!ids.empty()) {
    checked_draft_token_ids("list of tokens to draft", std::vector<int64_t>(ids.begin(), ids.end()), config.vocab);
    writer.i32s("dflash.draft_token_ids", std::vector<int32_t>(ids.begin(), ids.end()));
  }
}

void add_tensors(const DrafterFile& drafter, TensorType type, GgufWriter& writer) {
  for (const RequiredTensor& wanted : required_drafter_tensors(drafter.config())) {
    const TensorView& tensor = drafter.require(wanted.name, wanted.rows, wanted.cols);
    const TensorType stored = stored_type(tensor, type);
    writer.tensor(upstream_name(wanted.name), std::span(tensor.shape).first(tensor.rank), stored,
                  [&drafter, &tensor, stored](std::span<std::byte> out) {
                    put_tensor(tensor, stored, out);
                    drafter.check_unchanged();
                  });
  }
}

/// GGUF stores llama3's rule as what it comes to: a divisor for every frequency.
std::vector<float> rope_divisors(const ModelConfig& transformer) {
  if (transformer.rope_scaling.kind == RopeScaling::Kind::factors) return transformer.rope_scaling.divisors;
  ModelConfig plain = transformer;
  plain.rope_scaling = {};
  const std::vector<double> unscaled = rope_frequencies(plain);
  const std::vector<double> scaled = rope_frequencies(transformer);
  std::vector<float> result;
  for (size_t i = 0; i < scaled.size(); ++i) result.push_back(static_cast<float>(unscaled[i] / scaled[i]));
  return result;
}

void add_yarn(const RopeScaling& scaling, GgufWriter& writer) {
  if (!scaling.truncate) {
    throw bad_input("The drafter's YaRN scaling has 'truncate' off, which GGUF files cannot say.");
  }
  const std::string prefix = "dflash.rope.scaling.";
  writer.text(prefix + "type", "yarn");
  writer.f32(prefix + "factor", static_cast<float>(scaling.factor));
  writer.u32(prefix + "original_context_length", scaling.original_context);
  writer.f32(prefix + "attn_factor", static_cast<float>(scaling.magnitude / yarn_magnitude(scaling.factor)));
  writer.f32(prefix + "yarn_beta_fast", static_cast<float>(scaling.beta_fast));
  writer.f32(prefix + "yarn_beta_slow", static_cast<float>(scaling.beta_slow));
}

void add_rope(const ModelConfig& transformer, GgufWriter& writer) {
  writer.f32("dflash.rope.freq_base", static_cast<float>(transformer.rope_theta));
  writer.u32("dflash.rope.dimension_count", transformer.head_dim);
  using Kind = RopeScaling::Kind;
  const Kind kind = transformer.rope_scaling.kind;
  if (kind == Kind::linear) {
    writer.text("dflash.rope.scaling.type", "linear");
    writer.f32("dflash.rope.scaling.factor", static_cast<float>(transformer.rope_scaling.factor));
  } else if (kind == Kind::yarn) {
    add_yarn(transformer.rope_scaling, writer);
  } else if (kind == Kind::longrope) {
    throw bad_input("The drafter's rope scaling is of type longrope, which is not written to GGUF files.");
  } else if (kind != Kind::none) {
    const std::vector<float> divisors = rope_divisors(transformer);
    const std::array<uint64_t, 1> shape = {divisors.size()};
    writer.tensor("rope_freqs.weight", shape, TensorType::f32,
                  [divisors](std::span<std::byte> out) { put_row(divisors, TensorType::f32, out); });
  }
}

void add_attention(const DrafterConfig& config, GgufWriter& writer) {
  uint32_t window = 0;
  std::vector<bool> sliding;
  bool usual = true;
  for (const DrafterAttention& layer : config.attention) {
    sliding.push_back(layer.window != 0);
    usual &= layer == drafter_attention(layer.window);
    if (layer.window == 0) continue;
    if (window != 0 && window != layer.window) throw bad_input("GGUF holds one sliding window for all layers.");
    window = layer.window;
  }
  if (window != 0) {
    writer.u32("dflash.attention.sliding_window", window);
    writer.booleans("dflash.attention.sliding_window_pattern", sliding);
  }
  if (usual) return;
  const bool causal = config.attention.front().causal;
  if (std::ranges::any_of(config.attention, [&](const DrafterAttention& layer) { return layer.causal != causal; })) {
    throw bad_input(
        "GGUF says for all layers of a drafter at once whether they see the block in both directions; these "
        "differ.");
  }
  writer.boolean("dflash.attention.causal", causal);
}

/// A number of all layers, or where they differ, one of each.
void add_by_layer(const char* key, uint32_t of_all, const std::vector<uint32_t>& by_layer, GgufWriter& writer) {
  if (by_layer.empty()) return writer.u32(key, of_all);
  writer.i32s(key, std::vector<int32_t>(by_layer.begin(), by_layer.end()));
}

void add_config(const DrafterConfig& config, GgufWriter& writer) {
  const ModelConfig& transformer = config.transformer;
  writer.u32("dflash.block_count", transformer.layers);
  writer.u32("dflash.context_length", transformer.max_context);
  writer.u32("dflash.embedding_length", transformer.hidden);
  add_by_layer("dflash.feed_forward_length", transformer.ffn, transformer.layer_ffn, writer);
  add_by_layer("dflash.attention.head_count", transformer.heads, transformer.layer_heads, writer);
  add_by_layer("dflash.attention.head_count_kv", transformer.kv_heads, transformer.layer_kv_heads, writer);
  writer.u32("dflash.attention.key_length", transformer.head_dim);
  writer.u32("dflash.attention.value_length", transformer.head_dim);
  writer.f32("dflash.attention.layer_norm_rms_epsilon", transformer.rms_eps);
  add_rope(transformer, writer);
  add_attention(config, writer);
  writer.u32("dflash.block_size", config.block_size);
  std::vector<int32_t> layers;  // counted from 1, as llama.cpp reads a layer's output where the next one begins
  for (const uint32_t aux_layer : config.aux_layers) layers.push_back(static_cast<int32_t>(aux_layer + 1));
  writer.i32s("dflash.target_layers", layers);
  if (config.target_layers != 0) writer.u32("dflash.num_target_layers", config.target_layers);
  if (config.vocab != 0) writer.u32("dflash.vocab_size", config.vocab);
  if (config.input_embedding_scale != 1) writer.f32("dflash.embedding_scale", config.input_embedding_scale);
  if (config.output_multiplier != 1) writer.f32("dflash.logit_scale", config.output_multiplier);
  if (config.final_logit_softcapping != 0) {
    writer.f32("dflash.final_logit_softcapping", config.final_logit_softcapping);
  }
}

/// What is stated under a key: `given`, or what the drafter's own file says.
void add_stated(const DrafterFile& drafter, const char* key, const std::string& given, GgufWriter& writer) {
  const GgufFile* own = drafter.file().gguf();
  const std::string_view text = given.empty() && own != nullptr ? own->text_if(key).value_or("") : given;
  if (!text.empty()) writer.text(key, text);
}

void add_general(const DrafterFile& drafter, const DrafterGgufOptions& options, GgufWriter& writer) {
  writer.text("general.architecture", "dflash");
  writer.text("general.type", "model");
  writer.text("general.name", options.name.empty() ? drafter.config().transformer.name : options.name);
  add_stated(drafter, "general.license", options.license, writer);
  add_stated(drafter, "general.description", options.source, writer);
  writer.u32("general.file_type", file_type(options.type));
  writer.u32("general.quantization_version", 2);
}

void add_tokenizer(const DrafterFile& drafter, const DrafterGgufOptions& options, GgufWriter& writer) {
  constexpr std::string_view mask = "tokenizer.ggml.mask_token_id";
  const GgufFile* source = options.tokenizer != nullptr ? options.tokenizer : drafter.file().gguf();
  for (const GgufValue& value : source != nullptr ? source->metadata() : std::span<const GgufValue>()) {
    if (value.key.starts_with("tokenizer.") && value.key != mask) writer.copy(value);
  }
  writer.u32(mask, drafter.config().mask_token);
}

}  // namespace

void write_drafter_gguf(const DrafterFile& drafter, const DrafterGgufOptions& options, const PutBytes& put) {
  GgufWriter writer;
  add_general(drafter, options, writer);
  add_config(drafter.config(), writer);
  add_tokenizer(drafter, options, writer);
  add_draft_vocabulary(drafter, options.draft_token_ids, writer);
  add_tensors(drafter, options.type, writer);
  writer.write(put);
}

std::string drafter_gguf(const DrafterFile& drafter, const DrafterGgufOptions& options) {
  std::string file;
  write_drafter_gguf(drafter, options, [&file](std::span<const std::byte> bytes) {
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return file;
}

}  // namespace canopy
