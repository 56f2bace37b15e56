// A drafter written as GGUF and read back is the same drafter; the golden one is written as by llama.cpp's converter.

#include "engine/format/drafter_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/format/dequantize.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/golden_path.h"
#include "tests/format/tiny_drafter.h"

namespace canopy {
namespace {

using test::golden;
using test::TempFolder;

DrafterFile reread(const TempFolder& folder, const DrafterFile& drafter, const DrafterGgufOptions& options) {
  return DrafterFile::open(folder.write("out.gguf", drafter_gguf(drafter, options)));
}

std::vector<float> floats(const TensorView& tensor) {
  std::vector<float> out(tensor.elements());
  dequantize(tensor.type, tensor.bytes, out);
  return out;
}

/// Compares everything but the name, the dialect and what depends on the type of the weights.
void expect_same_config(const DrafterConfig& a, const DrafterConfig& b) {
  EXPECT_EQ(a.transformer.layers, b.transformer.layers);
  EXPECT_EQ(a.transformer.hidden, b.transformer.hidden);
  EXPECT_EQ(a.transformer.heads, b.transformer.heads);
  EXPECT_EQ(a.transformer.kv_heads, b.transformer.kv_heads);
  EXPECT_EQ(a.transformer.layer_heads, b.transformer.layer_heads);
  EXPECT_EQ(a.transformer.layer_kv_heads, b.transformer.layer_kv_heads);
  EXPECT_EQ(a.transformer.head_dim, b.transformer.head_dim);
  EXPECT_EQ(a.transformer.ffn, b.transformer.ffn);
  EXPECT_EQ(a.transformer.layer_ffn, b.transformer.layer_ffn);
  EXPECT_EQ(a.transformer.max_context, b.transformer.max_context);
  EXPECT_EQ(a.transformer.rms_eps, b.transformer.rms_eps);
  EXPECT_EQ(a.transformer.rope_theta, b.transformer.rope_theta);
  EXPECT_EQ(a.transformer.rope_layout, b.transformer.rope_layout);
  EXPECT_EQ(a.transformer.has_qk_norm, b.transformer.has_qk_norm);
  EXPECT_EQ(a.transformer.parameters, b.transformer.parameters);
  EXPECT_EQ(a.attention, b.attention);
  EXPECT_EQ(a.block_size, b.block_size);
  EXPECT_EQ(a.draft_shift, b.draft_shift);
  EXPECT_EQ(a.sample_from_anchor, b.sample_from_anchor);
  EXPECT_EQ(a.markov, b.markov);
  EXPECT_EQ(a.conv, b.conv);
  EXPECT_EQ(a.selector, b.selector);
  EXPECT_EQ(a.mask_token, b.mask_token);
  EXPECT_EQ(a.aux_layers, b.aux_layers);
  EXPECT_EQ(a.target_layers, b.target_layers);
  EXPECT_EQ(a.vocab, b.vocab);
  EXPECT_EQ(a.input_embedding_scale, b.input_embedding_scale);
  EXPECT_EQ(a.output_multiplier, b.output_multiplier);
  EXPECT_EQ(a.final_logit_softcapping, b.final_logit_softcapping);
}

TEST(DrafterGguf, Bf16AndNormsKeepEveryBit) {
  const TempFolder folder;
  const DrafterFile original = DrafterFile::open(golden("tiny-qwen3-dflash-b8"));
  const DrafterFile copy = reread(folder, original, {.type = TensorType::bf16});
  expect_same_config(copy.config(), original.config());
  EXPECT_EQ(copy.config().dialect, "dflash (llama.cpp)");
  ASSERT_EQ(copy.tensors().size(), original.tensors().size());
  for (const TensorView& tensor : original.tensors()) {
    const TensorView& written = copy.require(tensor.name, tensor.rows(), tensor.cols());
    EXPECT_EQ(written.type, tensor.rank == 1 ? TensorType::f32 : TensorType::bf16) << tensor.name;
    EXPECT_EQ(floats(written), floats(tensor)) << tensor.name;
  }
}

TEST(DrafterGguf, Q8IsWithinHalfAStep) {
  const TempFolder folder;
  const DrafterFile original = DrafterFile::open(golden("tiny-qwen3-dflash-b8"));
  const DrafterFile copy = reread(folder, original, {});
  expect_same_config(copy.config(), original.config());
  EXPECT_EQ(copy.config().transformer.quantization, "Q8_0");
  for (const TensorView& tensor : original.tensors()) {
    const std::vector<float> want = floats(tensor);
    const std::vector<float> got = floats(copy.require(tensor.name, tensor.rows(), tensor.cols()));
    if (tensor.rank == 1) {
      EXPECT_EQ(got, want) << tensor.name;
      continue;
    }
    for (size_t block = 0; block < want.size(); block += 32) {
      float largest = 0;
      for (size_t i = block; i < block + 32; ++i) largest = std::max(largest, std::abs(want[i]));
      // Half a step, and a little more because the scale is rounded to a half.
      for (size_t i = block; i < block + 32; ++i) {
        ASSERT_NEAR(got[i], want[i], largest / 127 * 0.5f * 1.01f) << tensor.name << " " << i;
      }
    }
  }
}

void expect_what_llama_cpp_writes(const std::string& name) {
  SCOPED_TRACE(name);
  const TempFolder folder;
  const DrafterFile theirs = DrafterFile::open(golden(name + "-f16.gguf"));
  const GgufFile target = GgufFile::open(golden("tiny-qwen3-f16.gguf"));
  const DrafterFile ours =
      reread(folder, DrafterFile::open(golden(name)), {.type = TensorType::f16, .name = name, .tokenizer = &target});
  expect_same_config(ours.config(), DrafterFile::open(golden(name)).config());
  for (const TensorView& tensor : theirs.tensors()) {
    const TensorView& written = ours.require(tensor.name, tensor.rows(), tensor.cols());
    EXPECT_EQ(written.type, tensor.type) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(written.bytes, tensor.bytes)) << tensor.name;
  }
  // Every entry of their file is in ours with the same bytes, except sizes that are only for readers.
  for (const GgufValue& value : theirs.file().gguf()->metadata()) {
    if (value.key == "general.size_label") continue;
    if (value.key == "dflash.attention.causal" && value.unsigned_value == 0) continue;  // as full layers are
    const GgufValue* written = ours.file().gguf()->find(value.key);
    ASSERT_NE(written, nullptr) << value.key;
    EXPECT_EQ(written->type, value.type) << value.key;
    EXPECT_EQ(written->unsigned_value, value.unsigned_value) << value.key;
    EXPECT_EQ(written->float_value, value.float_value) << value.key;
    EXPECT_EQ(written->text, value.text) << value.key;
    EXPECT_TRUE(std::ranges::equal(written->elements, value.elements)) << value.key;
  }
}

TEST(DrafterGguf, F16IsWhatLlamaCppWrites) {
  for (const char* name : {"tiny-qwen3-dflash-b8", "tiny-qwen3-jetspec", "tiny-qwen3-dspark", "tiny-qwen3-dflash2"}) {
    expect_what_llama_cpp_writes(name);
  }
}

TEST(DrafterGguf, ASelectorNeedsAsManyTokensAsItChoosesAmong) {
  const TempFolder folder;
  const DrafterFile original = DrafterFile::open(golden("tiny-qwen3-dflash2"));
  test::expect_error("The list of tokens to draft names 3; the drafter's candidate selector chooses among 8", [&] {
    drafter_gguf(original, {.draft_token_ids = {1, 2, 3}});
  });
  const DrafterFile copy = reread(folder, original, {.draft_token_ids = {1, 2, 3, 5, 8, 13, 21, 34}});
  EXPECT_EQ(copy.config().selector, original.config().selector);
}

TEST(DrafterGguf, Q8OfAMarkovHeadIsReadBack) {
  const TempFolder folder;
  const DrafterFile original = DrafterFile::open(golden("tiny-qwen3-dspark"));
  const DrafterFile copy = reread(folder, original, {});
  expect_same_config(copy.config(), original.config());
  EXPECT_EQ(copy.require("conf_proj", 1, 112).type, TensorType::f32) << "one row is no matrix";
  EXPECT_EQ(copy.require("markov_w1", 1010, 16).type, TensorType::f32) << "rows of 16 are no whole blocks";
}

TEST(DrafterGguf, StatesOriginAndLicence) {
  const DrafterFile original = DrafterFile::open(golden("tiny-qwen3-dflash-b8"));
  const std::string bytes = drafter_gguf(original, {.name = "N", .license = "apache-2.0", .source = "From here."});
  const GgufFile file = GgufFile::parse(test::as_bytes(bytes));
  EXPECT_EQ(file.text("general.name"), "N");
  EXPECT_EQ(file.text("general.license"), "apache-2.0");
  EXPECT_EQ(file.text("general.description"), "From here.");
  EXPECT_EQ(file.find("tokenizer.ggml.tokens"), nullptr);
}

/// A file of the tiny drafter with all fields that a config can have.
test::GgufBuilder elaborate_drafter() {
  test::GgufBuilder b = test::tiny_drafter_gguf();
  b.value<uint32_t>("dflash.attention.sliding_window", 16);
  b.numbers<bool>("dflash.attention.sliding_window_pattern", {true, false});
  b.value<bool>("dflash.attention.causal", false).value<bool>("dflash.draft_shift", true);
  b.value<float>("dflash.embedding_scale", 2.5f).value<float>("dflash.logit_scale", 0.5f);
  b.value<float>("dflash.final_logit_softcapping", 30.0f).value<uint32_t>("dflash.num_target_layers", 4);
  b.text("dflash.rope.scaling.type", "linear").value<float>("dflash.rope.scaling.factor", 2.0f);
  return b;
}

TEST(DrafterGguf, KeepsEveryFieldOfTheConfig) {
  const TempFolder folder;
  const DrafterFile original = DrafterFile::open(folder.write("in.gguf", elaborate_drafter().build()));
  const DrafterFile copy = reread(folder, original, {});
  expect_same_config(copy.config(), original.config());
  EXPECT_EQ(copy.config().attention, (std::vector<DrafterAttention>{{16, false}, {0, false}}));
  EXPECT_EQ(copy.config().transformer.rope_scaling.factor, 2);
  EXPECT_EQ(copy.config().transformer.name, "tiny-drafter");
  EXPECT_EQ(copy.require("fc", 8, 16).type, TensorType::f32) << "rows of 16 are no whole blocks of 32";
}

TEST(DrafterGguf, StoresTheScalingOfLlama3AsFactors) {
  const TempFolder folder;
  folder.write("config.json",
               test::tiny_drafter_config(R"(,"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,)"
                                         R"("high_freq_factor":4,"original_max_position_embeddings":16})"));
  folder.write("model.safetensors", test::tiny_drafter_safetensors().build());
  const DrafterFile original = DrafterFile::open(folder.path());
  const DrafterFile copy = reread(folder, original, {});
  EXPECT_EQ(copy.config().transformer.rope_scaling.kind, RopeScaling::Kind::factors);
  const std::vector<double> want = rope_frequencies(original.config().transformer);
  const std::vector<double> got = rope_frequencies(copy.config().transformer);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6 * want[i]);
}

TEST(DrafterGguf, KeepsWidthsOfLayers) {
  const TempFolder folder;
  test::GgufBuilder b = test::tiny_drafter_gguf();
  b.without("dflash.feed_forward_length").numbers<uint32_t>("dflash.feed_forward_length", {16, 32});
  for (test::GgufBuilder::Tensor& tensor : b.tensors) {
    if (!tensor.name.starts_with("blk.1.ffn_") || tensor.dimensions.size() != 2) continue;
    tensor.dimensions[tensor.name.find("down") == std::string::npos ? 1 : 0] = 32;
    tensor.data += tensor.data;
  }
  const DrafterFile original = DrafterFile::open(folder.write("in.gguf", b.build()));
  EXPECT_EQ(original.config().transformer.layer_ffn, (std::vector<uint32_t>{16, 32}));
  expect_same_config(reread(folder, original, {.type = TensorType::bf16}).config(), original.config());
}

TEST(DrafterGguf, KeepsNumbersOfHeadsOfLayers) {
  const TempFolder folder;
  test::GgufBuilder b = test::tiny_drafter_gguf();
  b.without("dflash.attention.head_count").numbers<uint32_t>("dflash.attention.head_count", {2, 4});
  b.without("dflash.attention.head_count_kv").numbers<uint32_t>("dflash.attention.head_count_kv", {1, 2});
  for (test::GgufBuilder::Tensor& tensor : b.tensors) {
    if (!tensor.name.starts_with("blk.1.attn_") || tensor.dimensions.size() != 2) continue;
    tensor.dimensions[tensor.name.find("output") == std::string::npos ? 1 : 0] *= 2;
    tensor.data += tensor.data;
  }
  const DrafterFile original = DrafterFile::open(folder.write("in.gguf", b.build()));
  EXPECT_EQ(original.config().transformer.layer_heads, (std::vector<uint32_t>{2, 4}));
  EXPECT_EQ(original.config().transformer.layer_kv_heads, (std::vector<uint32_t>{1, 2}));
  expect_same_config(reread(folder, original, {.type = TensorType::bf16}).config(), original.config());
}

TEST(DrafterGguf, RefusesLayersOfWhichOneWindowIsCausal) {
  const TempFolder folder;
  folder.write("config.json", test::tiny_drafter_config(R"(,"layer_types":["full_attention","sliding_attention"])",
                                                        R"(,"use_swa":true,"swa_window_size":16)"));
  folder.write("model.safetensors", test::tiny_drafter_safetensors().build());
  test::expect_error("GGUF says for all layers of a drafter at once whether they see the block in both directions",
                     [&] { reread(folder, DrafterFile::open(folder.path()), {}); });
}

TEST(DrafterGguf, KeepsYarn) {
  const TempFolder folder;
  const std::string scaling = R"(,"rope_scaling":{"rope_type":"yarn","factor":8,"attention_factor":1.5,)"
                              R"("beta_fast":16,"original_max_position_embeddings":16)";
  folder.write("config.json", test::tiny_drafter_config(scaling + "}"));
  folder.write("model.safetensors", test::tiny_drafter_safetensors().build());
  const DrafterFile original = DrafterFile::open(folder.path());
  const RopeScaling copy = reread(folder, original, {}).config().transformer.rope_scaling;
  EXPECT_EQ(copy.kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(copy.factor, 8);
  EXPECT_EQ(copy.original_context, 16u);
  EXPECT_EQ(copy.beta_fast, 16);
  EXPECT_NEAR(copy.magnitude, 1.5, 1e-6);
  folder.write("config.json", test::tiny_drafter_config(scaling + R"(,"truncate":false})"));
  test::expect_error("'truncate' off", [&] { reread(folder, DrafterFile::open(folder.path()), {}); });
}

TEST(DrafterGguf, KeepsTheGrowthOfQueries) {
  const TempFolder folder;
  folder.write("model.safetensors", test::tiny_drafter_safetensors().build());
  for (const std::string type : {R"("yarn","factor":8)", R"("default")"}) {
    folder.write("config.json", test::tiny_drafter_config(R"(,"rope_scaling":{"llama_4_scaling_beta":0.25,)"
                                                          R"("original_max_position_embeddings":16,"rope_type":)" +
                                                          type + "}"));
    const DrafterFile original = DrafterFile::open(folder.path());
    const RopeScaling copy = reread(folder, original, {}).config().transformer.rope_scaling;
    EXPECT_EQ(copy.query_growth, 0.25) << type;
    EXPECT_EQ(copy.original_context, 16u) << type;
    EXPECT_EQ(copy.kind, original.config().transformer.rope_scaling.kind) << type;
  }
}

TEST(DrafterGguf, ShiftsTheTapsOfTheForksAndDropsTheirVocabulary) {
  const TempFolder folder;
  test::GgufBuilder b = test::tiny_fork_drafter("qwen35-dflash-draft");
  b.zeros("token_embd.weight", {8, 10});
  const DrafterFile original = DrafterFile::open(folder.write("in.gguf", b.build()));
  const DrafterFile copy = reread(folder, original, {.type = TensorType::f16});
  EXPECT_EQ(copy.config().aux_layers, original.config().aux_layers);
  EXPECT_EQ(copy.file().gguf()->i32s("dflash.target_layers"), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(copy.find("token_embd"), nullptr);
  EXPECT_EQ(copy.tensors().size(), 25u);
}

/// The tiny drafter with one given value in fc.
DrafterFile with_value(const TempFolder& folder, float value) {
  test::GgufBuilder b = test::tiny_drafter_gguf();
  std::string data(16 * 8 * 4, '\0');
  data.replace(4, 4, test::le(value));
  b.without_tensor("fc.weight").tensor("fc.weight", {16, 8}, TensorType::f32, data);
  return DrafterFile::open(folder.write("in.gguf", b.build()));
}

TEST(DrafterGguf, RefusesValuesThatTheTypeCannotHold) {
  const TempFolder folder;
  test::expect_error("Row 0 of the tensor 'fc' of type F32 holds an element that is infinite or not a number",
                     [&] { drafter_gguf(with_value(folder, std::numeric_limits<float>::quiet_NaN()), {}); });
  test::expect_error("Writing row 0 of the tensor 'fc': The value 70000.000000 is too large for F16",
                     [&] { drafter_gguf(with_value(folder, 70000.0f), {.type = TensorType::f16}); });
  EXPECT_NO_THROW(drafter_gguf(with_value(folder, 70000.0f), {.type = TensorType::bf16}));
  test::expect_error("A drafter cannot be written as Q4_K; Q8_0, F16 and BF16 are possible.",
                     [&] { drafter_gguf(with_value(folder, 1.0f), {.type = TensorType::q4_k}); });
}

}  // namespace
}  // namespace canopy
