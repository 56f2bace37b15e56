#include "engine/format/mtp_file.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/architecture.h"
#include "engine/format/config_gguf.h"
#include "engine/format/config_hf.h"
#include "engine/format/drafter_file.h"
#include "engine/format/json_text.h"
#include "engine/format/tensor_names.h"

namespace canopy {

namespace fs = std::filesystem;

namespace {

/// What a head has beside its layer: our name, GGUF's behind the block, and that of folders, behind "mtp." or behind
/// "model.layers.N.", where the head stands as one more layer.
struct HeadName {
  std::string_view ours, gguf, in_part, in_layer;
};
constexpr std::array head_names = std::to_array<HeadName>({
    {"fc", "nextn.eh_proj", "fc", "eh_proj"},
    {"embedding_norm", "nextn.enorm", "pre_fc_norm_embedding", "enorm"},
    {"hidden_norm", "nextn.hnorm", "pre_fc_norm_hidden", "hnorm"},
    {"output_norm", "nextn.shared_head_norm", "norm", "shared_head.norm"},
    {"token_embd", "nextn.embed_tokens", "embed_tokens", "embed_tokens"},
    {"output", "nextn.shared_head_head", "shared_head.head", "shared_head.head"},
});
constexpr std::string_view folder_prefix = "mtp.", our_layer = "blk.0.", head_weight_ending = ".weight";
constexpr std::string_view kKnownHeads = "qwen35, qwen35moe and glm4moe";

std::string block_name(uint32_t layer) {
  return "blk." + std::to_string(layer) + ".";
}

/// "model.layers.46." of layer 46: what stands before the names of a head that is one more layer.
std::string layer_prefix(uint32_t layer) {
  return "model.layers." + std::to_string(layer) + ".";
}

/// "mtp.layers.0.mlp.up_proj.weight" -> "blk.N.ffn_up", "mtp.fc.weight" or "model.layers.N.eh_proj.weight" ->
/// "blk.N.nextn.eh_proj": as GGUF has them.
std::string name_from_folder(std::string_view name, uint32_t layer) {
  const std::string plain = without_wrappers(name), block = block_name(layer), prefix = layer_prefix(layer);
  const bool in_part = plain.starts_with(folder_prefix);
  if (!in_part && !plain.starts_with(prefix)) return canonical_name_from_hugging_face(name);
  const std::string_view rest = std::string_view(plain).substr(in_part ? folder_prefix.size() : prefix.size());
  for (const HeadName& each : head_names) {
    const std::string_view theirs = in_part ? each.in_part : each.in_layer;
    if (rest == std::string(theirs) + std::string(head_weight_ending)) return block + std::string(each.gguf);
  }
  if (!in_part) return canonical_name_from_hugging_face(name);
  const std::string in_layer = canonical_name_from_hugging_face("model." + std::string(rest));
  return in_layer.starts_with(our_layer) ? block + in_layer.substr(our_layer.size()) : std::string(name);
}

/// The model's configuration as that of the head's one layer, which is one of attention whatever the others are.
ModelConfig config_of_head(const ModelConfig& model) {
  ModelConfig config = model;
  config.layers = 1;
  config.unread_layers = 0;
  config.recurrent.clear();
  config.has_experts.assign(model.layers_with_experts() > 0 ? 1 : 0, true);
  config.rotates.clear();
  config.turns_locally.clear();
  config.layer_ffn.clear();
  config.layer_heads.clear();
  config.layer_kv_heads.clear();
  config.windows.clear();
  return config;
}

}  // namespace

struct MtpFile::State {
  fs::path path;
  TensorFile file;
  ModelConfig config;  // of the model, then of the head
  uint32_t model_layers = 0;
  bool in_folder = false, is_layer = false;  // is_layer: in a folder it stands as one more layer
  TokenizerSource tokenizer;

  void open_gguf();
  void open_folder(const fs::path& folder);
  void split();
  std::string block() const { return block_name(model_layers); }
  std::string name_in_file(std::string_view ours) const;
  std::string shown(std::string_view ours) const;
};

void MtpFile::State::open_gguf() {
  GgufFile gguf = GgufFile::open(path);
  config = read_gguf_config(gguf);
  if (!is_known(config.architecture) || config.unread_layers != 1) {
    throw bad_input("The file has " + std::to_string(config.unread_layers) + " layers that predict further tokens ('" +
                    config.architecture + ".nextn_predict_layers'); one, of the architectures " +
                    std::string(kKnownHeads) + ", is supported.");
  }
  model_layers = config.layers;
  tokenizer = read_gguf_tokenizer(gguf, config.vocab);
  file = TensorFile(std::move(gguf), [](std::string_view name) { return canonical_name_from_gguf(name); });
  split();
}

void MtpFile::State::open_folder(const fs::path& folder) {
  const std::string config_json = read_config_json(folder);
  config = read_hf_config(config_json, {});
  if (!is_known(config.architecture)) {
    throw bad_input("A model of the architecture " + config.architecture +
                    " has no head that predicts further tokens; those of " + std::string(kKnownHeads) +
                    " are supported.");
  }
  if (config.unread_layers > 1) {
    throw bad_input("The model has " + std::to_string(config.unread_layers) +
                    " layers that predict further tokens ('num_nextn_predict_layers' of config.json); one is "
                    "supported.");
  }
  model_layers = config.layers;
  in_folder = true;
  is_layer = architecture_by_name(config.architecture).has_dense_start;
  const HfQuantization quantization = read_hf_quantization(config_json, folder);
  tokenizer = read_hf_tokenizer(folder);
  file = TensorFile(SafetensorsFolder::open(folder), quantization,
                    [this](std::string_view name) { return name_from_folder(name, model_layers); },
                    {.recurrent = config.recurrent});
  split();
}

/// What the file has as one matrix, of the head alone.
void MtpFile::State::split() {
  const std::string ours = block();
  const auto has = [&](const std::string& name) { return name.starts_with(ours) && file.find(name) != nullptr; };
  ModelConfig up_to_head = config_of_head(config);
  up_to_head.layers = model_layers + 1;
  if (!up_to_head.has_experts.empty()) {
    up_to_head.has_experts.assign(up_to_head.layers, false);
    up_to_head.has_experts.back() = true;
  }
  file.split(fused_tensors(up_to_head, has));
  file.split(stacked_experts(up_to_head, !in_folder, has));
}

/// "blk.0.attn_q" -> "blk.N.attn_q", "fc" -> "blk.N.nextn.eh_proj". A GGUF file without a last norm of the head has the
/// model's in its place.
std::string MtpFile::State::name_in_file(std::string_view ours) const {
  if (ours.starts_with(our_layer)) return block() + std::string(ours.substr(our_layer.size()));
  for (const HeadName& each : head_names) {
    if (each.ours != ours) continue;
    const std::string own = block() + std::string(each.gguf);
    return ours == "output_norm" && !in_folder && file.find(own) == nullptr ? std::string(ours) : own;
  }
  return std::string(ours);
}

/// For messages.
std::string MtpFile::State::shown(std::string_view ours) const {
  if (!in_folder) return name_in_file(ours);
  for (const HeadName& each : head_names) {
    if (each.ours != ours) continue;
    return (is_layer ? layer_prefix(model_layers) + std::string(each.in_layer)
                     : std::string(folder_prefix) + std::string(each.in_part)) +
           std::string(head_weight_ending);
  }
  if (is_layer) return hugging_face_name(name_in_file(ours), {});
  const std::string name = hugging_face_name(ours, {});
  constexpr std::string_view model = "model.";
  return name.starts_with(model) ? std::string(folder_prefix) + name.substr(model.size()) : name;
}

bool MtpFile::is_known(std::string_view architecture) {
  return architecture == "qwen35" || architecture == "qwen35moe" || architecture == "glm4moe";
}

MtpFile::MtpFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
MtpFile::MtpFile(MtpFile&&) noexcept = default;
MtpFile& MtpFile::operator=(MtpFile&&) noexcept = default;
MtpFile::~MtpFile() = default;

MtpFile MtpFile::open(const fs::path& path) {
  return with_context(shown(path), [&] {
    MtpFile head(std::make_unique<State>());
    State& state = *head.state_;
    open_files(path, state, state.config);
    state.config = config_of_head(state.config);
    head.validate_tensors();
    state.config.parameters = 0;
    for (const TensorView& tensor : head.tensors()) state.config.parameters += tensor.elements();
    state.config.quantization = to_string(head.find("fc")->type);
    return head;
  });
}

bool MtpFile::is_alone(const fs::path& given) noexcept {
  try {
    const fs::path path = resolve_model_path(given);
    if (hugging_face_folder(path)) return false;
    const GgufFile file = GgufFile::open(path);
    const std::string_view architecture = file.text("general.architecture");
    if (!is_known(architecture)) return false;
    if (file.u32_if(std::string(architecture) + ".nextn_predict_layers").value_or(0) == 0) return false;
    const std::string first = block_name(0);
    return std::ranges::none_of(file.tensors(),
                                [&](const TensorView& tensor) { return tensor.name.starts_with(first); });
  } catch (const std::exception&) {
    return false;
  }
}

bool MtpFile::is_in(const ModelFile& model) {
  const ModelConfig& config = model.config();
  if (!is_known(config.architecture)) return false;
  const std::string in_layer = layer_prefix(config.layers) + "eh_proj.weight";
  return model.find(block_name(config.layers) + "nextn.eh_proj") != nullptr || model.find("mtp.fc.weight") != nullptr ||
         model.find(in_layer) != nullptr;
}

bool MtpFile::is_meant(const fs::path& path, const ModelFile& target) {
  if (is_alone(path)) return true;
  if (!is_known(target.config().architecture)) return false;
  const ModelFile model = ModelFile::open(path);
  const ModelConfig &own = model.config(), &theirs = target.config();
  return is_in(model) && own.architecture == theirs.architecture && own.layers == theirs.layers &&
         own.hidden == theirs.hidden;
}

const fs::path& MtpFile::path() const {
  return state_->path;
}
const ModelConfig& MtpFile::config() const {
  return state_->config;
}
uint32_t MtpFile::model_layers() const {
  return state_->model_layers;
}
const TokenizerSource& MtpFile::tokenizer() const {
  return state_->tokenizer;
}
const TensorView* MtpFile::find(std::string_view name) const {
  return state_->file.find(state_->name_in_file(name));
}

const TensorView& MtpFile::require(std::string_view name, uint64_t rows, uint64_t cols) const {
  if (find(name) == nullptr) {
    throw bad_input("The tensor " + quoted_name(state_->shown(name)) +
                    " of the head that predicts further tokens is missing; its shape should be " +
                    (rows == 1 ? "[" : "[" + std::to_string(rows) + ", ") + std::to_string(cols) + "].");
  }
  return state_->file.require(state_->name_in_file(name), rows, cols);
}

std::vector<TensorView> MtpFile::tensors() const {
  const std::string block = state_->block();
  std::vector<TensorView> result;
  for (const TensorView& tensor : state_->file.tensors()) {
    if (tensor.name.starts_with(block)) result.push_back(tensor);
  }
  return result;
}

void MtpFile::check_unchanged() const {
  state_->file.check_unchanged();
}

/// Every tensor of the head is there with its shape and a type that can be decoded, and the head has no other: leaving
/// it out would change what it drafts.
void MtpFile::validate_tensors() const {
  const ModelConfig& c = config();
  std::vector<RequiredTensor> wanted = {{"fc", c.hidden, 2 * uint64_t{c.hidden}},
                                        {"embedding_norm", 1, c.hidden},
                                        {"hidden_norm", 1, c.hidden},
                                        {"output_norm", 1, c.hidden}};
  if (has_own_embedding()) wanted.push_back({"token_embd", c.vocab, c.hidden});
  if (has_own_output()) wanted.push_back({"output", c.vocab, c.hidden});
  append_layer_tensors(c, layer_specs(c), wanted);
  std::set<std::string> known;
  for (RequiredTensor& tensor : wanted) {
    require(tensor.name, tensor.rows, tensor.cols);
    tensor.name = state_->name_in_file(tensor.name);
    known.insert(tensor.name);
  }
  state_->file.require_all(wanted);
  const std::string block = state_->block();
  for (const TensorView& tensor : state_->file.tensors()) {
    const bool of_head = tensor.name.starts_with(block) || tensor.name.starts_with(folder_prefix) ||
                         (state_->is_layer && tensor.name.starts_with(layer_prefix(state_->model_layers)));
    if (!of_head || known.contains(tensor.name)) continue;
    throw bad_input("The tensor " + quoted_name(tensor.shown_name()) +
                    " has no place in the head that predicts further tokens; leaving it out would change what it "
                    "drafts.");
  }
}

std::vector<std::string> check_pair(const ModelFile& target, const MtpFile& head) {
  const ModelConfig &theirs = target.config(), &own = head.config();
  const auto compare = [](const std::string& what, const std::string& has, const std::string& wanted) {
    if (has == wanted) return;
    throw bad_input("The head predicts further tokens of another model: its " + what + " is " + has + ", the model's " +
                    wanted + ".");
  };
  const auto number = [](uint32_t value) { return std::to_string(value); };
  compare("architecture", own.architecture, theirs.architecture);
  compare("number of layers", number(head.model_layers()), number(theirs.layers));
  compare("hidden size", number(own.hidden), number(theirs.hidden));
  compare("vocabulary", number(own.vocab), number(theirs.vocab));
  std::vector<std::string> notes;
  if (auto difference = tokenizer_difference(target.tokenizer(), head.tokenizer())) {
    notes.push_back(*std::move(difference));
  }
  return notes;
}

}  // namespace canopy
