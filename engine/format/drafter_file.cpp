#include "engine/format/drafter_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/machine.h"
#include "engine/base/mapped_file.h"
#include "engine/base/numbers.h"
#include "engine/base/text.h"
#include "engine/format/config_gguf.h"
#include "engine/format/config_hf.h"
#include "engine/format/dequantize.h"
#include "engine/format/json_text.h"
#include "engine/format/model_paths.h"
#include "engine/format/quantize.h"
#include "engine/format/tensor.h"

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
  void read_markov_tensors();
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

[[noreturn]] void refuse_tensor(const TensorView& tensor) {
  throw bad_input("The tensor " + quoted_name(tensor.shown_name()) +
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

/// What GGUF files and some configurations leave to the tensors.
void DrafterFile::State::read_markov_tensors() {
  MarkovConfig& markov = config.markov;
  const TensorView* const w1 = file.find("markov_w1");
  if (markov.rank == 0 && w1 != nullptr && file.gguf() != nullptr) {
    markov.rank = static_cast<uint32_t>(std::min<uint64_t>(w1->cols(), UINT32_MAX));
  }
  const TensorView* const confidence = file.find("conf_proj");
  markov.has_confidence |= confidence != nullptr;
  if (confidence != nullptr && file.gguf() != nullptr) {
    markov.confidence_reads_markov = confidence->cols() != config.transformer.hidden;
  }
  markov.confidence_has_bias = confidence != nullptr && file.find("conf_proj.bias") != nullptr;
  if (!markov.has_confidence) markov.confidence_reads_markov = true;
  if (markov.rank > 0) return;
  if (markov.has_confidence) {
    throw bad_input("The drafter has a confidence head, but no Markov head: the tensor 'markov_w1' is missing.");
  }
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
    drafter.state_->read_markov_tensors();
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
  return says_it_is(given, is_drafter_config, is_drafter_architecture);
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
  file().require_all(wanted);
  for (const TensorView& tensor : tensors()) {
    if (!known.contains(tensor.name) && !is_harmless(tensor.name)) refuse_tensor(tensor);
  }
}

namespace {

std::string number_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

/// Throws; `reason` goes on from "it does not fit: ".
[[noreturn]] void refuse(const ModelConfig& target, const DrafterConfig& drafter, const std::string& reason) {
  throw bad_input("The drafter " + quoted_name(drafter.transformer.name) + " does not fit the model " +
                  quoted_name(target.name) + ": " + reason);
}

void check_sizes(const ModelConfig& target, const DrafterConfig& drafter) {
  if (drafter.transformer.hidden != target.hidden) {
    refuse(target, drafter,
           "its hidden size is " + std::to_string(drafter.transformer.hidden) + ", the model's " +
               std::to_string(target.hidden) + ".");
  }
  if (drafter.target_layers != 0 && drafter.target_layers != target.layers) {
    refuse(target, drafter,
           "it was made for a model of " + std::to_string(drafter.target_layers) + " layers; this one has " +
               std::to_string(target.layers) + ".");
  }
  for (const uint32_t aux_layer : drafter.aux_layers) {
    if (aux_layer < target.layers) continue;
    refuse(target, drafter,
           "it reads layer " + std::to_string(aux_layer) + "; the model has the layers 0 to " +
               std::to_string(target.layers - 1) + ".");
  }
  if (drafter.vocab != 0 && drafter.vocab != target.vocab) {
    refuse(target, drafter,
           "it was made for a vocabulary of " + std::to_string(drafter.vocab) + " tokens; the model has " +
               std::to_string(target.vocab) + ".");
  }
  if (!drafter.draft_token_ids.empty() && drafter.draft_token_ids.back() >= target.vocab) {
    refuse(target, drafter,
           "it drafts token " + std::to_string(drafter.draft_token_ids.back()) +
               ", outside the model's vocabulary of " + std::to_string(target.vocab) + " tokens.");
  }
  if (drafter.mask_token >= target.vocab) {
    refuse(target, drafter,
           "its mask token is " + std::to_string(drafter.mask_token) + ", outside the model's vocabulary of " +
               std::to_string(target.vocab) + " tokens.");
  }
}

std::vector<std::string> oddities(const ModelConfig& target, const DrafterConfig& drafter) {
  std::vector<std::string> result;
  if (drafter.vocab == 0) {
    result.push_back(
        "The drafter does not say which vocabulary it was made for: if it was another one, its drafts fail.");
  }
  if (drafter.transformer.rope_theta != target.rope_theta) {
    result.push_back("The drafter's rope theta is " + number_text(drafter.transformer.rope_theta) + ", the model's " +
                     number_text(target.rope_theta) + "; they are equal in most pairs.");
  }
  if (drafter.transformer.max_context < target.max_context) {
    result.push_back("The drafter was made for a context of " + std::to_string(drafter.transformer.max_context) +
                     " positions, the model for " + std::to_string(target.max_context) +
                     "; beyond its own, its drafts may be poor.");
  }
  if (!std::ranges::is_sorted(drafter.aux_layers)) {
    result.push_back(
        "The drafter reads the model's layers in another than ascending order, which no published one does.");
  }
  // What ends a file is unused in a chat, and so may stand for the mask.
  if (std::ranges::find(target.eos, drafter.mask_token) != target.eos.end() &&
      std::ranges::find(target.file_ends, drafter.mask_token) == target.file_ends.end()) {
    result.push_back("The drafter's mask token, " + std::to_string(drafter.mask_token) +
                     ", is one that ends the model's replies.");
  }
  if (drafter.brings_vocabulary) {
    result.push_back(
        "The drafter brings an embedding or an output head of its own, which is left out: it drafts with "
        "the model's.");
  }
  return result;
}

using TokenTexts = std::map<uint64_t, std::string>;

TokenTexts gguf_tokens(const TokenizerSource& source) {
  constexpr int32_t unused = 5;  // rows that only pad the embedding
  TokenTexts result;
  for (size_t id = 0; id < source.tokens.size(); ++id) {
    if (id < source.types.size() && source.types[id] == unused) continue;
    result.emplace(id, source.tokens[id]);
  }
  return result;
}

/// Of a tokenizer.json. Entries of unexpected form are left out: the tokenizer of the model is checked elsewhere, that
/// of a drafter is not used.
TokenTexts hugging_face_tokens(const TokenizerSource& source) {
  using nlohmann::json;
  TokenTexts result;
  const json root = parse_json(source.tokenizer_json, "tokenizer.json");
  const json empty;
  const json& model = root.is_object() && root.contains("model") ? root["model"] : empty;
  const json& vocab = model.is_object() && model.contains("vocab") ? model["vocab"] : empty;
  if (vocab.is_object()) {
    for (const auto& [text, id] : vocab.items()) {
      if (id.is_number_unsigned()) result.emplace(id.get<uint64_t>(), text);
    }
  }
  const json& added = root.is_object() && root.contains("added_tokens") ? root["added_tokens"] : empty;
  for (const json& token : added.is_array() ? added : json::array()) {
    if (!token.is_object() || !token.contains("id") || !token["id"].is_number_unsigned()) continue;
    const json& text = token.contains("content") ? token["content"] : empty;
    if (text.is_string()) result.insert_or_assign(token["id"].get<uint64_t>(), text.get<std::string>());
  }
  return result;
}

/// Empty where there are none, or none that can be listed.
TokenTexts tokens_of(const TokenizerSource& source) {
  if (source.kind == TokenizerSource::Kind::gguf) return gguf_tokens(source);
  if (source.tokenizer_json.empty()) return {};
  try {
    return hugging_face_tokens(source);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::optional<std::string> tokenizer_difference(const TokenizerSource& target, const TokenizerSource& drafter) {
  if (target.kind == TokenizerSource::Kind::none || drafter.kind == TokenizerSource::Kind::none) return std::nullopt;
  const TokenTexts theirs = tokens_of(target);
  uint64_t compared = 0;
  uint64_t different = 0;
  std::string first;
  for (const auto& [id, text] : tokens_of(drafter)) {
    const auto found = theirs.find(id);
    if (found == theirs.end()) continue;
    ++compared;
    if (found->second == text || ++different > 1) continue;
    first = "token " + std::to_string(id) + " is " + quoted_name(text) + " to it and " + quoted_name(found->second) +
            " to the model";
  }
  if (different == 0) return std::nullopt;
  return "The drafter was made for another tokenizer: of " + std::to_string(compared) + " tokens, " +
         std::to_string(different) + (different == 1 ? " differs" : " differ") + " (" + first + ").";
}

std::vector<std::string> check_pair(const ModelConfig& target, const DrafterConfig& drafter) {
  validate_drafter_config(drafter);
  check_sizes(target, drafter);
  return oddities(target, drafter);
}

std::vector<std::string> check_pair(const ModelFile& target, const DrafterFile& drafter) {
  std::vector<std::string> result = check_pair(target.config(), drafter.config());
  if (auto difference = tokenizer_difference(target.tokenizer(), drafter.tokenizer())) {
    result.push_back(*std::move(difference));
  }
  return result;
}

namespace {

/// Tokens of a text that models are told apart by: what steers a chat, and what only fills rows of the embedding.
bool is_special(const std::string& text) {
  return text.empty() || (text.starts_with('<') && text.ends_with('>')) ||
         (text.starts_with('[') && text.ends_with(']'));
}

bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code ignored;
  return std::filesystem::equivalent(a, b, ignored);
}

}  // namespace

std::vector<std::string> check_pair(const ModelFile& target, const ModelFile& draft) {
  if (is_same_file(target.path(), draft.path())) {
    throw bad_input(
        "It is the model itself, which would take as long to guess as to answer. Choose a smaller model of "
        "the same family.");
  }
  constexpr uint32_t fewest = 8;  // a draft has so many candidates of each depth
  if (std::min(draft.config().vocab, target.config().vocab) < fewest) {
    throw bad_input("It has " + std::to_string(draft.config().vocab) + " tokens and the model " +
                    std::to_string(target.config().vocab) + "; a pair of models needs at least " +
                    std::to_string(fewest) + ".");
  }
  std::vector<std::string> notes;
  const TokenTexts theirs = tokens_of(target.tokenizer()), own = tokens_of(draft.tokenizer());
  if (theirs.empty() || own.empty()) {
    const uint32_t here = draft.config().vocab, there = target.config().vocab;
    if (here != there) {
      throw bad_input("It has " + std::to_string(here) + " tokens and the model " + std::to_string(there) + ", and " +
                      std::string(own.empty() ? "it" : "the model") + " brings no list of them to compare.");
    }
    notes.push_back("Nobody knows whether the draft model has the model's vocabulary: " +
                    std::string(own.empty() ? "it" : "the model") + " brings no list of tokens.");
  }
  uint64_t different = 0;
  std::string first;
  const auto compare = [&](uint64_t id, const std::string& to_it, const std::string& to_model) {
    if (to_it != to_model && (!is_special(to_it) || !is_special(to_model)) && ++different == 1) {
      first = "token " + std::to_string(id) + " is " + quoted_name(to_it) + " to it and " + quoted_name(to_model) +
              " to the model";
    }
  };
  for (const auto& [id, text] : own) {
    if (theirs.empty()) break;
    const auto found = theirs.find(id);
    compare(id, text, found != theirs.end() ? found->second : "");
  }
  for (const auto& [id, text] : theirs) {
    if (!own.empty() && !own.contains(id)) compare(id, "", text);
  }
  if (different > 0) {
    throw bad_input("It has another vocabulary than the model, so its guesses would be other words: of " +
                    std::to_string(std::max(own.size(), theirs.size())) + " tokens, " + std::to_string(different) +
                    (different == 1 ? " differs" : " differ") + " (" + first + ").");
  }
  if (draft.config().parameters >= target.config().parameters) {
    notes.push_back(
        "The draft model is not smaller than the model it drafts for: guessing will take longer than it "
        "saves.");
  }
  if (draft.config().max_context < target.config().max_context) {
    notes.push_back("The draft model reads " + std::to_string(draft.config().max_context) +
                    " tokens at most, the model " + std::to_string(target.config().max_context) +
                    ": behind that nothing comes from it.");
  }
  return notes;
}

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
  if (tensor.rank == 1 || tensor.name.ends_with("_conv_base")) return TensorType::f32;
  if (tensor.rows() == 1 && tensor_type_info(wanted).block_elements != 1) return TensorType::f32;
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
  if (canonical.ends_with(".bias") || canonical.ends_with("_conv_base")) return canonical;
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
    if (config.selector.top_k > ids.size()) {
      throw bad_input("The list of tokens to draft names " + std::to_string(ids.size()) +
                      "; the drafter's candidate selector chooses among " + std::to_string(config.selector.top_k) +
                      ", so that at least as many are needed.");
    }
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
  if (const double growth = transformer.rope_scaling.query_growth; growth != 0) {
    writer.f32("dflash.attention.temperature_scale", static_cast<float>(growth));
    writer.u32("dflash.attention.temperature_length", transformer.rope_scaling.original_context);
    if (kind != Kind::yarn)
      writer.u32("dflash.rope.scaling.original_context_length", transformer.rope_scaling.original_context);
  }
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
  if (config.draft_shift) writer.boolean("dflash.draft_shift", true);
  if (config.conv.taps > 0) {
    writer.u32("dflash.conv_kernel_size", config.conv.taps);
    writer.u32("dflash.conv_group_size", config.conv.group);
  }
  if (config.selector.rank > 0) {
    writer.u32("dflash.selector_rank", config.selector.rank);
    writer.u32("dflash.selector_top_k", config.selector.top_k);
  }
  if (config.markov.rank > 0 || config.sample_from_anchor) {
    writer.boolean("dflash.sample_from_anchor", config.sample_from_anchor);
  }
  if (config.markov.rank > 0) writer.boolean("dflash.has_confidence_head", config.markov.has_confidence);
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
