#include "engine/format/model_file.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include "engine/base/checked.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/printable.h"
#include "engine/format/architecture.h"
#include "engine/format/config_gguf.h"
#include "engine/format/config_hf.h"
#include "engine/format/dequantize.h"
#include "engine/format/gguf.h"
#include "engine/format/safetensors.h"

namespace canopy {

namespace fs = std::filesystem;

struct ModelFile::State {
  fs::path path;
  std::variant<std::monostate, GgufFile, SafetensorsFolder> source;  // owns the mapping
  ModelConfig config;
  TokenizerSource tokenizer;
  std::vector<TensorView> tensors;                       // canonical names
  std::unordered_map<std::string_view, size_t> by_name;  // views of tensors[i].name

  void take_tensors(std::span<const TensorView> found, std::string (*canonical)(std::string_view));
  void measure();
  void open_gguf();
  void open_folder(const fs::path& folder);
};

namespace {

constexpr uint64_t max_config_bytes = 16ull << 20;

std::string shape_text(uint64_t rows, uint64_t cols) {
  return rows == 1 ? "[" + std::to_string(cols) + "]" : "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
}

/// Tensors that files carry although nothing in the forward pass reads them.
bool is_harmless(std::string_view name) {
  return name == "rope_freqs" ||  // read into the config
         name == "output" ||      // beside a tied head, as Hugging Face ignores it
         name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn_rot_embd");
}

/// A model's name when the file gives none: that of the file without its extension, or of the folder.
std::string name_from_path(const fs::path& path) {
  std::error_code ignored;
  fs::path full = fs::weakly_canonical(path, ignored);
  if (full.empty()) full = path;
  if (fs::is_directory(full, ignored)) return printable(full.filename().string());
  const bool in_folder = full.extension() == ".safetensors";  // then its own name is just "model"
  return printable(in_folder ? full.parent_path().filename().string() : full.stem().string());
}

bool has_gguf_magic(const MappedFile& file) {
  const auto bytes = file.bytes();
  return bytes.size() >= 4 && bytes[0] == std::byte{'G'} && bytes[1] == std::byte{'G'} && bytes[2] == std::byte{'U'} &&
         bytes[3] == std::byte{'F'};
}

}  // namespace

void ModelFile::State::take_tensors(std::span<const TensorView> found, std::string (*canonical)(std::string_view)) {
  tensors.assign(found.begin(), found.end());
  for (TensorView& tensor : tensors) tensor.name = canonical(tensor.name);
  by_name.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!by_name.emplace(tensors[i].name, i).second) {
      throw bad_input("There are two tensors that stand for " + quoted_name(tensors[i].name) + ".");
    }
  }
}

/// Fills what the config says about the tensors as a whole.
void ModelFile::State::measure() {
  std::map<TensorType, uint64_t> bytes;
  for (const TensorView& tensor : tensors) {
    bytes[tensor.type] += tensor.bytes.size();  // at most the files' size
    config.parameters = checked_add(config.parameters, tensor.elements(), "parameter count");
  }
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; });
  if (most != bytes.end()) config.quantization = to_string(most->first);
  if (config.name.empty()) config.name = name_from_path(path);
}

void ModelFile::State::open_gguf() {
  const auto& file = source.emplace<GgufFile>(GgufFile::open(path));
  config = read_gguf_config(file);
  tokenizer = read_gguf_tokenizer(file, config.vocab);
  take_tensors(file.tensors(), canonical_name_from_gguf);
}

void ModelFile::State::open_folder(const fs::path& folder) {
  const fs::path config_path = folder / "config.json";
  std::error_code ignored;
  if (!fs::exists(config_path, ignored)) {
    throw bad_input("The folder has no config.json; a GGUF file or a Hugging Face folder is expected.");
  }
  config = read_hf_config(read_small_file(config_path, max_config_bytes),
                          read_optional_file(folder / "generation_config.json", max_config_bytes));
  tokenizer = read_hf_tokenizer(folder);
  const auto& weights = source.emplace<SafetensorsFolder>(SafetensorsFolder::open(folder));
  take_tensors(weights.tensors(), canonical_name_from_hugging_face);
}

ModelFile::ModelFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
ModelFile::ModelFile(ModelFile&&) noexcept = default;
ModelFile& ModelFile::operator=(ModelFile&&) noexcept = default;
ModelFile::~ModelFile() = default;

ModelFile ModelFile::open(const fs::path& path) {
  return with_context(shown(path), [&] {
    ModelFile model(std::make_unique<State>());
    State& state = *model.state_;
    state.path = path;
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      state.open_folder(path);
    } else if (path.extension() == ".safetensors" && !has_gguf_magic(MappedFile::open(path))) {
      state.open_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
    } else {
      state.open_gguf();
    }
    state.measure();
    model.validate_tensors();
    return model;
  });
}

const fs::path& ModelFile::path() const {
  return state_->path;
}
const ModelConfig& ModelFile::config() const {
  return state_->config;
}
const TokenizerSource& ModelFile::tokenizer() const {
  return state_->tokenizer;
}
std::span<const TensorView> ModelFile::tensors() const {
  return state_->tensors;
}

const TensorView* ModelFile::find(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? nullptr : &state_->tensors[found->second];
}

const TensorView& ModelFile::require(std::string_view name, uint64_t rows, uint64_t cols) const {
  const TensorView* tensor = find(name);
  if (tensor == nullptr) {
    throw bad_input("The tensor " + quoted_name(name) + " is missing; its shape should be " + shape_text(rows, cols) +
                    ".");
  }
  const uint32_t rank = rows == 1 ? 1 : 2;
  if (tensor->rank != rank || tensor->rows() != rows || tensor->cols() != cols) {
    throw bad_input("The tensor " + quoted_name(name) + " has the shape " + tensor->shape_text() + "; " +
                    shape_text(rows, cols) + " is expected.");
  }
  return *tensor;
}

void ModelFile::validate_tensors() const {
  std::unordered_set<std::string> known;
  for (const RequiredTensor& wanted : required_tensors(config())) {
    const TensorView& tensor = require(wanted.name, wanted.rows, wanted.cols);
    if (!can_dequantize(tensor.type)) {
      throw bad_input("The tensor " + quoted_name(tensor.name) + " is stored as " +
                      std::string(to_string(tensor.type)) + "; supported types: " + dequantizable_types() + ".");
    }
    if (wanted.rows == 1 && tensor_type_info(tensor.type).block_elements != 1) {
      throw bad_input("The norm " + quoted_name(tensor.name) + " is stored as " + std::string(to_string(tensor.type)) +
                      "; a norm must be F32, F16 or BF16.");
    }
    known.insert(wanted.name);
  }
  for (const TensorView& tensor : tensors()) {
    if (known.contains(tensor.name) || is_harmless(tensor.name)) continue;
    throw bad_input("The tensor " + quoted_name(tensor.name) + " has no place in the architecture " +
                    config().architecture + "; leaving it out would change what the model writes.");
  }
}

void ModelFile::check_unchanged() const {
  if (const auto* gguf = std::get_if<GgufFile>(&state_->source)) gguf->file().check_unchanged();
  if (const auto* folder = std::get_if<SafetensorsFolder>(&state_->source)) {
    for (const SafetensorsFile& file : folder->files()) file.file().check_unchanged();
  }
}

}  // namespace canopy
