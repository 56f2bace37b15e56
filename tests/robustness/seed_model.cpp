#include "tests/robustness/seed_model.h"

#include <cmath>
#include <cstdint>

#include "engine/base/numbers.h"
#include "tests/format/quantized_folder.h"

namespace canopy::test {
namespace {

constexpr uint32_t vocab = 24;

// In the byte-level alphabet Ġ is a space and Ċ a newline.
const std::vector<std::string> tokens = {"a",
                                         "b",
                                         "c",
                                         "d",
                                         "e",
                                         "f",
                                         "g",
                                         "h",
                                         "\xC4\xA0",
                                         "\xC4\x8A",
                                         "\xC3\x83",
                                         "\xC2\xA9",
                                         "ab",
                                         "cd",
                                         "abcd",
                                         "\xC4\xA0\x61",
                                         "\xC4\xA0\x61\x62",
                                         "<think>",
                                         "<s>",
                                         "<|im_start|>",
                                         "<|im_end|>"};
const std::vector<std::string> merges = {"a b", "c d", "ab cd", "\xC4\xA0 a", "\xC4\xA0\x61 b"};
constexpr uint32_t first_added = 17, bos = 18, eos = 20;

const char* const chat_template =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// Small numbers around zero that differ from each other; the same for each call with the same seed.
class Numbers {
 public:
  explicit Numbers(uint32_t seed) : state_(seed) {}
  float real() { return static_cast<float>(byte()) / 128.0f - 1.0f; }
  uint8_t byte() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<uint8_t>(state_ >> 24);
  }

 private:
  uint32_t state_;
};

/// The bytes at the beginning of a block (or all of it for a type of one element): a small number in the type's form.
std::string block_start(TensorType type, Numbers& numbers) {
  const auto scale = [&] { return le(f32_to_f16(numbers.real() / 64)); };
  switch (type) {
    case TensorType::f32: return le(numbers.real());
    case TensorType::f16: return le(f32_to_f16(numbers.real()));
    case TensorType::bf16: return le(f32_to_bf16(numbers.real()));
    case TensorType::mxfp4: return le<uint8_t>(120);  // 2^-7
    case TensorType::q4_1:
    case TensorType::q5_1: return scale() + scale();
    default: return scale();
  }
}

std::string matrix_data(TensorType type, uint64_t elements, uint32_t seed) {
  Numbers numbers(seed);
  const TensorTypeInfo& info = tensor_type_info(type);
  std::string data;
  for (uint64_t block = 0; block < elements / info.block_elements; ++block) {
    std::string bytes = block_start(type, numbers);
    while (bytes.size() < info.block_bytes) bytes += static_cast<char>(numbers.byte());
    data += bytes;
  }
  return data;
}

GgufBuilder seed_gguf_without_tokenizer() {
  GgufBuilder b;
  b.text("general.architecture", "llama").text("general.name", "seed");
  b.value<uint32_t>("llama.block_count", 1).value<uint32_t>("llama.context_length", 64);
  b.value<uint32_t>("llama.embedding_length", 32).value<uint32_t>("llama.feed_forward_length", 32);
  b.value<uint32_t>("llama.attention.head_count", 2).value<uint32_t>("llama.attention.head_count_kv", 1);
  b.value<float>("llama.attention.layer_norm_rms_epsilon", 1e-5f).value<float>("llama.rope.freq_base", 10000.0f);
  uint32_t seed = 1;
  const auto matrix = [&](const char* name, TensorType type, uint64_t rows, uint64_t cols) {
    b.tensor(name, {cols, rows}, type, matrix_data(type, rows * cols, seed++));
  };
  const auto norm = [&](const char* name) {
    b.tensor(name, {32}, TensorType::f32, matrix_data(TensorType::f32, 32, seed++));
  };
  matrix("token_embd.weight", TensorType::q8_0, vocab, 32);
  norm("output_norm.weight");
  norm("blk.0.attn_norm.weight");
  matrix("blk.0.attn_q.weight", TensorType::q4_0, 32, 32);
  matrix("blk.0.attn_k.weight", TensorType::q4_1, 16, 32);
  matrix("blk.0.attn_v.weight", TensorType::q5_0, 16, 32);
  matrix("blk.0.attn_output.weight", TensorType::iq4_nl, 32, 32);
  b.tensor("blk.0.ffn_norm.weight", {32}, TensorType::bf16, matrix_data(TensorType::bf16, 32, seed++));
  matrix("blk.0.ffn_gate.weight", TensorType::q5_1, 32, 32);
  matrix("blk.0.ffn_up.weight", TensorType::mxfp4, 32, 32);
  matrix("blk.0.ffn_down.weight", TensorType::q4_0, 32, 32);
  return b;
}

/// A JSON string; only the escapes that the seeds need.
std::string json_text(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + "\"";
}

std::string tokenizer_json() {
  std::string text = R"({"added_tokens":[)";
  for (size_t id = first_added; id < tokens.size(); ++id) {
    text += (id == first_added ? "" : ",") + std::string("{\"id\":") + std::to_string(id) +
            ",\"content\":" + json_text(tokens[id]) + ",\"special\":" + (id == first_added ? "false}" : "true}");
  }
  text +=
      R"(],"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":)"
      R"({"Regex":"\\s?\\p{L}+|\\s|."},"behavior":"Isolated","invert":false},{"type":"ByteLevel",)"
      R"("add_prefix_space":false,"use_regex":false}]},"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{)";
  for (size_t id = 0; id < first_added; ++id) {
    text += (id == 0 ? "" : ",") + json_text(tokens[id]) + ":" + std::to_string(id);
  }
  text += "},\"merges\":[";
  for (size_t i = 0; i < merges.size(); ++i) text += (i == 0 ? "" : ",") + json_text(merges[i]);
  return text + "]}}";
}

std::string tokenizer_config_json() {
  return R"({"bos_token":"<s>","eos_token":{"content":"<|im_end|>"},"add_bos_token":false,"chat_template":)" +
         json_text(chat_template) + "}";
}

std::string config_json() {
  return R"({"architectures":["LlamaForCausalLM"],"hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,)"
         R"("num_key_value_heads":1,"intermediate_size":8,"vocab_size":24,"max_position_embeddings":64,)"
         R"("rms_norm_eps":1e-05,"rope_theta":10000.0,"rope_scaling":{"rope_type":"llama3","factor":8.0,)"
         R"("low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":32},)"
         R"("tie_word_embeddings":true,"hidden_act":"silu","attention_bias":false,"bos_token_id":18,"eos_token_id":20})";
}

struct HfTensor {
  const char* name;
  const char* dtype;
  TensorType type;
  std::vector<uint64_t> shape;
};

const std::vector<HfTensor> hf_tensors = {
    {"model.embed_tokens.weight", "BF16", TensorType::bf16, {vocab, 8}},
    {"model.norm.weight", "F32", TensorType::f32, {8}},
    {"model.layers.0.input_layernorm.weight", "F16", TensorType::f16, {8}},
    {"model.layers.0.self_attn.q_proj.weight", "BF16", TensorType::bf16, {8, 8}},
    {"model.layers.0.self_attn.k_proj.weight", "F16", TensorType::f16, {4, 8}},
    {"model.layers.0.self_attn.v_proj.weight", "F32", TensorType::f32, {4, 8}},
    {"model.layers.0.self_attn.o_proj.weight", "F16", TensorType::f16, {8, 8}},
    {"model.layers.0.post_attention_layernorm.weight", "BF16", TensorType::bf16, {8}},
    {"model.layers.0.mlp.gate_proj.weight", "BF16", TensorType::bf16, {8, 8}},
    {"model.layers.0.mlp.up_proj.weight", "BF16", TensorType::bf16, {8, 8}},
    {"model.layers.0.mlp.down_proj.weight", "F16", TensorType::f16, {8, 8}},
};

const std::vector<HfTensor> hf_drafter_tensors = {
    {"fc.weight", "BF16", TensorType::bf16, {8, 8}},
    {"hidden_norm.weight", "F32", TensorType::f32, {8}},
    {"norm.weight", "BF16", TensorType::bf16, {8}},
    {"layers.0.input_layernorm.weight", "BF16", TensorType::bf16, {8}},
    {"layers.0.post_attention_layernorm.weight", "F32", TensorType::f32, {8}},
    {"layers.0.self_attn.q_proj.weight", "BF16", TensorType::bf16, {8, 8}},
    {"layers.0.self_attn.k_proj.weight", "F16", TensorType::f16, {4, 8}},
    {"layers.0.self_attn.v_proj.weight", "BF16", TensorType::bf16, {4, 8}},
    {"layers.0.self_attn.o_proj.weight", "BF16", TensorType::bf16, {8, 8}},
    {"layers.0.mlp.gate_proj.weight", "BF16", TensorType::bf16, {8, 8}},
    {"layers.0.mlp.up_proj.weight", "F32", TensorType::f32, {8, 8}},
    {"layers.0.mlp.down_proj.weight", "F16", TensorType::f16, {8, 8}},
};

void add_tensor(SafetensorsBuilder& b, const HfTensor& tensor, uint32_t seed) {
  uint64_t elements = 1;
  for (const uint64_t extent : tensor.shape) elements *= extent;
  b.tensor(tensor.name, tensor.dtype, tensor.shape, matrix_data(tensor.type, elements, seed));
}

/// A file of the tensors [begin, end) of the model.
std::string safetensors(size_t begin, size_t end) {
  SafetensorsBuilder b;
  for (size_t i = begin; i < end; ++i) add_tensor(b, hf_tensors[i], static_cast<uint32_t>(100 + i));
  return b.build();
}

/// A field of Protocol Buffers with a length, which here takes one or two bytes.
std::string proto_field(uint32_t number, std::string_view bytes) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  if (bytes.size() >= 128) field += static_cast<char>(0x80 | (bytes.size() & 0x7f));
  field += static_cast<char>(bytes.size() >= 128 ? bytes.size() >> 7 : bytes.size());
  return field + std::string(bytes);
}

std::string proto_number(uint32_t number, uint8_t value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}

}  // namespace

GgufBuilder seed_gguf() {
  GgufBuilder b = seed_gguf_without_tokenizer();
  b.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "smollm");
  b.texts("tokenizer.ggml.tokens", tokens).texts("tokenizer.ggml.merges", merges);
  std::vector<int32_t> types(tokens.size(), 1);
  types[first_added] = 4;
  for (size_t id = bos; id < types.size(); ++id) types[id] = 3;
  b.numbers<int32_t>("tokenizer.ggml.token_type", types);
  b.value<uint32_t>("tokenizer.ggml.bos_token_id", bos).value<uint32_t>("tokenizer.ggml.eos_token_id", eos);
  b.value<bool>("tokenizer.ggml.add_bos_token", false).text("tokenizer.chat_template", chat_template);
  return b;
}

GgufBuilder seed_gguf_with_scores() {
  GgufBuilder b = seed_gguf_without_tokenizer();
  b.text("tokenizer.ggml.model", "llama");
  const std::vector<std::string> pieces = {
      "<unk>", "<s>", "</s>", "<0x0A>",           "<0xC3>", "<0xA9>", "\xE2\x96\x81", "a", "b",
      "c",     "d",   "ab",   "\xE2\x96\x81\x61", "abcd",   "cd"};
  b.texts("tokenizer.ggml.tokens", pieces);
  b.numbers<int32_t>("tokenizer.ggml.token_type", {2, 3, 3, 6, 6, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  b.numbers<float>("tokenizer.ggml.scores", {0, 0, 0, 0, 0, 0, -9, -10, -11, -12, -13, -1, -2, -4, -3});
  return b;
}

GgufBuilder seed_drafter_gguf() {
  GgufBuilder b;
  b.text("general.architecture", "dflash").text("general.name", "seed drafter");
  b.value<uint32_t>("dflash.block_count", 1).value<uint32_t>("dflash.context_length", 64);
  b.value<uint32_t>("dflash.embedding_length", 32).value<uint32_t>("dflash.feed_forward_length", 32);
  b.value<uint32_t>("dflash.attention.head_count", 2).value<uint32_t>("dflash.attention.head_count_kv", 1);
  b.value<uint32_t>("dflash.attention.key_length", 16).value<uint32_t>("dflash.attention.sliding_window", 8);
  b.numbers<bool>("dflash.attention.sliding_window_pattern", {true});
  b.value<float>("dflash.attention.layer_norm_rms_epsilon", 1e-5f).value<float>("dflash.rope.freq_base", 10000.0f);
  b.value<uint32_t>("dflash.block_size", 4).numbers<int32_t>("dflash.target_layers", {1});
  b.value<uint32_t>("dflash.num_target_layers", 1).value<float>("dflash.final_logit_softcapping", 30);
  b.value<uint32_t>("tokenizer.ggml.mask_token_id", first_added);
  uint32_t seed = 50;
  const auto tensor = [&](const char* name, TensorType type, uint64_t rows) {
    b.tensor(name, {32, rows}, type, matrix_data(type, rows * 32, seed++));
  };
  const auto norm = [&](const char* name, uint64_t size) {
    b.tensor(name, {size}, TensorType::f32, matrix_data(TensorType::f32, size, seed++));
  };
  tensor("fc.weight", TensorType::q8_0, 32);
  norm("enc.output_norm.weight", 32);
  norm("output_norm.weight", 32);
  norm("blk.0.attn_norm.weight", 32);
  norm("blk.0.ffn_norm.weight", 32);
  norm("blk.0.attn_q_norm.weight", 16);
  norm("blk.0.attn_k_norm.weight", 16);
  tensor("blk.0.attn_q.weight", TensorType::q4_0, 32);
  tensor("blk.0.attn_k.weight", TensorType::q8_0, 16);
  tensor("blk.0.attn_v.weight", TensorType::q4_1, 16);
  tensor("blk.0.attn_output.weight", TensorType::q5_0, 32);
  tensor("blk.0.ffn_gate.weight", TensorType::q8_0, 32);
  tensor("blk.0.ffn_up.weight", TensorType::q8_0, 32);
  tensor("blk.0.ffn_down.weight", TensorType::iq4_nl, 32);
  return b;
}

std::vector<SeedFile> seed_drafter_folder() {
  SafetensorsBuilder b;
  for (size_t i = 0; i < hf_drafter_tensors.size(); ++i)
    add_tensor(b, hf_drafter_tensors[i], static_cast<uint32_t>(150 + i));
  return {
      {"config.json",
       R"({"architectures":["DFlashDraftModel"],"hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,)"
       R"("num_key_value_heads":1,"head_dim":4,"intermediate_size":8,"vocab_size":24,"max_position_embeddings":64,)"
       R"("rms_norm_eps":1e-05,"rope_theta":10000.0,"num_target_layers":1,"layer_types":["full_attention"],)"
       R"("input_embedding_scale":1.5,"dflash_config":{"block_size":4,"mask_token_id":17,"target_layer_ids":[0]}})"},
      {"model.safetensors", b.build()}};
}

std::vector<SeedFile> seed_folder() {
  return {{"config.json", config_json()},
          {"generation_config.json", R"({"bos_token_id":18,"eos_token_id":[20,19],"temperature":0.7})"},
          {"tokenizer.json", tokenizer_json()},
          {"tokenizer_config.json", tokenizer_config_json()},
          {"model.safetensors", safetensors(0, hf_tensors.size())}};
}

std::vector<SeedFile> seed_packed_folder(const std::string& method) {
  const std::string quantization = method == "fp8" ? R"({"quant_method":"fp8","weight_block_size":[16,32]})"
                                                   : R"({"quant_method":")" + method + R"(","bits":4,"group_size":32})";
  SafetensorsBuilder b;
  uint32_t seed = 200;
  const auto matrix = [&](const std::string& name, uint64_t rows) {
    FourBitForm form;
    form.symmetric = method == "gptq";
    form.act_order = name.ends_with("o_proj");
    if (method == "gptq") add_gptq(b, name, random_four_bit(rows, 32, 32, seed++, form), 1, form.act_order);
    if (method == "awq") add_awq(b, name, random_four_bit(rows, 32, 32, seed++));
    if (method != "fp8") return;
    const Fp8 m = random_fp8(rows, 32, 16, 32, seed++);
    b.tensor(name + ".weight", "F8_E4M3", {rows, 32}, m.elements);
    b.tensor(name + ".weight_scale_inv", "BF16", {m.down(), m.across()}, stored_scales(m.scales, "BF16"));
  };
  const auto vector = [&](const std::string& name, uint64_t rows) {
    b.tensor(name, "F16", rows == 1 ? std::vector<uint64_t>{32} : std::vector<uint64_t>{rows, 32},
             matrix_data(TensorType::f16, rows * 32, seed++));
  };
  const std::string layer = "model.layers.0.";
  vector("model.embed_tokens.weight", vocab);
  vector("model.norm.weight", 1);
  vector(layer + "input_layernorm.weight", 1);
  vector(layer + "post_attention_layernorm.weight", 1);
  for (const char* name : {"self_attn.q_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
    matrix(layer + name, 32);
  }
  for (const char* name : {"self_attn.k_proj", "self_attn.v_proj"}) matrix(layer + name, 16);
  return {{"config.json",
           R"({"architectures":["LlamaForCausalLM"],"hidden_size":32,"num_hidden_layers":1,"num_attention_heads":2,)"
           R"("num_key_value_heads":1,"intermediate_size":32,"vocab_size":24,"max_position_embeddings":64,)"
           R"("rms_norm_eps":1e-05,"tie_word_embeddings":true,"bos_token_id":18,"eos_token_id":20,)"
           R"("quantization_config":)" +
               quantization + "}"},
          {"tokenizer.json", tokenizer_json()},
          {"tokenizer_config.json", tokenizer_config_json()},
          {"model.safetensors", b.build()}};
}

std::vector<SeedFile> seed_folder_with_shards() {
  constexpr size_t cut = 5;
  std::string index = R"({"metadata":{"total_size":1},"weight_map":{)";
  for (size_t i = 0; i < hf_tensors.size(); ++i) {
    index += (i == 0 ? "" : ",") + json_text(hf_tensors[i].name) + ":" +
             json_text(i < cut ? "a.safetensors" : "b.safetensors");
  }
  return {{"config.json", config_json()},
          {"tokenizer.model", seed_sentencepiece_model()},
          {"model.safetensors.index.json", index + "}}"},
          {"a.safetensors", safetensors(0, cut)},
          {"b.safetensors", safetensors(cut, hf_tensors.size())}};
}

std::string seed_sentencepiece_model(const std::string& table) {
  constexpr uint8_t normal = 1, unknown = 2, control = 3;
  std::string model;
  const auto piece = [&](std::string_view text, float score, uint8_t type) {
    std::string fields = proto_field(1, text) + static_cast<char>(2 << 3 | 5) + le(score);
    if (type != normal) fields += proto_number(3, type);
    model += proto_field(1, fields);
  };
  piece("<unk>", 0, unknown);
  piece("<s>", 0, control);
  piece("</s>", 0, control);
  float score = 0;
  for (const char* text : {"ab", "\xE2\x96\x81\x61", "cd", "abcd", "\xE2\x96\x81", "a", "b", "c", "d", "e", "f"}) {
    piece(text, --score, normal);
  }
  constexpr uint8_t bpe = 2;
  model += proto_field(2, proto_number(3, bpe));
  const std::string rules =
      table.empty() ? proto_field(1, "identity") : proto_field(1, "rules") + proto_field(2, table);
  model += proto_field(3, rules + proto_number(3, 1) + proto_number(4, 0) + proto_number(5, 1));
  return model;
}

}  // namespace canopy::test
