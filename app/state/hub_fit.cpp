#include "app/state/hub_fit.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include "app/state/models.h"
#include "app/state/words.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/format/architecture.h"
#include "engine/format/tensor.h"
#include "engine/model/load_plan.h"
#include "engine/whatif/kernel_rules.h"
#include "engine/whatif/model_shapes.h"
#include "engine/whatif/prediction.h"

namespace canopy::app {
namespace {

constexpr uint32_t kPredictedContext = 512;
constexpr uint32_t kRowsOfPass = 128;  // as a model is opened where nothing else is asked for
constexpr std::array kGgufQuantizations = {"Q8_0", "Q6_K", "Q4_K_M"};
constexpr std::array kFolderQuantizations = {"BF16"};

std::string small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

/// The name of a model as shapes have it: "qwen3-8b".
std::string shape_part(const std::string& name) {
  std::string part = small_letters(name);
  for (const std::string_view ending : {"-instruct", "-it"})
    if (part.ends_with(ending)) part.resize(part.size() - ending.size());
  return part;
}

std::optional<predict::NamedShape> shape_named(const std::string& name) {
  try {
    return predict::model_shape(name);
  } catch (const Error&) {  // it is none of those that have a name
    return std::nullopt;
  }
}

/// The type that shapes are named by, "q4_k_m"; empty for one that none is named by, such as Q5_K_M.
std::string type_of_label(std::string_view label, const ModelConfig& config) {
  std::string type = small_letters(label);
  if (type == "safetensors") type = small_letters(config.quantization);
  return type == "q4_k_s" ? "q4_k" : type;
}

double predicted_speed(const predict::NamedShape& shape, std::string_view device) {
  const predict::DeviceProfile* profile = profile_here(device);
  if (profile == nullptr) return 0;
  predict::RecordedModel model(shape);
  const predict::KernelRules rules = predict::rules_of(predict::default_kernels(*profile));
  return 1e3 / predict::predict_pass(model, *profile, rules, 1, kPredictedContext).ms;
}

uint64_t weight_bytes_of(const predict::NamedShape& shape) {
  uint64_t bytes = 0;
  for (const RequiredTensor& tensor : required_tensors(shape.config))
    bytes +=
        tensor_bytes(predict::type_of_tensor(shape, tensor.name, tensor.cols), tensor.rows * tensor.cols, tensor.name);
  return bytes;
}

uint64_t needed_bytes(const ModelConfig& config, uint64_t weight_bytes) {
  const predict::DryDevice dry;
  return plan_roomy(config, weight_bytes, kRowsOfPass, dry).total();
}

/// "NVIDIA GeForce RTX 4090" and "Arc(TM) B580 Graphics" -> their words without makers and marks.
std::vector<std::string> device_words_of(std::string_view name) {
  std::string plain(name.substr(0, name.find(" (")));
  for (const std::string_view mark : {"(R)", "(TM)", "(tm)"})
    for (size_t at = plain.find(mark); at != std::string::npos; at = plain.find(mark)) plain.erase(at, mark.size());
  std::istringstream text(plain);
  std::vector<std::string> words;
  for (std::string word; text >> word;) {
    const std::string small = small_letters(word);
    const bool says_nothing =
        small == "nvidia" || small == "amd" || small == "intel" || small == "graphics" || small == "sxm";
    if (!says_nothing) words.push_back(small);
  }
  return words;
}

/// Whether a word behind a device's name only tells its memory: "80gb", "hbm3".
bool is_about_memory(const std::string& word) {
  return word.starts_with("hbm") || (word.ends_with("gb") && std::isdigit(static_cast<unsigned char>(word[0])) != 0);
}

}  // namespace

const predict::DeviceProfile* profile_here(std::string_view device) {
  const std::vector<std::string> words = device_words_of(device);
  for (const predict::DeviceProfile& profile : predict::device_profiles()) {
    const std::vector<std::string> known = device_words_of(profile.gpu.substr(0, profile.gpu.find(',')));
    if (known.empty() || words.size() < known.size() || !std::equal(known.begin(), known.end(), words.begin()))
      continue;
    // "RTX 3060 Ti" and "RTX 4090 Laptop GPU" are other devices.
    if (std::all_of(words.begin() + static_cast<std::ptrdiff_t>(known.size()), words.end(), is_about_memory))
      return &profile;
  }
  return nullptr;
}

HubWeight weigh(const ModelConfig& config, uint64_t weight_bytes, std::string_view label, const HubHere& here) {
  HubWeight weight;
  weight.needed = needed_bytes(config, weight_bytes);
  ModelConfig labelled = config;
  labelled.quantization = type_of_label(label, config);
  if (const auto shape = shape_named(predict::shape_name(labelled)))
    weight.tokens_per_second = predicted_speed(*shape, here.device);
  return weight;
}

PairOffer weigh_pair(const KnownPair& pair, const HubHere& here) {
  PairOffer offer{pair, pair.target.gguf.empty() ? pair.target.repo : pair.target.gguf, "", {pair.memory, 0}};
  const bool folder = pair.target.gguf.empty() && !pair.target.repo.empty();
  const std::span<const char* const> offered =
      folder ? std::span<const char* const>(kFolderQuantizations) : std::span<const char* const>(kGgufQuantizations);
  std::optional<predict::NamedShape> shape;
  for (const char* quantization : offered) {
    auto tried = shape_named(shape_part(pair.target.name) + "-" + small_letters(quantization));
    if (!tried) break;
    if (pair.target.bytes > 0 && offer.target.empty()) {
      offer.weight.needed = needed_bytes(tried->config, pair.target.bytes) + pair.drafter.bytes;
      break;
    }
    offer.quantization = quantization;
    offer.weight.needed = needed_bytes(tried->config, weight_bytes_of(*tried)) + pair.drafter.bytes;
    shape = std::move(tried);
    if (here.available > 0 && offer.weight.needed <= here.available) break;
  }
  if (shape) offer.weight.tokens_per_second = predicted_speed(*shape, here.device);
  if (!pair.target.gguf.empty()) offer.target += ":" + (shape ? offer.quantization : std::string("Q4_K_M"));
  return offer;
}

const PairOffer* suiting_pair(const std::vector<PairOffer>& pairs, const HubHere& here) {
  const uint64_t most = here.processor ? here.available / 4 : here.available;
  const auto worth = [](const PairOffer& offer) { return std::pair(offer.weight.needed, !offer.pair.tried.empty()); };
  const PairOffer* best = nullptr;
  for (const PairOffer& each : pairs) {
    const bool fits = each.weight.needed > 0 && each.weight.needed <= most;
    if (!fits || each.target.empty() || each.pair.drafter.repo.empty()) continue;
    if (best == nullptr || worth(each) > worth(*best)) best = &each;
  }
  return best;
}

std::string memory_words(const HubWeight& weight, const HubHere& here) {
  if (weight.needed == 0) return "";
  if (here.available == 0) return "takes about " + byte_figures(weight.needed) + " of memory";
  const std::string fit = to_string(memory_table({{MemoryPart::target, weight.needed}}, {here.available, 0}).fit);
  return "takes about " + share_of_bytes(weight.needed, here.available) + ": " + small_letters(fit);
}

std::string speed_words(const HubWeight& weight) {
  if (weight.tokens_per_second <= 0) return "";
  return "predicted " + whole(weight.tokens_per_second) + " tok/s here, without guesses";
}

}  // namespace canopy::app
