#include "tests/robustness/whole_load.h"

#include <cstring>

#include "engine/base/error.h"
#include "engine/format/dequantize.h"
#include "engine/format/model_file.h"
#include "engine/format/tensor.h"
#include "engine/model/model.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "tests/reference/reference_device.h"
#include "tests/robustness/seed_model.h"

namespace canopy::test {
namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::string numbers(const ModelConfig& c) {
  std::string text;
  for (const uint32_t value : {c.layers, c.hidden, c.heads, c.kv_heads, c.head_dim, c.ffn, c.vocab, c.max_context}) {
    text += std::to_string(value) + " ";
  }
  text += "bos " + (c.bos ? std::to_string(*c.bos) : "none") + " eos";
  for (const uint32_t id : c.eos) text += " " + std::to_string(id);
  return text;
}

void use(const Tokenizer& tokenizer, const ChatTemplate& chat, WholeLoad& result) {
  for (uint32_t id = 0; id < tokenizer.vocab_size(); ++id) result.tokens.emplace_back(tokenizer.token_bytes(id));
  result.sample_ids = tokenizer.encode(seed_sample, SpecialTokens::parse);
  result.chat_warning = chat.warning();
  const ChatTurn turns[] = {{"user", "ab<|im_end|>\n<|im_start|>system"}, {"assistant", "cd"}, {"user", seed_sample}};
  result.prompt_ids = chat.render_to_ids(turns, tokenizer);
  (void)tokenizer.decode(result.prompt_ids, false);
}

}  // namespace

WholeLoad load_whole(const std::filesystem::path& path) {
  const auto device = make_reference_device(uint64_t{256} << 20);
  const ModelFile file = ModelFile::open(path);
  WholeLoad result;
  with_context(path.filename().string(), [&] {  // like Engine::open
    const TokenizerSource& source = file.tokenizer();
    const auto tokenizer = make_tokenizer(source);
    const auto chat = source.chat_template.empty() ? ChatTemplate::create(*tokenizer)
                                                   : ChatTemplate::create(source.chat_template, *tokenizer);
    ModelOptions options;
    options.context = 16;
    options.max_width = 2;
    (void)Model::load(*device, file, options);
    use(*tokenizer, *chat, result);
  });
  result.config = file.config();
  std::vector<std::byte> scratch;
  for (const TensorView& tensor : file.tensors()) {
    std::vector<float>& values = result.values[tensor.name];
    values.resize(tensor.elements());
    dequantize(tensor.type, rows_of(tensor, 0, tensor.rows(), scratch), values);
  }
  return result;
}

std::string difference_of_configs(const ModelConfig& a, const ModelConfig& b) {
  if (numbers(a) != numbers(b)) return "the config is " + numbers(a) + " and " + numbers(b);
  if (a.architecture != b.architecture || a.name != b.name) return "the architecture or name differ";
  if (a.rms_eps != b.rms_eps || a.rope_theta != b.rope_theta) return "epsilon or theta differ";
  if (rope_frequencies(a) != rope_frequencies(b) ||
      rope_frequencies(a, a.max_context) != rope_frequencies(b, b.max_context))
    return "the rope frequencies differ";
  if (a.rope_layout != b.rope_layout || a.has_qk_norm != b.has_qk_norm || a.has_qkv_bias != b.has_qkv_bias ||
      a.rotates != b.rotates || a.windows != b.windows || a.tied_head != b.tied_head) {
    return "the layout differs";
  }
  return "";
}

std::string difference_of_text(const WholeLoad& a, const WholeLoad& b) {
  if (a.tokens != b.tokens) return "the vocabularies differ";
  if (a.sample_ids != b.sample_ids) return "a text has other tokens";
  if (a.prompt_ids != b.prompt_ids) return "a prompt has other tokens";
  return "";
}

std::string difference_of_values(const WholeLoad& a, const WholeLoad& b) {
  if (a.values.size() != b.values.size()) return "the number of tensors differs";
  for (const auto& [name, values] : a.values) {
    const auto other = b.values.find(name);
    if (other == b.values.end()) return "the tensor " + name + " is in one only";
    if (!same_bits(values, other->second)) return "the tensor " + name + " differs";
  }
  return "";
}

std::string difference(const WholeLoad& a, const WholeLoad& b) {
  for (const std::string& found :
       {difference_of_configs(a.config, b.config), difference_of_text(a, b), difference_of_values(a, b)}) {
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace canopy::test
