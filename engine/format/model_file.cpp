#include "engine/format/model_file.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/format/architecture.h"
#include "engine/format/config_gguf.h"
#include "engine/format/config_hf.h"
#include "engine/format/hybrids.h"
#include "engine/format/tensor_names.h"

namespace canopy {
namespace {

enum class Role { ends, file_ends, control, sentence_end, harmony, gemma };

constexpr int32_t control_type = 3;

// The special characters are U+FF5C and U+2581, as DeepSeek spells them.
const std::unordered_map<std::string_view, Role>& roles() {
  static const std::unordered_map<std::string_view, Role> table = [] {
    std::unordered_map<std::string_view, Role> made;
    const auto put = [&](Role role, std::initializer_list<std::string_view> spellings) {
      for (const std::string_view spelling : spellings) made.emplace(spelling, role);
    };
    put(Role::ends, {"<|im_end|>", "<|endoftext|>",    "<|end_of_text|>", "<|eot_id|>",
                     "<|eom_id|>", "<|end|>",          "<|return|>",      "<|call|>",
                     "<|calls|>",  "<|flush|>",        "<end_of_turn>",   "<end_of_utterance>",
                     "<turn|>",    "<|tool_response>", "<eos>",           "[EOS]",
                     "<EOT>",      "_<EOT>",           "[EOT]",           "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
                     "[e~["});
    // A model that fills in the middle goes on to another file, or to nothing.
    put(Role::file_ends, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>",
                          "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>"});
    put(Role::control, {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>",    "<\uFF5Cfim\u2581begin\uFF5C>",
                        "<PRE>",          "\u2581<PRE>",  "<|code_prefix|>", "<|prefix|>",
                        "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>",    "<\uFF5Cfim\u2581hole\uFF5C>",
                        "<SUF>",          "\u2581<SUF>",  "<|code_suffix|>", "<|suffix|>",
                        "<|fim_middle|>", "<fim-middle>", "<fim_middle>",    "<\uFF5Cfim\u2581end\uFF5C>",
                        "<MID>",          "\u2581<MID>",  "<|code_middle|>", "<|middle|>"});
    put(Role::sentence_end, {"</s>"});
    put(Role::harmony, {"<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"});
    put(Role::gemma, {"<|channel>", "<channel|>", "<|think|>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>",
                      "<|\"|>", "<tool_response|>"});
    return made;
  }();
  return table;
}

}  // namespace

NamedTokens named_tokens(std::span<const std::string_view> tokens, std::span<const int32_t> types) {
  NamedTokens named;
  std::vector<uint32_t> sentence_ends, harmony, gemma;
  bool has_turn = false, has_return = false, has_call = false, has_flush = false, has_tool_response = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto found = roles().find(tokens[i]);
    if (found == roles().end()) continue;
    const auto id = static_cast<uint32_t>(i);
    switch (found->second) {
      case Role::file_ends: named.file_ends.push_back(id); [[fallthrough]];
      case Role::ends: named.ends.push_back(id); break;
      case Role::control: named.controls.push_back(id); break;
      // The end of a text where the file says so; a tag of HTML in Gemma's vocabularies.
      case Role::sentence_end:
        if (i < types.size() && types[i] == control_type) sentence_ends.push_back(id);
        break;
      case Role::harmony: harmony.push_back(id); break;
      case Role::gemma: gemma.push_back(id); break;
    }
    has_turn |= tokens[i] == "<turn|>";
    has_return |= tokens[i] == "<|return|>";
    has_call |= tokens[i] == "<|call|>" || tokens[i] == "<|calls|>";
    has_flush |= tokens[i] == "<|flush|>";
    has_tool_response |= tokens[i] == "<|tool_response>";
  }
  named.controls.insert(named.controls.end(), named.ends.begin(), named.ends.end());
  if (has_call && (has_return || has_flush)) {
    named.controls.insert(named.controls.end(), harmony.begin(), harmony.end());
    std::erase_if(named.ends, [&](uint32_t id) {
      if (tokens[id] != "<|end|>") return false;
      named.message_ends.push_back(id);
      return true;
    });
  }
  // Marks of Gemma 4's thinking and tools. Files that llama.cpp's converter made have them as text, so that its own
  // parser sees them.
  if (has_turn) named.controls.insert(named.controls.end(), gemma.begin(), gemma.end());
  // With "<|tool_response>" it is Gemma's again, whatever its type.
  if (!has_tool_response) named.ends.insert(named.ends.end(), sentence_ends.begin(), sentence_ends.end());
  std::ranges::sort(named.ends);
  std::ranges::sort(named.controls);
  return named;
}

namespace fs = std::filesystem;

struct ModelFile::State {
  fs::path path;
  TensorFile file;
  ModelConfig config;
  TokenizerSource tokenizer;

  void open_gguf();
  void open_folder(const fs::path& folder);
  void find_joined_matrices();
  std::function<bool(const std::string& name)> has() const {
    return [this](const std::string& name) { return file.find(name) != nullptr; };
  }
};

namespace {

constexpr uint64_t max_generation_config_bytes = 16ull << 20;

/// Tensors that files carry although nothing in the forward pass reads them.
bool is_unread(std::string_view name, const ModelConfig& config) {
  if (is_of_pictures_or_sounds(name)) return true;
  // Layers that predict further tokens.
  if (!config.recurrent.empty() && name.starts_with("mtp.")) return true;
  for (uint32_t n = 0; n < config.unread_layers; ++n) {
    const std::string number = std::to_string(config.layers + n) + ".";
    if (name.starts_with("blk." + number) || name.starts_with("model.layers." + number)) return true;
  }
  // Of layers that read another's keys: some files have what the model was made with.
  for (uint32_t n = config.layers - config.shared_kv_layers; n < config.layers; ++n) {
    const std::string attention = "blk." + std::to_string(n) + ".attn_";
    if (name == attention + "k" || name == attention + "v" || name == attention + "k_norm") return true;
  }
  return name == "rope_freqs" || name == "rope_factors_long" || name == "rope_factors_short" ||  // read into the config
         name == "output" ||  // beside a tied head, as Hugging Face ignores it
         name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn_rot_embd");
}

/// A bias that adds nothing, which tools for GPTQ write beside matrices of models without any.
bool is_zero_bias(const TensorView& tensor) {
  return tensor.name.ends_with(".bias") && tensor.rank == 1 &&
         std::ranges::all_of(tensor.bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

void ModelFile::State::open_gguf() {
  GgufFile gguf = GgufFile::open(path);
  config = read_gguf_config(gguf);
  tokenizer = read_gguf_tokenizer(gguf, config.vocab);
  file = TensorFile(std::move(gguf), [this](std::string_view name) {
    return canonical_name_from_gguf(name, architecture_by_name(config.architecture).is_gemma);
  });
  find_joined_matrices();
  file.split(fused_tensors(config, has()));
  file.split(stacked_experts(config, true, has()));
  if (config.has_latent_attention()) file.separate_latent(config);
}

void ModelFile::State::open_folder(const fs::path& folder) {
  const std::string config_json = read_config_json(folder);
  config =
      read_hf_config(config_json, read_optional_file(folder / "generation_config.json", max_generation_config_bytes));
  const HfQuantization quantization = read_hf_quantization(config_json, folder);
  tokenizer = read_hf_tokenizer(folder);
  const Architecture& architecture = architecture_by_name(config.architecture);
  const FolderNames names = {.has_post_norms = architecture.is_gemma,
                             .has_fused_tensors = architecture.has_fused_tensors,
                             .is_gpt_oss = architecture.is_gpt_oss,
                             .is_granite = architecture.is_granite,
                             .is_nemotron = architecture.is_nemotron,
                             .is_lfm2 = architecture.is_lfm2,
                             .recurrent = config.recurrent};
  file = TensorFile(
      SafetensorsFolder::open(folder), quantization,
      [&](std::string_view name) { return canonical_name_from_hugging_face(name, names.has_post_norms); }, names);
  find_joined_matrices();
  file.split(fused_tensors(config, has()));
  if (architecture.is_gpt_oss || architecture.has_transposed_experts) {
    file.separate_experts(config);
  } else if (architecture.is_granite) {
    file.split(fused_granite_tensors(config));
  } else {
    file.split(stacked_experts(config, false, has()));
  }
  if (config.has_latent_attention()) file.separate_latent(config);
}

/// What recurrences have as one matrix: no field says so, and converters of different times did it differently.
void ModelFile::State::find_joined_matrices() {
  const auto first = std::ranges::find(config.recurrent, true);
  if (first == config.recurrent.end() || config.delta_net.scans) return;
  const std::string layer = "blk." + std::to_string(first - config.recurrent.begin()) + ".";
  config.delta_net.has_joined_inputs = file.find(layer + "ssm_in") != nullptr;
  config.delta_net.has_joined_rates = file.find(layer + "ssm_ba") != nullptr;
}

ModelFile::ModelFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
ModelFile::ModelFile(ModelFile&&) noexcept = default;
ModelFile& ModelFile::operator=(ModelFile&&) noexcept = default;
ModelFile::~ModelFile() = default;

ModelFile ModelFile::open(const fs::path& path) {
  return with_context(shown(path), [&] {
    ModelFile model(std::make_unique<State>());
    open_files(path, *model.state_, model.state_->config);
    model.validate_tensors();
    return model;
  });
}

ModelFile ModelFile::of_random_weights(const ModelConfig& config, const TypeOfTensor& type_of) {
  validate_config(config);
  ModelFile model(std::make_unique<State>());
  State& state = *model.state_;
  state.config = config;
  state.file = TensorFile(RandomTensors(required_tensors(config), type_of));
  state.config.quantization = state.file.main_type();
  state.config.parameters = state.file.elements();
  model.validate_tensors();
  return model;
}

const fs::path& ModelFile::path() const {
  return state_->path;
}
std::vector<fs::path> ModelFile::files() const {
  return state_->file.files();
}
const ModelConfig& ModelFile::config() const {
  return state_->config;
}
const TokenizerSource& ModelFile::tokenizer() const {
  return state_->tokenizer;
}
std::span<const TensorView> ModelFile::tensors() const {
  return state_->file.tensors();
}
const TensorView* ModelFile::find(std::string_view name) const {
  return state_->file.find(name);
}
const TensorView& ModelFile::require(std::string_view name, uint64_t rows, uint64_t cols) const {
  return state_->file.require(name, rows, cols);
}

namespace {

/// A file of a head for further tokens, which says the same of itself as its model's.
void refuse_head_alone(std::span<const TensorView> tensors) {
  const auto is_of_head = [](const TensorView& tensor) { return tensor.name.find(".nextn.") != std::string::npos; };
  const auto is_of_first = [](const TensorView& tensor) { return tensor.name.starts_with("blk.0."); };
  if (std::ranges::none_of(tensors, is_of_head) || std::ranges::any_of(tensors, is_of_first)) return;
  throw bad_input(
      "This is a head that predicts further tokens (MTP) without the layers of its model, which cannot write text by "
      "itself; open it as the drafter of the model it was made for.");
}

}  // namespace

void ModelFile::validate_tensors() const {
  refuse_head_alone(tensors());
  const std::vector<RequiredTensor> wanted = required_tensors(config());
  state_->file.require_all(wanted);
  std::unordered_set<std::string_view> known;
  for (const RequiredTensor& tensor : wanted) known.insert(tensor.name);
  bool has_other_part = false;
  for (const TensorView& tensor : tensors()) {
    has_other_part |= is_of_pictures_or_sounds(tensor.name);
    if (known.contains(tensor.name) || is_unread(tensor.name, config()) || is_zero_bias(tensor)) continue;
    throw bad_input("The tensor " + quoted_name(tensor.shown_name()) + " has no place in the architecture " +
                    config().architecture + "; leaving it out would change what the model writes.");
  }
  if (has_other_part && state_->file.gguf() != nullptr) {
    state_->config.notes.emplace_back(
        "The part of the file that sees pictures or hears sounds is left out: the model is used for text alone.");
  }
}

void ModelFile::check_unchanged() const {
  state_->file.check_unchanged();
}

}  // namespace canopy
