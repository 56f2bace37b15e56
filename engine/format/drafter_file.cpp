#include "engine/format/drafter_file.h"

#include <array>
#include <unordered_set>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/printable.h"
#include "engine/format/config_gguf.h"
#include "engine/format/config_hf.h"
#include "engine/format/draft_vocabulary.h"
#include "engine/format/drafter_config_gguf.h"
#include "engine/format/drafter_config_hf.h"
#include "engine/format/foreign_file.h"
#include "engine/format/open_files.h"

namespace canopy {

namespace fs = std::filesystem;

struct DrafterFile::State {
  fs::path path;
  TensorFile file;
  DrafterConfig config;
  TokenizerSource tokenizer;

  void open_gguf();
  void open_folder(const fs::path& folder);
  void read_draft_vocabulary();
  void read_list_beside();
};

namespace {

/// Whether a tensor belongs to the vocabulary; the target's own is used instead.
bool is_vocabulary(std::string_view name) {
  return name == "token_embd" || name == "output";
}

bool is_harmless(std::string_view name) {
  return is_vocabulary(name) || name == "rope_freqs" ||                          // read into the config
         name == "d2t" || name == "t2d" ||                                       // read into the config; its inverse
         name == "verifier_norm.weight" || name == "verifier_lm_head.weight" ||  // the target's, kept by speculators
         name.ends_with(".rotary_emb.inv_freq") || name == "rotary_emb.inv_freq";
}

/// The kind of drafter that a tensor of this name belongs to; empty where any kind may have it.
std::string_view kind_of_drafter_with(std::string_view name) {
  static constexpr auto marks = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"candidate_selector", "DFlash2"},
      {"selector_", "DFlash2"},
      {"attention_conv", "DFlash2"},
      {"mlp_conv", "DFlash2"},
      {"_conv_base", "DFlash2"},
      {"_conv_proj", "DFlash2"},
      {"markov", "DSpark"},
      {"confidence", "DSpark"},
      {"conf_proj", "DSpark"},
  });
  for (const auto& [mark, kind] : marks) {
    if (name.find(mark) != std::string_view::npos) return kind;
  }
  return {};
}

[[noreturn]] void refuse_tensor(const TensorView& tensor) {
  const std::string_view kind = kind_of_drafter_with(tensor.name);
  const std::string& name = tensor.shown_name();
  if (!kind.empty()) {
    throw bad_input("The tensor " + quoted_name(name) + " belongs to a " + std::string(kind) +
                    " drafter, which is not supported; DFlash drafters are.");
  }
  throw bad_input("The tensor " + quoted_name(name) +
                  " has no place in a DFlash drafter; leaving it out would change what it drafts.");
}

}  // namespace

void DrafterFile::State::open_gguf() {
  GgufFile gguf = GgufFile::open(path);
  refuse_gguf_that_is_no_model(gguf);
  config = read_gguf_drafter_config(gguf);
  tokenizer = read_gguf_tokenizer(gguf, config.vocab != 0 ? config.vocab : UINT32_MAX);
  const auto names = has_upstream_drafter_names(gguf) ? drafter_name_from_gguf : drafter_name_from_fork;
  file = TensorFile(std::move(gguf), names);
}

void DrafterFile::State::open_folder(const fs::path& folder) {
  const std::string config_json = read_config_json(folder);
  config = read_hf_drafter_config(config_json);
  const HfQuantization quantization = read_hf_quantization(config_json, folder);
  tokenizer = read_hf_tokenizer(folder);
  file = TensorFile(SafetensorsFolder::open(folder), quantization, drafter_name_from_hugging_face, FolderNames());
}

void DrafterFile::State::read_draft_vocabulary() {
  const bool has_head = file.find("output") != nullptr;
  if (const TensorView* d2t = file.find("d2t")) {
    if (!config.draft_token_ids.empty()) {
      throw bad_input("The drafter names its tokens twice, by 'draft_token_ids' and by the tensor 'd2t'.");
    }
    const DraftMap elements = file.gguf() != nullptr ? DraftMap::ids : DraftMap::offsets;
    config.draft_token_ids = draft_token_ids_of(*d2t, elements, config.vocab);
  } else if (file.find("t2d") != nullptr) {
    throw bad_input("The drafter has the tensor 't2d', but 'd2t', which names the tokens that it drafts, is missing.");
  }
  config.own_head = has_head && !config.draft_token_ids.empty();
  read_list_beside();
  config.brings_vocabulary = file.find("token_embd") != nullptr || (has_head && !config.own_head);
}

void DrafterFile::State::read_list_beside() {
  const fs::path list = draft_tokens_path(hugging_face_folder(path).value_or(path));
  std::error_code ignored;
  if (!fs::is_regular_file(list, ignored)) return;
  if (!config.draft_token_ids.empty()) {
    throw bad_input("It names the tokens that it drafts, and the list " + shown(list) +
                    " beside it names others: remove the list.");
  }
  const std::vector<uint32_t> ids = read_draft_token_list(list);
  config.draft_token_ids = checked_draft_token_ids("list of tokens in " + shown(list.filename()),
                                                   std::vector<int64_t>(ids.begin(), ids.end()), config.vocab);
}

DrafterFile::DrafterFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
DrafterFile::DrafterFile(DrafterFile&&) noexcept = default;
DrafterFile& DrafterFile::operator=(DrafterFile&&) noexcept = default;
DrafterFile::~DrafterFile() = default;

DrafterFile DrafterFile::open(const fs::path& path) {
  return with_context(shown(path), [&] {
    DrafterFile drafter(std::make_unique<State>());
    DrafterConfig& config = drafter.state_->config;
    open_files(path, *drafter.state_, config.transformer);
    config.transformer.has_qk_norm = drafter.find("blk.0.attn_q_norm") || drafter.find("blk.0.attn_k_norm");
    drafter.state_->read_draft_vocabulary();
    validate_drafter_config(config);
    drafter.validate_tensors();
    return drafter;
  });
}

DrafterFile DrafterFile::of_random_weights(const DrafterConfig& config, const TypeOfTensor& type_of) {
  validate_drafter_config(config);
  DrafterFile drafter(std::make_unique<State>());
  drafter.state_->config = config;
  drafter.state_->file = TensorFile(RandomTensors(required_drafter_tensors(config), type_of));
  drafter.validate_tensors();
  return drafter;
}

bool DrafterFile::is_drafter(const fs::path& given) noexcept {
  try {
    const fs::path path = resolve_model_path(given);
    if (const auto folder = hugging_face_folder(path)) return is_drafter_config(read_config_json(*folder));
    return is_drafter_architecture(GgufFile::open(path).text("general.architecture"));
  } catch (const std::exception&) {
    return false;
  }
}

const fs::path& DrafterFile::path() const {
  return state_->path;
}
const DrafterConfig& DrafterFile::config() const {
  return state_->config;
}
const TokenizerSource& DrafterFile::tokenizer() const {
  return state_->tokenizer;
}
const TensorFile& DrafterFile::file() const {
  return state_->file;
}

void DrafterFile::validate_tensors() const {
  const std::vector<RequiredTensor> wanted = required_drafter_tensors(config());
  std::unordered_set<std::string_view> known;
  for (const RequiredTensor& tensor : wanted) known.insert(tensor.name);
  for (const TensorView& tensor : tensors()) {
    // First, because a relative of DFlash is best told by what it has besides.
    if (!known.contains(tensor.name) && !kind_of_drafter_with(tensor.name).empty()) refuse_tensor(tensor);
  }
  file().require_all(wanted);
  for (const TensorView& tensor : tensors()) {
    if (!known.contains(tensor.name) && !is_harmless(tensor.name)) refuse_tensor(tensor);
  }
}

}  // namespace canopy
