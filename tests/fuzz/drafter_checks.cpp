#include "tests/fuzz/drafter_checks.h"

#include <algorithm>
#include <limits>

#include "engine/format/drafter_file.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/tensor_checks.h"

namespace canopy::fuzz {
namespace {

constexpr uint32_t beyond = std::numeric_limits<uint32_t>::max();

/// The smallest target with the layers and the vocabulary that the drafter needs.
ModelConfig target_of(const DrafterConfig& config) {
  ModelConfig target = config.transformer;
  target.layers = config.target_layers != 0 ? config.target_layers : *std::ranges::max_element(config.aux_layers) + 1;
  const uint32_t last = config.draft_token_ids.empty() ? 0 : config.draft_token_ids.back();
  target.vocab = config.vocab != 0 ? config.vocab : std::max(config.mask_token, last) + 1;
  return target;
}

bool fits(const ModelConfig& target, const DrafterConfig& drafter) {
  return accepted([&] {
    for (const std::string& warning : check_pair(target, drafter)) touch(warning);
  });
}

void check_pairs(const DrafterConfig& config) {
  // Skip configs that no target can fit: the highest possible number of a layer or token.
  if (config.mask_token == beyond || std::ranges::count(config.aux_layers, beyond) > 0) return;
  const ModelConfig fitting = target_of(config);
  require(fits(fitting, config), "a target that has what the drafter asks for is taken");
  ModelConfig other = fitting;
  other.hidden += 2;
  require(!fits(other, config), "a target of another hidden size is refused");
  other = fitting;
  other.layers = *std::ranges::max_element(config.aux_layers);
  require(!fits(other, config), "a target that lacks the layer of a tap is refused");
  other = fitting;
  other.vocab = config.mask_token;
  require(!fits(other, config), "a target whose vocabulary lacks the mask token is refused");
}

void require_same(const DrafterConfig& a, const DrafterConfig& b) {
  const ModelConfig &s = a.transformer, &t = b.transformer;
  require(s.layers == t.layers && s.hidden == t.hidden && s.heads == t.heads && s.kv_heads == t.kv_heads &&
              s.head_dim == t.head_dim && s.ffn == t.ffn && s.max_context == t.max_context,
          "the sizes of a drafter outlive GGUF");
  require(s.layer_heads == t.layer_heads && s.layer_kv_heads == t.layer_kv_heads && s.layer_ffn == t.layer_ffn,
          "the sizes of a drafter's layers outlive GGUF");
  require(a.attention == b.attention, "what layers see outlives GGUF");
  require(a.draft_shift == b.draft_shift && a.sample_from_anchor == b.sample_from_anchor && a.markov == b.markov &&
              a.conv == b.conv && a.selector == b.selector,
          "what rows of the block predict outlives GGUF");
  require(a.block_size == b.block_size && a.mask_token == b.mask_token && a.aux_layers == b.aux_layers,
          "block, mask and taps outlive GGUF");
  require(a.target_layers == b.target_layers && (a.vocab == b.vocab || a.vocab == 0),
          "what a drafter says of its target outlives GGUF");
  require(a.draft_token_ids == b.draft_token_ids && a.own_head == b.own_head, "the drafted tokens outlive GGUF");
  require(a.input_embedding_scale == b.input_embedding_scale && a.output_multiplier == b.output_multiplier &&
              a.final_logit_softcapping == b.final_logit_softcapping,
          "the scales of a drafter outlive GGUF");
}

/// Not every valid drafter can be written (aux layers beyond a signed number, weights too large); then it must be
/// refused.
void check_rewritten(const DrafterFile& drafter) {
  static ScratchFile file;
  const bool written = accepted([&] { file.write(drafter_gguf(drafter, {.type = TensorType::bf16})); });
  if (!written) return;
  require(accepted([&] { require_same(drafter.config(), DrafterFile::open(file.path()).config()); }),
          "what is written as GGUF can be read");
}

}  // namespace

void check_drafter_config(const DrafterConfig& config) {
  const ModelConfig& transformer = config.transformer;
  for (uint32_t n = 0; n < transformer.layers; ++n) {
    require(transformer.heads_of(n) % transformer.kv_heads_of(n) == 0, "heads can be shared");
  }
  require(transformer.head_dim % 2 == 0, "heads can be turned");
  require(config.block_size >= 2 && config.block_size <= max_draft_block, "a block is a root and mask rows");
  require(config.depths() >= 1 && config.first_slot() + config.depths() <= config.block_size,
          "every drafted token has a row");
  require(!config.aux_layers.empty() && config.attention.size() == transformer.layers,
          "there are taps, and a rule a layer");
  check_rotations(transformer);
  for (const RequiredTensor& tensor : required_drafter_tensors(config)) {
    require(tensor.rows > 0 && tensor.cols > 0, "every tensor has a shape");
  }
  check_pairs(config);
}

void check_drafter(const DrafterFile& drafter) {
  check_drafter_config(drafter.config());
  check_tensors(drafter.tensors());
  drafter.check_unchanged();
  for (const RequiredTensor& tensor : required_drafter_tensors(drafter.config())) {
    touch(drafter.require(tensor.name, tensor.rows, tensor.cols).bytes);
  }
  require(!tokenizer_difference(drafter.tokenizer(), drafter.tokenizer()), "a tokenizer is its own equal");
  check_rewritten(drafter);
}

void check_mtp_head(const MtpFile& head) {
  require(head.config().layers == 1 && head.find("fc") != nullptr,
          "what opens as a head is one layer behind a product");
  for (const TensorView& tensor : head.tensors()) touch(tensor.shown_name());
}

void check_assistant_file(const AssistantFile& assistant) {
  const AssistantConfig& config = assistant.config();
  const uint32_t hidden = config.layers.hidden;
  require(config.layers.shared_kv_layers == config.layers.layers, "an assistant has no keys of its own");
  assistant.require("pre_projection", hidden, 2 * uint64_t{config.target_hidden});
  assistant.require("post_projection", config.target_hidden, hidden);
  assistant.require("token_embd", config.layers.vocab, hidden);
  for (const uint32_t window : config.layers.windows) require(window != 1, "a window is more than the row itself");
  for (const TensorView& tensor : assistant.tensors()) touch(tensor.shown_name());
  touch(config.dialect);
}

void check_eagle_head(const EagleFile& head) {
  const EagleConfig& config = head.config();
  const uint32_t hidden = config.layer.hidden;
  require(config.layer.layers == 1, "a head has one layer");
  require(head.require("fc", hidden, config.feature_width()).cols() % config.taps() == 0, "a part of fc for each tap");
  require(std::ranges::is_sorted(config.aux_layers), "layers that are read ascend");
  require(config.draft_token_ids.empty() || config.draft_token_ids.back() < config.layer.vocab,
          "tokens that are drafted are of the vocabulary");
  if (head.has_own_output()) head.require("output", config.drafted_tokens(), hidden);
  if (head.has_own_embedding()) head.require("token_embd", config.layer.vocab, hidden);
  for (const TensorView& tensor : head.tensors()) touch(tensor.shown_name());
  touch(config.dialect);
}

}  // namespace canopy::fuzz
