#include "engine/format/drafter_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/config_gguf.h"
#include "engine/format/config_hf.h"
#include "engine/format/json_text.h"
#include "engine/format/tensor_names.h"

namespace canopy {
namespace {

template <class T>
std::vector<int64_t> elements_of(const TensorView& tensor) {
  std::vector<int64_t> result;
  result.reserve(tensor.elements());
  Reader reader(tensor.bytes);
  for (uint64_t i = 0; i < tensor.elements(); ++i) result.push_back(reader.read<T>("an element"));
  return result;
}

}  // namespace

std::vector<uint32_t> checked_draft_token_ids(std::string_view where, std::span<const int64_t> ids, uint32_t vocab) {
  const int64_t end = vocab != 0 ? vocab : std::numeric_limits<int32_t>::max();
  const std::string what(where);
  const auto element = [&](size_t i) { return "Element " + std::to_string(i) + " of the " + what; };
  if (ids.empty() || ids.size() > static_cast<uint64_t>(end)) {
    throw bad_input("The " + what + " names " + std::to_string(ids.size()) + " tokens; 1 to " + std::to_string(end) +
                    " are allowed.");
  }
  std::vector<uint32_t> result;
  result.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= end) {
      throw bad_input(element(i) + " stands for token " + std::to_string(ids[i]) + "; 0 to " + std::to_string(end - 1) +
                      " is allowed.");
    }
    if (i > 0 && ids[i] <= ids[i - 1]) {
      throw bad_input(element(i) + " stands for token " + std::to_string(ids[i]) + ", the one before it for " +
                      std::to_string(ids[i - 1]) + "; tokens must ascend, each named once.");
    }
    result.push_back(static_cast<uint32_t>(ids[i]));
  }
  return result;
}

std::vector<uint32_t> draft_token_ids_of(const TensorView& d2t, DraftMap elements, uint32_t vocab) {
  const std::string where = "tensor " + quoted_name(d2t.shown_name());
  const bool is_long = d2t.type == TensorType::i64;
  if (d2t.rank != 1 || (!is_long && d2t.type != TensorType::i32)) {
    throw bad_input("The " + where + " is " + std::string(to_string(d2t.type)) + " of shape " + d2t.shape_text() +
                    "; I32 or I64 of one dimension is expected.");
  }
  std::vector<int64_t> ids = is_long ? elements_of<int64_t>(d2t) : elements_of<int32_t>(d2t);
  if (elements == DraftMap::offsets) {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    for (size_t i = 0; i < ids.size(); ++i) {
      // What is outside stays outside, whatever is added.
      if (ids[i] >= -most && ids[i] <= most) ids[i] += static_cast<int64_t>(i);
    }
  }
  return checked_draft_token_ids(where, ids, vocab);
}

std::vector<uint32_t> read_draft_token_list(const std::filesystem::path& path) {
  constexpr uint64_t most_bytes = 64ull << 20;
  return with_context(shown(path), [&] {
    const nlohmann::json root = parse_json(read_text_input(path, most_bytes), "The file");
    if (!root.is_array() || root.empty()) throw bad_input("A list of token ids is expected, [0, 2, 13].");
    const nlohmann::json object = {{"tokens", root}};
    return JsonFields(object, "the list").ids("tokens");
  });
}

std::filesystem::path draft_tokens_path(const std::filesystem::path& drafter) {
  constexpr const char* name = "draft_tokens.json";
  std::error_code ignored;
  if (std::filesystem::is_directory(drafter, ignored)) return drafter / name;
  std::filesystem::path beside = drafter;
  beside += std::string(".") + name;
  return beside;
}

namespace {

constexpr size_t max_aux_layers = 64;

void check_block(const DrafterConfig& config) {
  if (config.block_size >= 2 && config.block_size <= max_draft_block) return;
  throw bad_input("The drafter's block size is " + std::to_string(config.block_size) + "; 2 to " +
                  std::to_string(max_draft_block) + " is allowed, the root and at least one mask row.");
}

void check_aux_layers(const DrafterConfig& config) {
  const std::vector<uint32_t>& aux_layers = config.aux_layers;
  if (aux_layers.empty() || aux_layers.size() > max_aux_layers) {
    throw bad_input("The drafter names " + std::to_string(aux_layers.size()) + " target layers (taps); 1 to " +
                    std::to_string(max_aux_layers) + " are allowed.");
  }
  for (size_t i = 0; i < aux_layers.size(); ++i) {
    if (std::find(aux_layers.begin(), aux_layers.begin() + static_cast<std::ptrdiff_t>(i), aux_layers[i]) !=
        aux_layers.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw bad_input("The drafter names target layer " + std::to_string(aux_layers[i]) + " twice among its taps.");
    }
    if (config.target_layers != 0 && aux_layers[i] >= config.target_layers) {
      throw bad_input("The drafter's tap " + std::to_string(aux_layers[i]) + " is outside the " +
                      std::to_string(config.target_layers) + " layers that it says its target has (0 to " +
                      std::to_string(config.target_layers - 1) + ").");
    }
  }
}

void check_draft_vocabulary(const DrafterConfig& config) {
  const uint32_t stated = config.draft_vocab_size;
  const size_t named = config.draft_token_ids.size();
  if (stated == 0 || stated == named || (named == 0 && stated == config.vocab)) return;
  throw bad_input("The drafter says that it drafts " + std::to_string(stated) + " tokens (draft_vocab_size), but " +
                  (named == 0 ? "does not name them: the tensor 'd2t' is missing."
                              : "names " + std::to_string(named) + "; it must be the same number."));
}

void check_markov(const DrafterConfig& config) {
  if (config.sample_from_anchor && config.draft_shift) {
    throw bad_input(
        "The drafter's 'sample_from_anchor' and 'draft_shift' are both true; they say different things of the block's "
        "last row.");
  }
  const uint32_t rank = config.markov.rank;
  if (rank == 0) return;
  if (rank > max_markov_rank) {
    throw bad_input("The rank of the drafter's Markov head is " + std::to_string(rank) + "; 1 to " +
                    std::to_string(max_markov_rank) + " is allowed.");
  }
  if (config.vocab == 0) {
    throw bad_input("The drafter has a Markov head, but does not say how many tokens its target has (vocab_size).");
  }
  if (config.output_multiplier != 1 || config.final_logit_softcapping != 0) {
    throw bad_input(
        "The drafter has a Markov head beside an output multiplier or a final logit softcapping, which is not "
        "supported.");
  }
}

void check_convolution(const DrafterConfig& config) {
  const auto [taps, group] = config.conv;
  const uint32_t hidden = config.transformer.hidden;
  if (taps == 0 && group == 0) return;
  if (taps == 0 || taps > max_conv_taps) {
    throw bad_input("The drafter's convolution has " + std::to_string(taps) + " taps (conv_kernel_size); 1 to " +
                    std::to_string(max_conv_taps) + " are allowed.");
  }
  if (group == 0 || hidden % group != 0) {
    throw bad_input("The drafter's convolution has groups of " + std::to_string(group) +
                    " columns (conv_group_size); a divisor of the hidden size, " + std::to_string(hidden) +
                    ", is allowed.");
  }
}

void check_selector(const DrafterConfig& config) {
  const auto [rank, top_k] = config.selector;
  if (rank == 0 && top_k == 0) return;
  if (rank == 0 || rank > max_markov_rank) {
    throw bad_input("The rank of the drafter's candidate selector is " + std::to_string(rank) + "; 1 to " +
                    std::to_string(max_markov_rank) + " is allowed.");
  }
  if (config.vocab == 0) {
    throw bad_input(
        "The drafter has a candidate selector, but does not say how many tokens its target has (vocab_size).");
  }
  const uint32_t most = std::min(max_selector_candidates, config.drafted_tokens());
  if (top_k == 0 || top_k > most) {
    throw bad_input("The drafter's candidate selector has " + std::to_string(top_k) +
                    " candidates (selector_top_k); 1 to " + std::to_string(most) + " are allowed.");
  }
  if (config.markov.rank > 0) {
    throw bad_input("The drafter has a Markov head and a candidate selector; one of them is supported.");
  }
}

void check_scale(const char* field, float value, bool zero_allowed) {
  constexpr float most = 1e6f;
  if (std::isfinite(value) && std::abs(value) <= most && (value > 0 || (zero_allowed && value == 0))) return;
  std::ostringstream text;
  text << value;
  throw bad_input("The drafter's " + std::string(field) + " is " + text.str() + "; a number " +
                  (zero_allowed ? "from" : "above") + " 0 to 1e+06 is allowed.");
}

}  // namespace

std::string_view DrafterConfig::kind() const {
  if (markov.rank > 0) return "DSpark";
  if (conv.taps > 0 || selector.rank > 0) return "DFlash2";
  const bool is_causal = !attention.empty() && std::ranges::all_of(attention, &DrafterAttention::causal);
  const bool slides = std::ranges::any_of(attention, [](const DrafterAttention& layer) { return layer.window != 0; });
  return draft_shift || (is_causal && !slides) ? "JetSpec" : "DFlash";
}

DrafterAttention drafter_attention(uint32_t window) {
  return {window, window != 0};
}

void validate_drafter_config(const DrafterConfig& config) {
  validate_transformer(config.transformer);
  check_block(config);
  check_aux_layers(config);
  if (config.vocab != 0 && config.mask_token >= config.vocab) {
    throw bad_input("The drafter's mask token is " + std::to_string(config.mask_token) +
                    ", outside its vocabulary of " + std::to_string(config.vocab) + " tokens.");
  }
  check_draft_vocabulary(config);
  check_markov(config);
  check_convolution(config);
  check_selector(config);
  if (config.attention.size() != config.transformer.layers) {
    throw bad_input("The drafter states the attention of " + std::to_string(config.attention.size()) +
                    " layers, but has " + std::to_string(config.transformer.layers) + ".");
  }
  check_scale("input embedding scale", config.input_embedding_scale, false);
  check_scale("output multiplier", config.output_multiplier, false);
  check_scale("final logit softcapping", config.final_logit_softcapping, true);
}

std::vector<LayerSpec> layer_specs(const DrafterConfig& config) {
  std::vector<LayerSpec> specs;
  for (const DrafterAttention& layer : config.attention) {
    specs.push_back({.qk_norm = config.transformer.has_qk_norm,
                     .rope = config.transformer.rope_layout,
                     .causal = layer.causal,
                     .window = layer.window});
  }
  return specs;
}

std::vector<RequiredTensor> required_drafter_tensors(const DrafterConfig& config) {
  const uint64_t hidden = config.transformer.hidden;
  std::vector<RequiredTensor> result = {
      {"fc", hidden, config.feature_width()}, {"hidden_norm", 1, hidden}, {"output_norm", 1, hidden}};
  if (config.own_head) result.push_back({"output", config.draft_token_ids.size(), hidden});
  append_layer_tensors(config.transformer, layer_specs(config), result);
  for (uint32_t n = 0; config.conv.taps > 0 && n < config.transformer.layers; ++n) {
    for (const char* const part : {".attn_conv_", ".ffn_conv_"}) {
      const std::string name = "blk." + std::to_string(n) + part;
      result.push_back({name + "base", 2 * uint64_t{config.conv.taps}, hidden});
      result.push_back({name + "proj", config.conv.kernel_rows(hidden), hidden});
    }
  }
  if (config.selector.rank > 0) {
    result.push_back({"selector_hidden", config.selector.rank, hidden});
    result.push_back({"selector_predecessor", config.vocab, config.selector.rank});
    result.push_back({"selector_successor", config.vocab, config.selector.rank});
  }
  const MarkovConfig& markov = config.markov;
  if (markov.rank == 0) return result;
  // Rows for the target's whole vocabulary, of which some are taken where the head is some of the target's.
  const uint64_t drafted = config.own_head ? config.draft_token_ids.size() : config.vocab;
  result.push_back({"markov_w1", config.vocab, markov.rank});
  result.push_back({"markov_w2", drafted, markov.rank});
  if (!markov.has_confidence) return result;
  result.push_back({"conf_proj", 1, hidden + (markov.confidence_reads_markov ? markov.rank : 0)});
  if (markov.confidence_has_bias) result.push_back({"conf_proj.bias", 1, 1});
  return result;
}

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
  if (architecture == "eagle3")
    throw bad_input("This is an EAGLE-3 head, not a DFlash drafter, which is expected here.");
  if (architecture == "gemma4-assistant")
    throw bad_input("This is an assistant of Gemma 4, not a DFlash drafter, which is expected here.");
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
      {"dflash.dspark.enabled", "a DSpark drafter in a fork's dialect"},
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

/// Whether the file has a Markov head, which no metadata of llama.cpp's say.
bool has_markov_tensors(const GgufFile& file) {
  return std::ranges::any_of(file.tensors(),
                             [](const TensorView& tensor) { return tensor.name == "markov_w1.weight"; });
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
  config.draft_shift = file.boolean_if(keys.key("draft_shift")).value_or(false);
  config.conv = {keys.u32_or({"conv_kernel_size"}, 0), keys.u32_or({"conv_group_size"}, 0)};
  config.selector = {keys.u32_or({"selector_rank"}, 0), keys.u32_or({"selector_top_k"}, 0)};
  config.markov.rank = keys.u32_or({"markov_rank"}, 0);
  config.markov.has_confidence = file.boolean_if(keys.key("has_confidence_head")).value_or(false);
  config.sample_from_anchor =
      file.boolean_if(keys.key("sample_from_anchor")).value_or(config.markov.rank > 0 || has_markov_tensors(file));
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

namespace {

using nlohmann::json;

constexpr std::string_view supported_class = "DFlashDraftModel";
constexpr std::string_view dspark_class = "Qwen3DSparkModel", dflash2_class = "DFlash2DraftModel";

std::string class_name(const JsonFields& fields) {
  const json& classes = fields.list("architectures");
  if (classes.size() != 1 || !classes.front().is_string()) {
    throw bad_input("The field 'architectures' of config.json must be a list of one class name.");
  }
  return classes.front().get<std::string>();
}

void require_class(const JsonFields& fields) {
  const std::string name = class_name(fields);
  if (name == supported_class || name == dspark_class || name == dflash2_class) return;
  const std::string what = is_drafter_class(name)
                               ? "This is a drafter of the class '" + printable(name) + "', which is not supported"
                               : "This is a model of the class '" + printable(name) + "', not a drafter";
  throw bad_input(what + "; " + std::string(supported_class) + ", " + std::string(dflash2_class) + " or " +
                  std::string(dspark_class) + " is expected.");
}

/// What vLLM's speculators toolkit calls the algorithm of a drafter of its own form; empty for other forms. There the
/// layers are described in an object of their own.
std::string speculators_algorithm(const JsonFields& fields) {
  const json* about = fields.object("speculators_config");
  std::string stated =
      about == nullptr ? "" : JsonFields(*about, "speculators_config of config.json").text_or("algorithm", "");
  stated = fields.text_or("speculators_model_type", stated);
  const bool is_form = fields.has("speculators_version") || fields.has("transformer_layer_config") || about != nullptr;
  return stated.empty() && is_form ? "none that is named" : stated;
}

/// The same drafter in DFlash's own form.
json from_speculators(const json& root, const std::string& algorithm) {
  const JsonFields fields(root, "config.json");
  if (algorithm != "dflash" && algorithm != "dspark") {
    throw bad_input("This is a drafter in the form of vLLM's speculators, of the algorithm '" +
                    printable(algorithm, 80) + "', which is not supported; dflash and dspark are.");
  }
  const std::string projector = fields.text_or("projector_type", "dflash");
  if (projector != "dflash" || fields.boolean_or("shift_label", false)) {
    throw bad_input("This is a drafter in the form of vLLM's speculators whose field " +
                    (projector != "dflash" ? "'projector_type' is '" + printable(projector, 80) + "'"
                                           : std::string("'shift_label' is true")) +
                    ", which is not supported; plain DFlash is.");
  }
  const json* layer = fields.object("transformer_layer_config");
  if (layer == nullptr) {
    throw bad_input("config.json has the form of vLLM's speculators, but lacks the object 'transformer_layer_config'.");
  }
  const JsonFields layers(*layer, "transformer_layer_config of config.json");
  const std::string kind = layers.text_or("model_type", "qwen3");
  if (kind != "qwen3" && kind != "llama") {
    throw bad_input("The field 'model_type' of " + layers.what() + " is '" + printable(kind, 80) +
                    "'; qwen3 and llama are supported.");
  }
  json flat = *layer;
  // What is not stated is as in Qwen3's class, which all layers are made of; but of the rotation nothing is guessed.
  if (!layers.has("head_dim") && kind == "qwen3") flat["head_dim"] = 128u;
  if (!layers.has("rms_norm_eps")) flat["rms_norm_eps"] = 1e-6;
  if (!layers.has("max_position_embeddings")) flat["max_position_embeddings"] = 32768u;
  if (!layers.has("layer_types") && layers.boolean_or("use_sliding_window", false)) {
    const uint32_t first = layers.u32_or("max_window_layers", 28), count = layers.u32("num_hidden_layers");
    check_layer_count(count);
    json types = json::array();
    for (uint32_t n = 0; n < count; ++n) types.push_back(n < first ? "full_attention" : "sliding_attention");
    flat["layer_types"] = std::move(types);
  }
  for (const auto& [field, value] : root.items()) {
    if (field != "transformer_layer_config" && field != "speculators_config" && !layers.has(field.c_str()))
      flat[field] = value;
  }
  // Counted as inputs of layers: one more than DFlash's, which are outputs.
  fields.list("aux_hidden_state_layer_ids");
  json taps = json::array();
  for (const uint32_t id : fields.ids("aux_hidden_state_layer_ids")) {
    if (id == 0) {
      throw bad_input(
          "The field 'aux_hidden_state_layer_ids' of config.json names 0, the embedding; 1, the first layer's output, "
          "and above are supported.");
    }
    taps.push_back(id - 1);
  }
  flat["target_layer_ids"] = std::move(taps);
  return flat;
}

/// The top level of config.json and its object dflash_config: fields have moved between them.
class DrafterFields {
 public:
  explicit DrafterFields(const json& root)
      : top_(root, "config.json"), inner_(inner_of(top_), "dflash_config of config.json") {}

  const JsonFields& top() const { return top_; }
  /// Where a field stands; the inner object where it stands nowhere, for the message. Throws where both have it and
  /// differ.
  const JsonFields& holding(const char* field) const {
    const json* outer = top_.find(field);
    const json* inner = inner_.find(field);
    if (outer != nullptr && inner != nullptr && *outer != *inner) {
      throw bad_input("The field '" + std::string(field) + "' of config.json is " + picture(*outer) +
                      " at the top level, but " + picture(*inner) + " in dflash_config; it must be the same.");
    }
    return outer != nullptr && inner == nullptr ? top_ : inner_;
  }
  bool has(const char* field) const { return top_.has(field) || inner_.has(field); }
  float number_or(const char* field, double fallback) const {
    return static_cast<float>(holding(field).number_or(field, fallback));
  }

 private:
  static const json& inner_of(const JsonFields& top) {
    static const json none = json::object();
    const json* inner = top.object("dflash_config");
    return inner == nullptr ? none : *inner;
  }
  static std::string picture(const json& value) {
    return printable(value.dump(-1, ' ', false, json::error_handler_t::replace), 64);
  }

  JsonFields top_;
  JsonFields inner_;
};

/// Fields of relatives whose arithmetic is not there in the engine.
void refuse_relatives(const DrafterFields& fields) {
  static constexpr auto relatives = std::to_array<std::pair<const char*, const char*>>({
      {"num_experts", "a drafter with experts"},
  });
  for (const auto& [name, what] : relatives) {
    if (!fields.has(name) || fields.holding(name).u32(name) == 0) continue;
    throw bad_input("This is " + std::string(what) + ", as the field '" + name +
                    "' of config.json says, which is not supported; DFlash drafters are.");
  }
}

void check_target_hidden(const DrafterFields& fields, uint32_t hidden) {
  const JsonFields& place = fields.holding("target_hidden_size");
  const uint32_t stated = place.u32_or("target_hidden_size", hidden);
  if (stated == hidden) return;
  throw bad_input("The field 'target_hidden_size' of " + place.what() + " is " + std::to_string(stated) +
                  "; only the drafter's own hidden size, " + std::to_string(hidden) + ", is supported.");
}

/// A wrong theta would only show as bad drafts: no default.
void require_theta(const JsonFields& fields) {
  if (fields.has("rope_theta")) return;
  const json* rope = fields.object("rope_parameters");
  if (rope == nullptr) rope = fields.object("rope_scaling");
  if (rope != nullptr && JsonFields(*rope, "config.json's rope scaling").has("rope_theta")) return;
  throw bad_input("config.json lacks the field 'rope_theta', at the top level and in 'rope_parameters'.");
}

bool read_flag(const DrafterFields& fields, const char* field) {
  return fields.holding(field).boolean_or(field, false);
}

/// Whether the block is causal in all layers, as any of three fields may say; that it is not, 'is_causal' alone says.
std::optional<bool> read_is_causal(const DrafterFields& fields) {
  bool causal = false;
  for (const char* field : {"is_causal", "causal", "causal_head"}) causal |= read_flag(fields, field);
  if (!causal && !fields.has("is_causal")) return std::nullopt;
  return causal;
}

/// By layer: whether 'layer_types' calls it sliding; none where there is no such list.
std::vector<bool> read_sliding_layers(const JsonFields& top, uint32_t layers) {
  std::vector<bool> result(layers);
  if (!top.has("layer_types")) return result;
  const json& types = top.list("layer_types");
  if (types.size() != layers) {
    throw bad_input("The field 'layer_types' of config.json has " + std::to_string(types.size()) + " elements; " +
                    std::to_string(layers) + " are expected, one a layer.");
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string type = types[i].is_string() ? types[i].get<std::string>() : types[i].dump().substr(0, 64);
    result[i] = type == "sliding_attention";
    if (result[i] || type == "full_attention") continue;
    throw bad_input("Element " + std::to_string(i) + " of the field 'layer_types' of config.json is '" +
                    printable(type) + "'; full_attention and sliding_attention are supported.");
  }
  return result;
}

uint32_t read_window(const DrafterFields& fields) {
  const char* const field = fields.has("swa_window_size") ? "swa_window_size" : "sliding_window";
  const JsonFields& place = std::string_view(field) == "sliding_window" ? fields.top() : fields.holding(field);
  const uint32_t window = place.u32(field);
  if (window == 0) {
    throw bad_input("The field '" + std::string(field) + "' of " + place.what() + " is 0; at least 1 is expected.");
  }
  return window;
}

/// With 'use_swa', as NVIDIA's tools export drafters, all layers have the window; those that are not called sliding see
/// the block in both directions all the same.
std::vector<DrafterAttention> read_attention(const DrafterFields& fields, uint32_t layers) {
  const std::vector<bool> sliding = read_sliding_layers(fields.top(), layers);
  const bool all = fields.holding("use_swa").boolean_or("use_swa", false);
  std::vector<DrafterAttention> result(sliding.size());
  for (size_t i = 0; i < result.size(); ++i) {
    if (!sliding[i] && !all) continue;
    result[i] = drafter_attention(read_window(fields));
    result[i].causal = sliding[i];
  }
  if (const auto causal = read_is_causal(fields)) {
    for (DrafterAttention& layer : result) layer.causal = *causal;
  }
  return result;
}

MarkovConfig read_markov(const DrafterFields& fields, bool is_dspark) {
  MarkovConfig markov;
  markov.rank = is_dspark ? fields.holding("markov_rank").u32("markov_rank")
                          : fields.holding("markov_rank").u32_or("markov_rank", 0);
  if (markov.rank == 0) {
    if (!is_dspark) return markov;
    throw bad_input("The field 'markov_rank' of config.json is 0; a DSpark drafter has a Markov head.");
  }
  const std::string kind = fields.holding("markov_head_type").text_or("markov_head_type", "vanilla");
  if (kind != "vanilla") {
    throw bad_input("The field 'markov_head_type' of config.json is '" + printable(kind, 80) +
                    "'; vanilla is supported.");
  }
  markov.has_confidence = read_flag(fields, "enable_confidence_head");
  constexpr const char* reads = "confidence_head_with_markov";
  markov.confidence_reads_markov = fields.holding(reads).boolean_or(reads, true);
  return markov;
}

std::vector<uint32_t> read_aux_layers(const DrafterFields& fields) {
  const JsonFields& place = fields.holding("target_layer_ids");
  place.list("target_layer_ids");  // required, and no single number
  return place.ids("target_layer_ids");
}

std::vector<uint32_t> read_draft_token_ids(const DrafterFields& fields, uint32_t vocab) {
  constexpr const char* field = "draft_token_ids";
  if (!fields.has(field)) return {};
  const JsonFields& place = fields.holding(field);
  place.list(field);  // no single number
  const std::vector<uint32_t> found = place.ids(field);
  return checked_draft_token_ids("field '" + std::string(field) + "' of " + place.what(),
                                 std::vector<int64_t>(found.begin(), found.end()), vocab);
}

}  // namespace

bool is_drafter_config(const JsonFields& fields) {
  return !speculators_algorithm(fields).empty() || is_drafter_class(class_name(fields));
}

DrafterConfig read_hf_drafter_config(std::string_view config_json) {
  const json file = parse_config_json(config_json, "config.json");
  const std::string algorithm = speculators_algorithm(JsonFields(file, "config.json"));
  if (algorithm.empty()) require_class(JsonFields(file, "config.json"));
  const json root = algorithm.empty() ? file : from_speculators(file, algorithm);
  const DrafterFields fields(root);
  refuse_relatives(fields);
  DrafterConfig config;
  config.dialect = algorithm.empty() ? "Hugging Face" : "speculators (vLLM)";
  ModelConfig& transformer = config.transformer;
  transformer.architecture = "dflash";
  require_theta(fields.top());
  read_hf_transformer(fields.top(), transformer);
  check_target_hidden(fields, transformer.hidden);
  config.attention = read_attention(fields, transformer.layers);
  if (!algorithm.empty()) {
    // Files from before the switch were trained with both directions in all layers; vLLM reads them so.
    const bool both_ways = fields.top().boolean_or("sliding_window_non_causal", true);
    const bool causal = read_is_causal(fields).value_or(false);
    for (DrafterAttention& each : config.attention) each.causal = causal || (each.window != 0 && !both_ways);
  }
  config.block_size = fields.holding("block_size").u32("block_size");
  config.draft_shift = read_flag(fields, "draft_shift");
  const bool is_dspark = algorithm.empty() ? class_name(fields.top()) == dspark_class : algorithm == "dspark";
  config.markov = read_markov(fields, is_dspark);
  const bool is_dflash2 = algorithm.empty() && class_name(fields.top()) == dflash2_class;
  const auto of_dflash2 = [&](const char* field) {
    const JsonFields& place = fields.holding(field);
    return is_dflash2 ? place.u32(field) : place.u32_or(field, 0);
  };
  config.conv = {of_dflash2("conv_kernel_size"), of_dflash2("conv_group_size")};
  config.selector = {of_dflash2("selector_rank"), of_dflash2("selector_top_k")};
  constexpr const char* anchor = "sample_from_anchor";  // speculators' exports without it were trained otherwise
  config.sample_from_anchor = fields.holding(anchor).boolean_or(anchor, algorithm.empty() && config.markov.rank > 0);
  config.aux_layers = read_aux_layers(fields);
  config.mask_token = fields.holding("mask_token_id").u32("mask_token_id");
  config.target_layers = fields.holding("num_target_layers").u32_or("num_target_layers", 0);
  config.vocab = fields.top().u32_or("vocab_size", 0);
  config.draft_token_ids = read_draft_token_ids(fields, config.vocab);
  config.draft_vocab_size = fields.holding("draft_vocab_size").u32_or("draft_vocab_size", 0);
  config.input_embedding_scale = fields.number_or("input_embedding_scale", 1);
  config.output_multiplier = fields.number_or("output_multiplier", 1);
  config.final_logit_softcapping = fields.number_or("final_logit_softcapping", 0);
  return config;
}

namespace {

/// "layers.3.mlp_conv.base_kernel" -> "blk.3.ffn_conv_base"; empty for others.
std::string convolution_name(std::string_view name) {
  constexpr std::string_view layers = "layers.";
  static constexpr auto names = std::to_array<NamePair>({
      {"attention_conv.base_kernel", "attn_conv_base"},
      {"attention_conv.kernel_projection.weight", "attn_conv_proj"},
      {"mlp_conv.base_kernel", "ffn_conv_base"},
      {"mlp_conv.kernel_projection.weight", "ffn_conv_proj"},
  });
  const size_t dot = name.starts_with(layers) ? name.find('.', layers.size()) : std::string_view::npos;
  if (dot == std::string_view::npos) return {};
  for (const auto& [theirs, ours] : names) {
    if (name.substr(dot + 1) != theirs) continue;
    return "blk." + std::string(name.substr(layers.size(), dot + 1 - layers.size())) + std::string(ours);
  }
  return {};
}

}  // namespace

std::string drafter_name_from_hugging_face(std::string_view stored) {
  constexpr std::string_view prefix = "model.";
  const std::string plain = without_wrappers(stored);
  const std::string_view name = plain;
  const std::string_view bare = name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  if (bare == "fc.weight") return "fc";
  if (bare == "hidden_norm.weight") return "hidden_norm";
  if (bare == "lm_head.weight") return "output";
  if (const std::string convolution = convolution_name(bare); !convolution.empty()) return convolution;
  if (bare == "candidate_selector.hidden_projection.weight") return "selector_hidden";
  if (bare == "candidate_selector.predecessor_codebook") return "selector_predecessor";
  if (bare == "candidate_selector.successor_codebook") return "selector_successor";
  if (bare == "markov_head.markov_w1.weight") return "markov_w1";
  if (bare == "markov_head.markov_w2.weight") return "markov_w2";
  if (bare == "confidence_head.proj.weight") return "conf_proj";
  if (bare == "confidence_head.proj.bias") return "conf_proj.bias";
  const std::string full = std::string(prefix) + std::string(bare);
  const std::string result = canonical_name_from_hugging_face(full);
  return result == full ? std::string(name) : result;
}

}  // namespace canopy
