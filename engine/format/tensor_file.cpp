#include "engine/format/tensor_file.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "engine/base/text.h"
#include "engine/format/dequantize.h"
#include "engine/format/latent_attention.h"
#include "engine/format/model_families.h"

namespace canopy {
namespace {

/// Sebastiano Vigna's splitmix64: each call gives 64 random bits.
class RandomBits {
 public:
  explicit RandomBits(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// Uniform in [low, high).
  float between(float low, float high) { return low + (high - low) * static_cast<float>(next() >> 40) * 0x1p-24f; }
  void fill(std::span<std::byte> bytes) {
    for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
      const uint64_t bits = next();
      std::memcpy(bytes.data() + i, &bits, std::min(sizeof bits, bytes.size() - i));
    }
  }

 private:
  uint64_t state_;
};

constexpr float kSpread = 0.035f;  // uniform in +-kSpread: 0.02 on average (root mean square)

void put_half(std::byte* at, float value) {
  const uint16_t half = f32_to_f16(value);
  std::memcpy(at, &half, sizeof half);
}

/// The scales of a block whose codes are random bytes already; `vary` is about 1. Codes go from 0 to 15 (Q4), 31 (Q5)
/// and so on; each scale is kSpread over the largest distance from their middle, in the types with scales of scales
/// over a usual one.
void put_scales(TensorType type, float vary, std::byte* block) {
  const float spread = kSpread * vary;
  switch (type) {
    case TensorType::q8_0: put_half(block, spread / 127); return;
    case TensorType::q4_0: put_half(block, spread / 8); return;
    case TensorType::q5_0: put_half(block, spread / 16); return;
    case TensorType::q4_1:
      put_half(block, spread / 8);
      put_half(block + 2, -spread * 7.5f / 8);
      return;
    case TensorType::q4_k:  // value = d * scale * code - dmin * minimum, scale and minimum of 6 bits
      put_half(block, spread / (12 * 31.5f));
      put_half(block + 2, spread * 7.5f / (12 * 31.5f));
      return;
    case TensorType::q6_k:  // 128 + 64 bytes of codes, 16 signed scales, d: scales of -8 to 7
      for (int i = 0; i < 16; ++i) {
        block[192 + i] = static_cast<std::byte>((std::to_integer<int>(block[192 + i]) & 15) - 8);
      }
      put_half(block + 208, spread / (32 * 5));
      return;
    default: break;
  }
  throw bad_input("There are no random weights of type " + std::string(to_string(type)) +
                  "; allowed: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q4_K, Q6_K.");
}

template <class Element, class Convert>
void fill_floats(RandomBits& random, std::span<std::byte> bytes, Convert&& convert) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(Element)) {
    const Element value = convert(random.between(-kSpread, kSpread));
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

TensorView view_of(const RequiredTensor& wanted, TensorType type) {
  TensorView tensor;
  tensor.name = wanted.name;
  tensor.type = type;
  tensor.rank = wanted.rows == 1 ? 1 : 2;
  tensor.shape = {wanted.rows, wanted.cols};
  if (tensor.rank == 1) tensor.shape = {wanted.cols};
  return tensor;
}

/// Bytes of a matrix; its rows must be whole blocks.
uint64_t matrix_bytes(const TensorView& tensor) {
  (void)tensor_bytes(tensor.type, tensor.cols(), "row of " + tensor.name);
  return tensor_bytes(tensor.type, tensor.elements(), tensor.name);
}

/// Multiples of it are whole pages and whole blocks.
uint64_t step_of(TensorType type) {
  return std::lcm<uint64_t>(RepeatedBytes::page(), tensor_type_info(type).block_bytes);
}

}  // namespace

void fill_random_blocks(TensorType type, uint64_t seed, std::span<std::byte> blocks) {
  const uint32_t each = tensor_type_info(type).block_bytes;
  if (blocks.size() % each != 0) {
    throw bad_input("Random weights of type " + std::string(to_string(type)) + " were to fill " +
                    std::to_string(blocks.size()) + " bytes; allowed: multiples of " + std::to_string(each) + ".");
  }
  RandomBits random(seed);
  switch (type) {
    case TensorType::f32: return fill_floats<float>(random, blocks, [](float value) { return value; });
    case TensorType::f16: return fill_floats<uint16_t>(random, blocks, f32_to_f16);
    case TensorType::bf16: return fill_floats<uint16_t>(random, blocks, f32_to_bf16);
    default: break;
  }
  random.fill(blocks);
  for (size_t at = 0; at < blocks.size(); at += each) {
    put_scales(type, random.between(0.8f, 1.2f), blocks.data() + at);
  }
}

RandomTensors::RandomTensors(std::span<const RequiredTensor> wanted, const TypeOfTensor& type_of) {
  std::map<TensorType, uint64_t> largest;
  uint64_t longest_norm = 0;
  for (const RequiredTensor& one : wanted) {
    const bool is_norm = one.rows == 1;
    const TensorView& tensor = tensors_.emplace_back(
        view_of(one, is_norm || one.name.ends_with(".bias") ? TensorType::f32 : type_of(one.name, one.cols)));
    if (is_norm) longest_norm = std::max(longest_norm, one.cols);
    if (!is_norm) largest[tensor.type] = std::max(largest[tensor.type], matrix_bytes(tensor));
  }
  std::map<TensorType, uint64_t> patterns;  // bytes
  for (const auto& [type, bytes] : largest) {
    const uint64_t step = step_of(type);
    patterns[type] = (std::min(bytes, kPattern) + step - 1) / step * step;
    std::vector<std::byte> pattern(patterns[type]);
    fill_random_blocks(type, 1 + static_cast<uint64_t>(type), pattern);
    bytes_[type] = RepeatedBytes(pattern, bytes + pattern.size());
  }
  ones_.assign(longest_norm, 1.0f);
  minus_ones_.assign(longest_norm, -1.0f);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    TensorView& tensor = tensors_[i];
    if (tensor.rank == 1) {
      const std::vector<float>& values = tensor.name.ends_with(".ssm_a") ? minus_ones_ : ones_;
      tensor.bytes = std::as_bytes(std::span(values).first(tensor.cols()));
      continue;
    }
    const uint64_t step = step_of(tensor.type);
    const uint64_t begin = i * 7919 % (patterns[tensor.type] / step) * step;
    tensor.bytes = bytes_[tensor.type].bytes().subspan(begin, matrix_bytes(tensor));
  }
}

namespace fs = std::filesystem;

namespace {

constexpr uint64_t max_config_bytes = 16ull << 20;

std::string shape_text(uint64_t rows, uint64_t cols) {
  return rows == 1 ? "[" + std::to_string(cols) + "]" : "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
}

/// A model with an adapter beside its weights would be read without what was trained.
void refuse_adapters(std::span<const TensorView> tensors) {
  for (const TensorView& tensor : tensors) {
    for (const char* mark : {".lora_", ".modules_to_save."}) {
      if (tensor.stored_as.find(mark) == std::string::npos) continue;
      throw bad_input("The tensor " + quoted_name(tensor.stored_as) +
                      " belongs to a LoRA adapter that was not merged into the model; adapters cannot be applied here. "
                      "Merge it and save the model again.");
    }
  }
}

bool has_gguf_magic(const MappedFile& file) {
  const auto bytes = file.bytes();
  return bytes.size() >= 4 && bytes[0] == std::byte{'G'} && bytes[1] == std::byte{'G'} && bytes[2] == std::byte{'U'} &&
         bytes[3] == std::byte{'F'};
}

}  // namespace

TensorFile::TensorFile(GgufFile file, const Rename& canonical) : source_(std::move(file)) {
  take(std::get<GgufFile>(source_).tensors(), canonical);
}

TensorFile::TensorFile(SafetensorsFolder folder, const HfQuantization& quantization, const Rename& canonical,
                       FolderNames names)
    : source_(std::move(folder)), names_(std::move(names)), method_(to_string(quantization.method)) {
  std::vector<TensorView> tensors = unpacked_tensors(std::get<SafetensorsFolder>(source_).tensors(), quantization);
  for (TensorView& tensor : tensors) {
    if (tensor.stored_as.empty()) tensor.stored_as = tensor.name;
  }
  refuse_adapters(tensors);
  take(tensors, canonical);
}

TensorFile::TensorFile(RandomTensors tensors) : source_(std::move(tensors)) {
  take(std::get<RandomTensors>(source_).tensors(), [](std::string_view name) { return std::string(name); });
}

void TensorFile::split(std::span<const FusedTensor> fused) {
  if (fused.empty()) return;
  const auto shown = [this](const std::string& name) { return shown_name(name); };
  take(with_parts(tensors_, fused, shown), [](std::string_view name) { return std::string(name); });
}

void TensorFile::separate_experts(const ModelConfig& config) {
  const auto shown = [this](const std::string& name) { return shown_name(name); };
  take(separate_experts_of_folder(tensors_, config, shown), [](std::string_view name) { return std::string(name); });
}

void TensorFile::separate_latent(const ModelConfig& config) {
  const auto shown = [this](const std::string& name) { return shown_name(name); };
  take(separate_latent_heads(tensors_, config, shown), [](std::string_view name) { return std::string(name); });
}

void TensorFile::take(std::span<const TensorView> found, const Rename& canonical) {
  by_name_.clear();
  tensors_.assign(found.begin(), found.end());
  for (TensorView& tensor : tensors_) tensor.name = canonical(tensor.name);
  by_name_.reserve(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto [place, is_new] = by_name_.emplace(tensors_[i].name, i);
    if (is_new) continue;
    const std::string &first = tensors_[place->second].shown_name(), &second = tensors_[i].shown_name();
    throw bad_input("There are two tensors that stand for " + quoted_name(tensors_[i].name) +
                    (first == second ? "." : ", " + quoted_name(first) + " and " + quoted_name(second) + "."));
  }
}

std::string TensorFile::shown_name(std::string_view canonical) const {
  if (!names_) return std::string(canonical);
  constexpr std::string_view usual = "model.";
  std::string name = hugging_face_name(canonical, *names_);
  const bool has_codes = method_ == "GPTQ" || method_ == "AWQ";
  if (constexpr std::string_view matrix = "_proj.weight"; has_codes && name.ends_with(matrix)) {
    name.replace(name.size() - matrix.size(), matrix.size(), "_proj.qweight");
  }
  // What stands before the layers in this folder: "model.", "model.language_model.", nothing in drafters.
  std::string before(usual);
  for (const TensorView& tensor : tensors_) {
    const size_t layers = tensor.stored_as.find("layers.");
    if (!tensor.name.starts_with("blk.") || layers == std::string::npos) continue;
    before = tensor.stored_as.substr(0, layers);
    break;
  }
  if (name.starts_with(usual)) return before + name.substr(usual.size());
  // The head stands beside the rest of the model.
  for (const std::string_view rest : {std::string_view("model.language_model."), usual}) {
    if (before.ends_with(rest)) return before.substr(0, before.size() - rest.size()) + name;
  }
  return name;
}

/// " The folder has "student.model.norm.weight", ...": where the missing tensor is there behind a prefix.
std::string TensorFile::prefixed(std::string_view missing) const {
  const std::string_view bare = missing.starts_with("model.") ? missing.substr(6) : missing;
  for (const TensorView& tensor : tensors_) {
    if (!names_ || tensor.stored_as.size() <= bare.size() || !tensor.stored_as.ends_with("." + std::string(bare)))
      continue;
    return " The folder has " + quoted_name(tensor.stored_as) + ": a tool has left a prefix before the names, " +
           "which must be removed from them.";
  }
  return "";
}

const TensorView* TensorFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

const TensorView& TensorFile::require(std::string_view name, uint64_t rows, uint64_t cols) const {
  const TensorView* tensor = find(name);
  if (tensor == nullptr) {
    const std::string shown = shown_name(name);
    throw bad_input("The tensor " + quoted_name(shown) + " is missing; its shape should be " + shape_text(rows, cols) +
                    "." + prefixed(shown));
  }
  const uint32_t rank = rows == 1 ? 1 : 2;
  const bool is_filter = rows > 1 && tensor->rank == 3 && tensor->shape[1] == 1;  // a convolution's, one of a channel
  // The gate of a shared expert, in folders, and a confidence head.
  const bool is_row = tensor->rank == 2 && (name.ends_with("_inp_shexp") || name == "conf_proj");
  const bool is_kernel = tensor->rank == 3 && name.ends_with("_conv_base");  // sides and taps are rows
  // Of a scan, in GGUF: a row for each head or group of heads.
  const bool has_rows = name.ends_with(".ssm_a") || name.ends_with(".ssm_d") || name.ends_with(".ssm_norm");
  if (rows == 1 && tensor->rank == 2 && has_rows && tensor->elements() == cols) return *tensor;
  if ((tensor->rank != rank && !is_filter && !is_row && !is_kernel) || tensor->rows() != rows ||
      tensor->cols() != cols) {
    throw bad_input("The tensor " + quoted_name(tensor->shown_name()) + " has the shape " + tensor->shape_text() +
                    "; " + shape_text(rows, cols) + " is expected.");
  }
  return *tensor;
}

void TensorFile::require_all(std::span<const RequiredTensor> wanted) const {
  for (const RequiredTensor& one : wanted) {
    const TensorView& tensor = require(one.name, one.rows, one.cols);
    if (!can_dequantize(tensor.type)) {
      throw bad_input("The tensor " + quoted_name(tensor.shown_name()) + " is stored as " +
                      std::string(to_string(tensor.type)) + "; supported types: " + dequantizable_types() + ".");
    }
    if (one.rows == 1 && tensor_type_info(tensor.type).block_elements != 1) {
      const bool is_gate = tensor.name.ends_with("_inp_shexp");
      const bool is_confidence = tensor.name == "conf_proj";
      const std::string kind = tensor.name.ends_with(".bias") ? "bias"
                               : is_gate                      ? "gate"
                               : is_confidence                ? "confidence head"
                                                              : "norm";
      throw bad_input("The " + kind + " " + quoted_name(tensor.shown_name()) + " is stored as " +
                      std::string(to_string(tensor.type)) + "; a " + kind + " must be F32, F16 or BF16.");
    }
  }
}

std::string TensorFile::main_type() const {
  if (!method_.empty()) return std::string(method_);
  std::map<TensorType, uint64_t> bytes;
  for (const TensorView& tensor : tensors_) bytes[tensor.type] += tensor.bytes.size();  // at most the files' size
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; });
  return most == bytes.end() ? std::string() : std::string(to_string(most->first));
}

uint64_t TensorFile::elements() const {
  uint64_t sum = 0;
  for (const TensorView& tensor : tensors_) sum = checked_add(sum, tensor.elements(), "parameter count");
  return sum;
}

void TensorFile::check_unchanged() const {
  for (const MappedFile* file : mappings()) file->check_unchanged();
}

std::vector<fs::path> TensorFile::files() const {
  std::vector<fs::path> paths;
  for (const MappedFile* file : mappings()) paths.push_back(file->path());
  return paths;
}

std::vector<const MappedFile*> TensorFile::mappings() const {
  std::vector<const MappedFile*> result;
  if (const GgufFile* file = gguf()) {
    for (const MappedFile& part : file->files()) result.push_back(&part);
  }
  if (const auto* folder = std::get_if<SafetensorsFolder>(&source_)) {
    for (const SafetensorsFile& file : folder->files()) result.push_back(&file.file());
  }
  return result;
}

std::optional<fs::path> hugging_face_folder(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return path;
  if (path.extension() != ".safetensors" || has_gguf_magic(MappedFile::open(path))) return std::nullopt;
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

std::string read_config_json(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw bad_input(explain_folder_without_config(folder));
  }
  return read_small_file(path, max_config_bytes);
}

bool says_it_is(const fs::path& given, const std::function<bool(const JsonFields&)>& is_config,
                const std::function<bool(std::string_view)>& is_architecture) noexcept {
  try {
    const fs::path path = resolve_model_path(given);
    if (const auto folder = hugging_face_folder(path)) {
      const nlohmann::json root = parse_config_json(read_config_json(*folder), "config.json");
      return is_config(JsonFields(root, "config.json"));
    }
    return is_architecture(GgufFile::open(path).text("general.architecture"));
  } catch (const std::exception&) {
    return false;
  }
}

std::string name_from_path(const fs::path& path) {
  std::error_code ignored;
  const fs::path full = fs::absolute(path, ignored).lexically_normal();  // links of a cache lead to hashes
  if (fs::is_directory(full, ignored)) return model_path_name(full);
  const bool in_folder = full.extension() == ".safetensors";  // then its own name is just "model"
  if (in_folder) return model_path_name(full.parent_path());
  const auto part = gguf_part_name(full.filename().string());
  return printable(part ? part->stem : full.stem().string());
}

}  // namespace canopy
