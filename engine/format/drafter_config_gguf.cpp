#include "engine/format/drafter_config_gguf.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/config_gguf.h"
#include "engine/format/draft_vocabulary.h"
#include "engine/format/tensor_names.h"

namespace canopy {
namespace {

constexpr const char* mask_key = "tokenizer.ggml.mask_token_id";

/// Keys of one file that may stand in several places: "A.block_size" or "A.dflash.block_size".
class DrafterKeys {
 public:
  DrafterKeys(const GgufFile& file, std::string_view architecture)
      : file_(file), architecture_(printable(architecture)) {}

  std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }
  /// The first of the names that the file has, as a whole key; nothing where it has none.
  std::optional<std::string> present(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (file_.find(key(name)) != nullptr) return key(name);
    }
    return std::nullopt;
  }
  /// The same, but the first name where the file has none: for a message that it is missing.
  std::string wanted(std::initializer_list<std::string_view> names) const {
    return present(names).value_or(key(*names.begin()));
  }
  uint32_t u32_or(std::initializer_list<std::string_view> names, uint32_t fallback) const {
    return file_.u32_if(wanted(names)).value_or(fallback);
  }
  /// Converters write 0 for "none".
  float factor(std::initializer_list<std::string_view> names, float none) const {
    const double value = file_.number_if(wanted(names)).value_or(0);
    return value == 0 ? none : static_cast<float>(value);
  }
  const GgufFile& file() const { return file_; }
  const std::string& architecture() const { return architecture_; }

 private:
  const GgufFile& file_;
  std::string architecture_;
};

/// `names` are those of the aux layers' key.
struct Dialect {
  std::string name;
  bool shifted = false;  // aux layers are stored plus one: llama.cpp counts the input of the next layer
  bool fork = false;     // not of the architecture "dflash"
};

Dialect read_dialect(const DrafterKeys& keys) {
  const std::string& architecture = keys.architecture();
  if (!is_drafter_architecture(architecture)) {
    throw bad_input(
        "This is a model of the architecture '" + architecture +
        "', not a drafter; a DFlash drafter is expected, a GGUF file of the architecture dflash or a Hugging "
        "Face folder with DFlashDraftModel.");
  }
  if (architecture != "dflash") return {architecture, false, true};
  const bool own_mask = keys.present({"mask_token_id", "dflash.mask_token_id"}).has_value();
  const bool upstream_mask = keys.file().find(mask_key) != nullptr;
  const bool own_aux_layers = keys.present({"dflash.target_layer_ids", "target_layer_ids"}).has_value();
  if (own_aux_layers || (own_mask && !upstream_mask)) return {"dflash (unshifted)", false, false};
  return {"dflash (llama.cpp)", true, false};
}

/// Keys of relatives whose arithmetic is not there in the engine.
void refuse_relatives(const DrafterKeys& keys) {
  static constexpr auto relatives = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"conv_kernel_size", "a DFlash2 drafter (with local convolutions)"},
      {"selector_rank", "a DFlash2 drafter (with a candidate selector)"},
      {"markov_rank", "a DSpark drafter (with a Markov head)"},
      {"dflash.dspark.enabled", "a DSpark drafter"},
      {"hyper_connection.count", "a DSpark drafter (with hyper-connections)"},
      {"decoder_arch", "a drafter with layers of another architecture"},
      {"expert_count", "a drafter with experts"},
  });
  for (const auto& [name, what] : relatives) {
    const GgufValue* value = keys.file().find(keys.key(name));
    if (value == nullptr) continue;
    const bool off = value->unsigned_value == 0 && value->signed_value == 0 && value->text.empty();
    if (!off) {
      throw bad_input("This is " + std::string(what) + ", as the metadata '" + keys.key(name) +
                      "' says, which is not supported; DFlash drafters are.");
    }
  }
}

/// Throws for settings that would change the arithmetic of an ordinary drafter.
void refuse_unsupported(const DrafterKeys& keys, const ModelConfig& transformer) {
  const GgufFile& file = keys.file();
  const std::string_view activation = file.text_if(keys.key("hidden_activation")).value_or("silu");
  if (activation != "silu") {
    throw bad_input("The metadata '" + keys.key("hidden_activation") + "' is '" + printable(activation) +
                    "'; only silu is supported.");
  }
  for (const char* name : {"attention.scale", "attention.value_scale"}) {
    if (keys.factor({name}, 0) != 0) {
      throw bad_input("The metadata '" + keys.key(name) + "' scales attention, which is not supported.");
    }
  }
  const std::string sections = keys.key("rope.dimension_sections");
  const std::vector<int32_t> parts = file.i32s(sections);  // of targets with images: all in the first one, or absent
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t allowed = i == 0 ? transformer.head_dim / 2 : 0;
    if (parts[i] == allowed) continue;
    throw bad_input("The metadata '" + sections + "' splits the rotary embedding (element " + std::to_string(i) +
                    " is " + std::to_string(parts[i]) + "); only [" + std::to_string(transformer.head_dim / 2) +
                    ", 0, 0, 0] is supported.");
  }
  const uint32_t target_hidden = keys.u32_or({"target_hidden_size", "dflash.target_hidden"}, transformer.hidden);
  if (target_hidden != transformer.hidden) {
    throw bad_input("The drafter's hidden size is " + std::to_string(transformer.hidden) + ", its target's " +
                    std::to_string(target_hidden) + "; they must be equal, embedding and head are shared.");
  }
}

std::vector<uint32_t> read_aux_layers(const DrafterKeys& keys, const Dialect& dialect) {
  const std::string key = dialect.shifted
                              ? keys.key("target_layers")
                              : keys.wanted({"dflash.target_layer_ids", "target_layer_ids", "target_layers"});
  if (keys.file().find(key) == nullptr) throw bad_input("The metadata '" + key + "' is missing.");
  std::vector<uint32_t> aux_layers;
  for (const int32_t layer : keys.file().i32s(key)) {
    const int32_t lowest = dialect.shifted ? 1 : 0;
    if (layer < lowest) {
      throw bad_input("The metadata '" + key + "' holds " + std::to_string(layer) + "; at least " +
                      std::to_string(lowest) + " is expected" +
                      (dialect.shifted ? ", this dialect (" + dialect.name + ") counts from 1." : "."));
    }
    aux_layers.push_back(static_cast<uint32_t>(layer - lowest));
  }
  return aux_layers;
}

uint32_t read_mask(const DrafterKeys& keys, const Dialect& dialect) {
  if (dialect.shifted) return keys.file().u32(mask_key);
  const auto own = keys.present({"dflash.mask_token_id", "mask_token_id"});
  if (own) return keys.file().u32(*own);
  if (const auto mask = keys.file().u32_if(mask_key)) return *mask;
  throw bad_input("The metadata '" + keys.key("dflash.mask_token_id") + "' is missing.");
}

std::vector<DrafterAttention> read_attention(const DrafterKeys& keys, const Dialect& dialect, uint32_t layers) {
  const GgufFile& file = keys.file();
  const std::string pattern_key = keys.key("attention.sliding_window_pattern");
  const uint32_t window = keys.u32_or({"attention.sliding_window", "dflash.sliding_window"}, 0);
  const std::vector<bool> sliding = file.booleans(pattern_key);
  if (sliding.empty() && window != 0) {
    throw bad_input("The drafter has a sliding window of " + std::to_string(window) + " positions, but '" +
                    pattern_key + "', which says in which layers, is missing.");
  }
  if (!sliding.empty() && sliding.size() != layers) {
    throw bad_input("The metadata '" + pattern_key + "' has " + std::to_string(sliding.size()) + " elements; " +
                    std::to_string(layers) + " are expected, one a layer.");
  }
  std::vector<DrafterAttention> result(layers);
  for (size_t i = 0; i < sliding.size(); ++i) {
    if (sliding[i] && window == 0) {
      throw bad_input("Layer " + std::to_string(i) + " of the drafter is sliding by '" + pattern_key + "', but '" +
                      keys.key("attention.sliding_window") + "' is missing or 0.");
    }
    result[i] = drafter_attention(sliding[i] ? window : 0);
  }
  // The forks' converters write "not causal" whatever the drafter was trained with: only llama.cpp's word counts.
  const auto causal = file.boolean_if(keys.key("attention.causal"));
  if (causal && (*causal || dialect.shifted)) {
    for (DrafterAttention& layer : result) layer.causal = *causal;
  }
  return result;
}

uint32_t read_vocab(const DrafterKeys& keys) {
  if (const uint32_t stated = keys.u32_or({"vocab_size"}, 0)) return stated;
  const GgufValue* tokens = keys.file().find("tokenizer.ggml.tokens");
  return tokens == nullptr ? 0 : static_cast<uint32_t>(std::min<uint64_t>(tokens->count, UINT32_MAX));
}

std::vector<uint32_t> read_draft_token_ids(const DrafterKeys& keys, uint32_t vocab) {
  const std::string key = keys.key("draft_token_ids");
  if (keys.file().find(key) == nullptr) return {};
  const std::vector<int32_t> found = keys.file().i32s(key);
  return checked_draft_token_ids("metadata '" + key + "'", std::vector<int64_t>(found.begin(), found.end()), vocab);
}

/// Names that stand for a canonical one, without ".weight".
using NamePair = std::pair<std::string_view, std::string_view>;

std::string translate(std::string name, std::span<const NamePair> names) {
  for (const auto& [theirs, ours] : names) {
    if (name == theirs) return std::string(ours);
  }
  return name;
}

}  // namespace

DrafterConfig read_gguf_drafter_config(const GgufFile& file) {
  const DrafterKeys keys(file, file.text("general.architecture"));
  const Dialect dialect = read_dialect(keys);
  refuse_relatives(keys);
  DrafterConfig config;
  config.dialect = dialect.name;
  ModelConfig& transformer = config.transformer;
  transformer.architecture = "dflash";
  file.number(keys.key("rope.freq_base"));  // required: a wrong one would only show as bad drafts
  read_gguf_transformer(file, keys.architecture(), transformer);
  transformer.rope_layout = RopeLayout::half;  // in every dialect: no converter permutes the rows of q and k
  refuse_unsupported(keys, transformer);
  config.attention = read_attention(keys, dialect, transformer.layers);
  config.block_size = file.u32(keys.wanted({"block_size", "dflash.block_size"}));
  config.aux_layers = read_aux_layers(keys, dialect);
  config.mask_token = read_mask(keys, dialect);
  config.target_layers = keys.u32_or({"num_target_layers", "dflash.num_target_layers"}, 0);
  config.vocab = read_vocab(keys);
  config.draft_token_ids = read_draft_token_ids(keys, config.vocab);
  config.input_embedding_scale = keys.factor({"embedding_scale"}, 1);
  config.output_multiplier = keys.factor({"logit_scale"}, 1);
  config.final_logit_softcapping = keys.factor({"final_logit_softcapping", "dflash.logit_softcap"}, 0);
  return config;
}

std::string drafter_name_from_gguf(std::string_view name) {
  static constexpr auto names = std::to_array<NamePair>({
      {"enc.output_norm", "hidden_norm"},
      {"dflash.fc", "fc"},
      {"dflash_fc", "fc"},
      {"dflash.hidden_norm", "hidden_norm"},
      {"dflash_hidden_norm", "hidden_norm"},
  });
  return translate(canonical_name_from_gguf(name), names);
}

std::string drafter_name_from_fork(std::string_view name) {
  std::string result = drafter_name_from_gguf(name);
  constexpr std::string_view theirs = ".post_attention_norm";
  if (result.starts_with("blk.") && result.ends_with(theirs)) {
    result.replace(result.size() - theirs.size(), theirs.size(), ".ffn_norm");
  }
  return result;
}

bool has_upstream_drafter_names(const GgufFile& file) {
  return file.text("general.architecture") == "dflash";
}

}  // namespace canopy
