#include "engine/format/assistant_file.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/config_gguf.h"
#include "engine/format/config_hf.h"
#include "engine/format/drafter_file.h"
#include "engine/format/gemma4.h"
#include "engine/format/json_text.h"
#include "engine/format/tensor_names.h"

namespace canopy {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;

constexpr std::string_view assistant_architecture = "gemma4-assistant", centroids = "masked_embedding.";

/// Ours, and what files have behind "nextn." (GGUF) or as they are.
constexpr std::array projections = std::to_array<std::string_view>({"pre_projection", "post_projection"});

/// What both formats leave to be said, and to be refused, of layers read as those of a model that has keys.
void finish_layers(const std::string& shared_field, uint32_t shared, AssistantConfig& config) {
  ModelConfig& layers = config.layers;
  if (shared != layers.layers) {
    throw bad_input("The " + shared_field + " is " + std::to_string(shared) + ", and the assistant has " +
                    std::to_string(layers.layers) +
                    " layers; none of them may have keys and values of its own: both must be the same.");
  }
  if (layers.layer_inputs != 0) {
    throw bad_input("The assistant gives its layers inputs of a width of " + std::to_string(layers.layer_inputs) +
                    " for each token (hidden_size_per_layer_input); only 0 is supported.");
  }
  if (layers.experts != 0) {
    throw bad_input("The assistant has " + std::to_string(layers.experts) +
                    " experts in its layers; only layers without are supported.");
  }
  for (const uint32_t window : layers.windows) {
    if (window != 1) continue;
    throw bad_input("The window of the assistant's layers (sliding_window) is 1; it must be at least 2.");
  }
  layers.values_of_keys.clear();  // there are neither
  layers.shared_kv_layers = layers.layers;
}

// GGUF.

AssistantConfig read_gguf_assistant(const GgufFile& file) {
  const auto key = [](const char* name) { return std::string(assistant_architecture) + "." + name; };
  const std::string_view architecture = file.text("general.architecture");
  if (architecture != assistant_architecture) {
    throw bad_input("This is a model of the architecture '" + printable(architecture) +
                    "', not an assistant of Gemma 4; gemma4-assistant is expected.");
  }
  AssistantConfig config;
  config.dialect = "gemma4-assistant (llama.cpp)";
  ModelConfig& layers = config.layers;
  layers.architecture = "gemma4";
  layers.has_qk_norm = layers.tied_head = true;
  read_gguf_transformer(file, assistant_architecture, layers, true);
  read_gguf_gemma4(file, assistant_architecture, layers);
  const auto table = std::ranges::find(file.tensors(), "token_embd.weight", &TensorView::name);
  if (table == file.tensors().end()) throw bad_input("The tensor 'token_embd.weight' of the assistant is missing.");
  layers.vocab = static_cast<uint32_t>(std::min<uint64_t>(table->rows(), UINT32_MAX));
  config.target_hidden = file.u32(key("embedding_length_out"));
  const uint32_t shared = std::exchange(layers.shared_kv_layers, 0);
  validate_config(layers);
  finish_layers("metadata '" + key("attention.shared_kv_layers") + "'", shared, config);
  return config;
}

std::string assistant_name_from_gguf(std::string_view stored) {
  const std::string name = canonical_name_from_gguf(stored, true);
  for (const std::string_view each : projections) {
    if (name == "nextn." + std::string(each)) return std::string(each);
  }
  return name;
}

// Folders.

bool is_assistant_config(const JsonFields& fields) {
  const json* classes = fields.find("architectures");
  if (classes == nullptr || !classes->is_array() || classes->size() != 1 || !classes->front().is_string()) {
    return fields.text_or("model_type", "") == "gemma4_assistant";
  }
  return classes->front() == "Gemma4AssistantForCausalLM";
}

AssistantConfig read_hf_assistant(std::string_view config_json) {
  const json root = parse_config_json(config_json, "config.json");
  const JsonFields fields(root, "config.json");
  if (!is_assistant_config(fields)) {
    throw bad_input("This is not an assistant of Gemma 4; the class Gemma4AssistantForCausalLM is expected.");
  }
  const json* const part = fields.object("text_config");
  if (part == nullptr) {
    throw bad_input("The field 'text_config' of config.json is missing, which describes the assistant's layers.");
  }
  const JsonFields text(*part, "text_config of config.json");
  if (!text.boolean_or("tie_word_embeddings", fields.boolean_or("tie_word_embeddings", true))) {
    throw bad_input(
        "The field 'tie_word_embeddings' of config.json is false; only assistants whose head is their embedding are "
        "supported.");
  }
  AssistantConfig config;
  config.dialect = "Hugging Face";
  config.target_hidden = fields.u32("backbone_hidden_size");
  // The layers are read as those of a model: these have keys, and that theirs are another's is said behind.
  const uint32_t shared = text.u32_or("num_kv_shared_layers", text.u32("num_hidden_layers"));
  json model = *part;
  model["architectures"] = {"Gemma4ForCausalLM"};
  model["num_kv_shared_layers"] = 0u;
  config.layers = read_hf_config(model.dump(), "");
  finish_layers("field 'num_kv_shared_layers' of text_config of config.json", shared, config);
  return config;
}

std::string assistant_name_from_folder(std::string_view stored) {
  const std::string name = canonical_name_from_hugging_face(stored, true);
  for (const std::string_view each : projections) {
    if (name == std::string(each) + ".weight") return std::string(each);
  }
  return name;
}

/// What is in some files and read by nothing. Layers may bring the keys that they were made with.
bool is_unread_by_assistants(std::string_view name) {
  const bool is_of_layer = name.starts_with("blk.");
  return name == "rope_freqs" || name == "output" || name.starts_with(centroids) ||
         name.ends_with("rotary_emb.inv_freq") ||
         (is_of_layer && (name.ends_with(".attn_k") || name.ends_with(".attn_v") || name.ends_with(".attn_k_norm")));
}

}  // namespace

struct AssistantFile::State {
  fs::path path;
  TensorFile file;
  AssistantConfig config;
  TokenizerSource tokenizer;

  void open_gguf();
  void open_folder(const fs::path& folder);
};

void AssistantFile::State::open_gguf() {
  GgufFile gguf = GgufFile::open(path);
  refuse_gguf_that_is_no_model(gguf);
  config = read_gguf_assistant(gguf);
  tokenizer = read_gguf_tokenizer(gguf, config.layers.vocab);
  file = TensorFile(std::move(gguf), assistant_name_from_gguf);
}

void AssistantFile::State::open_folder(const fs::path& folder) {
  const std::string config_json = read_config_json(folder);
  config = read_hf_assistant(config_json);
  const HfQuantization quantization = read_hf_quantization(config_json, folder);
  tokenizer = read_hf_tokenizer(folder);
  FolderNames names;
  names.has_post_norms = true;
  file = TensorFile(SafetensorsFolder::open(folder), quantization, assistant_name_from_folder, names);
}

AssistantFile::AssistantFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
AssistantFile::AssistantFile(AssistantFile&&) noexcept = default;
AssistantFile& AssistantFile::operator=(AssistantFile&&) noexcept = default;
AssistantFile::~AssistantFile() = default;

AssistantFile AssistantFile::open(const fs::path& path) {
  return with_context(shown(path), [&] {
    AssistantFile assistant(std::make_unique<State>());
    State& state = *assistant.state_;
    open_files(path, state, state.config.layers);
    for (const TensorView& tensor : state.file.tensors()) {
      state.config.has_centroids |= tensor.name.starts_with(centroids);
    }
    assistant.validate();
    return assistant;
  });
}

bool AssistantFile::is_assistant(const fs::path& given) noexcept {
  return says_it_is(given, is_assistant_config,
                    [](std::string_view architecture) { return architecture == assistant_architecture; });
}

const fs::path& AssistantFile::path() const {
  return state_->path;
}
const AssistantConfig& AssistantFile::config() const {
  return state_->config;
}
const TokenizerSource& AssistantFile::tokenizer() const {
  return state_->tokenizer;
}
std::span<const TensorView> AssistantFile::tensors() const {
  return state_->file.tensors();
}
void AssistantFile::check_unchanged() const {
  state_->file.check_unchanged();
}

const TensorView& AssistantFile::require(std::string_view name, uint64_t rows, uint64_t cols) const {
  if (state_->file.find(name) != nullptr) return state_->file.require(name, rows, cols);
  std::string shown_name = state_->file.shown_name(name);
  for (const std::string_view each : projections) {
    if (name == each) shown_name = (state_->file.gguf() != nullptr ? "nextn." : "") + std::string(name) + ".weight";
  }
  throw bad_input("The tensor " + quoted_name(shown_name) + " of the assistant is missing; its shape should be " +
                  (rows == 1 ? "[" : "[" + std::to_string(rows) + ", ") + std::to_string(cols) + "].");
}

void AssistantFile::validate() const {
  const AssistantConfig& c = config();
  constexpr uint32_t most = 1u << 17;
  if (c.target_hidden == 0 || c.target_hidden > most) {
    throw bad_input("The assistant says that its target's hidden size is " + std::to_string(c.target_hidden) + " (" +
                    (state_->file.gguf() != nullptr ? "embedding_length_out" : "backbone_hidden_size") + "); 1 to " +
                    std::to_string(most) + " is allowed.");
  }
  const uint64_t hidden = c.layers.hidden;
  std::vector<RequiredTensor> wanted = {{"pre_projection", hidden, 2 * uint64_t{c.target_hidden}},
                                        {"post_projection", c.target_hidden, hidden},
                                        {"token_embd", c.layers.vocab, hidden},
                                        {"output_norm", 1, hidden}};
  append_layer_tensors(c.layers, layer_specs(c.layers), wanted);
  std::set<std::string_view> known;
  for (const RequiredTensor& tensor : wanted) {
    require(tensor.name, tensor.rows, tensor.cols);
    known.insert(tensor.name);
  }
  state_->file.require_all(wanted);
  for (const TensorView& tensor : tensors()) {
    if (known.contains(tensor.name) || is_unread_by_assistants(tensor.name)) continue;
    throw bad_input("The tensor " + quoted_name(tensor.shown_name()) +
                    " has no place in an assistant as its configuration describes it; leaving it out would change "
                    "what it drafts.");
  }
}

uint32_t layer_read_by(const ModelConfig& target, const ModelConfig& assistant, uint32_t layer) {
  const bool slides = assistant.turns_locally_in(layer);
  for (uint32_t n = target.layers; n-- > 0;) {
    if (target.has_own_kv(n) && target.turns_locally_in(n) == slides) return n;
  }
  throw bad_input("Layer " + std::to_string(layer) + " of the assistant reads keys of a layer " +
                  (slides ? "with a window" : "that sees the whole text") + ", and the model has none with any.");
}

std::vector<std::string> check_pair(const ModelFile& target, const AssistantFile& assistant) {
  const ModelConfig& theirs = target.config();
  const ModelConfig& own = assistant.config().layers;
  const auto refuse = [&](const std::string& reason) {
    throw bad_input("The assistant " + quoted_name(own.name) + " does not fit the model " + quoted_name(theirs.name) +
                    ": " + reason);
  };
  if (theirs.architecture != own.architecture) {
    refuse("it reads keys and values of models of Gemma 4; this one's architecture is " + theirs.architecture + ".");
  }
  if (assistant.config().target_hidden != theirs.hidden) {
    refuse("it reads states of " + std::to_string(assistant.config().target_hidden) +
           " elements, the model's hidden size is " + std::to_string(theirs.hidden) + ".");
  }
  if (own.vocab != theirs.vocab) {
    refuse("it was made for a vocabulary of " + std::to_string(own.vocab) + " tokens; the model has " +
           std::to_string(theirs.vocab) + ".");
  }
  for (uint32_t n = 0; n < own.layers; ++n) {
    const uint32_t read = layer_read_by(theirs, own, n);
    if (own.head_dim_of(n) != theirs.head_dim_of(read) || own.heads_of(n) % theirs.kv_heads_of(read) != 0) {
      refuse("its layer " + std::to_string(n) + " has " + std::to_string(own.heads_of(n)) + " heads of " +
             std::to_string(own.head_dim_of(n)) + " elements, and reads keys of " +
             std::to_string(theirs.kv_heads_of(read)) + " heads of " + std::to_string(theirs.head_dim_of(read)) +
             " in layer " + std::to_string(read) + "; heads must be as long, and a multiple in number.");
    }
  }
  std::vector<std::string> notes;
  if (own.rope_theta != theirs.rope_theta || own.local_rope_theta != theirs.local_rope_theta ||
      own.rope_scaling.turned_pairs != theirs.rope_scaling.turned_pairs) {
    notes.emplace_back(
        "The assistant turns its heads by other angles than the model, whose keys it reads: its drafts may fail.");
  }
  if (assistant.config().has_centroids) {
    notes.emplace_back(
        "The assistant sorts its tokens by clusters ('masked_embedding'), which is left out: it drafts from its whole "
        "vocabulary.");
  }
  if (auto difference = tokenizer_difference(target.tokenizer(), assistant.tokenizer())) {
    notes.push_back(*std::move(difference));
  }
  return notes;
}

}  // namespace canopy
