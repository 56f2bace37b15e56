#include "engine/format/eagle_file.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/config_gguf.h"
#include "engine/format/config_hf.h"
#include "engine/format/drafter_config.h"
#include "engine/format/drafter_file.h"
#include "engine/format/json_text.h"
#include "engine/format/tensor_names.h"

namespace canopy {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view eagle_architecture = "eagle3", eagle_layer = "blk.0.", eagle_weight = ".weight";

/// Files count the layers whose inputs are read, so that 1 is the first layer's output.
std::vector<uint32_t> outputs_before(const std::string& where, const std::vector<int64_t>& inputs) {
  std::vector<uint32_t> outputs;
  for (const int64_t input : inputs) {
    const int64_t least = outputs.empty() ? 1 : int64_t{outputs.back()} + 2;
    if (input < least || input > UINT16_MAX) {
      throw bad_input("Element " + std::to_string(outputs.size()) + " of the " + where + " is " +
                      std::to_string(input) + "; inputs of layers from " + std::to_string(least) + " to " +
                      std::to_string(UINT16_MAX) + " are allowed there, ascending: 1 is the first layer's output.");
    }
    outputs.push_back(static_cast<uint32_t>(input - 1));
  }
  constexpr size_t most = 64;
  if (outputs.empty() || outputs.size() > most) {
    throw bad_input("The " + where + " has " + std::to_string(outputs.size()) + " elements; 1 to " +
                    std::to_string(most) + " are allowed.");
  }
  return outputs;
}

// GGUF.

EagleConfig read_gguf_eagle(const GgufFile& file) {
  const auto key = [](const char* name) { return std::string(eagle_architecture) + "." + name; };
  const std::string_view architecture = file.text("general.architecture");
  if (architecture != eagle_architecture) {
    throw bad_input("This is a model of the architecture '" + printable(architecture) +
                    "', not an EAGLE-3 head; eagle3 is expected.");
  }
  EagleConfig config;
  config.dialect = "eagle3 (llama.cpp)";
  config.layer.architecture = eagle_architecture;
  read_gguf_transformer(file, eagle_architecture, config.layer);
  config.layer.rope_layout = RopeLayout::interleaved;  // llama.cpp's converter permutes rows of q and k as Llama's
  const GgufValue* tokens = file.find("tokenizer.ggml.tokens");
  const uint64_t listed = tokens == nullptr ? 0 : std::min<uint64_t>(tokens->count, UINT32_MAX);
  config.layer.vocab = file.u32_if(key("vocab_size")).value_or(static_cast<uint32_t>(listed));
  config.target_hidden = file.u32_if(key("target_hidden_size")).value_or(config.layer.hidden);
  config.norm_before_residual = file.boolean_if(key("norm_before_residual")).value_or(false);
  config.norm_before_fc = file.boolean_if(key("norm_before_fc")).value_or(false);
  if (file.find(key("target_layers")) != nullptr) {
    const std::vector<int32_t> inputs = file.i32s(key("target_layers"));
    config.aux_layers =
        outputs_before("metadata '" + key("target_layers") + "'", std::vector<int64_t>(inputs.begin(), inputs.end()));
  }
  return config;
}

std::string eagle_name_from_gguf(std::string_view stored) {
  const std::string name = canonical_name_from_gguf(stored);
  if (name == "enc.output_norm") return "input_norm";
  return name == "blk.0.attn_norm_2" ? "hidden_norm" : name;
}

// Folders.

using nlohmann::json;

/// The class that config.json names; empty where it names none, or several.
std::string eagle_class(const JsonFields& fields) {
  const json* classes = fields.find("architectures");
  if (classes == nullptr || !classes->is_array() || classes->size() != 1 || !classes->front().is_string()) return "";
  return classes->front().get<std::string>();
}

bool is_speculators_eagle(const JsonFields& fields) {
  if (fields.text_or("speculators_model_type", "") == eagle_architecture) return true;
  const json* about = fields.object("speculators_config");
  return about != nullptr &&
         JsonFields(*about, "speculators_config of config.json").text_or("algorithm", "") == eagle_architecture;
}

/// EAGLE's authors call the first heads by the class of a model; a vocabulary to draft from no model has.
bool is_eagle_config(const JsonFields& fields) {
  if (is_speculators_eagle(fields)) return true;
  const std::string name = eagle_class(fields);
  if (name.find("Eagle3") != std::string::npos) return !fields.has("speculators_model_type");
  return name == "LlamaForCausalLM" && fields.has("draft_vocab_size") && !fields.has("dflash_config");
}

/// The object that describes the layer: in speculators' form one of its own, else all of config.json.
const json& layer_object(const json& root, const JsonFields& fields) {
  if (!fields.has("transformer_layer_config")) return root;
  return *fields.object("transformer_layer_config");
}

json complete_layer(const json& given, bool is_speculators) {
  json layer = given;
  const JsonFields fields(given, "config.json");
  const std::string kind = fields.text_or("model_type", "llama");
  if (kind != "llama" && kind != "qwen3") {
    throw bad_input("The field 'model_type' of " +
                    std::string(is_speculators ? "transformer_layer_config of config.json" : "config.json") + " is '" +
                    printable(kind, 80) + "'; llama and qwen3 are supported for the layer of an EAGLE-3 head.");
  }
  // What is not stated is as in the classes of transformers that the layer is made of.
  if (!fields.has("head_dim") && kind == "qwen3") layer["head_dim"] = 128u;
  if (!fields.has("rms_norm_eps")) layer["rms_norm_eps"] = 1e-6;
  if (!fields.has("max_position_embeddings")) layer["max_position_embeddings"] = kind == "qwen3" ? 32768u : 2048u;
  return layer;
}

void refuse_windows(const JsonFields& layer) {
  const bool has_types = layer.has("layer_types");
  const bool all_full = !has_types || std::ranges::all_of(layer.list("layer_types"),
                                                          [](const json& each) { return each == "full_attention"; });
  if (all_full && (has_types || !layer.boolean_or("use_sliding_window", false))) return;
  throw bad_input(std::string("The field '") + (has_types ? "layer_types" : "use_sliding_window") +
                  "' of config.json gives the EAGLE-3 head a sliding window; only full attention is supported.");
}

std::vector<int64_t> layer_ids(const JsonFields& fields, const char* field) {
  fields.list(field);  // no single number
  const std::vector<uint32_t> ids = fields.ids(field);
  return {ids.begin(), ids.end()};
}

EagleConfig read_hf_eagle(std::string_view config_json) {
  const json root = parse_config_json(config_json, "config.json");
  const JsonFields fields(root, "config.json");
  if (!is_eagle_config(fields)) {
    throw bad_input("This is a model of the class '" + printable(eagle_class(fields)) +
                    "', not an EAGLE-3 head; LlamaForCausalLMEagle3, or speculators' algorithm eagle3, is expected.");
  }
  const bool is_speculators = fields.has("transformer_layer_config");
  EagleConfig config;
  config.dialect = is_speculators ? "speculators (vLLM)" : "EAGLE";
  const json object = complete_layer(layer_object(root, fields), is_speculators);
  const JsonFields layer(object, is_speculators ? "transformer_layer_config of config.json" : "config.json");
  config.layer.architecture = eagle_architecture;
  config.layer.rope_theta = 10000;  // as the authors' code has it where a file says nothing
  read_hf_transformer(layer, config.layer);
  refuse_windows(layer);
  config.layer.vocab = layer.u32("vocab_size");
  config.target_hidden = fields.u32_or("target_hidden_size", config.layer.hidden);
  config.norm_before_residual = fields.boolean_or("norm_before_residual", false);
  config.norm_before_fc = fields.boolean_or("norm_before_fc", false);
  config.fc_norm = fields.boolean_or("fc_norm", false);
  config.norm_output = fields.boolean_or("norm_output", false);
  config.draft_vocab_size = fields.u32_or("draft_vocab_size", 0);
  constexpr const char* ids = "eagle_aux_hidden_state_layer_ids";
  const json* inner = fields.object("eagle_config");
  if (fields.has(ids)) {
    config.aux_layers = outputs_before("field '" + std::string(ids) + "' of config.json", layer_ids(fields, ids));
  } else if (inner != nullptr && inner->is_object() && inner->contains(ids)) {
    // As NVIDIA's tools export heads, where the ids are those of outputs.
    std::vector<int64_t> inputs = layer_ids(JsonFields(*inner, "eagle_config of config.json"), ids);
    for (int64_t& id : inputs) ++id;
    config.aux_layers = outputs_before("field '" + std::string(ids) + "' of eagle_config, plus one,", inputs);
  }
  return config;
}

/// Ours and folders' names beside those of a layer, without ".weight".
struct EagleName {
  std::string_view ours, gguf, hugging_face;
};
constexpr std::array eagle_names = std::to_array<EagleName>({
    {"fc", "fc", "fc"},
    {"input_norm", "enc.output_norm", "input_norm"},
    {"output_norm", "output_norm", "norm"},
    {"output", "output", "lm_head"},
    {"token_embd", "token_embd", "embed_tokens"},
});
constexpr std::string_view authors_layer = "midlayer.", speculators_layer = "layers.0.", fc_norms = "fc_norm.";

/// "midlayer.self_attn.q_proj.weight" and "layers.0.self_attn.q_proj.weight" -> "blk.0.attn_q"
std::string eagle_name_from_folder(std::string_view stored) {
  constexpr std::string_view model = "model.";
  const std::string plain = without_wrappers(stored);
  std::string_view name = plain;
  if (name.starts_with(model)) name.remove_prefix(model.size());
  for (const EagleName& each : eagle_names) {
    if (name == std::string(each.hugging_face) + std::string(eagle_weight)) return std::string(each.ours);
  }
  if (name.starts_with(fc_norms) && name.ends_with(eagle_weight)) {
    return std::string(name.substr(0, name.size() - eagle_weight.size()));
  }
  for (const std::string_view prefix : {authors_layer, speculators_layer}) {
    if (!name.starts_with(prefix)) continue;
    const std::string rest(name.substr(prefix.size()));
    if (rest == "hidden_norm.weight") return "hidden_norm";
    const std::string ours = canonical_name_from_hugging_face("model.layers.0." + rest);
    return ours.starts_with(eagle_layer) ? ours : std::string(stored);
  }
  return std::string(name);
}

bool is_left_out(std::string_view name) {
  return name == "d2t" || name == "t2d" || name == "rope_freqs" ||               // read into the config; d2t's inverse
         name == "verifier_norm.weight" || name == "verifier_lm_head.weight" ||  // the target's, kept by speculators
         name.ends_with("rotary_emb.inv_freq");
}

}  // namespace

std::vector<uint32_t> EagleConfig::aux_layers_of(uint32_t target_layers) const {
  if (!aux_layers.empty()) return aux_layers;
  constexpr uint32_t fewest = 7;  // below, the three are not apart
  if (target_layers < fewest) {
    throw bad_input("The EAGLE-3 head does not say which layers of its model it reads, and of a model of " +
                    std::to_string(target_layers) + " layers there is no usual choice; models of " +
                    std::to_string(fewest) + " and more have one.");
  }
  return {1, target_layers / 2 - 1, target_layers - 4};
}

struct EagleFile::State {
  fs::path path;
  TensorFile file;
  EagleConfig config;
  TokenizerSource tokenizer;
  bool in_folder = false;
  std::string_view layer_prefix = speculators_layer;  // of a folder

  void open_gguf();
  void open_folder(const fs::path& folder);
  void read_draft_vocabulary();
  std::string shown(std::string_view ours) const;
};

void EagleFile::State::open_gguf() {
  GgufFile gguf = GgufFile::open(path);
  refuse_gguf_that_is_no_model(gguf);
  config = read_gguf_eagle(gguf);
  tokenizer = read_gguf_tokenizer(gguf, config.layer.vocab);
  file = TensorFile(std::move(gguf), eagle_name_from_gguf);
}

void EagleFile::State::open_folder(const fs::path& folder) {
  const std::string config_json = read_config_json(folder);
  config = read_hf_eagle(config_json);
  in_folder = true;
  const HfQuantization quantization = read_hf_quantization(config_json, folder);
  tokenizer = read_hf_tokenizer(folder);
  file = TensorFile(SafetensorsFolder::open(folder), quantization, eagle_name_from_folder, FolderNames());
  for (const TensorView& tensor : file.tensors()) {
    if (without_wrappers(tensor.shown_name()).find(authors_layer) != std::string::npos) layer_prefix = authors_layer;
  }
  config.layer.has_qk_norm = file.find("blk.0.attn_q_norm") != nullptr || file.find("blk.0.attn_k_norm") != nullptr;
}

void EagleFile::State::read_draft_vocabulary() {
  const uint32_t stated = config.draft_vocab_size;
  if (const TensorView* d2t = file.find("d2t")) {
    const DraftMap elements = in_folder ? DraftMap::offsets : DraftMap::ids;
    config.draft_token_ids = draft_token_ids_of(*d2t, elements, config.layer.vocab);
  } else if (file.find("t2d") != nullptr || (stated != 0 && stated != config.layer.vocab)) {
    throw bad_input("The EAGLE-3 head drafts a part of the vocabulary, " + std::to_string(stated) + " of " +
                    std::to_string(config.layer.vocab) + " tokens, but 'd2t', which names them, is missing.");
  }
  if (stated != 0 && stated != config.drafted_tokens()) {
    throw bad_input("The EAGLE-3 head says that it drafts " + std::to_string(stated) +
                    " tokens (draft_vocab_size), but 'd2t' names " + std::to_string(config.drafted_tokens()) +
                    "; it must be the same number.");
  }
}

/// For messages.
std::string EagleFile::State::shown(std::string_view ours) const {
  for (const EagleName& each : eagle_names) {
    if (each.ours == ours) return std::string(in_folder ? each.hugging_face : each.gguf) + std::string(eagle_weight);
  }
  if (!in_folder)
    return ours == "hidden_norm" ? "blk.0.attn_norm_2.weight" : std::string(ours) + std::string(eagle_weight);
  if (ours == "hidden_norm") return std::string(layer_prefix) + "hidden_norm.weight";
  if (ours.starts_with(fc_norms)) return std::string(ours) + std::string(eagle_weight);
  constexpr std::string_view theirs = "model.layers.0.";
  const std::string name = hugging_face_name(ours, {});
  return name.starts_with(theirs) ? std::string(layer_prefix) + name.substr(theirs.size()) : name;
}

EagleFile::EagleFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
EagleFile::EagleFile(EagleFile&&) noexcept = default;
EagleFile& EagleFile::operator=(EagleFile&&) noexcept = default;
EagleFile::~EagleFile() = default;

EagleFile EagleFile::open(const fs::path& path) {
  return with_context(canopy::shown(path), [&] {
    EagleFile head(std::make_unique<State>());
    State& state = *head.state_;
    open_files(path, state, state.config.layer);
    state.read_draft_vocabulary();
    head.validate();
    state.config.layer.parameters = 0;
    for (const RequiredTensor& each : head.required()) state.config.layer.parameters += each.rows * each.cols;
    state.config.layer.quantization = to_string(head.find("fc")->type);
    return head;
  });
}

bool EagleFile::is_eagle(const fs::path& given) noexcept {
  return says_it_is(given, is_eagle_config,
                    [](std::string_view architecture) { return architecture == eagle_architecture; });
}

const fs::path& EagleFile::path() const {
  return state_->path;
}
const EagleConfig& EagleFile::config() const {
  return state_->config;
}
const TokenizerSource& EagleFile::tokenizer() const {
  return state_->tokenizer;
}
std::span<const TensorView> EagleFile::tensors() const {
  return state_->file.tensors();
}
const TensorView* EagleFile::find(std::string_view name) const {
  return state_->file.find(name);
}
void EagleFile::check_unchanged() const {
  state_->file.check_unchanged();
}

LayerSpec EagleFile::layer_spec() const {
  const ModelConfig& layer = config().layer;
  return {.qk_norm = layer.has_qk_norm, .rope = layer.rope_layout};
}

const TensorView& EagleFile::require(std::string_view name, uint64_t rows, uint64_t cols) const {
  if (find(name) == nullptr) {
    throw bad_input("The tensor " + quoted_name(state_->shown(name)) +
                    " of the EAGLE-3 head is missing; its shape should be " +
                    (rows == 1 ? "[" : "[" + std::to_string(rows) + ", ") + std::to_string(cols) + "].");
  }
  return state_->file.require(name, rows, cols);
}

std::vector<RequiredTensor> EagleFile::required() const {
  const EagleConfig& c = config();
  const uint64_t hidden = c.layer.hidden;
  std::vector<RequiredTensor> wanted = {
      {"fc", hidden, c.feature_width()}, {"hidden_norm", 1, hidden}, {"output_norm", 1, hidden}};
  if (c.norm_before_fc) wanted.push_back({"input_norm", 1, c.feature_width()});
  for (uint32_t i = 0; c.fc_norm && i < c.taps(); ++i) {
    wanted.push_back({std::string(fc_norms) + std::to_string(i), 1, c.target_hidden});
  }
  // A head of another width than its target's, or over a part of the vocabulary, cannot borrow these.
  const bool is_as_wide = c.target_hidden == c.layer.hidden;
  if (has_own_embedding() || !is_as_wide) wanted.push_back({"token_embd", c.layer.vocab, hidden});
  if (has_own_output() || !is_as_wide || !c.draft_token_ids.empty()) {
    wanted.push_back({"output", c.drafted_tokens(), hidden});
  }
  const LayerSpec spec = layer_spec();
  const size_t first = wanted.size();
  append_layer_tensors(c.layer, {&spec, 1}, wanted);
  for (RequiredTensor& tensor : std::span(wanted).subspan(first)) {
    // They read the token's half and the state's.
    if (tensor.name == "blk.0.attn_q" || tensor.name == "blk.0.attn_k" || tensor.name == "blk.0.attn_v")
      tensor.cols *= 2;
  }
  return wanted;
}

void EagleFile::validate() const {
  const EagleConfig& c = config();
  validate_transformer(c.layer);
  if (c.layer.layers != 1) {
    throw bad_input("The EAGLE-3 head has " + std::to_string(c.layer.layers) + " layers; one is supported.");
  }
  constexpr uint32_t most = 1u << 17, most_tokens = 1u << 22;
  if (c.target_hidden == 0 || c.target_hidden > most) {
    throw bad_input("The EAGLE-3 head says that its target's hidden size is " + std::to_string(c.target_hidden) +
                    " (target_hidden_size); 1 to " + std::to_string(most) + " is allowed.");
  }
  if (c.layer.vocab == 0 || c.layer.vocab > most_tokens) {
    throw bad_input("The EAGLE-3 head's vocabulary size is " + std::to_string(c.layer.vocab) + " (vocab_size); 1 to " +
                    std::to_string(most_tokens) + " is allowed.");
  }
  if (c.norm_before_fc && c.fc_norm) {
    throw bad_input(
        "The EAGLE-3 head norms its feature twice, as a whole ('norm_before_fc') and in parts ('fc_norm'); "
        "one of both is supported.");
  }
  const std::vector<RequiredTensor> wanted = required();
  std::set<std::string_view> known;
  for (const RequiredTensor& tensor : wanted) {
    require(tensor.name, tensor.rows, tensor.cols);
    known.insert(tensor.name);
  }
  state_->file.require_all(wanted);
  for (const TensorView& tensor : tensors()) {
    if (known.contains(tensor.name) || is_left_out(tensor.name)) continue;
    throw bad_input("The tensor " + quoted_name(tensor.shown_name()) +
                    " has no place in an EAGLE-3 head as its configuration describes it; leaving it out would change "
                    "what it drafts.");
  }
}

std::vector<std::string> check_pair(const ModelFile& target, const EagleFile& head) {
  const ModelConfig& theirs = target.config();
  const EagleConfig& own = head.config();
  const auto refuse = [&](const std::string& reason) {
    throw bad_input("The EAGLE-3 head " + quoted_name(own.layer.name) + " does not fit the model " +
                    quoted_name(theirs.name) + ": " + reason);
  };
  if (own.target_hidden != theirs.hidden) {
    refuse("it reads states of " + std::to_string(own.target_hidden) + " elements, the model's hidden size is " +
           std::to_string(theirs.hidden) + ".");
  }
  if (own.layer.vocab != theirs.vocab) {
    refuse("it was made for a vocabulary of " + std::to_string(own.layer.vocab) + " tokens; the model has " +
           std::to_string(theirs.vocab) + ".");
  }
  for (const uint32_t layer : own.aux_layers_of(theirs.layers)) {
    if (layer < theirs.layers) continue;
    refuse("it reads the input of layer " + std::to_string(layer + 1) + "; the model has " +
           std::to_string(theirs.layers) + " layers.");
  }
  std::vector<std::string> notes;
  if (auto difference = tokenizer_difference(target.tokenizer(), head.tokenizer())) {
    notes.push_back(*std::move(difference));
  }
  return notes;
}

}  // namespace canopy
